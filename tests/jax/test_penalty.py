"""The penalty test by JAX: the same law as the compiled one, whichever way a move goes through it."""

from dataclasses import replace

import numba
import numpy as np
import pytest

import gumbelrace as gr
from gumbelrace.core.rows import Rows
from gumbelrace.methods.base import Asked
from gumbelrace.methods.state import Question

jax = pytest.importorskip("jax", reason="JAX is not installed")

import gumbelrace.jax.penalty as penalties  # noqa: E402
from gumbelrace.jax.chain import BLOCK, Chains, Law  # noqa: E402
from gumbelrace.jax.data import as_rows  # noqa: E402
from gumbelrace.jax.model import JaxModel  # noqa: E402
from gumbelrace.jax.packages import in_double, jnp, random  # noqa: E402
from gumbelrace.jax.picking import table_of  # noqa: E402
from gumbelrace.laplace.pilot import NORMAL  # noqa: E402

SIZE, ANSWERS = 100_000, 4000
# What rows say of a move, and weights that do not quite fit it.
RNG = np.random.default_rng(0)
SLOPES = 10.0 * RNG.gamma(0.5, 1.0, SIZE) * RNG.choice([-1.0, 1.0], SIZE, p=[0.4, 0.6]) / SIZE
WEIGHTS = np.abs(SLOPES) + 0.1 * np.mean(np.abs(SLOPES))


@numba.njit
def log_factor(n, theta, slopes):
    return slopes[n] * theta[0] ** 3


def chains():
    """A cubic, of which the expansion at 0 leaves all; the law is so wide that its ratio is hardly felt."""
    model = JaxModel(
        lambda theta, rows, whole: rows * theta[0] ** 3,
        lambda theta, whole: 0.0,
        as_rows(SLOPES, None),
        (),
        np.zeros(1),
    )
    with in_double():
        law = Law(*map(jnp.asarray, (np.zeros(1), np.zeros(1), np.eye(1), np.zeros(1), np.zeros((1, 1)))))
        table = jax.tree.map(jnp.asarray, table_of(model, WEIGHTS))
    return Chains(model, penalties.reading_of(32.0), NORMAL, table, law)


def judged(made, ends):
    """Give chances to accept and rows read, of ANSWERS judgements side by side."""
    shape = ANSWERS // BLOCK, 1
    found = made.judged(random.key(1), *(np.broadcast_to(end, shape) for end in ends))
    return np.exp(np.minimum(found.log_chance, 0.0)).ravel(), found.rows.ravel()


def compiled(ends):
    """The same by the compiled test: answers, and rows read."""
    likelihood = replace(gr.likelihood(log_factor, (SLOPES,), SIZE), rows=Rows(SIZE, weights=WEIGHTS))
    ratio = 0.5 * (ends[1] ** 2 - ends[0] ** 2)  # of the densities of the law
    found = gr.Penalty().answer_each(
        Asked(Question.ACCEPT),
        likelihood(np.array(ends)[:, None]),
        np.tile([0.0, ratio], (ANSWERS, 1)),
        np.random.default_rng(2),
    )
    return found.arms == 1, found.evaluations / 2


@pytest.fixture(scope="module")
def made():
    return chains()


# Moves that need more and more rows, after a longer and longer pilot.
MOVES = [(0.9, -0.5), (0.6, -1.1), (-1.6, -1.1)]


@pytest.mark.parametrize("ends", MOVES)
def test_the_same_law_as_the_compiled_test(made, ends):
    """Oracle: `Penalty` as it is compiled. Two comparisons by 4 standard errors: once in 8,000 seeds."""
    for ours, theirs in zip(judged(made, ends), compiled(ends), strict=True):
        error = np.sqrt((ours.var() + theirs.var()) / ANSWERS)
        assert abs(ours.mean() - theirs.mean()) < 4.0 * error


def test_of_some_moves_there_is_no_doubt(made):
    """The exact log ratios are +20 and -13: one is always accepted, the other never."""
    chances, rows = judged(made, (0.0, 2.6 * np.resize([1.0, -1.0], (ANSWERS // BLOCK, 1))))
    assert chances.reshape(-1, 2, BLOCK)[:, 0].min() > 0.99
    assert chances.reshape(-1, 2, BLOCK)[:, 1].max() < 0.01
    assert rows.mean() < 0.2 * SIZE


def test_the_comparison_notices_a_missing_penalty(monkeypatch):
    """Negative control: without the penalty far more is accepted."""
    monkeypatch.setattr(penalties, "penalty", lambda variance, count: 0.0)
    ours, theirs = judged(chains(), MOVES[1])[0], compiled(MOVES[1])[0]
    assert ours.mean() - theirs.mean() > 4.0 * np.sqrt((ours.var() + theirs.var()) / ANSWERS)


def test_where_few_rows_would_take_as_long_all_are_read(made):
    """Oracle: the exact log ratio, whatever rows are picked."""
    few = replace(made.model, rows=made.model.rows[:100])
    with in_double():
        table = jax.tree.map(jnp.asarray, table_of(few, WEIGHTS[:100]))
    found = Chains(few, made.rule, NORMAL, table, made.law).judged(
        random.key(3), np.zeros((1, 1)), np.full((1, 1), -1.0)
    )
    np.testing.assert_allclose(found.log_chance, 0.5 - SLOPES[:100].sum(), rtol=1e-10)
    assert (found.rows == 100).all()
