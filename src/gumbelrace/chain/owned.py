"""The data that a kernel owns, by name, and a fingerprint of each: of large arrays, of a sample.

Looked at are fields and attributes, tuples, lists and dicts, and what functions have at hand: variables of
the functions around them, defaults, and global ones of their own module. Nothing is called, and what cannot
be seen this way has no fingerprint.
"""

import contextlib
import functools
import hashlib
import inspect
import types
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbelrace.pool import Pool
from gumbelrace.shuffle import Rows, SeparateRows

# Entries of an array that are compared.
SAMPLED = 2**16
# A kernel is not searched further than this: it may hold on to half of a program.
MOST_OBJECTS, DEEPEST = 20_000, 16
NUMBERS = (bool, int, float, complex, np.generic)
# In which order rows are read is drawn anew by every process; types and modules are no data.
NO_DATA = (Pool, Rows, SeparateRows, np.random.Generator, type, types.ModuleType)
# Functions of the library have no data of the user's but in their closures.
LIBRARY = __name__.partition(".")[0]


def fingerprints(kernel: Any) -> dict[str, str]:
    """Give a fingerprint for each array that a kernel owns, and for each number beside one in a tuple.

    Examples
    --------
    >>> import numba, gumbelrace as gr
    >>> @numba.njit
    ... def log_factor(n, theta, y):
    ...     return -0.5 * (y[n] - theta[0]) ** 2
    >>> likelihood = gr.likelihood(log_factor, (np.arange(1000.0),), size=1000)
    >>> list(fingerprints(gr.Metropolis(likelihood, gr.RandomWalk(0.1))))
    ['likelihood.data[0]', 'proposal.scale']
    """
    found: dict[str, str] = {}
    seen: dict[int, Any] = {}  # holds on to the objects, whose numbers are then theirs alone
    _search(kernel, "", found, seen)
    return found


def differing(one: Mapping[str, str], other: Mapping[str, str]) -> str:
    """Name the first data that two kernels do not have in common."""
    return min(name for name in {*one, *other} if one.get(name) != other.get(name))


def _search(value: Any, name: str, found: dict[str, str], seen: dict[int, Any], depth: int = 0) -> None:
    if isinstance(value, NUMBERS):
        if name.endswith("]"):
            found[name] = repr(value)
        return
    if isinstance(value, NO_DATA) or id(value) in seen or len(seen) > MOST_OBJECTS or depth > DEEPEST:
        return
    seen[id(value)] = value
    if hasattr(value, "__array__"):
        found[name] = _digest(np.asarray(value))
        return
    for part, within in _parts(value):
        _search(within, _joined(name, part), found, seen, depth + 1)


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
        yield from ((item.name, getattr(value, item.name)) for item in fields(value) if item.init)
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
    for name, within in getattr(value, "__dict__", {}).items():
        if not isinstance(inspect.getattr_static(type(value), name, None), functools.cached_property):
            yield name, within


def _at_hand(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the variables of a function that are not its own, and its defaults."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # not set yet
            yield name, cell.cell_contents
    defaults = inspect.signature(function).parameters.values()
    yield from ((given.name, given.default) for given in defaults if given.default is not given.empty)
    if function.__module__.partition(".")[0] == LIBRARY:
        return
    for name in sorted(_names(function.__code__) & function.__globals__.keys()):
        within = function.__globals__[name]
        module = getattr(getattr(within, "py_func", within), "__module__", None)
        # A function from elsewhere brings its own module along: a library.
        if module in (None, function.__module__) or not callable(within):
            yield name, within


def _names(code: types.CodeType) -> set[str]:
    """Give the global names that code may use, also that of functions within it."""
    inner = (const for const in code.co_consts if isinstance(const, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))
