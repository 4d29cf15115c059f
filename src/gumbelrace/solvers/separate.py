"""The race of arms with rows of their own: arm i has N_i rewards, and sums are compared.

The loop of `engine` with one stream for each arm, which are `shuffle.Streams`, or any named tuple that
implements

- ``take_own(streams, bits, arm, rows, count)``: put the next rows of an arm into `rows`;
- ``best_of_group(streams, source, arm)``: find the value of an arm that stands for several (see below);
- ``rewind_own(streams)``: end a race.

Its rules implement, besides ``rules.prepare``,

- ``is_patient(rule)``: whether arms that can reach little may wait (see below);
- ``look_size(rule, look, looks, size)``: rows to read of an arm now, at a look of the race and of the arm;
- ``judge_own(rule, work, source, field, own, sizes)``: flag in `field.out` the arms to drop.

Where rewards have a known range, an arm can reach no more than its offset and N_i times the highest reward.
A patient rule reads those first that can reach most, and arms that cannot reach the leader any more are
never read: the bar for the first look falls by half with each look. A favourite is read at once.

A size of -k means a group: the best of several sums of k rewards each. When it is its turn, its value is
found as a whole.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.jit import Bits, kernel, maker, part, routine
from gumbelrace.population.base import CODE, FINE, IMPOSSIBLE, Floats, Source, read
from gumbelrace.shuffle import Streams, rewind_all, take_from
from gumbelrace.solvers.field import (
    ALIVE,
    EVALUATIONS,
    EXHAUSTED,
    LOOKS,
    Field,
    admit,
    drop,
    drop_ruled_out,
    line_up,
    new_field,
    place,
    reset,
)
from gumbelrace.solvers.reading import new_block
from gumbelrace.solvers.results import Results, record
from gumbelrace.solvers.rules import implements, prepare

# No arm
NOBODY = -1
# Entries of Own.bar
LOWEST, HEIGHT = 0, 1


class Own(NamedTuple):
    """For each arm: how many of its rows were read, their squared deviations, and the last look."""

    taken: NDArray[np.int64]
    squares: Floats
    fresh: NDArray[np.int64]
    looks: NDArray[np.int64]
    reach: Floats  # what an arm can reach at most, before it is read
    bar: Floats  # the lowest reach, and by how much the bar for a first look is higher
    block: Floats  # rewards of the last look (its last part, if it is longer)


def take_own(streams: Any, bits: Bits, arm: int, rows: NDArray[np.int64], count: int) -> None:
    """Put the next `count` rows of an arm into `rows`."""
    raise NotImplementedError


def best_of_group(streams: Any, source: Source, arm: int) -> float:
    """Find the value of an arm that is a group."""
    raise NotImplementedError


def rewind_own(streams: Any) -> None:
    """End a race: the next one may read any row again."""
    raise NotImplementedError


implements(take_own, Streams)(take_from.py_func)  # type: ignore[attr-defined]
implements(rewind_own, Streams)(rewind_all.py_func)  # type: ignore[attr-defined]


@implements(best_of_group, Streams)
def _no_group(streams: Streams, source: Source, arm: int) -> float:
    return -np.inf


def is_patient(rule: Any) -> bool:
    """Whether arms that can reach little may wait."""
    raise NotImplementedError


def look_size(rule: Any, look: int, looks: int, size: int) -> int:
    """Give the rows to read of an arm now."""
    raise NotImplementedError


def judge_own(
    rule: Any, work: Any, source: Source, field: Field, own: Own, sizes: NDArray[np.int64]
) -> None:
    """Flag the arms to drop."""
    raise NotImplementedError


class OwnGear(NamedTuple):
    """Working memory of many races."""

    field: Field
    own: Own
    rows: NDArray[np.int64]
    one: NDArray[np.int64]
    work: Any  # of the rule


@kernel
def solve_separate(
    rule: Any,
    source: Source,
    streams: Any,
    bits: Bits,
    sizes: NDArray[np.int64],
    offsets: Floats,
    results: Results,
) -> None:
    """Find the arm with the highest offset + sum once for each row of `offsets`."""
    gear = new_own_gear(rule, source)
    for draw in range(len(offsets)):
        race_own(rule, gear, source, streams, bits, sizes, offsets[draw], NOBODY)
        if source.fault[CODE] != FINE:
            return
        record(gear.field, results, draw)


@routine
def race_own(
    rule: Any,
    gear: OwnGear,
    source: Source,
    streams: Any,
    bits: Bits,
    sizes: NDArray[np.int64],
    offset: Floats,
    favourite: int,
) -> None:
    """Run one race; what it found is in `gear.field.tally`, what went wrong in `source.fault`."""
    field, own = gear.field, gear.own
    reset(field, source, offset)
    enter_own(field, own, source)
    if is_patient(rule):
        set_bar(field, own, source, sizes, favourite)
    while field.tally[ALIVE] > 1 and not all_read(field, own, sizes):
        lower_bar(field, own, sizes)
        if not look(rule, gear, source, streams, bits, sizes):
            return
        if all_read(field, own, sizes):
            break
        field.tally[LOOKS] += 1
        rank_own(field, own, sizes)
        judge_own(rule, gear.work, source, field, own, sizes)
        drop(field)
    if field.tally[ALIVE] == 0:
        # All that had beaten the arms dropped before have shown a -inf: those decide it.
        line_up(field, source)
        own.bar[HEIGHT] = -np.inf
        while field.tally[ALIVE] > 0 and not all_read(field, own, sizes):
            if not look(rule, gear, source, streams, bits, sizes):
                return
    if field.tally[ALIVE] == 0:
        source.fault[CODE] = IMPOSSIBLE
        return
    field.tally[EXHAUSTED] = all_read(field, own, sizes)
    rank_own(field, own, sizes)
    rewind_own(streams)


@maker
def new_own_gear(rule: Any, source: Source) -> OwnGear:
    """Make room for races by a rule."""
    rows, one = np.empty(source.chunk, np.int64), np.empty(1, np.int64)
    return OwnGear(new_field(source.arms), new_own(source), rows, one, prepare(rule, source))


@maker
def new_own(source: Source) -> Own:
    """Make room for what is read of each arm."""
    d = source.arms
    taken, fresh, looks = np.zeros(d, np.int64), np.zeros(d, np.int64), np.zeros(d, np.int64)
    return Own(taken, np.zeros(d), fresh, looks, np.zeros(d), np.zeros(2), new_block(source, source.chunk))


@part
def enter_own(field: Field, own: Own, source: Source) -> None:
    """Let every possible arm into the race, nothing read yet."""
    admit(field, source)
    own.bar[LOWEST] = own.bar[HEIGHT] = -np.inf
    for arm in range(source.arms):
        own.taken[arm], own.squares[arm], own.fresh[arm], own.looks[arm] = 0, 0.0, 0, 0
        own.reach[arm] = np.inf


@part
def set_bar(field: Field, own: Own, source: Source, sizes: NDArray[np.int64], favourite: int) -> None:
    """Find what each arm can reach, and put the bar where only the best is."""
    lowest, highest = np.inf, -np.inf
    for a in range(field.tally[ALIVE]):
        arm = field.arms[a]
        own.reach[arm] = field.offset[arm] + at_most(source, arm, abs(sizes[arm]))
        lowest, highest = min(lowest, own.reach[arm]), max(highest, own.reach[arm])
    if highest < np.inf:
        own.bar[LOWEST], own.bar[HEIGHT] = lowest, highest - lowest
    if favourite != NOBODY:
        own.reach[favourite] = np.inf


@part
def at_most(source: Source, arm: int, count: int) -> float:
    """Give the highest sum of `count` rewards; without a known range it is infinite."""
    if count == 0:
        return 0.0
    return count * source.high[arm] if source.low[arm] > -np.inf else np.inf


@part
def lower_bar(field: Field, own: Own, sizes: NDArray[np.int64]) -> None:
    """Lower the bar by half, or to the next arm if there is nothing else to read."""
    own.bar[HEIGHT] /= 2.0
    highest = -np.inf
    for a in range(field.tally[ALIVE]):
        arm = field.arms[a]
        if own.taken[arm] not in (0, sizes[arm]):
            return
        if is_unseen(own, sizes, arm):
            highest = max(highest, own.reach[arm])
    own.bar[HEIGHT] = min(own.bar[HEIGHT], highest - own.bar[LOWEST])


@part
def is_unseen(own: Own, sizes: NDArray[np.int64], arm: int) -> bool:
    """Whether an arm has rewards, and none was read."""
    return own.taken[arm] == 0 and sizes[arm] != 0


@part
def waits(own: Own, sizes: NDArray[np.int64], arm: int) -> bool:
    """Whether it is not yet an arm's turn."""
    return is_unseen(own, sizes, arm) and own.reach[arm] < own.bar[LOWEST] + own.bar[HEIGHT]


