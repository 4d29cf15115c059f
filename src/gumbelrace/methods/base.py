"""What all methods share: one signature, one outcome, one promise."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gumbelrace.core.random import Rng, as_generator, bits_of, check_generator
from gumbelrace.errors import InvalidArgument, NoPossibleArm, ShapeMismatch, UnknownRange
from gumbelrace.methods.estimates import Ended, Estimates, ended, estimated
from gumbelrace.methods.loop import Plan, answer_each, new_workspace, prepared
from gumbelrace.methods.shared import SharedWorkspace
from gumbelrace.methods.state import QUESTION, Question, RaceState, Results, new_results, part_of, put_noise
from gumbelrace.population.arrays import ByArm, by_name, floats
from gumbelrace.population.base import CODE, FINE, Floats, Population, Rewards, SharedPopulation
from gumbelrace.population.table import as_population

# Ctrl-C is heard between calls of a kernel; a call is given about this many seconds of draws.
SECONDS_A_CALL = 0.1

# Told of the method and the state in which its race ended, if somebody wants to know: who asks for the best
# arm once.
AT_THE_END: ContextVar[Callable[["Method", Any], None] | None] = ContextVar("AT_THE_END", default=None)

# What a question needs, for messages.
NEEDED = {Question.WINNER: "the best arm", Question.DRAW: "a draw", Question.ACCEPT: "a decision on a move"}
# Who finds winners answers every question; others were made for one.
ANSWERED_BY = {Question.WINNER: "", Question.DRAW: "Absorb(), ", Question.ACCEPT: "Penalty(), "}


@dataclass(frozen=True)
class Promise:
    """How wrong a method may be: its error is at most `delta`, for sure or under an assumption.

    Attributes
    ----------
    delta : float
        Bound on the probability that the arm returned is not the best; or, of a promise about the law, on
        the total variation between the law of the answer and the right one.
    assumption : str or None
        What the bound rests on; None if it is proved for all rewards.
    about : {"winner", "law"}
        What is promised: the answer that fits the noise, or only that answers have the right law.
    """

    delta: float
    assumption: str | None = None
    about: Literal["winner", "law"] = "winner"

    def __str__(self) -> str:
        """Give δ, and whether it is proved; of a law, what it rests on."""
        if self.about == "winner":
            return f"{self.delta:g} {'proved' if self.proved else 'assumed'}"
        within = "exact" if self.delta == 0.0 else f"law within {self.delta:g}"
        return within if self.proved else f"{within} if {self.assumption}"

    def under(self, assumption: str | None) -> "Promise":
        """Return the same promise that rests on one assumption more."""
        both = " and that ".join(filter(None, [self.assumption, assumption])) or None
        return replace(self, assumption=both)

    @property
    def proved(self) -> bool:
        """Whether the bound holds without an assumption."""
        return self.assumption is None

    def on(self, population: Population) -> "Promise":
        """Give what is promised about draws from a population, which may rest on more."""
        return self.under(population.assumption)


@dataclass(frozen=True)
class Outcome:
    """What a method found, what it took, and what it promised.

    Attributes
    ----------
    arm : int
        The arm found best.
    evaluations : int
        Rewards read.
    looks : int
        How often arms were compared before a decision (an exact scan looks 0 times).
    exhausted : bool
        Whether every reward of the arms still in the race was read: then the answer is exact among them.
    tied : bool
        Whether another arm has the same sum, up to rounding. Seen only if `exhausted`, or if all rewards
        of an arm are known to be the same.
    fraction : float
        Share of all rewards that was read; NaN in the midst of a step.
    promise : Promise
        How likely an error was; in the midst of a step, where nobody asks, nothing is promised.
    arm_names : tuple of str, or None
        The names of all arms, where they have names.
    law_error : float
        How far the law of the answer is off, by what was read, if the method is right in law only.
    ended : Ended or None
        What the race left, of arms that share their rows: `estimates` follow from it.
    """

    arm: int
    evaluations: int
    looks: int
    exhausted: bool
    tied: bool = False
    fraction: float = field(default=math.nan, compare=False)
    promise: Promise = field(default=Promise(1.0), compare=False)
    arm_names: tuple[str, ...] | None = field(default=None, compare=False)
    law_error: float = field(default=0.0, compare=False)
    ended: Ended | None = field(default=None, compare=False)

    @property
    def name(self) -> str | None:
        """The name of the arm, where arms have names."""
        return None if self.arm_names is None else self.arm_names[self.arm]

    @cached_property
    def estimates(self) -> Estimates | None:
        """The means of all arms and intervals for them; None of arms with rows of their own."""
        return None if self.ended is None else estimated(self.ended)

    @property
    def means(self) -> Floats | None:
        """The mean of each arm, see `Estimates`; None of arms with rows of their own."""
        return None if self.estimates is None else self.estimates.means

    @property
    def intervals(self) -> Floats | None:
        """Lowest and highest value that the mean of each arm may have, of shape (D, 2); see `Estimates`."""
        found = self.estimates
        return None if found is None else np.stack([found.low, found.high], axis=1)

    @property
    def runner_up(self) -> int | None:
        """The arm with the highest mean of all others; None if no other was read or is possible."""
        others = np.array([]) if self.means is None else np.where(np.isnan(self.means), -np.inf, self.means)
        others[self.arm : self.arm + 1] = -np.inf
        return int(others.argmax()) if (others > -np.inf).any() else None

    @property
    def gap(self) -> float:
        """By how much the mean of the arm exceeds that of the runner-up; NaN without one."""
        if self.means is None or self.runner_up is None:
            return math.nan
        return float(self.means[self.arm] - self.means[self.runner_up])

    def __repr__(self) -> str:
        """Show what there is; whether there is a tie only if there is one."""
        shown: dict[str, Any] = {"arm": self.arm if self.name is None else f"{self.arm} {self.name!r}"}
        shown |= {name: getattr(self, name) for name in ("evaluations", "looks", "exhausted")}
        shown |= {"tied": True} if self.tied else {}
        if not math.isnan(self.fraction):
            shown |= {"fraction": f"{self.fraction:.3g}", "promise": self.promise}
        return f"Outcome({', '.join(f'{name}={value}' for name, value in shown.items())})"

    def __str__(self) -> str:
        """Say in a few lines which arm is best, what was read, and how sure that is."""
        if math.isnan(self.fraction):
            return repr(self)
        tied = ", and another has the same sum" * self.tied
        ground = "proved" if self.promise.proved else f"assuming that {self.promise.assumption}"
        sure = f"wrong with a probability of at most {self.promise.delta:g}, {ground}"
        if self.promise.delta == 0.0:
            sure = "exact"
        looks = f"{self.looks:,} look{'' if self.looks == 1 else 's'}"
        read = f"{self.fraction:.2%} of the rewards read ({self.evaluations:,}), {looks}"
        best = f"best is {self._named(self.arm)}{self._mean(self.arm)}{tied}"
        return "\n".join([best, *self._next(), read, sure, *self._intervals()])

    def _next(self) -> list[str]:
        second = self.runner_up
        if second is None:
            return []
        return [f"next is {self._named(second)}{self._mean(second)}, {self.gap:.3g} less"]

    def _named(self, arm: int) -> str:
        return f"arm {arm}" + (f" ({self.arm_names[arm]})" if self.arm_names else "")

    def _intervals(self) -> list[str]:
        """Say how sure the intervals are, where some were shown."""
        if self.estimates is None or "(between" not in self._mean(self.arm) + "".join(self._next()):
            return []
        rests = "proved" if self.estimates.proved else "on the same assumption"
        return [f"all means lie in their intervals with a probability of {self.estimates.level:g}, {rests}"]

    def _mean(self, arm: int) -> str:
        """Give the mean of an arm and the interval in which it lies, as far as they are known."""
        found = self.estimates
        if found is None or math.isnan(found.means[arm]):
            return ""
        low, high = found.low[arm], found.high[arm]
        if not math.isfinite(high - low):
            return f", mean about {found.means[arm]:.4g}"
        between = f" (between {low:.4g} and {high:.4g})" if low < high else ""
        return f", mean {found.means[arm]:.4g}{between}"

    def of(self, population: Population, promise: Promise) -> "Outcome":
        """Return the same with what follows from where it was found."""
        fraction = self.evaluations / max(population.rewards, 1)
        return replace(self, fraction=fraction, promise=promise, arm_names=population.names)


def weakest(promises: Sequence[Promise]) -> Promise:
    """Give the promise that allows the most errors."""
    return max(promises, key=lambda promise: promise.delta)


class Asked(NamedTuple):
    """A question, and the temperature of a draw."""

    question: Question = Question.WINNER
    temperature: float = 1.0

    def put(self, state: RaceState) -> None:
        """Put the question where a race looks for it."""
        state.tally[QUESTION], state.temperature[0] = self.question, self.temperature


class Method(ABC):
    """Finds the best arm of a population: argmax of offset + sum of rewards."""

    #: Whether the method cannot work without a reward range.
    needs_range = False
    #: What to do where there is none.
    without_range: ClassVar[str] = "give reward_range=(low, high), or use Race(), which does not need it"
    #: What it can be asked.
    answers: ClassVar[frozenset[Question]] = frozenset(Question)
    #: Whether compiled code can ask it, by a `plan`.
    has_plan = True
    #: Whether it reads the same rows of all arms, where they share rows.
    shares_rows = True
    #: Whether it draws rows with replacement by their weights, and needs no head.
    picks_rows: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """What users know it by."""
        return type(self).__qualname__

    @property
    @abstractmethod
    def promise(self) -> Promise:
        """How wrong the method may be."""

    def promised(self, population: Population) -> Promise:
        """Give how wrong it may be on a population."""
        return self.promise.on(population)

    @abstractmethod
    def rule(self, population: Population) -> Any:
        """Give the rule of the race (see `rules`)."""

    def check_question(self, question: Question) -> None:
        """Refuse a question that the method cannot answer."""
        if question not in self.answers:
            given = " or ".join(NEEDED[answered] for answered in sorted(self.answers))
            raise InvalidArgument(
                f"{type(self).__name__} gives only {given}, and this needs {NEEDED[question]}; "
                f"use {ANSWERED_BY[question]}Betting(), Race() or Exact()"
            )

    def check_range(self, population: Population) -> None:
        """Refuse a population of which too little is known."""
        if self.needs_range and not population.knows_range:
            raise UnknownRange(
                f"{type(self).__name__} needs to know how large rewards can be; {self.without_range}"
            )

    @property
    def finds_winners(self) -> bool:
        """Whether its answers can be compared with exact ones: others are right in law only."""
        return Question.WINNER in self.answers

    def best(self, population: Rewards, offset: ByArm | None = None, rng: Rng = None) -> Outcome:
        """Find the best arm.

        Parameters
        ----------
        population : Population, DiskTable, or array_like of shape (N, D)
            The rewards; an array is taken as a `table`.
        offset : array_like of shape (D,), optional
            Added to each arm's sum of rewards; -inf rules an arm out.
        rng : numpy.random.Generator, int, or None
            Chooses the rows: a generator, a seed, or None for no seed.
        """
        rewards = as_population(population)
        offset = by_name(offset, rewards.names, "offset")
        promise, kept = self.promised(rewards), list[Ended]()

        def keep(method: Method, workspace: Any) -> None:
            if isinstance(workspace, SharedWorkspace):
                kept.append(ended(workspace, rewards.averaged, promise.delta, method.margins(workspace)))

        before = AT_THE_END.set(keep)
        try:
            found = self.answer(Asked(), rewards, offset, as_generator(rng))
        finally:
            AT_THE_END.reset(before)
        return replace(found.of(rewards, promise), ended=kept[-1] if kept else None)

    def margins(self, workspace: SharedWorkspace) -> Floats | None:
        """Give how far the mean of each arm may be off by the method's own bound, if there is one.

        It is asked at the end of a race; known ranges of rewards give margins that are proved.
        """
        return None

    def answer(
        self,
        asked: Asked,
        population: Population,
        offset: ByArm | None,
        rng: np.random.Generator,
    ) -> Outcome:
        """Answer a question once."""
        offsets = np.zeros(population.arms) if offset is None else np.array(floats(offset, "offset"))
        found = self.answer_each(asked, population, offsets[None], rng)
        return Outcome(
            int(found.arms[0]),
            int(found.evaluations[0]) + population.read_before,
            int(found.looks[0]),
            bool(found.exhausted[0]),
            bool(found.tied[0]),
            law_error=float(found.law_error[0]),
        )

    def answer_each(
        self, asked: Asked, population: Population, offsets: Floats, rng: np.random.Generator
    ) -> Results:
        """Answer a question once for each row of `offsets`, to which the noise is added.

        Who finds winners answers every question: with the noise added, it asks for the winner.
        """
        if asked.question != Question.WINNER:
            checked_offsets(offsets, population.arms)
            with check_generator(rng).bit_generator.lock:
                put_noise(*asked, offsets, bits_of(rng))
        return self.best_each(population, offsets, rng)

    def best_each(
        self, population: Population | ArrayLike, offsets: ArrayLike, rng: np.random.Generator
    ) -> Results:
        """Find the best arm once for each row of `offsets`; return an array of each result.

        Evaluations are those of the races: what a population has read when it was made (`read_before`) was
        read once, however many calls there are.
        """
        return self._answer_each(Asked(), as_population(population), offsets, rng)

    def _answer_each(
        self, asked: Asked, population: Population, offsets: ArrayLike, rng: np.random.Generator
    ) -> Results:
        self.check_question(asked.question)
        rng = check_generator(rng)
        offsets = checked_offsets(offsets, population.arms)
        self.check_range(population)
        population.draw_order(rng)
        results = new_results(len(offsets))
        known = population.known
        if known is not None:
            offsets = checked_offsets(offsets + known.sums, population.arms)
        with rng.bit_generator.lock:
            self._solve(asked, population, offsets, rng, results)
        return results

    def _solve(
        self,
        asked: Asked,
        population: Population,
        offsets: Floats,
        rng: np.random.Generator,
        results: Results,
    ) -> None:
        with self.plan(asked, population, rng) as plan:
            for part in timed_slices(len(offsets)):
                answer_each(plan, offsets[part], part_of(results, part))
                if plan.source.fault[CODE] != FINE:
                    return

    def plan(
        self,
        asked: Asked,
        population: Population,
        rng: np.random.Generator,
        rows: np.random.Generator | None = None,
    ) -> AbstractContextManager[Plan]:
        """Lend what compiled code needs to have a question answered, again and again.

        The noise comes from `rng`; `rows` chooses the rows, if it is given.
        """
        self.check_question(asked.question)
        self.check_range(population)
        return self._planned(asked, population, rng, rng if rows is None else rows)

    @contextmanager
    def _planned(
        self,
        asked: Asked,
        population: Population,
        rng: np.random.Generator,
        rows: np.random.Generator,
    ) -> Iterator[Plan]:
        shared = self.shares_rows and isinstance(population, SharedPopulation)
        # Sources raise what went wrong as they close; orders must hear of it, not to be lent again.
        with population.order(shared) as order, population.source(self.needs_range) as source:
            bits = bits_of(rng), bits_of(rows)
            workspace = new_workspace(self.rule(population), source, order, bits, population.sizes)
            plan, _kept_alive = prepared(workspace)
            asked.put(plan.state)
            yield plan
            if (keep := AT_THE_END.get()) is not None and source.fault[CODE] == FINE:
                keep(self, workspace)


def timed_slices(draws: int, count: int = 1) -> Iterator[slice]:
    """Cut a batch into parts that take a kernel about SECONDS_A_CALL each, the first of `count`."""
    first = 0
    while first < draws:
        started = time.perf_counter()
        yield slice(first, first + count)
        elapsed = time.perf_counter() - started
        first += count
        count = max(1, int(count * min(16.0, SECONDS_A_CALL / max(elapsed, 1e-9))))


def checked_delta(delta: Any) -> float:
    """Return `delta` as a float if it is a probability strictly between 0 and 1."""
    if not (isinstance(delta, Real) and 0.0 < float(delta) < 1.0):
        raise InvalidArgument(f"delta is {delta!r}; it must lie strictly between 0 and 1")
    return float(delta)


def checked_method(method: Any) -> Method:
    """Return a method, or say what to write instead."""
    if isinstance(method, Method):
        return method
    if isinstance(method, type) and issubclass(method, Method):
        raise InvalidArgument(f"the method is the class {method.__name__}; write {method.__name__}()")
    raise InvalidArgument(
        f"the method is {method!r}; give a method, for example gumbelrace.Race(delta=0.05)"
    )


def checked_offsets(offsets: ArrayLike, arms: int) -> Floats:
    """Return offsets of shape (draws, arms), or say what is wrong with them."""
    checked = np.ascontiguousarray(floats(offsets, "offset"))
    if checked.ndim != 2 or checked.shape[1] != arms:
        raise ShapeMismatch(
            f"the offset has shape {checked.shape[1:]}; it must be ({arms},), one entry for each arm"
        )
    if np.isnan(checked).any() or np.isposinf(checked).any():
        raise InvalidArgument("an offset is NaN or +inf; give numbers, or -inf to rule an arm out")
    if (checked == -np.inf).all(axis=1).any():
        raise NoPossibleArm("every offset is -inf; at least one arm must be possible")
    return checked
