"""Sums of what arms differ by: each row's rewards are reduced by that of one arm, the reference.

What all arms share of a row, however large, is gone before anything is added up: sums are as exact as the
differences are small.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import part
from gumbelrace.methods.reading import PIECE, new_block, new_rows, reduced, total
from gumbelrace.methods.state import ALIVE, LEADER, RaceState, add, drop_ruled_out
from gumbelrace.population.base import Floats, Source, read


class Differences(NamedTuple):
    """What is known of the differences beside their sums, and room to read rewards."""

    sizes: Floats  # of each arm, the sum of its differences without their sign
    shared: Floats  # the sum of the reference's own rewards
    rows: NDArray[np.int64]
    rewards: Floats  # indexed [arm, column]


def new_differences(source: Source) -> Differences:
    """Make room; rewards that lie in memory are used where they are."""
    rewards = source.direct if len(source.direct) else new_block(source.arms, source.chunk)
    return Differences(np.zeros(source.arms), np.zeros(1), new_rows(source), rewards)


@part
def add_up_differences(differences: Differences, state: RaceState, source: Source, size: int) -> None:
    """Add up the differences of all rows, of every arm that turns out to be possible."""
    in_memory = len(source.direct) > 0
    step = PIECE if in_memory else source.chunk
    state.tally[LEADER] = state.arms[0]
    for first in range(0, size, step):
        count = min(step, size - first)
        if not in_memory and not read_next(differences, state, source, first, count):
            return
        if state.tally[ALIVE] == 0:
            return
        keep_reference_possible(differences, state)
        add_columns(differences, state, first if in_memory else 0, count)


@part
def read_next(differences: Differences, state: RaceState, source: Source, first: int, count: int) -> bool:
    """Read the rows from `first` on, and drop the arms that show a -inf."""
    if state.tally[ALIVE] == 0:
        return False
    for i in range(count):
        differences.rows[i] = first + i
    alive = state.tally[ALIVE]
    if read(source, differences.rows, count, state.arms, alive, differences.rewards, 0) == 0:
        return False
    if source.verify:
        drop_ruled_out(state, source)
    return True


@part
def keep_reference_possible(differences: Differences, state: RaceState) -> None:
    """Make the first arm the reference, if the one before has been dropped."""
    new = state.arms[0]
    if new == state.tally[LEADER]:
        return
    state.tally[LEADER] = new
    total_of_new, lost_of_new = state.sums[new], state.lost[new]
    size_of_new = differences.sizes[new]
    differences.shared[0] += total_of_new + lost_of_new
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        add(state, arm, -total_of_new)
        state.lost[arm] -= lost_of_new
        differences.sizes[arm] += size_of_new
    differences.sizes[new] = 0.0  # itself less itself


@part
def add_columns(differences: Differences, state: RaceState, first: int, count: int) -> None:
    """Add up the differences in a few columns."""
    rewards, reference = differences.rewards, state.tally[LEADER]
    differences.shared[0] += total(rewards, reference, first, count, 0.0)
    for a in range(1, state.tally[ALIVE]):
        arm = state.arms[a]
        difference, size = total_difference(rewards, arm, reference, first, count)
        add(state, arm, difference)
        differences.sizes[arm] += size


@part
def total_difference(
    rewards: Floats, arm: int, reference: int, first: int, count: int
) -> tuple[float, float]:
    """Sum the differences in rewards[arm, first:first + count], and their sizes without sign."""
    j, r, result, size = np.uint64(arm), np.uint64(reference), 0.0, 0.0
    for i in range(np.uint64(first), np.uint64(first + count)):
        difference = reduced(rewards[j, i], rewards[r, i])
        result += difference
        size += abs(difference)
    return result, size
