"""Draw from discrete distributions with very many factors, reading only the few that a draw needs."""

from typing import TYPE_CHECKING

from gumbelrace.lazy import later

__version__ = "0.1.0"

_NAMES = {
    "gumbelrace.auditing": ("audit",),
    "gumbelrace.chain.evidence": ("log_evidence",),
    "gumbelrace.chain.run": ("run",),
    "gumbelrace.chain.trace": ("Trace",),
    "gumbelrace.choosing.choose": ("choose", "choose_async"),
    "gumbelrace.choosing.result": ("Choice",),
    "gumbelrace.control_variates.data": ("data_taylor",),
    "gumbelrace.control_variates.parameters": ("parameter_taylor",),
    "gumbelrace.errors": ("GumbelraceError", "NoPossibleArm", "PromiseBroken"),
    "gumbelrace.kernels.base": ("Kernel",),
    "gumbelrace.kernels.model_choice": ("CarlinChib",),
    "gumbelrace.kernels.clusters.kernel": ("ClusterGibbs",),
    "gumbelrace.kernels.gibbs": ("Gibbs",),
    "gumbelrace.kernels.graph.kernel": ("GraphGibbs",),
    "gumbelrace.kernels.langevin": ("Langevin",),
    "gumbelrace.kernels.metropolis": ("Metropolis",),
    "gumbelrace.kernels.slice": ("Slice",),
    "gumbelrace.laplace.compiled_posterior": ("posterior",),
    "gumbelrace.laplace.from_table": ("Passes",),
    "gumbelrace.laplace.posterior": ("Posterior",),
    "gumbelrace.methods.absorb": ("Absorb",),
    "gumbelrace.methods.base": ("Method", "Outcome", "Promise"),
    "gumbelrace.methods.betting": ("Betting",),
    "gumbelrace.methods.exact": ("Exact",),
    "gumbelrace.methods.lilucb": ("LilUCB",),
    "gumbelrace.methods.penalty": ("Penalty",),
    "gumbelrace.methods.race": ("Race",),
    "gumbelrace.methods.thinning": ("Thinning",),
    "gumbelrace.population.base": ("Population",),
    "gumbelrace.population.compiled": ("compiled",),
    "gumbelrace.population.factors": ("factors", "independent"),
    "gumbelrace.population.likelihood": ("likelihood",),
    "gumbelrace.population.pairs": ("pairs",),
    "gumbelrace.population.table": ("table",),
    "gumbelrace.sampling": ("Draws", "best", "sample"),
    "gumbelrace.tables.disk": ("open_table",),
    "gumbelrace.verdict": ("Audit",),
}
_MODULES = ("control_variates", "errors", "kernels", "methods", "models", "population")

if TYPE_CHECKING:
    from gumbelrace import (
        control_variates as control_variates,
        errors as errors,
        kernels as kernels,
        methods as methods,
        models as models,
        population as population,
    )
    from gumbelrace.auditing import audit as audit
    from gumbelrace.chain.evidence import log_evidence as log_evidence
    from gumbelrace.chain.run import run as run
    from gumbelrace.chain.trace import Trace as Trace
    from gumbelrace.choosing.choose import choose as choose, choose_async as choose_async
    from gumbelrace.choosing.result import Choice as Choice
    from gumbelrace.control_variates.data import data_taylor as data_taylor
    from gumbelrace.control_variates.parameters import parameter_taylor as parameter_taylor
    from gumbelrace.errors import (
        GumbelraceError as GumbelraceError,
        NoPossibleArm as NoPossibleArm,
        PromiseBroken as PromiseBroken,
    )
    from gumbelrace.kernels.base import Kernel as Kernel
    from gumbelrace.kernels.model_choice import CarlinChib as CarlinChib
    from gumbelrace.kernels.clusters.kernel import ClusterGibbs as ClusterGibbs
    from gumbelrace.kernels.gibbs import Gibbs as Gibbs
    from gumbelrace.kernels.graph.kernel import GraphGibbs as GraphGibbs
    from gumbelrace.kernels.langevin import Langevin as Langevin
    from gumbelrace.kernels.metropolis import Metropolis as Metropolis
    from gumbelrace.kernels.slice import Slice as Slice
    from gumbelrace.laplace.compiled_posterior import posterior as posterior
    from gumbelrace.laplace.from_table import Passes as Passes
    from gumbelrace.laplace.posterior import Posterior as Posterior
    from gumbelrace.methods.absorb import Absorb as Absorb
    from gumbelrace.methods.base import Method as Method, Outcome as Outcome, Promise as Promise
    from gumbelrace.methods.betting import Betting as Betting
    from gumbelrace.methods.exact import Exact as Exact
    from gumbelrace.methods.lilucb import LilUCB as LilUCB
    from gumbelrace.methods.penalty import Penalty as Penalty
    from gumbelrace.methods.race import Race as Race
    from gumbelrace.methods.thinning import Thinning as Thinning
    from gumbelrace.population.base import Population as Population
    from gumbelrace.population.compiled import compiled as compiled
    from gumbelrace.population.factors import factors as factors, independent as independent
    from gumbelrace.population.likelihood import likelihood as likelihood
    from gumbelrace.population.pairs import pairs as pairs
    from gumbelrace.population.table import table as table
    from gumbelrace.sampling import Draws as Draws, best as best, sample as sample
    from gumbelrace.tables.disk import open_table as open_table
    from gumbelrace.verdict import Audit as Audit
else:  # hidden from type checkers, which would take any name at all
    __all__, __getattr__, __dir__ = later(__name__, _NAMES, _MODULES)
