"""Parameters of which no row tells, or one, with tails that are heavier than those of any proposal."""

import warnings
from functools import cache

import numba
import numpy as np
import pytest
from scipy import stats
from tests.laplace.cases import simulated

import gumbelrace as gr
from gumbelrace.errors import PoorFit
from gumbelrace.laplace.heavy_tails import DISTANCES, share_far_out
from gumbelrace.models import logistic


def student(freedom):
    """Give the log density of Student's t law as a prior of the last parameter; others are N(0, 10²)."""

    @numba.njit
    def log_prior(theta):
        last = theta[len(theta) - 1]
        total = -0.5 * (freedom + 1.0) * np.log1p(last * last / freedom)
        for i in range(len(theta) - 1):
            total -= 0.005 * theta[i] * theta[i]
        return total

    return log_prior


@cache  # what closes over a prior is compiled for each
def fitted(freedom, column):
    x, y = simulated(2_000, 4)
    x[:, 3] = column(x[:, 3])
    given = logistic.log_factor, logistic.terms, (x, y), len(x)
    return gr.posterior(*given, start=np.zeros(4), log_prior=student(freedom), progress=False)


def absent(column):
    return 0.0 * column


def rare(column):
    """Give a column that two rows have, of opposite labels or not: they hardly tell."""
    return np.where(np.arange(len(column)) < 2, 0.2, 0.0)


@pytest.mark.parametrize(("freedom", "column"), [(1.0, absent), (1.0, rare)])
def test_tails_that_no_proposal_has_are_said(freedom, column):
    fit = fitted(freedom, column)
    assert fit.forecast.heavy == ("theta[3]",)
    with pytest.warns(PoorFit, match=r"few rows or none tell of theta\[3\], and they or the prior"):
        fit.sample(50, chains=1, rng=0, progress=False)


@pytest.mark.parametrize(
    ("freedom", "column"),
    [(30.0, absent), (5.0, absent), (4.0, absent), (2.0, absent), (3.0, rare), (1.0, np.asarray)],
)
def test_other_tails_are_left_alone(freedom, column):
    """Light tails, tails that the laws of blocks reach, or rows that tell: quantiles of draws are right."""
    fit = fitted(freedom, column)
    assert fit.forecast.heavy == ()
    with warnings.catch_warnings():
        warnings.simplefilter("error", PoorFit)
        drawn = fit.sample(5_000, rng=1, progress=False)["position"][:, :, 3]
    if column is absent:
        # Independent draws would be off by more than 4.5 standard errors with a chance of 7e-6 each; the
        # chains have a third as many effective draws, or more.
        for chance in (0.003, 0.01, 0.1, 0.9, 0.99, 0.997):
            below = np.mean(drawn < stats.t.ppf(chance, freedom))
            assert abs(below - chance) < 4.5 * np.sqrt(3.0 * chance * (1.0 - chance) / drawn.size)


def fitted_to_table(folder, freedom, column):
    """Fit the same rows on disk, where all parameters are drawn at once, by one law."""
    x, y = simulated(2_000, 4)
    x[:, 3] = column(x[:, 3])
    np.save(folder / "rows.npy", np.column_stack([x, y]))
    return gr.posterior(
        logistic.log_factor,
        logistic.terms,
        (list("0123"), "4"),
        table=gr.Passes(gr.open_table(folder / "rows.npy"), rng=0),
        start=np.zeros(4),
        log_prior=student(freedom),
        progress=False,
    )


@pytest.mark.parametrize(
    ("freedom", "column", "heavy"),
    [(2.0, absent, True), (3.0, rare, True), (30.0, absent, False), (1.0, np.asarray, False)],
)
def test_of_tables_it_is_said_as_well(tmp_path, freedom, column, heavy):
    fit = fitted_to_table(tmp_path, freedom, column)
    assert fit.forecast.heavy == ("theta[3]",) * heavy
    if heavy:
        with pytest.warns(PoorFit, match=r"few rows or none tell of theta\[3\]"):
            fit.sample(50, chains=1, rng=0, progress=False)


