"""Sums over chunks of rows, and derivatives, by JAX; what second-order expansions leave of log factors."""

from collections.abc import Callable
from typing import Any

from gumbelrace.jax.packages import jax, jnp, lax


def derivatives(function: Callable[[Any], Any], theta: Any, directions: Any) -> tuple[Any, ...]:
    """Give a function's value, its gradient, and its Hessian times each direction; None: the value only."""
    if directions is None:
        return (function(theta),)
    value, gradient = jax.value_and_grad(function)(theta)

    def product(direction: Any) -> Any:
        return jax.jvp(jax.grad(function), (theta,), (direction,))[1]

    return value, gradient, jax.vmap(product)(directions) if len(directions) else jnp.zeros_like(directions)


def over_chunks(function: Callable[[Any, Any], Any], rows: Any, chunk: int) -> Any:
    """Sum what a function gives of chunks of rows, and of which of those rows count."""
    size = jax.tree.leaves(rows)[0].shape[0]

    def add(total: Any, begin: Any) -> Any:
        return jax.tree.map(jnp.add, total, function(*chunk_of(rows, begin, chunk))), None

    zero = jax.tree.map(jnp.zeros_like, jax.eval_shape(function, *chunk_of(rows, 0, chunk)))
    return lax.scan(add, zero, jnp.arange(0, size, chunk))[0]


def chunk_of(rows: Any, begin: Any, chunk: int) -> tuple[Any, Any]:
    """Give the rows from `begin` on, and which of them count: the last chunk begins among those before."""
    first = jnp.minimum(begin, jax.tree.leaves(rows)[0].shape[0] - chunk)
    part = jax.tree.map(lambda leaf: lax.dynamic_slice_in_dim(leaf, first, chunk), rows)
    return part, first + jnp.arange(chunk) >= begin


def rows_at(rows: Any, numbers: Any) -> Any:
    """Give the rows of some numbers, all of which there are."""
    return jax.tree.map(lambda leaf: leaf.at[numbers].get(mode="promise_in_bounds"), rows)


def left_over(terms: Callable[[Any], Any], centre: Any, step: Any, factors: Any = 1.0) -> Any:
    """Give log factors at centre + step, less their expansion at the centre to second order.

    The slopes of these are multiplied by `factors`.
    """

    def along(at: Any) -> Any:
        return jax.jvp(terms, (at,), (step,))

    (value, slope), (_, curvature) = jax.jvp(along, (centre,), (step,))
    return terms(centre + step) - value - factors * slope - 0.5 * curvature


def left_between(
    terms: Callable[[Any], Any], centre: Any, here: Any, there: Any, factors: Any = 1.0
) -> Any:
    """Give by how much `left_over` differs between two steps.

    With a = there - here and b = (there + here) / 2 the expansion grows by ∂_a f + ∂_a ∂_b f.
    """

    def along(at: Any) -> Any:
        return jax.jvp(terms, (at,), (0.5 * (there + here),))

    _, (slope, curvature) = jax.jvp(along, (centre,), (there - here,))
    return terms(centre + there) - terms(centre + here) - factors * slope - curvature
