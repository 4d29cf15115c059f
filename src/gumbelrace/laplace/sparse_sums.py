"""Sums of the derivatives of rows each of which depends on few of many parameters.

Which those are is found once, by halves: a row that has no derivative along a random direction of some
parameters depends on none of them. At every point a random direction of all parameters tells of each row
whether it was right.
"""

import functools
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numba
import numpy as np
import scipy  # its parts load when first used

from gumbelrace.control_variates.expansion import of_one_combination
from gumbelrace.core.jit import kernel
from gumbelrace.laplace.model import Floats, Indices, Quadratic
from gumbelrace.laplace.sparse import MANY

# Rows are tried beside a point, where derivatives may happen to be zero: some of them first. If these
# depend on more than that share of the parameters, or all together on so many pairs, nothing is saved.
BESIDE, TRIED, FEW, MOST_PAIRS, SEED = 0.1, 64, 0.1, 5e7, 0
# A row's slope along a direction is that of the parameters it depends on, but for rounding.
EQUAL = 1e-9
PARTS = 16


class Touched(NamedTuple):
    """The parameters that rows depend on, and where the pairs of them are in the Hessian."""

    rows: Indices
    starts: Indices  # row n depends on parameters[starts[n] : starts[n + 1]]
    parameters: Indices
    first: Indices  # the place of the first pair of each row; those of a row are (0, 0), (1, 0), (1, 1) ...
    places: Indices


class SparseSums:
    """Σ log f_n at any point, with a sparse Hessian."""

    def __init__(self, terms: Any, data: tuple[Any, ...], rows: Indices) -> None:
        self._terms, self._data, self._rows = terms, data, rows
        self._parts: list[Touched] = []
        self._pairs = np.zeros(0, np.int64)
        self._known = False

    def at(self, theta: Floats) -> Quadratic | None:
        """Give value, gradient and Hessian; None if it is not sparse."""
        if len(theta) <= MANY:
            return None
        if not self._known:
            self._learn(theta)
        found = self._sums(theta)
        if found is None and self._parts:  # at another point rows depend on others
            self._learn(theta)
            found = self._sums(theta)
        return found

    def _learn(self, theta: Floats) -> None:
        self._known, self._parts, d = True, [], len(theta)
        rng = np.random.default_rng(SEED)
        points = theta + BESIDE * rng.standard_normal(d), rng.standard_normal(d)
        some = rng.choice(self._rows, min(TRIED, len(self._rows)), replace=False)
        if len(self._touched(some, points)[1]) > FEW * d * len(some):
            return
        rows = np.array_split(self._rows, PARTS)
        with ThreadPoolExecutor() as pool:
            found = list(pool.map(lambda part: self._touched(part, points), rows))
        counts = [np.diff(starts) for starts, _ in found]
        if sum(int(np.sum(count * (count + 1))) for count in counts) > 2.0 * MOST_PAIRS:
            return
        keys = [keys_of(starts, parameters, d) for starts, parameters in found]
        self._pairs = np.unique(np.concatenate([np.unique(key) for key in keys]))
        self._parts = [
            Touched(part, *both, firsts(count), np.searchsorted(self._pairs, key))
            for part, both, count, key in zip(rows, found, counts, keys, strict=True)
        ]

    def _touched(self, rows: Indices, points: tuple[Floats, Floats]) -> tuple[Indices, Indices]:
        found: tuple[Indices, Indices] = by_halves(self._terms)(rows, *points, self._data)
        return found

    def _sums(self, theta: Floats) -> Quadratic | None:
        if not self._parts:
            return None
        d, way = len(theta), np.random.default_rng(SEED + 1).standard_normal(len(theta))
        total = summed_derivatives(self._terms)
        with ThreadPoolExecutor() as pool:
            parts = list(
                pool.map(lambda part: total(part, theta, way, len(self._pairs), self._data), self._parts)
            )
        value, missed, gradient, values = (sum(part) for part in zip(*parts, strict=True))
        if missed > 0:
            return None
        i, j = np.divmod(self._pairs, d)
        lower = scipy.sparse.csr_array((values, (i, j)), shape=(d, d))
        return Quadratic(float(value), gradient, lower + scipy.sparse.tril(lower, -1).T)


