"""A thread's workspace, the reading of clusters in it, and the sums that are kept of them.

Sums S[i, c] of a mention's values with every cluster of two and more are brought up to date when a mention
moves. The values are kept as well (see `population.pairs`), so that no pair is computed twice and a
cluster of one needs no sums. Memory: 2n² bytes, and 8n for each cluster of two and more.
"""

from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from gumbelrace.core.jit import OPTIONS, kernel, part, routine
from gumbelrace.core.packed import Entries, read_stored
from gumbelrace.kernels.base import READ
from gumbelrace.kernels.clusters.partition import CLUSTERS, UNPLACED, Partition
from gumbelrace.methods.state import NOBODY
from gumbelrace.population.base import CODE, FINE, Floats, Source, read
from gumbelrace.population.pairs import MENTION

# Columns of sums at first; they are doubled when they are used up.
FEWEST_COLUMNS = 64
# The cluster has no column.
NONE = -1
# Entries of Workspace.turn: the segment of the mention that chooses, and whether it may stay there
HOME, STAYS = 0, 1

# best(address of a `Workspace`, arm, values of the arms) -> the best segment
BEST = types.int64(types.CPointer(types.int64), types.int64, types.CPointer(types.float64))
# update(address of a `Workspace`, mention, cluster that it has left) -> 0
UPDATE = types.int64(types.CPointer(types.int64), types.int64, types.int64)


class Arms(NamedTuple):
    """The arms of a race: clusters, or groups of small clusters of equal size."""

    segments: NDArray[np.int64]  # of a group, the best one
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]  # of a group of segments of size k, -k
    offsets: Floats
    highest: Floats  # offset of the segments of each size that is small


class Batch(NamedTuple):
    """Rows that are read together, and what their values are added to."""

    rows: NDArray[np.int64]
    owner: NDArray[np.int64]
    values: Floats
    first: NDArray[np.int64]  # the arm under which they are read: the first


class Sums(NamedTuple):
    """S[i, c], the sum of f(i, j) over the members j of a cluster, in column c; nothing if not kept."""

    table: Floats  # S[i, c] at [c, i]: a move changes all of two columns, whose sums lie side by side
    column: NDArray[np.int32]  # of each cluster
    free: NDArray[np.int32]  # columns that are not in use
    unused: NDArray[np.int64]  # how many these are


class Lines(NamedTuple):
    """Range of the sums of values with a cluster, which may merge with another; of each arm."""

    low: Floats
    high: Floats


class Workspace(NamedTuple):
    """What one thread works on (compiled code changes the arrays)."""

    partition: Partition
    source: Source  # of the values of the mention that chooses
    lines: Lines
    noise: Floats  # of each segment; after the last, of the empty cluster
    totals: Floats  # what was read, of each segment, or of each mention; the last entry is spare
    arms: Arms
    batch: Batch
    sums: Sums
    turn: NDArray[np.int64]
    site: NDArray[np.int64]
    tally: NDArray[np.int64]
    law_error: Floats  # the sum over the draws of the sweep


def new_sums(size: int, clusters: NDArray[np.int32]) -> Sums:
    """Make room for the sums of `size` mentions with the clusters given, and with more of them."""
    columns, used = max(FEWEST_COLUMNS, 2 * len(clusters)), len(clusters)
    column = np.full(size, NONE, np.int32)
    column[clusters] = np.arange(used)
    free = np.arange(columns, dtype=np.int32)[::-1].copy()
    return Sums(np.zeros((columns, size)), column, free, np.array([columns - used]))


def no_sums(size: int) -> Sums:
    """Give sums that are not kept."""
    nothing = np.zeros((0, 0)), np.full(size, NONE, np.int32), np.empty(0, np.int32)
    return Sums(*nothing, np.zeros(1, np.int64))


def enlarged(sums: Sums) -> Sums:
    """Give the same sums with twice as many columns, none of which was free."""
    columns = len(sums.free)
    table = np.concatenate([sums.table, np.zeros_like(sums.table)])
    free = np.arange(2 * columns, dtype=np.int32)[::-1].copy()
    return sums._replace(table=table, free=free, unused=np.array([columns]))


