"""Posterior draws of NumPyro models, unchanged; needs the extra ``jax``."""

from typing import TYPE_CHECKING

from gumbelrace.lazy import later

_NAMES = {"gumbelrace.numpyro.recipe": ("NumpyroTrace", "sample")}

if TYPE_CHECKING:
    from gumbelrace.numpyro.recipe import NumpyroTrace as NumpyroTrace, sample as sample
else:  # hidden from type checkers, which would take any name at all
    __all__, __getattr__, __dir__ = later(__name__, _NAMES)
