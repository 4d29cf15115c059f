"""Rows that a first look would miss are found; residuals that are worse than the rewards are refused."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.common import seeded

from gumbelrace.control_variates.pilot import EVEN, FIRST, MOST, SMALL, check_residuals, heavy_rows
from gumbelrace.errors import InvalidArgument, UnevenResiduals


def tame(squares):
    """Oracle: the two conditions, as they are written."""
    size, second = len(squares), squares.sum()
    small = max(size - FIRST, 0) * second / FIRST <= SMALL**2 * (1.0 + 1e-9)
    return small or size * np.square(squares).sum() <= EVEN * second**2 * (1.0 + 1e-9)


@given(st.integers(1, 300), st.floats(-6.0, 2.0), st.floats(0.0, 8.0), st.integers(0, 2**32 - 1))
def test_the_fewest_rows_are_chosen(size, log_scale, tail, seed):
    squares = 10.0**log_scale * np.exp(tail * seeded(seed).normal(size=size))
    rows = heavy_rows(squares)
    assert (np.diff(rows) > 0).all()
    rest = np.delete(squares, rows)
    assert len(rest) > 0
    assert len(rows) == 0 or rest.max() <= squares[rows].min()
    assert tame(rest) or len(rows) == min(int(MOST * size), size - 1)
    if len(rows):
        assert not tame(np.sort(squares)[: size - len(rows) + 1] * (1.0 + 1e-8))


def test_a_share_is_kept_to():
    squares = np.array([0.0, 3.0, 1.0, 2.0])
    assert heavy_rows(squares, 0.5).tolist() == [1, 3]
    assert heavy_rows(squares, 0.0).tolist() == []


def test_what_is_small_or_even_or_read_whole_is_left_alone():
    assert len(heavy_rows(np.zeros(1000))) == 0
    assert len(heavy_rows(np.ones(1000))) == 0
    assert len(heavy_rows(np.array([1e9, *np.zeros(40)]))) == 0


def test_residuals_are_judged():
    even, uneven = np.ones(1000), np.array([*np.full(5, 1.0), *np.zeros(995)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_residuals(even, plain=2000.0)
        check_residuals(1e-12 * uneven, plain=0.0)  # too small to matter, though worse
    with pytest.warns(UnevenResiduals, match="outliers") as caught:
        check_residuals(uneven, plain=2000.0)
    assert caught[0].filename == __file__
    with pytest.raises(InvalidArgument, match="2 times as much"):
        check_residuals(even, plain=500.0)
