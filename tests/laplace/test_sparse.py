"""Hessians from few products with directions, and Newton's steps with them. Oracle: dense algebra."""

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from gumbelrace.laplace.bowl import FLAT, bowl_of
from gumbelrace.laplace.sparse import Hessians, coloured, pairs


def grouped(groups, shared):
    """Give a positive matrix: the effects of groups, and parameters that have to do with all of them."""
    rng = np.random.default_rng(0)
    matrix = np.diag(np.r_[rng.uniform(0.5, 2.0, groups), np.full(shared, 0.1 * groups)])
    between = 0.1 * rng.normal(size=(groups, shared))
    matrix[:groups, groups:], matrix[groups:, :groups] = between, between.T
    matrix[groups:, groups:] += 0.01
    return matrix


@given(st.integers(1, 30), st.integers(0, 4), st.floats(0.0, 0.5), st.integers(0, 9))
@settings(deadline=None, max_examples=50)
def test_any_matrix_is_found_from_its_products(d, dense_columns, density, seed):
    rng = np.random.default_rng(seed)
    matrix = np.where(rng.uniform(size=(d, d)) < density, rng.normal(size=(d, d)), 0.0)
    matrix[:dense_columns] = rng.normal(size=matrix[:dense_columns].shape)
    matrix = matrix + matrix.T
    found = coloured(scipy.sparse.csr_array((matrix != 0.0) | np.eye(d, dtype=bool)))
    assert found.size <= d
    np.testing.assert_allclose(found.hessian(found.directions @ matrix).toarray(), matrix, atol=1e-12)


def test_groups_share_a_direction():
    matrix = grouped(300, 4)
    assert coloured(scipy.sparse.csr_array(matrix != 0.0)).size == 5


def hessians_of(matrix, pattern_at):
    asked = []

    def products(theta, directions):
        asked.append(len(directions))
        return 0.5 * theta @ matrix @ theta, matrix @ theta, directions @ matrix

    return Hessians(products, pattern_at), asked


def test_a_hessian_takes_few_products():
    matrix = grouped(300, 4)
    hessians, asked = hessians_of(matrix, lambda theta, attempt: scipy.sparse.csr_array(matrix != 0.0))
    found = hessians.at(np.ones(304))
    np.testing.assert_allclose(found.hessian.toarray(), matrix, atol=1e-12)
    assert asked == [6]  # five directions, and one to check with


@pytest.mark.parametrize("seen", [0, 2])
def test_a_pattern_that_misses_something_is_noticed(seen):
    """Pairs are seen at a later attempt, or never: then every parameter gets its direction."""
    matrix = grouped(300, 4)
    matrix[5, 250] = matrix[250, 5] = 0.1
    right = scipy.sparse.csr_array(matrix != 0.0)
    wrong = scipy.sparse.csr_array(grouped(300, 4) != 0.0)
    hessians, asked = hessians_of(matrix, lambda theta, attempt: right if attempt == seen > 0 else wrong)
    found = hessians.at(np.ones(304)).hessian
    if seen == 0:
        assert asked[-1] == 304
    np.testing.assert_allclose(found if seen == 0 else found.toarray(), matrix, atol=1e-12)


def test_pairs_are_those_that_share_a_row():
    found = pairs(np.array([0, 2, 3, 3]), np.array([0, 2, 1]), 4).toarray()
    np.testing.assert_array_equal(np.argwhere(found), [[0, 0], [0, 2], [1, 1], [2, 0], [2, 2]])


def test_newton_steps_of_sparse_and_dense_matrices_are_the_same():
    matrix, gradient = grouped(100, 3), np.random.default_rng(1).normal(size=103)
    dense, sparse = bowl_of(matrix), bowl_of(scipy.sparse.csr_array(matrix))
    for one, other in zip(dense.newton_step(gradient), sparse.newton_step(gradient), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8)
    assert dense.flattest()[0] > FLAT
    assert sparse.flattest()[0] > FLAT


def test_a_sparse_step_goes_uphill_where_the_curvature_is_wrong():
    matrix, gradient = grouped(100, 3), np.random.default_rng(1).normal(size=103)
    matrix[7, 7] = -5.0
    bowl = bowl_of(scipy.sparse.csr_array(matrix))
    step, _ = bowl.newton_step(gradient)
    assert step @ gradient > 0.0
    share, loadings = bowl.flattest()
    assert share < 0.0
    assert np.argmax(loadings) == 7


def test_a_flat_direction_of_a_sparse_matrix_is_found():
    """Two parameters of which only the sum is known."""
    matrix = grouped(100, 3)
    matrix[7], matrix[:, 7] = 0.0, 0.0
    matrix[[7, 7, 8, 8], [7, 8, 7, 8]] = 1.0
    matrix[8, 100:], matrix[100:, 8] = 0.0, 0.0
    matrix[7, 7] += 1e-13
    share, loadings = bowl_of(scipy.sparse.csr_array(matrix)).flattest()
    assert share < FLAT
    assert set(np.flatnonzero(loadings > 0.3 * loadings.max())) == {7, 8}
