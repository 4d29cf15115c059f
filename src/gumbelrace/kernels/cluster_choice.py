"""The choice of a cluster for one mention: a race of the large clusters and of groups of small ones.

After the first look all is known of a cluster that is not larger than it. So small clusters of equal size
are a single arm, whose value, that of the best of them, is found when it is their turn; often they can
reach so little that it never is. The mention's own cluster is the favourite.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.jit import Bits, maker, part, routine
from gumbelrace.kernels.cluster_order import Keyed, Ordering, fixed_order, fresh_order, take_by_key
from gumbelrace.kernels.cluster_partition import CLUSTERS, UNPLACED, Partition, size_of
from gumbelrace.population.base import CODE, FINE, Floats, Source, read
from gumbelrace.population.pair_readers import MENTION
from gumbelrace.shuffle import Streams, rewind_all, take_from
from gumbelrace.solvers.betting_separate import OwnWagers
from gumbelrace.solvers.exact import Scan
from gumbelrace.solvers.field import LEADER, LOOKS
from gumbelrace.solvers.own import NOBODY
from gumbelrace.solvers.race_separate import OwnLooks
from gumbelrace.solvers.rules import implements
from gumbelrace.solvers.separate import OwnGear, best_of_group, race_own, rewind_own, take_own

# Entries of Desk.tally
ALL, LOOKED, CHANGED, VISITED, WRONG, DONE = range(6)
# No segment: nothing is left out, or nothing was found.
NONE = -1
# Sums that differ by less than this share of their size are equal but for rounding.
ROUNDING = 1e-10


class Memo(NamedTuple):
    """The clusters from which one mention chooses, and the arms of their race."""

    offset: Floats  # noise of each segment; after the last, of the empty cluster
    sums: Floats  # of each segment that was read whole
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


class Turn(NamedTuple):
    """A mention that chooses, a segment that it must not choose, and the arm that is read at once."""

    mention: int
    left_out: int
    favourite: int


class OfClusters(NamedTuple):
    """The order in which members of large clusters are read, and what is needed to read small ones."""

    fresh: Streams
    fixed: Keyed
    desk: Desk
    turn: Turn


@maker
def choose(
    rule: Any, gear: OwnGear, source: Source, desk: Desk, bits: Bits, limit: int, i: int, left_out: int
) -> int:
    """Find the best segment for mention `i`, set aside; after the last segment is the empty cluster."""
    desk.site[MENTION] = i
    if limit >= len(desk.partition.labels):
        return best_known(desk, source, 0, limit, i, left_out)
    favourite = line_up_own(desk, i, left_out)
    arms = line_up_large(desk, limit, i, left_out, favourite + 1)
    arms = line_up_small(desk, limit, i, left_out, arms)
    winner = race(rule, gear, source, desk, bits, arms, Turn(i, left_out, favourite))
    return desk.memo.segments[winner]


def race(rule: Any, gear: OwnGear, source: Source, desk: Desk, bits: Bits, arms: int, turn: Turn) -> int:
    """Race the arms that are lined up in the memo; return the best."""
    raise NotImplementedError


@implements(race, OwnLooks, makes=True)
@implements(race, OwnWagers, makes=True)
def _race(rule: Any, gear: OwnGear, source: Source, desk: Desk, bits: Bits, arms: int, turn: Turn) -> int:
    memo = desk.memo
    starts, sizes = memo.starts[:arms], memo.sizes[:arms]
    fresh = fresh_order(desk.ordering, desk.partition, starts, sizes)
    fixed = fixed_order(desk.ordering, desk.partition, starts, sizes, turn.mention)
    streams = OfClusters(fresh, fixed, desk, turn)
    race_own(rule, gear, limited(source, arms), streams, bits, memo.sizes, memo.offsets, turn.favourite)
    desk.tally[LOOKED] += gear.field.tally[LOOKS]
    return gear.field.tally[LEADER]


@implements(race, Scan)
def _no_race(
    rule: Scan, gear: OwnGear, source: Source, desk: Desk, bits: Bits, arms: int, turn: Turn
) -> int:
    # All clusters are small to it.
    return NOBODY


@implements(take_own, OfClusters)
def _take(streams: OfClusters, bits: Bits, arm: int, rows: NDArray[np.int64], count: int) -> None:
    if streams.desk.ordering.fixed:
        take_by_key(streams.fixed, arm, rows, count)
    else:
        take_from(streams.fresh, bits, arm, rows, count)


@implements(rewind_own, OfClusters)
def _rewind(streams: OfClusters) -> None:
    if not streams.desk.ordering.fixed:
        rewind_all(streams.fresh)


@implements(best_of_group, OfClusters)
def _best_of_group(streams: OfClusters, source: Source, arm: int) -> float:
    desk, turn, ruled_out = streams.desk, streams.turn, source.ruled_out[0]
    size = -desk.memo.sizes[arm]
    best = best_known(desk, source, size, size, turn.mention, turn.left_out)
    source.ruled_out[0] = ruled_out  # what was read has nothing to do with the first arm
    desk.memo.segments[arm] = best
    return value_of(desk, best)


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
    read_small(desk, source, least, most, i, left_out)
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
def read_small(desk: Desk, source: Source, least: int, most: int, i: int, left_out: int) -> None:
    """Sum the values of mention `i` with each cluster of these sizes, many clusters at a time."""
    partition, memo, batch, filled = desk.partition, desk.memo, desk.batch, 0
    for s in range(partition.counts[CLUSTERS]):
        if is_summed(desk, s):
            memo.sums[s] = desk.sums.table[i, desk.sums.column[partition.ids[s]]]
        elif is_among(desk, s, least, most, i, left_out):
            memo.sums[s], start, size = 0.0, partition.starts[s], others(desk, s, i)
            if size == 0:
                close_empty(desk)
            for k in range(start, start + size):
                batch.rows[filled], batch.owner[filled] = partition.members[k], s
                filled += 1
                if filled == len(batch.rows):
                    add_up(desk, source, filled)
                    filled = 0
    add_up(desk, source, filled)


@part
def close_empty(desk: Desk) -> None:
    """Leave the empty cluster out: the mention was alone, and its own cluster is that."""
    desk.memo.offset[desk.partition.counts[CLUSTERS]] = -np.inf


@part
def add_up(desk: Desk, source: Source, filled: int) -> None:
    """Read the rows of the batch and add each to its segment's sum."""
    batch, sums = desk.batch, desk.memo.sums
    if filled > 0 and source.fault[CODE] == FINE:
        read(source, batch.rows, filled, batch.first, 1, batch.values, 0)
        for k in range(filled):
            sums[batch.owner[k]] += batch.values[0, k]


