"""Which solver to use if the user does not say."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gumbelrace.population.base import Population
from gumbelrace.solvers.base import Promise, Solver, checked_delta
from gumbelrace.solvers.betting import Betting
from gumbelrace.solvers.race import Race
from gumbelrace.solvers.results import Results


def default_solver(population: Population, delta: float = 0.05) -> Solver:
    """Give `Betting`, which is proved, where a reward range is known; else ``Race(Normal())``."""
    return Betting(delta) if population.knows_range else Race(delta=delta)


@dataclass(frozen=True)
class Default(Solver):
    """The default solver of each population: for kernels, which meet a new one at every decision.

    Parameters
    ----------
    delta : float
        Bound on the probability of a wrong decision.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> rng = np.random.default_rng(0)
    >>> Default(delta=0.01).best(gr.table(rng.normal([0.0, 1.0], 1.0, (1000, 2))), None, rng).arm
    1
    """

    delta: float = 0.05

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", checked_delta(self.delta))

    @property
    def promise(self) -> Promise:
        """The weaker of the two promises: that of the race, which is made where no range is known."""
        return Race(delta=self.delta).promise

    def rule(self, population: Population) -> Any:
        """Give the rule of the population's default solver."""
        return default_solver(population, self.delta).rule(population)

    def best_each(self, population: Population, offsets: ArrayLike, rng: np.random.Generator) -> Results:
        """Find the best arm once for each row of `offsets`, with the population's default solver."""
        return default_solver(population, self.delta).best_each(population, offsets, rng)