def firsts(counts: Indices) -> Indices:
    """Give where the pairs of each row begin."""
    return np.concatenate([[0], np.cumsum(counts * (counts + 1) // 2)]).astype(np.int64)


@kernel
def keys_of(starts: Indices, parameters: Indices, d: int) -> Indices:
    """Give a number for each pair of each row."""
    total = 0
    for n in range(len(starts) - 1):
        count = starts[n + 1] - starts[n]
        total += count * (count + 1) // 2
    keys, k = np.empty(total, np.int64), 0
    for n in range(len(starts) - 1):
        for a in range(starts[n], starts[n + 1]):
            for b in range(starts[n], a + 1):
                keys[k] = parameters[a] * d + parameters[b]
                k += 1
    return keys


@functools.lru_cache(maxsize=64)
def by_halves(terms: Any) -> Any:
    """Compile the search for the parameters that rows depend on, in ascending order."""

    @numba.njit(nogil=True)
    def touched(rows, point, way, data):  # type: ignore[no-untyped-def]
        d, count = len(point), 0
        direction, starts = np.zeros(d), np.zeros(len(rows) + 1, np.int64)
        found, stack = np.empty(4 * len(rows) + d, np.int64), np.empty((2 * d + 2, 2), np.int64)
        for k in range(len(rows)):
            if count + d > len(found):
                longer = np.empty(2 * len(found), np.int64)
                longer[:count] = found[:count]
                found = longer
            stack[0, 0], stack[0, 1], height = 0, d, 1
            while height > 0:
                height -= 1
                first, last = stack[height]
                direction[first:last] = way[first:last]
                _, slope, curvature = terms(rows[k], point, direction, *data)
                direction[first:last] = 0.0
                if slope == 0.0 and curvature == 0.0:
                    continue
                if last - first == 1:
                    found[count] = first
                    count += 1
                    continue
                middle = (first + last) // 2
                stack[height, 0], stack[height, 1] = middle, last
                stack[height + 1, 0], stack[height + 1, 1] = first, middle
                height += 2
            starts[k + 1] = count
        return starts, found[:count]

    return touched


@functools.lru_cache(maxsize=64)
def summed_derivatives(terms: Any) -> Any:
    """Compile sums over rows: value, how many rows depend on more than was found, gradient, Hessian."""

    @numba.njit(nogil=True)
    def total(touched, theta, way, pairs, data):  # type: ignore[no-untyped-def]
        value, missed, d = 0.0, 0, len(theta)
        gradient, hessian = np.zeros(d), np.zeros(pairs)
        axis, slopes, curvatures = np.zeros(d), np.zeros(d), np.zeros(d)
        for k in range(len(touched.rows)):
            n, place = touched.rows[k], touched.first[k]
            active = touched.parameters[touched.starts[k] : touched.starts[k + 1]]
            height, slope, curvature = terms(n, theta, way, *data)
            value += height
            along, size = 0.0, 0.0
            for i in active:
                axis[i] = 1.0
                _, slopes[i], curvatures[i] = terms(n, theta, axis, *data)
                axis[i] = 0.0
                gradient[i] += slopes[i]
                along += slopes[i] * way[i]
                size += abs(slopes[i] * way[i])
            missed += not abs(slope - along) <= EQUAL * size
            scale = of_one_combination(slopes, curvatures, active, slope, curvature)
            for a in range(len(active)):
                i = active[a]
                for b in range(a + 1):
                    j = active[b]
                    if i == j:
                        between = curvatures[i]
                    elif not np.isnan(scale):
                        between = scale * slopes[i] * slopes[j]
                    else:
                        axis[i] = axis[j] = 1.0
                        _, _, both = terms(n, theta, axis, *data)
                        axis[i] = axis[j] = 0.0
                        between = 0.5 * (both - curvatures[i] - curvatures[j])
                    hessian[touched.places[place]] += between
                    place += 1
        return value, missed, gradient, hessian

    return total
