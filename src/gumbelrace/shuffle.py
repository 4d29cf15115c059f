"""Reading rows in random order, without replacement, at close to memory speed.

Picking single rows at random costs a cache miss each. So the rows are shuffled once, and a draw picks
random *blocks* of them by a partial Fisher-Yates shuffle of the block numbers. A uniform permutation cut
into blocks, read in an order that does not depend on it, is again a uniform permutation: after any number
of rows, those read are a simple random sample without replacement, and every bound holds.

A draw that reads T rows does O(T) work here: it undoes its own swaps instead of starting from a fresh
index, so that equal seeds give equal draws whatever was drawn before.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument
from gumbelrace.jit import Bits, below, part

# Long blocks are read about as fast as a stream, but draws that share a shuffle should share few rows:
# a population has around a thousand blocks, or single rows if these would be shorter than SHORTEST.
BLOCKS, SHORTEST, LONGEST = 1024, 128, 1024
SINGLE_ROWS = 16_384
LARGEST = 2**31 - 1

# The shuffle of a population has a seed of its own: results depend on the caller's rng alone.
SHUFFLE_SEED = 20160620

# Entries of Stream.cursor
TAKEN, NEXT, END = 0, 1, 2

Item = TypeVar("Item")


class Stream(NamedTuple):
    """A reader's place in the random order of the rows (compiled code changes the arrays)."""

    block: int
    order: NDArray[np.int32]  # the row at each position; empty: the position is the row
    blocks: NDArray[np.int32]  # block numbers, those before cursor[TAKEN] in the order taken
    swaps: NDArray[np.int32]  # what to undo
    cursor: NDArray[np.int64]  # blocks taken; next position and end of the open block
    seen: NDArray[np.uint8]  # scratch, zero between draws: what is not to be read again


@part
def next_run(stream: Stream, bits: Bits, size: int, most: int) -> tuple[int, int]:
    """Advance by a run of at most `most` consecutive positions; return its first and its length."""
    cursor = stream.cursor
    if cursor[NEXT] == cursor[END]:
        _open_block(stream, bits, size)
    first = cursor[NEXT]
    count = min(most, cursor[END] - first)
    cursor[NEXT] += count
    return first, count


@part
def _open_block(stream: Stream, bits: Bits, size: int) -> None:
    blocks, k = stream.blocks, stream.cursor[TAKEN]
    other = k + below(bits, len(blocks) - k)
    blocks[k], blocks[other] = blocks[other], blocks[k]
    stream.swaps[k] = other
    stream.cursor[TAKEN] = k + 1
    stream.cursor[NEXT] = np.int64(blocks[k]) * stream.block
    stream.cursor[END] = min(stream.cursor[NEXT] + stream.block, size)


@part
def take(stream: Stream, bits: Bits, size: int, rows: NDArray[np.int64], count: int) -> None:
    """Put the next `count` rows of the random order into `rows`."""
    order, filled = stream.order, 0
    while filled < count:
        first, run = next_run(stream, bits, size, count - filled)
        # Unsigned indices cannot count from the end: only then do these loops run in vector registers.
        to, start = np.uint64(filled), np.uint64(first)
        if len(order) == 0:
            for i in range(np.uint64(run)):
                rows[to + i] = start + i
        else:
            for i in range(np.uint64(run)):
                rows[to + i] = order[start + i]
        filled += run


@part
def rewind(stream: Stream) -> None:
    """Undo every swap: the stream is as new."""
    for k in range(stream.cursor[TAKEN] - 1, -1, -1):
        other = stream.swaps[k]
        stream.blocks[k], stream.blocks[other] = stream.blocks[other], stream.blocks[k]
    stream.cursor[TAKEN] = stream.cursor[NEXT] = stream.cursor[END] = 0


@part
def mark_rows(stream: Stream, size: int, count: int, mark: int) -> None:
    """Set `seen` of the first `count` rows taken to `mark`."""
    for k in range(stream.cursor[TAKEN]):
        first = int(stream.blocks[k]) * stream.block
        last = min(first + min(stream.block, count), size)
        for position in range(first, last):
            row = stream.order[position] if len(stream.order) else position
            stream.seen[row] = mark
        count -= last - first


@part
def unseen_rows(stream: Stream, first: int, last: int, rows: NDArray[np.int64]) -> int:
    """Put the rows of [first, last) that were not taken into `rows`; return how many."""
    count = 0
    for row in range(first, last):
        rows[count] = row
        count += 1 - stream.seen[row]
    return count


@part
def mark_blocks(stream: Stream, mark: int) -> None:
    """Set `seen` of every block taken so far, by its number, to `mark`."""
    for k in range(stream.cursor[TAKEN]):
        stream.seen[stream.blocks[k]] = mark


@part
def unseen_run(stream: Stream, start: int) -> tuple[int, int]:
    """Find the first run of unseen blocks from block `start` on: its first and last + 1."""
    blocks, first = len(stream.blocks), start
    while first < blocks and stream.seen[first]:
        first += 1
    last = first
    while last < blocks and not stream.seen[last]:
        last += 1
    return first, last


class Pool(Generic[Item]):
    """Things that are dear to make, each used by one thread at a time."""

    def __init__(self, make: Callable[[], Item]) -> None:
        self._make = make
        self._idle: list[Item] = []

    @contextmanager
    def lend(self) -> Iterator[Item]:
        """Lend an idle item, or a new one if there is none."""
        try:
            item = self._idle.pop()
        except IndexError:
            item = self._make()
        yield item
        # An error leaves an item somewhere in the middle of its work: it is not lent again.
        self._idle.append(item)