@part
def all_read(field: Field, own: Own, sizes: NDArray[np.int64]) -> bool:
    """Whether every row of the arms in the race was read."""
    for a in range(field.tally[ALIVE]):
        if own.taken[field.arms[a]] != sizes[field.arms[a]]:
            return False
    return True


@routine
def look(
    rule: Any, gear: OwnGear, source: Source, streams: Any, bits: Bits, sizes: NDArray[np.int64]
) -> bool:
    """Read more rows of every arm in the race whose turn it is."""
    field, own, rows, one = gear.field, gear.own, gear.rows, gear.one
    for a in range(field.tally[ALIVE]):
        arm = field.arms[a]
        own.fresh[arm] = 0
        if waits(own, sizes, arm):
            continue
        if sizes[arm] < 0:
            field.offset[arm], sizes[arm] = best_of_group(streams, source, arm), 0
            if source.fault[CODE] != FINE:
                return False
            continue
        wanted = look_size(rule, field.tally[LOOKS], own.looks[arm], sizes[arm])
        left = min(wanted, sizes[arm] - own.taken[arm])
        own.fresh[arm], own.looks[arm] = left, own.looks[arm] + 1
        while left > 0 and not source.ruled_out[arm]:
            count, one[0] = min(left, source.chunk), arm
            take_own(streams, bits, arm, rows, count)
            if read(source, rows, count, one, 1, own.block, 0) == 0:
                return False
            field.tally[EVALUATIONS] += count
            absorb(field, own, arm, count)
            left -= count
    drop_ruled_out(field, source)
    return True


