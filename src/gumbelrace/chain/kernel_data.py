"""What a kernel owns, by name, and a fingerprint of each part: of large ones, of a sample.

Looked at are fields and attributes, tuples, lists and dicts, and what functions have at hand: variables of
the functions around them, defaults, and global ones of their own module. What counts are data by their
contents, the compiled code of functions (which another version of Python changes; of the library's own
only the name) and the classes of objects, with the data that classes of the user's own have. A number that
a function or a method sets anew counts something, and is left out. No code of a user's is called. What
cannot be seen this way is named.
"""

import contextlib
import functools
import inspect
import io
import logging
import types
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from gumbelrace.chain.bytecode import SETS_VARIABLE, code_print, codes, set_by, set_by_methods
from gumbelrace.chain.contents import DEEPEST, PLAIN, ROWS, SETS, content_print, is_array, is_value, sampled
from gumbelrace.chain.foreign import (
    LIBRARY,
    class_data,
    columns_of,
    is_frame,
    is_sparse,
    is_users,
    parts_of_sparse,
    slots_of,
)
from gumbelrace.core.pool import Pool
from gumbelrace.core.shuffle import SeparateRows
from gumbelrace.errors import UnseenData

# A kernel is not searched further than this: it may hold on to half of a program.
MOST_OBJECTS = 20_000
# Containers of more than FEW entries have one fingerprint if all is data; else MANY entries are looked at.
FEW, MANY = 64, 4096
CODE = "code "  # begins the fingerprint of a function
# In which order rows are read is drawn anew by every process; modules are no data.
NO_DATA = (
    Pool,
    SeparateRows,
    np.random.Generator,
    np.random.RandomState,
    np.random.BitGenerator,
    logging.Logger,
    types.ModuleType,
)


def fingerprints(kernel: Any) -> dict[str, str]:
    """Give a fingerprint for each part of what a kernel owns.

    Examples
    --------
    >>> import numba, gumbelrace as gr
    >>> @numba.njit
    ... def log_factor(n, theta, y):
    ...     return -0.5 * (y[n] - theta[0]) ** 2
    >>> likelihood = gr.likelihood(log_factor, (np.arange(1000.0),), size=1000)
    >>> found = fingerprints(gr.Metropolis(likelihood, gr.RandomWalk(0.1), method=gr.Race(first=8)))
    >>> [name for name in found if name.startswith("likelihood")]
    ['likelihood', 'likelihood.log_factor', 'likelihood.data[0]', 'likelihood.rows', 'likelihood.rows.size']
    >>> found["method"], found["method.first"]
    ('Race', '8')
    """
    return Search(kernel).found


class Search:
    """What was found of what a kernel owns.

    Attributes
    ----------
    found : dict
        Fingerprints, by name.
    unseen : dict
        What is there and cannot be compared, by name.
    """

    def __init__(self, kernel: Any) -> None:
        self.found: dict[str, str] = {}
        self.unseen: dict[str, str] = {}
        self._seen: dict[int, Any] = {}  # holds on to the objects, whose numbers are then theirs alone
        self._look(kernel, "", 0)

    def warn(self) -> None:
        """Warn of what cannot be compared."""
        if self.unseen:
            name, what = next(iter(self.unseen.items()))
            others = f" and {len(self.unseen) - 1} more" if len(self.unseen) > 1 else ""
            warnings.warn(
                f"the checkpoint cannot tell whether {name} ({what}){others} is the same when the run goes "
                "on; give tag=, a text that names the data",
                UnseenData,
                stacklevel=4,  # whoever called `run`
            )

    def _look(self, value: Any, name: str, depth: int) -> None:
        if value is None or isinstance(value, NO_DATA):
            return
        itself, whole = _itself(value)
        if itself is not None and name:
            self.found[name] = itself
        if whole or id(value) in self._seen:
            return
        if len(self._seen) > MOST_OBJECTS or depth > DEEPEST:
            self.unseen[name] = "part of too much to be searched"
            return
        self._seen[id(value)] = value
        if _is_opaque(value):
            self.unseen[name] = f"a {type(value).__name__}"
        for part, within in _parts(value):
            self._look(within, _joined(name, part), depth + 1)


