"""How the compiled code is built: one set of flags, and calls by address.

A kernel that takes a user's function as an argument is compiled anew in every process. A kernel that
takes the *address* of a C function is not: it is cached on disk once. So a population hands its reader
over as an address, and the reader finds its data behind another (see `packed`).
"""

import ctypes
import functools
import shutil
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from gumbelrace.core.linked import ForLinking
from gumbelrace.errors import NoCache

Function = TypeVar("Function", bound=Callable[..., Any])

# Sums may be reordered (so that they run in vector registers); NaN and infinities keep their meaning.
FAST = {"reassoc", "contract", "nsz"}

NO_CACHE = (
    "there is no folder for compiled code that may be written to and has room, so that every run compiles "
    "anew; set NUMBA_CACHE_DIR to one"
)
# Bytes that compiled code takes, and more; where a disk is full, numba would raise in the midst of a run.
ROOM = 2**24

OPTIONS = {"error_model": "numpy", "fastmath": FAST}
# Parts of a kernel own no arrays: without reference counts (which are atomic) they cost half as much.
PART = {
    **OPTIONS,
    "forceinline": True,
    "_nrt": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "pipeline_class": ForLinking,
}
# Sums that account for their own rounding must be added up as written.
AS_WRITTEN = {**PART, "fastmath": False}
# The defaults of numba, said aloud; but what runs for every reward is inlined.
USERS = {**PART, "error_model": "python", "fastmath": False, "_nrt": True}


@functools.cache
def can_cache() -> bool:
    """Whether numba finds a folder for compiled code; if not, that is said once."""
    try:
        tried: Any = numba.njit(cache=True)(lambda: None)
        found = shutil.disk_usage(tried.stats.cache_path).free >= ROOM
    except (RuntimeError, OSError):
        found = False
    if not found:
        warnings.warn(NO_CACHE, NoCache, stacklevel=2)
    return found


def kernel(function: Function) -> Function:
    """Compile on first use, cache on disk, release the GIL: for what Python calls."""
    compiled: Function = numba.njit(cache=can_cache(), nogil=True, **OPTIONS)(function)
    return compiled


def part(function: Function) -> Function:
    """Compile into the kernels that call it: for what only compiled code calls, and makes no arrays."""
    return _for_any_value(function, PART)


def as_written(function: Function) -> Function:
    """Compile a part whose arithmetic is never reordered, also where its caller's is."""
    return _for_any_value(function, AS_WRITTEN)


def routine(function: Function) -> Function:
    """Compile a part once, and call it: for what is long, and does not run for every reward."""
    return _for_any_value(function, {**PART, "forceinline": False})


def _for_any_value(function: Function, options: dict[str, Any]) -> Function:
    """Compile for the types of arguments alone: numba would do so again for every constant among them."""
    compiled: Any = numba.njit(**options)(function)
    typed = compiled.get_call_template

    def of_types(arguments: Any, named: Any) -> Any:
        any_value = {name: types.unliteral(kind) for name, kind in named.items()}
        return typed([types.unliteral(kind) for kind in arguments], any_value)

    compiled.get_call_template = of_types
    result: Function = compiled
    return result


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


@intrinsic
def call(typingctx: Any, address: Any, words: Any) -> Any:
    """Call a function of 64-bit words, which gives one, by its address."""
    count = len(words)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        kind = ir.FunctionType(word, [word] * count).as_pointer()
        items = [builder.extract_value(arguments[1], k) for k in range(count)]
        return builder.call(builder.inttoptr(arguments[0], kind), items)

    return types.int64(types.int64, types.UniTuple(types.int64, count)), codegen


def address_of(c_function: Any) -> int:
    """Address of a ctypes function."""
    return ctypes.cast(c_function, ctypes.c_void_p).value or 0


def address_of_array(array: NDArray[Any]) -> int:
    """Give where the first entry of an array lies; ten times faster than `array.ctypes.data`."""
    address: int = array.__array_interface__["data"][0]
    return address
