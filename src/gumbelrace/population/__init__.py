"""Where rewards come from: the classes behind `table`, `factors`, `likelihood` and the others."""

from typing import TYPE_CHECKING

from gumbelrace.lazy import later

_NAMES = {
    "gumbelrace.population.likelihood": ("Likelihood",),
    "gumbelrace.population.pairs": ("Pairs",),
}

if TYPE_CHECKING:
    from gumbelrace.population.likelihood import Likelihood as Likelihood
    from gumbelrace.population.pairs import Pairs as Pairs
else:  # hidden from type checkers, which would take any name at all
    __all__, __getattr__, __dir__ = later(__name__, _NAMES)
