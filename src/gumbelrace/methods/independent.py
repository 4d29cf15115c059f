"""Independent arms: arm i has N_i rewards of its own, and sums are compared.

Where rewards have a known range, an arm can reach no more than its offset and N_i times the highest reward.
A patient rule reads those first that can reach most, and arms that cannot reach the leader any more are
never read: the bar for the first look falls by half with each look. A favourite is read at once.

A size of -k means a group: the best of several sums of k rewards each. When it is its turn, its value is
found as a whole, by a function of whoever has groups (`Groups`).

Rules say how many rows are wanted, and judge. All else does not depend on them: it is compiled once for all
(`READING`).
"""

from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from gumbelrace.core.jit import OPTIONS, call, part, routine
from gumbelrace.core.packed import Entries, read_stored
from gumbelrace.core.random import Bits
from gumbelrace.core.rows import Streams, rewind_first, take_from
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
# Rows wanted: none any more.
SATISFIED = -1
# What reading is asked for: to let arms in, to read what is wanted of them, or all, to name the winner.
ENTER, ADVANCE, READ_ALL, FINISH = range(4)
# reading(address of an `OwnRows`, what is asked for) -> GOES_ON, ENDS or FAILS
READS = types.int64(types.CPointer(types.int64), types.int64)


class Readings(NamedTuple):
    """For each arm: how many of its rows were read, their squared deviations, and the last look."""

    taken: NDArray[np.int64]
    squares: Floats
    wanted: NDArray[np.int64]  # rows to read when it is an arm's turn; 0: all that are left, or SATISFIED
    fresh: NDArray[np.int64]
    looks: NDArray[np.int64]
    reach: Floats  # what an arm can reach at most, before it is read
    bar: Floats  # the lowest reach, and by how much the bar for a first look is higher
    block: Floats  # rewards of the last look (its last part, if it is longer)


def new_readings(source: Source) -> Readings:
    """Make room for what is read of each arm."""
    d = source.arms
    (taken, wanted, fresh, looks), block = np.zeros((4, d), np.int64), new_block(d, source.chunk)
    return Readings(taken, np.zeros(d), wanted, fresh, looks, np.zeros(d), np.zeros(2), block)


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
    sizes: NDArray[np.int64]
    state: RaceState
    readings: Readings
    rows: NDArray[np.int64]
    one: NDArray[np.int64]  # the arm that is read
    groups: Groups
    patient: bool  # whether arms that can reach little are read later


class IndependentWorkspace(NamedTuple):
    """All that races of independent arms need, laid out once for many of them.

    It begins with the fields of `OwnRows`, so that it lies in memory where these lie.
    """

    source: Source
    order: Streams
    bits: Bits
    sizes: NDArray[np.int64]
    state: RaceState
    readings: Readings
    rows: NDArray[np.int64]
    one: NDArray[np.int64]
    groups: Groups
    patient: bool
    rule: Any
    work: Any  # of the rule
    noise: Bits
    reading: int  # address of what reads rows
    address: NDArray[np.int64]  # where the workspace lies: put there when it is known


# Rules ask the same of a workspace as reading does.
Rows = OwnRows | IndependentWorkspace


def new_independent(
    rule: Any, source: Source, order: Streams, bits: tuple[Bits, Bits], sizes: NDArray[np.int64]
) -> IndependentWorkspace:
    """Make room for races by a rule; the bits are those of the noise and those that choose rows."""
    noise, of_rows = bits
    own = new_own_rows(source, order, of_rows, sizes, rule.patient)
    reading = READING.entry(own, source.direct.flags.c_contiguous)
    work = rule.working_memory(source.arms)
    return IndependentWorkspace(*own, rule, work, noise, reading, np.zeros(1, np.int64))


