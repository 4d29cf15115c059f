"""Proposition 4: Racing-Normal reads no more than T*(Δ) rewards, except with probability δ.

Rewards are normal and arm 0 is the best, without Gumbel variables or offsets. All other arms trail it by
the same normalised gap, the hardest case for a given Δ, chosen so that T̃ lies just below a look: a later
stop would exceed T*. The bound is the paper's own. Populations below 16,384 rows are read in an order drawn
afresh for each trial, larger ones are reshuffled, so that trials are independent.

A check counts the trials that read more than T* and fails only if so many, or more, have a probability
below 1e-4 at δ: correct code fails at most that often, over seeds.
"""

import numpy as np
import pytest
from scipy.special import bdtrc
from tests.rewards import factors, normal

import gumbelrace as gr
from gumbelrace.applications.demo import normalised

FALSE_ALARM = 1e-4
DELTA, FIRST = 0.05, 50
VARIANCES = pytest.mark.parametrize(
    "variance", [gr.methods.Paired(), gr.methods.Marginal()], ids=["paired", "marginal"]
)
ARMS = pytest.mark.parametrize("arms", [2, 10])


def normal_level(variance, size, arms):
    """B_Normal(δ/D')."""
    events = arms - 1 if isinstance(variance, gr.methods.Paired) else arms
    return gr.methods.b_normal(DELTA / events, FIRST / size)


def normalised_gap(rewards, variance):
    """Δ of Proposition 4, from the exact means and standard deviations of the population; arm 0 is best."""
    means, deviations = rewards.mean(axis=0), rewards.std(axis=0)
    paired = (rewards[:, :1] - rewards[:, 1:]).std(axis=0)
    marginal = deviations[0] + deviations[1:]
    scale = paired if isinstance(variance, gr.methods.Paired) else marginal
    return np.min((means[0] - means[1:]) / scale)


def rows_needed(gap, variance, size, arms):
    """T̃ of the proof: the rows at which the gap exceeds twice the bound."""
    return size / ((size - 1) * gap**2 / (4.0 * normal_level(variance, size, arms) ** 2) + 1.0)


def most_rows(needed, size):
    """⌈T̃⌉ in m^(1), the first look that has so many rows."""
    return min(FIRST * 2 ** max(int(np.ceil(np.log2(needed / FIRST))), 0), size)


def arms_behind(rng, variance, size, arms, needed):
    """Make normal rewards for which T̃ is `needed`."""
    rewards = normalised(normal(rng, size, arms), np.zeros(arms), 1.0)
    scale = (
        (rewards[:, :1] - rewards[:, 1:]).std(axis=0) if isinstance(variance, gr.methods.Paired) else 2.0
    )
    gap = 2.0 * normal_level(variance, size, arms) * np.sqrt((size / needed - 1.0) / (size - 1))
    rewards[:, 1:] -= gap * scale
    return rewards


def exceeds(race, population, trials, most, rng):
    """Count the trials that read more than `most` rewards."""
    offsets = np.zeros((trials, population.arms))
    return int(np.sum(race.best_each(population, offsets, rng).evaluations > most))


def exceeds_reshuffled(race, population, trials, most, rng):
    """Count the same, with a new order of the rows for every trial."""
    return sum(exceeds(race, population.reshuffled(rng), 1, most, rng) for _ in range(trials))


def within_delta(count, trials):
    """Say whether `count` of `trials` may have a probability of δ each."""
    return bdtrc(count - 1, trials, DELTA) >= FALSE_ALARM


def problem(variance, size, arms, look):
    """Give a generator, rewards for which T* is D·`look`, the race, and T*."""
    rng = np.random.default_rng([20160404, variance.paired, size, arms, look])
    rewards = arms_behind(rng, variance, size, arms, 0.99 * look)
    needed = rows_needed(normalised_gap(rewards, variance), variance, size, arms)
    race = gr.Race(gr.methods.Normal(student=False), delta=DELTA, first=FIRST, variance=variance)
    return rng, rewards, race, arms * most_rows(needed, size)


def test_rounding_up_to_a_look():
    """Claim: ⌈n⌉ is the first look of at least n rows, N at the end. Oracle: the looks, by hand."""
    assert [most_rows(n, 300) for n in (1, 50, 50.1, 100, 101, 201, 300)] == [
        50, 50, 100, 100, 200, 300, 300,
    ]  # fmt: skip


@VARIANCES
@ARMS
@pytest.mark.parametrize("look", [50, 100, 400, 1600, 3200, 6400, 8000])
def test_no_more_is_read_than_proposition_4_says(variance, arms, look):
    """Claim: P(rewards read > T*) ≤ δ at every look; a population of factors never scans early.

    Oracle: T* from the exact moments. 600 trials, seed in `problem`, false-alarm rate 1e-4.
    """
    rng, rewards, race, most = problem(variance, 8000, arms, look)
    assert most == arms * look
    assert within_delta(exceeds(race, factors(rewards), 600, most, rng), 600)


@VARIANCES
@ARMS
@pytest.mark.parametrize("look", [100, 400])
def test_tables_read_no_more_either(variance, arms, look):
    """Claim: the same for a table, which may decide to scan only after N/32 rows ≥ T*/D.

    Oracle: T* from the exact moments. 600 trials, seed in `problem`, false-alarm rate 1e-4.
    """
    rng, rewards, race, most = problem(variance, 12_800, arms, look)
    assert most == arms * look
    assert within_delta(exceeds(race, gr.table(rewards), 600, most, rng), 600)


@VARIANCES
@ARMS
def test_tables_in_blocks_read_no_more_either(variance, arms):
    """Claim: the same for a table that is read in blocks of rows, T* = D·N/32.

    Oracle: T* from the exact moments. 150 trials, seed in `problem`, false-alarm rate 1e-4.
    """
    rng, rewards, race, most = problem(variance, 51_200, arms, 1600)
    assert most == arms * 1600
    assert within_delta(exceeds_reshuffled(race, gr.table(rewards), 150, most, rng), 150)


@VARIANCES
@ARMS
@pytest.mark.parametrize("look", [3200, 6400])
def test_half_of_it_is_exceeded(variance, arms, look):
    """Negative control: more than T*/2 is read with a probability above δ (by the same check)."""
    rng, rewards, race, most = problem(variance, 8000, arms, look)
    assert not within_delta(exceeds(race, factors(rewards), 600, most / 2, rng), 600)
