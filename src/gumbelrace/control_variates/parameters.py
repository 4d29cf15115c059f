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
from numpy.typing import ArrayLike, NDArray

from gumbelrace.control_variates.pilot import laplace_factor, misfit, pilot_points
from gumbelrace.control_variates.sums import sums_of
from gumbelrace.core.jit import part, users
from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.population.control import Always, ControlVariate
from gumbelrace.population.heavy import check_pilot, check_residuals, heavy_rows
from gumbelrace.population.likelihood import Likelihood

Floats = NDArray[np.float64]


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
        """Give the same expansion, the rows that it fits worst always read, unless they were chosen."""
        if self.size != likelihood.size:
            raise ShapeMismatch(
                f"the control variate is of {self.size} rows; the population has {likelihood.size}"
            )
        if self.pilot is None:
            return self
        outer, spread, _ = self.pilot
        factor = laplace_factor(self.hessian, outer) if spread is None else spread
        found = misfit(likelihood, self, pilot_points(self.centre, factor))
        rows = heavy_rows(found.squares, self.pilot.share)
        if spread is not None:
            check_pilot(found.plain, self.size, "give a spread as large as points will be apart")
        check_residuals(np.delete(found.squares, rows), found.plain)
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
