"""In which order the members of clusters are read: a new random one for each choice."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.jit import maker
from gumbelrace.kernels.cluster_partition import Partition
from gumbelrace.shuffle import LARGEST, Streams


class Ordering(NamedTuple):
    """What orders of members need besides the arms (see `Streams`)."""

    cursor: NDArray[np.int64]
    swaps: NDArray[np.int32]
    endless: NDArray[np.int64]  # rows are mentions: their numbers have no end of their own
    order: NDArray[np.int32]  # empty


def new_ordering(size: int, arms: int) -> Ordering:
    """Make room for the orders of so many mentions."""
    cursor, endless = np.zeros((arms, 3), np.int64), np.full(arms, LARGEST, np.int64)
    return Ordering(cursor, np.zeros(size, np.int32), endless, np.empty(0, np.int32))


@maker
def fresh_order(
    ordering: Ordering, partition: Partition, starts: NDArray[np.int64], counts: NDArray[np.int64]
) -> Streams:
    """Give a new order of the members of each arm's cluster."""
    cursor, members = ordering.cursor[: len(starts)], partition.members
    return Streams(1, ordering.order, ordering.endless, starts, counts, members, ordering.swaps, cursor)
