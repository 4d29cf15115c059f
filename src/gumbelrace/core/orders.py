"""Reading rows in random order, without replacement.

Rewards that are computed are read row by row, in an order that every draw has for itself: a partial
Fisher-Yates shuffle of the row numbers where they are few, else a permutation worked out from a key (see
below). Rewards that lie in memory are read fastest in runs: their rows are put in random order once, and a
draw picks random *blocks* of them in the same way. A uniform permutation cut into blocks, read in an order
that does not depend on it, is again a uniform permutation: after any number of rows, those read are a
simple random sample without replacement, and every bound holds. What draws that share the order of the rows
share, see `Population.shares_order`.

A draw that reads T rows does O(T) work here: it undoes its own swaps instead of starting from a fresh
index, so that equal seeds give equal draws whatever was drawn before.

A random order is worked out from a key instead of being stored by a Feistel network. It cuts a number of w
bits into halves and mixes one half into the other, in turn and with a key of its own each time. Every round
can be undone, so that different numbers stay different: for each key it is a permutation of the numbers
below 2^w. The order of `size` things is what it makes of 0, 1, 2, ..., numbers beyond the last thing passed
over. Nothing as long as the things is stored, and a new key gives a new order: every draw can have one of
its own.

The key is 192 bits of the caller's generator; six rounds of two multiplications are as many as make the
sums of the first things behave as those of a uniform permutation (checked by tests, also for things that
are laid out along the bits of their numbers).
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import kernel, part
from gumbelrace.core.random import AT, EQUAL_CHANCES, STOP, Alias, Bits, below, next_uint64, pick

# Fewer things than this are shuffled: halves of few bits mix badly.
FEWEST = 16_384
ROUNDS = 6

Keys = NDArray[np.uint64]  # one key a row, ROUNDS words of 32 bits each
Words = tuple[np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, np.uint64]

FIRST_FACTOR, SECOND_FACTOR = np.uint64(0x9E3779B1), np.uint64(0x85EBCA77)  # odd, their bits well spread
MASK, ONE = np.uint64(0xFFFFFFFF), np.uint64(1)
WORD, FOLD = np.uint64(32), np.uint64(15)


@part
def draw_key(bits: Bits, keys: Keys, row: int) -> None:
    """Draw a new key."""
    for i in range(0, ROUNDS, 2):
        drawn = next_uint64(bits)
        keys[row, i] = drawn & MASK
        keys[row, i + 1] = drawn >> WORD


@part
def words_of(keys: Keys, row: int) -> Words:
    """Give a key as six words: those of an array would be read again for every number."""
    return keys[row, 0], keys[row, 1], keys[row, 2], keys[row, 3], keys[row, 4], keys[row, 5]


@kernel
def width_of(size: int) -> int:
    """Give the number of bits in which `size` things are numbered; 0 if they are too few for a key."""
    width = 0
    while size >= FEWEST and (1 << width) < size:
        width += 1
    return width


@part
def scrambled(half: np.uint64, word: np.uint64, bits: np.uint64) -> np.uint64:
    """Give so many bits that depend on all bits of a half and of a word of the key."""
    mixed = ((half ^ word) * FIRST_FACTOR) & MASK
    mixed ^= mixed >> FOLD
    mixed = (mixed * SECOND_FACTOR) & MASK
    return mixed >> (WORD - bits)


@part
def permuted(number: np.uint64, words: Words, width: int) -> np.uint64:
    """Give the number to which the key leads: a permutation of those of `width` bits."""
    upper = np.uint64(width // 2)
    lower = np.uint64(width) - upper
    high, low = number >> lower, number & ((ONE << lower) - ONE)
    high ^= scrambled(low, words[0], upper)
    low ^= scrambled(high, words[1], lower)
    high ^= scrambled(low, words[2], upper)
    low ^= scrambled(high, words[3], lower)
    high ^= scrambled(low, words[4], upper)
    low ^= scrambled(high, words[5], lower)
    return (high << lower) | low


@part
def take_permuted(
    words: Words, width: int, start: int, size: int, places: NDArray[np.int64], count: int
) -> int:
    """Put the next `count` of `size` things into `places`, from number `start` on; give the next number."""
    filled = 0
    while filled < count:
        missing = count - filled
        # All numbers first, in vector registers; then those beyond the last thing are squeezed out.
        for i in range(np.uint64(missing)):
            places[np.uint64(filled) + i] = permuted(np.uint64(start) + i, words, width)
        start += missing
        kept = filled
        for i in range(np.uint64(filled), np.uint64(count)):
            place = places[i]
            places[np.uint64(kept)] = place
            kept += place < size
        filled = kept
    return start


NO_ROWS = np.empty(0, np.int64)

# Entries of Stream.seen
SEEN, SEEN_IN_PART = 1, 2
# Entries of Streams.cursor for each arm
BLOCKS_TAKEN, NEXT, END = 0, 1, 2


class Streams(NamedTuple):
    """A place in a random order of rows for each arm (compiled code changes the arrays)."""

    block: int  # rows in a block
    sizes: NDArray[np.int64]  # rows of each arm
    counts: NDArray[np.int64]  # blocks of each arm
    starts: NDArray[np.int64]  # the numbers of arm i's blocks lie from starts[i] on
    blocks: NDArray[np.int32]  # those before cursor[i, BLOCKS_TAKEN] are in the order taken
    swaps: NDArray[np.int32]  # what to undo
    widths: NDArray[np.int64]  # bits of the numbers that the arm's key permutes; 0: it has none
    keys: Keys
    cursor: NDArray[np.int64]  # blocks taken, or numbers permuted; next row and end of the open block
    tail: NDArray[np.int64] = NO_ROWS  # the row at each place; empty: places are rows


class Stream(NamedTuple):
    """A place in the one random order of rows that all arms share."""

    streams: Streams  # of one arm
    seen: NDArray[np.uint8]  # scratch, zero between draws: blocks that are not to be read again
    weights: Alias  # chances of rows of the tail that are drawn with replacement
    bounds: Alias  # in proportion to what bounds their rewards


@part
def take_from(streams: Streams, bits: Bits, arm: int, rows: NDArray[np.int64], count: int) -> None:
    """Put the next `count` rows of the random order of `arm` into `rows`."""
    if by_key(streams, arm) and streams.block == 1:
        draw_key_if_new(streams, bits, arm)
        start, size = streams.cursor[arm, BLOCKS_TAKEN], streams.sizes[arm]
        words, width = words_of(streams.keys, arm), streams.widths[arm]
        streams.cursor[arm, BLOCKS_TAKEN] = take_permuted(words, width, start, size, rows, count)
    else:
        take_runs(streams, bits, arm, rows, count)
    name_rows(streams.tail, rows, count)


@part
def take_runs(streams: Streams, bits: Bits, arm: int, rows: NDArray[np.int64], count: int) -> None:
    """Put the next `count` places of the random order of `arm`, run by run, into `rows`."""
    filled = 0
    while filled < count:
        first, run = next_run_of(streams, bits, arm, count - filled)
        # Unsigned indices cannot count from the end: only then does the loop run in vector registers.
        to, start = np.uint64(filled), np.uint64(first)
        for i in range(np.uint64(run)):
            rows[to + i] = start + i
        filled += run


@part
def name_rows(tail: NDArray[np.int64], places: NDArray[np.int64], count: int) -> None:
    """Put the rows that are there in the place of places."""
    if len(tail) > 0:
        for i in range(np.uint64(count)):
            places[i] = tail[np.uint64(places[i])]


@part
def next_run_of(streams: Streams, bits: Bits, arm: int, most: int) -> tuple[int, int]:
    """Advance by a run of at most `most` consecutive rows; return its first and its length."""
    cursor = streams.cursor
    if cursor[arm, NEXT] == cursor[arm, END]:
        block = (
            next_by_key(streams, bits, arm) if by_key(streams, arm) else next_by_swap(streams, bits, arm)
        )
        cursor[arm, NEXT] = block * streams.block
        cursor[arm, END] = min(cursor[arm, NEXT] + streams.block, streams.sizes[arm])
    first = cursor[arm, NEXT]
    count = min(most, cursor[arm, END] - first)
    cursor[arm, NEXT] += count
    return first, count


@part
def by_key(streams: Streams, arm: int) -> bool:
    """Whether the order of an arm is worked out from a key."""
    return streams.widths[arm] > 0


@part
def next_by_swap(streams: Streams, bits: Bits, arm: int) -> np.int64:
    """Take a block by the next step of a Fisher-Yates shuffle."""
    cursor, blocks = streams.cursor, streams.blocks
    k = streams.starts[arm] + cursor[arm, BLOCKS_TAKEN]
    other = k + below(bits, streams.starts[arm] + streams.counts[arm] - k)
    blocks[k], blocks[other] = blocks[other], blocks[k]
    streams.swaps[k] = other
    cursor[arm, BLOCKS_TAKEN] += 1
    return np.int64(blocks[k])


@part
def next_by_key(streams: Streams, bits: Bits, arm: int) -> np.int64:
    """Take the next block of the order that the arm's key gives."""
    draw_key_if_new(streams, bits, arm)
    block = streams.counts[arm]
    while block >= streams.counts[arm]:
        block = block_at(streams, arm, streams.cursor[arm, BLOCKS_TAKEN])
        streams.cursor[arm, BLOCKS_TAKEN] += 1
    return block


