"""Taylor expansion of log f_n(θ) in θ around a fixed centre (Bardenet et al. 2015).

With t = θ - θ̂, gradients g_n and Hessians H_n at the centre θ̂, first or second order:

    h_n(θ) = l_n(θ̂) + g_n·t (+ ½ t'H_n t),    Σ_n h_n(θ) = L + G·t (+ ½ t'H t).

If |l_n(θ) - h_n(θ)| ≤ M_n ‖Wt‖^(order+1), the residuals have a known range, and `Betting` can decide
without reading a row when the range is small enough. Rows that carry the residuals are the head, which
races read every time: a pilot finds them, and weights for all rows, when the expansion meets its log
factors (see `pilot`).
"""

import functools
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumbelrace.control_variates.pilot import (
    WIDER,
    check_pilot,
    check_residuals,
    heavy_rows,
    laplace_factor,
    misfit,
    pilot_points,
    rounding_seen,
)
from gumbelrace.core.jit import kernel, part, users
from gumbelrace.core.orders import NO_ROWS
from gumbelrace.core.packed import pack, unpack
from gumbelrace.core.rows import Rows
from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.population.control import ControlVariate, row_weights, table_of
from gumbelrace.population.likelihood import KNOWN, MOST, SLOT, Likelihood, Slots, head_reader
from gumbelrace.population.trial import Call, checked_dispatcher, try_out

Floats = NDArray[np.float64]

# Bounds of rows are at least this share of the largest: by rounding no residual is zero for sure.
# The range allows 1e-12 of the terms for that, of which this share is still more than enough.
LEAST_BOUND = 1e-3
# Rows at which a user's own residual is compared with what it should be.
CHECKED = 16
# With more parameters than that, rows may depend on some of them only: how far away from the centre that is
# seen. By how much second derivatives differ for rounding. Directions are the same in every run.
FEW, BESIDE, SAME, SEED = 16, 1e-3, 1e-11, 0


