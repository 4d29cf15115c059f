"""Log factors of many rows at once give the chain that those of single rows give."""

import numba
import numpy as np
import pytest
from tests.common import seeded

import gumbelrace as gr
from gumbelrace.core.rows import Rows
from gumbelrace.errors import ShapeMismatch
from gumbelrace.laplace.batched import BatchedLikelihood
from gumbelrace.laplace.model import Quadratic
from gumbelrace.models import logistic

terms, log_factor = logistic.terms, logistic.log_factor


@numba.njit
def residuals(rows, arm, centre, steps, x, y):
    found = np.empty(len(rows))
    for i in range(len(rows)):
        value, slope, curvature = terms(rows[i], centre, steps[arm], x, y)
        there = log_factor(rows[i], centre + steps[arm], x, y)
        found[i] = there - value - slope - 0.5 * curvature
    return found


@pytest.fixture(scope="module")
def likelihoods():
    rng = seeded()
    x = rng.normal(size=(4000, 2))
    y = (rng.uniform(size=len(x)) < 1 / (1 + np.exp(-x.sum(axis=1)))).astype(float)
    fit = gr.posterior(log_factor, terms, (x, y), len(x), start=[0.0, 0.0])
    single = fit.kernel.likelihood
    expansion = single.control
    sums = Quadratic(expansion.value, expansion.gradient, expansion.hessian)
    rows = Rows(len(x), weights=expansion.rows.weights)
    return fit, BatchedLikelihood(residuals, (x, y), rows, expansion.centre, sums)


def test_the_chain_is_the_same(likelihoods):
    fit, batched = likelihoods
    method = gr.Penalty()
    kernels = [
        gr.Metropolis(likelihood, fit.kernel.proposal, method=method)
        for likelihood in (fit.kernel.likelihood, batched)
    ]
    assert kernels[1].is_compiled
    single, many = (kernel.steps(seeded(1), kernel.start(fit.mode), 300) for kernel in kernels)
    np.testing.assert_allclose(many.states.position, single.states.position, rtol=1e-9)
    np.testing.assert_array_equal(many.info.evaluations, single.info.evaluations)


def test_populations_have_the_same_sums(likelihoods):
    fit, batched = likelihoods
    points = fit.mode + 0.05 * seeded(2).normal(size=(3, 2))
    found, exact = (
        [gr.sample(likelihood(points), size=50, method=gr.Exact(), rng=3).arms]
        for likelihood in (batched, fit.kernel.likelihood)
    )
    np.testing.assert_array_equal(found, exact)


def test_points_of_another_shape_are_refused(likelihoods):
    with pytest.raises(ShapeMismatch, match=r"it must be \(D, 2\)"):
        likelihoods[1](np.zeros((2, 3)))
