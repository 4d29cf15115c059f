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
from gumbelrace.jit import part, users
from gumbelrace.population.arrays import floats
from gumbelrace.population.base import checked_count
from gumbelrace.population.control import Always, ControlVariate
from gumbelrace.population.trial import Call, checked_data, checked_dispatcher, try_out

Floats = NDArray[np.float64]

FORM = "terms(n, centre, direction, *data)"
# Residuals are differences of numbers of the size of log factors: their range allows for rounding, by this
# share of the largest terms.
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
        Times 1 + ‖t‖², added to the range of the residuals.
    metric : ndarray of shape (d, d)
        W.
    always : Always or None
        Rows that are always read.
    size : int
        Number of rows.
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
    size: int

    def __post_init__(self) -> None:
        d = len(self.centre)
        if self.metric.shape != (d, d):
            raise ShapeMismatch(f"metric has shape {self.metric.shape}; it must be {(d, d)}")
        if not all(np.isfinite(part).all() for part in (self.value, self.gradient, self.hessian)):
            raise InvalidArgument("log factors have no finite value, gradient or Hessian at the centre")

    def at(self, points: ArrayLike) -> ControlVariate:
        """Give the control variate whose arm i is points[i]."""
        checked = np.asarray(points, np.float64)
        if checked.ndim != 2 or checked.shape[1] != len(self.centre):
            raise ShapeMismatch(f"points have shape {checked.shape}; it must be (D, {len(self.centre)})")
        steps = np.ascontiguousarray(checked - self.centre)
        curved = 0.5 * np.einsum("ai,ij,aj->a", steps, self.hessian, steps)
        sums = self.value + steps @ self.gradient + curved
        data, function = (self.centre, steps, *self.data), taylor(self.terms, self.order)
        return ControlVariate(function, data, sums, self._range(steps), self.always, self.size)

    def _range(self, steps: Floats) -> tuple[Floats, Floats] | None:
        if self.remainder is None:
            return None
        most = self.remainder * np.linalg.norm(steps @ self.metric.T, axis=1) ** (self.order + 1)
        most += self.rounding * (1.0 + np.square(steps).sum(axis=1))
        return -most, most


@functools.lru_cache(maxsize=256)
def taylor(terms: Any, order: int) -> Any:
    """Compile the expansion as a control variate of rows and arms."""
    given, half = users(terms), 0.5 if order == 2 else 0.0

    @part
    def expansion(n, arm, centre, steps, *data):  # type: ignore[no-untyped-def]
        value, slope, curvature = given(n, centre, steps[arm], *data)
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
        Number of rows N. That the data suffice is checked once, at the last row.
    centre : array_like of shape (d,)
        The point of expansion, usually the mode.
    order : int
        1 or 2.
    remainder : float or array_like of shape (N,), optional
        M_n with ``|log f_n(θ) - h_n(θ)| ≤ M_n ‖W(θ - centre)‖^(order + 1)`` for every θ.
    metric : array_like of shape (d, d), optional
        W; default: the identity.
    outliers : float
        Share of the rows, those with the largest M_n, that is always read. Needs M_n for each row.

    Examples
    --------
    >>> import numba, numpy as np, gumbelrace as gr
    >>> from gumbelrace.models import logistic
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(50_000, 2))
    >>> y = (rng.uniform(size=len(x)) < 1 / (1 + np.exp(-x.sum(axis=1)))).astype(float)
    >>> mode, _ = logistic.mode(x, y)
    >>> M = logistic.remainder(x, np.eye(2))
    >>> taylor = gr.parameter_taylor(logistic.terms, (x, y), len(x), mode, remainder=M)
    >>> likelihood = gr.likelihood(logistic.log_factor, (x, y), size=len(x)).minus(taylor)
    >>> gr.Betting().best(likelihood([mode, mode + 0.01]), None, rng)
    Outcome(arm=0, evaluations=0, looks=0, exhausted=False)
    """
    checked_dispatcher(terms, "terms")
    checked_data(data, "(x, y)")
    point, order = checked_centre(centre, order)
    size = checked_count(size, "size")
    first = {"n": size - 1, "centre": point, "direction": np.ones_like(point)}
    try_out(Call(users(terms), FORM, first, data), numbers=3)
    rest, always, most = split_rows(remainder, outliers, size)
    value, gradient, hessian, largest = _sums(terms, data, point, rest, order)
    scale = np.eye(len(point)) if metric is None else np.ascontiguousarray(metric, np.float64)
    return ParameterTaylor(
        point,
        terms,
        data,
        value,
        gradient,
        hessian,
        order,
        most,
        ROUNDING * (1.0 + largest),
        scale,
        always,
        size,
    )


def checked_centre(centre: ArrayLike, order: int) -> tuple[Floats, int]:
    """Check the point of expansion and the order."""
    point = np.array(floats(centre, "centre"))
    if point.ndim != 1 or not np.isfinite(point).all():
        raise InvalidArgument("centre must be an array of finite numbers, one for each parameter")
    if order not in (1, 2):
        raise InvalidArgument(f"order is {order!r}; it must be 1 or 2")
    return point, order


def split_rows(
    remainder: ArrayLike | None, outliers: float, size: int
) -> tuple[NDArray[np.int64], Always | None, float | None]:
    """Give the rows to race on, those always read, and the largest remainder of the former."""
    if outliers != 0.0 and (remainder is None or np.ndim(remainder) == 0):
        raise InvalidArgument("outliers are the rows with the largest remainder: give it for each row")
    every = np.arange(size)
    if remainder is None:
        return every, None, None
    bounds = floats(remainder, "remainder")
    if bounds.shape not in ((), (size,)) or not (bounds >= 0.0).all():
        raise InvalidArgument(f"remainder must be a number or an array of shape ({size},), not negative")
    always = farthest(bounds, outliers) if bounds.ndim else None
    rest = every if always is None else always.raced
    most = float(np.broadcast_to(bounds, (size,))[rest].max())
    if most == np.inf:
        raise InvalidArgument("a remainder is infinite: have such rows always read, by a share of outliers")
    return rest, always, most


def _sums(terms: Any, data: tuple[Any, ...], centre: Floats, rows: NDArray[np.int64], order: int) -> Any:
    """Sum values, gradients and Hessians, found from derivatives along the axes and between them."""
    d = len(centre)
    axes = np.eye(d)
    first, second = np.triu_indices(d, 1)
    directions = np.concatenate([axes, axes[first] + axes[second]]) if order == 2 else axes
    value, slopes, curvatures, largest = _directional_sums(terms)(rows, centre, directions, data)
    if order == 1:
        return value, slopes, np.zeros((d, d)), largest
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
            size = 0.0
            for i in range(k):
                value, slope, curvature = terms(n, centre, directions[i], *data)
                slopes[i] += slope
                curvatures[i] += curvature
                size += abs(slope) + abs(curvature)
            total += value
            largest = max(largest, abs(value) + size)
        return total, slopes, curvatures, largest

    return sums
