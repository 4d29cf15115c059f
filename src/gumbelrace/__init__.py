"""Draw from discrete distributions with very many factors, reading only the few that a draw needs."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gumbelrace.auditing import audit
from gumbelrace.methods.base import Method, Outcome, Promise
from gumbelrace.methods.betting import Betting
from gumbelrace.methods.bounds import Marginal, Normal, Paired, Serfling
from gumbelrace.methods.exact import Exact
from gumbelrace.methods.gaussian_walk import b_normal
from gumbelrace.methods.race import Race
from gumbelrace.population.base import Population
from gumbelrace.population.compiled import compiled
from gumbelrace.population.control import Always, ControlVariate
from gumbelrace.population.factors import factors
from gumbelrace.population.independent import independent
from gumbelrace.population.table import table
from gumbelrace.sampling import Draws, TotalVariation, sample
from gumbelrace.selection import best
from gumbelrace.verdict import Audit, Shift

__version__ = "0.1.0"

__all__ = [
    "Always",
    "Audit",
    "Autoregressive",
    "Betting",
    "Candidate",
    "CarlinChib",
    "ClusterGibbs",
    "Constant",
    "ControlVariate",
    "DataTaylor",
    "Draws",
    "EachCoordinate",
    "Exact",
    "Geometric",
    "Gibbs",
    "GraphGibbs",
    "Info",
    "Ising",
    "Keep",
    "Kernel",
    "Labels",
    "Langevin",
    "LangevinState",
    "Likelihood",
    "LilUCB",
    "LogWalk",
    "Marginal",
    "Method",
    "Metropolis",
    "ModelChoice",
    "Normal",
    "NormalPseudoprior",
    "Outcome",
    "Paired",
    "Pairs",
    "Pairwise",
    "ParameterTaylor",
    "Population",
    "Position",
    "Potts",
    "Promise",
    "Race",
    "RandomDirection",
    "RandomScan",
    "RandomWalk",
    "Serfling",
    "Shift",
    "Shuffled",
    "Slice",
    "Systematic",
    "TotalVariation",
    "Trace",
    "audit",
    "b_normal",
    "best",
    "compiled",
    "data_taylor",
    "derivatives_by_jax",
    "factors",
    "independent",
    "jax_taylor",
    "likelihood",
    "log_evidence",
    "pairs",
    "parameter_taylor",
    "run",
    "sample",
    "stored_taylor",
    "table",
]

# What a plain race does not need: module -> the names that load it when they are first used.
_LATER = {
    "gumbelrace.chain.evidence": ("log_evidence",),
    "gumbelrace.chain.run": ("run",),
    "gumbelrace.chain.trace": ("Trace",),
    "gumbelrace.control_variates.by_jax": ("derivatives_by_jax", "jax_taylor"),
    "gumbelrace.control_variates.data": ("DataTaylor", "data_taylor"),
    "gumbelrace.control_variates.expansion": ("ParameterTaylor",),
    "gumbelrace.control_variates.parameters": ("parameter_taylor", "stored_taylor"),
    "gumbelrace.kernels.annealing": ("Constant", "Geometric"),
    "gumbelrace.kernels.base": ("Info", "Kernel"),
    "gumbelrace.kernels.model_choice": ("Candidate", "CarlinChib", "ModelChoice"),
    "gumbelrace.kernels.clusters.kernel": ("ClusterGibbs",),
    "gumbelrace.kernels.clusters.worker": ("Keep",),
    "gumbelrace.kernels.gibbs": ("Gibbs", "Labels"),
    "gumbelrace.kernels.graph": ("GraphGibbs",),
    "gumbelrace.kernels.langevin": ("Langevin", "LangevinState"),
    "gumbelrace.kernels.metropolis": ("Autoregressive", "LogWalk", "Metropolis", "RandomWalk"),
    "gumbelrace.kernels.normal_laws": ("NormalPseudoprior",),
    "gumbelrace.kernels.scan": ("RandomScan", "Shuffled", "Systematic"),
    "gumbelrace.kernels.slice": ("EachCoordinate", "RandomDirection", "Slice"),
    "gumbelrace.kernels.target": ("Position",),
    "gumbelrace.models.potts": ("Ising", "Pairwise", "Potts"),
    "gumbelrace.population.likelihood": ("Likelihood", "likelihood"),
    "gumbelrace.population.pairs": ("Pairs", "pairs"),
    "gumbelrace.methods.lilucb": ("LilUCB",),
}

if TYPE_CHECKING:
    from gumbelrace.chain.evidence import log_evidence
    from gumbelrace.chain.run import run
    from gumbelrace.chain.trace import Trace
    from gumbelrace.control_variates.by_jax import derivatives_by_jax, jax_taylor
    from gumbelrace.control_variates.data import DataTaylor, data_taylor
    from gumbelrace.control_variates.expansion import ParameterTaylor
    from gumbelrace.control_variates.parameters import parameter_taylor, stored_taylor
    from gumbelrace.kernels.annealing import Constant, Geometric
    from gumbelrace.kernels.base import Info, Kernel
    from gumbelrace.kernels.clusters.kernel import ClusterGibbs
    from gumbelrace.kernels.clusters.worker import Keep
    from gumbelrace.kernels.gibbs import Gibbs, Labels
    from gumbelrace.kernels.graph import GraphGibbs
    from gumbelrace.kernels.langevin import Langevin, LangevinState
    from gumbelrace.kernels.metropolis import Autoregressive, LogWalk, Metropolis, RandomWalk
    from gumbelrace.kernels.model_choice import Candidate, CarlinChib, ModelChoice
    from gumbelrace.kernels.normal_laws import NormalPseudoprior
    from gumbelrace.kernels.scan import RandomScan, Shuffled, Systematic
    from gumbelrace.kernels.slice import EachCoordinate, RandomDirection, Slice
    from gumbelrace.kernels.target import Position
    from gumbelrace.methods.lilucb import LilUCB
    from gumbelrace.models.potts import Ising, Pairwise, Potts
    from gumbelrace.population.likelihood import Likelihood, likelihood
    from gumbelrace.population.pairs import Pairs, pairs
else:  # hidden from type checkers, which would take any name at all
    _MODULE_OF = {name: module for module, names in _LATER.items() for name in names}

    def __getattr__(name: str) -> Any:
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
        return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
