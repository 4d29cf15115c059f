"""Thinning: exact laws of moves and draws; what violates a bound; what it cannot be asked."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import softmax

import gumbelrace as gr
from gumbelrace.core.rows import Rows
from gumbelrace.errors import InvalidArgument, RewardOutOfRange, UnknownRange
from gumbelrace.methods.base import Asked
from gumbelrace.methods.state import Question
from gumbelrace.methods.thinning import Rings
from gumbelrace.models import logistic

SIZE, DRAWS = 300, 40_000
ACCEPT, DRAW = Asked(Question.ACCEPT), Asked(Question.DRAW)


@dataclass(frozen=True)
class HalfDeaf(gr.Thinning):
    """Negative control: rows ring half as often as their bounds ask for."""

    def rule(self, population):
        return Rings(0.5 * population.rows.mean_bound, uneven=False)


def rewards_of(arms, scale=0.004):
    """Give rewards of which later rows have larger ones, and later arms lower ones."""
    drawn = np.random.default_rng(0).uniform(-scale, scale, (SIZE, arms))
    return (drawn - np.linspace(0.0, scale / 2, arms)) * np.linspace(0.05, 1.0, SIZE)[:, None]


def bounded(rewards, bounds=None):
    """Give a table whose rows have bounds of their own."""
    population = gr.table(rewards)
    sizes = np.abs(rewards).max(axis=0)
    population.rows = Rows(
        len(rewards), bounds=(np.abs(rewards) / sizes).max(axis=1) if bounds is None else bounds
    )
    return population


def frequencies(method, asked, population, offset, seed=1):
    offsets = np.tile(offset, (DRAWS, 1))
    found = method.answer_each(asked, population, offsets, np.random.default_rng(seed))
    return np.bincount(found.arms, minlength=population.arms) / DRAWS, found


def is_close(found, probabilities):
    """Whether frequencies are within 4.5 standard errors: a false alarm once in 100,000."""
    errors = np.sqrt(probabilities * (1.0 - probabilities) / DRAWS)
    return bool((np.abs(found - probabilities) <= 4.5 * errors + 1e-12).all())


@pytest.mark.parametrize("make", [gr.table, bounded], ids=["one bound", "bounds of rows"])
def test_a_move_is_accepted_with_the_product_over_rows(make):
    rewards, offset = rewards_of(2), np.array([0.0, -0.1])
    losses = np.maximum(rewards[:, 0] - rewards[:, 1], 0.0)
    chance = np.exp(-0.1 - losses.sum())
    found, results = frequencies(gr.Thinning(), ACCEPT, make(rewards), offset)
    assert is_close(found, np.array([1.0 - chance, chance]))
    assert 0 < results.evaluations.mean() < 0.02 * rewards.size
    assert not results.exhausted.any()


def test_missing_rings_are_noticed():
    """Negative control of the law of moves and draws."""
    rewards = rewards_of(2)
    chance = np.exp(-np.maximum(rewards[:, 0] - rewards[:, 1], 0.0).sum())
    found, _ = frequencies(HalfDeaf(), ACCEPT, gr.table(rewards), np.zeros(2))
    assert not is_close(found, np.array([1.0 - chance, chance]))
    found, _ = frequencies(HalfDeaf(), DRAW, gr.table(rewards), np.zeros(2))
    assert not is_close(found, softmax(rewards.sum(axis=0)))


def test_bounds_of_rows_save_rings():
    read = [
        frequencies(gr.Thinning(), ACCEPT, make(rewards_of(2)), np.zeros(2))[1]
        for make in (gr.table, bounded)
    ]
    assert read[1].evaluations.mean() < 0.8 * read[0].evaluations.mean()


@pytest.mark.parametrize("make", [gr.table, bounded], ids=["one bound", "bounds of rows"])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_draws_are_exact(make, temperature):
    """Oracle: all probabilities. The second arm is ruled out."""
    rewards, offset = rewards_of(4), np.array([0.3, -np.inf, 0.0, -0.5])
    asked = Asked(Question.DRAW, temperature)
    found, results = frequencies(gr.Thinning(), asked, make(rewards), offset)
    assert is_close(found, softmax((rewards.sum(axis=0) + offset) / temperature))
    assert 0 < results.evaluations.mean() < 0.2 * rewards.size


def test_draws_from_a_large_table_are_exact():
    """Its rows lie in memory in a random order, and are picked there one by one."""
    rewards = np.random.default_rng(2).uniform(-1.0, [1.0, 0.5, 1.1], (20_000, 3)) * 2e-5
    for asked in (DRAW, ACCEPT):
        arms = rewards[:, : 3 if asked is DRAW else 2]
        found, results = frequencies(gr.Thinning(), asked, gr.table(arms), np.zeros(arms.shape[1]))
        chance = np.exp(-np.maximum(arms[:, 0] - arms[:, 1], 0.0).sum())
        assert is_close(
            found, softmax(arms.sum(axis=0)) if asked is DRAW else np.array([1.0 - chance, chance])
        )
        assert 0 < results.evaluations.mean() < 10


def test_sample_takes_it():
    draws = gr.sample(bounded(rewards_of(3)), size=500, method=gr.Thinning(), rng=3)
    assert draws.fraction < 0.2
    assert draws.promise.proved
    assert draws.promise.delta == 0.0


@pytest.mark.parametrize("asked", [ACCEPT, DRAW], ids=["move", "draw"])
def test_where_rings_would_outnumber_rows_everything_is_read(asked):
    """The answer is then that of an exact scan, by Metropolis and Hastings for a move."""
    rewards = rewards_of(2, scale=1.0)
    rewards[:, 1] += rewards[:, 0].mean() - rewards[:, 1].mean() - 0.5 / SIZE
    found, results = frequencies(gr.Thinning(), asked, gr.table(rewards), np.zeros(2))
    sums = rewards.sum(axis=0)
    chance = min(1.0, np.exp(sums[1] - sums[0])) if asked is ACCEPT else softmax(sums)[1]
    assert is_close(found, np.array([1.0 - chance, chance]))
    assert results.exhausted.all()


def test_what_is_read_does_not_depend_on_which_arm_is_current():
    """Detailed balance needs it: ranges differ so much that rings would be many in one direction only."""
    rewards = np.stack([np.full(SIZE, 0.0), np.linspace(-1.5, 0.0, SIZE)], axis=1)
    for columns in ([0, 1], [1, 0]):
        _, results = frequencies(gr.Thinning(), ACCEPT, gr.table(rewards[:, columns]), np.zeros(2))
        assert results.exhausted.all()


def test_temperature_zero_is_the_exact_winner():
    found, _ = frequencies(gr.Thinning(), Asked(Question.DRAW, 0.0), gr.table(rewards_of(3)), np.zeros(3))
    assert found[rewards_of(3).sum(axis=0).argmax()] == 1.0


def test_an_impossible_arm_loses_unread():
    rewards = rewards_of(2)
    rewards[7, 1] = -np.inf
    found, results = frequencies(gr.Thinning(), ACCEPT, gr.table(rewards), np.zeros(2))
    assert found[0] == 1.0
    assert results.evaluations.sum() == 0


# ---- What goes wrong ----


def test_a_row_beyond_its_bound_is_named():
    rewards = rewards_of(2)
    row, bounds = (rewards[:, 0] - rewards[:, 1]).argmax(), np.ones(SIZE)
    bounds[row] = 0.2
    with pytest.raises(RewardOutOfRange, match=f"row {row} are farther apart than its bound allows"):
        frequencies(gr.Thinning(), ACCEPT, bounded(rewards, bounds), np.zeros(2))


def test_a_range_is_needed():
    population = gr.factors(lambda rows: np.zeros((len(rows), 2)), size=5, arms=2)
    with pytest.raises(UnknownRange, match=r"Thinning needs to know.*remainder= of parameter_taylor"):
        gr.sample(population, method=gr.Thinning(), rng=0)


def test_independent_arms_are_refused():
    for known in ((0.0, 1.0), None):
        arms = gr.independent(lambda index, arm: np.zeros(len(index)), [5, 5], reward_range=known)
        with pytest.raises(InvalidArgument, match="share"):
            gr.sample(arms, method=gr.Thinning(), rng=0)


def test_it_finds_no_winner():
    with pytest.raises(InvalidArgument, match="this needs the best arm"):
        gr.best(gr.table(np.eye(5)), method=gr.Thinning(), rng=0)
    with pytest.raises(InvalidArgument, match="this needs the best arm"):
        gr.Slice(gr.likelihood(logistic.log_factor, (np.eye(2), np.ones(2)), 2), 0.1, method=gr.Thinning())
