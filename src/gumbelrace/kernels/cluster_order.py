"""In which order the members of clusters are read: a new random one for each choice, or always the same.

Where values are kept, a race should ask for those that it has asked for before. So every pair has a key, a
random number that follows from i and j alone, and the members of a cluster are read by their keys with the
mention that chooses. For one mention this order is as random as any other; it is just not drawn again.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.jit import maker, part
from gumbelrace.kernels.cluster_partition import Partition, put
from gumbelrace.shuffle import LARGEST, SHUFFLE_SEED, Streams

# Few places are sorted, and so are those that are left after many tries.
FEW, TRIES = 8, 30
HIGHEST = 2.0**32


class Ordering(NamedTuple):
    """What orders of members need besides the arms."""

    fixed: bool  # by keys
    sorts: bool  # sort what is read, for rules to which the order within a look matters
    cursor: NDArray[np.int64]  # of `Streams`
    swaps: NDArray[np.int32]
    endless: NDArray[np.int64]  # rows are mentions: their numbers have no end of their own
    order: NDArray[np.int32]  # empty
    taken: NDArray[np.int64]  # of each arm, by keys: how many were read
    numbers: NDArray[np.uint32]  # a random one for each mention
    keys: NDArray[np.uint32]  # of the member at each place with the mention that chooses


class Keyed(NamedTuple):
    """The members of each arm's cluster, by their keys with one mention."""

    starts: NDArray[np.int64]
    counts: NDArray[np.int64]
    partition: Partition
    ordering: Ordering
    mention: int


def new_ordering(size: int, arms: int, fixed: bool, sorts: bool) -> Ordering:
    """Make room for the orders of so many mentions."""
    cursor, endless = np.zeros((arms, 3), np.int64), np.full(arms, LARGEST, np.int64)
    swaps, order, taken = np.zeros(size, np.int32), np.empty(0, np.int32), np.zeros(arms, np.int64)
    numbers = np.random.default_rng(SHUFFLE_SEED).integers(2**32, size=size, dtype=np.uint32)
    keys = np.zeros(size, np.uint32)
    return Ordering(fixed, sorts, cursor, swaps, endless, order, taken, numbers, keys)


@maker
def fresh_order(
    ordering: Ordering, partition: Partition, starts: NDArray[np.int64], counts: NDArray[np.int64]
) -> Streams:
    """Give a new order of the members of each arm's cluster."""
    cursor, members = ordering.cursor[: len(starts)], partition.members
    return Streams(1, ordering.order, ordering.endless, starts, counts, members, ordering.swaps, cursor)


@maker
def fixed_order(
    ordering: Ordering, partition: Partition, starts: NDArray[np.int64], counts: NDArray[np.int64], i: int
) -> Keyed:
    """Give the order of the members of each arm's cluster by their keys with mention `i`."""
    for arm in range(len(starts)):
        ordering.taken[arm] = 0
    return Keyed(starts, counts, partition, ordering, i)


@part
def find_keys(streams: Keyed, first: int, last: int) -> None:
    """Find the keys of the places from `first` to `last`."""
    numbers, members = streams.ordering.numbers, streams.partition.members
    own, keys = numbers[streams.mention], streams.ordering.keys
    # Unsigned indices cannot count from the end: only then does the loop run in vector registers.
    for place in range(np.uint64(first), np.uint64(last)):
        keys[place] = key_of(own, numbers[np.uint64(members[place])])


@part
def key_of(one: np.uint32, other: np.uint32) -> np.uint32:
    """Give the random number of a pair from those of its mentions (the finish of MurmurHash3)."""
    bits = np.uint32(one + other)
    bits = np.uint32(np.uint32(bits ^ (bits >> np.uint32(16))) * np.uint32(0x85EBCA6B))
    bits = np.uint32(np.uint32(bits ^ (bits >> np.uint32(13))) * np.uint32(0xC2B2AE35))
    return np.uint32(bits ^ (bits >> np.uint32(16)))


@part
def take_by_key(streams: Keyed, arm: int, rows: NDArray[np.int64], count: int) -> None:
    """Put the next `count` members of an arm's cluster into `rows`."""
    taken = streams.ordering.taken
    first, last = streams.starts[arm] + taken[arm], streams.starts[arm] + streams.counts[arm]
    if taken[arm] == 0:
        find_keys(streams, first, last)
    bring_forward(streams, first, first + count, last, HIGHEST * taken[arm] / streams.counts[arm])
    if streams.ordering.sorts:
        sort(streams, first, first + count)
    for k in range(count):
        rows[k] = streams.partition.members[first + k]
    taken[arm] += count


@part
def bring_forward(streams: Keyed, first: int, middle: int, last: int, low: float) -> None:
    """Put the lowest keys of the places from `first` to `last`, about `low` and more, before `middle`."""
    high, tries = HIGHEST, 0
    while first < middle < last and last - first > FEW and tries < TRIES:
        # Keys are spread evenly: a pivot a little above the one wanted leaves few, and then one just there.
        wanted, left = middle - first, last - first
        above = 2.0 * np.sqrt(wanted) if tries == 0 else 0.0
        pivot = low + min((wanted + above) / left, 0.9) * (high - low)
        split = partition_by(streams, first, last, np.uint32(pivot))
        if split >= middle:
            last, high = split, pivot
        else:
            first, low = split, pivot
        tries += 1
    if first < middle < last:
        sort(streams, first, last)


@part
def partition_by(streams: Keyed, first: int, last: int, pivot: np.uint32) -> int:
    """Put keys below the pivot before the others; return where these begin."""
    for place in range(np.uint64(first), np.uint64(last)):
        if streams.ordering.keys[place] < pivot:
            exchange(streams, first, place)
            first += 1
    return first


@part
def sort(streams: Keyed, first: int, last: int) -> None:
    """Sort places by their keys (Shell)."""
    keys, gap = streams.ordering.keys, 1
    while gap < (last - first) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for place in range(first + gap, last):
            while place - gap >= first and keys[place - gap] > keys[place]:
                exchange(streams, place - gap, place)
                place -= gap
        gap //= 3


@part
def exchange(streams: Keyed, one: int, other: int) -> None:
    """Exchange the members at two places, and their keys."""
    keys, members = streams.ordering.keys, streams.partition.members
    keys[one], keys[other] = keys[other], keys[one]
    moved = members[one]
    put(streams.partition, one, members[other])
    put(streams.partition, other, moved)
