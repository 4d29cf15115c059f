"""The clusters' members in one array, against plain sets."""

import numpy as np
import pytest

from gumbelrace.core.jit import kernel
from gumbelrace.kernels.clusters.partition import (
    CLUSTERS,
    FREE,
    arrange,
    new_partition,
    set_aside,
    settle,
)


@kernel
def move(partition, i, target):
    settle(partition, i, set_aside(partition, i), target)


def segments(partition):
    starts, clusters = partition.starts, int(partition.counts[CLUSTERS])
    return [set(partition.members[starts[s] : starts[s + 1]].tolist()) for s in range(clusters)]


def check(partition, labels):
    """Compare all that is kept with what the labels say."""
    clusters = int(partition.counts[CLUSTERS])
    ids = partition.ids[:clusters].tolist()
    assert sorted(ids) == sorted(set(labels[labels >= 0].tolist()))
    assert segments(partition) == [set(np.flatnonzero(labels == label).tolist()) for label in ids]
    assert partition.segment[ids].tolist() == list(range(clusters))
    assert partition.sizes[:clusters].tolist() == list(map(len, segments(partition)))
    free = partition.free[: partition.counts[FREE]].tolist()
    assert sorted(free + ids) == list(range(len(labels)))
    placed = np.flatnonzero(labels >= 0)
    assert np.array_equal(partition.members[partition.place[placed]], placed)


@pytest.mark.parametrize("seed", range(20))
def test_moves_keep_the_clusters(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    partition = new_partition(n)
    labels = rng.integers(-1, n, n)
    arrange(partition, labels)
    check(partition, labels)
    for _ in range(200):
        i, clusters = int(rng.integers(n)), int(partition.counts[CLUSTERS])
        alone = labels[i] >= 0 and np.sum(labels == labels[i]) == 1
        target = int(rng.integers(clusters + (not alone)))
        free = partition.free[partition.counts[FREE] - 1]
        labels[i] = free if target == clusters else partition.ids[target]
        move(partition, i, target)
        assert np.array_equal(partition.labels, labels)
        check(partition, labels)
