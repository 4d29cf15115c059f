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
from typing import Any, Protocol, Self

import numba
import numpy as np

from gumbelrace.laplace.mode import Mode
from gumbelrace.laplace.model import Floats, Model


class Steepened(Model, Protocol):
    """A model whose expansions can be made steeper, row by row."""

    def steepened(self, factors: Floats) -> Self:
        """Give the same model, the slope of each row's expansion multiplied by a number of its own."""

    def slope(self, theta: Floats) -> Floats:
        """Give the sum of the slopes of all rows' expansions."""


def tilted(model: Steepened, mode: Mode, steps: Floats) -> tuple[Steepened, Mode]:
    """Give the same model, its rows expanded so that they fit at `steps` around the mode on average.

    The mode comes with the sums of these expansions. Bounds are those of other residuals, and left out.
    """
    other = model.steepened(1.0 + shares_of(model, mode, steps))
    sums = mode.factors._replace(gradient=other.slope(mode.theta))
    return other, mode._replace(factors=sums)


def shares_of(model: Steepened, mode: Mode, steps: Floats) -> Floats:
    """Give the regression of the residuals of each row on its slopes, along some steps."""
    twice = model.steepened(np.full(model.size, 2.0))
    together, squares = np.zeros((2, model.size))
    for step in steps:
        left = model.residuals(mode.theta, step)
        slope = left - twice.residuals(mode.theta, step)
        together += left * slope
        squares += slope * slope
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = together / squares
    return np.where(np.isfinite(shares), shares, 0.0)


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