@part
def absorb(field: Field, own: Own, arm: int, count: int) -> None:
    """Add rewards of an arm to its sum and squared deviations."""
    total = 0.0
    for i in range(count):
        total += own.block[arm, i]
    mean, squares = total / count, 0.0
    for i in range(count):
        squares += (own.block[arm, i] - mean) ** 2
    before = own.taken[arm]
    if before > 0:
        shift = mean - field.sums[arm] / before
        squares += shift * shift * (before * count / (before + count))
    own.taken[arm] += count
    own.squares[arm] += squares
    field.sums[arm] += total


@part
def estimate_own(field: Field, own: Own, sizes: NDArray[np.int64], arm: int) -> float:
    """Estimate an arm's sum over all its rows, offset included; -inf before the first look."""
    if own.taken[arm] == sizes[arm]:
        return field.sums[arm] + field.offset[arm]
    if own.taken[arm] == 0:
        return -np.inf
    return field.sums[arm] * (sizes[arm] / own.taken[arm]) + field.offset[arm]


@part
def ceiling(field: Field, own: Own, source: Source, sizes: NDArray[np.int64], arm: int) -> float:
    """Give the most that an arm's sum can be, offset included, whatever its unread rewards are."""
    if is_unseen(own, sizes, arm):
        return own.reach[arm]
    return field.sums[arm] + field.offset[arm] + at_most(source, arm, sizes[arm] - own.taken[arm])


@part
def floor(field: Field, own: Own, source: Source, sizes: NDArray[np.int64], arm: int) -> float:
    """Give the least that an arm's sum can be, offset included."""
    left = sizes[arm] - own.taken[arm]
    return field.sums[arm] + field.offset[arm] + (left * source.low[arm] if left > 0 else 0.0)


@part
def rank_own(field: Field, own: Own, sizes: NDArray[np.int64]) -> None:
    """Find the leader and the runner-up; of equals, the arm with the lower number leads."""
    for a in range(field.tally[ALIVE]):
        place(field, a, estimate_own(field, own, sizes, field.arms[a]))
