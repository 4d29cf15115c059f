"""The audit: errors counted exactly, the Clopper-Pearson interval, and a bad method caught."""

import math

import numpy as np
import pytest
from scipy import stats
from tests.common import seeded

import gumbelrace as gr
from gumbelrace.core.random import bits_of
from gumbelrace.errors import InvalidArgument
from gumbelrace.methods.state import Question, new_results, put_noise
from gumbelrace.verdict import clopper_pearson

REWARDS = np.random.default_rng(1).uniform(size=(400, 4), high=0.05)


class Stubborn(gr.Method):
    """Returns always the same arm, reads nothing, and promises an error of at most 0.05."""

    promise = gr.Promise(0.05)

    def __init__(self, arm=0):
        self.arm = arm

    def rule(self, population):
        raise NotImplementedError

    def best_each(self, population, offsets, rng):
        results = new_results(len(offsets))
        results.arms[:] = self.arm
        results.evaluations[:] = 7
        return results


class Guess(Stubborn):
    """Returns any arm."""

    def best_each(self, population, offsets, rng):
        results = new_results(len(offsets))
        results.arms[:] = rng.integers(population.arms, size=len(offsets))
        return results


POPULATIONS = {
    "table": gr.table(REWARDS),
    "factors": gr.factors(lambda index, arms: REWARDS[np.ix_(index, arms)], 400, 4),
    "independent": gr.independent(lambda index, arm: REWARDS[index, arm], [400] * 4),
}


@pytest.mark.parametrize("shared", [0.0, 2.0**60])
def test_what_the_head_shares_hides_nothing(shared):
    """The rows are read first: what they share must cancel before it is added to anything."""
    rewards = REWARDS.copy()
    rewards[5], rewards[70] = shared, [0.6, 0.1, 0.8, -np.inf]
    population = gr.factors(lambda index, arms: rewards[np.ix_(index, arms)], 400, 4, impossible=[5, 70])
    offsets, rng = np.zeros((500, 4)), seeded(2)
    put_noise(Question.DRAW, 1.0, offsets, bits_of(rng))
    values = np.delete(rewards, 5, axis=0).sum(axis=0) + offsets
    report = gr.audit(population, Stubborn(2), draws=500, rng=seeded(2))
    assert report.errors == (values.argmax(axis=1) != 2).sum() > 100
    assert gr.audit(population, gr.Exact(), draws=500, rng=seeded(2)).errors == 0
    found = gr.Exact().best_each(population, offsets, seeded())
    np.testing.assert_array_equal(found.arms, values.argmax(axis=1))


