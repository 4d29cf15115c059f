"""Rewards of many rows at once are those of one row at a time."""

import numba
import numpy as np
import pytest
from tests.common import seeded

import gumbelrace as gr
from gumbelrace.core.rows import Rows
from gumbelrace.errors import FactorFailed
from gumbelrace.population.batched import Batched

Y, CENTERS = seeded().normal(0.3, 1.0, 5000), np.array([0.0, 0.29, 0.6])


@numba.njit
def one_row(n, arm, y, centers):
    return -0.5 * (y[n] - centers[arm]) ** 2


@numba.njit
def many_rows(rows, arm, y, centers):
    return -0.5 * (y[rows] - centers[arm]) ** 2


@numba.njit
def too_few(rows, arm, y, centers):
    if len(rows) > 1:
        raise ValueError("no")
    return y[rows]


def batched(function=many_rows):
    return Batched(function, (Y, CENTERS), Rows(len(Y)), 3)


@pytest.mark.parametrize("method", [gr.Race(), gr.Exact()])
def test_draws_are_those_of_single_rows(method):
    single = gr.compiled(one_row, (Y, CENTERS), len(Y), 3)
    found, wanted = (gr.sample(p, size=20, method=method, rng=1) for p in (batched(), single))
    np.testing.assert_array_equal(found.arms, wanted.arms)
    np.testing.assert_array_equal(found.evaluations, wanted.evaluations)


def test_rows_are_read_as_they_come():
    rows = np.array([4999, 0, 0, 7])
    exact = -0.5 * (Y[rows, None] - CENTERS) ** 2
    np.testing.assert_allclose(batched().rewards_at(rows), exact, rtol=1e-14)


def test_more_rows_than_are_read_at_once():
    exact = -0.5 * (Y[:, None] - CENTERS) ** 2
    np.testing.assert_allclose(batched().rewards_at(np.arange(len(Y))), exact, rtol=1e-14)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # numba prints it
def test_a_function_that_fails(capfd):
    with pytest.raises(FactorFailed, match="could not be computed"):
        batched(too_few).rewards_at(np.arange(5))


def test_an_audit_reads_the_same_rewards():
    assert not gr.audit(batched(), gr.Race(), draws=200, rng=2).broken
