"""Taylor expansions in the parameters whose derivatives are kept for every row."""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import ArrayLike

from gumbelrace.control_variates.parameters import ROUNDING, ParameterTaylor, checked_centre, split_rows
from gumbelrace.errors import MissingPackage, ShapeMismatch


def stored_taylor(
    values: ArrayLike,
    gradients: ArrayLike,
    hessians: ArrayLike | None,
    centre: ArrayLike,
    *,
    remainder: ArrayLike | None = None,
    metric: ArrayLike | None = None,
    outliers: float = 0.0,
) -> ParameterTaylor:
    """Expand log factors around `centre`, derivatives given as arrays of shape (N,), (N, d) and (N, d, d).

    Without `hessians` the expansion is of first order. The other parameters are as in `parameter_taylor`.
    """
    point, order = checked_centre(centre, 1 if hessians is None else 2)
    derivatives = tuple(
        np.ascontiguousarray(part, np.float64) for part in (values, gradients, hessians)[: order + 1]
    )
    size, d = derivatives[0].size, len(point)
    for k, part in enumerate(derivatives):
        if part.shape != (size, *[d] * k):
            raise ShapeMismatch(f"derivatives of order {k} have shape {part.shape}, not {(size, *[d] * k)}")
    rest, always, most = split_rows(remainder, outliers, size)
    sums = [part[rest].sum(axis=0) for part in derivatives]
    hessian = sums[2] if order == 2 else np.zeros((d, d))
    scale = np.eye(d) if metric is None else np.ascontiguousarray(metric, np.float64)
    terms = _second if order == 2 else _first
    # Terms of each row, in size: value, and the sums over the axes of gradient and Hessian.
    sizes = sum(np.abs(part).reshape(size, -1).sum(axis=1) for part in derivatives)
    return ParameterTaylor(
        point,
        terms,
        derivatives,
        float(sums[0]),
        sums[1],
        hessian,
        order,
        most,
        ROUNDING * float(1.0 + np.max(sizes)),
        scale,
        always,
        size,
    )


def jax_taylor(
    log_factor: Callable[..., Any],
    data: tuple[ArrayLike, ...],
    centre: ArrayLike,
    order: int = 2,
    *,
    remainder: ArrayLike | None = None,
    metric: ArrayLike | None = None,
    outliers: float = 0.0,
) -> ParameterTaylor:
    """Expand log factors around `centre`, derivatives found by JAX.

    Parameters
    ----------
    log_factor : callable
        ``log_factor(theta, *row)`` of JAX operations, for one row of each array of `data`.
    data : tuple of array_like
        Arrays with N rows.
    centre, order, remainder, metric, outliers
        As in `parameter_taylor`.
    """
    jax = _jax()
    point, order = checked_centre(centre, order)
    with jax.enable_x64(True):
        rows = [jax.numpy.asarray(np.asarray(part)) for part in data]
        over_rows = (None, *[0] * len(rows))
        found = [
            np.asarray(jax.jit(jax.vmap(function, in_axes=over_rows))(point, *rows), np.float64)
            for function in (log_factor, jax.grad(log_factor), jax.hessian(log_factor))[: order + 1]
        ]
    hessians = found[2] if order == 2 else None
    return stored_taylor(
        found[0], found[1], hessians, point, remainder=remainder, metric=metric, outliers=outliers
    )


def _jax() -> Any:
    try:
        import jax
    except ImportError as error:
        raise MissingPackage('JAX is not installed; pip install "gumbelrace[jax]"') from error
    return jax


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
