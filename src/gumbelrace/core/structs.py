"""Named tuples behind an address: compiled code writes them to memory, and other compiled code reads them.

What is called by its address (see `jit`) takes one word. A named tuple of arrays, numbers and other named
tuples is stored as numba holds it, so that to pass it on costs no more than to call a compiled function.
"""

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from gumbelrace.core.jit import address_of_array, kernel

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
            _TYPES[str(kind)] = kind
            self._known[key] = self._compiled(str(kind), _is_ours(value)), MOST_WORDS * _leaves(value)
        return self._known[key]


def _is_ours(value: Any) -> bool:
    """Whether all tuples are of classes of this package: what numba keeps does not change with others."""
    if not isinstance(value, tuple):
        return True
    package = type(value).__module__.partition(".")[0]
    return package in (__name__.partition(".")[0], "builtins") and all(map(_is_ours, value))


def _leaves(value: Any) -> int:
    return sum(map(_leaves, value)) if isinstance(value, tuple) else 1
