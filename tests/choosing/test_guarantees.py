"""Errors at most δ, each beside a way that is wrong and shows that the check would see it.

Oracle: the means over all examples. A check fails if correct code would be as bad with probability below
1e-4, by the binomial tail at δ; a negative control must fail by the same measure.
"""

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import binom
from tests.choosing.cases import campaign_of, paired, raced, served

from gumbelrace.choosing.attempts import Outcome
from gumbelrace.choosing.bets import Sampled, grown, mixed
from gumbelrace.choosing.limits import lowest_means
from gumbelrace.choosing.result import distances

DELTA, RUNS, ALARM = 0.2, 100, 1e-4


def is_kept(errors, runs=RUNS, delta=DELTA):
    """Whether so many errors do not contradict δ."""
    return binom.sf(errors - 1, runs, delta) > ALARM


ORDERS = list(permutations(range(6)))
SMALL = np.array(
    [[0.0, 1.0, 0.5, 0.0, 1.0, 0.2], [0.4, 0.9, 0.0, 1.0, 0.0, 0.5], [0.1, 0.2, 0.3, 0.8, 0.7, 0.6]]
)


@pytest.mark.parametrize("shift", [0.0, 0.1])
def test_bets_against_the_best_are_fair(shift):
    """Oracle: all 720 orders of 6 examples. Wealth against the best is 1 on average at most.

    The control bets against a claim that is wrong: the rival is better by `shift`.
    """
    scores = SMALL * [[1.0], [1.0], [0.9]] + [[0.0], [0.0], [shift]]
    assert (scores.mean(axis=1).argmax() == 1) == (shift == 0.0)
    wealth = np.mean([np.exp(raced(scores[:, list(order)], delta=1e-9).log_wealth[1]) for order in ORDERS])
    assert (wealth <= 1.0 + 1e-12) == (shift == 0.0)


@pytest.mark.parametrize("fair", [True, False])
def test_mixtures_are_fair(fair):
    """The same of the wealth by which limits are found; the control bets against less than the mean."""
    values = SMALL[1, np.array(ORDERS)][:, :5]
    mean = SMALL[1].mean() - (not fair) * 0.05
    wealth = np.exp(mixed(grown(values, mean, Sampled(6, finite=True), 0.0)))
    assert (wealth.mean(axis=0) <= 1.0 + 1e-12).all() == fair


def hair(rng, size):
    """Two candidates tied but for a hair, and two clearly worse ones; the second is the best."""
    scores = paired(np.array([0.6, 0.6, 0.4, 0.3]), size, rng)
    scores[0] = rng.permutation(scores[1])
    scores[0, scores[0].argmax()] = 0.0
    return scores


@pytest.mark.parametrize("finite", [True, False])
def test_the_best_is_dropped_seldom(finite):
    """Near ties; the control claims ten times the evidence (each row of examples ten times)."""
    errors, wrong = 0, 0
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        scores = hair(rng, 300)[:, rng.permutation(300)]
        errors += raced(scores, delta=DELTA, finite=finite).out[1]
        wrong += raced(np.repeat(scores, 10, axis=1), delta=DELTA, finite=finite).out[1]
    assert is_kept(errors)
    assert not is_kept(wrong)


def test_what_is_within_the_tolerance_is_near():
    """One candidate is better by a little more than the tolerance; the control allows twelve times that."""
    errors, wrong, tolerance = 0, 0, 0.05
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        worse = rng.permutation(np.repeat([0.0, 1.0], [160, 140])).astype(float)
        better = worse.copy()
        better[np.flatnonzero(worse == 0.0)[:16]] = 1.0  # 16 / 300 > 0.05
        scores = np.stack([worse, better])[:, rng.permutation(300)]
        errors += raced(scores, delta=DELTA, tolerance=tolerance).leader == 0
        wrong += raced(scores, delta=DELTA, tolerance=12.0 * tolerance).leader == 0
    assert is_kept(errors)
    assert not is_kept(wrong)