class Pilot(NamedTuple):
    """What is left to a pilot: which rows are the head, and the weights of all."""

    outer: Floats  # sum of gg' over the rows, g their gradients, where the Hessian does not tell
    spread: Floats | None  # how far points go, if it was said
    share: float | None  # how many rows to choose; None for as many as it takes


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
        Their sums over the rows of the tail (Hessian of zeros at first order).
    order : int
        1 or 2.
    bounds : ndarray of shape (N,) or (), or None
        M_n of all rows.
    rounding : float
        Times 1 + ‖Wt‖², added to the range of the residuals.
    metric : ndarray of shape (d, d)
        W, invertible.
    rows : Rows
        The head, which is read in full, the tail, and weights and bounds of the residuals.
    pilot : Pilot or None
        What is still to be chosen.
    residual : numba function or None
        See `with_residual`.
    needs_head : bool
        Whether the head was chosen by whoever made the expansion; else a pilot has chosen it for races.
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
    rows: Rows
    pilot: Pilot | None = None
    residual: Any = None
    needs_head: bool = True

    def __post_init__(self) -> None:
        if not all(np.isfinite(part).all() for part in (self.value, self.gradient, self.hessian)):
            raise InvalidArgument("log factors have no finite value, gradient or Hessian at the centre")
        if self.remainder == np.inf:
            raise InvalidArgument(
                "a remainder is infinite: have such rows read every time, by a share of outliers"
            )

    @property
    def size(self) -> int:
        """Number of rows, N."""
        return self.rows.size

    @functools.cached_property
    def remainder(self) -> float | None:
        """M, the largest M_n of the tail."""
        if self.bounds is None:
            return None
        return float(np.delete(np.broadcast_to(self.bounds, (self.size,)), self.rows.head).max())

    def with_residual(self, residual: Any) -> "ParameterTaylor":
        """Give the same expansion, of which a model computes what is left in one pass over a row.

        Parameters
        ----------
        residual : numba function
            ``residual(n, centre, direction, *data)``: log f_n at centre + direction, less its expansion. It
            is checked at some rows when the expansion meets its log factors.

        Examples
        --------
        >>> import numpy as np, gumbelrace as gr
        >>> from gumbelrace.models import logistic
        >>> x, y = np.random.default_rng(0).normal(size=(1000, 2)), np.arange(1000) % 2.0
        >>> taylor = gr.parameter_taylor(logistic.terms, (x, y), 1000, logistic.mode(x, y)[0])
        >>> taylor.with_residual(logistic.residual).residual is logistic.residual
        True
        """
        checked_dispatcher(residual, "residual")
        first = {"n": self.size - 1, "centre": self.centre, "direction": np.ones_like(self.centre)}
        try_out(Call(users(residual), "residual(n, centre, direction, *data)", first, self.data))
        return replace(self, residual=residual)

    def fitted(self, likelihood: Likelihood) -> "ParameterTaylor":
        """Give the same expansion, the rows that it fits worst in the head, unless they were chosen."""
        if self.size != likelihood.size:
            raise ShapeMismatch(
                f"the control variate is of {self.size} rows; the population has {likelihood.size}"
            )
        if self.residual is not None:
            check_residual(likelihood, self)
        if self.bounds is None:
            return self._piloted(likelihood)
        seen = rounding_seen(likelihood, self, self.bounds)
        return replace(self, rounding=max(self.rounding, seen))._piloted(likelihood)

    def _piloted(self, likelihood: Likelihood) -> "ParameterTaylor":
        """Give the same expansion, its head and weights chosen by a pilot if that is left to one."""
        if self.pilot is None:
            return self
        outer, spread, _ = self.pilot
        factor = laplace_factor(self.hessian, outer) if spread is None else spread
        found = misfit(likelihood, self, pilot_points(self.centre, factor))
        head = heavy_rows(found.squares, self.pilot.share)
        if spread is not None:
            check_pilot(found.plain, self.size, "give a spread as large as points will be apart")
        check_residuals(np.delete(found.squares, head), found.plain)
        weighted = Rows(self.size, weights=row_weights(found.squares), bounds=self.rows.bounds)
        chosen = replace(self, rows=weighted, pilot=None, needs_head=self.pilot.share is not None)
        return chosen._with_head(head)

    @property
    def typical_points(self) -> Floats | None:
        """Points of Laplace's law, the same in every run; None where the Hessian does not tell it."""
        try:
            precision = np.linalg.cholesky(-self.hessian)
        except np.linalg.LinAlgError:
            return None
        return pilot_points(self.centre, np.linalg.inv(precision).T / WIDER)

    @functools.cached_property
    def without_head(self) -> "ParameterTaylor":
        """The same expansion for methods that draw rows by their weights: no head that a pilot chose."""
        return self if self.needs_head else self._with_head(NO_ROWS)

    def _with_head(self, head: NDArray[np.int64]) -> "ParameterTaylor":
        """Give the same expansion with another head, its sums those of the tail that is left."""
        if np.array_equal(head, self.rows.head):
            return self
        back, gone = self._sums_over(self.rows.head), self._sums_over(head)
        return replace(
            self,
            value=self.value + back.value - gone.value,
            gradient=self.gradient + back.gradient - gone.gradient,
            hessian=self.hessian + back.hessian - gone.hessian,
            rows=self.rows.with_head(head),
        )

    def _sums_over(self, rows: NDArray[np.int64]) -> "Sums":
        return sums_of(self.terms, self.data, self.centre, rows, self.order)

    def at(self, points: ArrayLike) -> ControlVariate:
        """Give the control variate whose arm i is points[i]."""
        checked = np.asarray(points, np.float64)
        if checked.ndim != 2 or checked.shape[1] != len(self.centre):
            raise ShapeMismatch(f"points have shape {checked.shape}; it must be (D, {len(self.centre)})")
        return self._around(np.ascontiguousarray(checked - self.centre))

    def _around(self, steps: Floats) -> ControlVariate:
        """Give the control variate whose arm i is the centre and steps[i]."""
        known = _known_at(steps, self.form)
        data, function = (self.centre, steps, *self.data), taylor(self.terms, self.order)
        most = None if self.remainder is None else (-known[1], known[1])
        fused = None if self.residual is None else by_step(self.residual)
        sums = self.value + known[0]
        return ControlVariate(function, data, sums, most, self.rows, residual=fused)

    def slots(self, likelihood: Likelihood, slots: Slots) -> Slots:
        """Give slots with the residuals of log factors, that know the sums of the expansion."""
        points, steps = slots.rooms
        if points.shape[1] != len(self.centre):
            raise ShapeMismatch(f"points have shape {points.shape}; it must be (D, {len(self.centre)})")
        own = (slots.rooms, slots.numbers, self.centre, *self.form, self.rows.head)
        packed = pack((*own, *likelihood.data))
        population = likelihood.plain(points).residuals(self._around(steps))
        known = _known(likelihood.log_factor, packed.type)
        return slots._replace(population=population, known=known, packed=packed)

    @functools.cached_property
    def form(self) -> "Form":
        """What compiled code needs to sum the expansion."""
        remainder = -1.0 if self.remainder is None else self.remainder
        numbers = np.array([remainder, self.rounding, self.order])
        return Form(self.gradient, self.hessian, self.metric, numbers)


