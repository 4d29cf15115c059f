"""The end of a race that is not worth running on: read all that is left, in the order in which it lies."""

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import part
from gumbelrace.core.shuffle import (
    Stream,
    forget_marks,
    mark_rows,
    unseen_rows,
)
from gumbelrace.methods.field import (
    ALIVE,
    EVALUATIONS,
    LEADER,
    Field,
    add,
    drop_ruled_out,
    is_possible,
    line_up,
    rank,
)
from gumbelrace.methods.reading import PIECE, total, typical
from gumbelrace.population.base import CODE, FINE, IMPOSSIBLE, Floats, Source, read

# Projections from fewer rows than this share of the population are not trusted.
TRUSTED_SHARE = 1 / 32


@part
def is_due(before: int, taken: int, size: int) -> bool:
    """Whether this look reached a new doubling of the least share from which one may project."""
    due = TRUSTED_SHARE * size
    while due <= before:
        due *= 2.0
    return due <= taken


@part
def scan_is_cheaper(source: Source, field: Field, taken: int, size: int) -> bool:
    """Whether reading all remaining rows in order costs less than the race is expected to."""
    left = size if len(source.direct) else size - taken
    raced, longest = 0.0, 0.0
    for a in range(field.tally[ALIVE]):
        if field.arms[a] != field.tally[LEADER]:
            rows = min(field.need[field.arms[a]], size) - taken
            raced += rows
            longest = max(longest, rows)
    return source.scan_speed * (raced + longest) > field.tally[ALIVE] * left


@part
def scan(
    source: Source,
    stream: Stream,
    size: int,
    field: Field,
    rows: NDArray[np.int64],
    block: Floats,
    taken: int,
) -> None:
    """Add up all rows not read yet, in the order in which they lie, and find the leader."""
    if len(source.direct):
        set_shift(field, source.direct, size)
        scan_table(source, size, field)
    else:
        scan_rows(source, stream, size, field, rows, block, taken)
        if field.tally[ALIVE] == 0:
            revive(source, stream, size, field, rows, block)
    if field.tally[ALIVE] == 0:
        source.fault[CODE] = IMPOSSIBLE
    else:
        for a in range(field.tally[ALIVE]):
            field.sums[field.arms[a]] += field.lost[field.arms[a]]
        rank(field, size, size)


@part
def set_shift(field: Field, rewards: Floats, count: int) -> None:
    """Choose from `count` columns of `rewards` what all rewards are reduced by, if no look has."""
    if np.isnan(field.shift[0]) and field.tally[ALIVE] > 0:
        field.shift[0] = typical(rewards, field.arms[0], 0, count)


@part
def revive(
    source: Source,
    stream: Stream,
    size: int,
    field: Field,
    rows: NDArray[np.int64],
    block: Floats,
) -> None:
    """Scan what is left of the arms dropped before: all that had beaten them have shown a -inf."""
    for arm in range(source.arms):
        if is_possible(field, source, arm) and source.fault[CODE] == FINE:
            field.arms[0], field.tally[ALIVE] = arm, 1
            scan_rows(source, stream, size, field, rows, block, field.rows[arm])
    line_up(field, source)


@part
def scan_table(source: Source, size: int, field: Field) -> None:
    """Add up all rewards where they lie, those read before too: to step around them takes longer."""
    for a in range(field.tally[ALIVE]):
        arm = field.arms[a]
        field.sums[arm], field.lost[arm] = 0.0, 0.0
        for first in range(0, size, PIECE):
            count = min(size - first, PIECE)
            add(field, arm, total(source.direct, arm, first, count, field.shift[0]))
        # What is read twice counts once.
        field.tally[EVALUATIONS] += size - field.rows[arm]


@part
def scan_rows(
    source: Source,
    stream: Stream,
    size: int,
    field: Field,
    rows: NDArray[np.int64],
    block: Floats,
    taken: int,
) -> None:
    """Read and add up all but the first `taken` rows of the random order, a chunk after the other."""
    mark_rows(stream, size, taken, rows)
    for first in range(0, size, source.chunk):
        count = unseen_rows(stream, first, min(first + source.chunk, size), rows)
        if count > 0 and field.tally[ALIVE] > 0:
            got = read(source, rows, count, field.arms, field.tally[ALIVE], block, 0)
            if got == 0:
                return
            field.tally[EVALUATIONS] += got
            if source.verify:
                drop_ruled_out(field, source)
            set_shift(field, block, count)
            for a in range(field.tally[ALIVE]):
                arm = field.arms[a]
                add(field, arm, total(block, arm, 0, count, field.shift[0]))
    forget_marks(stream, size)
