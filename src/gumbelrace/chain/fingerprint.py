"""Fingerprints of data by their contents: arrays, texts, numbers, and what contains nothing else.

Of what is large a sample counts, spread over all of it, both ends included; of sets and dicts, which have
no order that would be the same in every process, everything counts. No code of a user's is called.
"""

import array
import hashlib
from collections import deque
from collections.abc import Sequence, Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Entries of something large that are compared, and of what lies within it, at least.
SAMPLED, LEAST = 2**16, 64
DEEPEST = 16
LONGEST = 200  # texts up to here are their own fingerprints

PLAIN = (bool, int, float, complex, np.generic, str, bytes)
# Values that say all of themselves in a text, and the modules of other such values.
TOLD = (range, slice, np.dtype, type(None), type(...), type(NotImplemented))
TELLING = {"datetime", "decimal", "fractions", "ipaddress", "pathlib", "re", "uuid", "zoneinfo"}
ROWS, SETS, BUFFERS = (list, tuple, deque), (set, frozenset), (array.array, bytearray, memoryview)


class OtherThanData(Exception):
    """There is something that has no contents to be compared."""


def is_array(value: Any) -> bool:
    """Whether a value is an array, or gives itself as one (its class is not meant)."""
    return isinstance(value, BUFFERS) or (hasattr(value, "__array__") and not isinstance(value, type))


def is_value(value: Any) -> bool:
    """Whether a value is a number, a text, or another one that a text tells."""
    return isinstance(value, (*PLAIN, *TOLD)) or origin(value) in TELLING or _is_told_by_pandas(value)


def origin(value: Any) -> str:
    """Name the package from which a value's class comes."""
    return (type(value).__module__ or "").partition(".")[0]


def _is_told_by_pandas(value: Any) -> bool:
    """Whether a value is a single one of pandas, or numbers rows from a start to an end."""
    return origin(value) == "pandas" and (not hasattr(value, "__len__") or hasattr(value, "_range"))


def content_print(value: Any) -> str | None:
    """Give the fingerprint of data, or None if there is anything else among them.

    Examples
    --------
    >>> content_print(4), content_print([print])
    ('4', None)
    >>> content_print({"a", "b"}) == content_print({"b", "a"}) != content_print({"a", "c"})
    True
    """
    if is_value(value):
        text = _told(value)
        return text if len(text) <= LONGEST else _hashed(text.encode())
    try:
        return _hashed(_written(value, SAMPLED, 0))
    except OtherThanData:
        return None


def _told(value: Any) -> str:
    for kind in (bool, int, float, complex, str, bytes):
        if isinstance(value, kind):
            return kind.__repr__(value)  # not that of a user's own kind
    return repr(value.item() if isinstance(value, np.generic) else value)


def _hashed(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _written(value: Any, most: int, depth: int) -> bytes:
    """Write data as bytes that are the same in every process, at most so many entries of them."""
    if is_value(value):
        return f"{type(value).__name__} {_told(value)}".encode()
    if depth > DEEPEST:
        raise OtherThanData
    if is_array(value):
        return _written_array(np.asarray(value), most, depth)
    if isinstance(value, SETS):
        return _joined("set", sorted(_written(entry, LEAST, depth + 1) for entry in value))
    if type(value) is dict:
        return _joined("dict", sorted(_written(entry, LEAST, depth + 1) for entry in value.items()))
    if isinstance(value, ROWS):
        return _written_rows(type(value).__name__, value, most, depth)
    raise OtherThanData


def _written_array(values: NDArray[Any], most: int, depth: int) -> bytes:
    kind = f"{values.dtype.str} {values.shape}"
    if values.size > most:
        values = values[np.unravel_index(places(values.size, most), values.shape)]
    if values.dtype.hasobject:
        return _written_rows(kind, values.ravel().tolist(), most, depth)
    return _joined(kind, [np.ascontiguousarray(values).tobytes()])


def _written_rows(kind: str, rows: Sequence[Any], most: int, depth: int) -> bytes:
    some = sampled(rows, most)
    within = max(LEAST, most // max(len(some), 1))
    return _joined(f"{kind} {len(rows)}", [_written(rows[i], within, depth + 1) for i in some])


def _joined(kind: str, parts: Sequence[bytes]) -> bytes:
    # A digest of each, so that no entry can pass for two.
    return b"".join([kind.encode(), *(hashlib.sha256(part).digest() for part in parts)])


def sampled(entries: Sized, most: int) -> Sequence[int]:
    """Give the places that count of a sequence: all, or a sample of them."""
    size = len(entries)
    return range(size) if size <= most else [int(i) for i in places(size, most)]


def places(size: int, most: int) -> NDArray[np.int64]:
    """Choose places that are spread over all, the first and the last among them."""
    # Not at equal distances, which might all lie in one column.
    within = np.random.default_rng(0).random(most)
    chosen = ((np.arange(most) + within) * (size / most)).astype(np.int64)
    chosen[[0, -1]] = 0, size - 1
    return chosen
