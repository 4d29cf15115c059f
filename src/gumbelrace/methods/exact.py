"""The exact scan: the race that gives up at once and reads everything.

Who checks others adds up what arms differ by: each row's rewards, reduced by that of one arm, the
reference. What all arms share of a row, however large, is gone before anything is added up: sums are as
exact as the differences are small.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import call, kernel, part
from gumbelrace.core.orders import name_rows, rewind_first
from gumbelrace.core.random import bits_of
from gumbelrace.methods import rules
from gumbelrace.methods.base import Method, Promise
from gumbelrace.methods.independent import READING, OwnRows, forget, new_own_rows
from gumbelrace.methods.reading import FEW_ADDITIONS, PIECE, ROUNDING, new_block, new_rows, reduced, total
from gumbelrace.methods.rules import implements
from gumbelrace.methods.state import (
    ALIVE,
    ARMS,
    LEADER,
    RaceState,
    add,
    admit,
    drop_ruled_out,
    new_state,
    reset,
)
from gumbelrace.population.base import (
    CODE,
    FINE,
    IMPOSSIBLE,
    Floats,
    Population,
    SharedPopulation,
    Source,
    read,
)


class Differences(NamedTuple):
    """What is known of the differences beside their sums, and room to read rewards."""

    sizes: Floats  # of each arm, the sum of its differences without their sign
    shared: Floats  # the sum of the reference's own rewards
    rows: NDArray[np.int64]
    rewards: Floats  # indexed [arm, column]


def new_differences(source: Source) -> Differences:
    """Make room; rewards that lie in memory are used where they are."""
    rewards = source.direct if len(source.direct) else new_block(source.arms, source.chunk)
    return Differences(np.zeros(source.arms), np.zeros(1), new_rows(source), rewards)


@part
def add_up_differences(differences: Differences, state: RaceState, source: Source, size: int) -> None:
    """Add up the differences of all rows, of every arm that turns out to be possible."""
    in_memory = len(source.direct) > 0
    step = PIECE if in_memory else source.chunk
    state.tally[LEADER] = state.arms[0]
    for first in range(0, size, step):
        count = min(step, size - first)
        if not in_memory and not read_next(differences, state, source, first, count):
            return
        if state.tally[ALIVE] == 0:
            return
        keep_reference_possible(differences, state)
        add_columns(differences, state, first if in_memory else 0, count)


@part
def read_next(differences: Differences, state: RaceState, source: Source, first: int, count: int) -> bool:
    """Read the rows from `first` on, and drop the arms that show a -inf."""
    if state.tally[ALIVE] == 0:
        return False
    for i in range(count):
        differences.rows[i] = first + i
    name_rows(source.tail, differences.rows, count)
    alive = state.tally[ALIVE]
    if read(source, differences.rows, count, state.arms, alive, differences.rewards, 0) == 0:
        return False
    if source.verify:
        drop_ruled_out(state, source)
    return True


@part
def keep_reference_possible(differences: Differences, state: RaceState) -> None:
    """Make the first arm the reference, if the one before has been dropped."""
    new = state.arms[0]
    if new == state.tally[LEADER]:
        return
    state.tally[LEADER] = new
    total_of_new, lost_of_new = state.sums[new], state.lost[new]
    size_of_new = differences.sizes[new]
    differences.shared[0] += total_of_new + lost_of_new
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        add(state, arm, -total_of_new)
        state.lost[arm] -= lost_of_new
        differences.sizes[arm] += size_of_new
    differences.sizes[new] = 0.0  # itself less itself


@part
def add_columns(differences: Differences, state: RaceState, first: int, count: int) -> None:
    """Add up the differences in a few columns."""
    rewards, reference = differences.rewards, state.tally[LEADER]
    differences.shared[0] += total(rewards, reference, first, count, 0.0)
    for a in range(1, state.tally[ALIVE]):
        arm = state.arms[a]
        difference, size = total_difference(rewards, arm, reference, first, count)
        add(state, arm, difference)
        differences.sizes[arm] += size


@part
def total_difference(
    rewards: Floats, arm: int, reference: int, first: int, count: int
) -> tuple[float, float]:
    """Sum the differences in rewards[arm, first:first + count], and their sizes without sign."""
    j, r, result, size = np.uint64(arm), np.uint64(reference), 0.0, 0.0
    for i in range(np.uint64(first), np.uint64(first + count)):
        difference = reduced(rewards[j, i], rewards[r, i])
        result += difference
        size += abs(difference)
    return result, size


class Scan(NamedTuple):
    """A rule that reads everything."""

    keeps: bool = False
    patient: bool = False

    def working_memory(self, arms: int) -> int:
        """Nothing is needed."""
        return 0


@implements(rules.begin, Scan)
def _begin(rule: Scan, workspace: Any) -> None:
    return None


@implements(rules.next_look, Scan)
def _next_look(rule: Scan, workspace: Any, arm: int) -> int:
    return 0


@implements(rules.judge, Scan)
def _judge(rule: Scan, workspace: Any) -> None:
    return None


@dataclass(frozen=True)
class Exact(Method):
    """Read every reward: the answer is exact, and the cost is what the other methods save.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> population = gr.table(np.array([[0.0, 1.0], [0.5, 1.0], [9.0, 1.0]]))
    >>> gr.Exact().best(population, None, np.random.default_rng(0))
    Outcome(arm=0, evaluations=6, looks=0, exhausted=True, fraction=1, promise=0 proved)
    """

    @property
    def promise(self) -> Promise:
        """No error at all."""
        return Promise(0.0)

    def rule(self, population: Population) -> Scan:
        """Give the rule that reads everything."""
        return Scan()


class Totals(NamedTuple):
    """Sums of the rewards of every arm, less a part that all arms share; -inf for impossible arms."""

    sums: Floats
    rounding: Floats  # how far each may be off
    shared: float

    def plus(self, offsets: Floats) -> "Totals":
        """Add offsets, one row for each draw."""
        sums = self.sums + offsets
        added = FEW_ADDITIONS * (np.abs(offsets) + np.abs(self.sums) + np.abs(sums))
        return Totals(sums, np.where(sums > -np.inf, self.rounding + added, 0.0), self.shared)


def compared(population: Population, log_prior: Floats | None = None) -> Totals:
    """Sum the rewards of every arm as far as they can differ; what a prior rules out is not read."""
    population.draw_order(None)  # any order does
    sums, sizes, shared = _raced_totals(population, log_prior)
    raced = Totals(sums, ROUNDING * sizes, shared)
    known = population.known
    if known is None:
        return raced
    return raced._replace(rounding=raced.rounding + FEW_ADDITIONS * known.sizes).plus(known.sums)


def _raced_totals(population: Population, log_prior: Floats | None) -> tuple[Floats, Floats, float]:
    offset = 0.0 if log_prior is None else np.where(np.isneginf(log_prior), -np.inf, 0.0)
    if not isinstance(population, SharedPopulation):
        with population.streams() as streams, population.source() as source:
            rng = np.random.default_rng(0)  # the order of the rows does not matter to their sum
            own = new_own_rows(source, streams, bits_of(rng), population.sizes)
            reading = READING.stored(own, source.direct.flags.c_contiguous)
            own.state.offset[:] = offset
            _totals_independent(own, reading.entry, reading.address)
            sums, squares = own.state.sums, own.readings.squares
        # Σ|x| ≤ N|mean| + √(N Σ(x - mean)²): arms of different sizes have no part in common to be left out.
        return _only_alive(own.state), np.abs(sums) + np.sqrt(population.sizes * squares), 0.0
    with population.source() as source:
        state, differences = new_state(source.arms), new_differences(source)
        state.offset[:] = offset
        _totals_shared(state, differences, source, population.rows.tail_size)
    return _only_alive(state), differences.sizes, float(differences.shared[0])


@kernel
def _totals_shared(state: RaceState, differences: Differences, source: Source, size: int) -> None:
    reset(state, source)
    admit(state, source)
    add_up_differences(differences, state, source, size)
    if source.fault[CODE] == FINE and state.tally[ALIVE] == 0:
        source.fault[CODE] = IMPOSSIBLE
    for a in range(state.tally[ALIVE]):
        state.sums[state.arms[a]] += state.lost[state.arms[a]]


@kernel
def _totals_independent(own: OwnRows, reading: int, address: int) -> None:
    reset(own.state, own.source)
    admit(own.state, own.source)
    forget(own.state, own.readings)
    call(reading, (address, 1))
    rewind_first(own.order, own.state.tally[ARMS])


def _only_alive(state: RaceState) -> Floats:
    """Give the sums of the arms still in the race, -inf for the others."""
    sums, alive = np.full(len(state.sums), -np.inf), state.arms[: state.tally[ALIVE]]
    sums[alive] = state.sums[alive]
    return sums
