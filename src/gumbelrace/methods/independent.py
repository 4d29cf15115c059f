"""Independent arms: arm i has N_i rewards of its own, and sums are compared.

Where rewards have a known range, an arm can reach no more than its offset and N_i times the highest reward.
A patient rule reads those first that can reach most, and arms that cannot reach the leader any more are
never read: the bar for the first look falls by half with each look. A favourite is read at once.

A size of -k means a group: the best of several sums of k rewards each. When it is its turn, its value is
found as a whole, by a function of whoever has groups (`Groups`).

Rules say how many rows of each arm are wanted, and judge. Reading them does not depend on the rule: it is
compiled once for all (`READING`).
"""

from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from gumbelrace.core.jit import OPTIONS, call, part
from gumbelrace.core.orders import Streams, rewind_first, take_from
from gumbelrace.core.packed import Entries, read_stored
from gumbelrace.core.random import Bits
from gumbelrace.methods.reading import new_block, new_rows
from gumbelrace.methods.rules import ENDS, FAILS, GOES_ON, enter, finish, implements, judge, look, next_look
from gumbelrace.methods.state import (
    ALIVE,
    ARMS,
    EVALUATIONS,
    FAVOURITE,
    LOOKS,
    NOBODY,
    RaceState,
    admit,
    drop,
    drop_ruled_out,
    line_up,
    name_leader,
    new_state,
    place,
)
from gumbelrace.population.base import CODE, FINE, IMPOSSIBLE, Floats, Source, read

# Entries of Readings.bar
LOWEST, HEIGHT = 0, 1
# Rows wanted of an arm that is not to be read now.
NOT_NOW = -1
# reading(address of an `OwnRows`, whether to read everything) -> 1, or 0 after a fault
READS = types.int64(types.CPointer(types.int64), types.int64)


class Readings(NamedTuple):
    """For each arm: how many rows it has and were read, their squared deviations, and the last look."""

    sizes: NDArray[np.int64]
    taken: NDArray[np.int64]
    squares: Floats
    wanted: NDArray[np.int64]  # rows to read now; 0: all that are left; or NOT_NOW
    fresh: NDArray[np.int64]
    looks: NDArray[np.int64]
    reach: Floats  # what an arm can reach at most, before it is read
    bar: Floats  # the lowest reach, and by how much the bar for a first look is higher
    block: Floats  # rewards of the last look (its last part, if it is longer)


def new_readings(source: Source, sizes: NDArray[np.int64]) -> Readings:
    """Make room for what is read of each arm."""
    d = source.arms
    (taken, wanted, fresh, looks), block = np.zeros((4, d), np.int64), new_block(d, source.chunk)
    return Readings(sizes, taken, np.zeros(d), wanted, fresh, looks, np.zeros(d), np.zeros(2), block)


class Groups(NamedTuple):
    """What to call for the value of an arm that is a group: ``address(words, arm, values)``.

    It puts the value into ``values[arm]``.
    """

    address: int
    words: int


# Where no size is below 0.
NO_GROUPS = Groups(0, 0)


class OwnRows(NamedTuple):
    """What reading rows of independent arms needs, whatever the rule of the race is."""

    source: Source
    order: Streams
    bits: Bits  # that choose rows
    state: RaceState
    readings: Readings
    rows: NDArray[np.int64]
    one: NDArray[np.int64]  # the arm that is read
    groups: Groups


class IndependentWorkspace(NamedTuple):
    """All that races of independent arms need, laid out once for many of them.

    It begins with the fields of `OwnRows`, so that it lies in memory where these lie.
    """

    source: Source
    order: Streams
    bits: Bits
    state: RaceState
    readings: Readings
    rows: NDArray[np.int64]
    one: NDArray[np.int64]
    groups: Groups
    sizes: NDArray[np.int64]
    rule: Any
    work: Any  # of the rule
    noise: Bits
    reading: int  # address of what reads rows
    address: NDArray[np.int64]  # where the workspace lies: put there when it is known


def new_independent(
    rule: Any, source: Source, order: Streams, bits: tuple[Bits, Bits], sizes: NDArray[np.int64]
) -> IndependentWorkspace:
    """Make room for races by a rule; the bits are those of the noise and those that choose rows."""
    noise, of_rows = bits
    own = new_own_rows(source, order, of_rows, sizes)
    reading = READING.entry(own, source.direct.flags.c_contiguous)
    work = rule.working_memory(source.arms)
    return IndependentWorkspace(*own, sizes, rule, work, noise, reading, np.zeros(1, np.int64))


