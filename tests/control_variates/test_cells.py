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


def test_tied_quantiles_leave_cells_for_the_other_values():
    """Nine rows of ten are zero: 45 of 50 quantiles are tied, and the other rows still get cells."""
    y = np.where(seeded().random(5000) < 0.9, 0.0, seeded(1).normal(size=5000))[:, None]
    cells = quantile_cells(y, np.array([50]))
    assert 40 <= len(cells.references) <= 50
    assert np.abs(cells.deviations).mean() < 0.1 * np.abs(y).mean()
    few = quantile_cells(np.round(y), np.array([50]))  # every value has a cell
    np.testing.assert_array_equal(few.deviations, 0.0)


def test_medians_are_not_pulled_by_outliers():
    y = np.array([[1.0], [2.0], [3.0], [10.0], [20.0], [1e9]])
    cells = quantile_cells(y, np.array([2]))
    np.testing.assert_array_equal(cells.around_medians().references, [[2.0], [20.0]])


def test_many_axes_do_not_overflow():
    y = make(200, axes=30)
    cells = quantile_cells(y, np.full(30, 10))
    assert len(cells.references) == 200
    np.testing.assert_allclose(cells.deviations, 0.0, atol=1e-12)
