"""Independent arms: arm i has N_i rewards of its own, and sums are compared.

Where rewards have a known range, an arm can reach no more than its offset and N_i times the highest reward.
A patient rule reads those first that can reach most, and arms that cannot reach the leader any more are
never read: the bar for the first look falls by half with each look. A favourite is read at once.

The rows of an arm come from `shuffle.Streams`, or from any named tuple that implements

- ``take_rows(streams, bits, arm, rows, count)``: put the next rows of an arm into `rows`;
- ``best_of_group(streams, source, arm)``: find the value of an arm that stands for several (see below);
- ``rewind_rows(streams, arms)``: end a race of so many arms.

A size of -k means a group: the best of several sums of k rewards each. When it is its turn, its value is
found as a whole.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import part, routine
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


class Readings(NamedTuple):
    """For each arm: how many of its rows were read, their squared deviations, and the last look."""

    taken: NDArray[np.int64]
    squares: Floats
    fresh: NDArray[np.int64]
    looks: NDArray[np.int64]
    reach: Floats  # what an arm can reach at most, before it is read
    bar: Floats  # the lowest reach, and by how much the bar for a first look is higher
    block: Floats  # rewards of the last look (its last part, if it is longer)


def new_readings(source: Source) -> Readings:
    """Make room for what is read of each arm."""
    d = source.arms
    (taken, fresh, looks), block = np.zeros((3, d), np.int64), new_block(d, source.chunk)
    return Readings(taken, np.zeros(d), fresh, looks, np.zeros(d), np.zeros(2), block)


class IndependentWorkspace(NamedTuple):
    """All that races of independent arms need, laid out once for many of them."""

    rule: Any
    work: Any  # of the rule
    source: Source
    order: Any
    noise: Bits
    bits: Bits
    sizes: NDArray[np.int64]
    state: RaceState
    readings: Readings
    rows: NDArray[np.int64]
    one: NDArray[np.int64]  # the arm that is read


def new_independent(
    rule: Any, source: Source, order: Any, bits: tuple[Bits, Bits], sizes: NDArray[np.int64]
) -> IndependentWorkspace:
    """Make room for races by a rule; the bits are those of the noise and those that choose rows."""
    return IndependentWorkspace(
        rule,
        rule.working_memory(source.arms),
        source,
        order,
        *bits,
        sizes,
        new_state(source.arms),
        new_readings(source),
        new_rows(source),
        np.empty(1, np.int64),
    )


def take_rows(streams: Any, bits: Bits, arm: int, rows: NDArray[np.int64], count: int) -> None:
    """Put the next `count` rows of an arm into `rows`."""
    raise NotImplementedError


def best_of_group(streams: Any, source: Source, arm: int) -> float:
    """Find the value of an arm that is a group."""
    raise NotImplementedError


def rewind_rows(streams: Any, arms: int) -> None:
    """End a race: the next one may read any row again."""
    raise NotImplementedError


implements(take_rows, Streams)(take_from.py_func)  # type: ignore[attr-defined]
implements(rewind_rows, Streams)(rewind_first.py_func)  # type: ignore[attr-defined]


@implements(best_of_group, Streams)
def _no_group(streams: Streams, source: Source, arm: int) -> float:
    return -np.inf


@implements(enter, IndependentWorkspace)
def _enter(workspace: IndependentWorkspace) -> None:
    state, source, readings = workspace.state, workspace.source, workspace.readings
    admit(state, source)
    readings.bar[LOWEST] = readings.bar[HEIGHT] = -np.inf
    for arm in range(state.tally[ARMS]):
        readings.taken[arm], readings.squares[arm] = 0, 0.0
        readings.fresh[arm], readings.looks[arm] = 0, 0
        readings.reach[arm] = np.inf
    if workspace.rule.patient:
        set_bar(workspace)


@implements(look, IndependentWorkspace)
def _look(workspace: IndependentWorkspace) -> int:
    if all_read(workspace):
        return ENDS
    lower_bar(workspace)
    if not read_arms(workspace, False):
        return FAILS
    if all_read(workspace):
        return ENDS
    workspace.state.tally[LOOKS] += 1
    rank_independent(workspace)
    judge(workspace.rule, workspace)
    drop(workspace.state)
    return GOES_ON


@implements(finish, IndependentWorkspace)
def _finish(workspace: IndependentWorkspace) -> None:
    source, state = workspace.source, workspace.state
    if state.tally[ALIVE] > 1 and not read_arms(workspace, True):
        return
    if state.tally[ALIVE] == 0:
        # All that had beaten the arms dropped before have shown a -inf: those decide it.
        line_up(state, source)
        if not read_arms(workspace, True):
            return
    if state.tally[ALIVE] == 0:
        source.fault[CODE] = IMPOSSIBLE
        return
    rank_independent(workspace)
    name_leader(state, all_read(workspace))
    rewind_rows(workspace.order, state.tally[ARMS])


@routine
def read_arms(workspace: IndependentWorkspace, everything: bool) -> bool:
    """Read more rows of every arm in the race whose turn it is, or all that are left of each."""
    state, readings, sizes = workspace.state, workspace.readings, workspace.sizes
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        readings.fresh[arm] = 0
        if not everything and waits(workspace, arm):
            continue
        if sizes[arm] < 0:
            state.offset[arm], sizes[arm] = best_of_group(workspace.order, workspace.source, arm), 0
        else:
            wanted = 0 if everything else next_look(workspace.rule, workspace, arm)
            left = sizes[arm] - readings.taken[arm]
            read_arm(workspace, arm, min(wanted, left) if wanted > 0 else left)
        if workspace.source.fault[CODE] != FINE:
            return False
    drop_ruled_out(state, workspace.source)
    return True


@part
def read_arm(workspace: IndependentWorkspace, arm: int, count: int) -> None:
    """Read `count` more rows of an arm."""
    source, readings, one = workspace.source, workspace.readings, workspace.one
    readings.fresh[arm], readings.looks[arm] = count, readings.looks[arm] + 1
    while count > 0 and not source.ruled_out[arm]:
        some, one[0] = min(count, source.chunk), arm
        take_rows(workspace.order, workspace.bits, arm, workspace.rows, some)
        if read(source, workspace.rows, some, one, 1, readings.block, 0) == 0:
            return
        workspace.state.tally[EVALUATIONS] += some
        absorb(workspace, arm, some)
        count -= some


@part
def set_bar(workspace: IndependentWorkspace) -> None:
    """Find what each arm can reach, and put the bar where only the best is."""
    state, readings = workspace.state, workspace.readings
    lowest, highest = np.inf, -np.inf
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        readings.reach[arm] = state.offset[arm] + at_most(workspace.source, arm, abs(workspace.sizes[arm]))
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
def lower_bar(workspace: IndependentWorkspace) -> None:
    """Lower the bar by half, or to the next arm if there is nothing else to read."""
    state, readings = workspace.state, workspace.readings
    readings.bar[HEIGHT] /= 2.0
    highest = -np.inf
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        if readings.taken[arm] not in (0, workspace.sizes[arm]):
            return
        if is_unseen(workspace, arm):
            highest = max(highest, readings.reach[arm])
    readings.bar[HEIGHT] = min(readings.bar[HEIGHT], highest - readings.bar[LOWEST])


@part
def is_unseen(workspace: IndependentWorkspace, arm: int) -> bool:
    """Whether an arm has rewards, and none was read."""
    return workspace.readings.taken[arm] == 0 and workspace.sizes[arm] != 0


@part
def waits(workspace: IndependentWorkspace, arm: int) -> bool:
    """Whether it is not yet an arm's turn."""
    bar = workspace.readings.bar
    return is_unseen(workspace, arm) and workspace.readings.reach[arm] < bar[LOWEST] + bar[HEIGHT]


