"""Draws that need no winner: their law, against exact probabilities.

Frequencies are compared by chi-square at a level of 1e-5 a comparison: with about seventy of them, correct
code fails for one seed in 1,400.
"""

from dataclasses import dataclass

import numba
import numpy as np
import pytest
from scipy.special import expit, ndtr
from scipy.stats import chi2

import gumbelrace as gr
from gumbelrace.core.rows import Rows
from gumbelrace.errors import InvalidArgument
from gumbelrace.methods.absorb_moments import (
    bound_eigenvalues,
    factorise,
    largest_eigenvalue,
    new_moments,
    put_covariances,
)
from gumbelrace.methods.base import Asked
from gumbelrace.methods.corrections import GUMBEL, PAIR, corrections, widest
from gumbelrace.methods.state import ALIVE, Question, new_state

LEVEL = 1e-5


@dataclass(frozen=True)
class Unguarded(gr.Absorb):
    """Takes all errors for normal, whatever the rows and their range say."""

    def rule(self, population):
        return super().rule(population)._replace(error=1.0)


@numba.njit
def entry(n, arm, rewards):
    return rewards[n, arm]


def chances(values):
    p = np.exp(values - values.max())
    return p / p.sum()


def chance_of(arms, p):
    """Give the chance of frequencies as far from `p` as these; arms that are expected rarely are pooled."""
    counts, expected = np.bincount(arms, minlength=len(p)), len(arms) * p
    rare = expected < 5.0
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        counts, expected = counts[expected > 0.0], expected[expected > 0.0]
    return chi2.sf(np.sum((counts - expected) ** 2 / expected), max(len(expected) - 1, 1))


# ---- Corrections ----

Z = np.linspace(-9.0, 9.0, 241)
NORMAL = np.exp(-0.5 * Z**2) / np.exp(-0.5 * Z**2).sum()


def relative_error(correction, law, deviation):
    """Give the largest error of a chance p(x), over p (1 - p), by quadrature on a grid of step 1/40."""
    x = np.arange(-14.0, 14.0, 1.0 / 40.0)
    weights, found = np.diff(correction.up_to, prepend=0.0), np.zeros(len(x))
    for value, weight in zip(correction.values, weights, strict=True):
        if law == PAIR:
            found += weight * ndtr((x + value) / deviation)
        else:
            found += weight * (np.exp(-np.exp(-(x[:, None] + value + deviation * Z))) @ NORMAL)
    return np.max(np.abs(found - expit(x)) / (expit(x) * expit(-x)))


@pytest.mark.parametrize("law", [GUMBEL, PAIR])
def test_corrections_are_as_close_as_they_say(law):
    """Oracle: the logistic law of the difference of two Gumbel variables. Negative control: another s."""
    for correction in corrections(law)[2:]:  # the closest are beyond what sums of doubles show at |x| = 14
        assert relative_error(correction, law, correction.deviation) < 1.1 * correction.error + 1e-8
        assert relative_error(correction, law, 1.1 * correction.deviation) > 3.0 * correction.error


@pytest.mark.parametrize("arms", [3, 10, 100])
@pytest.mark.parametrize("error", [1e-4, 1e-3])
def test_what_corrections_lack_is_half_of_the_error_at_most(arms, error):
    """Oracle: softmax; the law of the best of all arms by quadrature, when each has normal noise and C."""
    correction = widest(GUMBEL, error / 2.0)
    rng = np.random.default_rng(arms)
    weights, grid = np.diff(correction.up_to, prepend=0.0), np.linspace(-12.0, 30.0, 1_401)
    for spread in (0.0, 1.0, 3.0):
        values = spread * rng.normal(size=arms)
        steps = (grid[:, None] - values)[..., None] - correction.values
        up_to = np.log(np.maximum(ndtr(steps / correction.deviation) @ weights, 1e-300))
        density = np.exp(-0.5 * (steps / correction.deviation) ** 2) @ weights
        found = np.sum(density * np.exp(up_to.sum(1, keepdims=True) - up_to), axis=0)
        assert 0.5 * np.abs(found / found.sum() - chances(values)).sum() < error / 2.0


# ---- Laws ----


