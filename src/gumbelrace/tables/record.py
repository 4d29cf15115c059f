"""The record beside a shuffled table: JSON that says what the table is, and that its rows are shuffled.

A table that has been changed since does not fit its record any more: its size differs, or the checksum of
pieces that are spread over it.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gumbelrace.errors import InvalidFile

ENDING = ".json"
# Pieces of a file that its checksum is of, and their bytes: reading them takes no time.
PIECES, PIECE = 256, 4096


class Record(NamedTuple):
    """What is known of a shuffled table."""

    columns: tuple[str, ...]
    rows: int
    seed: int
    bytes: int
    checksum: str
    counted: bool  # whether the first column counted the rows before they were shuffled


def record_path(table: Path) -> Path:
    return table.with_name(table.name + ENDING)


def checksum(path: Path) -> str:
    """Give a checksum of the size of a file and of pieces from its first to its last byte."""
    size, found = path.stat().st_size, hashlib.blake2b(digest_size=16)
    found.update(str(size).encode())
    with open(path, "rb", buffering=0) as file:
        for place in np.unique(np.linspace(0, max(0, size - PIECE), PIECES).astype(np.int64)).tolist():
            file.seek(place)
            found.update(file.read(PIECE))
    return found.hexdigest()


def record_of(path: Path, columns: Sequence[str], rows: int, seed: int, counted: bool) -> Record:
    """Make the record of a table that has been written."""
    return Record(tuple(columns), rows, seed, path.stat().st_size, checksum(path), counted)


def write_record(record: Record, path: Path) -> None:
    """Write a record, on disk when this returns."""
    said = {"shuffled": True, **record._asdict()}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(said, file, indent=1, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())


def read_record(table: Path) -> Record | None:
    """Read the record of a table, which must fit it; None if there is none, or none of ours."""
    path = record_path(table)
    try:
        said: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise InvalidFile(_unfit(table, f"is damaged ({error})")) from error
    if not _is_ours(said):
        return None
    try:
        record = Record(tuple(said["columns"]), *(said[name] for name in Record._fields[1:]))
    except (KeyError, TypeError) as error:
        raise InvalidFile(_unfit(table, f"lacks {error}")) from error
    if (table.stat().st_size, checksum(table)) != (record.bytes, record.checksum):
        raise InvalidFile(_unfit(table, "is of another table: size or checksum differ"))
    return record


def check_no_other_record(table: Path) -> None:
    """Refuse to write a record in the place of a file that is none."""
    path = record_path(table)
    try:
        said: Any = json.loads(path.read_bytes())
    except FileNotFoundError:
        return
    except ValueError:
        said = None
    if not _is_ours(said):
        raise InvalidFile(
            f"{path} is no record of a shuffled table, and would be lost; move it, or write elsewhere"
        )


def _is_ours(said: Any) -> bool:
    return isinstance(said, dict) and said.get("shuffled") is True


def is_shuffled(tables: Sequence[Path]) -> bool:
    """Whether a table is one file with a record; the rows of several would be in order by file."""
    return len(tables) == 1 and tables[0].is_file() and read_record(tables[0]) is not None


def first_column_counted(table: Path) -> bool:
    """Whether a table is a shuffled one whose first column counted the rows before."""
    with suppress(InvalidFile):  # said to whoever asks for the order of the rows
        record = read_record(table) if table.is_file() else None
        return record is not None and record.counted
    return False


def _unfit(table: Path, fault: str) -> str:
    return f"{record_path(table)}, the record of {table}, {fault}; shuffle it again, or delete the record"