def new_own_rows(
    source: Source, order: Streams, bits: Bits, sizes: NDArray[np.int64], patient: bool
) -> OwnRows:
    """Make room for reading rows of independent arms."""
    state, readings = new_state(source.arms), new_readings(source)
    rows, one = new_rows(source), np.empty(1, np.int64)
    return OwnRows(source, order, bits, sizes, state, readings, rows, one, NO_GROUPS, patient)


@implements(enter, IndependentWorkspace)
def _enter(workspace: IndependentWorkspace) -> None:
    call(workspace.reading, (workspace.address[0], ENTER))


@implements(look, IndependentWorkspace)
def _look(workspace: IndependentWorkspace) -> int:
    state, wanted = workspace.state, workspace.readings.wanted
    for a in range(state.tally[ALIVE]):
        wanted[state.arms[a]] = next_look(workspace.rule, workspace, state.arms[a])
    found = call(workspace.reading, (workspace.address[0], ADVANCE))
    if found == GOES_ON:
        judge(workspace.rule, workspace)
        drop(state)
    return found


@implements(finish, IndependentWorkspace)
def _finish(workspace: IndependentWorkspace) -> None:
    call(workspace.reading, (workspace.address[0], FINISH))


def _entry(name: str, cache: bool) -> Any:
    """Compile what does not depend on the rule."""

    @numba.cfunc(READS, cache=cache, **OPTIONS)
    def read_independent(words, asked):  # type: ignore[no-untyped-def]
        own = read_stored(words, name)
        if asked == ENTER:
            let_in(own)
            return GOES_ON
        if asked == ADVANCE:
            return advance(own)
        if asked == READ_ALL:
            return ENDS if read_arms(own, True) else FAILS
        name_winner(own)
        return ENDS

    return read_independent


READING = Entries(_entry)


@part
def let_in(own: OwnRows) -> None:
    """Let all possible arms into the race, nothing read yet."""
    state, source, readings = own.state, own.source, own.readings
    admit(state, source)
    readings.bar[LOWEST] = readings.bar[HEIGHT] = -np.inf
    for arm in range(state.tally[ARMS]):
        readings.taken[arm], readings.squares[arm] = 0, 0.0
        readings.fresh[arm], readings.looks[arm] = 0, 0
        readings.reach[arm] = np.inf
    if own.patient:
        set_bar(own)


@part
def advance(own: OwnRows) -> int:
    """Read what is wanted of the arms whose turn it is, and find the leader."""
    if all_read(own):
        return ENDS
    lower_bar(own)
    if not read_arms(own, False):
        return FAILS
    if all_read(own):
        return ENDS
    own.state.tally[LOOKS] += 1
    rank_independent(own)
    return GOES_ON


@part
def name_winner(own: OwnRows) -> None:
    """Read the rest if several arms are left, and name the winner."""
    source, state = own.source, own.state
    if state.tally[ALIVE] > 1 and not read_arms(own, True):
        return
    if state.tally[ALIVE] == 0:
        # All that had beaten the arms dropped before have shown a -inf: those decide it.
        line_up(state, source)
        if not read_arms(own, True):
            return
    if state.tally[ALIVE] == 0:
        source.fault[CODE] = IMPOSSIBLE
        return
    rank_independent(own)
    name_leader(state, all_read(own))
    rewind_first(own.order, state.tally[ARMS])


@routine
def read_arms(own: OwnRows, everything: bool) -> bool:
    """Read more rows of every arm in the race whose turn it is, or all that are left of each."""
    state, readings, sizes = own.state, own.readings, own.sizes
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        readings.fresh[arm] = 0
        if not everything and waits(own, arm):
            continue
        if sizes[arm] < 0:
            call(own.groups.address, (own.groups.words, arm, state.offset.ctypes.data))
            sizes[arm] = 0
        else:
            wanted = 0 if everything else readings.wanted[arm]
            left = sizes[arm] - readings.taken[arm]
            if wanted != SATISFIED:
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
        absorb(own, arm, some)
        count -= some


