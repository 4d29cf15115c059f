"""How the compiled code is built: one set of flags, calls by address, and NumPy's random bits.

A kernel that takes a user's function as an argument is compiled anew in every process. A kernel that
takes the *address* of a C function is not: it is cached on disk once. So a population hands its reader
over as an address, and the reader finds its data behind another (see `packed`).
"""

import copy
import ctypes
import functools
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from gumbelrace.errors import InvalidGenerator

Function = TypeVar("Function", bound=Callable[..., Any])
# What users may give as `rng`; `as_generator` makes a Generator of it.
Rng = np.random.Generator | np.random.BitGenerator | np.random.SeedSequence | Sequence[int] | int | None

# Sums may be reordered (so that they run in vector registers); NaN and infinities keep their meaning.
FAST = {"reassoc", "contract", "nsz"}

OPTIONS = {"error_model": "numpy", "fastmath": FAST}
# Parts of a kernel own no arrays: without reference counts (which are atomic) they cost half as much.
PART = {
    **OPTIONS,
    "forceinline": True,
    "_nrt": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
# Sums that account for their own rounding must be added up as written.
AS_WRITTEN = {**PART, "fastmath": False}
# The defaults of numba, said aloud; but what runs for every reward is inlined.
USERS = {**PART, "error_model": "python", "fastmath": False, "_nrt": True}


def kernel(function: Function) -> Function:
    """Compile on first use, cache on disk, release the GIL: for what Python calls."""
    compiled: Function = numba.njit(cache=True, nogil=True, **OPTIONS)(function)
    return compiled


def part(function: Function) -> Function:
    """Compile into the kernels that call it: for what only compiled code calls, and makes no arrays."""
    compiled: Function = numba.njit(**PART)(function)
    return compiled


def as_written(function: Function) -> Function:
    """Compile a part whose arithmetic is never reordered, also where its caller's is."""
    compiled: Function = numba.njit(**AS_WRITTEN)(function)
    return compiled


def routine(function: Function) -> Function:
    """Compile a part once, and call it: for what is long, and does not run for every reward."""
    compiled: Function = numba.njit(**{**PART, "forceinline": False})(function)
    return compiled


@functools.lru_cache(maxsize=256)
def users(function: Any) -> Any:
    """Wrap a user's function for calls from a `part`; one of ours is given back as it is.

    numba compiles a function with the options of its first caller where it has none of its own: without
    references it could make no arrays, and a division by zero would pass.
    """
    if "_nrt" in function.targetoptions:
        return function

    @numba.njit(**USERS)
    def called(*arguments):  # type: ignore[no-untyped-def]
        return function(*arguments)

    return called


# read(context, rows, n_rows, arms, n_arms, out, stride) -> rewards read, or 0 if it failed.
# The reward of rows[i] and arm a goes to out[a * stride + i].
READER = types.int64(
    types.CPointer(types.int64),
    types.CPointer(types.int64),
    types.int64,
    types.CPointer(types.int64),
    types.int64,
    types.CPointer(types.float64),
    types.int64,
)


def _call(builder: Any, address: Any, arguments: list[Any]) -> Any:
    word = ir.IntType(64)
    signature = ir.FunctionType(word, [word] * len(arguments))
    return builder.call(builder.inttoptr(address, signature.as_pointer()), arguments)


@intrinsic
def call_reader(
    typingctx: Any,
    address: Any,
    context: Any,
    rows: Any,
    n_rows: Any,
    arms: Any,
    n_arms: Any,
    out: Any,
    stride: Any,
) -> Any:
    """Call a `READER` by its address; every argument is a 64-bit word."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _call(builder, arguments[0], list(arguments[1:]))

    return types.int64(*[types.int64] * 8), codegen


@intrinsic
def call_slot(typingctx: Any, address: Any, context: Any, slot: Any) -> Any:
    """Call a function of a slot by its address (see `population.slots`)."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _call(builder, arguments[0], list(arguments[1:]))

    return types.int64(*[types.int64] * 3), codegen


@intrinsic
def call_entry(typingctx: Any, address: Any, words: Any) -> Any:
    """Call a function of one 64-bit word by its address."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _call(builder, arguments[0], [arguments[1]])

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def call_next_uint64(typingctx: Any, address: Any, state: Any) -> Any:
    """Call a bit generator's `next_uint64(state)` by its address."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _call(builder, arguments[0], [arguments[1]])

    return types.uint64(types.int64, types.int64), codegen


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


def address_of(c_function: Any) -> int:
    """Address of a ctypes function."""
    return ctypes.cast(c_function, ctypes.c_void_p).value or 0


def address_of_array(array: NDArray[Any]) -> int:
    """Give where the first entry of an array lies; ten times faster than `array.ctypes.data`."""
    address: int = array.__array_interface__["data"][0]
    return address


@part
def below(bits: Bits, bound: int) -> int:
    """Draw a uniform integer in [0, bound), bound < 2**32 (Lemire's method, without bias)."""
    n = np.uint64(bound)
    mask = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    product = (call_next_uint64(bits.next_uint64, bits.state) >> half) * n
    if (product & mask) < n:
        least = (np.uint64(1) << half) % n
        while (product & mask) < least:
            product = (call_next_uint64(bits.next_uint64, bits.state) >> half) * n
    return int(product >> half)


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
