"""Errors at most δ, each beside a way that is wrong and shows that the check would see it.

Oracle: the means over all examples. A check fails if correct code would be as bad with probability below
1e-4, by the binomial tail at δ; a negative control must fail by the same measure.
"""

import numpy as np
import pytest
from scipy.stats import binom

from gumbelrace.choosing.bets import Sampled
from gumbelrace.choosing.limits import lowest_means
from gumbelrace.choosing.result import distances
from tests.choosing.cases import campaign_of, paired, raced, served

DELTA, RUNS, ALARM = 0.2, 150, 1e-4


def is_kept(errors, runs=RUNS, delta=DELTA):
    """Whether so many errors do not contradict δ."""
    return binom.sf(errors - 1, runs, delta) > ALARM


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
    """One candidate is better by slightly more than the tolerance; the control doubles the tolerance."""
    errors, wrong, tolerance = 0, 0, 0.05
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        worse = rng.permutation(np.repeat([0.0, 1.0], [160, 140])).astype(float)
        better = worse.copy()
        better[np.flatnonzero(worse == 0.0)[:16]] = 1.0  # 16 / 300 > 0.05
        scores = np.stack([worse, better])[:, rng.permutation(300)]
        errors += raced(scores, delta=DELTA, tolerance=tolerance).leader == 0
        wrong += raced(scores, delta=DELTA, tolerance=2.0 * tolerance).leader == 0
    assert is_kept(errors)
    assert wrong > errors


def slow_where_it_wins(rng, size):
    """Scores of two candidates tied but for a hair, and latencies: those of the best are long where it wins."""
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
        campaign.put(task, outcome(scores[task.candidate, task.position]))
        campaign.settle()
    return campaign


def outcome(score):
    from gumbelrace.choosing.attempts import Outcome

    failed = np.isnan(score)
    return Outcome(None if failed else float(score), 0.0, 1, "failed" if failed else None)


def test_slow_answers_do_not_mislead():
    """The best is slow where it wins. Taking rows as they complete drops it far too often."""
    errors = wrong = 0
    runs = 60
    for seed in range(runs):
        scores, latency = slow_where_it_wins(np.random.default_rng(seed), 400)
        campaign = campaign_of(2, 400, workers=64)
        errors += in_simulated_time(campaign, scores, latency, 64).replay.out[1]
        wrong += raced(by_completion(scores, latency, 64)).out[1]
    assert is_kept(errors, runs, 0.05)
    assert not is_kept(wrong, runs, 0.05)


def spoiled(rng, size):
    """Scores in which an adversary makes the best fail on 5% of the examples, where only it is right."""
    scores = paired(np.array([0.5, 0.5]), size, rng)
    scores[1] = scores[0]
    scores[1, np.flatnonzero(scores[0] == 0.0)[: size // 50]] = 1.0  # the second is better by 2%
    failing = np.flatnonzero((scores[1] == 1.0) & (scores[0] == 0.0))
    extra = np.flatnonzero((scores[1] == 1.0) & (scores[0] == 1.0))[: size // 20 - len(failing)]
    scores[0, extra[: len(extra) // 3]] = 0.0
    scores[1, failing] = np.nan
    return scores[:, rng.permutation(size)], 1


def test_failures_do_not_mislead():
    """Failures chosen by an adversary. The control leaves the examples out on which one failed."""
    errors = wrong = lowest = 0
    runs = 60
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        scores = np.zeros((2, 500))
        scores[0, :200], scores[1, 200:430] = 1.0, 1.0  # the second is better by 30
        scores[1, 200:280] = np.nan  # and fails on 80 of the examples that it wins
        scores = scores[:, rng.permutation(500)]
        for on_failure in ("worst case", "lowest"):
            campaign = campaign_of(2, 500, on_failure, workers=8)
            served(campaign, lambda t, s=scores: None if np.isnan(s[t.candidate, t.position]) else s[t.candidate, t.position], rng, 8)
            errors += campaign.replay.out[1] and on_failure == "worst case"
            # With the lowest scores instead the first is the best.
            lowest += campaign.replay.out[0] and on_failure == "lowest"
        wrong += raced(scores[:, ~np.isnan(scores).any(axis=0)]).out[1]
    assert is_kept(errors, runs, 0.05)
    assert is_kept(lowest, runs, 0.05)
    assert not is_kept(wrong, runs, 0.05)


@pytest.mark.parametrize("finite", [True, False])
def test_intervals_cover_at_all_times(finite):
    """Limits at the end include those of all times before; the control has a tenth of the level."""
    rng, missed, halved = np.random.default_rng(5), 0, 0
    values = (rng.random((RUNS, 300)) < 0.3).astype(float)
    truth = values.mean(axis=1) if finite else np.full(RUNS, 0.3)
    sampled = Sampled(300, finite)
    limits = lowest_means(values[:, :250], sampled, DELTA, 0.0)
    missed = int((limits > truth + 1e-12).sum())
    halved = int((lowest_means(np.repeat(values[:, :250], 10, axis=1), Sampled(3000, finite), DELTA, 0.0) > truth).sum())
    assert is_kept(missed)
    assert not is_kept(halved) or finite


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
