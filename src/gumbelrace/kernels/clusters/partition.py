"""A partition of mentions into clusters that changes one mention at a time, in compiled code.

The members of all clusters lie in one array, a segment for each cluster, so that random members are read
by a partial Fisher-Yates shuffle of a segment. A mention that goes to another segment shifts those in
between by one place: one member of each is moved.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.jit import kernel, part

# Entries of Partition.counts
CLUSTERS, FREE = 0, 1
# Label of a mention that is in no cluster yet
UNPLACED = -1


class Partition(NamedTuple):
    """Clusters of mentions; segment s holds those of cluster ids[s] (compiled code changes the arrays)."""

    labels: NDArray[np.int32]  # the cluster of each mention
    members: NDArray[np.int32]
    place: NDArray[np.int32]  # where among the members each mention is
    starts: NDArray[np.int64]  # of each segment; after the last, the number of mentions placed
    ids: NDArray[np.int32]
    segment: NDArray[np.int32]  # of each cluster
    free: NDArray[np.int32]  # numbers of clusters that are not in use
    counts: NDArray[np.int64]


def new_partition(size: int) -> Partition:
    """Make room for a partition of `size` mentions."""
    labels, members, place, segment, free = np.zeros((5, size), np.int32)
    starts, ids = np.zeros(size + 2, np.int64), np.zeros(size + 1, np.int32)
    return Partition(labels, members, place, starts, ids, segment, free, np.zeros(2, np.int64))


@kernel
def arrange(partition: Partition) -> None:
    """Lay out the segments anew, in the order of their clusters' numbers, as the labels have them."""
    rearrange(partition)


@part
def rearrange(partition: Partition) -> None:
    """Lay out the segments anew: all else follows from the labels."""
    labels, starts, segment = partition.labels, partition.starts, partition.segment
    n = len(labels)
    for label in range(n):
        segment[label] = 0
    for i in range(n):
        if labels[i] != UNPLACED:
            segment[labels[i]] += 1
    clusters, free, start = 0, 0, 0
    for label in range(n):
        size = segment[label]
        if size == 0:
            free += 1
            partition.free[n - free] = label
        else:
            starts[clusters], partition.ids[clusters], segment[label] = start, label, clusters
            start += size
            clusters += 1
    # The lowest number that is free is used first.
    for k in range(free):
        partition.free[k] = partition.free[n - free + k]
    partition.counts[CLUSTERS], partition.counts[FREE] = clusters, free
    _fill(partition, start)


@part
def _fill(partition: Partition, placed: int) -> None:
    """Put the members into their segments, whose starts are known."""
    starts, clusters = partition.starts, partition.counts[CLUSTERS]
    for i in range(len(partition.labels)):
        if partition.labels[i] != UNPLACED:
            s = partition.segment[partition.labels[i]]
            put(partition, starts[s], i)
            starts[s] += 1
    # Each start has moved to the next one's.
    for s in range(clusters, 0, -1):
        starts[s] = starts[s - 1]
    starts[0] = 0


@part
def put(partition: Partition, place: int, i: int) -> None:
    """Put a mention at a place among the members."""
    partition.members[place], partition.place[i] = i, place


@part
def size_of(partition: Partition, s: int) -> int:
    """Count the members of a segment."""
    return partition.starts[s + 1] - partition.starts[s]


@part
def set_aside(partition: Partition, i: int) -> int:
    """Make a mention the last of its segment; return that, or the number of segments if it has none."""
    if partition.labels[i] == UNPLACED:
        return partition.counts[CLUSTERS]
    s = partition.segment[partition.labels[i]]
    last, place = partition.starts[s + 1] - 1, partition.place[i]
    put(partition, place, partition.members[last])
    put(partition, last, i)
    return s


@part
def relocate(partition: Partition, i: int, source: int, target: int) -> None:
    """Move a mention, set aside, to another segment; after the last segment is a new cluster."""
    clusters = partition.counts[CLUSTERS]
    if source == clusters:
        partition.starts[clusters] += 1  # there is one more among the members
    # The place that becomes free moves on from segment to segment.
    for s in range(source + 1, min(target, clusters - 1) + 1):
        last = partition.starts[s + 1] - 1
        partition.starts[s] -= 1
        put(partition, partition.starts[s], partition.members[last])
    for s in range(min(source, clusters - 1), target, -1):
        last = partition.starts[s + 1] - 1
        put(partition, last, partition.members[partition.starts[s]])
        partition.starts[s] += 1
    if target == clusters:
        _open(partition)
    put(partition, partition.starts[target + 1] - 1, i)
    partition.labels[i] = partition.ids[target]
    if source < clusters and size_of(partition, source) == 0:
        _close(partition, source)


@part
def _open(partition: Partition) -> None:
    """Begin a cluster with the last place among the members."""
    s = partition.counts[CLUSTERS]
    partition.counts[FREE] -= 1
    label = partition.free[partition.counts[FREE]]
    partition.ids[s], partition.segment[label] = label, s
    partition.starts[s + 1] = partition.starts[s]
    partition.starts[s] -= 1
    partition.counts[CLUSTERS] = s + 1


@part
def _close(partition: Partition, s: int) -> None:
    """Forget a segment that is empty."""
    partition.free[partition.counts[FREE]] = partition.ids[s]
    partition.counts[FREE] += 1
    partition.counts[CLUSTERS] -= 1
    for after in range(s, partition.counts[CLUSTERS]):
        label = partition.ids[after + 1]
        partition.ids[after], partition.segment[label] = label, after
        partition.starts[after] = partition.starts[after + 1]
    partition.starts[partition.counts[CLUSTERS]] = partition.starts[partition.counts[CLUSTERS] + 1]