class Form(NamedTuple):
    """Sums of an expansion, less their value at the centre, and the range of its residuals."""

    gradient: Floats
    hessian: Floats
    metric: Floats
    numbers: Floats  # M (negative: not known), the share of rounding, the order


@part
def known_sum(step: Floats, form: Form) -> tuple[float, float]:
    """Give G·t + ½ t'Ht, and the largest size of a residual, -1 if it is not known."""
    total, squared = 0.0, 0.0
    for i in range(len(step)):
        curved, scaled = 0.0, 0.0
        for j in range(len(step)):
            curved += form.hessian[i, j] * step[j]
            scaled += form.metric[i, j] * step[j]
        total += step[i] * (form.gradient[i] + 0.5 * curved)
        squared += scaled * scaled
    remainder, rounding, order = form.numbers
    if remainder < 0.0:
        return total, -1.0
    # A root takes a tenth of the time of a power, which would be a tenth of a step.
    distance = squared if order == 1.0 else squared * np.sqrt(squared)
    return total, remainder * distance + rounding * (1.0 + squared)


@kernel
def _known_at(steps: Floats, form: Form) -> Floats:
    found = np.empty((2, len(steps)))
    for a in range(len(steps)):
        found[0, a], found[1, a] = known_sum(steps[a], form)
    return found


@functools.lru_cache(maxsize=64)
def _known(log_factor: Any, data_type: Any) -> Any:
    read = head_reader(log_factor)

    @numba.cfunc(SLOT)
    def known(context, slot):  # type: ignore[no-untyped-def]
        everything = unpack(context, data_type)
        rooms, of_all, centre, gradient, hessian, metric, of_form, head = everything[:8]
        point, step, numbers = rooms[0, slot], rooms[1, slot], of_all[slot]
        for i in range(len(centre)):
            step[i] = point[i] - centre[i]
        read(numbers, point, head, everything[8:])
        # The value at the centre is left out, which all arms share.
        numbers[KNOWN], numbers[MOST] = known_sum(step, Form(gradient, hessian, metric, of_form))
        return len(head)

    return known


@functools.lru_cache(maxsize=256)
def taylor(terms: Any, order: int) -> Any:
    given, half = users(terms), 0.5 if order == 2 else 0.0

    @part
    def expansion(n, arm, centre, steps, *data):  # type: ignore[no-untyped-def]
        value, slope, curvature = given(n, centre, steps[arm], *data)
        return value + slope + half * curvature

    return expansion


@functools.lru_cache(maxsize=256)
def by_step(residual: Any) -> Any:
    """Compile residual(n, centre, steps[arm], ...) as a function of rows and arms."""
    given = users(residual)

    @part
    def at_arm(n, arm, centre, steps, *data):  # type: ignore[no-untyped-def]
        return given(n, centre, steps[arm], *data)

    return at_arm


def check_residual(likelihood: Likelihood, control: ParameterTaylor) -> None:
    """Refuse a `residual` that is not what is left of these log factors, at some rows."""
    spread = laplace_factor(control.hessian, np.eye(len(control.centre)))
    point, arm = control.centre + spread.sum(axis=1), np.zeros(1, np.int64)
    rows = np.unique(np.linspace(0, control.size - 1, CHECKED).astype(np.int64))
    approximation = control.at(point[None])
    found = table_of(approximation.residual)(rows, arm, approximation.data)
    plain = likelihood.plain(point[None]).rewards_at(rows)
    if not np.allclose(
        found, plain - approximation.values(rows, arm), rtol=1e-6, atol=1e-9 * np.abs(plain).max()
    ):
        raise InvalidArgument("residual is not log_factor less its expansion; mend it, or leave it out")


class Sums(NamedTuple):
    """Sums over rows."""

    value: float
    gradient: Floats
    hessian: Floats  # zero at first order
    outer: Floats  # of gg', g the gradient of a row
    largest: float  # the largest size of a row's terms


class _Totals(NamedTuple):
    """Room for sums of derivatives: made in NumPy, or else compiled for every factor."""

    gradient: Floats
    hessian: Floats
    outer: Floats
    numbers: Floats  # the sum of values, the largest size of a row's terms


class _OfRow(NamedTuple):
    """Room for the derivatives of one row, along the axes."""

    axis: Floats
    slopes: Floats
    curvatures: Floats
    active: NDArray[np.int64]  # the parameters that it depends on


