"""Taylor expansions whose derivatives JAX finds. It is imported when first used."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gumbelrace.control_variates.data import Derivatives, Floats
from gumbelrace.control_variates.expansion import ParameterTaylor
from gumbelrace.control_variates.parameters import checked_centre, stored_taylor
from gumbelrace.errors import optional


def jax_taylor(
    log_factor: Callable[..., Any],
    data: tuple[ArrayLike, ...],
    centre: ArrayLike,
    order: int = 2,
    *,
    remainder: ArrayLike | None = None,
    metric: ArrayLike | None = None,
    outliers: float | None = None,
    spread: ArrayLike | None = None,
) -> ParameterTaylor:
    """Expand log factors around `centre`, derivatives found by JAX.

    Parameters
    ----------
    log_factor : callable
        ``log_factor(theta, *row)`` of JAX operations, for one row of each array of `data`.
    data : tuple of array_like
        Arrays with N rows.
    centre, order, remainder, metric, outliers, spread
        As in `parameter_taylor`.

    Examples
    --------
    ::

        import jax.numpy as jnp

        def log_factor(theta, x, y):
            return y * jnp.dot(x, theta) - jnp.logaddexp(0.0, jnp.dot(x, theta))

        taylor = gr.control_variates.jax_taylor(log_factor, (x, y), mode)
    """
    jax = _jax()
    point, order = checked_centre(centre, order)
    with jax.enable_x64(True):
        rows = [jax.numpy.asarray(np.asarray(part)) for part in data]
        over_rows = (None, *[0] * len(rows))
        found = [
            np.array(jax.jit(jax.vmap(function, in_axes=over_rows))(point, *rows), np.float64)
            for function in _derivatives(jax, log_factor)[: order + 1]
        ]
    hessians = found[2] if order == 2 else None
    options: Any = {"remainder": remainder, "metric": metric, "outliers": outliers, "spread": spread}
    return stored_taylor(found[0], found[1], hessians, point, **options)


def derivatives_by_jax(log_density: Callable[..., Any]) -> Derivatives:
    """Make the `derivatives` of `data_taylor` from a function of JAX operations.

    Parameters
    ----------
    log_density : callable
        ``log_density(y, theta)``, g for one y of shape (k,) and one point.

    Examples
    --------
    ::

        import jax.numpy as jnp

        def log_density(y, theta):
            return -2.5 * jnp.log1p((y[0] - theta[0]) ** 2 / 4)

        taylor = gr.data_taylor(y[:, None], gr.control_variates.derivatives_by_jax(log_density), bins=30)
    """
    jax = _jax()
    compiled = [
        jax.jit(jax.vmap(jax.vmap(function, in_axes=(None, 0)), in_axes=(0, None)))
        for function in _derivatives(jax, log_density)
    ]

    def derivatives(references: Floats, points: Any) -> tuple[Floats, Floats, Floats]:
        with jax.enable_x64(True):
            value, gradient, hessian = (np.asarray(part(references, points)) for part in compiled)
        return value, gradient, hessian

    return derivatives


def _derivatives(jax: Any, function: Callable[..., Any]) -> tuple[Any, Any, Any]:
    """Give a function, its gradient and its Hessian in its first argument."""
    return function, jax.grad(function), jax.hessian(function)


def _jax() -> Any:
    return optional("jax", "jax")
