"""What a race knows of arms that have rows of their own, and whose turn it is to be read.

Where rewards have a known range, an arm can reach no more than its offset and N_i times the highest reward.
A patient rule reads those first that can reach most, and arms that cannot reach the leader any more are
never read: the bar for the first look falls by half with each look. A favourite is read at once.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import part
from gumbelrace.methods.field import ALIVE, Field, admit, place
from gumbelrace.methods.reading import new_block
from gumbelrace.population.base import Floats, Source

# No arm
NOBODY = -1
# Entries of Own.bar
LOWEST, HEIGHT = 0, 1


class Own(NamedTuple):
    """For each arm: how many of its rows were read, their squared deviations, and the last look."""

    taken: NDArray[np.int64]
    squares: Floats
    fresh: NDArray[np.int64]
    looks: NDArray[np.int64]
    reach: Floats  # what an arm can reach at most, before it is read
    bar: Floats  # the lowest reach, and by how much the bar for a first look is higher
    block: Floats  # rewards of the last look (its last part, if it is longer)


def new_own(source: Source) -> Own:
    """Make room for what is read of each arm."""
    d = source.arms
    (taken, fresh, looks), block = np.zeros((3, d), np.int64), new_block(d, source.chunk)
    return Own(taken, np.zeros(d), fresh, looks, np.zeros(d), np.zeros(2), block)


@part
def enter_own(field: Field, own: Own, source: Source) -> None:
    """Let every possible arm into the race, nothing read yet."""
    admit(field, source)
    own.bar[LOWEST] = own.bar[HEIGHT] = -np.inf
    for arm in range(source.arms):
        own.taken[arm], own.squares[arm], own.fresh[arm], own.looks[arm] = 0, 0.0, 0, 0
        own.reach[arm] = np.inf


@part
def set_bar(field: Field, own: Own, source: Source, sizes: NDArray[np.int64], favourite: int) -> None:
    """Find what each arm can reach, and put the bar where only the best is."""
    lowest, highest = np.inf, -np.inf
    for a in range(field.tally[ALIVE]):
        arm = field.arms[a]
        own.reach[arm] = field.offset[arm] + at_most(source, arm, abs(sizes[arm]))
        lowest, highest = min(lowest, own.reach[arm]), max(highest, own.reach[arm])
    if highest < np.inf:
        own.bar[LOWEST], own.bar[HEIGHT] = lowest, highest - lowest
    if favourite != NOBODY:
        own.reach[favourite] = np.inf


@part
def at_most(source: Source, arm: int, count: int) -> float:
    """Give the highest sum of `count` rewards; without a known range it is infinite."""
    if count == 0:
        return 0.0
    return count * source.high[arm] if source.low[arm] > -np.inf else np.inf


@part
def lower_bar(field: Field, own: Own, sizes: NDArray[np.int64]) -> None:
    """Lower the bar by half, or to the next arm if there is nothing else to read."""
    own.bar[HEIGHT] /= 2.0
    highest = -np.inf
    for a in range(field.tally[ALIVE]):
        arm = field.arms[a]
        if own.taken[arm] not in (0, sizes[arm]):
            return
        if is_unseen(own, sizes, arm):
            highest = max(highest, own.reach[arm])
    own.bar[HEIGHT] = min(own.bar[HEIGHT], highest - own.bar[LOWEST])


@part
def is_unseen(own: Own, sizes: NDArray[np.int64], arm: int) -> bool:
    """Whether an arm has rewards, and none was read."""
    return own.taken[arm] == 0 and sizes[arm] != 0


@part
def waits(own: Own, sizes: NDArray[np.int64], arm: int) -> bool:
    """Whether it is not yet an arm's turn."""
    return is_unseen(own, sizes, arm) and own.reach[arm] < own.bar[LOWEST] + own.bar[HEIGHT]


@part
def all_read(field: Field, own: Own, sizes: NDArray[np.int64]) -> bool:
    """Whether every row of the arms in the race was read."""
    for a in range(field.tally[ALIVE]):
        if own.taken[field.arms[a]] != sizes[field.arms[a]]:
            return False
    return True


@part
def absorb(field: Field, own: Own, arm: int, count: int) -> None:
    """Add rewards of an arm to its sum and squared deviations."""
    # Around the first of them: equal rewards have no deviation, not even by rounding.
    first, beyond, squares = own.block[arm, 0], 0.0, 0.0
    for i in range(count):
        beyond += own.block[arm, i] - first
    mean = first + beyond / count
    for i in range(count):
        squares += (own.block[arm, i] - mean) ** 2
    before = own.taken[arm]
    if before > 0:
        shift = mean - field.sums[arm] / before
        squares += shift * shift * (before * count / (before + count))
    own.taken[arm] += count
    own.squares[arm] += squares
    field.sums[arm] += first * count + beyond


@part
def estimate_own(field: Field, own: Own, sizes: NDArray[np.int64], arm: int) -> float:
    """Estimate an arm's sum over all its rows, offset included; -inf before the first look."""
    if own.taken[arm] == sizes[arm]:
        return field.sums[arm] + field.offset[arm]
    if own.taken[arm] == 0:
        return -np.inf
    return field.sums[arm] * (sizes[arm] / own.taken[arm]) + field.offset[arm]


@part
def ceiling(field: Field, own: Own, source: Source, sizes: NDArray[np.int64], arm: int) -> float:
    """Give the most that an arm's sum can be, offset included, whatever its unread rewards are."""
    if is_unseen(own, sizes, arm):
        return own.reach[arm]
    return field.sums[arm] + field.offset[arm] + at_most(source, arm, sizes[arm] - own.taken[arm])


@part
def floor(field: Field, own: Own, source: Source, sizes: NDArray[np.int64], arm: int) -> float:
    """Give the least that an arm's sum can be, offset included."""
    left = sizes[arm] - own.taken[arm]
    return field.sums[arm] + field.offset[arm] + (left * source.low[arm] if left > 0 else 0.0)


@part
def rank_own(field: Field, own: Own, sizes: NDArray[np.int64]) -> None:
    """Find the leader and the runner-up; of equals, the arm with the lower number leads."""
    for a in range(field.tally[ALIVE]):
        place(field, a, estimate_own(field, own, sizes, field.arms[a]))