def differing(one: Mapping[str, str], other: Mapping[str, str]) -> str:
    """Name the first data that two kernels do not have in common."""
    return min(name for name in {*one, *other} if one.get(name) != other.get(name))


def _itself(value: Any) -> tuple[str | None, bool]:
    """Give the fingerprint of an object, if it has one, and whether that is one of its parts as well."""
    if is_value(value):
        return content_print(value), True
    if (is_array(value) and not is_frame(value)) or isinstance(value, SETS) or _is_long(value):
        contents = content_print(value)
        return contents, contents is not None
    if isinstance(value, (Mapping, *ROWS, functools.partial, types.MethodType, type)):
        return None, False
    function = getattr(value, "py_func", value)
    if not isinstance(function, types.FunctionType):
        # A function that is not Python's has a name of its own.
        return str(getattr(value, "__name__", type(value).__qualname__)), False
    return function.__qualname__ if _is_ours(function) else CODE + code_print(function), False


def _is_long(value: Any) -> bool:
    return isinstance(value, (*ROWS, dict)) and not hasattr(value, "_fields") and len(value) > FEW


def _is_opaque(value: Any) -> bool:
    """Whether there is more to an object than can be seen."""
    if isinstance(value, (*SETS, io.IOBase)):
        return True
    seen = hasattr(value, "__dict__") or callable(value) or is_array(value)
    known = isinstance(value, (Mapping, *ROWS)) or next(slots_of(value), None) is not None
    made_by_python = type(value).__module__ in ("_thread", "weakref") or is_users(type(value))
    return not (seen or known or made_by_python or type(value) is object)


def _is_ours(function: Any) -> bool:
    # Functions of the library have no data of the user's but in their closures.
    return (function.__module__ or "").partition(".")[0] == LIBRARY


def _joined(name: str, part: str) -> str:
    return name + part if part.startswith("[") or not (name and part) else f"{name}.{part}"


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what an object is made of, by name."""
    if _says_what_it_owns(value):
        yield from value.owned.items()
    elif isinstance(value, Mapping):
        yield from _some([(f"[{key!r}]", within) for key, within in value.items()])
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        yield from zip(value._fields, value, strict=True)
    elif isinstance(value, ROWS):
        yield from ((f"[{place}]", value[place]) for place in sampled(value, MANY))
    elif is_frame(value):
        yield from columns_of(value)
    elif is_array(value):
        entries = np.asarray(value).ravel()
        yield from ((f"[{place}]", entries[place]) for place in sampled(entries, MANY))
    elif is_sparse(value):
        yield from parts_of_sparse(value)
    elif isinstance(value, type):
        yield from _lasting(class_data(value), set_by_methods(value))
    elif is_dataclass(value):
        given = {item.name: getattr(value, item.name) for item in fields(value) if item.init}
        yield from _lasting(class_data(type(value)) | given, _counting(value))
    elif isinstance(value, functools.partial):
        yield from (("", value.func), ("", value.args), ("", value.keywords))
    elif isinstance(value, types.MethodType):
        yield from (("", value.__self__), ("", value.__func__))
    elif isinstance(function := getattr(value, "py_func", value), types.FunctionType):
        yield from _at_hand(function)
    else:
        yield from _attributes(value)


def _says_what_it_owns(value: Any) -> bool:
    owned = inspect.getattr_static(type(value), "owned", None)
    return isinstance(owned, property) and _is_ours(owned.fget)


def _some(entries: list[Any]) -> Iterator[Any]:
    yield from (entries[place] for place in sampled(entries, MANY))


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of an object that it was given, not those that it keeps for later."""
    given = class_data(type(value)) | {
        name: within
        for name, within in (*slots_of(value), *getattr(value, "__dict__", {}).items())
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
