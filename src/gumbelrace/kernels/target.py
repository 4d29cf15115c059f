"""What kernels on continuous parameters share: points, log priors, and decisions that are counted.

A target is p(x) ∝ p0(x) ∏ f_n(x): the log prior log p0(x) is a function of a point, the likelihood a
function that takes D points, an array of shape (D, d), and gives the population of D arms whose reward of
row n and arm i is log f_n(points[i]).
"""

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gumbelrace.core.random import check_generator
from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.kernels.base import Info
from gumbelrace.kernels.checks import try_out_prior
from gumbelrace.methods.base import Asked, Method
from gumbelrace.methods.state import PROPOSED, Question
from gumbelrace.population.arrays import floats
from gumbelrace.population.base import Floats, Population
from gumbelrace.population.table import as_population

Likelihood = Callable[[Floats], Population | ArrayLike]
LogPrior = Callable[[Floats], float]


class Position(NamedTuple):
    """State of a chain on a continuous parameter.

    Attributes
    ----------
    position : ndarray of shape (d,)
        The parameter.
    """

    position: Floats


def position_of(position: Any, kernel: Any) -> Floats:
    """Return a position to start from: that given, else the centre of the likelihood's expansion."""
    if position is None:
        position = getattr(getattr(kernel.likelihood, "control", None), "centre", None)
    if position is None:
        raise InvalidArgument(
            f"{type(kernel).__name__} does not know where to start; "
            "write run(kernel, kernel.start(position), steps=...)"
        )
    return np.array(checked_point(position))


class Decisions:
    """The decisions of one step: asks the method, and counts what was read."""

    def __init__(self, method: Method, rng: np.random.Generator) -> None:
        self.method, self.rng = method, check_generator(rng)
        self.evaluations = self.rewards = self.looks = 0
        self.law_error = 0.0  # the largest

    def answer(self, asked: Asked, population: Population, offset: Floats) -> int:
        outcome = self.method.answer(asked, population, offset, self.rng)
        self.evaluations += outcome.evaluations
        self.rewards += population.rewards
        self.looks += outcome.looks
        self.law_error = max(self.law_error, outcome.law_error)
        return outcome.arm

    def draw(self, population: Population, log_prior: Floats, temperature: float = 1.0) -> int:
        return self.answer(Asked(Question.DRAW, temperature), population, log_prior)

    def prefers(self, likelihood: Likelihood, x: Floats, y: Floats, offset: Sequence[float]) -> bool:
        """Whether the point y beats the point x; an impossible y does not, and nothing is read."""
        if offset[PROPOSED] == -np.inf:
            return False
        population = checked_population(likelihood(np.stack([x, y])), arms=2)
        return self.answer(Asked(Question.WINNER), population, np.array(offset)) == PROPOSED

    def info(self, acceptance: float) -> Info:
        return Info(self.evaluations, self.rewards, self.looks, acceptance, self.law_error)


def checked_point(position: Any) -> Floats:
    """Return a position as an array of shape (d,), or say what is wrong with it."""
    point = floats(position, "the position")
    if point.ndim != 1 or point.size == 0:
        raise ShapeMismatch(
            f"the position has shape {point.shape}; it must be (d,): write a single number x as [x]"
        )
    if not np.isfinite(point).all():
        raise InvalidArgument(f"the position {point} is not finite; mend the start or the proposal")
    return point


def checked_population(given: Any, arms: int) -> Population:
    """Return what a likelihood gave, an array as a table, if it has as many arms as were asked for."""
    if given is None or isinstance(given, str | Real) or callable(given):
        raise InvalidArgument(
            f"the likelihood gave a {type(given).__name__}; it must give a population, for example "
            "gumbelrace.compiled(...), or an array of shape (rows, points)"
        )
    population = as_population(given)
    if population.arms != arms:
        raise ShapeMismatch(
            f"the likelihood gave a population of {population.arms} arms; it must have {arms}, "
            "one for each point"
        )
    return population


def prior_at(log_prior: LogPrior | None, point: Floats) -> float:
    """Evaluate a log prior (0 if there is none): a number, or -inf where the point is impossible."""
    try_out_prior(log_prior, point)
    value = 0.0 if log_prior is None else _number(log_prior(point), point)
    if np.isnan(value) or value == np.inf:
        raise InvalidArgument(f"the log prior of {point} is {value}; it must be finite, or -inf")
    return value


def _number(given: Any, point: Floats) -> float:
    value = np.asarray(given)
    if value.ndim > 0 or value.dtype.kind not in "fiub" or np.ma.is_masked(given):
        what = f"an array of shape {value.shape}" if value.ndim else repr(given)
        raise InvalidArgument(f"the log prior of {point} is {what}; it must be one real number")
    return float(value)


def prior_of_current(log_prior: LogPrior | None, point: Floats) -> float:
    """Evaluate the log prior of where a chain is, which must be possible."""
    value = prior_at(log_prior, point)
    refuse_start(value, point)
    return value


def refuse_start(log_prior: float, point: Floats) -> None:
    if log_prior == -np.inf:
        raise InvalidArgument(
            f"the log prior of the current position {point} is -inf; start where it is finite"
        )
