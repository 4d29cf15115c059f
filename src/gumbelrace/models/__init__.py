"""Models: log factors, priors and derivatives; they know nothing of kernels."""

from typing import TYPE_CHECKING

from gumbelrace.lazy import later

_NAMES = {
    "gumbelrace.models.potts": ("Ising", "Pairwise", "Potts"),
}
_MODULES = ("arch", "coreference", "logistic", "potts", "probit", "student")

if TYPE_CHECKING:
    from gumbelrace.models import (
        arch as arch,
        coreference as coreference,
        logistic as logistic,
        potts as potts,
        probit as probit,
        student as student,
    )
    from gumbelrace.models.potts import Ising as Ising, Pairwise as Pairwise, Potts as Potts
else:  # hidden from type checkers, which would take any name at all
    __all__, __getattr__, __dir__ = later(__name__, _NAMES, _MODULES)
