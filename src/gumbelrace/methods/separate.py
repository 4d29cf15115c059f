"""The race of arms with rows of their own: arm i has N_i rewards, and sums are compared.

The loop of `engine` with one stream for each arm, which are `shuffle.Streams`, or any named tuple that
implements

- ``take_own(streams, bits, arm, rows, count)``: put the next rows of an arm into `rows`;
- ``best_of_group(streams, source, arm)``: find the value of an arm that stands for several (see below);
- ``rewind_own(streams)``: end a race.

Its rules have a `working_memory`, as those of `rules`, and implement

- ``is_patient(rule)``: whether arms that can reach little may wait (see `own`);
- ``look_size(rule, look, looks, size)``: rows to read of an arm now, at a look of the race and of the arm;
- ``judge_own(rule, work, source, field, own, sizes)``: flag in `field.out` the arms to drop.

A size of -k means a group: the best of several sums of k rewards each. When it is its turn, its value is
found as a whole.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import Bits, kernel, routine
from gumbelrace.core.shuffle import Streams, rewind_all, take_from
from gumbelrace.methods.field import (
    ALIVE,
    EVALUATIONS,
    EXHAUSTED,
    LOOKS,
    Field,
    drop,
    drop_ruled_out,
    line_up,
    new_field,
    reset,
)
from gumbelrace.methods.own import (
    HEIGHT,
    NOBODY,
    Own,
    absorb,
    all_read,
    enter_own,
    lower_bar,
    new_own,
    rank_own,
    set_bar,
    waits,
)
from gumbelrace.methods.results import Results, record
from gumbelrace.methods.rules import implements
from gumbelrace.population.base import CODE, FINE, IMPOSSIBLE, Floats, Source, read


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
    gear: OwnGear,
    source: Source,
    streams: Any,
    bits: Bits,
    sizes: NDArray[np.int64],
    offsets: Floats,
    results: Results,
) -> None:
    """Find the arm with the highest offset + sum once for each row of `offsets`."""
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
    for arm in range(source.arms):
        field.offset[arm] = offset[arm]
    reset(field, source)
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


def new_own_gear(rule: Any, source: Source) -> OwnGear:
    """Make room for races by a rule."""
    rows, one = np.empty(source.chunk, np.int64), np.empty(1, np.int64)
    return OwnGear(new_field(source.arms), new_own(source), rows, one, rule.working_memory(source.arms))


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
