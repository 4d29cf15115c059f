"""Means and intervals of an outcome: they hold together, whenever a race ends and whatever rewards are."""

import numpy as np
import pytest
import scipy.stats
from tests.common import seeded

import gumbelrace as gr
from gumbelrace.methods import estimates
from gumbelrace.methods.reading import KEPT

ROWS, RACES, DELTA, LEVEL = 3000, 150, 0.2, 1e-4
METHODS = [gr.Betting(DELTA), gr.Race(gr.methods.Serfling(), DELTA)]


def skewed(rng):
    return np.minimum(rng.lognormal(0.0, 1.5, (ROWS, 4)) + np.array([0.0, 0.2, 0.5, 0.6]), 60.0)


def outlier(rng):
    rewards = rng.normal([0.0, 0.0, 0.3, 0.4], 0.1, (ROWS, 4))
    rewards[7, 1] = 1500.0  # half a mean
    return rewards


def tied(rng):
    return np.repeat(rng.random((ROWS, 2)) < [0.5, 0.4], 2, axis=1).astype(float)


def misses(method, make, shrunk=1.0, wrap=gr.table):
    """Count races in which the true mean of some arm lies outside its interval."""
    count = 0
    for seed in range(RACES):
        rewards = make(seeded(seed))
        outcome = method.best(wrap(rewards), None, seeded(1000 + seed))
        low, high = outcome.intervals.T
        middle, truth = outcome.means, rewards.mean(axis=0)
        rounding = 1e-9 * np.abs(rewards).max()
        low, high = (
            middle - shrunk * (middle - low) - rounding,
            middle + shrunk * (high - middle) + rounding,
        )
        count += not ((low <= truth) & (truth <= high)).all()
        assert outcome.estimates.level == 1.0 - DELTA
    return count


def tail(count):
    return scipy.stats.binom.sf(count - 1, RACES, DELTA)


@pytest.mark.parametrize("make", [skewed, outlier, tied])
@pytest.mark.parametrize("method", METHODS, ids=["betting", "serfling"])
def test_intervals_hold_together(method, make):
    """Oracle: the means of all rows; 150 races each, fails by chance with probability below 1e-4."""
    assert tail(misses(method, make)) > LEVEL


def test_intervals_that_are_too_short_are_noticed():
    """Negative control: a tenth of the length, on rewards of which few are read."""
    assert tail(misses(METHODS[0], far_apart)) > LEVEL
    assert tail(misses(METHODS[0], far_apart, shrunk=0.1)) < LEVEL


def far_apart(rng):
    return rng.random((ROWS, 4)) < [0.3, 0.4, 0.5, 0.75]


def test_a_fixed_time_is_covered_by_the_share_of_its_own():
    """Oracle: Hoeffding's inequality for one arm, T = 100 of 1,000, δ times the share of T."""
    found = estimates.half_width(np.array([2.0]), np.array([100]), 1000, 0.05)
    share = 1.0 / (estimates.SUM_OF_SHARES * 101 * np.log(101) ** 2)
    left = min(1.0 - 99 / 1000, 0.9 * 1.01)
    assert found[0] == pytest.approx(2.0 * np.sqrt(left * np.log(2.0 / (0.05 * share)) / 200))
    shares = 1.0 / (np.arange(2, 10**6) * np.log(np.arange(2, 10**6)) ** 2)
    assert shares.sum() + 1.0 / np.log(10**6 - 1) < estimates.SUM_OF_SHARES  # the rest, by an integral


@pytest.mark.parametrize("offset", [None, [0.0, 100.0, -50.0]])
def test_what_was_read_to_the_end_is_exact(offset):
    rewards = seeded().normal(size=(500, 3)) + 1e6
    for population in (gr.table(rewards), gr.factors(lambda i, a: rewards[np.ix_(i, a)], 500, 3)):
        outcome = gr.best(population, offset=offset, method=gr.Exact(), rng=1)
        means = rewards.mean(axis=0) + (0.0 if offset is None else np.array(offset) / 500)
        np.testing.assert_allclose(outcome.means, means, rtol=1e-14)
        np.testing.assert_array_equal(outcome.intervals, np.stack([outcome.means] * 2, axis=1))
        assert outcome.runner_up == np.argsort(means)[-2]
        assert outcome.gap == pytest.approx(np.diff(np.sort(means))[-1], abs=1e-9)