@part
def line_up(desk: Desk, arm: int, s: int, i: int) -> None:
    """Make an arm of a segment."""
    memo = desk.memo
    memo.segments[arm], memo.starts[arm] = s, desk.partition.starts[s]
    memo.sizes[arm], memo.offsets[arm] = others(desk, s, i), memo.offset[s]


@part
def line_up_own(desk: Desk, i: int, left_out: int) -> int:
    """Make an arm of the mention's own cluster; return which, if it has one."""
    partition = desk.partition
    if partition.labels[i] == UNPLACED or partition.segment[partition.labels[i]] == left_out:
        return NOBODY
    line_up(desk, 0, partition.segment[partition.labels[i]], i)
    if desk.memo.sizes[0] == 0:
        close_empty(desk)
    return 0


@routine
def line_up_large(desk: Desk, limit: int, i: int, left_out: int, arms: int) -> int:
    """Make an arm of each other cluster of more than `limit` members; return how many there are now."""
    most = len(desk.partition.labels)
    for s in range(desk.partition.counts[CLUSTERS]):
        if is_among(desk, s, limit + 1, most, i, left_out):
            line_up(desk, arms, s, i)
            arms += 1
    return arms


@routine
def line_up_small(desk: Desk, limit: int, i: int, left_out: int, first: int) -> int:
    """Make an arm of each group of small clusters, and of the empty one; return how many there are now."""
    memo, clusters = desk.memo, desk.partition.counts[CLUSTERS]
    for k in range(limit):
        memo.starts[first + k], memo.sizes[first + k], memo.offsets[first + k] = 0, -1 - k, -np.inf
    for s in range(clusters):
        if is_among(desk, s, 1, limit, i, left_out):
            arm = first + others(desk, s, i) - 1
            memo.offsets[arm] = max(memo.offsets[arm], memo.offset[s])
    arms = first
    for arm in range(first, first + limit):
        memo.sizes[arms], memo.offsets[arms] = memo.sizes[arm], memo.offsets[arm]
        arms += memo.offsets[arm] > -np.inf
    memo.segments[arms], memo.starts[arms], memo.sizes[arms] = clusters, 0, 0
    memo.offsets[arms] = memo.offset[clusters]
    return arms + 1


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
    best = value_of(desk, best_known(desk, source, 0, len(desk.partition.labels), i, NONE))
    return value_of(desk, chosen) >= best - ROUNDING * abs(best)