@part
def draw_key_if_new(streams: Streams, bits: Bits, arm: int) -> None:
    """Draw the key of an order of which nothing was read yet."""
    if streams.cursor[arm, BLOCKS_TAKEN] == 0:
        draw_key(bits, streams.keys, arm)


@part
def block_at(streams: Streams, arm: int, k: int) -> np.int64:
    """Give the k-th block of an order, or a number beyond the last block: one that was passed over."""
    if by_key(streams, arm):
        words = words_of(streams.keys, arm)
        return np.int64(permuted(np.uint64(k), words, streams.widths[arm]))
    return np.int64(streams.blocks[streams.starts[arm] + k])


@part
def rewind_first(streams: Streams, arms: int) -> None:
    """Undo every swap of the first arms."""
    cursor, blocks = streams.cursor, streams.blocks
    for arm in range(arms):
        if not by_key(streams, arm):
            first = streams.starts[arm]
            for k in range(first + cursor[arm, BLOCKS_TAKEN] - 1, first - 1, -1):
                other = streams.swaps[k]
                blocks[k], blocks[other] = blocks[other], blocks[k]
        cursor[arm, BLOCKS_TAKEN] = cursor[arm, NEXT] = cursor[arm, END] = 0


@part
def take(stream: Stream, bits: Bits, rows: NDArray[np.int64], count: int) -> None:
    """Put the next `count` rows of the random order into `rows`."""
    take_from(stream.streams, bits, 0, rows, count)


