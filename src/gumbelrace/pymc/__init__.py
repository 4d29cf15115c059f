"""Posterior draws from PyMC models, unchanged: ``sample(model)``. Needs the extra ``pymc``.

`Gibbs` and `Metropolis` are steps for `pymc.sample`.
"""

from typing import TYPE_CHECKING

from gumbelrace.lazy import later

_NAMES = {
    "gumbelrace.pymc.sampling": ("sample",),
    "gumbelrace.pymc.steps": ("Gibbs", "Metropolis"),
}

if TYPE_CHECKING:
    from gumbelrace.pymc.sampling import sample as sample
    from gumbelrace.pymc.steps import Gibbs as Gibbs, Metropolis as Metropolis
else:  # hidden from type checkers, which would take any name at all
    __all__, __getattr__, __dir__ = later(__name__, _NAMES)
