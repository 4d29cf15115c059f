"""Derivatives of functions of which nothing but values is known, by differences.

Where parameters are many, most pairs of them do not depend on each other. Which do is found by halves: if
the mixed difference of a parameter and a random step of many others is none, it depends on none of them.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np
import scipy  # its parts load when first used

from gumbelrace.laplace.model import Floats, Indices, Quadratic
from gumbelrace.laplace.sparse import MANY

# Differences are over that share of a parameter's size, or of 1.
STEP = 1e-4
# Second differences below so many times their rounding are none.
ROUNDED = 32.0
# Which pairs depend on each other is seen beside a point, where derivatives may happen to be zero.
BESIDE, SEED = 0.1, 0
# A pattern with more pairs than that share of all is none, and one at which a random direction is curved by
# that share more or less than it says is not the right one.
WORTHWHILE, EQUAL = 0.25, 1e-3

Function = Callable[[Floats], float]


class Differences:
    """Derivatives of a smooth function at any point."""

    def __init__(self, function: Function) -> None:
        self._function, self._pairs = function, np.zeros((0, 2), np.int64)
        self._known = False

    def at(self, theta: Floats) -> Quadratic:
        """Give value, gradient and Hessian, which is sparse if there are many parameters and few pairs."""
        if len(theta) > MANY and not self._known:
            self._pairs, self._known = coupled_pairs(self._function, theta), True
        if len(theta) > MANY and len(self._pairs) < 0.5 * WORTHWHILE * len(theta) ** 2:
            found = of_pairs(self._function, theta, self._pairs)
            if fits(self._function, theta, found):
                return found
        return by_differences(self._function, theta)


def coupled_pairs(function: Function, theta: Floats) -> Indices:
    """Give the pairs (i, j) with j < i that a function couples, of shape (pairs, 2)."""
    rng = np.random.default_rng(SEED)
    point = theta + BESIDE * rng.standard_normal(len(theta))
    steps = sizes_of(point) * rng.choice([-1.0, 1.0], len(theta))
    both = _symmetric(function, point, steps)
    found = [(i, j) for i in range(len(theta)) for j in _partners(both, i, 0, i)]
    return np.array(found, np.int64).reshape(-1, 2)


def _symmetric(function: Function, point: Floats, steps: Floats) -> Callable[..., tuple[float, float]]:
    """Give the second difference along the steps of some parameters, and its size for rounding."""
    value = float(function(point))

    @functools.cache
    def both(*ranges: tuple[int, int]) -> tuple[float, float]:
        ahead, behind = point.copy(), point.copy()
        for first, last in ranges:
            ahead[first:last] += steps[first:last]
            behind[first:last] -= steps[first:last]
        one, other = float(function(ahead)), float(function(behind))
        return one + other - 2.0 * value, max(abs(one), abs(other), abs(value))

    return both


def _partners(both: Any, i: int, first: int, last: int) -> Iterator[int]:
    """Give those of a range that a parameter depends on, by halves."""
    if first == last:
        return
    own, others, together = both((i, i + 1)), both((first, last)), both((first, last), (i, i + 1))
    noise = ROUNDED * np.finfo(np.float64).eps * max(own[1], others[1], together[1])
    # What is no number tells nothing: all of these may depend on it.
    if abs(together[0] - own[0] - others[0]) <= noise:
        return
    if last - first == 1:
        yield first
        return
    middle = (first + last) // 2
    yield from _partners(both, i, first, middle)
    yield from _partners(both, i, middle, last)


def of_pairs(function: Function, theta: Floats, pairs: Indices) -> Quadratic:
    """Give derivatives by differences, the second ones of some pairs only."""
    d, steps, value = len(theta), sizes_of(theta), float(function(theta))
    axes = [_beside(function, theta, steps, [i]) for i in range(d)]
    ahead, behind = np.array(axes).T
    curved = ahead + behind - 2.0 * value
    mixed = np.array([sum(_beside(function, theta, steps, pair)) for pair in pairs.tolist()])
    i, j = pairs.T
    mixed = 0.5 * (mixed - 2.0 * value - curved[i] - curved[j]) / (steps[i] * steps[j])
    values = np.concatenate([curved / steps**2, mixed, mixed])
    every = np.arange(d)
    where = np.concatenate([every, i, j]), np.concatenate([every, j, i])
    hessian = scipy.sparse.csr_array((values, where), shape=(d, d))
    return Quadratic(value, (ahead - behind) / (2.0 * steps), hessian)


def _beside(function: Function, theta: Floats, steps: Floats, where: list[int]) -> tuple[float, float]:
    ahead, behind = theta.copy(), theta.copy()
    ahead[where] += steps[where]
    behind[where] -= steps[where]
    return float(function(ahead)), float(function(behind))


def fits(function: Function, theta: Floats, found: Quadratic) -> bool:
    """Whether a Hessian tells how a function is curved along a random direction."""
    way = np.random.default_rng(SEED + 1).choice([-1.0, 1.0], len(theta)) * sizes_of(theta)
    every = list(range(len(theta)))
    one, other = _beside(function, theta, way, every)
    noise = ROUNDED * np.finfo(np.float64).eps * (abs(one) + abs(other) + abs(found.value))
    off = abs(one + other - 2.0 * found.value - way @ (found.hessian @ way))
    size = np.abs(way) @ (abs(found.hessian) @ np.abs(way))
    return bool(off <= EQUAL * size + noise * len(theta))


def sizes_of(theta: Floats) -> Floats:
    """Give the steps of differences."""
    return STEP * np.maximum(np.abs(theta), 1.0)


def by_differences(function: Callable[[Floats], float], theta: Floats) -> Quadratic:
    """Find the derivatives of a smooth function by central differences; quickly, if it is compiled."""
    steps = sizes_of(theta)
    found = _compiled_differences() if hasattr(function, "py_func") else _differences
    gradient, hessian, largest = found(function, theta, steps)
    # What rounding alone would give is zero: most parameters do not depend on each other.
    noise = ROUNDED * np.finfo(np.float64).eps * largest / (steps[:, None] * steps)
    return Quadratic(float(function(theta)), gradient, np.where(np.abs(hessian) > noise, hessian, 0.0))


@functools.cache
def _compiled_differences() -> Any:
    return numba.njit(_differences)


def _differences(function, theta, steps):  # type: ignore[no-untyped-def]
    """Give gradient, Hessian, and the largest value met."""
    d, x, value = len(theta), theta.copy(), function(theta)
    ahead, behind, hessian = np.empty(d), np.empty(d), np.empty((d, d))
    for i in range(d):
        x[i] = theta[i] + steps[i]
        ahead[i] = function(x)
        x[i] = theta[i] - steps[i]
        behind[i] = function(x)
        x[i] = theta[i]
        hessian[i, i] = (ahead[i] + behind[i] - 2.0 * value) / steps[i] ** 2
    for i in range(d):
        for j in range(i):
            x[i], x[j] = theta[i] + steps[i], theta[j] + steps[j]
            both = function(x)
            x[i], x[j] = theta[i] - steps[i], theta[j] - steps[j]
            both += function(x)
            x[i], x[j] = theta[i], theta[j]
            mixed = both - ahead[i] - behind[i] - ahead[j] - behind[j] + 2.0 * value
            hessian[i, j] = hessian[j, i] = 0.5 * mixed / (steps[i] * steps[j])
    largest = max(np.abs(ahead).max(), np.abs(behind).max(), abs(value))
    return (ahead - behind) / (2.0 * steps), hessian, largest
