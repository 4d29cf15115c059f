"""The data of a kernel: the parts it holds, by name, with a fingerprint of each.

Looked at are fields and attributes, tuples, lists and dicts, and the variables that functions use: those of
the functions around them, defaults, and global ones of their own module. What counts are data by their
contents, the compiled code of functions (of the library's own only the name) and the classes of objects,
with the data that classes of the user's own have. A number that a function or a method sets anew counts
something, and is left out. No code of a user's is called. What cannot be seen this way is named.
"""

import contextlib
import functools
import inspect
import io
import logging
import sys
import types
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from gumbelrace.chain.fingerprint import (
    DEEPEST,
    PLAIN,
    SEQUENCES,
    SETS,
    STORES_VARIABLE,
    attributes_set_later,
    code_fingerprint,
    data_fingerprint,
    is_array,
    is_value,
    names_stored,
    nested_code,
    package_of,
    sampled,
)
from gumbelrace.core.pool import Pool
from gumbelrace.core.rows import IndependentRows
from gumbelrace.errors import UnseenData

LIBRARY = __name__.partition(".")[0]
INSTALLED = ("site-packages", "dist-packages")
# A kernel is not searched further than this: it may hold on to half of a program.
MOST_OBJECTS = 20_000
# Containers of more than FEW entries have one fingerprint if all is data; else MANY entries are looked at.
FEW, MANY = 64, 4096
CODE = "code "  # begins the fingerprint of a function
# In which order rows are read is drawn anew by every process; modules are no data.
NO_DATA = (
    Pool,
    IndependentRows,
    np.random.Generator,
    np.random.RandomState,
    np.random.BitGenerator,
    logging.Logger,
    types.ModuleType,
)


def fingerprints(kernel: Any) -> dict[str, str]:
    """Give a fingerprint for each part of the data of a kernel.

    Examples
    --------
    >>> import numba, gumbelrace as gr
    >>> @numba.njit
    ... def log_factor(n, theta, y):
    ...     return -0.5 * (y[n] - theta[0]) ** 2
    >>> likelihood = gr.likelihood(log_factor, (np.arange(1000.0),), size=1000)
    >>> found = fingerprints(gr.Metropolis(likelihood, gr.kernels.RandomWalk(0.1), method=gr.Race(first=8)))
    >>> [name for name in found if name.startswith("likelihood")]
    ['likelihood', 'likelihood.log_factor', 'likelihood.data[0]', 'likelihood.rows', 'likelihood.rows.size']
    >>> found["method"], found["method.first"]
    ('Race', '8')
    """
    return Search(kernel).found


class Search:
    """The data of a kernel, as far as they can be seen.

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
        self._search(kernel, "", 0)

    def warn(self) -> None:
        if self.unseen:
            name, what = next(iter(self.unseen.items()))
            others = f" and {len(self.unseen) - 1} more" if len(self.unseen) > 1 else ""
            warnings.warn(
                f"the checkpoint cannot tell whether {name} ({what}){others} is the same when the run goes "
                "on; give tag=, a text that names the data",
                UnseenData,
                stacklevel=4,  # whoever called `run`
            )

    def _search(self, value: Any, name: str, depth: int) -> None:
        if value is None or isinstance(value, NO_DATA):
            return
        fingerprint, says_all = _fingerprint(value)
        if fingerprint is not None and name:
            self.found[name] = fingerprint
        if says_all or id(value) in self._seen:
            return
        if len(self._seen) > MOST_OBJECTS or depth > DEEPEST:
            self.unseen[name] = "part of too much to be searched"
            return
        self._seen[id(value)] = value
        if _is_opaque(value):
            self.unseen[name] = f"a {type(value).__name__}"
        for part, within in _named_parts(value):
            self._search(within, _joined(name, part), depth + 1)


def differing(one: Mapping[str, str], other: Mapping[str, str]) -> str:
    """Name the first data that two kernels do not have in common."""
    return min(name for name in {*one, *other} if one.get(name) != other.get(name))


def _fingerprint(value: Any) -> tuple[str | None, bool]:
    """Give the fingerprint of an object, if it has one, and whether it says all of the parts as well."""
    if is_value(value):
        return data_fingerprint(value), True
    if (is_array(value) and not _is_frame(value)) or isinstance(value, SETS) or _is_long(value):
        contents = data_fingerprint(value)
        return contents, contents is not None
    if isinstance(value, (Mapping, *SEQUENCES, functools.partial, types.MethodType, type)):
        return None, False
    function = getattr(value, "py_func", value)
    if not isinstance(function, types.FunctionType):
        # A function that is not Python's has a name of its own.
        return str(getattr(value, "__name__", type(value).__qualname__)), False
    return function.__qualname__ if _is_ours(function) else CODE + code_fingerprint(function), False


def _is_long(value: Any) -> bool:
    return isinstance(value, (*SEQUENCES, dict)) and not hasattr(value, "_fields") and len(value) > FEW


def _is_opaque(value: Any) -> bool:
    """Whether there is more to an object than can be seen."""
    if isinstance(value, (*SETS, io.IOBase)):
        return True
    seen = hasattr(value, "__dict__") or callable(value) or is_array(value)
    known = isinstance(value, (Mapping, *SEQUENCES)) or next(_slots(value), None) is not None
    made_by_python = type(value).__module__ in ("_thread", "weakref") or _is_users_class(type(value))
    return not (seen or known or made_by_python or type(value) is object)


def _is_ours(function: Any) -> bool:
    # Functions of the library have no data of the user's but in their closures.
    return package_of(function) == LIBRARY


def _joined(name: str, part: str) -> str:
    return name + part if part.startswith("[") or not (name and part) else f"{name}.{part}"


def _named_parts(value: Any) -> Iterator[tuple[str, Any]]:
    if _lists_its_data(value):
        yield from value.identity.items()
    elif isinstance(value, Mapping):
        keys = list(value)
        yield from ((f"[{keys[i]!r}]", value[keys[i]]) for i in sampled(keys, MANY))
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        yield from zip(value._fields, value, strict=True)
    elif isinstance(value, SEQUENCES):
        yield from ((f"[{i}]", value[i]) for i in sampled(value, MANY))
    elif _is_frame(value):
        yield from _frame_columns(value)
    elif is_array(value):
        entries = np.asarray(value).ravel()
        yield from ((f"[{i}]", entries[i]) for i in sampled(entries, MANY))
    elif _is_sparse(value):
        yield from _sparse_parts(value)
    elif isinstance(value, type):
        yield from _without_counters(_class_data(value), attributes_set_later(value))
    elif isinstance(value, functools.partial):
        yield from (("", value.func), ("", value.args), ("", value.keywords))
    elif isinstance(value, types.MethodType):
        yield from (("", value.__self__), ("", value.__func__))
    elif isinstance(function := getattr(value, "py_func", value), types.FunctionType):
        yield from _variables_used(function)
    else:
        yield from _attributes(value)


def _lists_its_data(value: Any) -> bool:
    listed = inspect.getattr_static(type(value), "identity", None)
    return isinstance(listed, property) and _is_ours(listed.fget)


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of an object that it was given, not those that it keeps for later."""
    kind: Any = type(value)
    if is_dataclass(value):
        given = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    else:
        given = {
            name: within
            for name, within in (*_slots(value), *getattr(value, "__dict__", {}).items())
            if not isinstance(inspect.getattr_static(kind, name, None), functools.cached_property)
        }
    data = _class_data(kind) | given
    yield from _without_counters(data, attributes_set_later(kind) if data else set())


