"""Parameters of which no row tells, under priors with tails that are heavier than those of any proposal."""

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


@pytest.mark.parametrize(("freedom", "column"), [(1.0, absent), (2.0, absent), (3.0, rare)])
def test_tails_that_no_proposal_has_are_said(freedom, column):
    fit = fitted(freedom, column)
    assert fit.forecast.heavy == ("theta[3]",)
    with pytest.warns(PoorFit, match=r"the rows tell little of theta\[3\], and the prior has heavier"):
        fit.sample(50, chains=1, rng=0, progress=False)


@pytest.mark.parametrize(("freedom", "column"), [(30.0, absent), (1.0, np.asarray)])
def test_other_tails_are_left_alone(freedom, column):
    """Light tails, or rows that tell: draws of it are right, by the quantiles of its law."""
    fit = fitted(freedom, column)
    assert fit.forecast.heavy == ()
    with warnings.catch_warnings():
        warnings.simplefilter("error", PoorFit)
        drawn = fit.sample(5_000, rng=1, progress=False)["position"][:, :, 3]
    if column is absent:
        # Independent draws would be off by more than 4.5 standard errors with a chance of 7e-6 each; the
        # chains have a third as many effective draws, or more.
        for chance in (0.01, 0.1, 0.9, 0.99):
            below = np.mean(drawn < stats.t.ppf(chance, freedom))
            assert abs(below - chance) < 4.5 * np.sqrt(3.0 * chance * (1.0 - chance) / drawn.size)


@pytest.mark.parametrize("seed", range(3))
def test_the_warning_is_of_draws_that_are_wrong(seed, monkeypatch):
    """Too few are far out, or too many, by more than 4.5 standard errors as above.

    That is so of draws of all parameters at once, whose tails are one law's; blocks have bent ones.
    """
    monkeypatch.setattr("gumbelrace.laplace.posterior.faster_blocks", lambda *given: None)
    fit, far = fitted(2.0, absent), 12.0
    chance = 2.0 * stats.t.sf(far, 2.0)
    with pytest.warns(PoorFit):
        drawn = fit.sample(10_000, rng=seed, progress=False)["position"][:, :, 3]
    assert abs(np.mean(np.abs(drawn) > far) - chance) > 4.5 * np.sqrt(3.0 * chance / drawn.size)


def test_the_share_far_out_is_that_of_the_law():
    """Oracle: Student's t law with 2 degrees of freedom, whose normal law has variance 2 / 3."""
    at = DISTANCES * np.sqrt(2.0 / 3.0)
    heights = stats.t.logpdf(at, 2.0) - stats.t.logpdf(0.0, 2.0)
    right = 2.0 * stats.t.sf(at[0], 2.0)
    assert right < share_far_out(np.stack([heights, heights])) < 2.0 * right
