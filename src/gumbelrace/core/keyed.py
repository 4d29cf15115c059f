"""A random order of many things that is worked out from a key instead of being stored.

A Feistel network cuts a number of w bits into halves and mixes one half into the other, in turn and with a
key of its own each time. Every round can be undone, so that different numbers stay different: for each key
it is a permutation of the numbers below 2^w. The order of `size` things is what it makes of 0, 1, 2, ...,
numbers beyond the last thing passed over. Nothing as long as the things is stored, and a new key gives a
new order: every draw can have one of its own.

The key is 192 bits of the caller's generator; six rounds of two multiplications are as many as make the
sums of the first things behave as those of a uniform permutation (checked by tests, also for things that
are laid out along the bits of their numbers).
"""

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import kernel, part
from gumbelrace.core.random import Bits, next_uint64

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
