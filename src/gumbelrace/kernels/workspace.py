"""Slots of the arms between which a kernel has a method decide, and what compiled code does with them."""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import as_written, call, part
from gumbelrace.core.packed import pack, unpack
from gumbelrace.core.random import NOTHING_AHEAD
from gumbelrace.kernels.checks import try_out_prior
from gumbelrace.kernels.target import Decisions, LogPrior, checked_population, prior_at
from gumbelrace.methods.base import Asked, Method
from gumbelrace.methods.exact import Exact
from gumbelrace.methods.state import AT_ONCE, EVALUATIONS, LEADER, LOOKS, new_state
from gumbelrace.population.base import CODE, FINE, Floats
from gumbelrace.population.callback import Hooks
from gumbelrace.population.likelihood import COST, KNOWN, LOST, MOST, PRIOR, READ, SLOT, Slots, bare_slots

Indices = NDArray[np.int64]
Entry = tuple[int, int]  # addresses of a function and of what it takes


class Target(NamedTuple):
    """What decides between parameters.

    A likelihood gives the population of some parameters. If it `has_slots`, ``slots(arms, dimensions)``
    gives those that need no Python.
    """

    likelihood: Any
    log_priors: Sequence[LogPrior | None]  # of each model; None: flat
    method: Method
    form: Callable[[list[Floats]], Any] = list  # makes of parameters what the likelihood takes
    read_for: Method | None = None  # the method that says whether there is a head, if it is another one

    @property
    def has_slots(self) -> bool:
        """Whether what is known of parameters, and the answer, need no Python."""
        return self.method.has_plan and getattr(self.likelihood, "has_slots", False)

    @property
    def read(self) -> Any:
        """The likelihood as the method reads it: without a head, if it draws rows by their weights."""
        needs_no_head = (self.read_for or self.method).picks_rows
        return (
            getattr(self.likelihood, "without_head", self.likelihood) if needs_no_head else self.likelihood
        )

    @property
    def is_compiled(self) -> bool:
        return self.has_slots and self.compiled_prior is not None

    @property
    def compiled_prior(self) -> Any:
        """The one log prior of all models, if it is compiled; else None."""
        first = self.log_priors[0]
        same = all(log_prior is first for log_prior in self.log_priors)
        return (flat if first is None else first) if same and hasattr(first or flat, "py_func") else None


class Contest(NamedTuple):
    """Slots, and all that compiled code needs to have a method decide between them."""

    rooms: Floats
    numbers: Floats
    models: Indices
    prior: Entry
    known: Entry
    answer: Entry
    offset: Floats
    tally: Indices
    low: Floats
    high: Floats
    fault: Indices
    rewards: Indices  # as many as an exact decision reads, but for those of the head
    law_error: Floats  # of the answer, by what was read
    ahead: Indices  # cursor of the rows that were drawn ahead


class Workspace:
    """Slots for the arms of a question, their prior, and who answers; `examples` has one of each model."""

    def __init__(
        self, asked: Asked, target: Target, arms: int, examples: Sequence[Floats], hooks: Hooks
    ) -> None:
        self._asked, self._target, dimensions = asked, target, np.array([len(x) for x in examples])
        made = target.read.slots if target.has_slots else bare_slots
        self.slots: Slots = made(arms, dimensions)
        self._prior = self._prior_entry(examples, hooks)
        self._known = self.slots.known.address, self.slots.packed.address
        if self.slots.population is None:
            self._answer = hooks.entry(self._decide), 0
            self._state, self._rewards = new_state(arms), np.zeros(1, np.int64)

    @contextmanager
    def contest(self, rng: np.random.Generator) -> Iterator[Contest]:
        """Lend what compiled code needs, the noise of answers coming from `rng`."""
        population, self._rng = self.slots.population, rng
        if population is None:
            sides = np.zeros((2, len(self.slots.models)))
            counts = np.zeros(3, np.int64), self._rewards
            of_python = self._state.offset, self._state.tally, *sides, *counts, self._state.law_error
            yield self._contest(self._answer, *of_python, NOTHING_AHEAD)
            return
        rewards = np.array([population.rewards])
        with self._target.method.plan(self._asked, population, rng) as plan:
            state, source = plan.state, plan.source
            of_plan = state.offset, state.tally, source.low, source.high, source.fault, rewards
            cursor = population.rows.cursor
            yield self._contest((plan.address, plan.words), *of_plan, state.law_error, cursor)

    def _contest(self, answer: Entry, *arrays: Any) -> Contest:
        return Contest(*self.slots[:3], self._prior, self._known, answer, *arrays)

    def _prior_entry(self, examples: Sequence[Floats], hooks: Hooks) -> Entry:
        slots, log_prior = self.slots, self._target.compiled_prior
        if log_prior is None:
            return hooks.of_slot(self._put_prior), 0
        for example in examples:
            try_out_prior(log_prior, example)
        self._packed = pack((slots.parameters, slots.numbers, slots.models, slots.dimensions))
        return _prior(log_prior, self._packed.type).address, self._packed.address

    def _put_prior(self, slot: int) -> None:
        log_prior = self._target.log_priors[self.slots.models[slot]]
        self.slots.numbers[slot, PRIOR] = prior_at(log_prior, self.slots.parameter(slot))

    def _decide(self) -> None:
        """Answer the question in Python."""
        target, tally, arms = self._target, self._state.tally, len(self.slots.models)
        points = target.form([self.slots.parameter(slot) for slot in range(arms)])
        decisions = Decisions(Exact() if tally[AT_ONCE] else target.method, self._rng)
        population = checked_population(target.read(points), arms)
        tally[LEADER] = decisions.answer(self._asked, population, self._state.offset.copy())
        tally[EVALUATIONS], tally[LOOKS] = decisions.evaluations, decisions.looks
        self._state.law_error[0] = decisions.law_error
        self._rewards[0] = decisions.rewards


