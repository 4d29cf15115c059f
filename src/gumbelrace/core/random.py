"""Random numbers: NumPy's generators, for Python and for compiled code, which draw from the same stream."""

import copy
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import address_of, call, kernel, part
from gumbelrace.errors import InvalidGenerator

# What users may give as `rng`; `as_generator` makes a Generator of it.
Rng = np.random.Generator | np.random.BitGenerator | np.random.SeedSequence | Sequence[int] | int | None


class Bits(NamedTuple):
    """Addresses of a generator's stream of random bits, for compiled code."""

    next_uint64: int
    state: int


def bits_of(rng: np.random.Generator) -> Bits:
    """Addresses of `rng`'s stream, so that compiled code and NumPy draw from the same one.

    They are good as long as `rng` lives.
    """
    interface = rng.bit_generator.ctypes
    return Bits(address_of(interface.next_uint64), int(interface.state_address))


@part
def next_uint64(bits: Bits) -> np.uint64:
    """Draw 64 random bits."""
    return np.uint64(call(bits.next_uint64, (bits.state,)))


@part
def below(bits: Bits, bound: int) -> int:
    """Draw a uniform integer in [0, bound), without bias: Lemire's method, for a bound below 2**32."""
    n = np.uint64(bound)
    mask = np.uint64(0xFFFFFFFF)
    if n > mask:
        return below_large(bits, n)
    half = np.uint64(32)
    product = (next_uint64(bits) >> half) * n
    if (product & mask) < n:
        least = (np.uint64(1) << half) % n
        while (product & mask) < least:
            product = (next_uint64(bits) >> half) * n
    return int(product >> half)


@part
def below_large(bits: Bits, n: np.uint64) -> int:
    """Draw a uniform integer below a large `n`: as many bits as it has, until they make a smaller one."""
    unused = np.uint64(0)
    while (n << unused) >> np.uint64(63) == 0:
        unused += np.uint64(1)
    drawn = next_uint64(bits) >> unused
    while drawn >= n:
        drawn = next_uint64(bits) >> unused
    return int(drawn)


@part
def gumbel(bits: Bits) -> float:
    """Draw a standard Gumbel variable."""
    return -np.log(-np.log(uniform(bits)))


@part
def uniform(bits: Bits) -> float:
    """Draw a number strictly between 0 and 1, without rounding: 52 random bits and a half."""
    drawn = next_uint64(bits) >> np.uint64(12)
    return (np.float64(drawn) + 0.5) * 2.0**-52


# Entries of a cursor, of numbers that were drawn ahead: the next to be used, where they end, and how many
# must be left for one to begin something.
AT, STOP, RESERVE = range(3)
NOTHING_AHEAD = np.zeros(3, np.int64)


class Alias(NamedTuple):
    """Walker's table: numbers with unequal chances in constant time; all the same chance if it is empty.

    Numbers that were drawn ahead are used one after another, from where the cursor stands.
    """

    keep: NDArray[np.float64]  # share of the draws of n that stay with it
    other: NDArray[np.int64]  # where the others go
    chance: NDArray[np.float64]  # of each number, times how many there are
    cursor: NDArray[np.int64] = NOTHING_AHEAD


@part
def is_used_up(cursor: NDArray[np.int64]) -> bool:
    """Whether too few numbers that were drawn ahead are left; never, where none were."""
    return bool(cursor[AT] + cursor[RESERVE] > cursor[STOP])


EQUAL_CHANCES = Alias(np.empty(0), np.empty(0, np.int64), np.empty(0))


def alias_of(weights: NDArray[np.float64]) -> Alias:
    """Make the table of chances in proportion to `weights`: finite, none negative, one positive."""
    chance = weights * (len(weights) / weights.sum())
    keep, other = np.ones(len(weights)), np.arange(len(weights))
    fill_alias(chance, chance.copy(), keep, other, np.empty(len(weights), np.int64))
    return Alias(keep, other, chance)


@kernel
def fill_alias(
    chance: NDArray[np.float64],
    left: NDArray[np.float64],
    keep: NDArray[np.float64],
    other: NDArray[np.int64],
    small: NDArray[np.int64],
) -> None:
    """Fill up each number that has too small a chance by another that has too large a one (Vose 1991)."""
    count, rich = 0, 0
    for n in range(len(chance)):
        if chance[n] < 1.0:
            small[count] = n
            count += 1
    while count > 0:
        while rich < len(left) and (chance[rich] < 1.0 or left[rich] < 1.0):
            rich += 1
        if rich == len(left):
            return  # all that is missing is rounding
        count -= 1
        n = small[count]
        keep[n], other[n] = left[n], rich
        left[rich] -= 1.0 - left[n]
        if left[rich] < 1.0:
            small[count] = rich
            count += 1


@part
def pick(bits: Bits, alias: Alias) -> int:
    """Draw a number with its chance."""
    n = below(bits, len(alias.keep))
    return n if uniform(bits) < alias.keep[n] else alias.other[n]


def beside(rng: np.random.Generator) -> np.random.Generator:
    """Give a generator that follows from the state of `rng`, and leave `rng` where it is."""
    words = copy.deepcopy(rng.bit_generator).random_raw(8)
    return np.random.default_rng(np.asarray(words, np.uint64))


def as_generator(rng: object) -> np.random.Generator:
    """Return the generator that `rng` stands for, as SPEC 7 of Scientific Python has it.

    A Generator is returned as it is. A seed gives a new one, the same for the same seed, and None one that
    nobody can repeat. Whoever takes an `rng` from a user calls this first, and hands on the generator.
    """
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, np.random.SeedSequence):
        rng = copy.deepcopy(rng)  # it counts what is spawned from it, and a seed shall stay the same
    if not isinstance(rng, str | bool | np.random.RandomState):
        with suppress(TypeError, ValueError):
            return np.random.default_rng(rng)  # type: ignore[arg-type]
    raise InvalidGenerator(
        f"rng is {rng!r}; pass a seed, for example rng=0, or numpy.random.default_rng(0)"
    )


def check_generator(rng: object) -> np.random.Generator:
    """Return `rng` if it is a Generator: for what is called again and again.

    A seed would give the same numbers every time, and steps that repeat each other are no chain.
    """
    if not isinstance(rng, np.random.Generator):
        raise InvalidGenerator(
            f"rng is {rng!r}; a step needs a Generator that goes on from one to the next: make "
            "rng = numpy.random.default_rng(0) before the first"
        )
    return rng
