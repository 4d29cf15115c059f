"""Parts of Markov kernels: states, proposals, directions, orders of visits, temperatures."""

from typing import TYPE_CHECKING

from gumbelrace.lazy import later

_NAMES = {
    "gumbelrace.kernels.base": ("Info",),
    "gumbelrace.kernels.model_choice": ("Candidate", "ModelChoice"),
    "gumbelrace.kernels.clusters.worker": ("Keep",),
    "gumbelrace.kernels.gibbs": ("Labels",),
    "gumbelrace.kernels.langevin": ("LangevinState",),
    "gumbelrace.kernels.metropolis": (
        "Autoregressive",
        "LogWalk",
        "Mixture",
        "RandomWalk",
        "StudentT",
    ),
    "gumbelrace.kernels.normal_laws": ("NormalPseudoprior",),
    "gumbelrace.kernels.schedules": ("Constant", "Geometric", "RandomScan", "Shuffled", "Systematic"),
    "gumbelrace.kernels.slice": ("EachCoordinate", "RandomDirection"),
    "gumbelrace.kernels.target": ("Position",),
}

if TYPE_CHECKING:
    from gumbelrace.kernels.base import Info as Info
    from gumbelrace.kernels.model_choice import Candidate as Candidate, ModelChoice as ModelChoice
    from gumbelrace.kernels.clusters.worker import Keep as Keep
    from gumbelrace.kernels.gibbs import Labels as Labels
    from gumbelrace.kernels.langevin import LangevinState as LangevinState
    from gumbelrace.kernels.metropolis import (
        Autoregressive as Autoregressive,
        LogWalk as LogWalk,
        Mixture as Mixture,
        RandomWalk as RandomWalk,
        StudentT as StudentT,
    )
    from gumbelrace.kernels.normal_laws import NormalPseudoprior as NormalPseudoprior
    from gumbelrace.kernels.schedules import (
        Constant as Constant,
        Geometric as Geometric,
        RandomScan as RandomScan,
        Shuffled as Shuffled,
        Systematic as Systematic,
    )
    from gumbelrace.kernels.slice import (
        EachCoordinate as EachCoordinate,
        RandomDirection as RandomDirection,
    )
    from gumbelrace.kernels.target import Position as Position
else:  # hidden from type checkers, which would take any name at all
    __all__, __getattr__, __dir__ = later(__name__, _NAMES)