@numba.njit
def flat(theta):  # type: ignore[no-untyped-def]
    return 0.0


@functools.lru_cache(maxsize=64)
def _prior(log_prior: Any, data_type: Any) -> Any:
    @numba.cfunc(SLOT)
    def put_prior(context, slot):  # type: ignore[no-untyped-def]
        parameters, numbers, models, dimensions = unpack(context, data_type)
        numbers[slot, PRIOR] = log_prior(parameters[slot, : dimensions[models[slot]]])
        return 0

    return put_prior


@part
def put(contest: Contest, slot: int) -> bool:
    """Bring a slot up to date with its parameter; False after a fault."""
    numbers = contest.numbers[slot]
    numbers[KNOWN] = numbers[READ] = numbers[LOST] = numbers[COST] = 0.0
    numbers[MOST] = -1.0
    numbers[PRIOR] = np.nan  # stays if the prior raises an exception
    if call(contest.prior[0], (contest.prior[1], slot)) != 0:
        return False
    if numbers[PRIOR] == -np.inf:
        return True  # nothing is read
    numbers[KNOWN] = np.nan
    cost = call(contest.known[0], (contest.known[1], slot))
    numbers[COST] = cost
    return bool(numbers[PRIOR] + numbers[KNOWN] + numbers[READ] < np.inf)


@part
def copy_slot(contest: Contest, slot: int, other: Contest, place: int) -> None:
    """Copy a slot, with what is known of it, into one of `other`."""
    for room in range(contest.rooms.shape[0]):
        for i in range(contest.rooms.shape[2]):
            other.rooms[room, place, i] = contest.rooms[room, slot, i]
    for i in range(contest.numbers.shape[1]):
        other.numbers[place, i] = contest.numbers[slot, i]
    other.models[place] = contest.models[slot]


@as_written
def ask(contest: Contest) -> None:
    """Put what is known of all slots into the offsets.

    What they share of the rewards of the head cancels before anything is added to it.
    """
    numbers, base = contest.numbers, 0
    while base < len(numbers) - 1 and numbers[base, PRIOR] + numbers[base, READ] == -np.inf:
        base += 1
    for arm in range(len(numbers)):
        contest.offset[arm] = numbers[arm, PRIOR] + numbers[arm, KNOWN]
        if numbers[arm, READ] == -np.inf:
            contest.offset[arm] = -np.inf
        else:
            lost = numbers[arm, LOST] - numbers[base, LOST]
            contest.offset[arm] += (numbers[arm, READ] - numbers[base, READ]) + lost
        if numbers[arm, MOST] >= 0.0:
            contest.low[arm], contest.high[arm] = -numbers[arm, MOST], numbers[arm, MOST]


@part
def decide(contest: Contest, exactly: bool, counts: Indices) -> bool:
    """Have the question answered, and count what it took; False after a fault."""
    contest.tally[AT_ONCE] = exactly
    if call(contest.answer[0], (contest.answer[1],)) != 0 or contest.fault[CODE] != FINE:
        return False
    # Rewards of the head count for every decision that rests on them, read again or not.
    head = 0
    for arm in range(len(contest.numbers)):
        head += int(contest.numbers[arm, COST])
    counts[0] += contest.tally[EVALUATIONS] + head
    counts[1] += contest.rewards[0] + head
    counts[2] += contest.tally[LOOKS]
    return True
