"""Penalty: the law of a chain whose log ratios are estimated, and what it cannot be asked."""

import math

import numba
import numpy as np
import pytest
from scipy.special import ndtr
from tests.kernels.laws import FALSE_ALARM, Cauchy, invariance
from tests.methods.residuals import rare_dummy

import gumbelrace as gr
from gumbelrace.core.rows import Rows
from gumbelrace.errors import InvalidArgument
from gumbelrace.methods.base import Asked
from gumbelrace.methods.penalty import PILOT_ROWS
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
    found, error = second_moment(gr.Penalty(), seed)
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
        for method in (gr.Penalty(), gr.Race(delta=1e-3))
    ]
    assert read[0] < 0.7 * read[1]


def test_compiled_and_single_answers_agree_with_the_exact_probability():
    """All rows read: accepted with min(1, exp(gap)), within 4 standard errors."""
    rewards = np.zeros((10, 2))
    offsets = np.tile([0.0, -0.5], (20_000, 1))
    found = gr.Penalty(first=10).answer_each(
        Asked(Question.ACCEPT), gr.table(rewards), offsets, np.random.default_rng(4)
    )
    chance = np.exp(-0.5)
    assert abs(found.arms.mean() - chance) < 4.0 * np.sqrt(chance * (1 - chance) / 20_000)
    assert found.exhausted.all()


@pytest.mark.parametrize(
    "ask",
    [
        lambda: gr.best(gr.table(np.eye(5)), method=gr.Penalty(), rng=np.random.default_rng(0)),
        lambda: gr.Penalty().best(gr.table(np.eye(5)), None, np.random.default_rng(0)),
        lambda: gr.sample(gr.table(np.eye(5)), method=gr.Penalty(), rng=np.random.default_rng(0)),
    ],
    ids=["best", "method.best", "sample"],
)
def test_it_finds_no_winner(ask):
    with pytest.raises((InvalidArgument, TypeError), match=r"only a decision on a move|unexpected keyword"):
        ask()


@pytest.mark.parametrize(
    "arguments", [{"first": 2}, {"most_variance": 0.0}, {"most_variance": "1"}, {"error": 0.0}]
)
def test_bad_arguments(arguments):
    with pytest.raises(InvalidArgument):
        gr.Penalty(**arguments)


def cells(law, states):
    """Give how often each of 8 cells of equal probability was visited, and four standard errors."""
    visited = np.minimum((law.cdf(states) * 8.0).astype(int), 7)
    blocks = np.stack([np.bincount(part, minlength=8) / len(part) for part in visited.reshape(40, -1)])
    return blocks.mean(axis=0), 4.0 * blocks.std(axis=0, ddof=1) / np.sqrt(40)


def walked(method, by_weights=True, steps=100_000):
    regression = rare_dummy()
    start = gr.kernels.Position(regression.mode)
    block = regression.kernel(method, by_weights).steps(np.random.default_rng(5), start, steps)
    shares, margin = cells(regression.law, block.states.position[:, 1])
    return np.abs(shares - 0.125) < margin, block.info


def test_rows_by_weights_see_the_few_that_matter():
    """Oracle: quadrature. Eight cells, four standard errors: a false alarm once in 2,000 seeds."""
    right, info = walked(gr.Penalty())
    assert right.all()
    assert info.evaluations.mean() < 0.003 * info.rewards.mean()
    assert 0.0 < info.law_error.mean() < 1e-3


def test_uniform_rows_do_not():
    """Negative control: they are as blind as a race."""
    assert not walked(gr.Penalty(), by_weights=False, steps=20_000)[0].all()


def moves(values, method, weights=None, count=20_000, gap=-0.5):
    """Accept moves between two arms whose rewards differ by `values`; their sums differ by `gap`."""
    population = gr.compiled(reward, (values,), len(values), 2)
    population.rows = Rows(len(values), weights=weights)
    offsets = np.tile([0.0, gap - values.sum()], (count, 1))
    return method.answer_each(Asked(Question.ACCEPT), population, offsets, np.random.default_rng(6))


@numba.njit
def reward(n, arm, values):
    return values[n] if arm == 1 else 0.0


@pytest.mark.parametrize("by_weights", [True, False])
def test_the_chance_to_accept_is_that_of_normal_errors(by_weights):
    """Oracle: Φ((Λ - v/2) / √v) + exp(Λ) Φ(-(Λ + v/2) / √v), v of the estimate; four standard errors."""
    rng = np.random.default_rng(7)
    values = 0.004 * rng.normal(size=4000)
    weights = 1.0 + rng.random(4000)
    method = gr.Penalty(first=500, error=math.inf, most_variance=4.0)
    found = moves(values, method, weights if by_weights else None)
    if by_weights:
        means = values * weights.sum() / weights
        variance = (weights / weights.sum()) @ (means - values.sum()) ** 2 / 500
    else:
        variance = values.var() * 4000**2 * (1 / 500 - 1 / (4000 - PILOT_ROWS))
    root = np.sqrt(variance)
    chance = ndtr((-0.5 - variance / 2) / root) + np.exp(-0.5) * ndtr((0.5 - variance / 2) / root)
    assert 0.1 < variance < 1.0
    assert abs(found.arms.mean() - chance) < 4.0 * np.sqrt(chance * (1.0 - chance) / 20_000)
    assert (found.evaluations == 2 * (500 + PILOT_ROWS)).all()


