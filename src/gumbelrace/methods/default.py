"""Which method to use if the user does not say: one rule for `sample`, `best`, `audit` and all kernels.

`method` alone: that one. `delta` alone: a race, which finds winners and is wrong with probability δ at
most. Both: an error, since a method has a δ of its own. Neither: it depends on what is asked.

- The best arm (`best`, `Slice`, temperature 0): a race, by `Betting` where a reward range is known, else by
  the normal law; so too for `sample` and `audit`, whose draws then agree with exact ones.
- A draw along a chain: `Absorb`. A decision on a move: `Penalty`. They need no winner, so that near ties
  cost nothing, and the errors of races, which inflate a chain's variance, are not made.
- But `Thinning` for a move, which is exact, where an expansion knows the remainder of its rows and a move
  between points of the Laplace law that rings let pass costs fewer rows than `Penalty` reads at least. That
  is tried out when a kernel is made, and holds wherever the chain goes.
- But where arms have rows of their own, or any row may be -inf, means of a few rows tell little: a race.
- `GraphGibbs` knows more: `Thinning` where the potential has bounds, which is exact, and else a race
  (`kernels.graph.workspace.default_method`).

Means of a few rows tell nothing of rare rows either that carry the sum. Races by the normal law are as
blind to them. What helps is knowledge: weights of the rows, which expansions have from their pilot and
populations take as ``weights=``; or a reward range, which bounds what can hide. Where there is neither, the
promise says what it assumes, and chains are checked when they end, if 2% of what was read pays for it.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gumbelrace.errors import FactorFailed, InvalidArgument, InvalidReward
from gumbelrace.methods.absorb import Absorb
from gumbelrace.methods.base import Asked, Method, Promise, checked_delta, checked_method
from gumbelrace.methods.betting import Betting
from gumbelrace.methods.exact import Exact
from gumbelrace.methods.loop import Plan
from gumbelrace.methods.penalty import Penalty
from gumbelrace.methods.race import Race
from gumbelrace.methods.state import Question, Results
from gumbelrace.methods.thinning import Thinning, rings_of
from gumbelrace.population.base import Floats, Population, SharedPopulation
from gumbelrace.population.table import as_population

# δ of decisions along a chain, such that means and variances are within 1% (benchmarks/chain_errors.py).
CHAIN_DELTA, CHAIN_DELTA_BY_NORMAL_LAW = 1e-3, 1e-5
# δ of a single decision.
SINGLE_DELTA = 0.05


def race_of(population: Population, delta: float = SINGLE_DELTA) -> Method:
    """Give the race that makes a single decision."""
    return Default(delta, delta).where(population.knows_range)


class OfPopulation(Method):
    """A method that leaves every population to another one, which depends on it."""

    @abstractmethod
    def of(self, population: Population, temperature: float = 1.0) -> Method:
        """Give the method of a population."""

    def promised(self, population: Population) -> Promise:
        """Give what the population's method promises."""
        return self.of(population).promised(population)

    def rule(self, population: Population) -> Any:
        """Give the rule of the population's method."""
        return self.of(population).rule(population)

    def plan(
        self,
        asked: Asked,
        population: Population,
        rng: np.random.Generator,
        rows: np.random.Generator | None = None,
    ) -> AbstractContextManager[Plan]:
        """Lend the plan of the population's method."""
        return self.of(population, asked.temperature).plan(asked, population, rng, rows)


@dataclass(frozen=True, repr=False)
class Default(OfPopulation):
    """The default method of each population: for kernels, which meet a new one at every decision.

    Errors add up along a chain: a δ that is fine for a single draw is not small here.

    Parameters
    ----------
    delta : float
        Bound on the probability of a wrong decision where it is proved, by `Betting`.
    by_normal_law : float
        The same for ``Race()``, which errs more than it says where means of few rows are skewed.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> rng = np.random.default_rng(0)
    >>> Default(delta=0.01).best(gr.table(rng.normal([0.0, 1.0], 1.0, (1000, 2))), None, rng).arm
    1
    """

    delta: float = CHAIN_DELTA
    by_normal_law: float = CHAIN_DELTA_BY_NORMAL_LAW

    def __post_init__(self) -> None:
        for name in ("delta", "by_normal_law"):
            object.__setattr__(self, name, checked_delta(getattr(self, name)))

    def __repr__(self) -> str:
        """Say in words what was chosen: users cannot write the class."""
        law = (
            "" if self.by_normal_law == self.delta else f"; {self.by_normal_law:g} where no range is known"
        )
        return f"default method (delta={self.delta:g}{law})"

    @property
    def name(self) -> str:
        """What users know it by: they cannot write the class."""
        return "default method"

    @property
    def promise(self) -> Promise:
        """The weaker of the two promises, whatever the population: `promised` says which is made."""
        return replace(Race().promise, delta=max(self.delta, self.by_normal_law))

    def best_each(
        self, population: Population | ArrayLike, offsets: ArrayLike, rng: np.random.Generator
    ) -> Results:
        """Find the best arm once for each row of `offsets`, with the population's default method."""
        rewards = as_population(population)
        return self.of(rewards).best_each(rewards, offsets, rng)

    def where(self, knows_range: bool) -> Method:
        """Give `Betting`, which is proved, where a reward range is known; else ``Race()``."""
        return Betting(self.delta) if knows_range else Race(delta=self.by_normal_law)

    def of(self, population: Population, temperature: float = 1.0) -> Method:
        """Give the race of a population."""
        return self.where(population.knows_range)


