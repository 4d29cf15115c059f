"""How mentions choose clusters, and clusters merge: all that races, compiled.

A mention's choice is a race of the large clusters and of groups of small ones. After the first look all is
known of a cluster that is not larger than it. So small clusters of equal size are a single arm, whose
value, that of the best of them, is found when it is their turn; often they can reach so little that it
never is. The mention's own cluster is the favourite. Who absorbs errors into the noise adds that of the
large clusters and of the empty one; the value of a group has its own.

Merging clusters, which moves of single mentions hardly ever do, comes after a sweep. For a random member of
a cluster the best other cluster is found as in a sweep. The two are merged if Σ_{i in A, j in B} f(i, j),
plus logistic noise times the temperature, exceeds 0: a race of two arms. Its rows are the members of the
larger cluster, each with its sum of values with the smaller one. This finds better partitions; it is not a
reversible move, and the chain's law is then no longer p.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import call, kernel, part
from gumbelrace.core.random import Bits, below, gumbel
from gumbelrace.kernels.base import ALL, CHANGED, LOOKED, READ, VISITED, WRONG
from gumbelrace.kernels.clusters.partition import CLUSTERS, UNPLACED, set_aside, settle
from gumbelrace.kernels.clusters.values import (
    HOME,
    STAYS,
    Workspace,
    add_columns,
    is_among,
    is_summed,
    sum_between,
    value_of,
)
from gumbelrace.methods.state import ARMS, EVALUATIONS, FAVOURITE, LEADER, LOOKS, NOBODY
from gumbelrace.population.base import CODE, FINE, Floats
from gumbelrace.population.pairs import COUNT, FIRST, MENTION


class Contest(NamedTuple):
    """A race that can be run again and again: what to call, and where its arms lie."""

    address: int
    words: int
    tally: NDArray[np.int64]
    offset: Floats
    law_error: Floats


class Calls(NamedTuple):
    """What a sweep calls by its address: how a mention chooses, and whether two clusters merge."""

    words: int  # where the workspace lies
    best: int  # finds the best of all clusters, read in full
    update: int  # brings kept sums up to date; 0: none are kept
    choice: Contest
    merger: Contest
    absorbs: bool  # whether who chooses adds the noise


class Task(NamedTuple):
    """How a sweep is made."""

    temperature: float  # 0: the best cluster, no noise
    limit: int  # clusters of so many members are small
    audited: bool  # make every decision exactly as well


@kernel
def sweep(calls: Calls, work: Workspace, bits: Bits, task: Task, mentions: NDArray[np.int64]) -> None:
    """Let mentions choose their clusters, as long as there is room for sums."""
    fault = work.source.fault
    for i in mentions:
        if calls.update != 0 and work.sums.unused[0] == 0:
            return
        enter(work, i, True)
        draw_noise(work, bits, task.temperature)
        chosen = choose(calls, work, task.limit)
        if fault[CODE] != FINE:
            return
        if task.audited:
            best = best_of_all(calls)
            work.tally[WRONG] += value_of(work, chosen) < value_of(work, best)
        move(calls, work, i, chosen)
        if fault[CODE] != FINE:
            return


@kernel
def draw_again(
    calls: Calls, work: Workspace, bits: Bits, task: Task, i: int, chosen: NDArray[np.int64]
) -> None:
    """Let a mention choose again and again, each time from where it was."""
    for k in range(len(chosen)):
        enter(work, i, True)
        draw_noise(work, bits, task.temperature)
        chosen[k] = choose(calls, work, task.limit)
        settle(work.partition, i, work.turn[HOME], work.turn[HOME])


@kernel
def put_exact(calls: Calls, work: Workspace, bits: Bits, i: int, values: Floats) -> None:
    """Put the values of all clusters for a mention, and of the empty one, all read."""
    enter(work, i, True)
    draw_noise(work, bits, 0.0)
    best_of_all(calls)
    for s in range(len(values)):
        values[s] = value_of(work, s)
    settle(work.partition, i, work.turn[HOME], work.turn[HOME])


@part
def enter(work: Workspace, i: int, stays: bool) -> None:
    """Make it the turn of a mention, which may stay where it is or not."""
    home = set_aside(work.partition, i)
    work.site[MENTION], work.turn[HOME] = i, home
    work.turn[STAYS] = stays and home < work.partition.counts[CLUSTERS]


@part
def draw_noise(work: Workspace, bits: Bits, temperature: float) -> None:
    """Draw Gumbel noise times the temperature for each cluster and the empty one."""
    clusters, home = work.partition.counts[CLUSTERS], work.turn[HOME]
    for s in range(clusters + 1):
        work.noise[s] = gumbel(bits) * temperature if temperature > 0.0 else 0.0
    if home < clusters and work.partition.sizes[home] == 0:
        work.noise[clusters] = -np.inf  # the mention was alone: its own cluster is the empty one


@part
def move(calls: Calls, work: Workspace, i: int, chosen: int) -> None:
    """Put a mention into the cluster chosen, and count it."""
    partition, before, home = work.partition, work.partition.labels[i], work.turn[HOME]
    placed = partition.starts[partition.counts[CLUSTERS]]
    work.tally[ALL] += placed - (before != UNPLACED)
    work.tally[VISITED] += 1
    settle(partition, i, home, chosen)
    if partition.labels[i] != before:
        work.tally[CHANGED] += 1
        if calls.update != 0:
            call(calls.update, (calls.words, i, before))


@part
def choose(calls: Calls, work: Workspace, limit: int) -> int:
    """Find the best segment for the mention whose turn it is; after the last is the empty cluster."""
    if limit >= len(work.partition.labels):
        return best_of_all(calls)
    favourite = 0 if work.turn[STAYS] == 1 else NOBODY
    count = line_up(work, limit)
    if calls.absorbs:
        take_noise_back(work, count)
    winner = race(calls.choice, work, count, favourite)
    return work.arms.segments[winner]


@part
def best_of_all(calls: Calls) -> int:
    """Read all clusters; give the best segment for the mention whose turn it is."""
    return call(calls.best, (calls.words, NOBODY, 0))


@part
def line_up(work: Workspace, limit: int) -> int:
    """Make arms: home, large clusters, groups of small ones, the empty one; return how many there are."""
    partition, arms, count = work.partition, work.arms, 0
    clusters, highest = partition.counts[CLUSTERS], work.arms.highest
    highest[:] = -np.inf
    if work.turn[STAYS] == 1:
        count = add_arm(work, count, work.turn[HOME])
    for s in range(clusters):
        if is_among(work, s, limit + 1, len(partition.labels)):
            count = add_arm(work, count, s)
        elif is_among(work, s, 1, limit):
            highest[partition.sizes[s]] = max(highest[partition.sizes[s]], work.noise[s])
    for size in range(1, limit + 1):
        if highest[size] > -np.inf:
            arms.starts[count], arms.sizes[count], arms.offsets[count] = 0, -size, highest[size]
            count += 1
    arms.segments[count], arms.starts[count], arms.sizes[count] = clusters, 0, 0
    arms.offsets[count] = work.noise[clusters]
    return count + 1


@part
def take_noise_back(work: Workspace, count: int) -> None:
    """Leave the noise to who chooses, but for that of groups."""
    for arm in range(count):
        if work.arms.sizes[arm] >= 0 and work.arms.offsets[arm] > -np.inf:
            work.arms.offsets[arm] = 0.0
    # The best of a group is compared with the empty one, which is an arm of its own.
    work.noise[work.partition.counts[CLUSTERS]] = -np.inf


@part
def add_arm(work: Workspace, arm: int, s: int) -> int:
    arms, partition = work.arms, work.partition
    arms.segments[arm], arms.starts[arm] = s, partition.starts[s]
    arms.sizes[arm], arms.offsets[arm] = partition.sizes[s], work.noise[s]
    return arm + 1


@part
def race(contest: Contest, work: Workspace, arms: int, favourite: int) -> int:
    """Race the first `arms` arms of the workspace; return the best."""
    tally = contest.tally
    tally[ARMS], tally[FAVOURITE] = arms, favourite
    for arm in range(arms):
        contest.offset[arm] = work.arms.offsets[arm]
    call(contest.address, (contest.words,))
    work.tally[LOOKED] += tally[LOOKS]
    work.tally[READ] += tally[EVALUATIONS] * max(work.site[COUNT], 1)  # a row of lines has many values
    work.law_error[0] += contest.law_error[0]
    return tally[LEADER]


@kernel
def merge_some(calls: Calls, work: Workspace, bits: Bits, task: Task, clusters: NDArray[np.int32]) -> None:
    """Propose to merge each of the clusters given with another one."""
    partition, fault = work.partition, work.source.fault
    for label in clusters:
        s = partition.segment[label]
        in_use = s < partition.counts[CLUSTERS] and partition.ids[s] == label
        if not in_use or partition.sizes[s] < 2:
            continue
        other = best_other(calls, work, bits, task.limit, s)
        if fault[CODE] != FINE:
            return
        if other < partition.counts[CLUSTERS] and partition.sizes[other] > 1:
            larger, smaller = (s, other) if partition.sizes[s] >= partition.sizes[other] else (other, s)
            merges = belong_together(calls, work, bits, task, larger, smaller)
            if fault[CODE] != FINE:
                return
            if merges:
                merge(work, larger, smaller)


@part
def best_other(calls: Calls, work: Workspace, bits: Bits, limit: int, s: int) -> int:
    """Find the cluster that a random member of segment `s` would choose if it had to leave."""
    partition = work.partition
    i = partition.members[partition.starts[s] + below(bits, partition.sizes[s])]
    enter(work, i, False)
    draw_noise(work, bits, 0.0)
    other = choose(calls, work, limit)
    settle(partition, i, s, s)
    return other


@part
def belong_together(
    calls: Calls, work: Workspace, bits: Bits, task: Task, larger: int, smaller: int
) -> bool:
    """Decide whether the values of two segments with each other are in favour of merging them."""
    partition, arms, site, lines = work.partition, work.arms, work.site, work.lines
    noise = (gumbel(bits) - gumbel(bits)) * task.temperature if task.temperature > 0.0 else 0.0
    if is_summed(work, larger) or partition.sizes[larger] <= task.limit:
        return noise + sum_between(work, larger, smaller) > 0.0
    site[FIRST], site[COUNT] = partition.starts[smaller], partition.sizes[smaller]
    lines.low[0], lines.high[0] = work.source.low[0] * site[COUNT], work.source.high[0] * site[COUNT]
    arms.starts[0], arms.sizes[0], arms.offsets[0] = (
        partition.starts[larger],
        partition.sizes[larger],
        noise,
    )
    arms.starts[1], arms.sizes[1], arms.offsets[1] = 0, 0, 0.0
    winner = race(calls.merger, work, 2, 0)
    if work.source.fault[CODE] == FINE:  # else it says which values went wrong
        site[COUNT] = 0
    return winner == 0


@part
def merge(work: Workspace, kept: int, gone: int) -> None:
    """Give the members of a segment to another one."""
    partition = work.partition
    if is_summed(work, gone):
        add_columns(work.sums, partition.ids[kept], partition.ids[gone])
    for _ in range(partition.sizes[gone]):
        i = partition.members[partition.starts[gone + 1] - 1]
        settle(partition, i, set_aside(partition, i), kept)
