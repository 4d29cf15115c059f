"""Rows of ARCH models: which they are, and that no lag leaves its segment."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.models.arch.cases import seeded

from gumbelrace.errors import InvalidArgument, InvalidGenerator
from gumbelrace.models.arch import lagged, simulate
from gumbelrace.models.arch.data import ALPHA, NU
from gumbelrace.models.returns import standardised


def by_hand(returns, lengths, lags):
    """Give (r_t², r²_{t-1}, ..., r²_{t-lags}) of every row, in order of time."""
    rows, start = [], 0
    for length in lengths:
        segment = returns[start : start + length]
        rows += [[segment[t - i] ** 2 for i in range(lags + 1)] for t in range(lags, length)]
        start += length
    return np.array(rows)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=6), st.integers(1, 5), st.integers(0, 99))
def test_lags_stay_in_their_segments(lengths, lags, seed):
    labels = np.repeat(np.arange(len(lengths)), lengths)
    assume(len(labels) > 1)
    returns = standardised(seeded(seed).normal(size=len(labels)), labels)
    expected = by_hand(returns.values, lengths, lags)
    if len(expected) < lags + 2:
        with pytest.raises(InvalidArgument, match=f"{len(expected)} rows have {lags} lags"):
            lagged(returns, lags)
        return
    data = lagged(returns, lags)
    assert data.size == len(expected)
    assert data.short == sum(length <= lags for length in lengths)
    found = data.squares[data.where[:, None] + np.arange(lags + 1)]
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    np.testing.assert_allclose(data.returns**2, expected[:, 0], rtol=1e-14)


def test_the_design_has_a_column_of_ones_and_one_for_each_lag():
    returns = standardised(seeded().normal(size=40))
    data, expected = lagged(returns, 6), by_hand(returns.values, [40], 6)
    for order in (1, 6):
        design = data.design(order)
        np.testing.assert_array_equal(design[:, 0], 1.0)
        np.testing.assert_allclose(design[:, 1:], expected[:, 1 : order + 1], rtol=1e-14)
    np.testing.assert_allclose(data.design(6, np.array([4, 2]))[:, 1:], expected[[4, 2], 1:], rtol=1e-14)
    np.testing.assert_array_equal(data.squares, returns.values[::-1] ** 2)  # the design was a copy


def test_all_orders_have_the_rows_of_the_largest():
    returns = standardised(seeded().normal(size=100))
    np.testing.assert_array_equal(lagged(returns, 30).returns, lagged(returns, 5).returns[25:])


def test_simulated_returns_follow_the_recursion():
    """Oracle: r_t / σ_t, computed here, are the draws of Student's t."""
    alpha, nu = np.array([0.3, 0.2, 0.1]), 5.0
    returns = simulate(300, seeded(3), alpha, nu, burn_in=50)
    z = seeded(3).standard_t(nu, 350)
    s = alpha[0] + alpha[1] * returns[1:-1] ** 2 + alpha[2] * returns[:-2] ** 2
    np.testing.assert_allclose(returns[2:] / np.sqrt(s), z[52:], rtol=1e-12)


def test_simulated_returns_have_their_variance():
    """Variance α_0 k / (1 - k Σα) with k = ν / (ν - 2); seed 4; 20 batch means, fails at 5 standard errors.

    Negative control: the variance without the factor k, that of unit-variance innovations.
    """
    squares = simulate(400_000, seeded(4), nu=8.0) ** 2
    k, total = 8.0 / 6.0, sum(ALPHA[1:])
    batches = squares.reshape(20, -1).mean(axis=1)
    error = batches.std(ddof=1) / np.sqrt(20)
    assert abs(batches.mean() - ALPHA[0] * k / (1 - k * total)) < 5 * error
    assert abs(batches.mean() - ALPHA[0] / (1 - total)) > 5 * error


def test_what_cannot_be_simulated_is_explained():
    for alpha in ([0.1], [0.0, 0.2], [0.1, -0.2], [[0.1, 0.2]]):
        with pytest.raises(InvalidArgument, match="alpha is"):
            simulate(10, seeded(), alpha)
    for alpha, nu in (([0.1, 0.7], NU), ([0.1, 0.2], 2.0)):
        with pytest.raises(InvalidArgument, match="no variance"):
            simulate(10, seeded(), alpha, nu)
    with pytest.raises(InvalidArgument, match="size"):
        simulate(0, seeded())
    with pytest.raises(InvalidGenerator):
        simulate(10, 0.5)
    assert (simulate(10, 3) == simulate(10, seeded(3))).all()
    with pytest.raises(InvalidArgument, match="lags"):
        lagged(standardised(seeded().normal(size=40)), 0)
