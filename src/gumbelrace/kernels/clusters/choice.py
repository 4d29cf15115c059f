"""The choice of a cluster for one mention: a race of the large clusters and of groups of small ones.

After the first look all is known of a cluster that is not larger than it. So small clusters of equal size
are a single arm, whose value, that of the best of them, is found when it is their turn; often they can
reach so little that it never is. The mention's own cluster is the favourite.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.jit import Bits, maker, part, routine
from gumbelrace.kernels.clusters.order import fresh_order
from gumbelrace.kernels.clusters.partition import CLUSTERS, UNPLACED
from gumbelrace.kernels.clusters.whole import (
    LOOKED,
    READ,
    Desk,
    best_known,
    close_empty,
    is_among,
    others,
    value_of,
)
from gumbelrace.population.base import Source
from gumbelrace.population.pair_readers import COUNT, MENTION
from gumbelrace.shuffle import Streams, rewind_all, take_from
from gumbelrace.solvers.betting_separate import OwnWagers
from gumbelrace.solvers.exact import Scan
from gumbelrace.solvers.field import EVALUATIONS, LEADER, LOOKS
from gumbelrace.solvers.own import NOBODY
from gumbelrace.solvers.race_separate import OwnLooks
from gumbelrace.solvers.rules import implements
from gumbelrace.solvers.separate import OwnGear, best_of_group, race_own, rewind_own, take_own


class Turn(NamedTuple):
    """A mention that chooses, a segment that it must not choose, and the arm that is read at once."""

    mention: int
    left_out: int
    favourite: int


class OfClusters(NamedTuple):
    """The order in which members of large clusters are read, and what is needed to read small ones."""

    order: Streams
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
    order = fresh_order(desk.ordering, desk.partition, memo.starts[:arms], memo.sizes[:arms])
    streams = OfClusters(order, desk, turn)
    race_own(rule, gear, limited(source, arms), streams, bits, memo.sizes, memo.offsets, turn.favourite)
    tally, values_a_row = gear.field.tally, max(desk.site[COUNT], 1)  # a row of lines has many
    desk.tally[LOOKED] += tally[LOOKS]
    desk.tally[READ] += tally[EVALUATIONS] * values_a_row
    return tally[LEADER]


@implements(race, Scan)
def _no_race(
    rule: Scan, gear: OwnGear, source: Source, desk: Desk, bits: Bits, arms: int, turn: Turn
) -> int:
    # All clusters are small to it.
    return NOBODY


@implements(take_own, OfClusters)
def _take(streams: OfClusters, bits: Bits, arm: int, rows: NDArray[np.int64], count: int) -> None:
    take_from(streams.order, bits, arm, rows, count)


@implements(rewind_own, OfClusters)
def _rewind(streams: OfClusters) -> None:
    rewind_all(streams.order)


@implements(best_of_group, OfClusters)
def _best_of_group(streams: OfClusters, source: Source, arm: int) -> float:
    desk, turn, ruled_out = streams.desk, streams.turn, source.ruled_out[0]
    size = -desk.memo.sizes[arm]
    best = best_known(desk, source, size, size, turn.mention, turn.left_out)
    source.ruled_out[0] = ruled_out  # what was read has nothing to do with the first arm
    desk.memo.segments[arm] = best
    return value_of(desk, best)


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
