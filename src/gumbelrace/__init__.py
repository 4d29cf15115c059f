"""Draw from discrete distributions with very many factors, reading only the few that a draw needs."""

from gumbelrace.audit import Audit, audit
from gumbelrace.best import best
from gumbelrace.bounds.normal import Normal
from gumbelrace.bounds.serfling import Serfling
from gumbelrace.bounds.variance import Marginal, Paired
from gumbelrace.kernels.graph import GraphGibbs, GraphState
from gumbelrace.kernels.schedule import Annealing, RandomScan, SystematicScan
from gumbelrace.models.potts import Ising, Pairwise, Potts
from gumbelrace.population.base import Population
from gumbelrace.population.compiled import compiled
from gumbelrace.population.factors import factors
from gumbelrace.population.independent import independent
from gumbelrace.population.table import table
from gumbelrace.sample import Draws, TotalVariation, sample
from gumbelrace.solvers.base import Outcome, Promise, Solver
from gumbelrace.solvers.betting import Betting
from gumbelrace.solvers.exact import Exact
from gumbelrace.solvers.lilucb import LilUCB
from gumbelrace.solvers.race import Race
from gumbelrace.walk import b_normal

__version__ = "0.1.0"

__all__ = [
    "Annealing",
    "Audit",
    "Betting",
    "Draws",
    "Exact",
    "GraphGibbs",
    "GraphState",
    "Ising",
    "LilUCB",
    "Marginal",
    "Normal",
    "Outcome",
    "Paired",
    "Pairwise",
    "Population",
    "Potts",
    "Promise",
    "Race",
    "RandomScan",
    "Serfling",
    "Solver",
    "SystematicScan",
    "TotalVariation",
    "audit",
    "b_normal",
    "best",
    "compiled",
    "factors",
    "independent",
    "sample",
    "table",
]