def test_impossible_arms_and_arms_that_nobody_read():
    rewards = seeded().random((400, 3))
    rewards[5, 1] = -np.inf
    outcome = gr.best(gr.table(rewards), offset=[0.0, 0.0, -np.inf], rng=1)
    assert outcome.arm == 0
    assert np.isnan(outcome.means[0])  # nothing had to be read
    assert (outcome.intervals[0] == [rewards[:, 0].min(), rewards[:, 0].max()]).all()
    assert (outcome.means[1:] == -np.inf).all()
    assert outcome.runner_up is None
    assert np.isnan(outcome.gap)
    assert str(outcome).startswith("best is arm 0\n0.00%")


def unknown(rewards):
    """Give a population of the same rewards of which nobody knows the range."""
    return gr.factors(lambda i, a: rewards[np.ix_(i, a)], len(rewards), rewards.shape[1])


def normal(rng):
    return rng.normal([0.0, 0.1, 0.5, 1.0], 1.0, (ROWS, 4))


def gamma(rng):
    return rng.gamma(4.0, size=(ROWS, 4)) + np.array([0.0, 0.1, 0.5, 1.0])


@pytest.mark.parametrize("make", [normal, gamma])
def test_without_a_range_intervals_rest_on_normal_means(make):
    """Oracle: the means of all rows; false alarms below 1e-4. Half the length is noticed."""
    race = gr.Race(delta=DELTA)
    assert tail(misses(race, make, wrap=unknown)) > LEVEL
    assert tail(misses(race, make, shrunk=0.4, wrap=unknown)) < LEVEL


@pytest.mark.parametrize("gap", [1.0, 0.02])
def test_intervals_have_the_length_of_the_bound(gap):
    """Oracle: the bound times the deviation of all rewards, which is 1; also when not all are held."""
    rewards = seeded().normal([0.0, gap, -5.0], 1.0, (400_000, 3))
    outcome = gr.best(unknown(rewards), rng=1)
    taken, looks = outcome.ended.taken, 50 * 2 ** np.arange(13)
    assert (taken[1] > KEPT) == (gap < 1.0)
    factors = gr.methods.Normal().coefficients(0.05 / 6, looks, 400_000).per_deviation
    expected = factors[np.searchsorted(looks, taken)]
    np.testing.assert_allclose(outcome.intervals[:, 1] - outcome.means, expected, rtol=0.3)
    np.testing.assert_allclose(
        np.diff(outcome.intervals)[:, 0], 2 * (outcome.intervals[:, 1] - outcome.means)
    )
    if gap < 1.0:
        np.testing.assert_allclose((outcome.intervals[:, 1] - outcome.means)[:2], expected[:2], rtol=0.03)
    assert str(outcome).endswith("with a probability of 0.95, on the same assumption")


def test_equal_rewards_prove_nothing_of_the_others():
    rewards = np.ones((20_000, 2)) * [1.0, 0.0]
    rewards[:, 1] += seeded().normal(size=20_000) * 0.1
    outcome = gr.best(unknown(rewards), rng=1)
    assert np.isinf(outcome.intervals[0]).all() or outcome.exhausted
    assert np.isfinite(outcome.intervals[1]).all()


def test_arms_with_rows_of_their_own_have_none():
    own = gr.independent(lambda index, arm: np.ones(len(index)) * arm, [30, 20])
    outcome = gr.best(own, rng=1)
    assert (outcome.means, outcome.intervals, outcome.runner_up) == (None, None, None)
    assert str(outcome).startswith("best is arm 1\n")


def test_outcomes_print_means_and_the_runner_up():
    rewards = np.tile([[0.25, 0.5, 0.125]], (40, 1)) * np.tile([[0.0], [2.0]], (20, 1))
    lines = str(gr.best(rewards, method=gr.Exact(), rng=1)).splitlines()
    assert lines[:2] == ["best is arm 1, mean 0.5", "next is arm 0, mean 0.25, 0.25 less"]
    lines = str(gr.best(seeded().random((20_000, 2)) * [1.0, 0.5], rng=1)).splitlines()
    assert "(between " in lines[0]
