"""Files of JSON lines: a value a line, of candidates and of examples."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from gumbelrace.errors import InvalidFile

NAME = "name"
BYTE_ORDER = b"\xef\xbb\xbf"  # with which some editors begin a file


def read_candidates(path: Path) -> Mapping[str, Any] | Sequence[Any]:
    """Read candidates; by name, if they are objects that all have one."""
    lines = _values(path)
    if not all(isinstance(value, dict) and isinstance(value.get(NAME), str) for _, value in lines):
        return [value for _, value in lines]
    found: dict[str, Any] = {}
    for number, value in lines:
        if value[NAME] in found:
            _refuse(path, number, f"the name {value[NAME]!r} was given before; give it another")
        found[value[NAME]] = value
    return found


def read_examples(path: Path) -> list[Any]:
    """Read examples."""
    return [value for _, value in _values(path)]


def _values(path: Path) -> list[tuple[int, Any]]:
    """Give the number and the value of each line that is not empty."""
    lines = enumerate(path.read_bytes().removeprefix(BYTE_ORDER).split(b"\n"), 1)
    found = [(number, _value(path, number, line)) for number, line in lines if line.strip()]
    if not found:
        raise InvalidFile(f"{path} is empty; it needs a JSON value in each line")
    return found


def _value(path: Path, number: int, line: bytes) -> Any:
    try:
        value = json.loads(line.decode(), parse_constant=_no_constant)
        json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair is no text
    except UnicodeError:
        _refuse(path, number, "it is not UTF-8")
    except (ValueError, RecursionError) as error:
        _refuse(path, number, f"it is not JSON ({error})")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is none of its values")


def _refuse(path: Path, number: int, why: str) -> NoReturn:
    raise InvalidFile(f"{path}, line {number}: {why}")