def sums_of(
    terms: Any,
    data: tuple[Any, ...],
    centre: Floats,
    rows: NDArray[np.int64],
    order: int,
    units: Floats | None = None,
) -> Sums:
    """Sum values, gradients and Hessians, found from derivatives along the axes and between them.

    `units` are lengths of the axes, for what depends on them: rounding, and the largest size of terms.

    Where parameters are many, a row's derivatives are taken between those only on which it depends: along
    whose axis it changes at the centre, or at a point beside it (at the centre itself a derivative may
    happen to be zero). A row that depends on them by a single linear combination, as those of a generalised
    linear model do, has the Hessian κ gg', g being its gradient: whether that is so, a direction drawn at
    random tells.
    """
    d = len(centre)
    scale = np.ones(d) if units is None else units
    random = scale * np.random.default_rng(SEED).standard_normal((2, d))
    points = np.stack([centre, centre + BESIDE * random[0], random[1], scale])
    totals = _Totals(np.zeros(d), np.zeros((d, d)), np.zeros((d, d)), np.zeros(2))
    of_row = _OfRow(np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d, np.int64))
    _sums(terms)(rows, points, order, data, totals, of_row)
    (value, largest), areas = totals.numbers.tolist(), np.outer(scale, scale)
    return Sums(value, totals.gradient / scale, totals.hessian / areas, totals.outer / areas, largest)


@functools.lru_cache(maxsize=256)
def _sums(terms: Any) -> Any:
    @numba.njit(nogil=True)
    def add_up(rows, points, order, data, totals, of_row):  # type: ignore[no-untyped-def]
        centre, beside, direction, units = points[0], points[1], points[2], points[3]
        axis, slopes, curvatures, active = of_row
        for n in rows:
            count, size, value = 0, 0.0, 0.0
            for i in range(len(centre)):
                axis[i] = units[i]
                value, slopes[i], curvatures[i] = terms(n, centre, axis, *data)
                matters = len(centre) <= FEW or slopes[i] != 0.0 or curvatures[i] != 0.0
                if not matters:
                    _, slope, curvature = terms(n, beside, axis, *data)
                    matters = slope != 0.0 or curvature != 0.0
                if matters:
                    active[count] = i
                    count += 1
                axis[i] = 0.0
                size += abs(slopes[i]) + abs(curvatures[i])
            totals.numbers[0] += value
            totals.numbers[1] = max(totals.numbers[1], abs(value) + size)
            add_outer(totals.gradient, totals.outer, slopes, active[:count])
            if order == 1:
                continue
            _, slope, curvature = terms(n, centre, direction, *data)
            scale = of_one_combination(slopes, curvatures, active[:count], slope, curvature)
            if not np.isnan(scale):
                add_products(totals.hessian, scale, slopes, active[:count])
                continue
            for a in range(count):
                i = active[a]
                totals.hessian[i, i] += curvatures[i]
                axis[i] = units[i]
                for b in range(a):
                    axis[active[b]] = units[active[b]]
                    _, _, both = terms(n, centre, axis, *data)
                    axis[active[b]] = 0.0
                    between = 0.5 * (both - curvatures[i] - curvatures[active[b]])
                    totals.hessian[i, active[b]] += between
                    totals.hessian[active[b], i] += between
                axis[i] = 0.0

    return add_up


@part
def add_outer(gradient: Floats, outer: Floats, slopes: Floats, active: NDArray[np.int64]) -> None:
    """Add a row's gradient g, and gg'."""
    for i in active:
        gradient[i] += slopes[i]
        for j in active:
            outer[i, j] += slopes[i] * slopes[j]


@part
def add_products(hessian: Floats, scale: float, slopes: Floats, active: NDArray[np.int64]) -> None:
    """Add κ gg'."""
    for i in active:
        for j in active:
            hessian[i, j] += scale * slopes[i] * slopes[j]


@part
def of_one_combination(
    slopes: Floats, curvatures: Floats, active: NDArray[np.int64], slope: float, curvature: float
) -> float:
    """Give κ if the Hessian is κ gg', along the axes and along a random direction; else NaN."""
    steepest = 0.0
    scale = np.nan
    for i in active:
        if abs(slopes[i]) > steepest:
            steepest = abs(slopes[i])
            scale = curvatures[i] / (slopes[i] * slopes[i])
    for i in active:
        if not abs(curvatures[i] - scale * slopes[i] * slopes[i]) <= SAME * abs(scale) * steepest**2:
            return np.nan
    if not abs(curvature - scale * slope * slope) <= SAME * abs(scale) * max(slope * slope, steepest**2):
        return np.nan
    return float(scale)