def test_rows_that_are_all_the_same_prove_nothing_of_the_others():
    """One row in 400 has what there is: pilots that see nothing go on."""
    values = np.zeros(2000)
    values[::400] = 1.0
    found = moves(values, gr.Penalty(), count=200)
    assert (found.evaluations > 2 * (32 + PILOT_ROWS)).all()


def imbalance(method, seed=6, count=40_000):
    """Accept skewed moves and their way back; give what detailed balance says is 0, and standard errors."""
    values = np.random.default_rng(10).lognormal(0.0, 1.0, 20_000)
    values *= np.sqrt(16) / (values.std() * 20_000)  # the sum estimated from 16 rows has a variance of 1
    there, back = (
        moves(way, method, count=count, gap=gap).arms.mean()
        for way, gap in ((values, -1.5), (-values, 1.5))
    )
    off = there - np.exp(-1.5) * back
    return off, np.sqrt((there * (1.0 - there) + np.exp(-3.0) * back * (1.0 - back)) / count)


def test_where_rows_are_skewed_more_are_read():
    """Detailed balance within the error asked for and four standard errors, once in 10,000 seeds."""
    off, error = imbalance(gr.Penalty(first=16, most_variance=4.0))
    assert abs(off) < 1e-3 + 4.0 * error


def test_without_the_guard_the_law_is_off():
    """Negative control of the test above."""
    off, error = imbalance(gr.Penalty(first=16, most_variance=4.0, error=math.inf))
    assert abs(off) > 1e-3 + 4.0 * error


def test_by_weights_all_rows_are_read_if_that_takes_no_longer():
    values = np.random.default_rng(8).normal(size=300)
    found = moves(values, gr.Penalty(), np.ones(300), count=20_000)
    assert found.exhausted.all()
    assert (found.law_error == 0.0).all()
    chance = np.exp(-0.5)
    assert abs(found.arms.mean() - chance) < 4.0 * np.sqrt(chance * (1.0 - chance) / 20_000)


def test_langevin_leaves_the_target_invariant():
    """Oracle: quadrature; a false alarm once in 10,000 seeds."""
    model = Cauchy(400, seed=1)
    kernel = gr.Langevin(
        model.likelihood,
        model.gradient,
        size=400,
        batch=80,
        scale=0.1,
        log_prior=model.log_prior,
        prior_gradient=model.prior_gradient,
        method=gr.Penalty(),
    )
    rng = np.random.default_rng(9)
    assert invariance(kernel, model.target, rng, 600, 2, state=gr.kernels.LangevinState) > FALSE_ALARM


def test_what_was_seen_of_the_law_is_in_the_trace():
    regression = rare_dummy()
    trace = gr.run(
        regression.kernel(gr.Penalty()),
        gr.kernels.Position(regression.mode),
        steps=200,
        thin=2,
        rng=1,
        progress=False,
    )
    assert 0.0 < trace.law_error == trace.info.law_error.mean() < 1e-2
    assert "law of decisions off by about" in repr(trace)


def test_kernels_that_need_a_winner_or_a_draw_refuse_it_at_once():
    likelihood = gr.likelihood(log_factor, (np.zeros(5),), 5)
    with pytest.raises(InvalidArgument, match="this needs the best arm"):
        gr.Slice(likelihood, 0.1, method=gr.Penalty())
    with pytest.raises(InvalidArgument, match="this needs a draw"):
        gr.Gibbs(lambda labels, variable: (np.zeros((5, 2)), None), 2, method=gr.Penalty())


def test_independent_arms_are_refused():
    arms = gr.independent(lambda index, arm: np.zeros(len(index)), [5, 5])
    with pytest.raises(InvalidArgument, match="share"):
        gr.Penalty().answer(Asked(Question.ACCEPT), arms, np.zeros(2), np.random.default_rng(0))


def test_where_any_row_may_be_impossible_everything_is_read():
    y = np.arange(400.0)
    likelihood = gr.likelihood(truncated, (y,), 400, reward_range=(-np.inf, 0.0))
    kernel = gr.Metropolis(likelihood, gr.kernels.RandomWalk(0.5), method=gr.Penalty())
    trace = gr.run(kernel, kernel.start([-1.0]), steps=200, rng=1, progress=False)
    assert trace["position"].max() <= 0.0
    assert trace.fraction == 1.0


@numba.njit
def truncated(n, theta, y):
    return 0.0 if theta[0] <= y[n] else -np.inf
