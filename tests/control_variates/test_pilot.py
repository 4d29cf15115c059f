"""Rows that carry the residuals of an expansion are found when it meets its log factors."""

import warnings

import numba
import numpy as np
import pytest
from tests.common import seeded
from tests.control_variates import cases
from tests.control_variates.cases import SIZE, assert_same_sums, raced
from tests.control_variates.test_data import derivatives, log_factor, rewards_of

import gumbelrace as gr
from gumbelrace.control_variates.pilot import laplace_factor, rows_at
from gumbelrace.errors import BlindPilot, InvalidArgument, UnevenResiduals
from gumbelrace.models import logistic

STEPS = 40_000


def exact_mean(rare):
    """Mean of the slope, on a grid: rows are of four kinds."""
    x, y, mode, _ = rare
    a, b = mode[0] + np.linspace(-0.1, 0.1, 201)[:, None], np.linspace(-2.0, 25.0, 4001)
    log_posterior = sum(
        np.sum((x[:, 1] == d) & (y == label)) * (label * (a + d * b) - np.logaddexp(0.0, a + d * b))
        for d in (0.0, 1.0)
        for label in (0.0, 1.0)
    )
    weights = np.exp(log_posterior - log_posterior.max()).sum(axis=0)
    return weights @ b / weights.sum()


def z_of_chain(rare, likelihood):
    """How many standard errors (of 50 batch means) a chain's mean of the slope is off."""
    scale = np.linalg.cholesky(np.linalg.inv(-rare[3]))
    kernel = gr.Metropolis(likelihood, gr.kernels.RandomWalk(1.4 * scale), method=gr.Race(delta=0.001))
    block = kernel.steps(np.random.default_rng(0), gr.kernels.Position(rare[2]), STEPS)
    means = block.states.position[:, 1].reshape(50, -1).mean(axis=1)
    return (means.mean() - exact_mean(rare)) / (means.std(ddof=1) / np.sqrt(50))


def test_a_chain_sees_rare_rows(rare):
    """Oracle: a grid. t with 49 degrees of freedom exceeds 4.25 with probability 1e-4."""
    likelihood = raced(rare)
    np.testing.assert_array_equal(likelihood.control.rows.head, np.flatnonzero(rare[0][:, 1]))
    assert abs(z_of_chain(rare, likelihood)) < 4.25
    # Negative control: without a pilot the chain has Laplace's law.
    assert abs(z_of_chain(rare, raced(rare, outliers=0.0))) > 10.0


@pytest.mark.parametrize("options", [{"order": 1}, {"outliers": 0.002}, {"spread": [0.02, 1.0]}])
def test_the_rare_rows_are_found_in_other_ways(rare, options):
    rows = raced(rare, **options).control.rows.head
    assert np.isin(np.flatnonzero(rare[0][:, 1]), rows).all()


def test_sums_are_those_of_the_rewards(rare):
    x, y, mode, _ = rare
    points = mode + np.array([[0.0, 0.0], [0.01, 1.0], [-0.02, -2.0]])
    s = x @ points.T
    assert_same_sums(raced(rare)(points), y[:, None] * s - np.logaddexp(0.0, s))


def test_a_range_is_that_of_the_rows_left(rare):
    bounds = logistic.remainder(rare[0], np.eye(2))
    likelihood = raced(rare, remainder=bounds)
    assert likelihood.control.remainder == bounds[likelihood.control.rows.tail].max()
    assert likelihood.control.remainder < bounds.max()


def test_ordinary_data_need_no_rows(rare):
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(SIZE, 2)), (rng.random(SIZE) < 0.5).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert raced((x, y, *logistic.mode(x, y))).control.rows.head.size == 0


def test_too_many_heavy_rows_are_said(rare):
    """At one of the rare rows only, most of what matters is missed; the warning names the caller."""
    with pytest.warns(UnevenResiduals, match="Betting") as caught:
        raced(rare, outliers=1.0 / SIZE)
    assert caught[0].filename == cases.__file__


def test_an_expansion_of_something_else_is_refused(rare):
    x, y, mode, _ = rare
    other = gr.parameter_taylor(logistic.terms, (x, 1.0 - y), SIZE, mode)
    with pytest.raises(InvalidArgument, match="makes it worse"):
        gr.likelihood(logistic.log_factor, (x, y), SIZE).minus(other)


@numba.njit
def of_rate(n, theta, y):
    if theta[0] <= 0.0:
        raise ValueError("no such rate")
    return np.log(theta[0]) - theta[0] * y[n]


@numba.njit
def terms_of_rate(n, centre, direction, y):
    t = direction[0] / centre[0]
    return np.log(centre[0]) - centre[0] * y[n], t - direction[0] * y[n], -t * t