@part
def pick_rows(bits: Bits, chances: Alias, size: int, rows: NDArray[np.int64], count: int) -> None:
    """Put `count` rows of a tail of `size` into `rows`, drawn with replacement by their chances."""
    if chances.cursor[STOP] > 0:
        first = chances.cursor[AT]
        for i in range(count):
            rows[i] = first + i
        chances.cursor[AT] = first + count
        return
    if len(chances.keep) > 0:
        for i in range(np.uint64(count)):
            rows[i] = pick(bits, chances)
        return
    for i in range(np.uint64(count)):
        rows[i] = below(bits, size)
    name_rows(chances.other, rows, count)


@part
def next_run(stream: Stream, bits: Bits, most: int) -> tuple[int, int]:
    """Advance by a run of at most `most` consecutive rows; return its first and its length."""
    return next_run_of(stream.streams, bits, 0, most)


@part
def rewind(stream: Stream) -> None:
    """Undo every swap: the stream is as new."""
    rewind_first(stream.streams, 1)


@part
def mark_rows(stream: Stream, size: int, count: int, rows: NDArray[np.int64]) -> int:
    """Note in `seen` the blocks of the first `count` rows taken; `rows` is scratch.

    Returns
    -------
    int
        The row up to which the last of these blocks was read.
    """
    streams, start, until = stream.streams, 0, 0
    while count > 0:
        n = min((count + streams.block - 1) // streams.block, len(rows))
        if by_key(streams, 0):
            words, width = words_of(streams.keys, 0), streams.widths[0]
            start = take_permuted(words, width, start, streams.counts[0], rows, n)
        else:
            for i in range(n):
                rows[i] = streams.blocks[start + i]
            start += n
        count, until = mark_blocks(stream, size, count, rows, n)
    return until


@part
def mark_blocks(
    stream: Stream, size: int, count: int, blocks: NDArray[np.int64], n: int
) -> tuple[int, int]:
    """Note `n` blocks, of whose rows `count` were taken; return how many are left to note, and the end."""
    block, until = stream.streams.block, 0
    if block == 1:
        for i in range(np.uint64(n)):
            stream.seen[np.uint64(blocks[i])] = SEEN
        return count - n, until
    for i in range(n):
        first = blocks[i] * block
        until = min(first + min(block, count), size)
        count -= until - first
        stream.seen[blocks[i]] = SEEN if count > 0 else SEEN_IN_PART
    return count, until


@part
def unseen_rows(stream: Stream, first: int, last: int, until: int, rows: NDArray[np.int64]) -> int:
    """Put the rows of [first, last) that were not taken into `rows`; return how many.

    Of the last block that was noted, those from `until` on were not.
    """
    count, block = 0, stream.streams.block
    if block == 1:
        for row in range(np.uint64(first), np.uint64(last)):
            rows[np.uint64(count)] = row
            count += 1 - stream.seen[row]
    else:
        while first < last:
            end, seen = min((first // block + 1) * block, last), stream.seen[first // block]
            if seen == SEEN_IN_PART:
                first = max(first, until)
            for row in range(end if seen == SEEN else first, end):
                rows[count] = row
                count += 1
            first = end
    name_rows(stream.streams.tail, rows, count)
    return count


@part
def forget_marks(stream: Stream) -> None:
    """Clear `seen` of all blocks: whoever needs it reads all rows anyway."""
    for i in range(len(stream.seen)):
        stream.seen[i] = 0


def new_streams(sizes: NDArray[np.int64], block: int = 1, tail: NDArray[np.int64] = NO_ROWS) -> Streams:
    """Make room for reading the rows of each arm in an order of its own."""
    counts = -(-sizes // block)
    widths = np.array([width_of(count) for count in counts])
    swapped = np.where(widths == 0, counts, 0)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(swapped)])
    blocks = np.empty(starts[-1], np.int32)
    for first, last in pairwise(starts):
        blocks[first:last] = np.arange(last - first)
    keys = np.empty((len(sizes), ROUNDS), np.uint64)
    cursor = np.zeros((len(sizes), 3), np.int64)
    swaps = np.empty_like(blocks)
    return Streams(block, sizes, counts, starts, blocks, swaps, widths, keys, cursor, tail)


def new_stream(
    size: int,
    block: int = 1,
    tail: NDArray[np.int64] = NO_ROWS,
    weights: Alias = EQUAL_CHANCES,
    bounds: Alias = EQUAL_CHANCES,
) -> Stream:
    """Make room for reading rows that all arms share."""
    streams = new_streams(np.array([size]), block, tail)
    return Stream(streams, np.zeros(streams.counts[0], np.uint8), weights, bounds)
