"""Data behind an address: laid out for compiled code, rebuilt there, and asked for ahead of use.

A reader that is called by its address (see `jit`) finds its arrays and numbers behind another.
"""

import functools
from collections.abc import Callable, Hashable, Iterator
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import NumbaError
from numba.extending import intrinsic
from numpy.typing import NDArray

from gumbelrace.core.jit import address_of_array, can_cache, kernel
from gumbelrace.errors import InvalidArgument


class Packed(NamedTuple):
    """Data that compiled code finds behind an address: `words` describes `parts`, of numba `type`."""

    words: NDArray[np.int64]
    parts: tuple[NDArray[Any], ...]
    type: Any

    @property
    def address(self) -> int:
        """Where the words lie."""
        return self.words.ctypes.data

    def __reduce__(self) -> Any:
        """Lay out copies anew: they lie elsewhere."""
        items = zip(self.parts, self.type.types, strict=True)
        return pack, (tuple(part if isinstance(kind, types.Array) else part[()] for part, kind in items),)


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
    is_data = isinstance(item, (np.ndarray, np.generic, bool, int, float, complex))
    if not is_data or (part := np.asarray(item)).dtype.hasobject:
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
    try:
        item = numba.from_dtype(dtype)
    except NumbaError as error:
        raise InvalidArgument(
            f"data has dtype {dtype}, which numba cannot read; write .astype(np.float64)"
        ) from error
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


# Lines of the cache that are fetched of a row that is itself an array; rows of which none is fetched.
LINES_OF_A_ROW, SHORT = 8, 1024


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


# Words that an array of at most two dimensions, or a number, takes at most.
MOST_WORDS = 9

# entry(address of a stored tuple) -> 0
ENTRY = types.int64(types.CPointer(types.int64))

# Types by their names, which are the same in every process: what numba caches may depend on a name only.
_TYPES: dict[str, Any] = {}


class Stored(NamedTuple):
    """A named tuple in memory, and what to call with its address; `value` keeps its arrays alive."""

    entry: int
    words: NDArray[np.int64]
    value: Any

    @property
    def address(self) -> int:
        """Where it lies."""
        return address_of_array(self.words)


@kernel
def _write(words: NDArray[np.int64], value: Any) -> None:
    store(words.ctypes.data, value)


@intrinsic
def store(typingctx: Any, address: Any, value: Any) -> Any:
    """Write a value to an address, as numba holds it."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = context.get_value_type(signature.args[1])
        builder.store(arguments[1], builder.inttoptr(arguments[0], kind.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, value), codegen


@intrinsic(prefer_literal=True)
def read_stored(typingctx: Any, address: Any, name: Any) -> Any:
    """Read a value of the type with that name; its arrays are not owned."""
    target = _TYPES[name.literal_value]

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.bitcast(arguments[0], context.get_value_type(target).as_pointer())
        return _disowned(context, builder, builder.load(pointer), target)

    return target(address, name), codegen


def _disowned(context: Any, builder: Any, value: Any, kind: Any) -> Any:
    """Give a value without its arrays' owners: they may be gone, though the data are not."""
    if isinstance(kind, types.BaseTuple):
        items = [
            _disowned(context, builder, builder.extract_value(value, k), item)
            for k, item in enumerate(kind.types)
        ]
        return context.make_tuple(builder, kind, items)
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo, array.parent = (
            context.get_constant_null(types.MemInfoPointer(kind.dtype)),
            context.get_constant_null(types.pyobject),
        )
        return array._getvalue()
    return value


class Entries:
    """Functions of where a named tuple lies, compiled once for each type of tuple.

    Parameters
    ----------
    compiled : callable
        ``compiled(name, cache)`` compiles the function for tuples of the type with that name (see
        `read_stored`), and keeps it on disk if `cache` says so.
    """

    def __init__(self, compiled: Callable[[str, bool], Any]) -> None:
        self._compiled, self._known = compiled, dict[Hashable, tuple[Any, int]]()

    def stored(self, value: Any, key: Hashable) -> Stored:
        """Write a named tuple to memory; tuples with the same key have the same type."""
        entry, length = self._of(value, key)
        words = np.empty(length, np.int64)
        _write(words, value)
        return Stored(entry.address, words, value)

    def entry(self, value: Any, key: Hashable) -> int:
        """Give the address of the function alone, for tuples that lie in memory already."""
        address: int = self._of(value, key)[0].address
        return address

    def _of(self, value: Any, key: Hashable) -> tuple[Any, int]:
        if key not in self._known:
            kind = numba.typeof(value)
            name = f"{kind} of {' '.join(_classes(value))}"
            _TYPES[name] = kind
            self._known[key] = (
                self._compiled(name, can_cache() and _is_ours(value)),
                MOST_WORDS * _leaves(value),
            )
        return self._known[key]


def _classes(value: Any) -> Iterator[str]:
    """Name the classes of a named tuple and of those within it; others than ours may share a name."""
    if isinstance(value, tuple):
        kind = type(value)
        yield f"{kind.__module__}.{kind.__qualname__}" + ("" if _is_ours(value) else f" at {id(kind)}")
        for item in value:
            yield from _classes(item)


def _is_ours(value: Any) -> bool:
    """Whether all tuples are of classes of this package: what numba keeps does not change with others."""
    if not isinstance(value, tuple):
        return True
    package = type(value).__module__.partition(".")[0]
    return package in (__name__.partition(".")[0], "builtins") and all(map(_is_ours, value))


def _leaves(value: Any) -> int:
    return sum(map(_leaves, value)) if isinstance(value, tuple) else 1