@dataclass(frozen=True, repr=False)
class DefaultInLaw(OfPopulation):
    """The default method of draws and of moves along a chain: right in law, without finding winners.

    Parameters
    ----------
    question : Question
        DRAW or ACCEPT.
    rings_are_few : bool
        Whether `Thinning` decides, where a reward range is known.

    Examples
    --------
    >>> DefaultInLaw(Question.ACCEPT)
    default method (Penalty)
    """

    question: Question
    rings_are_few: bool = False

    picks_rows = True

    def __repr__(self) -> str:
        """Say in words what was chosen: users cannot write the class."""
        return self.name

    @property
    def name(self) -> str:
        """What users know it by."""
        return f"default method ({self._method.name})"

    @property
    def answers(self) -> frozenset[Question]:  # type: ignore[override]
        """The question that it is for."""
        return frozenset({self.question})

    @property
    def promise(self) -> Promise:
        """What is promised of populations with which nothing is wrong."""
        return self._method.promise

    def answer_each(
        self, asked: Asked, population: Population, offsets: Floats, rng: np.random.Generator
    ) -> Results:
        """Answer a question once for each row of `offsets`, with the population's default method."""
        return self.of(population, asked.temperature).answer_each(asked, population, offsets, rng)

    @property
    def _method(self) -> Method:
        return Thinning() if self.rings_are_few else self._by_means

    @property
    def _by_means(self) -> Method:
        return Absorb() if self.question == Question.DRAW else Penalty()

    def of(self, population: Population, temperature: float = 1.0) -> Method:
        """Give the method of a population, a race where means of a few rows tell little."""
        means_tell = isinstance(population, SharedPopulation) and not population.may_be_impossible
        if not means_tell or temperature == 0.0:  # a draw is the best arm then
            return Default().of(population)
        return self._method if population.knows_range else self._by_means


def chain_method(
    delta: float | None,
    method: Method | None,
    question: Question,
    moves: Callable[[], Sequence[SharedPopulation]] = list,
) -> Method:
    """Give the method that a user has asked for, of a chain's decisions; `moves` gives typical ones."""
    if delta is not None or method is not None or question == Question.WINNER:
        chosen = chosen_method(delta, method)
        if isinstance(chosen, Thinning):
            check_bounds(moves)
        return chosen
    return DefaultInLaw(question, question == Question.ACCEPT and rings_are_few(moves))


def rings_are_few(moves: Callable[[], Sequence[SharedPopulation]]) -> bool:
    """Whether typical moves cost `Thinning` fewer rows than `Penalty`; not if none is known."""
    least = Penalty().least_rows
    try:
        few = Thinning().rows_a_move(moves(), least) < least
    except (FactorFailed, InvalidReward):
        return False  # where no proposal goes, log factors need not be numbers
    return few and check_bounds(moves)


def check_bounds(moves: Callable[[], Sequence[SharedPopulation]]) -> bool:
    """Read all rows of a typical move once: rings may be too few to notice a bound that does not hold.

    False where there is none, or log factors are not numbers there.
    """
    try:
        typical = [move for move in moves() if move.knows_range]
        if typical:
            Exact().best(max(typical, key=rings_of), None, np.random.default_rng(0))
        return bool(typical)
    except (FactorFailed, InvalidReward):
        return False


def chosen_method(delta: float | None, method: Method | None, default: Method | None = None) -> Method:
    """Give the method that a user has asked for; the default one is the race of a chain, unless given.

    Examples
    --------
    >>> chosen_method(0.01, None)
    default method (delta=0.01)
    """
    if method is None:
        return (default or Default()) if delta is None else Default(delta, delta)
    if delta is not None:
        raise InvalidArgument(f"give delta or method, not both{_example(checked_method(method), delta)}")
    return checked_method(method)


def _example(method: Method, delta: float) -> str:
    """Show the same method at another δ, if it has one, as a user would write it."""
    if isinstance(method, Default | DefaultInLaw):
        return ": leave method out"
    if not is_dataclass(method) or all(item.name != "delta" for item in fields(method)):
        return f": {type(method).__name__} has no delta of its own"
    other = replace(method, delta=delta)
    shown = [item for item in fields(other) if item.name == "delta" or not _is_default(other, item)]
    options = ", ".join(f"{item.name}={getattr(other, item.name)!r}" for item in shown)
    return f": write method={type(method).__name__}({options})"


def _is_default(method: Method, item: Field[Any]) -> bool:
    default = item.default if item.default_factory is MISSING else item.default_factory()
    return bool(getattr(method, item.name) == default)


def single_method(delta: float | None, method: Method | None) -> Method:
    """Give the method that a user has asked for, of a single decision."""
    return chosen_method(delta, method, Default(SINGLE_DELTA, SINGLE_DELTA))