@part
def is_summed(work: Workspace, s: int) -> bool:
    return work.sums.column[work.partition.ids[s]] != NONE


@part
def kept_sum(work: Workspace, i: int, s: int) -> float:
    return work.sums.table[work.sums.column[work.partition.ids[s]], i]


def _best_entry(name: str, cache: bool) -> Any:
    """Compile the choice among all clusters (NOBODY), or among those of an arm that is a group."""

    @numba.cfunc(BEST, cache=cache, **OPTIONS)
    def best(words, arm, values):  # type: ignore[no-untyped-def]
        work = read_stored(words, name)
        if arm == NOBODY:
            return best_of_sizes(work, 0, len(work.partition.labels))
        size = -work.arms.sizes[arm]
        segment = best_of_sizes(work, size, size)
        work.arms.segments[arm], values[arm] = segment, value_of(work, segment)
        return segment

    return best


BEST_OF = Entries(_best_entry)


@routine
def best_of_sizes(work: Workspace, least: int, most: int) -> int:
    """Read the clusters of `least` to `most` members; give the best of them and of the empty one."""
    best, ruled_out = work.partition.counts[CLUSTERS], work.source.ruled_out[0]
    read_clusters(work, least, most)
    work.source.ruled_out[0] = ruled_out  # what was read has nothing to do with the first arm of a race
    work.totals[best] = 0.0
    for s in range(work.partition.counts[CLUSTERS]):
        if is_among(work, s, least, most) and value_of(work, s) > value_of(work, best):
            best = s
    return best


@part
def is_among(work: Workspace, s: int, least: int, most: int) -> bool:
    """Whether a segment has from `least` to `most` members; home is an arm of its own if `least` > 0."""
    possible = s != work.turn[HOME] or (work.turn[STAYS] == 1 and least == 0)
    return possible and least <= work.partition.sizes[s] <= most


@part
def value_of(work: Workspace, s: int) -> float:
    return work.noise[s] + work.totals[s]


@part
def read_clusters(work: Workspace, least: int, most: int) -> None:
    """Sum the values of the mention with each cluster of these sizes, many clusters at a time."""
    partition, i, filled = work.partition, work.site[MENTION], 0
    for s in range(partition.counts[CLUSTERS]):
        if is_among(work, s, least, most):
            start, size = partition.starts[s], partition.sizes[s]
            work.tally[READ] += size
            if is_summed(work, s):
                work.totals[s] = kept_sum(work, i, s)
            else:
                work.totals[s] = 0.0
                for k in range(start, start + size):
                    filled = queue(work, filled, partition.members[k], s)
    add_up(work, filled)


@part
def queue(work: Workspace, filled: int, row: int, owner: int) -> int:
    """Put a row into the batch; add a full batch up. Return how many rows wait in it."""
    work.batch.rows[filled], work.batch.owner[filled] = row, owner
    if filled + 1 < len(work.batch.rows):
        return filled + 1
    add_up(work, filled + 1)
    return 0


@part
def add_up(work: Workspace, filled: int) -> None:
    """Read the rows of the batch and add each to the total of its owner."""
    batch, source = work.batch, work.source
    if filled > 0 and source.fault[CODE] == FINE:
        read(source, batch.rows, filled, batch.first, 1, batch.values, 0)
        for k in range(filled):
            work.totals[batch.owner[k]] += batch.values[0, k]


@routine
def sum_with(work: Workspace, i: int, s: int, stop: int) -> float:
    """Sum the values of mention `i` with the members of a segment at places before `stop`, all read."""
    partition, filled, spare = work.partition, 0, len(work.totals) - 1
    work.site[MENTION], work.totals[spare] = i, 0.0
    for k in range(partition.starts[s], stop):
        if partition.members[k] != i:
            filled = queue(work, filled, partition.members[k], spare)
    add_up(work, filled)
    return work.totals[spare]


