"""The clusters' members in one array, against plain sets; and the order in which they are read."""

import numpy as np
import pytest
from scipy import stats

from gumbelrace.jit import kernel
from gumbelrace.kernels.cluster_order import fixed_order, new_ordering, take_by_key
from gumbelrace.kernels.cluster_partition import (
    CLUSTERS,
    FREE,
    arrange,
    new_partition,
    relocate,
    set_aside,
)


@kernel
def move(partition, i, target):
    home = set_aside(partition, i)
    if home != target or partition.labels[i] < 0:
        relocate(partition, i, home, target)


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
    free = partition.free[: partition.counts[FREE]].tolist()
    assert sorted(free + ids) == list(range(len(labels)))
    placed = np.flatnonzero(labels >= 0)
    assert np.array_equal(partition.members[partition.place[placed]], placed)


@pytest.mark.parametrize("seed", range(20))
def test_moves_keep_the_clusters(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    partition = new_partition(n)
    partition.labels[:] = labels = rng.integers(-1, n, n)
    arrange(partition)
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


@kernel
def read_in_order(ordering, partition, starts, counts, i, looks, rows):
    streams, done = fixed_order(ordering, partition, starts, counts, i), 0
    for count in looks:
        take_by_key(streams, 0, rows[done:], count)
        done += count


def order_of(partition, i, looks, sorts=False):
    n = len(partition.labels)
    rows, ordering = np.zeros(n, np.int64), new_ordering(n, 1, True, sorts)
    counts = np.array([n])
    read_in_order(ordering, partition, np.zeros(1, np.int64), counts, i, np.array(looks), rows)
    return rows[: sum(looks)]


@pytest.mark.parametrize("looks", [[3, 10, 20, 67], [1] * 40, [100], [4, 5, 6, 7, 40]])
def test_the_fixed_order_is_one_order_whatever_the_looks(looks):
    partition = new_partition(100)
    arrange(partition)
    all_of_them = order_of(partition, 7, [100], sorts=True)
    assert sorted(all_of_them.tolist()) == list(range(100))
    done = 0
    np.random.default_rng(0).shuffle(partition.members)
    partition.place[partition.members] = np.arange(100)
    read, sorted_read = order_of(partition, 7, looks), order_of(partition, 7, looks, sorts=True)
    for count in looks:
        part = slice(done, done + count)
        assert set(read[part].tolist()) == set(all_of_them[part].tolist())
        assert np.array_equal(sorted_read[part], all_of_them[part])
        done += count
    assert np.array_equal(partition.members[partition.place], np.arange(100))


def test_mentions_have_different_orders_that_are_uniform():
    """Which of ten members comes first, for 2000 mentions: chi-square, false alarms 1e-4."""
    partition = new_partition(2000)
    arrange(partition)
    firsts = []
    for i in range(2000):
        members = order_of(partition, i, [2000], sorts=True)
        firsts.append(members[np.isin(members, np.arange(10))][0])
    assert stats.chisquare(np.bincount(firsts, minlength=10)).pvalue > 1e-4
