"""JAX, imported when it is first used: a module of ours must be there for users who have no JAX."""

from typing import Any

from gumbelrace.errors import optional


class Later:
    """A module that is imported when something of it is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # Python and its tools ask any object for these
            raise AttributeError(attribute)
        return getattr(optional(self._name, "jax"), attribute)


jax, jnp, lax, random = map(Later, ("jax", "jax.numpy", "jax.lax", "jax.random"))
special = Later("jax.scipy.special")


def in_double() -> Any:
    """Give a context in which JAX computes in double precision; outside, its setting is as it was."""
    return jax.enable_x64(True)
