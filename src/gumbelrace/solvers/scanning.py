"""The end of a race that is not worth running on: read all that is left, in the order in which it lies."""

import numpy as np
from numpy.typing import NDArray

from gumbelrace.jit import part
from gumbelrace.population.base import CODE, FINE, IMPOSSIBLE, Floats, Source, read
from gumbelrace.shuffle import (
    Stream,
    block_count,
    forget_marks,
    mark_blocks,
    mark_rows,
    open_run,
    unseen_rows,
    unseen_run,
)
from gumbelrace.solvers.field import (
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
from gumbelrace.solvers.reading import PIECE, total, typical

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
    raced, longest = 0.0, 0.0
    for a in range(field.tally[ALIVE]):
        if field.arms[a] != field.tally[LEADER]:
            rows = min(field.need[field.arms[a]], size) - taken
            raced += rows
            longest = max(longest, rows)
    return source.scan_speed * (raced + longest) > field.tally[ALIVE] * (size - taken)


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
        scan_runs(source, stream, size, field, rows)
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
def scan_runs(source: Source, stream: Stream, size: int, field: Field, bounds: NDArray[np.int64]) -> None:
    """Add up the rewards where they lie, in runs as long as can be, a batch of runs after the other."""
    bounds[0], bounds[1] = open_run(stream)
    scan_batch(source, field, bounds, 2)
    mark_blocks(stream)
    block, blocks, length = 0, block_count(stream), stream.streams.block
    while block < blocks:
        filled = 0
        while block < blocks and filled + 2 <= len(bounds):
            first, block = unseen_run(stream, block)
            bounds[filled] = first * length
            bounds[filled + 1] = min(block * length, size)
            filled += 2
        scan_batch(source, field, bounds, filled)
    forget_marks(stream, size)


@part
def scan_batch(source: Source, field: Field, bounds: NDArray[np.int64], filled: int) -> None:
    """Add up the positions from bounds[0] to before bounds[1], from bounds[2] to before bounds[3]..."""
    # One arm after the other: its runs lie in memory as a stream with gaps.
    for a in range(field.tally[ALIVE]):
        arm = field.arms[a]
        for i in range(0, filled, 2):
            for first in range(bounds[i], bounds[i + 1], PIECE):
                count = min(bounds[i + 1] - first, PIECE)
                add(field, arm, total(source.direct, arm, first, count, field.shift[0]))
                field.tally[EVALUATIONS] += count


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
