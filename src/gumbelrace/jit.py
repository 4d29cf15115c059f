"""How the compiled code is built: one set of flags, calls by address, and data behind an address.

A kernel that takes a user's function as an argument is compiled anew in every process. A kernel that
takes the *address* of a C function is not: it is cached on disk once. So a population hands its reader
over as an address, and the reader finds its data behind another.
"""

import ctypes
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument, InvalidGenerator

Function = TypeVar("Function", bound=Callable[..., Any])

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
# The defaults of numba, said aloud; but what runs for every reward is inlined.
USERS = {**PART, "error_model": "python", "fastmath": False, "_nrt": True}


def kernel(function: Function) -> Function:
    """Compile on first use, cache on disk, release the GIL: for what Python calls."""
    compiled: Function = numba.njit(cache=True, nogil=True, **OPTIONS)(function)
    return compiled


def part(function: Function) -> Function:
    """Compile into the kernels that call it: for what only compiled code calls.

    A part must not make arrays; a `maker` may.
    """
    compiled: Function = numba.njit(**PART)(function)
    return compiled


def maker(function: Function) -> Function:
    """Compile into the kernels that call it, with leave to make arrays."""
    compiled: Function = numba.njit(**OPTIONS)(function)
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
def call_setter(typingctx: Any, address: Any, context: Any, offset: Any, low: Any, high: Any) -> Any:
    """Call a function of four 64-bit words by its address."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _call(builder, arguments[0], list(arguments[1:]))

    return types.int64(*[types.int64] * 5), codegen


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


class Packed(NamedTuple):
    """Data that compiled code finds behind an address: `words` describes `parts`, of numba `type`."""

    words: NDArray[np.int64]
    parts: tuple[NDArray[Any], ...]
    type: Any


def pack(data: tuple[Any, ...]) -> Packed:
    """Lay out arrays and numbers for `unpack`; the result keeps them alive."""
    parts = tuple(_part(item, position) for position, item in enumerate(data))
    words: list[int] = []
    for item, part in zip(data, parts, strict=True):
        words.append(part.ctypes.data)
        if isinstance(item, np.ndarray):
            words.extend(part.shape)
            words.extend(part.strides)
    layouts = tuple(map(_layout, data, parts))
    return Packed(np.array(words, dtype=np.int64), parts, _tuple_type(layouts))


def _part(item: Any, position: int) -> NDArray[Any]:
    part = np.asarray(item)
    is_data = isinstance(item, (np.ndarray, np.generic, bool, int, float, complex))
    if not is_data or part.dtype.hasobject:
        raise InvalidArgument(
            f"data[{position}] is a {type(item).__name__}; give NumPy arrays and numbers only, "
            "one item for each argument of log_factor after (n, arm)"
        )
    return part


# What numba's type of an item depends on: dtype, dimensions (None for a number), layout, whether it is
# read-only and aligned.
Layout = tuple[np.dtype[Any], int | None, str, bool, bool]


def _layout(item: Any, part: NDArray[Any]) -> Layout:
    flags = part.flags
    order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
    dimensions = part.ndim if isinstance(item, np.ndarray) else None
    return part.dtype, dimensions, order, not flags.writeable, flags.aligned


@functools.lru_cache(maxsize=1024)
def _tuple_type(layouts: tuple[Layout, ...]) -> Any:
    """Give numba's type of a tuple; finding it anew for each population would cost more than a race."""
    return types.Tuple([_type(*layout) for layout in layouts])


def _type(dtype: np.dtype[Any], ndim: int | None, order: str, readonly: bool, aligned: bool) -> Any:
    item = numba.from_dtype(dtype)
    return item if ndim is None else types.Array(item, ndim, order, readonly=readonly, aligned=aligned)


