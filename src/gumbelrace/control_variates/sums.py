"""Sums over rows of the terms of an expansion, found from derivatives along directions."""

import functools
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Sums(NamedTuple):
    """Sums over rows.

    Attributes
    ----------
    value, gradient, hessian : float, ndarray of shape (d,), ndarray of shape (d, d)
        Of the terms; the Hessian is zero at first order.
    outer : ndarray of shape (d, d)
        Of gg', g the gradient of a row.
    largest : float
        The largest size of a row's terms.
    """

    value: float
    gradient: Floats
    hessian: Floats
    outer: Floats
    largest: float


def sums_of(terms: Any, data: tuple[Any, ...], centre: Floats, rows: NDArray[np.int64], order: int) -> Sums:
    """Sum values, gradients and Hessians, found from derivatives along the axes and between them."""
    d = len(centre)
    axes = np.eye(d)
    first, second = np.triu_indices(d, 1)
    directions = np.concatenate([axes, axes[first] + axes[second]]) if order == 2 else axes
    value, slopes, curvatures, outer, largest = _directional_sums(terms)(rows, centre, directions, data)
    if order == 1:
        return Sums(value, slopes, np.zeros((d, d)), outer, largest)
    hessian = np.diag(curvatures[:d])
    between = 0.5 * (curvatures[d:] - curvatures[first] - curvatures[second])
    hessian[first, second] = hessian[second, first] = between
    return Sums(value, slopes[:d], hessian, outer, largest)


@functools.lru_cache(maxsize=256)
def _directional_sums(terms: Any) -> Any:
    @numba.njit(nogil=True)
    def sums(rows, centre, directions, data):  # type: ignore[no-untyped-def]
        total, largest, k, d = 0.0, 0.0, len(directions), len(centre)
        slopes, curvatures, own, outer = np.zeros(k), np.zeros(k), np.zeros(k), np.zeros((d, d))
        for n in rows:
            size = 0.0
            for i in range(k):
                value, slope, curvature = terms(n, centre, directions[i], *data)
                slopes[i] += slope
                own[i] = slope
                curvatures[i] += curvature
                size += abs(slope) + abs(curvature)
            total += value
            largest = max(largest, abs(value) + size)
            for i in range(d):
                for j in range(d):
                    outer[i, j] += own[i] * own[j]
        return total, slopes, curvatures, outer, largest

    return sums
