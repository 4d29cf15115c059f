"""A sweep of Gibbs sampling over the clusters of mentions, compiled: one choice for each mention."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.jit import Bits, kernel, part
from gumbelrace.kernels.clusters.choice import choose
from gumbelrace.kernels.clusters.partition import CLUSTERS, UNPLACED, relocate, set_aside
from gumbelrace.kernels.clusters.values import moved, needs_a_column
from gumbelrace.kernels.clusters.whole import ALL, CHANGED, DONE, NONE, VISITED, WRONG, Desk, is_best
from gumbelrace.kernels.graph_sweep import gumbel
from gumbelrace.population.base import CODE, FINE, Source
from gumbelrace.solvers.separate import new_own_gear


class Task(NamedTuple):
    """How a sweep is made."""

    temperature: float  # 0: the best cluster, no noise
    limit: int  # clusters of so many members are read whole
    audited: bool  # make every decision exactly as well


@kernel
def sweep(rule: Any, source: Source, desk: Desk, bits: Bits, task: Task, order: NDArray[np.int64]) -> None:
    """Visit the mentions in the order given, as long as there is room for sums."""
    gear = new_own_gear(rule, source)
    for i in order:
        if needs_a_column(desk.sums):
            return
        home = set_aside(desk.partition, i)
        draw_noise(desk, bits, task.temperature)
        chosen = choose(rule, gear, source, desk, bits, task.limit, i, NONE)
        if source.fault[CODE] != FINE:
            return
        if task.audited:
            desk.tally[WRONG] += not is_best(desk, source, i, chosen)
        settle(desk, source, i, home, chosen)
        if source.fault[CODE] != FINE:
            return
        desk.tally[DONE] += 1


@part
def draw_noise(desk: Desk, bits: Bits, temperature: float) -> None:
    """Draw Gumbel noise times the temperature for each cluster and the empty one."""
    for s in range(desk.partition.counts[CLUSTERS] + 1):
        desk.memo.offset[s] = gumbel(bits) * temperature if temperature > 0.0 else 0.0


@part
def settle(desk: Desk, source: Source, i: int, home: int, chosen: int) -> None:
    """Put a mention into the cluster chosen, and count it."""
    partition = desk.partition
    placed = partition.starts[partition.counts[CLUSTERS]]
    desk.tally[ALL] += placed - (partition.labels[i] != UNPLACED)
    desk.tally[VISITED] += 1
    if chosen != home or partition.labels[i] == UNPLACED:
        desk.tally[CHANGED] += 1
        before = partition.labels[i]
        relocate(partition, i, home, chosen)
        moved(desk, source, i, before)