@pytest.mark.parametrize("seed", range(3))
def test_the_warning_is_of_draws_that_are_wrong(tmp_path, seed):
    """Too few are far out, or too many, by more than 4.5 standard errors as above."""
    fit, far = fitted_to_table(tmp_path, 2.0, absent), 12.0
    chance = 2.0 * stats.t.sf(far, 2.0)
    with pytest.warns(PoorFit):
        drawn = fit.sample(10_000, rng=seed, progress=False)["position"][:, :, 3]
    assert abs(np.mean(np.abs(drawn) > far) - chance) > 4.5 * np.sqrt(3.0 * chance / drawn.size)


@numba.njit
def cauchy_like(n, theta, freedom, y):
    """Give Student's log density of a row; the first has an effect of its own."""
    off = y[n] - theta[0] - (theta[1] if n == 0 else 0.0)
    return -0.5 * (freedom + 1.0) * np.log1p(off * off / freedom)


@numba.njit
def cauchy_like_terms(n, centre, direction, freedom, y):
    own = 1.0 if n == 0 else 0.0
    off, way = y[n] - centre[0] - own * centre[1], -direction[0] - own * direction[1]
    spread, weight = freedom + off * off, freedom + 1.0
    slope, curvature = -weight * off / spread, -weight * (freedom - off * off) / spread**2
    return -0.5 * weight * np.log1p(off * off / freedom), slope * way, curvature * way * way


@numba.njit
def wide(theta):
    return -0.5 * (theta[0] ** 2 + theta[1] ** 2) / 900.0


def fitted_to_single_row(freedom):
    y = np.random.default_rng(0).standard_t(4.0, 2_000)
    given = cauchy_like, cauchy_like_terms, (freedom, y), len(y)
    return y, gr.posterior(*given, start=np.zeros(2), log_prior=wide, progress=False)


def quantiles_of_single_row(freedom, y):
    """Give those of theta[1], by quadrature."""
    a, b = np.linspace(-0.3, 0.3, 61), np.linspace(-250.0, 250.0, 100_001)
    heights = np.array([stats.t.logpdf(y[1:] - one, freedom).sum() for one in a])
    density = np.zeros_like(b)
    for one, height in zip(a, heights - heights.max(), strict=True):
        density += np.exp(height + stats.t.logpdf(y[0] - one - b, freedom) - (one**2 + b**2) / 1800.0)
    below = np.cumsum(density) / density.sum()
    return b[np.searchsorted(below, CHANCES)]


CHANCES = np.array([0.003, 0.01, 0.1, 0.9, 0.99, 0.997])


def off_by(freedom):
    """Give by how many standard errors, as above, shares of draws are off; the largest."""
    y, fit = fitted_to_single_row(freedom)
    assert fit.forecast.heavy == ()
    drawn = fit.sample(5_000, rng=1, progress=False)["position"][:, :, 1]
    shares = np.mean(drawn.ravel()[:, None] < quantiles_of_single_row(freedom, y), axis=0)
    return np.max(np.abs(shares - CHANCES) / np.sqrt(3.0 * CHANCES * (1.0 - CHANCES) / drawn.size))


@pytest.mark.parametrize("freedom", [2.0, 3.0, 5.0])
def test_tails_of_a_single_row_are_right(freedom):
    """A row that alone tells of a parameter has its own tails."""
    assert off_by(freedom) < 4.5


def test_one_law_would_not_reach_tails_of_a_single_row(monkeypatch):
    monkeypatch.setattr("gumbelrace.laplace.heavy_tails.SOME", 1.0)  # so that nobody looks for others
    assert off_by(2.0) > 4.5


def test_cauchy_s_tails_of_a_single_row_are_said():
    """Laws of blocks come close, and draws far out are still too few."""
    assert fitted_to_single_row(1.0)[1].forecast.heavy == ("theta[1]",)


def test_the_share_far_out_is_that_of_the_law():
    """Oracle: Student's t law with 2 degrees of freedom, whose normal law has variance 2 / 3."""
    at = DISTANCES * np.sqrt(2.0 / 3.0)
    heights = stats.t.logpdf(at, 2.0) - stats.t.logpdf(0.0, 2.0)
    right = 2.0 * stats.t.sf(at[0], 2.0)
    assert right < share_far_out(np.stack([heights, heights])) < 2.0 * right