@pytest.mark.parametrize("kind", POPULATIONS)
@pytest.mark.parametrize("arm", [0, 3])
def test_errors_are_counted(kind, arm):
    prior = np.array([0.0, -np.inf, 0.7, 0.1])
    report = gr.audit(POPULATIONS[kind], Stubborn(arm), draws=500, rng=seeded(2), log_prior=prior)
    offsets, rng = np.tile(prior, (500, 1)), seeded(2)
    put_noise(Question.DRAW, 1.0, offsets, bits_of(rng))
    values = REWARDS.sum(axis=0) + offsets
    assert report.errors == (values.argmax(axis=1) != arm).sum() > 0
    assert report.draws == 500
    assert report.fraction == 7 / 1600
    assert report.interval == clopper_pearson(report.errors, 500, 0.95)
    assert report.tv_bound == report.interval[1]


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize(("errors", "draws"), [(0, 1), (1, 1), (0, 100), (3, 100), (99, 100), (50, 5000)])
def test_interval_is_clopper_pearson(errors, draws, confidence):
    tail = (1 - confidence) / 2
    low = stats.beta.ppf(tail, errors, draws - errors + 1) if errors else 0.0
    high = stats.beta.ppf(1 - tail, errors + 1, draws - errors) if errors < draws else 1.0
    assert clopper_pearson(errors, draws, confidence) == pytest.approx((low, high), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("kind", POPULATIONS)
def test_exact_makes_no_errors(kind):
    report = gr.audit(POPULATIONS[kind], gr.Exact(), draws=200, rng=seeded(3))
    assert (report.errors, report.fraction, report.broken) == (0, 1.0, False)
    assert report.interval[0] == 0.0


def test_a_bad_method_is_caught():
    report = gr.audit(POPULATIONS["table"], Guess(), draws=300, rng=seeded(4))
    assert report.errors > 100
    assert report.broken
    assert "broken" in str(report)
    assert f"{report.errors} errors in 300 draws" in str(report)


def test_broken_needs_the_whole_interval_above_delta():
    def report(errors, draws):
        interval = clopper_pearson(errors, draws, 0.95)
        return gr.Audit(errors, draws, interval, 0.95, 0.1, gr.Promise(0.05))

    assert not report(1, 10).broken
    assert not report(6, 100).broken
    assert report(12, 100).broken
    assert str(report(0, 5)).endswith("promise of 0.05 not contradicted (0 of 5; up to 0.52)")
    assert str(report(1, 10)).endswith("not contradicted (1 of 10; up to 0.45)")
    assert str(report(0, 100)).endswith("promise of 0.05 kept")


@pytest.mark.parametrize("kind", POPULATIONS)
def test_default_promises_are_kept(kind):
    """1,000 draws: more than 77 errors have a probability of 1e-4 at δ = 0.05."""
    population = POPULATIONS[kind]
    method = gr.Betting() if population.knows_range else gr.Race()
    report = gr.audit(population, method, draws=1000, rng=seeded(5))
    assert report.errors <= 77
    assert report.promise == method.promise
    assert 0.0 < report.fraction <= 1.0


def test_fraction_is_that_of_the_method_alone():
    report = gr.audit(POPULATIONS["table"], gr.Race(), draws=50, rng=seeded(6))
    draws = gr.sample(POPULATIONS["table"], size=50, method=gr.Race(), rng=seeded(6))
    assert report.fraction == pytest.approx(draws.fraction, rel=1e-12)


def test_ties_are_no_errors():
    """Arms with the same rewards in another order: the sums differ by rounding alone."""
    rewards = np.column_stack([REWARDS[:, 0], REWARDS[::-1, 0]])
    population = gr.table(np.tile(rewards, 2))
    values = np.array([[0.0, 0.0, -50.0, -50.0]])

    class Tied(Stubborn):
        def best_each(self, population, offsets, rng):
            offsets[:] = values
            return super().best_each(population, offsets, rng)

    for arm, errors in [(0, 0), (1, 0), (2, 20)]:
        assert gr.audit(population, Tied(arm), draws=20, rng=seeded()).errors == errors


def skewed(kind, shift):
    """Make a constant arm and one with rare bad rows, plus a number that both share; none is rounded."""
    column = -np.random.default_rng(9).lognormal(0.0, 2.0, 4000)
    column = (column - column.mean()) / (column.std() * np.sqrt(len(column)))
    rewards = np.round(np.stack([column, np.zeros(4000)], axis=1) * 2.0**20) * 2.0**-20 + shift
    if kind == "table":
        return gr.table(rewards)
    if kind == "factors":
        return gr.factors(lambda index, arms: rewards[np.ix_(index, arms)], 4000, 2)
    return gr.independent(lambda index, arm: rewards[index, arm], [4000, 4000])


@pytest.mark.parametrize(("kind", "near"), [("table", 0), ("factors", 0), ("independent", 5)])
def test_errors_are_seen_beside_a_large_number_that_arms_share(kind, near):
    """Adding 1e7 to all rewards changes no answer; of arms of their own, a few near ties are forgiven."""
    plain, large = (
        gr.audit(skewed(kind, shift), gr.Race(), draws=300, rng=seeded(10)) for shift in (0.0, 1e7)
    )
    assert plain.broken
    assert plain.errors - near <= large.errors <= plain.errors


def test_errors_are_seen_beside_large_offsets():
    prior = np.array([1e9, 1e9])
    plain, large = (
        gr.audit(skewed("table", 0.0), gr.Race(), draws=300, rng=seeded(10), log_prior=log_prior)
        for log_prior in (None, prior)
    )
    assert plain.errors == large.errors > 0


class Recorded(Stubborn):
    """Remembers what a race was asked, and what it found."""

    def best_each(self, population, offsets, rng):
        self.offsets, found = offsets.copy(), gr.Race().best_each(population, offsets, rng)
        self.found = found.arms
        return found


def rare(large, size=20_000):
    """Make an arm with rare good rows beside a constant one, and effects of the rows that both share."""
    rng = np.random.default_rng(11)
    column = np.zeros(size)
    column[rng.choice(size, 60, replace=False)] = 1.0
    rewards = np.stack([0.7 * (column - column.mean()), np.zeros(size), np.zeros(size)], axis=1)
    return rewards + large * rng.normal(size=(size, 1))


def reader_of(rewards):
    """Serve rewards by a function; arm 0 is the first reference, and is impossible in the last row."""
    rewards = np.concatenate([rewards[:, :1], rewards], axis=1)
    rewards[-1, 0] = -np.inf
    return gr.factors(lambda index, arms: rewards[np.ix_(index, arms)], *rewards.shape)


@pytest.mark.parametrize(("make", "first"), [(gr.table, 0), (reader_of, 1)])
@pytest.mark.parametrize("large", [1e7, 1e8])
def test_errors_are_seen_beside_large_rows_that_arms_share(make, first, large):
    """Of the same draws, `math.fsum` finds as many wrong (it does not round on the way)."""
    rewards, method = rare(large), Recorded()
    report = gr.audit(make(rewards), method, draws=500, rng=seeded(12))
    sums = [math.fsum([*column, *-rewards[:, 2]]) for column in rewards.T]
    values = method.offsets[:, first:] + sums
    assert report.errors == (values.argmax(axis=1) + first != method.found).sum() > 10
    assert report.impossible == (method.found < first).sum()


def test_reshuffling_does_not_change_the_exact_answer():
    rewards = np.random.default_rng(7).uniform(size=(20_000, 3), high=0.01)
    report = gr.audit(gr.table(rewards), gr.Exact(), draws=5, rng=seeded(8), reshuffle_every=2)
    assert report.errors == 0


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, np.nan, "a"])
def test_confidence_is_a_probability(confidence):
    with pytest.raises(InvalidArgument, match="confidence"):
        gr.audit(POPULATIONS["table"], gr.Exact(), rng=seeded(), confidence=confidence)


@pytest.mark.parametrize("draws", [0, -1, 1.5, None])
def test_draws_are_a_count(draws):
    with pytest.raises(InvalidArgument, match="draws"):
        gr.audit(POPULATIONS["table"], gr.Exact(), draws=draws, rng=seeded())
