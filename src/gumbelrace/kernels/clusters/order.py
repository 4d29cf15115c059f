"""In which order the members of clusters are read: a new random one for each choice."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.jit import maker
from gumbelrace.kernels.clusters.partition import Partition
from gumbelrace.keyed import ROUNDS, Keys
from gumbelrace.shuffle import LARGEST, Streams


class Ordering(NamedTuple):
    """What orders of members need besides the arms (see `Streams`)."""

    cursor: NDArray[np.int64]
    swaps: NDArray[np.int32]
    endless: NDArray[np.int64]  # rows are mentions: their numbers have no end of their own
    widths: NDArray[np.int64]  # no arm has a key
    keys: Keys  # none


def new_ordering(size: int, arms: int) -> Ordering:
    """Make room for the orders of so many mentions."""
    cursor, endless = np.zeros((arms, 3), np.int64), np.full(arms, LARGEST, np.int64)
    widths, keys = np.zeros(arms, np.int64), np.empty((0, ROUNDS), np.uint64)
    return Ordering(cursor, np.zeros(size, np.int32), endless, widths, keys)


@maker
def fresh_order(
    ordering: Ordering, partition: Partition, starts: NDArray[np.int64], counts: NDArray[np.int64]
) -> Streams:
    """Give a new order of the members of each arm's cluster."""
    _, swaps, endless, widths, keys = ordering
    cursor = ordering.cursor[: len(starts)]
    return Streams(1, endless, counts, starts, partition.members, swaps, widths, keys, cursor)