@part
def all_read(workspace: IndependentWorkspace) -> bool:
    """Whether every row of the arms in the race was read."""
    for a in range(workspace.state.tally[ALIVE]):
        arm = workspace.state.arms[a]
        if workspace.readings.taken[arm] != workspace.sizes[arm]:
            return False
    return True


@part
def absorb(workspace: IndependentWorkspace, arm: int, count: int) -> None:
    """Add rewards of an arm to its sum and squared deviations."""
    readings, sums = workspace.readings, workspace.state.sums
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
def rows_left(workspace: IndependentWorkspace, arm: int) -> int:
    """Count the rows of an arm that were not read."""
    return workspace.sizes[arm] - workspace.readings.taken[arm]


@part
def sum_read(workspace: IndependentWorkspace, arm: int) -> float:
    """Sum what was read of an arm, offset included."""
    return workspace.state.sums[arm] + workspace.state.offset[arm]


@part
def estimate_sum(workspace: IndependentWorkspace, arm: int) -> float:
    """Estimate an arm's sum over all its rows, offset included; -inf before the first look."""
    state, taken, size = workspace.state, workspace.readings.taken[arm], workspace.sizes[arm]
    if taken == size:
        return sum_read(workspace, arm)
    if taken == 0:
        return -np.inf
    return state.sums[arm] * (size / taken) + state.offset[arm]


@part
def ceiling(workspace: IndependentWorkspace, arm: int) -> float:
    """Give the most that an arm's sum can be, offset included, whatever its unread rewards are."""
    if is_unseen(workspace, arm):
        return workspace.readings.reach[arm]
    return sum_read(workspace, arm) + at_most(workspace.source, arm, rows_left(workspace, arm))


@part
def floor(workspace: IndependentWorkspace, arm: int) -> float:
    """Give the least that an arm's sum can be, offset included."""
    left = rows_left(workspace, arm)
    return sum_read(workspace, arm) + (left * workspace.source.low[arm] if left > 0 else 0.0)


@part
def rank_independent(workspace: IndependentWorkspace) -> None:
    """Find the leader and the runner-up; of equals, the arm with the lower number leads."""
    for a in range(workspace.state.tally[ALIVE]):
        place(workspace.state, a, estimate_sum(workspace, workspace.state.arms[a]))