@intrinsic
def unpack(typingctx: Any, words: Any, data_type: Any) -> Any:
    """Rebuild the tuple of type `data_type` that `pack` laid out; nothing is copied or owned."""
    target = data_type.instance_type

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        reader = _Words(builder, arguments[0])
        items = [_item(context, builder, reader, part) for part in target.types]
        return context.make_tuple(builder, target, items)

    return target(words, data_type), codegen


# Lines of the cache that are fetched of a row that is itself an array; rows of which none is fetched.
LINES_OF_A_ROW, SHORT = 3, 1024


@intrinsic
def fetch_row(typingctx: Any, data: Any, row: Any) -> Any:
    """Ask for what the arrays of a tuple hold of a row, without waiting for it."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        for position, part in enumerate(data.types):
            if isinstance(part, types.Array) and part.ndim > 0:
                value = builder.extract_value(arguments[0], position)
                array = context.make_array(part)(context, builder, value)
                _fetch(builder, array, arguments[1], many=part.ndim > 1)
        return context.get_dummy_value()

    return types.void(data, types.int64), codegen


def _fetch(builder: Any, array: Any, row: Any, many: bool) -> None:
    word = ir.IntType(64)
    length, stride = (builder.extract_value(side, 0) for side in (array.shape, array.strides))
    # A short array is in the cache anyway; one that is not indexed by rows may be shorter than `row`.
    long = builder.icmp_signed(">", length, word(SHORT))
    with builder.if_then(builder.and_(long, builder.icmp_signed("<", row, length))):
        start = builder.add(builder.ptrtoint(array.data, word), builder.mul(row, stride))
        _prefetch(builder, start)
        for line in range(1, LINES_OF_A_ROW if many else 1):
            # Not past the row: a line that is not needed costs as much as one that is.
            last, ahead = builder.sub(stride, word(8)), word(64 * line)
            within = builder.select(builder.icmp_signed("<", ahead, last), ahead, last)
            _prefetch(builder, builder.add(start, within))


@intrinsic
def fetch(typingctx: Any, address: Any) -> Any:
    """Ask for the cache line at an address, without waiting for it."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _prefetch(builder, arguments[0])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


def _prefetch(builder: Any, address: Any) -> None:
    pointer, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
    signature = ir.FunctionType(ir.VoidType(), [pointer, flag, flag, flag])
    function = cgutils.get_or_insert_function(builder.module, signature, "llvm.prefetch.p0")
    read, keep, cache = flag(0), flag(3), flag(1)
    builder.call(function, [builder.inttoptr(address, pointer), read, keep, cache])


class _Words:
    """Reads one 64-bit word after another."""

    def __init__(self, builder: Any, pointer: Any) -> None:
        self.builder, self.pointer, self.position = builder, pointer, 0

    def take(self, count: int) -> list[Any]:
        first, self.position = self.position, self.position + count
        return [
            self.builder.load(cgutils.gep(self.builder, self.pointer, k))
            for k in range(first, self.position)
        ]


def _item(context: Any, builder: Any, words: _Words, part: Any) -> Any:
    (address,) = words.take(1)
    if not isinstance(part, types.Array):
        pointer = builder.inttoptr(address, context.get_data_type(part).as_pointer())
        return context.unpack_value(builder, part, pointer)
    from numba.np.arrayobj import populate_array  # numba loads it when it first compiles

    array = context.make_array(part)(context, builder)
    populate_array(
        array,
        data=builder.inttoptr(address, array.data.type),
        shape=words.take(part.ndim),
        strides=words.take(part.ndim),
        itemsize=context.get_constant(
            types.intp, context.get_abi_sizeof(context.get_data_type(part.dtype))
        ),
        meminfo=None,
    )
    return array._getvalue()


def check_generator(rng: object) -> np.random.Generator:
    """Return `rng` if it is a Generator; say what to pass if it is not."""
    if not isinstance(rng, np.random.Generator):
        raise InvalidGenerator(
            f"rng is {type(rng).__name__}; pass a numpy Generator, for example "
            "rng=numpy.random.default_rng(0)"
        )
    return rng
