"""Which solver to use if the user does not say."""

from gumbelrace.population.base import Population
from gumbelrace.solvers.base import Solver
from gumbelrace.solvers.betting import Betting
from gumbelrace.solvers.race import Race


def default_solver(population: Population, delta: float = 0.05) -> Solver:
    """Give `Betting`, which is proved, where a reward range is known; else ``Race(Normal())``."""
    return Betting(delta) if population.knows_range else Race(delta=delta)
