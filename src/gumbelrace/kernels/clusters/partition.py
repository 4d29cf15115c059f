"""A partition of mentions into clusters that changes one mention at a time, in compiled code.

The members of all clusters lie in one array, a segment for each cluster, so that random members are read
by a partial Fisher-Yates shuffle of a segment. A mention that goes to another segment shifts those in
between by one place: one member of each is moved. While it chooses, it lies at the end of its segment and
is not counted.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import part

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
    sizes: NDArray[np.int64]  # of each segment, without the mention that chooses
    ids: NDArray[np.int32]
    segment: NDArray[np.int32]  # of each cluster
    free: NDArray[np.int32]  # numbers of clusters that are not in use; the last is used next
    counts: NDArray[np.int64]


def new_partition(size: int) -> Partition:
    """Make room for a partition of `size` mentions."""
    labels, members, place, segment, free = np.zeros((5, size), np.int32)
    starts, sizes, ids = (
        np.zeros(size + 2, np.int64),
        np.zeros(size + 1, np.int64),
        np.zeros(size + 1, np.int32),
    )
    return Partition(labels, members, place, starts, sizes, ids, segment, free, np.zeros(2, np.int64))


def arrange(partition: Partition, labels: NDArray[Any]) -> None:
    """Lay out the clusters of the labels given, in the order of their numbers."""
    members = np.argsort(labels, kind="stable")[np.count_nonzero(labels == UNPLACED) :]
    ids, sizes = np.unique(labels[members], return_counts=True)
    free = np.setdiff1d(np.arange(len(labels)), ids)[::-1]
    partition.labels[:] = labels
    partition.members[: len(members)], partition.place[members] = members, np.arange(len(members))
    partition.ids[: len(ids)], partition.segment[ids] = ids, np.arange(len(ids))
    partition.starts[0], partition.starts[1 : len(ids) + 1] = 0, np.cumsum(sizes)
    partition.sizes[: len(ids)], partition.free[: len(free)] = sizes, free
    partition.counts[:] = len(ids), len(free)


@part
def put(partition: Partition, place: int, i: int) -> None:
    partition.members[place], partition.place[i] = i, place


@part
def set_aside(partition: Partition, i: int) -> int:
    """Take a mention out of its segment; return that, or the number of segments if it has none."""
    if partition.labels[i] == UNPLACED:
        return partition.counts[CLUSTERS]
    s = partition.segment[partition.labels[i]]
    last, place = partition.starts[s + 1] - 1, partition.place[i]
    put(partition, place, partition.members[last])
    put(partition, last, i)
    partition.sizes[s] -= 1
    return s


@part
def settle(partition: Partition, i: int, home: int, target: int) -> None:
    """Put a mention, set aside from its home, into a segment; after the last segment is a new cluster."""
    clusters = partition.counts[CLUSTERS]
    if home == clusters:
        partition.starts[clusters] += 1  # there is one more among the members
    # The place that becomes free moves on from segment to segment.
    for s in range(home + 1, min(target, clusters - 1) + 1):
        partition.starts[s] -= 1
        put(partition, partition.starts[s], partition.members[partition.starts[s + 1] - 1])
    for s in range(min(home, clusters - 1), target, -1):
        put(partition, partition.starts[s + 1] - 1, partition.members[partition.starts[s]])
        partition.starts[s] += 1
    if target == clusters:
        _open(partition)
    put(partition, partition.starts[target + 1] - 1, i)
    partition.labels[i] = partition.ids[target]
    partition.sizes[target] += 1
    if home < clusters and partition.sizes[home] == 0:
        _close(partition, home)


@part
def _open(partition: Partition) -> None:
    """Begin a cluster with the last place among the members."""
    s = partition.counts[CLUSTERS]
    partition.counts[FREE] -= 1
    label = partition.free[partition.counts[FREE]]
    partition.ids[s], partition.segment[label], partition.sizes[s] = label, s, 0
    partition.starts[s + 1] = partition.starts[s]
    partition.starts[s] -= 1
    partition.counts[CLUSTERS] = s + 1


@part
def _close(partition: Partition, s: int) -> None:
    """Forget a segment that is empty."""
    partition.free[partition.counts[FREE]] = partition.ids[s]
    partition.counts[FREE] += 1
    partition.counts[CLUSTERS] -= 1
    clusters = partition.counts[CLUSTERS]
    for after in range(s, clusters):
        label = partition.ids[after + 1]
        partition.ids[after], partition.segment[label] = label, after
        partition.starts[after], partition.sizes[after] = (
            partition.starts[after + 1],
            partition.sizes[after + 1],
        )
    partition.starts[clusters] = partition.starts[clusters + 1]