def test_points_without_a_log_factor_are_left_out():
    """Four exponential variables: some pilots have a negative rate."""
    y = seeded().exponential(size=4)
    plain, centre = gr.likelihood(of_rate, (y,), 4), [1.0 / y.mean()]
    plain.minus(gr.parameter_taylor(terms_of_rate, (y,), 4, centre))
    with pytest.raises(InvalidArgument, match="spread="):
        plain.minus(gr.parameter_taylor(terms_of_rate, (y,), 4, centre, spread=[[1e300]]))


def test_without_a_positive_hessian_gradients_tell_how_far_to_go():
    outer = np.array([[4.0, 0.0], [0.0, 0.0]])
    factor = laplace_factor(np.diag([1.0, -1.0]), outer)
    np.testing.assert_allclose(factor @ factor.T, [[0.25, 0.0], [0.0, 0.0]])
    hessian = -np.array([[2.0, 1.0], [1.0, 2.0]])
    factor = laplace_factor(hessian, outer)
    np.testing.assert_allclose(factor @ factor.T, np.linalg.inv(-hessian))
    assert not laplace_factor(np.zeros((2, 2)), np.zeros((2, 2))).any()


# ---- Expansions in the data ----


@pytest.fixture(scope="module")
def heavy_tailed():
    y = seeded(1).standard_t(2, size=(SIZE, 1))
    return y, np.median(y) + np.array([[-2.0], [-1.0], [0.0], [1.0], [2.0]]) / np.sqrt(SIZE)


def audited(heavy_tailed, **options):
    y, points = heavy_tailed
    found = gr.data_taylor(y, derivatives, bins=50, **options)
    population = gr.likelihood(log_factor, (y,), SIZE).minus(found)(points)
    assert_same_sums(population, rewards_of(y, points))
    return gr.audit(population, gr.Race(delta=0.05), draws=300, rng=seeded(2))


def test_outliers_are_chosen_by_their_residuals(heavy_tailed):
    """t(2) data, 50 cells. Claim: errors ≤ δ = 0.05; 31 of 300 have a binomial tail of 1e-4."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = audited(heavy_tailed)
    assert report.errors < 31
    assert report.fraction < 0.05
    with pytest.warns(UnevenResiduals):  # negative control
        assert audited(heavy_tailed, outliers=0.0).errors >= 31


def test_points_choose_once(heavy_tailed):
    y, points = heavy_tailed
    once = gr.data_taylor(y, derivatives, bins=50, points=points)
    anew = gr.data_taylor(y, derivatives, bins=50).at(points)
    np.testing.assert_array_equal(once.rows.head, anew.rows.head)
    np.testing.assert_array_equal(once.at(points[:2]).rows.head, anew.rows.head)


def test_one_reference_for_heavy_tails_is_refused(heavy_tailed):
    y, points = heavy_tailed
    with pytest.raises(InvalidArgument, match="makes it worse"):
        gr.data_taylor(y, derivatives, outliers=0.0).at(points)


# ---- Pilots that see nothing ----


@pytest.mark.parametrize("points", [[[0.0]], [[0.3], [0.3], [0.3]]])
def test_points_that_do_not_differ_are_refused(points):
    with pytest.raises(InvalidArgument, match="at least two different points"):
        gr.data_taylor(seeded().standard_t(2, (400, 1)), derivatives, bins=20, points=points)


def test_points_that_hardly_differ_are_warned_of():
    y = seeded().standard_t(2, (400, 1))
    with pytest.warns(BlindPilot, match="hardly differ"):
        gr.data_taylor(y, derivatives, bins=20, points=[[0.0], [1e-9]])


def test_binding_equal_points_is_no_check():
    """A chain may propose where it stands; the check is then left to the next points."""
    found = gr.data_taylor(np.r_[np.zeros(400), 1e3][:, None], derivatives, bins=1, outliers=0.0)
    found.at([[0.3], [0.3], [0.3]])
    with pytest.raises(InvalidArgument, match="makes it worse"):
        found.at([[-1.0], [1.0]])


@pytest.mark.parametrize("spread", [0, -1.0, [1.0, 0.0], np.zeros((2, 2))])
def test_a_spread_that_is_not_positive_is_refused(rare, spread):
    with pytest.raises(InvalidArgument, match="must be positive"):
        raced(rare, spread=spread)


def test_a_spread_that_moves_nothing_is_warned_of(rare):
    with pytest.warns(BlindPilot, match="give a spread as large"):
        raced(rare, spread=1e-9)


def test_a_pilot_beside_declared_rows_looks_at_the_rows_themselves():
    """With the rows that can be -inf left out, those behind them were taken for others."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2000, 2)), rng.integers(0, 2, 2000).astype(float)
    declared = gr.likelihood(logistic.log_factor, (x, y), 2000, impossible=np.arange(900))
    taylor, point = gr.parameter_taylor(logistic.terms, (x, y), 2000, np.zeros(2)), np.array([0.3, -0.2])
    ((found, _),) = rows_at(declared, taylor, point[None])
    np.testing.assert_allclose(found, [logistic.log_factor(n, point, x, y) for n in range(2000)])
