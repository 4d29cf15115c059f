"""The choice of a cluster for one mention: small clusters are read whole, a race decides on the large ones.

After the first look all is known of a cluster that is not larger than it. So the best of the small clusters
and of the empty one is a single arm of the race, without rows and with its value as offset.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.jit import Bits, maker, part
from gumbelrace.kernels.cluster_order import streams_of
from gumbelrace.kernels.cluster_partition import CLUSTERS, Partition, size_of
from gumbelrace.population.base import CODE, FINE, Floats, Source, read
from gumbelrace.population.pair_readers import MENTION
from gumbelrace.solvers.field import LEADER, LOOKS
from gumbelrace.solvers.separate import OwnGear, race_own

# Entries of Desk.tally
ALL, LOOKED, CHANGED, VISITED, WRONG, DONE = range(6)
# No segment: nothing is left out, or nothing was found.
NONE = -1
# Sums that differ by less than this share of their size are equal but for rounding.
ROUNDING = 1e-10


class Memo(NamedTuple):
    """The clusters from which one mention chooses, and those among them that race."""

    offset: Floats  # noise of each segment; after the last, of the empty cluster
    sums: Floats  # of each segment that was read whole
    segments: NDArray[np.int64]  # of the arms of the race
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    offsets: Floats


class Batch(NamedTuple):
    """Rows that are read together, and the segments that they belong to."""

    rows: NDArray[np.int64]
    owner: NDArray[np.int64]
    values: Floats
    first: NDArray[np.int64]  # the arm under which they are read: the first


class Sums(NamedTuple):
    """S[i, c], the sum of f(i, j) over the members j of a cluster, in column c (see `cluster_sums`)."""

    table: Floats
    column: NDArray[np.int32]  # of each cluster, NONE if it has no column
    free: NDArray[np.int32]  # columns that are not in use
    unused: NDArray[np.int64]  # how many these are
    line: Floats  # f(i, j) of one mention i with all


class Desk(NamedTuple):
    """What one thread works on."""

    partition: Partition
    memo: Memo
    batch: Batch
    sums: Sums
    ordering: Any  # Fresh or Fixed (see `cluster_order`)
    site: NDArray[np.int64]
    tally: NDArray[np.int64]


@maker
def choose(
    rule: Any, gear: OwnGear, source: Source, desk: Desk, bits: Bits, limit: int, i: int, left_out: int
) -> int:
    """Find the best segment for mention `i`, set aside; after the last segment is the empty cluster."""
    memo, desk.site[MENTION] = desk.memo, i
    best = best_known(desk, source, limit, i, left_out)
    arms = line_up_large(desk, limit, i, left_out)
    if arms == 0 or source.fault[CODE] != FINE:
        return best
    memo.starts[arms], memo.sizes[arms], memo.offsets[arms] = 0, 0, value_of(desk, best)
    winner = race(rule, gear, source, desk, bits, arms + 1, i)
    return best if winner == arms else memo.segments[winner]


@maker
def race(rule: Any, gear: OwnGear, source: Source, desk: Desk, bits: Bits, arms: int, i: int) -> int:
    """Race the arms that are lined up in the memo; return the best."""
    memo = desk.memo
    streams = streams_of(desk.ordering, desk.partition, memo.starts[:arms], memo.sizes[:arms], i)
    race_own(rule, gear, limited(source, arms), streams, bits, memo.sizes, memo.offsets)
    desk.tally[LOOKED] += gear.field.tally[LOOKS]
    return gear.field.tally[LEADER]


@part
def others(desk: Desk, s: int, i: int) -> int:
    """Count the members of a segment, mention `i` not among them."""
    partition = desk.partition
    return size_of(partition, s) - (partition.labels[i] == partition.ids[s])


@part
def best_known(desk: Desk, source: Source, limit: int, i: int, left_out: int) -> int:
    """Read the clusters of at most `limit` members; give the best of them and of the empty one."""
    clusters = desk.partition.counts[CLUSTERS]
    read_small(desk, source, limit, i, left_out)
    best = clusters
    for s in range(clusters):
        known = others(desk, s, i) <= limit or is_summed(desk, s)
        if s != left_out and known and value_of(desk, s) > value_of(desk, best):
            best = s
    return best


@part
def value_of(desk: Desk, s: int) -> float:
    """Give the noise plus the sum of a segment that was read whole."""
    empty = s == desk.partition.counts[CLUSTERS]
    return desk.memo.offset[s] + (0.0 if empty else desk.memo.sums[s])


@part
def is_summed(desk: Desk, s: int) -> bool:
    """Whether the sums of a segment are kept."""
    return desk.sums.column[desk.partition.ids[s]] != NONE


@part
def read_small(desk: Desk, source: Source, limit: int, i: int, left_out: int) -> None:
    """Sum the values of mention `i` with each small cluster, many clusters at a time."""
    partition, memo, batch, filled = desk.partition, desk.memo, desk.batch, 0
    for s in range(partition.counts[CLUSTERS]):
        size = others(desk, s, i)
        if is_summed(desk, s):
            memo.sums[s] = desk.sums.table[i, desk.sums.column[partition.ids[s]]]
        elif size <= limit and s != left_out:
            memo.sums[s], start = 0.0, partition.starts[s]
            if size == 0:
                # The mention was alone: its cluster is the empty one.
                memo.offset[partition.counts[CLUSTERS]] = -np.inf
            for k in range(start, start + size):
                batch.rows[filled], batch.owner[filled] = partition.members[k], s
                filled += 1
                if filled == len(batch.rows):
                    add_up(desk, source, filled)
                    filled = 0
    add_up(desk, source, filled)


@part
def add_up(desk: Desk, source: Source, filled: int) -> None:
    """Read the rows of the batch and add each to its segment's sum."""
    batch, sums = desk.batch, desk.memo.sums
    if filled > 0 and source.fault[CODE] == FINE:
        read(source, batch.rows, filled, batch.first, 1, batch.values, 0)
        for k in range(filled):
            sums[batch.owner[k]] += batch.values[0, k]


@part
def line_up_large(desk: Desk, limit: int, i: int, left_out: int) -> int:
    """Make an arm of each cluster that was not read whole; return how many there are."""
    memo, arms = desk.memo, 0
    for s in range(desk.partition.counts[CLUSTERS]):
        size = others(desk, s, i)
        if size > limit and s != left_out and not is_summed(desk, s):
            memo.segments[arms], memo.starts[arms] = s, desk.partition.starts[s]
            memo.sizes[arms], memo.offsets[arms] = size, memo.offset[s]
            arms += 1
    return arms


@maker
def limited(source: Source, arms: int) -> Source:
    """Give the source for a race of the first `arms` arms."""
    return Source(
        source.reader,
        source.context,
        arms,
        source.chunk,
        source.verify,
        source.low,
        source.high,
        source.direct,
        source.scan_speed,
        source.fault,
        source.ruled_out,
    )


@part
def is_best(desk: Desk, source: Source, i: int, chosen: int) -> bool:
    """Whether all values, with the same noise, make the segment chosen the best but for rounding."""
    desk.site[MENTION] = i
    best = value_of(desk, best_known(desk, source, len(desk.partition.labels), i, NONE))
    return value_of(desk, chosen) >= best - ROUNDING * abs(best)
