"""Merging whole clusters at the end of a sweep, which moves of single mentions hardly ever do.

For a random member of a cluster the best other cluster is found as in a sweep. The two are merged if
Σ_{i in A, j in B} f(i, j), plus logistic noise times the temperature, exceeds 0: a race of two arms. Its
rows are the members of the larger cluster, each with its sum of values with the smaller one. This finds
better partitions; it is not a reversible move, and the chain's law is then no longer p.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbelrace.jit import Bits, below, kernel, maker, part
from gumbelrace.kernels.clusters.choice import Turn, choose, race
from gumbelrace.kernels.clusters.partition import CLUSTERS, Partition, rearrange, set_aside, size_of
from gumbelrace.kernels.clusters.sweep import Task
from gumbelrace.kernels.clusters.values import close_column
from gumbelrace.kernels.clusters.whole import DONE, NONE, READ, Desk, is_summed
from gumbelrace.kernels.graph_sweep import gumbel
from gumbelrace.population.base import CODE, FINE, Source, read
from gumbelrace.population.pair_readers import COUNT, FIRST
from gumbelrace.solvers.separate import OwnGear, new_own_gear


@kernel
def merge_some(
    rule: Any,
    source: Source,
    lines: Source,
    desk: Desk,
    bits: Bits,
    task: Task,
    clusters: NDArray[np.int32],
) -> None:
    """Propose to merge each of the clusters given with another one."""
    gear = new_own_gear(rule, source)
    for label in clusters:
        s = segment_of(desk.partition, label)
        if s >= 0 and size_of(desk.partition, s) > 1:
            other = best_other(rule, gear, source, desk, bits, task, s)
            if source.fault[CODE] != FINE:
                return
            if other < desk.partition.counts[CLUSTERS] and size_of(desk.partition, other) > 1:
                consider(rule, gear, lines, desk, bits, task, s, other)
                if lines.fault[CODE] != FINE:
                    return
        desk.tally[DONE] += 1


@part
def segment_of(partition: Partition, label: int) -> int:
    """Give the segment of a cluster, -1 if it is no longer in use."""
    s = partition.segment[label]
    in_use = 0 <= s < partition.counts[CLUSTERS] and partition.ids[s] == label
    return s if in_use else -1


@maker
def best_other(rule: Any, gear: OwnGear, source: Source, desk: Desk, bits: Bits, task: Task, s: int) -> int:
    """Find the cluster that a random member of segment `s` would choose if it had to leave."""
    partition = desk.partition
    i = partition.members[partition.starts[s] + below(bits, size_of(partition, s))]
    set_aside(partition, i)
    for k in range(partition.counts[CLUSTERS] + 1):
        desk.memo.offset[k] = 0.0
    return choose(rule, gear, source, desk, bits, task.limit, i, s)


@maker
def consider(
    rule: Any, gear: OwnGear, lines: Source, desk: Desk, bits: Bits, task: Task, one: int, two: int
) -> None:
    """Merge two segments if their values with each other are in favour of it."""
    partition = desk.partition
    larger = one if size_of(partition, one) >= size_of(partition, two) else two
    smaller = one + two - larger
    noise = (gumbel(bits) - gumbel(bits)) * task.temperature if task.temperature > 0.0 else 0.0
    if is_summed(desk, smaller):
        merges = noise + sum_of_sums(desk, larger, smaller) > 0.0
    else:
        desk.site[FIRST], desk.site[COUNT] = partition.starts[smaller], size_of(partition, smaller)
        merges = is_favoured(rule, gear, lines, desk, bits, task, larger, noise)
        if lines.fault[CODE] != FINE:
            return
        desk.site[COUNT] = 0
    if merges:
        merge(desk, partition.ids[larger], partition.ids[smaller])


@part
def sum_of_sums(desk: Desk, larger: int, smaller: int) -> float:
    """Sum the values of all pairs between two segments, from the sums that are kept."""
    partition, sums, total = desk.partition, desk.sums, 0.0
    desk.tally[READ] += size_of(partition, larger) * size_of(partition, smaller)
    column = sums.column[partition.ids[smaller]]
    for k in range(partition.starts[larger], partition.starts[larger + 1]):
        total += sums.table[partition.members[k], column]
    return total


@maker
def is_favoured(
    rule: Any, gear: OwnGear, lines: Source, desk: Desk, bits: Bits, task: Task, larger: int, noise: float
) -> bool:
    """Decide by a race between the lines of a segment and nothing; of few lines, read all."""
    memo, partition = desk.memo, desk.partition
    size = size_of(partition, larger)
    if size <= task.limit:
        return noise + sum_of_lines(lines, desk, larger) > 0.0
    low, high = lines.low[0], lines.high[0]
    lines.low[0], lines.high[0] = low * desk.site[COUNT], high * desk.site[COUNT]
    memo.starts[0], memo.sizes[0], memo.offsets[0] = partition.starts[larger], size, noise
    memo.starts[1], memo.sizes[1], memo.offsets[1] = 0, 0, 0.0
    turn = Turn(partition.members[desk.site[FIRST]], NONE, 0)
    winner = race(rule, gear, lines, desk, bits, 2, turn)
    lines.low[0], lines.high[0] = low, high
    return winner == 0


@part
def sum_of_lines(lines: Source, desk: Desk, larger: int) -> float:
    """Sum all lines of a segment."""
    partition, batch, total = desk.partition, desk.batch, 0.0
    desk.tally[READ] += size_of(partition, larger) * desk.site[COUNT]
    low, high = lines.low[0], lines.high[0]
    lines.low[0], lines.high[0] = low * desk.site[COUNT], high * desk.site[COUNT]
    first, stop = partition.starts[larger], partition.starts[larger + 1]
    while first < stop and lines.fault[CODE] == FINE:
        count = min(stop - first, len(batch.rows))
        for k in range(count):
            batch.rows[k] = partition.members[first + k]
        read(lines, batch.rows, count, batch.first, 1, batch.values, 0)
        for k in range(count):
            total += batch.values[0, k]
        first += count
    lines.low[0], lines.high[0] = low, high
    return total


@part
def merge(desk: Desk, kept: int, gone: int) -> None:
    """Give the members of a cluster to another one."""
    partition, sums = desk.partition, desk.sums
    if sums.column[gone] >= 0:
        for k in range(len(sums.table)):
            sums.table[k, sums.column[kept]] += sums.table[k, sums.column[gone]]
        close_column(sums, gone)
    for i in range(len(partition.labels)):
        if partition.labels[i] == gone:
            partition.labels[i] = kept
    rearrange(partition)
