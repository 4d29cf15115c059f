"""The race is a function of the scores in their order: schedules, latencies and failures change nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.choosing.cases import campaign_of, paired, raced, served

from gumbelrace.choosing.bets import Sampled
from gumbelrace.choosing.replay import Promise, Replay
from gumbelrace.choosing.scores import Scores
from gumbelrace.errors import NotSettled

CHANCES = np.array([0.5, 0.7, 0.72, 0.6, 0.8])


def same(one, other):
    """Whether two races are the same, bit for bit."""
    return (
        one.rows == other.rows
        and one.leader == other.leader
        and np.array_equal(one.log_wealth, other.log_wealth)
        and np.array_equal(one.out_at, other.out_at)
        and np.array_equal(one.scores.settled, other.scores.settled)
        and np.array_equal(one.wanted, other.wanted)
    )


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    workers=st.integers(1, 80),
    tolerance=st.sampled_from([0.0, 0.05]),
    on_failure=st.sampled_from(["lowest", "worst case"]),
    failing=st.sampled_from([0.0, 0.05]),
)
def test_any_schedule_gives_the_serial_race(seed, workers, tolerance, on_failure, failing):
    rng = np.random.default_rng(seed)
    scores = np.where(rng.random((5, 150)) < failing, np.nan, paired(CHANCES, 150, rng))

    def outcome_of(task):
        score = scores[task.candidate, task.position]
        return None if np.isnan(score) else float(score)

    def campaign(workers):
        found = campaign_of(5, 150, on_failure, workers, tolerance=tolerance)
        return served(found, outcome_of, rng, workers).replay

    assert same(campaign(workers), campaign(1))


def test_a_schedule_that_runs_ahead_of_the_order_is_bounded():
    scores = paired(CHANCES, 400, np.random.default_rng(0))
    campaign = campaign_of(5, 400, workers=16)
    ahead = []

    def outcome_of(task):
        ahead.append(task.position - campaign.replay.rows)
        return float(scores[task.candidate, task.position])

    served(campaign, outcome_of, np.random.default_rng(1), 16)
    assert 0 < max(ahead) <= 4 * 16


class Watched(Replay):
    """A race that notes who caught up where."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.caught_up = []

    def _settle(self, group, position):
        if position < self.rows:
            self.caught_up += [(int(candidate), position) for candidate in group]
        super()._settle(group, position)


def wealth_by_hand(replay, scores, candidate):
    """The logarithm of a candidate's wealth against the leaders of the positions, one row at a time."""
    size, log_wealth, squares = scores.shape[1], 0.0, 0.0
    for t in range(replay.scores.settled[candidate]):
        z = scores[replay._leaders[t]] - scores[candidate]
        seen = z[:t].sum()
        mean, ceiling = seen / max(t, 1), -seen / (size - t)
        gain = max(mean - ceiling, 0.0)
        if t > 0 and gain > 0.0:
            spread = (squares + 1.0) / (t + 1.0) + gain**2
            error = spread * size / (t * (size - t))
            stake = min(gain**3 / (spread * (gain**2 + 2.0 * error)), 0.95 / (ceiling + 1.0))
            log_wealth += np.log1p(stake * (z[t] - ceiling))
        squares += (z[t] - mean) ** 2
    return log_wealth


def test_candidates_that_paused_catch_up():
    """Oracle: wealth worked out by hand along the order, whenever its scores were looked at."""
    caught_up = 0
    for seed in range(20):
        values = paired(np.full(5, 0.9), 200, np.random.default_rng(seed))
        scores = Scores(5, 200)
        scores.put_all(values, values)
        replay = Watched(scores, Promise(Sampled(200, finite=True), 0.5, 0.1))
        replay.go_on()
        # Leaders bet on runners-up, which are not noted.
        for candidate in set(range(5)) - set(replay._leaders):
            assert np.isclose(replay.log_wealth[candidate], wealth_by_hand(replay, values, candidate))
        caught_up += len({candidate for candidate, _ in replay.caught_up} - set(replay._leaders))
    assert caught_up > 0


def test_nothing_depends_on_later_positions():
    """Leaders, and wealth up to a position, are the same whatever the scores at later positions are.

    Candidates that lag behind are worked out when later positions are long known: the oracle above covers
    their wealth, this the rivals that they meet.
    """
    for seed in range(15):
        rng = np.random.default_rng(seed)
        scores, until = paired(np.full(5, 0.9), 200, rng), int(rng.integers(5, 60))
        other = np.where(np.arange(200) < until, scores, rng.permutation(scores, axis=1))
        one, two = (raced(values, delta=0.5, tolerance=0.1) for values in (scores, other))
        first = min(until + 1, one.rows, two.rows)
        assert one._leaders[:first] == two._leaders[:first]
        early = (one.out_at != -1) & (one.out_at <= until) & (one.scores.settled <= until)
        assert np.array_equal(one.log_wealth[early], two.log_wealth[early])


def test_a_bet_on_what_is_not_settled_raises():
    scores = Scores(2, 10)
    scores.put(0, 1, 0.5, 0.5)
    with pytest.raises(NotSettled):
        scores.settle(np.array([0]), 1)
    with pytest.raises(NotSettled):
        scores.low_sums(np.array([0]), 1)
    scores.put(0, 0, 0.5, 0.5)
    scores.settle(np.array([0]), 0)
    assert scores.low_sums(np.array([0]), 1) == 0.5
    with pytest.raises(NotSettled):
        scores.high_sums(np.array([0, 1]), 1)


def test_a_rival_from_the_future_raises():
    """A bet that took its rival from a position beyond would ask for sums that there are not."""
    scores = Scores(3, 10)
    scores.put_all(np.ones((3, 4)), np.ones((3, 4)))
    replay = Replay(scores, Promise(Sampled(10, finite=True), 0.05))
    replay.go_on()
    with pytest.raises(NotSettled):
        replay._bet(np.array([0]), np.array([1]), 5)


@pytest.mark.parametrize("tolerance", [0.0, 0.05])
def test_whole_populations_are_decided_exactly(tolerance):
    """Ten small populations with δ so small that bets decide nothing: whoever is left is the best."""
    for seed in range(10):
        scores = paired(np.full(4, 0.6), 30, np.random.default_rng(seed))
        replay = raced(scores, delta=1e-12, tolerance=tolerance)
        means = scores.mean(axis=1)
        assert means[replay.leader] >= means.max() - tolerance
        assert (means[replay.out] < means.max()).all()


def test_a_single_candidate_needs_no_evaluation():
    assert raced(np.zeros((1, 5))).is_over
