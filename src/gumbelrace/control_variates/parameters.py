"""Taylor expansion of log f_n(θ) in θ around a fixed centre (Bardenet et al. 2015).

With t = θ - θ̂, gradients g_n and Hessians H_n at the centre θ̂, first or second order:

    h_n(θ) = l_n(θ̂) + g_n·t (+ ½ t'H_n t),    Σ_n h_n(θ) = L + G·t (+ ½ t'H t).

If |l_n(θ) - h_n(θ)| ≤ M_n ‖Wt‖^(order+1), the residuals have a known range, and `Betting` can decide
without reading a row when the range is small enough. Rows that carry the residuals are read every time: a
pilot finds them when the expansion meets its log factors (see `pilot`).
"""

import functools
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numba.core.dispatcher import Dispatcher
from numpy.typing import ArrayLike, NDArray

from gumbelrace.control_variates.outliers import checked_share, farthest
from gumbelrace.control_variates.pilot import checked_spread, laplace_factor, misfit, pilot_points
from gumbelrace.control_variates.sums import sums_of
from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.jit import part, users
from gumbelrace.population.base import checked_count
from gumbelrace.population.control import Always, ControlVariate
from gumbelrace.population.heavy import check_residuals, heavy_rows
from gumbelrace.population.likelihood import Likelihood

Floats = NDArray[np.float64]

# Residuals are differences of numbers of the size of log factors: their range allows for rounding, by this
# share of the largest terms.
ROUNDING = 1e-12


class Pilot(NamedTuple):
    """What is left to a pilot: which rows are always read.

    Attributes
    ----------
    outer : ndarray of shape (d, d)
        Sum of gg' over the rows, g their gradients: how far points go where the Hessian does not tell.
    spread : ndarray of shape (d, d), or None
        How far points go, if it was said.
    share : float or None
        How many to choose; None for as many as it takes.
    """

    outer: Floats
    spread: Floats | None
    share: float | None


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
    bounds : ndarray of shape (N,) or (), or None
        M_n of all rows.
    rounding : float
        Times 1 + ‖t‖², added to the range of the residuals.
    metric : ndarray of shape (d, d)
        W.
    always : Always or None
        Rows that are always read.
    size : int
        Number of rows.
    pilot : Pilot or None
        What is still to be chosen.
    """

    centre: Floats
    terms: Any
    data: tuple[Any, ...]
    value: float
    gradient: Floats
    hessian: Floats
    order: int
    bounds: Floats | None
    rounding: float
    metric: Floats
    always: Always | None
    size: int
    pilot: Pilot | None = None

    def __post_init__(self) -> None:
        d = len(self.centre)
        if self.metric.shape != (d, d):
            raise ShapeMismatch(f"metric has shape {self.metric.shape}; it must be {(d, d)}")
        if not all(np.isfinite(part).all() for part in (self.value, self.gradient, self.hessian)):
            raise InvalidArgument("log factors have no finite value, gradient or Hessian at the centre")
        if self.remainder == np.inf:
            raise InvalidArgument(
                "a remainder is infinite: have such rows always read, by a share of outliers"
            )

    @functools.cached_property
    def remainder(self) -> float | None:
        """M, the largest M_n of the rows that are not always read."""
        if self.bounds is None:
            return None
        everywhere = np.broadcast_to(self.bounds, (self.size,))
        return float((everywhere if self.always is None else everywhere[self.always.raced]).max())

    def fitted(self, likelihood: Likelihood) -> "ParameterTaylor":
        """Give the same expansion with its rows chosen, unless they were: those it fits worst are always read."""
        if self.pilot is None:
            return self
        outer, spread, _ = self.pilot
        factor = laplace_factor(self.hessian, outer) if spread is None else spread
        found = misfit(likelihood, self, pilot_points(self.centre, factor))
        rows = heavy_rows(found.squares, self.pilot.share)
        check_residuals(np.delete(found.squares, rows), found.plain, stacklevel=3)
        return self._reading(rows)

    def _reading(self, rows: NDArray[np.int64]) -> "ParameterTaylor":
        if len(rows) == 0:
            return replace(self, pilot=None)
        theirs = sums_of(self.terms, self.data, self.centre, rows, self.order)
        return replace(
            self,
            value=self.value - theirs.value,
            gradient=self.gradient - theirs.gradient,
            hessian=self.hessian - theirs.hessian,
            always=Always(rows, self.size),
            pilot=None,
        )

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
    outliers: float | None = None,
    spread: ArrayLike | None = None,
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
        M_n with ``|log f_n(θ) - h_n(θ)| ≤ M_n ‖W(θ - centre)‖^(order + 1)`` for every θ.
    metric : array_like of shape (d, d), optional
        W; default: the identity.
    outliers : float, optional
        Share of the rows that is always read: those with the largest M_n where these are given for each row,
        else those with the largest residuals in the pilot. Default: as many as it takes that a race with a
        normal bound sees what matters, at most a tenth. With 0 there is no pilot and nothing is checked.
    spread : float, array_like of shape (d,) or (d, d), optional
        How far from the centre points will be compared: standard deviations, or a square root of their
        covariance. Default: that of Laplace's approximation without a prior.

    Notes
    -----
    ``likelihood.minus(...)`` is where the expansion meets its log factors. It reads all rows there at 16
    points around the centre. If rows that would be missed remain, it warns of `UnevenResiduals`.

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
    if not isinstance(terms, Dispatcher) or not isinstance(data, tuple):
        raise InvalidArgument("terms must be decorated with @numba.njit, and data be a tuple, as in (x, y)")
    point, order = checked_centre(centre, order)
    size = checked_count(size, "size")
    scale = np.eye(len(point)) if metric is None else np.ascontiguousarray(metric, np.float64)
    bounds, always = split_rows(remainder, outliers, size)
    sums = sums_of(terms, data, point, np.arange(size) if always is None else always.raced, order)
    return ParameterTaylor(
        point,
        terms,
        data,
        sums.value,
        sums.gradient,
        sums.hessian,
        order,
        bounds,
        ROUNDING * (1.0 + sums.largest),
        scale,
        always,
        size,
        pilot_of(sums.outer, spread, outliers, always),
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
    remainder: ArrayLike | None, outliers: float | None, size: int
) -> tuple[Floats | None, Always | None]:
    """Give M_n, and the rows that are always read as far as that is known from them."""
    share = checked_share(outliers)
    if remainder is None:
        return None, None
    bounds = np.asarray(remainder, np.float64)
    if bounds.shape not in ((), (size,)) or not (bounds >= 0.0).all():
        raise InvalidArgument(f"remainder must be a number or an array of shape ({size},), not negative")
    return bounds, farthest(bounds, share) if bounds.ndim and share is not None else None


def pilot_of(
    outer: Floats, spread: ArrayLike | None, outliers: float | None, always: Always | None
) -> Pilot | None:
    """Leave the choice of rows to a pilot, unless it was made."""
    given = checked_spread(spread, len(outer))
    return None if always is not None or outliers == 0 else Pilot(outer, given, outliers)