def new_own_rows(source: Source, order: Streams, bits: Bits, sizes: NDArray[np.int64]) -> OwnRows:
    """Make room for reading rows of independent arms."""
    state, readings = new_state(source.arms), new_readings(source, sizes)
    rows, one = new_rows(source), np.empty(1, np.int64)
    return OwnRows(source, order, bits, state, readings, rows, one, NO_GROUPS)


@implements(enter, IndependentWorkspace)
def _enter(workspace: IndependentWorkspace) -> None:
    state, source, readings = workspace.state, workspace.source, workspace.readings
    admit(state, source)
    forget(state, readings)
    if workspace.rule.patient:
        set_bar(source, state, readings)


@implements(look, IndependentWorkspace)
def _look(workspace: IndependentWorkspace) -> int:
    state, readings = workspace.state, workspace.readings
    if all_read(state, readings):
        return ENDS
    lower_bar(state, readings)
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        waiting = waits(readings, arm)
        readings.wanted[arm] = NOT_NOW if waiting else next_look(workspace.rule, workspace, arm)
    if not read_more(workspace, False):
        return FAILS
    if all_read(state, readings):
        return ENDS
    state.tally[LOOKS] += 1
    rank_independent(state, readings)
    judge(workspace.rule, workspace)
    drop(state)
    return GOES_ON


@implements(finish, IndependentWorkspace)
def _finish(workspace: IndependentWorkspace) -> None:
    source, state, readings = workspace.source, workspace.state, workspace.readings
    if state.tally[ALIVE] > 1 and not read_more(workspace, True):
        return
    if state.tally[ALIVE] == 0:
        # All that had beaten the arms dropped before have shown a -inf: those decide it.
        line_up(state, source)
        if not read_more(workspace, True):
            return
    if state.tally[ALIVE] == 0:
        source.fault[CODE] = IMPOSSIBLE
        return
    rank_independent(state, readings)
    name_leader(state, all_read(state, readings))
    rewind_first(workspace.order, state.tally[ARMS])


@part
def forget(state: RaceState, readings: Readings) -> None:
    """Begin anew: nothing was read, and no arm waits."""
    readings.bar[LOWEST] = readings.bar[HEIGHT] = -np.inf
    for arm in range(state.tally[ARMS]):
        readings.taken[arm], readings.squares[arm] = 0, 0.0
        readings.fresh[arm], readings.looks[arm] = 0, 0
        readings.reach[arm] = np.inf


@part
def read_more(workspace: IndependentWorkspace, everything: bool) -> bool:
    """Read what is wanted of the arms in the race, or all that is left of them; False after a fault."""
    return call(workspace.reading, (workspace.address[0], np.int64(everything))) == 1


def _entry(name: str, cache: bool) -> Any:
    """Compile what reads, whatever the rule is."""

    @numba.cfunc(READS, cache=cache, **OPTIONS)
    def read_independent(words, everything):  # type: ignore[no-untyped-def]
        return 1 if read_arms(read_stored(words, name), everything != 0) else 0

    return read_independent


READING = Entries(_entry)


@part
def read_arms(own: OwnRows, everything: bool) -> bool:
    """Read the rows wanted of every arm in the race, or all that are left of each."""
    state, readings, groups = own.state, own.readings, own.groups
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        wanted, left = 0 if everything else readings.wanted[arm], rows_left(readings, arm)
        readings.fresh[arm] = 0
        if wanted == NOT_NOW:
            continue
        if left < 0:
            call(groups.address, (groups.words, arm, state.offset.ctypes.data))
            readings.sizes[arm] = 0
        else:
            read_arm(own, arm, min(wanted, left) if wanted > 0 else left)
        if own.source.fault[CODE] != FINE:
            return False
    drop_ruled_out(state, own.source)
    return True


@part
def read_arm(own: OwnRows, arm: int, count: int) -> None:
    """Read `count` more rows of an arm."""
    source, readings, one = own.source, own.readings, own.one
    readings.fresh[arm], readings.looks[arm] = count, readings.looks[arm] + 1
    while count > 0 and not source.ruled_out[arm]:
        some, one[0] = min(count, source.chunk), arm
        take_from(own.order, own.bits, arm, own.rows, some)
        if read(source, own.rows, some, one, 1, readings.block, 0) == 0:
            return
        own.state.tally[EVALUATIONS] += some
        absorb(own.state, readings, arm, some)
        count -= some


