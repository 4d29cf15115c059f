"""What candidates and examples are known by in a store: a hash of their contents.

It is the same in every process. Contents are JSON; dataclasses, named tuples and enumerations count by
their type and what is in them, arrays by a hash of their bytes. What has no contents to be written down (a
model, a function, a text with attributes) is known by its name, where it has one.
"""

import dataclasses
import enum
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gumbelrace.errors import InvalidArgument

LONGEST_NAME = 40


class Item(NamedTuple):
    """A candidate or an example: the key that it is known by, and its contents to be read."""

    key: str
    text: str


def items(values: Iterable[Any], names: Sequence[str] | None, stored: bool) -> list[Item]:
    """Give keys to candidates or examples; equal ones get different keys, since each is one of its own.

    Parameters
    ----------
    values : iterable
        The candidates or examples.
    names : sequence of str, optional
        What those are known by that are not JSON.
    stored : bool
        Whether keys must be the same in another process; if not, numbers will do.

    Examples
    --------
    >>> first, second, third = items(["a", {"b": 1}, "a"], None, stored=True)
    >>> first.key != third.key, second.text
    (True, '{"b": 1}')
    """
    met: dict[str, int] = {}
    found = []
    for number, value in enumerate(values):
        text = _text(value, number, names, stored)
        met[text] = met.get(text, 0) + 1
        found.append(Item(_digest(f"{met[text]} {text}"), text))
    return found


def _text(value: Any, number: int, names: Sequence[str] | None, stored: bool) -> str:
    try:
        return writable(json.dumps(_plain(value), sort_keys=True, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError):
        if names is not None:
            return json.dumps({"name": names[number]}, ensure_ascii=False)
        if not stored:
            return str(number)
    raise InvalidArgument(
        f"a store cannot know {type(value).__name__} number {number} again: give JSON values, or "
        "candidates as a dict by names that you change when they change"
    )


def writable(text: str) -> str:
    """Give a text that can be stored: halves of surrogate pairs are written as JSON writes them."""
    return text.encode(errors="backslashreplace").decode()


def _plain(value: Any) -> Any:
    """Give something that JSON can say; raise TypeError if there may be more to the value."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if type(value) in (list, tuple):
        return [_plain(one) for one in value]
    if type(value) is dict:
        return _plain_dict(value)
    if isinstance(value, np.generic | np.ndarray):
        return _plain_array(value)
    if type(value) is bytes:
        return {"sha256": hashlib.sha256(value).hexdigest()}
    return {type(value).__qualname__: _parts(value)}


def _plain_dict(value: dict[Any, Any]) -> Any:
    """Keep keys apart that JSON would write alike, such as 1 and "1"."""
    if all(type(key) is str for key in value):
        return {key: _plain(one) for key, one in value.items()}
    return {"dict": sorted(([_plain(key), _plain(one)] for key, one in value.items()), key=json.dumps)}


def _plain_array(value: Any) -> Any:
    if type(value) in (np.ndarray, np.memmap) and not value.dtype.hasobject:
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return {"dtype": str(value.dtype), "shape": value.shape, "sha256": content}
    number = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, np.generic | np.ndarray):  # such as one of more than double precision
        raise TypeError
    return _plain(number)


def _parts(value: Any) -> Any:
    """Give what makes up a value of a type that says what it is made of."""
    if isinstance(value, enum.Enum):
        return [value.name, _plain(value.value)]
    if isinstance(value, tuple) and hasattr(value, "_fields") and not hasattr(value, "__dict__"):
        return {name: _plain(one) for name, one in zip(value._fields, value, strict=True)}
    if dataclasses.is_dataclass(value) and not isinstance(
        value, type | str | int | float | list | tuple | dict
    ):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    raise TypeError


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def digest(keys: Iterable[str]) -> str:
    """Give a hash of a set of keys, whatever their order."""
    return _digest(" ".join(sorted(keys)))


def named(candidates: Mapping[str, Any] | Sequence[Any]) -> tuple[str, ...]:
    """Give each candidate a name to be shown: its key in a dict, itself if it is a text, or a number."""
    if isinstance(candidates, Mapping):
        return tuple(_printable(str(name)) for name in candidates)
    short = [_short(value) for value in candidates]
    distinct = len(set(short)) == len(short)
    return tuple(text if text and distinct else str(number) for number, text in enumerate(short))


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else str(value) if isinstance(value, int | float) else ""
    line = " ".join(_printable(text).split())
    return line if len(line) <= LONGEST_NAME else line[: LONGEST_NAME - 1] + "…"


def _printable(text: str) -> str:
    """Leave out what a terminal would obey instead of showing it."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
