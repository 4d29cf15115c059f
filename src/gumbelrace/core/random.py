"""Random numbers: NumPy's generators, for Python and for compiled code, which draw from the same stream."""

import copy
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from gumbelrace.core.jit import address_of, call, part
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
    """Draw a uniform integer in [0, bound), bound < 2**32 (Lemire's method, without bias)."""
    n = np.uint64(bound)
    mask = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    product = (next_uint64(bits) >> half) * n
    if (product & mask) < n:
        least = (np.uint64(1) << half) % n
        while (product & mask) < least:
            product = (next_uint64(bits) >> half) * n
    return int(product >> half)


@part
def gumbel(bits: Bits) -> float:
    """Draw a standard Gumbel variable."""
    return -np.log(-np.log(uniform(bits)))


@part
def uniform(bits: Bits) -> float:
    """Draw a number strictly between 0 and 1, without rounding: 52 random bits and a half."""
    drawn = next_uint64(bits) >> np.uint64(12)
    return (np.float64(drawn) + 0.5) * 2.0**-52


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