def _without_counters(variables: Mapping[str, Any], counting: set[str]) -> Iterator[tuple[str, Any]]:
    """Yield variables but for the numbers and texts among them whose names are set again and again."""
    for name, within in variables.items():
        if not (name in counting and isinstance(within, PLAIN)):
            yield name, within


def _variables_used(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the variables of a function that are not its own, and its defaults."""
    variables = dict((*_global_variables(function), *_enclosing_variables(function)))
    yield from _without_counters(variables, names_stored(function.__code__, STORES_VARIABLE))
    parameters = inspect.signature(function).parameters.values()
    yield from ((one.name, one.default) for one in parameters if one.default is not one.empty)


def _enclosing_variables(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # not set yet
            yield name, cell.cell_contents


def _global_variables(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    if _is_ours(function):
        return
    used = {name for code in nested_code(function.__code__) for name in code.co_names}
    for name in sorted(used & function.__globals__.keys()):
        within = function.__globals__[name]
        module = getattr(getattr(within, "py_func", within), "__module__", None)
        # A function from elsewhere brings its own module along: a library.
        if not name.startswith("__") and (module in (None, function.__module__) or not callable(within)):
            yield name, within


def _is_frame(value: Any) -> bool:
    return package_of(type(value)) == "pandas" and hasattr(value, "iloc")


def _frame_columns(frame: Any) -> Iterator[tuple[str, Any]]:
    """Yield the columns of a table of pandas, or of a series, each as an array, and what names the rows."""
    yield "index", frame.index
    if frame.ndim == 1:
        yield "values", frame.to_numpy()
        return
    yield "columns", frame.columns
    for i, label in enumerate(frame.columns):
        name = f"[{label!r}]" if frame.columns.is_unique else f"[{i}]"
        yield name, frame.iloc[:, i].to_numpy()


def _is_sparse(value: Any) -> bool:
    return package_of(type(value)) == "scipy" and hasattr(value, "tocsr")


def _sparse_parts(matrix: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a sparse matrix says, in whatever order it has it, and nothing that it keeps for later."""
    rows = matrix.tocsr(copy=True)
    rows.sum_duplicates()  # sorts them, too
    yield "shape", rows.shape
    yield "data", rows.data
    yield "indices", rows.indices.astype(np.int64)
    yield "indptr", rows.indptr.astype(np.int64)


def _slots(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that lie in slots, but for those of Python's own classes, which keep caches."""
    for base in type(value).__mro__:
        if "__slots__" in vars(base) and not _is_of_python(base):
            for name, slot in vars(base).items():
                with contextlib.suppress(AttributeError):  # not set yet
                    if isinstance(slot, types.MemberDescriptorType):
                        yield name, slot.__get__(value)


def _is_users_class(kind: type) -> bool:
    """Whether a class is of the user's own code: neither Python's nor ours nor of an installed package."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    installed = any(folder in file for folder in INSTALLED)
    return not (installed or package_of(kind) == LIBRARY or _is_of_python(kind) or issubclass(kind, Enum))


def _class_data(kind: type) -> dict[str, Any]:
    """Give the data that a class of the user's own has, inherited ones too."""
    bases = [base for base in reversed(kind.__mro__) if _is_users_class(base)]
    everything = {name: within for base in bases for name, within in vars(base).items()}
    return {name: within for name, within in everything.items() if not _is_no_data(name, within)}


def _is_no_data(name: str, within: Any) -> bool:
    is_data = is_value(within) or is_array(within) or isinstance(within, (dict, *SEQUENCES, *SETS))
    return name.startswith(("__", "_abc_")) or not is_data


def _is_of_python(kind: type) -> bool:
    return package_of(kind) in sys.stdlib_module_names  # a user's script is not: it is __main__
