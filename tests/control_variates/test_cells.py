"""Cells between quantiles, around the means of their rows."""

import numpy as np
from tests.common import seeded
from tests.control_variates.cases import FREEDOM

from gumbelrace.control_variates.cells import quantile_cells


def make(size, axes=2):
    return seeded().standard_t(FREEDOM, size=(size, axes))


def test_cells_hold_equally_many_rows():
    y = make(10_000)
    cells = quantile_cells(y, np.array([10, 5]))
    counts = np.bincount(cells.cell)
    assert len(cells.references) == len(counts) == 50
    assert counts.sum() == 10_000
    assert np.abs(counts - 200).max() < 75  # five standard deviations of a count
    for cell in (0, 17, 49):
        np.testing.assert_allclose(cells.references[cell], y[cells.cell == cell].mean(axis=0))


def test_ties_and_empty_cells_are_left_out():
    y = np.array([[0.0], [0.0], [0.0], [0.0], [1.0], [2.0]])
    cells = quantile_cells(y, np.array([6]))
    np.testing.assert_array_equal(np.unique(cells.cell), np.arange(len(cells.references)))
    assert len(cells.references) <= 3


def test_many_axes_do_not_overflow():
    y = make(200, axes=30)
    cells = quantile_cells(y, np.full(30, 10))
    assert len(cells.references) == 200
    np.testing.assert_allclose(cells.deviations, 0.0, atol=1e-12)
