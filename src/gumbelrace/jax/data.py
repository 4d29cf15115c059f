"""Data as arrays of JAX, and names for the coordinates of a pytree."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.jax.packages import in_double, jax, jnp


def name_of(path: Sequence[Any], alone: str = "theta") -> str:
    """Give the name of a leaf of a pytree: a.b of {"a": {"b": 0.0}}, `alone` of a leaf that is all."""
    parts = [str(getattr(key, "key", getattr(key, "name", getattr(key, "idx", key)))) for key in path]
    return ".".join(parts) or alone


def entries(name: str, shape: tuple[int, ...]) -> list[str]:
    """Name the entries of an array."""
    return [f"{name}[{', '.join(map(str, index))}]" if shape else name for index in np.ndindex(*shape)]


def as_rows(data: Any, size: int | None) -> Any:
    """Give data as arrays of JAX, numbers with a point in double precision, or say which has other rows."""
    check_numeric(data, "data")
    with in_double():
        rows = jax.tree.map(as_array, data)
    leaves = jax.tree_util.tree_flatten_with_path(rows)[0]
    if not leaves:
        raise InvalidArgument("data has no arrays; give a pytree of arrays with N rows each")
    count = leaves[0][1].shape[:1] if size is None else (size,)
    wanted = f"others have {count[0] if count else 'no'} rows" if size is None else f"size is {size}"
    for path, leaf in leaves:
        if leaf.shape[:1] != count or leaf.shape[:1] == ():
            raise ShapeMismatch(
                f"{name_of(path, 'an array')} of the data has shape {leaf.shape}, and {wanted}; what is no "
                "row belongs into log_factor itself"
            )
    if count == (0,):
        raise InvalidArgument("data has no rows")
    return rows


def check_start(start: Any) -> None:
    """Refuse a θ that has no numbers."""
    check_numeric(start, "start")
    if not jax.tree.leaves(start):
        raise InvalidArgument(f"start is {start!r}; give a θ, a number, an array or a pytree of these")


def check_numeric(tree: Any, what: str) -> None:
    """Refuse leaves that are not real numbers."""
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        kind = np.asarray(leaf).dtype
        if not any(jnp.issubdtype(kind, real) for real in (jnp.bool_, jnp.integer, jnp.floating)):
            raise InvalidArgument(
                f"{name_of(path, 'all')} of {what} is of type {kind}; it must have real numbers"
            )


def as_array(leaf: Any) -> Any:
    array = jnp.asarray(leaf)
    return array.astype(float) if jnp.issubdtype(array.dtype, jnp.floating) else array
