"""A numba function built anew, with all numba functions that it calls: to be run where indices are checked.

Compiled code checks no index. Plain Python checks all, and nothing need be compiled for it, but it raises
where compiled code goes on (``math.log(0.0)``) and cannot run all of that; numba checks indices, too, in
what it compiles for it.
"""

import functools
import types as python
from collections.abc import Callable, Iterator
from typing import Any

import numba
from numba.core.dispatcher import Dispatcher

# What numba knows by the modules it is from.
KNOWN_TO_NUMBA = {"numpy", "math", "cmath", "operator", "builtins", "numba"}
# Options that change what a function computes.
ARITHMETIC = ("error_model", "fastmath")


def interpreted(function: Any) -> Any:
    """Give a numba function as plain Python."""
    return _Rebuilding(lambda plain, options: plain).function(function)


@functools.lru_cache(maxsize=256)
def bounds_checked(function: Any) -> Any:
    """Give a numba function that raises IndexError at an index that is too large."""
    return _Rebuilding(_with_bounds_checked).function(function)


def _with_bounds_checked(plain: Any, options: dict[str, Any]) -> Any:
    kept = {name: options[name] for name in ARITHMETIC if name in options}
    return numba.njit(boundscheck=True, **kept)(plain)


class _Rebuilding:
    """Makes functions anew by `finish`, which is given their plain Python and numba's options for them."""

    def __init__(self, finish: Callable[[Any, dict[str, Any]], Any]) -> None:
        self._finish, self._made = finish, dict[Any, Any]()

    def function(self, dispatcher: Any) -> Any:
        """Make a function and what it calls, once: it may call itself."""
        if dispatcher not in self._made:
            given = dispatcher.py_func
            around, cells = dict(given.__globals__), [python.CellType() for _ in given.__closure__ or ()]
            plain = python.FunctionType(
                given.__code__, around, given.__name__, given.__defaults__, tuple(cells)
            )
            plain.__kwdefaults__ = given.__kwdefaults__
            self._made[dispatcher] = self._finish(plain, dispatcher.targetoptions)
            around.update(
                {name: self.item(around[name]) for name in _names(plain.__code__) if name in around}
            )
            for cell, original in zip(cells, given.__closure__ or (), strict=True):
                cell.cell_contents = self.item(original.cell_contents)
        return self._made[dispatcher]

    def item(self, item: Any) -> Any:
        """Give what stands for something that a function names."""
        if isinstance(item, Dispatcher):
            return self.function(item)
        if isinstance(item, python.ModuleType) and item.__name__.partition(".")[0] not in KNOWN_TO_NUMBA:
            return _Module(item, self)
        return item


class _Module(python.ModuleType):
    """A module whose numba functions are built anew."""

    def __init__(self, original: python.ModuleType, rebuilding: _Rebuilding) -> None:
        super().__init__(original.__name__)
        self._original, self._rebuilding = original, rebuilding

    def __getattr__(self, name: str) -> Any:
        return self._rebuilding.item(getattr(self._original, name))


def _names(code: python.CodeType) -> Iterator[str]:
    """List what a function names, also in functions within it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, python.CodeType):
            yield from _names(constant)
