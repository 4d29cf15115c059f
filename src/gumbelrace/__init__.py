"""Draw from discrete distributions with very many factors, reading only the few that a draw needs."""

from gumbelrace.audit import Audit, audit
from gumbelrace.best import best
from gumbelrace.bounds.normal import Normal
from gumbelrace.bounds.serfling import Serfling
from gumbelrace.bounds.variance import Marginal, Paired
from gumbelrace.chain.run import run
from gumbelrace.chain.trace import Trace
from gumbelrace.control_variates.by_jax import derivatives_by_jax, jax_taylor
from gumbelrace.control_variates.data import DataTaylor, data_taylor
from gumbelrace.control_variates.parameters import ParameterTaylor, parameter_taylor
from gumbelrace.control_variates.stored import stored_taylor
from gumbelrace.kernels.annealing import Constant, Geometric
from gumbelrace.kernels.base import Info, Kernel
from gumbelrace.kernels.carlin_chib import Candidate, CarlinChib, ModelChoice
from gumbelrace.kernels.gibbs import Gibbs, Labels
from gumbelrace.kernels.graph import GraphGibbs
from gumbelrace.kernels.langevin import Langevin, LangevinState
from gumbelrace.kernels.metropolis import Metropolis
from gumbelrace.kernels.proposals import LogWalk, RandomWalk
from gumbelrace.kernels.pseudopriors import NormalPseudoprior
from gumbelrace.kernels.scan import RandomScan, Shuffled, Systematic
from gumbelrace.kernels.slice import EachCoordinate, RandomDirection, Slice
from gumbelrace.kernels.target import Position
from gumbelrace.models.potts import Ising, Pairwise, Potts
from gumbelrace.population.base import Population
from gumbelrace.population.compiled import compiled
from gumbelrace.population.control import Always, ControlVariate
from gumbelrace.population.factors import factors
from gumbelrace.population.independent import independent
from gumbelrace.population.likelihood import Likelihood, likelihood
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
    "Always",
    "Audit",
    "Betting",
    "Candidate",
    "CarlinChib",
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
    "Kernel",
    "Labels",
    "Langevin",
    "LangevinState",
    "Likelihood",
    "LilUCB",
    "LogWalk",
    "Marginal",
    "Metropolis",
    "ModelChoice",
    "Normal",
    "NormalPseudoprior",
    "Outcome",
    "Paired",
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
    "Shuffled",
    "Slice",
    "Solver",
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
    "parameter_taylor",
    "run",
    "sample",
    "stored_taylor",
    "table",
]
