"""The one race: read random rows of the arms still in it, drop arms, until one is left.

Every solver on arms that share their rows is this loop with a rule of its own (see `rules`).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.jit import Bits, kernel, maker, part
from gumbelrace.population.base import CODE, FINE, Floats, Source
from gumbelrace.shuffle import Stream, rewind
from gumbelrace.solvers.field import (
    ALIVE,
    EXHAUSTED,
    LEADER,
    TAKEN,
    Field,
    admit,
    drop,
    new_field,
    rank,
    reset,
)
from gumbelrace.solvers.reading import (
    KEPT,
    Sample,
    enlarged,
    gather,
    has_room,
    new_block,
    new_rows,
    new_sample,
    open_look,
)
from gumbelrace.solvers.results import Results, record
from gumbelrace.solvers.rules import begin, judge, next_look, prepare
from gumbelrace.solvers.scanning import is_due, scan, scan_is_cheaper


class Gear(NamedTuple):
    """Working memory of many races."""

    field: Field
    rows: NDArray[np.int64]
    block: Floats
    work: Any  # of the rule


@kernel
def solve(
    rule: Any,
    source: Source,
    stream: Stream,
    bits: Bits,
    size: int,
    offsets: Floats,
    results: Results,
) -> None:
    """Find the best arm once for each row of `offsets`."""
    gear, sample = new_gear(rule, source), new_sample(source)
    for draw in range(len(offsets)):
        sample = race(rule, gear, source, stream, bits, size, offsets[draw], sample)
        if source.fault[CODE] != FINE:
            return
        record(gear.field, results, draw)


@maker
def race(
    rule: Any,
    gear: Gear,
    source: Source,
    stream: Stream,
    bits: Bits,
    size: int,
    offset: Floats,
    sample: Sample,
) -> Sample:
    """Run one race; what it found is in `gear.field.tally`. Return the sample, which may have grown."""
    start(rule, gear, source, size, offset, sample)
    missing = advance(rule, gear, source, stream, bits, size, sample)
    while missing > 0:
        sample = enlarged(source, sample, stream, missing)
        missing = advance(rule, gear, source, stream, bits, size, sample)
    return sample


@part
def start(rule: Any, gear: Gear, source: Source, size: int, offset: Floats, sample: Sample) -> None:
    """Line up the arms, and drop those of which nothing need be read."""
    field = gear.field
    reset(field, source, offset)
    admit(field, source)
    sample.runs[0] = 0
    begin(rule, gear.work, source, field, size)
    drop(field)


@part
def advance(
    rule: Any, gear: Gear, source: Source, stream: Stream, bits: Bits, size: int, sample: Sample
) -> int:
    """Race until one arm is left; return 0, or the number of rows for which the sample has no room."""
    field, tally = gear.field, gear.field.tally
    while tally[ALIVE] > 1:
        taken = tally[TAKEN]
        count = next_look(rule, taken, size)
        if count == 0:
            break
        open_look(sample, rule.keeps and (len(source.direct) > 0 or taken + count <= KEPT))
        if not has_room(source, sample, stream, count):
            return count
        if not gather(source, stream, bits, field, sample, gear.rows, count):
            return 0
        taken += count
        tally[TAKEN] = taken
        rank(field, taken, size)
        judge(rule, gear.work, source, field, sample, taken, size)
        drop(field)
        if is_due(taken - count, taken, size) and scan_is_cheaper(source, field, taken, size):
            break
    finish(gear, source, stream, size, tally[TAKEN])
    return 0


@part
def finish(gear: Gear, source: Source, stream: Stream, size: int, taken: int) -> None:
    """Name the winner: the only arm left, or the leader after all rows."""
    tally = gear.field.tally
    tally[EXHAUSTED] = tally[ALIVE] != 1
    if tally[EXHAUSTED]:
        scan(source, stream, size, gear.field, gear.rows, gear.block, taken)
    else:
        tally[LEADER] = gear.field.arms[0]
    rewind(stream)


@maker
def new_gear(rule: Any, source: Source) -> Gear:
    """Make room for races by a rule."""
    block = new_block(source, source.chunk)
    return Gear(new_field(source.arms), new_rows(source), block, prepare(rule, source))
