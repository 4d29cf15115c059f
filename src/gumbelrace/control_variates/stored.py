"""Taylor expansions in the parameters whose derivatives are kept for every row."""

import numba
import numpy as np
from numpy.typing import ArrayLike

from gumbelrace.control_variates.computed import ROUNDING, checked_centre, pilot_of, split_rows
from gumbelrace.control_variates.parameters import ParameterTaylor
from gumbelrace.errors import ShapeMismatch
from gumbelrace.population.arrays import floats
from gumbelrace.population.base import checked_count


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
    bounds, always = split_rows(remainder, outliers, size)
    rest = np.arange(size) if always is None else always.raced
    sums = [part[rest].sum(axis=0) for part in derivatives]
    hessian = sums[2] if order == 2 else np.zeros((d, d))
    scale = np.eye(d) if metric is None else np.ascontiguousarray(metric, np.float64)
    terms = _second if order == 2 else _first
    sizes = sum(np.abs(part).reshape(size, -1).sum(axis=1) for part in derivatives)
    return ParameterTaylor(
        point,
        terms,
        derivatives,
        float(sums[0]),
        sums[1],
        hessian,
        order,
        bounds,
        ROUNDING * float(1.0 + np.max(sizes[rest])),
        scale,
        always,
        size,
        pilot_of(derivatives[1].T @ derivatives[1], spread, outliers, always),
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
