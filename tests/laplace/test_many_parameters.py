"""Models of many parameters, on few of which each row depends. Oracle: dense derivatives."""

import numba
import numpy as np
import pytest
import scipy
from tests.laplace.cases import Groups, group_terms, log_prior

import gumbelrace as gr
from gumbelrace.control_variates.expansion import sums_of
from gumbelrace.errors import InvalidArgument
from gumbelrace.laplace.compiled import CompiledModel
from gumbelrace.laplace.differences import Differences, by_differences, coupled_pairs
from gumbelrace.laplace.mode import find_mode
from gumbelrace.laplace.sparse_sums import SparseSums

GROUPS = 80


@pytest.fixture(scope="module")
def case():
    return Groups(4_000, GROUPS, 0.3)


@pytest.fixture
def point():
    return 0.1 * np.random.default_rng(1).normal(size=1 + GROUPS)


def test_sums_of_rows_that_depend_on_few_parameters(case, point):
    data, rows = case.given[2], np.arange(case.given[3])
    found = SparseSums(group_terms, data, rows).at(point)
    right = sums_of(group_terms, data, point, rows, 2)
    assert found.hessian.nnz == 1 + 3 * GROUPS
    np.testing.assert_allclose(found.value, right.value)
    np.testing.assert_allclose(found.gradient, right.gradient, rtol=1e-9)
    np.testing.assert_allclose(found.hessian.toarray(), right.hessian, rtol=1e-9, atol=1e-9)


@numba.njit
def switching_terms(n, centre, direction, group, y):
    """A row depends on its group's parameter, and where the first one is above 1, on that as well."""
    also = 1.0 if centre[0] > 1.0 else 0.0
    s = centre[1 + group[n]] + also * (centre[0] - 1.0) ** 2
    slope = direction[1 + group[n]] + also * 2.0 * (centre[0] - 1.0) * direction[0]
    curved = also * 2.0 * direction[0] ** 2
    return (
        y[n] * s - np.exp(s),
        (y[n] - np.exp(s)) * slope,
        (y[n] - np.exp(s)) * curved - np.exp(s) * slope**2,
    )


def test_rows_that_depend_on_more_elsewhere_are_noticed(case, point):
    """At a point where they do not, nothing tells of it; at the other it is looked for anew."""
    data, rows = case.given[2][1:], np.arange(case.given[3])
    sums = SparseSums(switching_terms, data, rows)
    assert sums.at(point - 2.0).hessian[[0]].nnz == 0
    there = point + np.eye(1 + GROUPS)[0] * 2.0
    right = sums_of(switching_terms, data, there, rows, 2)
    np.testing.assert_allclose(sums.at(there).hessian.toarray(), right.hessian, rtol=1e-8, atol=1e-8)


@numba.njit
def scale_prior(theta):
    """Effects that are normal with an unknown scale: its logarithm is the first parameter."""
    total, precision = -0.5 * theta[0] ** 2, np.exp(-2.0 * theta[0])
    for i in range(1, len(theta)):
        total -= 0.5 * precision * theta[i] ** 2 + theta[0]
    return total


def test_pairs_that_a_prior_couples_are_found(point):
    pairs = coupled_pairs(scale_prior, np.zeros_like(point))
    np.testing.assert_array_equal(pairs, [(i, 0) for i in range(1, 1 + GROUPS)])
    sparse, dense = Differences(scale_prior).at(point), by_differences(scale_prior, point)
    np.testing.assert_allclose(sparse.hessian.toarray(), dense.hessian, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(sparse.gradient, dense.gradient, rtol=1e-7)


def test_a_prior_whose_pairs_change_is_noticed(point):
    """Negative control: with the pairs of another function a random direction is curved otherwise."""
    differences = Differences(log_prior)
    assert differences.at(point).hessian.nnz == 1 + GROUPS
    differences._function = scale_prior
    assert isinstance(differences.at(point).hessian, np.ndarray)


def test_too_many_parameters_are_refused(case):
    with pytest.raises(InvalidArgument, match=r"5,001 parameters \(theta\[0\], .* at most: integrate"):
        gr.posterior(*case.given, start=np.zeros(5_001), progress=False)


@pytest.fixture(scope="module")
def with_scale(case):
    names = ["scale", "slope", *(f"effect[{i}]" for i in range(GROUPS))]
    return CompiledModel(*shifted(case), hierarchical_prior, np.zeros(2 + GROUPS), names)


@numba.njit
def shifted_factor(n, theta, x, group, y):
    s = theta[1] * x[n] + theta[2 + group[n]]
    return y[n] * s - np.exp(s)


@numba.njit
def shifted_terms(n, centre, direction, x, group, y):
    s = centre[1] * x[n] + centre[2 + group[n]]
    t = direction[1] * x[n] + direction[2 + group[n]]
    return y[n] * s - np.exp(s), (y[n] - np.exp(s)) * t, -np.exp(s) * t * t


@numba.njit
def hierarchical_prior(theta):
    total, precision = -0.5 * theta[0] ** 2 - 0.5 * theta[1] ** 2, np.exp(-2.0 * theta[0])
    for i in range(2, len(theta)):
        total -= 0.5 * precision * theta[i] ** 2 + theta[0]
    return total


def shifted(case):
    return shifted_factor, shifted_terms, *case.given[2:]


def test_a_scale_of_effects_does_not_collapse(with_scale):
    """From effects of zero, where the density grows as their scale goes to zero. Oracle: SciPy."""
    mode = find_mode(with_scale)
    assert isinstance(mode.factors.hessian, np.ndarray)

    def minus(theta):
        whole = with_scale.prior(theta).plus(with_scale.factors(theta))
        return -whole.value, -whole.gradient

    found = scipy.optimize.minimize(minus, mode.theta + 0.02, jac=True, method="L-BFGS-B", tol=1e-12)
    np.testing.assert_allclose(mode.theta, found.x, atol=2e-3)
    assert -1.5 < mode.theta[0] < 0.0
