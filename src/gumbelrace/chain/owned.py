"""What a kernel owns, by name, and a fingerprint of each part: of large arrays, of a sample.

Looked at are fields and attributes, tuples, lists and dicts, and what functions have at hand: variables of
the functions around them, defaults, and global ones of their own module. What counts are arrays, numbers,
short texts, the compiled code of functions (which another version of Python changes; of the library's own
only the name) and the classes of objects. A number that a function or a method sets anew counts something,
and is left out. Nothing is called, and what cannot be seen this way has no fingerprint.
"""

import contextlib
import functools
import hashlib
import inspect
import logging
import types
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbelrace.chain.bytecode import SETS_VARIABLE, code_print, codes, set_by, set_by_methods
from gumbelrace.pool import Pool
from gumbelrace.shuffle import SeparateRows

# Entries of an array that are compared.
SAMPLED = 2**16
# A kernel is not searched further than this: it may hold on to half of a program.
MOST_OBJECTS, DEEPEST = 20_000, 16
PLAIN = (bool, int, float, complex, np.generic, str, bytes)
LONGEST = 200  # of texts: longer ones are no options
CODE = "code "  # begins the fingerprint of a function
# In which order rows are read is drawn anew by every process; types and modules are no data.
NO_DATA = (Pool, SeparateRows, np.random.Generator, logging.Logger, type, types.ModuleType)
# Functions of the library have no data of the user's but in their closures.
LIBRARY = __name__.partition(".")[0]


def fingerprints(kernel: Any) -> dict[str, str]:
    """Give a fingerprint for each part of what a kernel owns.

    Examples
    --------
    >>> import numba, gumbelrace as gr
    >>> @numba.njit
    ... def log_factor(n, theta, y):
    ...     return -0.5 * (y[n] - theta[0]) ** 2
    >>> likelihood = gr.likelihood(log_factor, (np.arange(1000.0),), size=1000)
    >>> found = fingerprints(gr.Metropolis(likelihood, gr.RandomWalk(0.1), solver=gr.Race(first=8)))
    >>> [name for name in found if name.startswith("likelihood")]
    ['likelihood', 'likelihood.log_factor', 'likelihood.data[0]', 'likelihood.rows', 'likelihood.rows.size']
    >>> found["solver"], found["solver.first"]
    ('Race', '8')
    """
    found: dict[str, str] = {}
    seen: dict[int, Any] = {}  # holds on to the objects, whose numbers are then theirs alone
    _search(kernel, "", found, seen)
    return found


def differing(one: Mapping[str, str], other: Mapping[str, str]) -> str:
    """Name the first data that two kernels do not have in common."""
    return min(name for name in {*one, *other} if one.get(name) != other.get(name))


def _search(value: Any, name: str, found: dict[str, str], seen: dict[int, Any], depth: int = 0) -> None:
    if value is None or isinstance(value, NO_DATA):
        return
    itself = _itself(value)
    if itself is not None and name:
        found[name] = itself
    if _is_leaf(value) or id(value) in seen or len(seen) > MOST_OBJECTS or depth > DEEPEST:
        return
    seen[id(value)] = value
    for part, within in _parts(value):
        _search(within, _joined(name, part), found, seen, depth + 1)


def _is_leaf(value: Any) -> bool:
    return isinstance(value, PLAIN) or hasattr(value, "__array__")


def _itself(value: Any) -> str | None:
    """Give the fingerprint of an object without its parts, if that says anything."""
    if isinstance(value, (str, bytes)):
        return repr(value) if len(value) <= LONGEST else None
    if isinstance(value, PLAIN):
        return repr(value.item() if isinstance(value, np.generic) else value)
    if hasattr(value, "__array__"):
        return _digest(np.asarray(value))
    if isinstance(value, (Mapping, tuple, list, functools.partial, types.MethodType)):
        return None
    function = getattr(value, "py_func", value)
    if not isinstance(function, types.FunctionType):
        # A function that is not Python's has a name of its own.
        return str(getattr(value, "__name__", type(value).__qualname__))
    return function.__qualname__ if _is_ours(function) else CODE + code_print(function)


def _is_ours(function: types.FunctionType) -> bool:
    return (function.__module__ or "").partition(".")[0] == LIBRARY


def _joined(name: str, part: str) -> str:
    return name + part if part.startswith("[") or not (name and part) else f"{name}.{part}"


def _digest(array: NDArray[Any]) -> str:
    """Give the fingerprint of an array's form, and of a sample of its entries that is spread over all."""
    digest = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
    if array.dtype.hasobject:
        return digest.hexdigest()
    if array.size > SAMPLED:
        # Not at equal distances, which might all lie in one column.
        within = np.random.default_rng(0).random(SAMPLED)
        flat = ((np.arange(SAMPLED) + within) * (array.size / SAMPLED)).astype(np.int64)
        flat[[0, -1]] = 0, array.size - 1
        array = array[np.unravel_index(flat, array.shape)]
    digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what an object is made of, by name."""
    if hasattr(type(value), "owned"):
        yield from value.owned.items()
    elif isinstance(value, Mapping):
        yield from ((f"[{key!r}]", within) for key, within in value.items())
    elif hasattr(value, "_fields"):
        yield from zip(value._fields, value, strict=True)
    elif isinstance(value, (tuple, list)):
        yield from ((f"[{place}]", within) for place, within in enumerate(value))
    elif is_dataclass(value):
        given = {item.name: getattr(value, item.name) for item in fields(value) if item.init}
        yield from _lasting(given, _counting(value))
    elif isinstance(value, functools.partial):
        yield from (("", value.func), ("", value.args), ("", value.keywords))
    elif isinstance(value, types.MethodType):
        yield from (("", value.__self__), ("", value.__func__))
    elif isinstance(function := getattr(value, "py_func", value), types.FunctionType):
        yield from _at_hand(function)
    else:
        yield from _attributes(value)


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of an object that it was given, not those that it keeps for later."""
    given = {
        name: within
        for name, within in getattr(value, "__dict__", {}).items()
        if not isinstance(inspect.getattr_static(type(value), name, None), functools.cached_property)
    }
    yield from _lasting(given, _counting(value) if given else set())


def _counting(value: Any) -> set[str]:
    """Give the attributes that an object sets while it is used."""
    kind: Any = type(value)
    return set_by_methods(kind)


def _lasting(variables: Mapping[str, Any], counting: set[str]) -> Iterator[tuple[str, Any]]:
    """Yield variables but for the numbers and texts among them whose names are set again and again."""
    for name, within in variables.items():
        if not (name in counting and isinstance(within, PLAIN)):
            yield name, within


def _at_hand(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the variables of a function that are not its own, and its defaults."""
    counting = set_by(function.__code__, SETS_VARIABLE)
    yield from _lasting(dict((*_global(function), *_around(function))), counting)
    defaults = inspect.signature(function).parameters.values()
    yield from ((given.name, given.default) for given in defaults if given.default is not given.empty)


def _around(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the variables of the functions around a function that it uses."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # not set yet
            yield name, cell.cell_contents


def _global(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the global variables that a function uses, if it is not one of the library's."""
    if _is_ours(function):
        return
    used = {name for code in codes(function.__code__) for name in code.co_names}
    for name in sorted(used & function.__globals__.keys()):
        within = function.__globals__[name]
        module = getattr(getattr(within, "py_func", within), "__module__", None)
        # A function from elsewhere brings its own module along: a library.
        if not name.startswith("__") and (module in (None, function.__module__) or not callable(within)):
            yield name, within