class Rows:
    """The random order of `size` rows, and the streams that read it.

    Parameters
    ----------
    size : int
        Number of rows.
    block : int, optional
        Rows in a block; 1 reads single rows and needs no shuffle.
    order : ndarray of int32, optional
        The shuffled rows. None: the rows themselves already lie in random order.
    """

    def __init__(self, size: int, block: int = 1, order: NDArray[np.int32] | None = None) -> None:
        check_size(size)
        self.size, self.block = size, block
        self.order = np.empty(0, np.int32) if order is None else order
        self._pool = Pool(self._new_stream)

    def stream(self) -> AbstractContextManager[Stream]:
        """Lend a stream to one thread."""
        return self._pool.lend()

    def _new_stream(self) -> Stream:
        blocks = -(-self.size // self.block)
        return Stream(
            self.block,
            self.order,
            np.arange(blocks, dtype=np.int32),
            np.empty(blocks, np.int32),
            np.zeros(3, np.int64),
            np.zeros(self.size, np.uint8),
        )


def check_size(size: int) -> None:
    """Check that rows can be counted in 32 bits."""
    if not 1 <= size <= LARGEST:
        raise InvalidArgument(f"size is {size}; a population has 1 to {LARGEST} rows")


def block_length(size: int) -> int:
    """Give the length of the blocks in which `size` rows are read: a power of two, or 1."""
    if size < SINGLE_ROWS:
        return 1
    return min(max(1 << (size // BLOCKS).bit_length(), SHORTEST), LONGEST)


def random_rows(size: int, rng: np.random.Generator | None = None) -> Rows:
    """Put `size` rows in random order: shuffled blocks, or single rows if there are few."""
    check_size(size)
    if block_length(size) == 1:
        return Rows(size)
    order = np.arange(size, dtype=np.int32)
    (np.random.default_rng(SHUFFLE_SEED) if rng is None else rng).shuffle(order)
    return Rows(size, block_length(size), order)


def in_given_order(size: int) -> Rows:
    """Take `size` rows that already lie in random order as they are."""
    return Rows(size, block_length(size))


class Streams(NamedTuple):
    """A random order of rows for each arm, independent of the other arms' (see `Stream`)."""

    block: int
    order: NDArray[np.int32]
    sizes: NDArray[np.int64]
    starts: NDArray[np.int64]  # arm i has counts[i] blocks, from starts[i] on
    counts: NDArray[np.int64]
    blocks: NDArray[np.int32]
    swaps: NDArray[np.int32]
    cursor: NDArray[np.int64]  # for each arm as in `Stream`


@part
def take_from(streams: Streams, bits: Bits, arm: int, rows: NDArray[np.int64], count: int) -> None:
    """Put the next `count` rows of the random order of `arm` into `rows`."""
    cursor, order, filled = streams.cursor, streams.order, 0
    while filled < count:
        if cursor[arm, NEXT] == cursor[arm, END]:
            _open_block_of(streams, bits, arm)
        first = cursor[arm, NEXT]
        run = min(count - filled, cursor[arm, END] - first)
        for i in range(run):
            rows[filled + i] = order[first + i] if len(order) else first + i
        cursor[arm, NEXT] += run
        filled += run


@part
def _open_block_of(streams: Streams, bits: Bits, arm: int) -> None:
    cursor, blocks = streams.cursor, streams.blocks
    k = streams.starts[arm] + cursor[arm, TAKEN]
    other = k + below(bits, streams.starts[arm] + streams.counts[arm] - k)
    blocks[k], blocks[other] = blocks[other], blocks[k]
    streams.swaps[k] = other
    cursor[arm, TAKEN] += 1
    cursor[arm, NEXT] = np.int64(blocks[k]) * streams.block
    cursor[arm, END] = min(cursor[arm, NEXT] + streams.block, streams.sizes[arm])


@part
def rewind_all(streams: Streams) -> None:
    """Undo every swap of every arm."""
    cursor, blocks = streams.cursor, streams.blocks
    for arm in range(len(cursor)):
        first = streams.starts[arm]
        for k in range(first + cursor[arm, TAKEN] - 1, first - 1, -1):
            other = streams.swaps[k]
            blocks[k], blocks[other] = blocks[other], blocks[k]
        cursor[arm, TAKEN] = cursor[arm, NEXT] = cursor[arm, END] = 0


class SeparateRows:
    """Random orders of the rows of each arm, and the streams that read them.

    Parameters
    ----------
    sizes : ndarray of int64
        Number of rows of each arm.
    shared : Rows, optional
        The rows that all arms share, shuffled: each arm reads their blocks in an order of its own.
    """

    def __init__(self, sizes: NDArray[np.int64], shared: Rows | None = None) -> None:
        self.block = 1 if shared is None else shared.block
        self.order = np.empty(0, np.int32) if shared is None else shared.order
        self.sizes = sizes
        self.counts = -(-sizes // self.block)
        self.starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.counts)])
        self._pool = Pool(self._new_streams)

    def streams(self) -> AbstractContextManager[Streams]:
        """Lend streams to one thread."""
        return self._pool.lend()

    def _new_streams(self) -> Streams:
        total = int(self.starts[-1])
        blocks = np.empty(total, np.int32)
        for first, last in pairwise(self.starts):
            blocks[first:last] = np.arange(last - first)
        cursor = np.zeros((len(self.sizes), 3), np.int64)
        return Streams(
            self.block,
            self.order,
            self.sizes,
            self.starts,
            self.counts,
            blocks,
            np.empty(total, np.int32),
            cursor,
        )
