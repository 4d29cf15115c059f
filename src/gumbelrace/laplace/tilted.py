"""Expansions that fit rows on average over Laplace's law, not only at the mode.

What a second-order expansion leaves of a row is mostly a cube, and the cube of a normal number goes along
with the number: t³ is nearer to 3t than to 0. So the slope of each row is made steeper or flatter by a
share of its own, which a regression of the residuals on the slopes at some points of the law gives:

    h_n(θ) = l_n + (1 + a_n) g_n·t + ½ t'H_n t.

Less is left of the rows then, and what is left has lighter tails. The sum of the h_n is largest close to
the mean of the posterior instead of its mode: there the law is put that proposes. Whatever the a_n are,
the sum is exact: they can make chains slow, and never wrong.
"""

import functools
from typing import Any

import numba
import numpy as np


@functools.lru_cache(maxsize=64)
def steepened(terms: Any) -> Any:
    """Compile terms whose slopes are multiplied by a number of each row, the first item of their data."""

    @numba.njit
    def of_row(n, centre, direction, factors, *data):  # type: ignore[no-untyped-def]
        value, slope, curvature = terms(n, centre, direction, *data)
        return value, factors[n] * slope, curvature

    return of_row


@functools.lru_cache(maxsize=64)
def beside_factors(log_factor: Any) -> Any:
    """Compile the same log factor of data that begin with those numbers."""

    @numba.njit
    def of_row(n, theta, factors, *data):  # type: ignore[no-untyped-def]
        return log_factor(n, theta, *data)

    return of_row


@functools.lru_cache(maxsize=64)
def regressed(log_factor: Any, terms: Any) -> Any:
    """Compile the regression of the residuals of rows on their slopes, along some steps."""

    @numba.njit(nogil=True)
    def shares(rows, centre, steps, data):  # type: ignore[no-untyped-def]
        found = np.zeros(len(rows))
        points = centre + steps
        for i in range(len(rows)):
            together, squares = 0.0, 0.0
            for k in range(len(steps)):
                value, slope, curvature = terms(rows[i], centre, steps[k], *data)
                left = log_factor(rows[i], points[k], *data) - value - slope - 0.5 * curvature
                together += left * slope
                squares += slope * slope
            share = together / squares if squares > 0.0 else 0.0
            found[i] = share if np.isfinite(share) else 0.0
        return found

    return shares