@part
def set_bar(source: Source, state: RaceState, readings: Readings) -> None:
    """Find what each arm can reach, and put the bar where only the best is."""
    lowest, highest = np.inf, -np.inf
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        readings.reach[arm] = state.offset[arm] + at_most(source, arm, abs(readings.sizes[arm]))
        lowest, highest = min(lowest, readings.reach[arm]), max(highest, readings.reach[arm])
    if highest < np.inf:
        readings.bar[LOWEST], readings.bar[HEIGHT] = lowest, highest - lowest
    if state.tally[FAVOURITE] != NOBODY:
        readings.reach[state.tally[FAVOURITE]] = np.inf


@part
def at_most(source: Source, arm: int, count: int) -> float:
    """Give the highest sum of `count` rewards; without a known range it is infinite."""
    if count == 0:
        return 0.0
    return count * source.high[arm] if source.low[arm] > -np.inf else np.inf


@part
def lower_bar(state: RaceState, readings: Readings) -> None:
    """Lower the bar by half, or to the next arm if there is nothing else to read."""
    readings.bar[HEIGHT] /= 2.0
    highest = -np.inf
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        if readings.taken[arm] not in (0, readings.sizes[arm]):
            return
        if is_unseen(readings, arm):
            highest = max(highest, readings.reach[arm])
    readings.bar[HEIGHT] = min(readings.bar[HEIGHT], highest - readings.bar[LOWEST])


@part
def is_unseen(readings: Readings, arm: int) -> bool:
    """Whether an arm has rewards, and none was read."""
    return readings.taken[arm] == 0 and readings.sizes[arm] != 0


@part
def waits(readings: Readings, arm: int) -> bool:
    """Whether it is not yet an arm's turn."""
    bar = readings.bar
    return is_unseen(readings, arm) and readings.reach[arm] < bar[LOWEST] + bar[HEIGHT]


@part
def all_read(state: RaceState, readings: Readings) -> bool:
    """Whether every row of the arms in the race was read."""
    for a in range(state.tally[ALIVE]):
        if rows_left(readings, state.arms[a]) != 0:
            return False
    return True


@part
def absorb(state: RaceState, readings: Readings, arm: int, count: int) -> None:
    """Add rewards of an arm to its sum and squared deviations."""
    # Around the first of them: equal rewards have no deviation, not even by rounding.
    first, beyond, squares = readings.block[arm, 0], 0.0, 0.0
    for i in range(count):
        beyond += readings.block[arm, i] - first
    mean = first + beyond / count
    for i in range(count):
        squares += (readings.block[arm, i] - mean) ** 2
    before = readings.taken[arm]
    if before > 0:
        shift = mean - state.sums[arm] / before
        squares += shift * shift * (before * count / (before + count))
    readings.taken[arm] += count
    readings.squares[arm] += squares
    state.sums[arm] += first * count + beyond


@part
def rows_left(readings: Readings, arm: int) -> int:
    """Count the rows of an arm that were not read."""
    return readings.sizes[arm] - readings.taken[arm]


@part
def sum_read(state: RaceState, arm: int) -> float:
    """Sum what was read of an arm, offset included."""
    return state.sums[arm] + state.offset[arm]


@part
def estimate_sum(state: RaceState, readings: Readings, arm: int) -> float:
    """Estimate an arm's sum over all its rows, offset included; -inf before the first look."""
    taken, size = readings.taken[arm], readings.sizes[arm]
    if taken == size:
        return sum_read(state, arm)
    if taken == 0:
        return -np.inf
    return state.sums[arm] * (size / taken) + state.offset[arm]


@part
def ceiling(source: Source, state: RaceState, readings: Readings, arm: int) -> float:
    """Give the most that an arm's sum can be, offset included, whatever its unread rewards are."""
    if is_unseen(readings, arm):
        return readings.reach[arm]
    return sum_read(state, arm) + at_most(source, arm, rows_left(readings, arm))


@part
def floor(source: Source, state: RaceState, readings: Readings, arm: int) -> float:
    """Give the least that an arm's sum can be, offset included."""
    left = rows_left(readings, arm)
    return sum_read(state, arm) + (left * source.low[arm] if left > 0 else 0.0)


@part
def rank_independent(state: RaceState, readings: Readings) -> None:
    """Find the leader and the runner-up; of equals, the arm with the lower number leads."""
    for a in range(state.tally[ALIVE]):
        place(state, a, estimate_sum(state, readings, state.arms[a]))
