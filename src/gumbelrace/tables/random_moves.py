"""Rows of bytes moved at random, in compiled code: to buckets, or into a random order.

Compiled code lets other threads run meanwhile, which write what was moved before.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import kernel
from gumbelrace.core.random import Bits, below, bits_of

Bytes = NDArray[np.uint8]
Indices = NDArray[np.int64]


def scattered(rows: Bytes, buckets: int, room: Bytes, rng: np.random.Generator) -> tuple[Bytes, Indices]:
    """Send each row to a bucket, all with the same chance; give the rows by bucket, and how many each has.

    Rows are written into `room`, which has no fewer.
    """
    counts, target = np.zeros(buckets, np.int64), room[: len(rows)]
    _scatter(bits_of(rng), rows, counts, target)
    return target, counts


def random_order(count: int, rng: np.random.Generator) -> Indices:
    """Draw an order of so many rows, all orders with the same chance.

    Examples
    --------
    >>> import numpy as np
    >>> from gumbelrace.tables.random_moves import random_order
    >>> sorted(random_order(5, np.random.default_rng(0)).tolist())
    [0, 1, 2, 3, 4]
    """
    order = np.empty(count, np.int64)
    _fill_order(bits_of(rng), order)
    return order


@kernel
def _scatter(bits: Bits, rows: Bytes, counts: Indices, target: Bytes) -> None:
    bucket_of = np.empty(len(rows), np.uint16)
    for i in range(len(rows)):
        bucket: Any = below(bits, len(counts))
        bucket_of[i] = bucket
        counts[bucket] += 1
    place = np.cumsum(counts) - counts
    for i in range(len(rows)):
        k = place[bucket_of[i]]
        place[bucket_of[i]] += 1
        for byte in range(rows.shape[1]):
            target[k, byte] = rows[i, byte]


@kernel
def _fill_order(bits: Bits, order: Indices) -> None:
    """Put each number where a random one before it was, and that one last (Fisher-Yates, inside out)."""
    for i in range(len(order)):
        j = below(bits, i + 1)
        order[i] = order[j]
        order[j] = i
