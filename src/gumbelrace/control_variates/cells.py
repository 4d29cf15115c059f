"""Cells of a space of data: products of quantile intervals, and the moments of the rows in each."""

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Cells:
    """Rows in cells, each cell with the mean of its rows as a reference.

    Attributes
    ----------
    values : ndarray of shape (N, k)
        The rows.
    cell : ndarray of shape (N,)
        The cell of each row.
    references : ndarray of shape (B, k)
        Mean of the rows in each cell.
    """

    values: Floats
    cell: Indices
    references: Floats

    @functools.cached_property
    def deviations(self) -> Floats:
        """What is left of each row without its reference."""
        left: Floats = self.values - self.references[self.cell]
        return left

    def distances(self) -> Floats:
        """Give how far each row lies from its reference, every axis in its standard deviations."""
        spread = self.values.std(axis=0)
        distances: Floats = np.linalg.norm(self.deviations / np.where(spread > 0.0, spread, 1.0), axis=1)
        return distances

    def around_medians(self) -> "Cells":
        """Give the same cells around the medians of their rows, which outliers do not pull their way."""
        starts = np.cumsum(np.bincount(self.cell)) - np.bincount(self.cell)
        middle = starts + np.bincount(self.cell) // 2
        axes = [axis[np.lexsort((axis, self.cell))][middle] for axis in self.values.T]
        return Cells(self.values, self.cell, np.column_stack(axes))

    def only(self, rows: Indices) -> "Cells":
        """Give the cells of some of the rows, around the means of these; the others are put anywhere."""
        label = np.unique(self.cell[rows], return_inverse=True)[1]
        cell = np.zeros(len(self.values), np.int64)
        cell[rows] = label
        return Cells(self.values, cell, _means(self.values[rows], label))

    def moments(self, rows: Indices) -> Floats:
        """Sum 1, d and dd' over the given rows of each cell, d their deviations; of shape (B, 1 + k + k²).

        The first moments are zero but for rounding, which counts where the values are far from zero.
        """
        d = self.deviations[rows]
        products = (d[:, :, None] * d[:, None, :]).reshape(len(d), -1)
        return _totals(self.cell[rows], np.column_stack([np.ones(len(d)), d, products]))


def quantile_cells(values: Floats, bins: Indices) -> Cells:
    """Cut axis i into bins[i] intervals with equally many rows; empty cells are left out.

    Where quantiles are tied, the intervals that are left over cut the distinct values evenly.

    Examples
    --------
    >>> quantile_cells(np.array([[1.0], [2.0], [3.0], [9.0]]), np.array([2])).references
    array([[1.5],
           [6. ]])
    """
    label = np.zeros(len(values), np.int64)
    for axis, count in zip(values.T, bins, strict=True):
        label = label * count + _intervals(axis, count)
        # Numbered anew after each axis: with many of them the number of cells would overflow.
        label = np.unique(label, return_inverse=True)[1]
    return Cells(values, label, _means(values, label))


def _intervals(axis: Floats, count: int) -> Indices:
    """Give each row its interval between quantiles; cuts that ties leave over go to the distinct values."""
    cuts = np.unique(np.quantile(axis, np.arange(1, count) / count))
    spare = count - 1 - len(cuts)
    if spare > 0:
        distinct = np.unique(axis)
        cuts = np.union1d(cuts, distinct[np.arange(1, spare + 1) * len(distinct) // (spare + 1)])
    return np.searchsorted(cuts, axis, side="right")


def _means(values: Floats, label: Indices) -> Floats:
    return _totals(label, values) / np.bincount(label)[:, None]


def _totals(label: Indices, columns: Floats) -> Floats:
    return np.column_stack([np.bincount(label, column) for column in columns.T])
