"""What one thread works on when mentions choose clusters, and the reading of whole clusters."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.jit import part, routine
from gumbelrace.kernels.clusters.order import Ordering
from gumbelrace.kernels.clusters.partition import CLUSTERS, Partition, size_of
from gumbelrace.population.base import CODE, FINE, Floats, Source, read
from gumbelrace.population.pair_readers import MENTION
from gumbelrace.solvers.reading import FEW_ADDITIONS, ROUNDING

# Entries of Desk.tally
ALL, READ, LOOKED, CHANGED, VISITED, WRONG, DONE = range(7)
# No segment: nothing is left out, or nothing was found.
NONE = -1


class Memo(NamedTuple):
    """The clusters from which one mention chooses, and the arms of their race."""

    offset: Floats  # noise of each segment; after the last, of the empty cluster
    sums: Floats  # of each segment that was read whole
    bulk: Floats  # the same without signs
    segments: NDArray[np.int64]  # of each arm; of a group, the best one
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]  # of a group of segments of size k, -k
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
    ordering: Ordering
    site: NDArray[np.int64]
    tally: NDArray[np.int64]


@part
def others(desk: Desk, s: int, i: int) -> int:
    """Count the members of a segment, mention `i` not among them."""
    partition = desk.partition
    return size_of(partition, s) - (partition.labels[i] == partition.ids[s])


@part
def is_among(desk: Desk, s: int, least: int, most: int, i: int, left_out: int) -> bool:
    """Whether a segment has from `least` to `most` members; the mention's own, only if `least` is 0."""
    size = others(desk, s, i)
    is_own = size < size_of(desk.partition, s)
    return s != left_out and least <= size <= most and not (is_own and least > 0)


@routine
def best_known(desk: Desk, source: Source, least: int, most: int, i: int, left_out: int) -> int:
    """Read the clusters of `least` to `most` members; give the best of them and of the empty one."""
    clusters = desk.partition.counts[CLUSTERS]
    read_whole(desk, source, least, most, i, left_out)
    best = clusters
    for s in range(clusters):
        known = is_among(desk, s, least, most, i, left_out)
        if known and value_of(desk, s) > value_of(desk, best):
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
def read_whole(desk: Desk, source: Source, least: int, most: int, i: int, left_out: int) -> None:
    """Sum the values of mention `i` with each cluster of these sizes, many clusters at a time."""
    partition, memo, filled = desk.partition, desk.memo, 0
    for s in range(partition.counts[CLUSTERS]):
        if not is_among(desk, s, least, most, i, left_out):
            continue
        start, size = partition.starts[s], others(desk, s, i)
        desk.tally[READ] += size
        if is_summed(desk, s):
            memo.sums[s] = desk.sums.table[i, desk.sums.column[partition.ids[s]]]
            memo.bulk[s] = abs(memo.sums[s])
            continue
        memo.sums[s], memo.bulk[s] = 0.0, 0.0
        if size == 0:
            close_empty(desk)
        for k in range(start, start + size):
            filled = queue(desk, source, filled, partition.members[k], s)
    add_up(desk, source, filled)


@part
def queue(desk: Desk, source: Source, filled: int, row: int, s: int) -> int:
    """Put a row of a segment into the batch; add a full batch up. Return how many rows wait in it."""
    desk.batch.rows[filled], desk.batch.owner[filled] = row, s
    if filled + 1 < len(desk.batch.rows):
        return filled + 1
    add_up(desk, source, filled + 1)
    return 0


@part
def close_empty(desk: Desk) -> None:
    """Leave the empty cluster out: the mention was alone, and its own cluster is that."""
    desk.memo.offset[desk.partition.counts[CLUSTERS]] = -np.inf


@part
def add_up(desk: Desk, source: Source, filled: int) -> None:
    """Read the rows of the batch and add each to its segment's sum."""
    batch, sums, bulk = desk.batch, desk.memo.sums, desk.memo.bulk
    if filled > 0 and source.fault[CODE] == FINE:
        read(source, batch.rows, filled, batch.first, 1, batch.values, 0)
        for k in range(filled):
            sums[batch.owner[k]] += batch.values[0, k]
            bulk[batch.owner[k]] += abs(batch.values[0, k])


@part
def is_best(desk: Desk, source: Source, i: int, chosen: int) -> bool:
    """Whether all values, with the same noise, make the segment chosen the best but for rounding."""
    desk.site[MENTION] = i
    best = best_known(desk, source, 0, len(desk.partition.labels), i, NONE)
    return value_of(desk, chosen) + slack(desk, chosen) >= value_of(desk, best) - slack(desk, best)


@part
def slack(desk: Desk, s: int) -> float:
    """Give how far the value of a segment may be off by rounding."""
    if value_of(desk, s) == -np.inf:
        return 0.0
    empty = s == desk.partition.counts[CLUSTERS]
    return FEW_ADDITIONS * abs(desk.memo.offset[s]) + (0.0 if empty else ROUNDING * desk.memo.bulk[s])
