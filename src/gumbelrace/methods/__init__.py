"""How a question is answered: bounds and variances of races, and methods for special needs."""

from typing import TYPE_CHECKING

from gumbelrace.lazy import later

_NAMES = {
    "gumbelrace.methods.bounds": ("Marginal", "Normal", "Paired", "Serfling"),
    "gumbelrace.methods.gaussian_walk": ("b_normal",),
}

if TYPE_CHECKING:
    from gumbelrace.methods.bounds import (
        Marginal as Marginal,
        Normal as Normal,
        Paired as Paired,
        Serfling as Serfling,
    )
    from gumbelrace.methods.gaussian_walk import b_normal as b_normal
else:  # hidden from type checkers, which would take any name at all
    __all__, __getattr__, __dir__ = later(__name__, _NAMES)