@routine
def sum_between(work: Workspace, one: int, two: int) -> float:
    """Sum the values of all pairs of members of two segments."""
    partition, total = work.partition, 0.0
    work.tally[READ] += partition.sizes[one] * partition.sizes[two]
    for k in range(partition.starts[two], partition.starts[two + 1]):
        i = partition.members[k]
        if is_summed(work, one):
            total += kept_sum(work, i, one)
        else:
            total += sum_with(work, i, one, partition.starts[one + 1])
    return total


@kernel
def log_weight_of(work: Workspace, mentions: NDArray[np.int64]) -> float:
    """Sum the values of some mentions with the members of their clusters that come before them."""
    partition, total = work.partition, 0.0
    for i in mentions:
        if partition.labels[i] != UNPLACED:
            s = partition.segment[partition.labels[i]]
            total += sum_with(work, i, s, partition.place[i])
    return total


@kernel
def add_to_sums(work: Workspace, mentions: NDArray[np.int64]) -> None:
    """Add some mentions to the sums of their clusters."""
    column, labels = work.sums.column, work.partition.labels
    for i in mentions:
        if labels[i] != UNPLACED and column[labels[i]] != NONE:
            if not read_line(work, i):
                return
            add_line(work, labels[i])


def _sums_entry(name: str, cache: bool) -> Any:
    """Compile the update of sums, which only those need who keep them."""

    @numba.cfunc(UPDATE, cache=cache, **OPTIONS)
    def update(words, i, before):  # type: ignore[no-untyped-def]
        update_sums(read_stored(words, name), i, before)
        return 0

    return update


UPDATES = Entries(_sums_entry)


@part
def update_sums(work: Workspace, i: int, before: int) -> None:
    """Bring the sums up to date after a mention has moved from the cluster `before`."""
    partition, sums = work.partition, work.sums
    if not read_line(work, i):
        return
    if before != UNPLACED and sums.column[before] != NONE:
        if partition.sizes[partition.segment[before]] == 1:
            close_column(sums, before)
        else:
            subtract_line(work, before)
    label = partition.labels[i]
    s = partition.segment[label]
    if partition.sizes[s] == 2:
        open_column(sums, label)
        add_line(work, label)
        read_line(work, partition.members[partition.starts[s]])
    if partition.sizes[s] > 1:
        add_line(work, label)


@part
def open_column(sums: Sums, label: int) -> None:
    sums.unused[0] -= 1
    column = sums.free[sums.unused[0]]
    sums.column[label], sums.table[column] = column, 0.0


@part
def close_column(sums: Sums, label: int) -> None:
    sums.free[sums.unused[0]] = sums.column[label]
    sums.unused[0] += 1
    sums.column[label] = NONE


@part
def read_line(work: Workspace, i: int) -> bool:
    """Put the values of mention `i` with all others into the totals, and 0 for itself."""
    filled = 0
    work.site[MENTION] = i
    for j in range(len(work.partition.labels)):
        work.totals[j] = 0.0
        if j != i:
            filled = queue(work, filled, j, j)
    add_up(work, filled)
    return work.source.fault[CODE] == FINE


@part
def add_line(work: Workspace, label: int) -> None:
    sums = work.sums.table[work.sums.column[label]]
    for k in range(len(sums)):
        sums[k] += work.totals[k]


@part
def subtract_line(work: Workspace, label: int) -> None:
    """Take the line out of the column of a cluster; what an infinite value hid is read again."""
    sums, s = work.sums.table[work.sums.column[label]], work.partition.segment[label]
    for k in range(len(sums)):
        if work.totals[k] > -np.inf:
            sums[k] -= work.totals[k]
        else:
            sums[k] = sum_with(work, k, s, work.partition.starts[s + 1])


@part
def add_columns(sums: Sums, kept: int, gone: int) -> None:
    """Add the sums of a cluster to those of another one, which takes all its members."""
    total, more = sums.table[sums.column[kept]], sums.table[sums.column[gone]]
    for k in range(len(total)):
        total[k] += more[k]
    close_column(sums, gone)
