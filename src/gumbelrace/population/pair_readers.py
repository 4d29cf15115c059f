"""Compiled readers of the values of pairs: of one mention with many, and of many with a whole cluster.

Where values are kept, a reader looks into a store first: single precision, NaN where nothing was read
yet, n(n-1)/2 entries (a triangle) or n² (a square, which is read faster).
"""

import functools
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from gumbelrace.jit import READER, USERS, part
from gumbelrace.packed import Packed, fetch_row, pack, unpack

# All values are multiples of FINEST; sums of them below LARGEST_SUM are exact in double precision.
FINEST = 2.0**-20
LARGEST_SUM = 2.0**53 * FINEST
# Data of a mention are asked for this many mentions before they are needed.
AHEAD = 12

# Kinds of store
NOTHING, TRIANGLE, SQUARE = 0, 1, 2
# Entries of Fetched.site
MENTION, FIRST, COUNT = 0, 1, 2
# Items that lie before the user's data
OURS = 6


class Fetched(NamedTuple):
    """Readers of values, and what they work on.

    Attributes
    ----------
    values : compiled function of type READER
        Row j is the value of (site[MENTION], j).
    lines : compiled function of type READER
        Row i is the sum of the values of (i, j) over the `COUNT` members from `FIRST` on.
    packed : Packed
        What the readers need.
    site : ndarray of int64
        What is to be read.
    made : ndarray of int64
        Values computed so far.
    """

    values: Any
    lines: Any
    packed: Packed
    site: NDArray[np.int64]
    made: NDArray[np.int64]


def new_store(size: int, kind: int) -> NDArray[np.float32]:
    """Make room for all values, none read yet."""
    entries = {NOTHING: 0, TRIANGLE: size * (size - 1) // 2, SQUARE: size * size}[kind]
    return np.full(entries, np.nan, np.float32)


def fetched(
    log_factor: Any,
    data: tuple[Any, ...],
    members: NDArray[np.int32],
    store: NDArray[np.float32],
    lowest: float,
) -> Fetched:
    """Make readers for one thread; `members` holds the mentions, cluster after cluster."""
    site, made, size = np.zeros(3, np.int64), np.zeros(1, np.int64), len(members)
    kind = NOTHING if len(store) == 0 else SQUARE if len(store) == size * size else TRIANGLE
    packed = pack((site, made, members, store, np.int64(size), np.float64(lowest), *data))
    values, lines = _readers(log_factor, packed.type, kind)
    return Fetched(values, lines, packed, site, made)


@part
def rounded(value: float, lowest: float) -> float:
    """Round a value so that sums are exact; NaN and infinities stay, and what is very low is -inf."""
    if value < lowest:
        return -np.inf
    return np.float64(np.float32(np.rint(value / FINEST) * FINEST))


@functools.lru_cache(maxsize=256)
def _readers(log_factor: Any, packed_type: Any, kind: int) -> tuple[Any, Any]:
    value_of = _stored(_computed(log_factor), kind)
    fetches = kind == NOTHING

    @numba.cfunc(READER)
    def values(context, rows, n_rows, arms, n_arms, out, stride):  # type: ignore[no-untyped-def]
        packed = unpack(context, packed_type)
        data, i, to = packed[OURS:], packed[0][MENTION], arms[0] * stride
        if fetches:
            for r in range(min(AHEAD, n_rows)):
                fetch_row(data, rows[r])
        for r in range(n_rows):
            if fetches and r < n_rows - AHEAD:
                fetch_row(data, rows[r + AHEAD])
            out[to + r] = value_of(i, rows[r], packed[1], packed[3], packed[4], packed[5], data)
        return n_rows

    @numba.cfunc(READER)
    def lines(context, rows, n_rows, arms, n_arms, out, stride):  # type: ignore[no-untyped-def]
        packed = unpack(context, packed_type)
        site, members, data, to = packed[0], packed[2], packed[OURS:], arms[0] * stride
        for r in range(n_rows):
            total = 0.0
            for k in range(site[FIRST], site[FIRST] + site[COUNT]):
                total += value_of(rows[r], members[k], packed[1], packed[3], packed[4], packed[5], data)
            out[to + r] = total
        return n_rows

    return values, lines


def _computed(log_factor: Any) -> Any:
    @numba.njit(**USERS)
    def computed(low, high, made, lowest, data):  # type: ignore[no-untyped-def]
        made[0] += 1
        return rounded(log_factor(low, high, *data), lowest)

    return computed


def _stored(computed: Any, kind: int) -> Any:
    """Wrap the factor so that it is looked up first, and computed once."""

    @numba.njit(**USERS)
    def plain(i, j, made, store, size, lowest, data):  # type: ignore[no-untyped-def]
        return computed(min(i, j), max(i, j), made, lowest, data)

    @numba.njit(**USERS)
    def in_triangle(i, j, made, store, size, lowest, data):  # type: ignore[no-untyped-def]
        low, high = min(i, j), max(i, j)
        place = np.uint64(high * (high - 1) // 2 + low)
        if np.isnan(store[place]):
            store[place] = computed(low, high, made, lowest, data)
        return np.float64(store[place])

    @numba.njit(**USERS)
    def in_square(i, j, made, store, size, lowest, data):  # type: ignore[no-untyped-def]
        place = np.uint64(i * size + j)
        if np.isnan(store[place]):
            store[place] = computed(min(i, j), max(i, j), made, lowest, data)
            store[np.uint64(j * size + i)] = store[place]
        return np.float64(store[place])

    return (plain, in_triangle, in_square)[kind]
