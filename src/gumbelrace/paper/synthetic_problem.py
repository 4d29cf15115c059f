"""The paper's synthetic problem (section 5.1) and the methods that it compares.

p(X) is fixed, and every state has N rewards of one of three shapes, shifted and scaled to a standard
deviation σ that says how hard the problem is. The paper shows its p(X) in a picture only; ours is a
linear ramp, p ∝ 1..D.
"""

import functools
import threading
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gumbelrace.methods.base import Method
from gumbelrace.methods.betting import Betting
from gumbelrace.methods.bounds import Marginal, Normal, Serfling
from gumbelrace.methods.exact import Totals, compared
from gumbelrace.methods.lilucb import LilUCB
from gumbelrace.methods.race import Race
from gumbelrace.models.synthetic import normalised
from gumbelrace.paper.records import Problem
from gumbelrace.population.base import Floats
from gumbelrace.population.table import Table

SIZE = 100_000
ARMS = (2, 10, 100)
SCALES = (0.1, 1e-4, 1e-5)
Shape = Callable[[np.random.Generator, tuple[int, int]], Floats]
SHAPES: dict[str, Shape] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "uniform": lambda rng, shape: rng.uniform(size=shape),
    "lognormal": lambda rng, shape: rng.lognormal(0.0, 2.0, size=shape),
}
# From left to right in the paper's figures; two thirds of the time goes into 100 arms.
DELTAS = {2: (1e-3, 3e-3, 1e-2, 3e-2, 0.1), 10: (1e-3, 3e-3, 1e-2, 3e-2, 0.1), 100: (1e-3, 1e-2, 0.1)}
# The paper takes the estimated deviation for the true one.
PAPER_NORMAL = Normal(student=False)
METHODS: dict[str, Callable[[float], Method]] = {
    "lil'UCB": LilUCB,
    "Racing-EBS": lambda delta: Race(Serfling(), delta),
    "Racing-EBS, marginal": lambda delta: Race(Serfling(), delta, variance=Marginal()),
    "Racing-Normal": lambda delta: Race(PAPER_NORMAL, delta),
    "Racing-Normal, marginal": lambda delta: Race(PAPER_NORMAL, delta, variance=Marginal()),
    "Betting": Betting,
}


class PaperTable(Table):
    """A table on which a race goes on to its end, as in the paper: none turns to a scan before."""

    scan_speed = 1.0


class Prepared(NamedTuple):
    """A problem's rewards, and their exact sums."""

    population: PaperTable
    sums: Totals


def probabilities(arms: int) -> Floats:
    """Give p(X), a linear ramp."""
    ramp: Floats = np.arange(1.0, arms + 1.0)
    return ramp / float(ramp.sum())


def rewards(problem: Problem, seed: int, size: int = SIZE) -> Floats:
    """Draw the rewards of a problem; those of another scale are the same, scaled."""
    rng = np.random.default_rng([seed, problem.arms, list(SHAPES).index(problem.shape)])
    drawn = SHAPES[problem.shape](rng, (size, problem.arms))
    return normalised(drawn, np.log(probabilities(problem.arms)), problem.scale)


class Problems:
    """The problems of a study, made when first asked for; the last ones asked for are kept."""

    def __init__(self, seed: int, size: int, kept: int = 2) -> None:
        self._lock = threading.Lock()
        self._make = functools.lru_cache(kept)(functools.partial(_prepared, seed=seed, size=size))

    def __call__(self, problem: Problem) -> Prepared:
        """Give a problem; several threads may ask at once."""
        with self._lock:
            return self._make(problem)


def _prepared(problem: Problem, seed: int, size: int) -> Prepared:
    population = PaperTable(rewards(problem, seed, size))
    return Prepared(population, compared(population))