def rewards_of(kind, size, arms, rng):
    shape = (size, arms)
    if kind == "correlated":
        return rng.normal(size=(size, 1)) * 20.0 + rng.normal(size=shape)
    if kind == "sparse":
        return rng.normal(size=shape) * (rng.uniform(size=shape) < 0.05)
    if kind == "outlier":
        return rng.normal(size=shape) + 30.0 * (np.arange(size)[:, None] == 7) * (np.arange(arms) == 0)
    if kind == "one skewed":
        return np.where(np.arange(arms) == 0, rng.exponential(size=shape), rng.normal(size=shape))
    if kind == "identical":
        return np.repeat(rng.normal(size=(size, 1)), arms, axis=1)
    return {
        "normal": lambda: rng.normal(size=shape),
        "uniform": lambda: rng.uniform(size=shape),
        "two-point": lambda: (rng.uniform(size=shape) < 0.3) * 1.0,
        "lognormal": lambda: rng.lognormal(0.0, 2.0, size=shape),
        "left-skewed": lambda: -rng.lognormal(0.0, 1.5, size=shape),
        "Pareto": lambda: rng.pareto(2.5, size=shape),
        "constant": lambda: np.ones(shape),
    }[kind]()


READ_LITTLE = ["normal", "uniform", "two-point", "correlated", "constant", "one skewed"]
READ_MORE = ["lognormal", "left-skewed", "Pareto", "sparse", "outlier", "identical"]


def population_of(kind, size, arms, deviation, rng):
    """Give rewards with a standard deviation of their own, and sums that are the logarithms of chances."""
    rewards = rewards_of(kind, size, arms, rng)
    rewards = (rewards - rewards.mean(0)) / np.maximum(rewards.std(0), 1e-9) * deviation
    return rewards + np.log(rng.dirichlet(np.full(arms, 2.0))) / size


@pytest.mark.parametrize("kind", READ_LITTLE + READ_MORE)
@pytest.mark.parametrize("arms", [2, 3, 10])
def test_law_of_few_rows(kind, arms):
    """Oracle: exact chances."""
    rng = np.random.default_rng([arms, len(kind)])
    rewards = population_of(kind, 1_000, arms, 4e-3, rng)
    draws = gr.sample(gr.table(rewards), size=6_000, method=gr.Absorb(), rng=rng)
    assert chance_of(draws.arms, chances(rewards.sum(0))) > LEVEL
    assert draws.fraction < 0.6 or kind in READ_MORE


@pytest.mark.parametrize(
    ("kind", "arms"), [("normal", 2), ("one skewed", 3), ("normal", 10), ("uniform", 100)]
)
def test_law_of_many_rows(kind, arms):
    """Oracle: exact chances. A race of the same kind reads ten times more, or errs."""
    rng = np.random.default_rng([arms, len(kind), 5])
    rewards = population_of(kind, 100_000, arms, 1e-4, rng)
    draws = gr.sample(gr.table(rewards), size=8_000 if arms < 100 else 2_000, method=gr.Absorb(), rng=rng)
    assert chance_of(draws.arms, chances(rewards.sum(0))) > LEVEL
    assert draws.fraction < 0.015
    assert 0.0 < draws.law_error < 0.5e-3
    assert "law within 0.001 if means of 32 rows and more are normal" in repr(draws)
    assert "by the rows read" in repr(draws)


def two_directions(arms, rng, size=20_000):
    """Give standard rewards that vary most along arms none of which varies most by itself."""
    rewards = 0.02 * rng.normal(size=(size, arms))
    along, across = rng.normal(size=(2, size, 1))
    rewards[:, :4] += 0.5 * along * [1.0, 1.0, -1.0, -1.0]
    rewards[:, 4:6] += np.sqrt(0.45) * across * [1.0, -1.0]
    return rewards - rewards.mean(0)


@numba.njit
def bound_of(moments, state):
    put_covariances(moments, state, 1.0)
    estimate = largest_eigenvalue(moments, state.tally[ALIVE])
    bound = bound_eigenvalues(moments, state, 1.0)
    put_covariances(moments, state, 1.0)
    return estimate, bound, factorise(moments, state.tally[ALIVE], bound)


