"""Taylor expansions in the parameters, as users make them: derivatives computed, or stored."""

from typing import Any

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumbelrace.control_variates.expansion import LEAST_BOUND, ParameterTaylor, Pilot, sums_of
from gumbelrace.control_variates.pilot import checked_share, checked_spread, farthest
from gumbelrace.core.jit import users
from gumbelrace.core.orders import NO_ROWS
from gumbelrace.core.rows import Rows
from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.population.arrays import floats
from gumbelrace.population.base import checked_count
from gumbelrace.population.trial import Call, checked_data, checked_dispatcher, try_out

Floats = NDArray[np.float64]

FORM = "terms(n, centre, direction, *data)"
# Residuals are differences of numbers of the size of log factors: their range allows for rounding, by this
# share of the largest terms within ‖Wt‖ ≤ 1.
ROUNDING = 1e-12


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
        Number of rows N. That the data suffice is checked once, at the last row.
    centre : array_like of shape (d,)
        The point of expansion, usually the mode.
    order : int
        1 or 2.
    remainder : float or array_like of shape (N,), optional
        M_n with ``|log f_n(θ) - h_n(θ)| ≤ M_n ‖W(θ - centre)‖^(order + 1)`` for every θ.
    metric : array_like of shape (d, d), optional
        W, invertible; default: the identity.
    outliers : float, optional
        Share of the rows that is read every time, the head: those with the largest M_n where each row's is
        given, else those with the largest residuals in the pilot. Default: as many as it takes that a race
        with a normal bound sees what matters, at most a tenth, and none for methods that draw rows by their
        weights. With 0 there is no pilot, there are no weights, and nothing is checked.
    spread : float, array_like of shape (d,) or (d, d), optional
        How far from the centre points will be compared: standard deviations, or a square root of their
        covariance, positive. Default: that of Laplace's approximation without a prior.

    Notes
    -----
    ``likelihood.minus(...)`` is where the expansion meets its log factors. It reads all rows there at 16
    points around the centre. If rows that would be missed remain, it warns of `UnevenResiduals`. The
    residuals there also give each row a weight, for methods that draw rows with replacement. With a
    `remainder` it also reads them at 4 points next to the centre, where residuals are nothing but rounding.

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
    Outcome(arm=0, evaluations=0, looks=0, exhausted=False, fraction=0, promise=0.05 proved)
    """
    checked_dispatcher(terms, "terms")
    data = checked_data(data, "(x, y)")
    point, order = checked_centre(centre, order)
    size = checked_count(size, "size")
    first = {"n": size - 1, "centre": point, "direction": np.ones_like(point)}
    try_out(Call(users(terms), FORM, first, data), numbers=3)
    scale, units = checked_metric(metric, len(point))
    bounds, rows = split_rows(remainder, outliers, size)
    sums = sums_of(terms, data, point, rows.tail, order, units)
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
        rows,
        pilot_of(sums.outer, spread, outliers, rows),
    )


def checked_centre(centre: ArrayLike, order: int) -> tuple[Floats, int]:
    point = np.array(floats(centre, "centre"))
    if point.ndim != 1 or not np.isfinite(point).all():
        raise InvalidArgument("centre must be an array of finite numbers, one for each parameter")
    if order not in (1, 2):
        raise InvalidArgument(f"order is {order!r}; it must be 1 or 2")
    return point, order


def checked_metric(metric: ArrayLike | None, dimension: int) -> tuple[Floats, Floats]:
    """Give W, and how far each parameter goes where ‖Wt‖ ≤ 1, as powers of 2: they scale exactly."""
    scale = np.eye(dimension) if metric is None else np.ascontiguousarray(metric, np.float64)
    if scale.shape != (dimension, dimension):
        raise ShapeMismatch(f"metric has shape {scale.shape}; it must be {(dimension, dimension)}")
    try:
        reach = np.linalg.norm(np.linalg.inv(scale), axis=1)
    except np.linalg.LinAlgError:
        reach = np.full(dimension, np.nan)
    if not np.isfinite(reach).all():
        raise InvalidArgument("metric has no inverse; give a square root of a precision matrix")
    return scale, np.exp2(np.round(np.log2(reach)))


def split_rows(
    remainder: ArrayLike | None, outliers: float | None, size: int
) -> tuple[Floats | None, Rows]:
    """Give M_n, and what is known of the rows from them."""
    share = checked_share(outliers)
    if remainder is None:
        return None, Rows(size)
    bounds = floats(remainder, "remainder")
    if bounds.shape not in ((), (size,)) or not (bounds >= 0.0).all():
        raise InvalidArgument(f"remainder must be a number or an array of shape ({size},), not negative")
    if bounds.ndim == 0:
        return bounds, Rows(size)
    head = NO_ROWS if share is None else farthest(bounds, share)
    return bounds, Rows(size, head=head, bounds=relative_bounds(bounds, head))


def relative_bounds(bounds: Floats, head: NDArray[np.int64]) -> Floats | None:
    """Give M_n relative to the largest of the tail, none of them zero; None if that one is not finite."""
    most = np.delete(bounds, head).max()
    if not 0.0 < most < np.inf:
        return None
    relative: Floats = np.clip(bounds / most, LEAST_BOUND, 1.0)
    return relative


def pilot_of(outer: Floats, spread: ArrayLike | None, outliers: float | None, rows: Rows) -> Pilot | None:
    """Leave the choice of the head to a pilot, unless it was made."""
    given = checked_spread(spread, len(outer))
    return None if len(rows.head) or outliers == 0 else Pilot(outer, given, outliers)


def stored_taylor(
    values: ArrayLike,
    gradients: ArrayLike,
    hessians: ArrayLike | None,
    centre: ArrayLike,
    *,
    remainder: ArrayLike | None = None,
    metric: ArrayLike | None = None,
    outliers: float | None = None,
    spread: ArrayLike | None = None,
) -> ParameterTaylor:
    """Expand log factors around `centre`, derivatives given as arrays of shape (N,), (N, d) and (N, d, d).

    Without `hessians` the expansion is of first order. The other parameters are as in `parameter_taylor`.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> y = np.array([0.0, 1.0, 5.0])  # log f_n(θ) = -½ (y_n - θ)², at θ = 2
    >>> values, slopes, curvatures = -0.5 * (y - 2) ** 2, (y - 2)[:, None], -np.ones((3, 1, 1))
    >>> taylor = gr.control_variates.stored_taylor(values, slopes, curvatures, [2.0])
    >>> taylor.at([[2.0], [3.0]]).sums
    array([-7. , -8.5])
    """
    point, order = checked_centre(centre, 1 if hessians is None else 2)
    derivatives = tuple(
        np.asarray(floats(part, "derivatives"), order="C")
        for part in (values, gradients, hessians)[: order + 1]
    )
    size, d = checked_count(derivatives[0].size, "size"), len(point)
    for k, part in enumerate(derivatives):
        if part.shape != (size, *[d] * k):
            raise ShapeMismatch(f"derivatives of order {k} have shape {part.shape}, not {(size, *[d] * k)}")
    bounds, rows = split_rows(remainder, outliers, size)
    sums = [part[rows.tail].sum(axis=0) for part in derivatives]
    hessian = sums[2] if order == 2 else np.zeros((d, d))
    scale, units = checked_metric(metric, d)
    terms = _second if order == 2 else _first
    weights = (np.ones(1), units, np.outer(units, units).ravel())
    sizes = sum(
        np.abs(part).reshape(size, -1) @ weight for part, weight in zip(derivatives, weights, strict=False)
    )
    return ParameterTaylor(
        point,
        terms,
        derivatives,
        float(sums[0]),
        sums[1],
        hessian,
        order,
        bounds,
        ROUNDING * float(1.0 + np.max(sizes[rows.tail])),
        scale,
        rows,
        pilot_of(derivatives[1].T @ derivatives[1], spread, outliers, rows),
    )


@numba.njit
def _first(n, centre, direction, values, gradients):  # type: ignore[no-untyped-def]
    slope = 0.0
    for i in range(len(direction)):
        slope += gradients[n, i] * direction[i]
    return values[n], slope, 0.0


@numba.njit
def _second(n, centre, direction, values, gradients, hessians):  # type: ignore[no-untyped-def]
    value, slope, curvature = _first(n, centre, direction, values, gradients)
    for i in range(len(direction)):
        for j in range(len(direction)):
            curvature += direction[i] * hessians[n, i, j] * direction[j]
    return value, slope, curvature
