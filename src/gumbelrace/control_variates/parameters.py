"""Taylor expansion of log f_n(θ) in θ around a fixed centre (Bardenet et al. 2015).

With t = θ - θ̂, gradients g_n and Hessians H_n at the centre θ̂, first or second order:

    h_n(θ) = l_n(θ̂) + g_n·t (+ ½ t'H_n t),    Σ_n h_n(θ) = L + G·t (+ ½ t'H t).

If |l_n(θ) - h_n(θ)| ≤ M_n ‖Wt‖^(order+1), the residuals have a known range, and `Betting` can decide
without reading a row when the range is small enough.
"""

import functools
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumbelrace.control_variates.outliers import farthest
from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.population.control import Always, ControlVariate

Floats = NDArray[np.float64]

# Residuals are differences of numbers of the size of log factors: their range allows for rounding.
ROUNDING = 1e-12


@dataclass(frozen=True)
class ParameterTaylor:
    """A control variate for every θ, expanded around one centre.

    Made by `parameter_taylor` from a function of directional derivatives, by `stored_taylor` from arrays of
    derivatives, or by `jax_taylor`.

    Attributes
    ----------
    centre : ndarray of shape (d,)
        The point θ̂ of expansion, usually the mode.
    terms : numba function
        ``terms(n, centre, direction, *data) -> (value, slope, curvature)``.
    data : tuple
        Arrays and numbers that it takes.
    value, gradient, hessian : float, ndarray, ndarray
        Their sums over the rows that are not always read (Hessian of zeros at first order).
    order : int
        1 or 2.
    remainder : float or None
        M, the largest M_n of the rows that are not always read.
    rounding : float
        Added to the range of the residuals.
    metric : ndarray of shape (d, d)
        W.
    always : Always or None
        Rows that are always read.
    """

    centre: Floats
    terms: Any
    data: tuple[Any, ...]
    value: float
    gradient: Floats
    hessian: Floats
    order: int
    remainder: float | None
    rounding: float
    metric: Floats
    always: Always | None

    def at(self, points: ArrayLike) -> ControlVariate:
        """Give the control variate whose arm i is points[i]."""
        steps = np.ascontiguousarray(np.asarray(points, np.float64) - self.centre)
        if steps.ndim != 2:
            raise ShapeMismatch(f"points must have shape (D, {len(self.centre)})")
        curved = 0.5 * np.einsum("ai,ij,aj->a", steps, self.hessian, steps)
        sums = self.value + steps @ self.gradient + curved
        data = (self.centre, steps, *self.data)
        return ControlVariate(taylor(self.terms, self.order), data, sums, self._range(steps), self.always)

    def _range(self, steps: Floats) -> tuple[Floats, Floats] | None:
        if self.remainder is None:
            return None
        most = self.remainder * np.linalg.norm(steps @ self.metric.T, axis=1) ** (self.order + 1)
        most += self.rounding
        return -most, most


@functools.lru_cache(maxsize=256)
def taylor(terms: Any, order: int) -> Any:
    """Compile the expansion as a control variate of rows and arms."""
    half = 0.5 if order == 2 else 0.0

    @numba.njit
    def expansion(n, arm, centre, steps, *data):  # type: ignore[no-untyped-def]
        value, slope, curvature = terms(n, centre, steps[arm], *data)
        return value + slope + half * curvature

    return expansion


def parameter_taylor(
    terms: Any,
    data: tuple[Any, ...],
    size: int,
    centre: ArrayLike,
    order: int = 2,
    *,
    remainder: ArrayLike | None = None,
    metric: ArrayLike | None = None,
    outliers: float = 0.0,
) -> ParameterTaylor:
    """Expand log factors around `centre`, derivatives computed where they are needed.

    Parameters
    ----------
    terms : numba function
        ``terms(n, centre, direction, *data) -> (value, slope, curvature)``: log f_n at the centre, its
        derivative along `direction` and its second derivative along it. For a generalised linear model that
        takes two scalar products.
    data : tuple
        Arrays and numbers that it takes.
    size : int
        Number of rows N.
    centre : array_like of shape (d,)
        The point of expansion, usually the mode.
    order : int
        1 or 2.
    remainder : float or array_like of shape (N,), optional
        M_n with |log f_n(θ) - h_n(θ)| ≤ M_n ‖W(θ - centre)‖^(order + 1) for every θ.
    metric : array_like of shape (d, d), optional
        W; default: the identity.
    outliers : float
        Share of the rows, those with the largest M_n, that is always read. Needs M_n for each row.
    """
    point, order = checked_centre(centre, order)
    rest, always, most = split_rows(remainder, outliers, size)
    value, gradient, hessian, largest = _sums(terms, tuple(data), point, rest)
    rounding = ROUNDING * (1.0 + largest)
    scale = np.eye(len(point)) if metric is None else np.ascontiguousarray(metric, np.float64)
    return ParameterTaylor(
        point,
        terms,
        tuple(data),
        value,
        gradient,
        hessian * (order == 2),
        order,
        most,
        rounding,
        scale,
        always,
    )


def checked_centre(centre: ArrayLike, order: int) -> tuple[Floats, int]:
    """Check the point of expansion and the order."""
    point = np.array(centre, np.float64)
    if point.ndim != 1 or not np.isfinite(point).all():
        raise InvalidArgument("centre must be an array of finite numbers, one for each parameter")
    if order not in (1, 2):
        raise InvalidArgument(f"order is {order!r}; it must be 1 or 2")
    return point, order


def split_rows(
    remainder: ArrayLike | None, outliers: float, size: int
) -> tuple[NDArray[np.int64], Always | None, float | None]:
    """Give the rows to race on, those always read, and the largest remainder of the former."""
    every = np.arange(size)
    if remainder is None or np.ndim(remainder) == 0:
        if outliers != 0.0:
            raise InvalidArgument("outliers are the rows with the largest remainder: give it for each row")
        return every, None, None if remainder is None else float(np.asarray(remainder))
    bounds = np.asarray(remainder, np.float64)
    if bounds.shape != (size,) or not (bounds >= 0.0).all():
        raise InvalidArgument(f"remainder must be a number or an array of shape ({size},), not negative")
    always = farthest(bounds, outliers)
    rest = every if always is None else always.raced
    return rest, always, float(bounds[rest].max())


def _sums(terms: Any, data: tuple[Any, ...], centre: Floats, rows: NDArray[np.int64]) -> Any:
    """Sum values, gradients and Hessians, found from derivatives along the axes and between them."""
    d = len(centre)
    axes = np.eye(d)
    first, second = np.triu_indices(d, 1)
    directions = np.concatenate([axes, axes[first] + axes[second]])
    value, slopes, curvatures, largest = _directional_sums(terms)(rows, centre, directions, data)
    hessian = np.diag(curvatures[:d])
    between = 0.5 * (curvatures[d:] - curvatures[first] - curvatures[second])
    hessian[first, second] = hessian[second, first] = between
    return value, slopes[:d], hessian, largest


@functools.lru_cache(maxsize=256)
def _directional_sums(terms: Any) -> Any:
    @numba.njit(nogil=True)
    def sums(rows, centre, directions, data):  # type: ignore[no-untyped-def]
        total, largest, k = 0.0, 0.0, len(directions)
        slopes, curvatures = np.zeros(k), np.zeros(k)
        for n in rows:
            for i in range(k):
                value, slope, curvature = terms(n, centre, directions[i], *data)
                slopes[i] += slope
                curvatures[i] += curvature
            total += value
            largest = max(largest, abs(value))
        return total, slopes, curvatures, largest

    return sums