@part
def set_bar(own: OwnRows) -> None:
    """Find what each arm can reach, and put the bar where only the best is."""
    state, readings = own.state, own.readings
    lowest, highest = np.inf, -np.inf
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        readings.reach[arm] = state.offset[arm] + at_most(own.source, arm, abs(own.sizes[arm]))
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
def lower_bar(own: OwnRows) -> None:
    """Lower the bar by half, or to the next arm if there is nothing else to read."""
    state, readings = own.state, own.readings
    readings.bar[HEIGHT] /= 2.0
    highest = -np.inf
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        if readings.taken[arm] not in (0, own.sizes[arm]):
            return
        if is_unseen(own, arm):
            highest = max(highest, readings.reach[arm])
    readings.bar[HEIGHT] = min(readings.bar[HEIGHT], highest - readings.bar[LOWEST])


@part
def is_unseen(own: Rows, arm: int) -> bool:
    """Whether an arm has rewards, and none was read."""
    return own.readings.taken[arm] == 0 and own.sizes[arm] != 0


@part
def waits(own: OwnRows, arm: int) -> bool:
    """Whether it is not yet an arm's turn."""
    bar = own.readings.bar
    return is_unseen(own, arm) and own.readings.reach[arm] < bar[LOWEST] + bar[HEIGHT]


@part
def all_read(own: Rows) -> bool:
    """Whether every row of the arms in the race was read."""
    for a in range(own.state.tally[ALIVE]):
        arm = own.state.arms[a]
        if own.readings.taken[arm] != own.sizes[arm]:
            return False
    return True


@part
def absorb(own: OwnRows, arm: int, count: int) -> None:
    """Add rewards of an arm to its sum and squared deviations."""
    readings, sums = own.readings, own.state.sums
    # Around the first of them: equal rewards have no deviation, not even by rounding.
    first, beyond, squares = readings.block[arm, 0], 0.0, 0.0
    for i in range(count):
        beyond += readings.block[arm, i] - first
    mean = first + beyond / count
    for i in range(count):
        squares += (readings.block[arm, i] - mean) ** 2
    before = readings.taken[arm]
    if before > 0:
        shift = mean - sums[arm] / before
        squares += shift * shift * (before * count / (before + count))
    readings.taken[arm] += count
    readings.squares[arm] += squares
    sums[arm] += first * count + beyond


@part
def rows_left(workspace: Rows, arm: int) -> int:
    """Count the rows of an arm that were not read."""
    return workspace.sizes[arm] - workspace.readings.taken[arm]


@part
def sum_read(workspace: Rows, arm: int) -> float:
    """Sum what was read of an arm, offset included."""
    return workspace.state.sums[arm] + workspace.state.offset[arm]


@part
def estimate_sum(workspace: Rows, arm: int) -> float:
    """Estimate an arm's sum over all its rows, offset included; -inf before the first look."""
    state, taken, size = workspace.state, workspace.readings.taken[arm], workspace.sizes[arm]
    if taken == size:
        return sum_read(workspace, arm)
    if taken == 0:
        return -np.inf
    return state.sums[arm] * (size / taken) + state.offset[arm]


@part
def ceiling(workspace: Rows, arm: int) -> float:
    """Give the most that an arm's sum can be, offset included, whatever its unread rewards are."""
    if is_unseen(workspace, arm):
        return workspace.readings.reach[arm]
    return sum_read(workspace, arm) + at_most(workspace.source, arm, rows_left(workspace, arm))


@part
def floor(workspace: Rows, arm: int) -> float:
    """Give the least that an arm's sum can be, offset included."""
    left = rows_left(workspace, arm)
    return sum_read(workspace, arm) + (left * workspace.source.low[arm] if left > 0 else 0.0)


@part
def rank_independent(workspace: Rows) -> None:
    """Find the leader and the runner-up; of equals, the arm with the lower number leads."""
    for a in range(workspace.state.tally[ALIVE]):
        place(workspace.state, a, estimate_sum(workspace, workspace.state.arms[a]))
