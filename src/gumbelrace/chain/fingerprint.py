"""Fingerprints: short texts, the same in every process, that differ where data or functions differ.

Data count by their contents. Of what is large a sample counts, spread over all of it, both ends included;
of sets and dicts, which have no order that would be the same in every process, everything counts. Functions
count by their compiled code, which another version of Python changes. No code of a user's is called.
"""

import array
import dis
import functools
import hashlib
import types
from collections import deque
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Entries of something large that are compared, and of what lies within it, at least.
SAMPLED, LEAST = 2**16, 64
DEEPEST = 16
LONGEST = 200  # texts up to here are their own fingerprints

PLAIN = (bool, int, float, complex, np.generic, str, bytes)
# Other values of which `repr` says everything, and packages that have more of them.
SAID_BY_REPR = (range, slice, np.dtype, type(None), type(...), type(NotImplemented))
PACKAGES_SAID_BY_REPR = frozenset(
    ("datetime", "decimal", "fractions", "ipaddress", "pathlib", "re", "uuid", "zoneinfo")
)
SEQUENCES, SETS, BUFFERS = (list, tuple, deque), (set, frozenset), (array.array, bytearray, memoryview)

STORES_VARIABLE, STORES_ATTRIBUTE = {"STORE_DEREF", "STORE_GLOBAL"}, {"STORE_ATTR"}
CONSTRUCTORS = {"__init__", "__new__", "__post_init__", "__setstate__"}


class NotData(Exception):
    """There is something that has no contents to be compared."""


def is_array(value: Any) -> bool:
    """Whether a value is an array, or gives itself as one (its class is not meant)."""
    return isinstance(value, BUFFERS) or (hasattr(value, "__array__") and not isinstance(value, type))


def is_value(value: Any) -> bool:
    """Whether a value is a number, a text, or another one that a text says all of."""
    package = package_of(type(value))
    if package == "pandas":  # a single value, or row numbers from a start to an end
        return not hasattr(value, "__len__") or hasattr(value, "_range")
    return isinstance(value, (*PLAIN, *SAID_BY_REPR)) or package in PACKAGES_SAID_BY_REPR


def package_of(source: Any) -> str:
    """Name the package from which a class or a function comes."""
    return (source.__module__ or "").partition(".")[0]


def data_fingerprint(value: Any) -> str | None:
    """Give the fingerprint of data, or None if there is anything else among them.

    Examples
    --------
    >>> data_fingerprint(4), data_fingerprint([print])
    ('4', None)
    >>> data_fingerprint({"a", "b"}) == data_fingerprint({"b", "a"}) != data_fingerprint({"a", "c"})
    True
    """
    if is_value(value) and len(text := _text(value)) <= LONGEST:
        return text
    try:
        return _digest(value, SAMPLED, 0).hex()
    except NotData:
        return None


def _text(value: Any) -> str:
    for kind in (bool, int, float, complex, str, bytes):
        if isinstance(value, kind):
            return kind.__repr__(value)  # not that of a user's own kind
    return repr(value.item() if isinstance(value, np.generic) else value)


def _digest(value: Any, most: int, depth: int) -> bytes:
    """Hash data, at most so many entries of them."""
    if is_value(value):
        return _hash(type(value).__name__, [_text(value).encode()])
    if depth > DEEPEST:
        raise NotData
    if is_array(value):
        return _array_digest(np.asarray(value), most, depth)
    if isinstance(value, SETS):
        return _hash("set", sorted(_digest(entry, LEAST, depth + 1) for entry in value))
    if type(value) is dict:
        return _hash("dict", sorted(_digest(entry, LEAST, depth + 1) for entry in value.items()))
    if isinstance(value, SEQUENCES):
        return _sequence_digest(type(value).__name__, value, most, depth)
    raise NotData


def _array_digest(values: NDArray[Any], most: int, depth: int) -> bytes:
    kind = f"{values.dtype.str} {values.shape}"
    if values.size > most:
        values = values[np.unravel_index(spread_indices(values.size, most), values.shape)]
    if values.dtype.hasobject:
        return _sequence_digest(kind, values.ravel().tolist(), most, depth)
    return _hash(kind, [np.ascontiguousarray(values).tobytes()])


def _sequence_digest(kind: str, entries: Sequence[Any], most: int, depth: int) -> bytes:
    some = sampled(entries, most)
    within = max(LEAST, most // max(len(some), 1))
    return _hash(f"{kind} {len(entries)}", (_digest(entries[i], within, depth + 1) for i in some))


def _hash(kind: str, parts: Iterable[bytes]) -> bytes:
    return hashlib.sha256(b"\0".join([kind.encode(), b"".join(parts)])).digest()


def sampled(entries: Sized, most: int) -> Sequence[int]:
    """Give the indices that count of a sequence: all, or a sample of them."""
    size = len(entries)
    return range(size) if size <= most else spread_indices(size, most).tolist()


def spread_indices(size: int, most: int) -> NDArray[np.int64]:
    """Choose indices that are spread over all, the first and the last among them."""
    # Not at equal distances, which might all lie in one column.
    within = np.random.default_rng(0).random(most)
    chosen = ((np.arange(most) + within) * (size / most)).astype(np.int64)
    chosen[[0, -1]] = 0, size - 1
    return chosen


def code_fingerprint(function: types.FunctionType) -> str:
    """Give a fingerprint of what a function does, wherever it stands and whatever its docstring says.

    Examples
    --------
    >>> one, same, other = map(code_fingerprint, (lambda x: x + 1, lambda x: x + 1, lambda x: x + 2))
    >>> one == same != other
    True
    """
    code = function.__code__
    if code.co_consts and code.co_consts[0] == function.__doc__:
        code = code.replace(co_consts=(None, *code.co_consts[1:]))
    return hashlib.sha256(_code_text(code).encode()).hexdigest()


def _code_text(constant: Any) -> str:
    """Write a constant of a function, or its code, as a text that is the same in every process."""
    if isinstance(constant, types.CodeType):
        return f"{constant.co_code.hex()} {constant.co_names} {_code_text(constant.co_consts)}"
    if isinstance(constant, tuple):
        return f"({', '.join(map(_code_text, constant))})"
    if isinstance(constant, frozenset):  # its order differs between processes
        return f"{{{', '.join(sorted(map(_code_text, constant)))}}}"
    return repr(constant)


def nested_code(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from nested_code(constant)


def names_stored(code: types.CodeType, operations: set[str]) -> set[str]:
    """Give the names that code sets by some operations, not counting its own variables."""
    steps = (step for part in nested_code(code) for step in dis.get_instructions(part))
    return {step.argval for step in steps if step.opname in operations}


@functools.lru_cache(maxsize=256)
def attributes_set_later(kind: type) -> set[str]:
    """Give the attributes that methods of a class set after an object was made."""
    members = ((name, member) for base in kind.__mro__ for name, member in vars(base).items())
    methods = (m for name, m in members if isinstance(m, types.FunctionType) and name not in CONSTRUCTORS)
    return set().union(*(names_stored(method.__code__, STORES_ATTRIBUTE) for method in methods))