@pytest.mark.parametrize("arms", [6, 16])
def test_the_eigenvalue_that_is_planned_for_is_a_bound(arms):
    """Oracle: eigenvalues by LAPACK. Negative control: the power iteration misses it by its margin."""
    rewards = two_directions(arms, np.random.default_rng(1))
    moments, state = new_moments(arms), new_state(arms)
    state.arms[:], state.tally[ALIVE] = np.arange(arms), arms
    moments.slot[:], moments.counted[0], moments.products[:] = state.arms, len(rewards), rewards.T @ rewards
    estimate, bound, is_factorised = bound_of(moments, state)
    covariances = np.cov((rewards - rewards.mean(1, keepdims=True)).T)
    largest = np.linalg.eigvalsh(covariances)[-1]
    assert 1.05 * estimate < largest < bound < 1.1 * 1.1 * largest
    assert is_factorised


def test_law_of_rewards_that_vary_along_two_directions():
    """Oracle: exact chances. Without a bound on the eigenvalue, the chance of the frequencies is 1e-15."""
    rng = np.random.default_rng(5)
    rewards = 1e-3 * two_directions(16, rng)
    draws = gr.sample(gr.table(rewards), size=40_000, method=gr.Absorb(), rng=rng)
    assert chance_of(draws.arms, chances(rewards.sum(0))) > LEVEL
    assert draws.fraction < 0.13


def few_rows_carry_the_sum(rng, size=20_000):
    """20 rows favour one arm by 0.3 each, which is most of what arms differ by."""
    rewards = 1e-4 * rng.normal(size=(size, 3))
    rewards -= rewards.mean(0)
    rows = rng.choice(size, 20, replace=False)
    rewards[rows, 1] += 0.1
    return rewards, rows


def law_of(population, method, rewards, rng, draws=3_000):
    found = gr.sample(population, size=draws, method=method, rng=rng, check=False)
    return chance_of(found.arms, chances(rewards.sum(0)))


def test_a_range_shows_what_rows_may_hide():
    """Oracle: exact chances. Negative control: whoever trusts the rows seen is far off."""
    rng = np.random.default_rng(2)
    rewards, _ = few_rows_carry_the_sum(rng)
    population = gr.table(rewards)
    assert law_of(population, gr.Absorb(), rewards, rng) > LEVEL
    assert law_of(population, Unguarded(), rewards, rng) < 1e-20


def test_skewness_is_seen_and_read_on():
    """Oracle: exact chances, no range known. Negative control: without a guard the law is off."""
    rng = np.random.default_rng(3)
    rewards = np.column_stack([rng.lognormal(0.0, 1.0, 20_000), np.zeros(20_000)])
    rewards = (rewards - rewards.mean(0)) * (8e-4 / rewards.std(0)[0])
    rewards[:, 0] += 1.5 / len(rewards)
    population = gr.compiled(entry, (rewards,), *rewards.shape)
    assert law_of(population, gr.Absorb(), rewards, rng, 60_000) > LEVEL
    assert law_of(population, Unguarded(), rewards, rng, 60_000) < LEVEL
    assert "no few rows carry the sums" in str(gr.Absorb().promised(population))


def test_heavy_tails_make_a_longer_pilot():
    """Oracle: exact chances, no range known. Negative control: without a guard the law is off by 0.03.

    A pilot that misses the tail finds too little variance, and too few rows follow.
    """
    rng = np.random.default_rng(5)
    rewards = rng.lognormal(0.0, 1.5, (1_000, 2))
    rewards = (rewards - rewards.mean(0)) * (0.01 / rewards.std(0).max())
    rewards[:, 0] += 1.5 / len(rewards)
    population = gr.compiled(entry, (rewards,), *rewards.shape)
    assert law_of(population, gr.Absorb(), rewards, rng, 20_000) > LEVEL
    assert law_of(population, Unguarded(), rewards, rng, 20_000) < LEVEL


def test_one_arm_of_heavy_tails_is_seen_wherever_it_is():
    """One arm of ten has wide rows that pilots miss. Oracle: exact chances; reported alike, within a third.

    If the noise went by the variances of all arms together, the law would be off by 0.003 to 0.006.
    """
    rng = np.random.default_rng(7)
    rewards = rng.normal(size=(1_000, 10))
    rewards[rng.choice(1_000, 10, replace=False), -1] *= 8.0
    rewards = (rewards - rewards.mean(0)) * 0.0025 + np.where(np.arange(10) == 9, 3.4, 0.0) / 1_000
    reported = []
    for shift in (0, 1):
        turned = np.roll(rewards, shift, 1)
        population = gr.compiled(entry, (turned,), 1_000, 10)
        draws = gr.sample(population, size=100_000, method=gr.Absorb(), rng=rng, check=False)
        assert chance_of(draws.arms, chances(turned.sum(0))) > LEVEL
        reported.append(draws.law_error)
    assert 0.75 < reported[0] / reported[1] < 1.33