def slow_where_it_wins(rng, size):
    """Two candidates tied but for a hair, and latencies: those of the best are long where it wins."""
    scores = np.zeros((2, size))
    scores[0, : size // 2], scores[1, size // 2 - 1 :] = 1.0, 1.0  # the second is the best by two
    scores = scores[:, rng.permutation(size)]
    return scores, np.where(scores == 1.0, [[1.0], [200.0]], 1.0)


def by_completion(scores, latency, workers):
    """The wrong way: rows in the order in which both scores have arrived, with workers that run ahead."""
    free, done = np.zeros(workers), np.zeros(scores.shape[1])
    for row in range(scores.shape[1]):
        worker = free.argmin()
        free[worker] += latency[:, row].max()
        done[row] = free[worker]
    return scores[:, np.argsort(done, kind="stable")]


def in_simulated_time(campaign, scores, latency, workers):
    """Fill a campaign by workers that take as long as they take."""
    clock, under_way = 0.0, []
    while not campaign.is_finished:
        while len(under_way) < workers and (task := campaign.take()):
            under_way.append((clock + latency[task.candidate, task.position], task))
        clock, task = min(under_way)
        under_way.remove((clock, task))
        campaign.put(task, Outcome(float(scores[task.candidate, task.position]), 0.0, 1, None))
        campaign.settle()
    return campaign


def test_slow_answers_do_not_mislead():
    """The best is slow where it wins. Taking rows as they complete drops it far too often."""
    errors = wrong = 0
    runs = 40
    for seed in range(runs):
        scores, latency = slow_where_it_wins(np.random.default_rng(seed), 300)
        campaign = campaign_of(2, 300, workers=64)
        errors += in_simulated_time(campaign, scores, latency, 64).replay.out[1]
        wrong += raced(by_completion(scores, latency, 64)).out[1]
    assert is_kept(errors, runs, 0.05)
    assert not is_kept(wrong, runs, 0.05)


def spoiled(rng):
    """The second candidate is better by 18 of 300, and fails on 48 of the examples that it wins."""
    scores = np.zeros((2, 300))
    scores[0, :120], scores[1, 120:258] = 1.0, 1.0
    scores[1, 120:168] = np.nan
    return scores[:, rng.permutation(300)]


def filled(scores, on_failure, rng):
    """The race on scores of which some fail."""

    def outcome_of(task):
        score = scores[task.candidate, task.position]
        return None if np.isnan(score) else float(score)

    return served(campaign_of(2, 300, on_failure, workers=32), outcome_of, rng, 32).replay


def test_failures_do_not_mislead():
    """Failures chosen by an adversary. The control leaves out the examples on which one failed.

    Where a failure is the lowest score, the other candidate is the best: that is another question.
    """
    errors = lowest = wrong = 0
    runs = 40
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        scores = spoiled(rng)
        errors += filled(scores, "worst case", rng).out[1]
        lowest += filled(scores, "lowest", rng).out[0]
        wrong += raced(scores[:, ~np.isnan(scores).any(axis=0)]).out[1]
    assert is_kept(errors, runs, 0.05)
    assert is_kept(lowest, runs, 0.05)
    assert not is_kept(wrong, runs, 0.05)


@pytest.mark.parametrize("finite", [True, False])
def test_intervals_cover_at_all_times(finite):
    """Limits at the end include those of all times before. The control asks for 1/20 of the wealth."""
    values = (np.random.default_rng(5).random((RUNS, 300)) < 0.3).astype(float)
    truth = values.mean(axis=1) if finite else np.full(RUNS, 0.3)
    for level, holds in ((DELTA, True), (20.0 * DELTA, False)):
        limits = lowest_means(values[:, :250], Sampled(300, finite), level, 0.0)
        assert is_kept(int((limits > truth + 1e-12).sum())) == holds


def test_what_is_said_at_a_spent_budget_holds():
    """How far the leader may be from the best, at random stopping times."""
    errors = 0
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        scores = hair(rng, 300)[:, rng.permutation(300)]
        replay = raced(np.where(np.arange(300) < rng.integers(20, 250), scores, np.nan), delta=DELTA)
        truth = scores.mean(axis=1)
        errors += truth.max() - truth[replay.leader] > distances(replay).max() + 1e-12
    assert is_kept(errors)
