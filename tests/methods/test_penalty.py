"""Penalty: the law of a chain whose log ratios are estimated, and what it cannot be asked."""

import numba
import numpy as np
import pytest

import gumbelrace as gr
from gumbelrace.errors import InvalidArgument
from gumbelrace.methods.base import Asked
from gumbelrace.methods.penalty import Penalty
from gumbelrace.methods.state import Question

SIZE = 2000


@numba.njit
def log_factor(n, theta, y):
    return -0.5 * (y[n] - theta[0]) ** 2


def second_moment(method, seed, steps=60_000):
    """Give the mean of z² over a chain whose law is N(mean(y), 1/N), and its standard error."""
    y = np.random.default_rng(0).normal(size=SIZE)
    kernel = gr.Metropolis(
        gr.likelihood(log_factor, (y,), SIZE), gr.kernels.RandomWalk(0.03), method=method
    )
    start = gr.kernels.Position(np.array([y.mean()]))
    states = kernel.steps(np.random.default_rng(seed), start, steps).states.position[:, 0]
    squares = ((states - y.mean()) * np.sqrt(SIZE)) ** 2
    blocks = squares.reshape(40, -1).mean(axis=1)
    return blocks.mean(), blocks.std(ddof=1) / np.sqrt(40)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_law_is_right(seed):
    """Four standard errors: a false alarm once in 16,000 seeds."""
    found, error = second_moment(Penalty(), seed)
    assert abs(found - 1.0) < 4.0 * error
    assert error < 0.05


def test_a_careless_race_is_noticed():
    """Negative control: a race that errs half of the time inflates the variance, and the test sees it."""
    found, error = second_moment(gr.Race(delta=0.5, first=32), 1)
    assert found - 1.0 > 4.0 * error


def test_less_is_read_than_by_a_race():
    y = np.random.default_rng(0).normal(size=50_000)
    likelihood = gr.likelihood(log_factor, (y,), 50_000)
    start = gr.kernels.Position(np.array([y.mean()]))
    read = [
        gr.Metropolis(likelihood, gr.kernels.RandomWalk(0.004), method=method)
        .steps(np.random.default_rng(3), start, 300)
        .info.evaluations.sum()
        for method in (Penalty(), gr.Race(delta=1e-3))
    ]
    assert read[0] < 0.7 * read[1]


def test_compiled_and_single_answers_agree_with_the_exact_probability():
    """All rows read: accepted with min(1, exp(gap)), within 4 standard errors."""
    rewards = np.zeros((10, 2))
    offsets = np.tile([0.0, -0.5], (20_000, 1))
    found = Penalty(first=10).answer_each(
        Asked(Question.ACCEPT), gr.table(rewards), offsets, np.random.default_rng(4)
    )
    chance = np.exp(-0.5)
    assert abs(found.arms.mean() - chance) < 4.0 * np.sqrt(chance * (1 - chance) / 20_000)
    assert found.exhausted.all()


@pytest.mark.parametrize(
    "ask",
    [
        lambda: gr.best(gr.table(np.eye(5)), method=Penalty(), rng=np.random.default_rng(0)),
        lambda: Penalty().best(gr.table(np.eye(5)), None, np.random.default_rng(0)),
        lambda: gr.sample(gr.table(np.eye(5)), method=Penalty(), rng=np.random.default_rng(0)),
    ],
    ids=["best", "method.best", "sample"],
)
def test_it_finds_no_winner(ask):
    with pytest.raises((InvalidArgument, TypeError), match=r"only a decision on a move|unexpected keyword"):
        ask()


@pytest.mark.parametrize("arguments", [{"first": 1}, {"most_variance": 0.0}, {"most_variance": "1"}])
def test_bad_arguments(arguments):
    with pytest.raises(InvalidArgument):
        Penalty(**arguments)


def test_its_decisions_are_not_checked_one_by_one():
    """They are right in law, and often not those of an exact decision with the same noise."""
    kernel = gr.Metropolis(
        gr.likelihood(log_factor, (np.zeros(500),), 500), gr.kernels.RandomWalk(0.1), method=Penalty()
    )
    trace = gr.run(kernel, kernel.start([0.0]), steps=200, rng=1, progress=False)
    assert trace.checked is None
    with pytest.raises(InvalidArgument, match="right in law"):
        trace.audit(rng=0)


def test_kernels_that_need_a_winner_or_a_draw_refuse_it_at_once():
    likelihood = gr.likelihood(log_factor, (np.zeros(5),), 5)
    with pytest.raises(InvalidArgument, match="this needs the best arm"):
        gr.Slice(likelihood, 0.1, method=Penalty())
    with pytest.raises(InvalidArgument, match="this needs a draw"):
        gr.Gibbs(lambda labels, variable: (np.zeros((5, 2)), None), 2, method=Penalty())


def test_independent_arms_are_refused():
    arms = gr.independent(lambda index, arm: np.zeros(len(index)), [5, 5])
    with pytest.raises(InvalidArgument, match="share"):
        Penalty().answer(Asked(Question.ACCEPT), arms, np.zeros(2), np.random.default_rng(0))


def test_where_any_row_may_be_impossible_everything_is_read():
    y = np.arange(400.0)
    likelihood = gr.likelihood(truncated, (y,), 400, reward_range=(-np.inf, 0.0))
    kernel = gr.Metropolis(likelihood, gr.kernels.RandomWalk(0.5), method=Penalty())
    trace = gr.run(kernel, kernel.start([-1.0]), steps=200, rng=1, progress=False)
    assert trace["position"].max() <= 0.0
    assert trace.fraction == 1.0


@numba.njit
def truncated(n, theta, y):
    return 0.0 if theta[0] <= y[n] else -np.inf
