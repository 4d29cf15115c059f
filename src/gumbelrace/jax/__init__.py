"""Posterior draws of models written in jax.numpy; needs the extra ``jax``."""

from typing import TYPE_CHECKING

from gumbelrace.lazy import later

_NAMES = {
    "gumbelrace.jax.from_table": ("JaxTablePosterior",),
    "gumbelrace.jax.posterior": ("posterior",),
    "gumbelrace.jax.recipe": ("JaxPosterior",),
    "gumbelrace.jax.trace": ("JaxTrace",),
}

if TYPE_CHECKING:
    from gumbelrace.jax.from_table import JaxTablePosterior as JaxTablePosterior
    from gumbelrace.jax.posterior import posterior as posterior
    from gumbelrace.jax.recipe import JaxPosterior as JaxPosterior
    from gumbelrace.jax.trace import JaxTrace as JaxTrace
else:  # hidden from type checkers, which would take any name at all
    __all__, __getattr__, __dir__ = later(__name__, _NAMES)