def test_pilots_that_miss_tails_do_not_move_the_law():
    """One row in 100 is 8 times as wide, and a pilot of 64 may see none: the law is not off by 0.007.

    Oracle: exact chances, no range known. So much is noticed.
    """
    rng = np.random.default_rng(1)
    rewards = rng.normal(size=(3_000, 3)) * np.where(rng.random((3_000, 3)) < 0.01, 8.0, 1.0)
    rewards -= rewards.mean(0)
    rewards = rewards * (0.2 / np.sqrt(3_000) / rewards.std(0)) + np.array([1.3, 0.0, 0.0]) / 3_000
    population, p = gr.compiled(entry, (rewards,), *rewards.shape), chances(rewards.sum(0))
    arms = gr.sample(population, size=200_000, method=gr.Absorb(), rng=rng, check=False).arms
    assert chance_of(arms, p) > LEVEL
    arms[arms.argsort()[: round(0.007 * len(arms))]] = rng.integers(1, 3, round(0.007 * len(arms)))
    assert chance_of(arms, p) < LEVEL


def test_draws_report_rows_that_others_miss():
    """Nobody sees one row of 20,000 in time, and the law is off; but the draws that meet it say so.

    About 50 of 5,000 draws do. Negative control: without that row, little is reported.
    """
    rng = np.random.default_rng(3)
    rewards = 5e-4 * rng.normal(size=(20_000, 3))
    rewards -= rewards.mean(0)
    population = gr.compiled(entry, (rewards,), *rewards.shape)
    for extra in (0.0, 1.0):
        rewards[7, 1] += extra
        draws = gr.sample(population, size=5_000, method=gr.Absorb(), rng=rng, check=False)
        is_right = chance_of(draws.arms, chances(rewards.sum(0))) > LEVEL
        assert is_right == (extra == 0.0)
        assert (draws.law_error > draws.promise.delta) == (extra > 0.0)


def test_weights_find_rare_rows():
    """Oracle: exact chances, no range known. Negative control: the same rows without weights."""
    rng = np.random.default_rng(4)
    rewards, rows = few_rows_carry_the_sum(rng)
    population = gr.compiled(entry, (rewards,), *rewards.shape)
    assert law_of(population, gr.Absorb(), rewards, rng) < 1e-20
    weights = np.full(len(rewards), 1e-4)
    weights[rows] = 0.1
    population.rows = Rows(len(rewards), weights=weights)
    found = gr.sample(population, size=6_000, method=gr.Absorb(), rng=rng)
    assert chance_of(found.arms, chances(rewards.sum(0))) > LEVEL
    assert found.fraction < 0.2


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("arms", "spread", "share"), [(2, 0.3, 0.8), (3, 0.1, 0.14)])
def test_law_where_arms_share_large_rewards(arms, spread, share, weighted):
    """Oracle: exact chances of differences. Their covariances are lost unless they are found from these.

    Then nearly all rows are read, and the law of two arms is off by 0.02.
    """
    rng = np.random.default_rng(3)
    differences = spread / np.sqrt(20_000) * rng.normal(size=(20_000, arms))
    differences += (np.arange(arms) == 0) / 20_000 - differences.mean(0)
    weights = rng.uniform(0.1, 2.0, 20_000) if weighted else None
    for effect in (1e6, 1e9):
        rewards = effect * rng.normal(size=(20_000, 1)) + differences
        population = gr.compiled(entry, (rewards,), *rewards.shape, weights=weights)
        draws = gr.sample(population, size=8_000, method=gr.Absorb(), rng=rng)
        assert chance_of(draws.arms, chances((rewards - rewards[:, :1]).sum(0))) > LEVEL
        assert draws.fraction < share


# ---- Edges ----


@pytest.mark.parametrize("temperature", [0.3, 1.0, 5.0])
def test_temperature(temperature):
    """Oracle: exact chances."""
    rng = np.random.default_rng(6)
    rewards = population_of("normal", 1_000, 3, 4e-3, rng)
    asked = Asked(Question.DRAW, temperature)
    found = gr.Absorb().answer_each(asked, gr.table(rewards), np.zeros((6_000, 3)), rng)
    assert chance_of(found.arms, chances(rewards.sum(0) / temperature)) > LEVEL


def test_no_temperature_is_the_winner():
    rng = np.random.default_rng(7)
    rewards = population_of("normal", 1_000, 5, 4e-3, rng)
    found = gr.Absorb().answer_each(Asked(Question.DRAW, 0.0), gr.table(rewards), np.zeros((50, 5)), rng)
    assert found.exhausted.all()
    assert (found.arms == rewards.sum(0).argmax()).all()


@pytest.mark.parametrize(
    ("rewards", "p"),
    [
        (np.zeros((5, 1)), [1.0]),
        (np.array([[0.0, 1.0]]), expit(np.array([-1.0, 1.0]))),
        (np.array([[0.0, -np.inf, 1.0]]), [expit(-1.0), 0.0, expit(1.0)]),
        (np.column_stack([np.zeros(999), np.full(999, -np.inf), np.zeros(999)]), [0.5, 0.0, 0.5]),
    ],
    ids=["one arm", "one row", "one row, -inf", "an impossible arm"],
)
def test_small_and_impossible(rewards, p):
    draws = gr.sample(rewards, size=3_000, method=gr.Absorb(), rng=1)
    assert chance_of(draws.arms, np.array(p)) > LEVEL


def test_no_possible_arm():
    with pytest.raises(gr.NoPossibleArm):
        gr.sample(np.full((100, 2), -np.inf), size=3, method=gr.Absorb(), rng=1)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_first_arm_is_impossible(weighted):
    """Oracle: exact chances. Others are compared with the first arm that is possible."""
    rng = np.random.default_rng(8)
    rewards = population_of("normal", 20_000, 3, 5e-4, rng)
    rewards[rng.uniform(size=20_000) < 0.3, 0] = -np.inf
    weights = rng.uniform(0.5, 1.5, 20_000) if weighted else None
    population = gr.compiled(entry, (rewards,), *rewards.shape, weights=weights)
    draws = gr.sample(population, size=6_000, method=gr.Absorb(), rng=rng)
    assert chance_of(draws.arms, chances(rewards.sum(0))) > LEVEL
    assert draws.fraction < 0.1
    rewards[:] = -np.inf
    with pytest.raises(gr.NoPossibleArm):
        gr.sample(population, size=3, method=gr.Absorb(), rng=rng)


def test_a_prior_rules_arms_out():
    rewards = 1e-3 * np.random.default_rng(0).normal(size=(1_000, 4))
    prior = np.array([0.0, -np.inf, 1.0, -np.inf])
    draws = gr.sample(rewards, prior, size=4_000, method=gr.Absorb(), rng=1)
    assert chance_of(draws.arms, chances(rewards.sum(0) + prior)) > LEVEL


def test_where_any_row_may_be_impossible_all_are_read():
    rewards = np.zeros((300, 3))
    rewards[17, 1] = -np.inf
    population = gr.compiled(entry, (rewards,), 300, 3, reward_range=(-np.inf, 0.0))
    draws = gr.sample(population, size=200, method=gr.Absorb(), rng=1)
    assert draws.exhausted.all()
    assert set(draws.arms) == {0, 2}


def test_it_finds_no_winner():
    population = gr.table(np.eye(5))
    with pytest.raises(InvalidArgument, match="Absorb gives only a draw, and this needs the best arm"):
        gr.best(population, method=gr.Absorb(), rng=0)


@pytest.mark.parametrize("arguments", [{"error": 0.0}, {"error": 1e-12}, {"error": "small"}, {"first": 2}])
def test_bad_arguments(arguments):
    with pytest.raises(InvalidArgument):
        gr.Absorb(**arguments)


def test_promises_about_the_law():
    assert str(gr.Promise(0.0, about="law")) == "exact"
    assert str(gr.Promise(1e-3, "a", "law").under("b")) == "law within 0.001 if a and that b"
    assert str(gr.Promise(0.05)) == "0.05 proved"
