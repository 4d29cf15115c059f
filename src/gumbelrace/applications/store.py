"""Finished rows of a long study, on disk: one that was stopped or killed goes on where it was."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gumbelrace.chain.checkpoint import opened

ROWS = "rows.jsonl"


class Store:
    """Rows by their keys, in a file that only grows.

    Parameters
    ----------
    path : Path
        The file. A last line that a killed process left unfinished does not count.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[str, Any] = {}
        lines = path.read_bytes().split(b"\n") if path.exists() else [b""]
        self._end = sum(len(line) + 1 for line in lines[:-1])
        for line in lines[:-1]:
            key, row = json.loads(line)
            self.rows[key] = row

    def add(self, key: str, row: Any) -> None:
        """Keep a row; it is on disk when this returns."""
        line = json.dumps([key, row]).encode() + b"\n"
        with open(self.path, "r+b" if self.path.exists() else "wb") as file:
            file.seek(self._end)
            file.write(line)
            file.truncate()
            file.flush()
            os.fsync(file.fileno())
        self._end += len(line)
        self.rows[key] = row


@contextmanager
def stored(folder: Path, identity: dict[str, Any]) -> Iterator[Store]:
    """Lend the store of a study with these settings; no other process may use it meanwhile.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with stored(Path(folder) / "study", {"seed": 0}) as store:
    ...         store.add("first", [1, 2.5])
    ...     with stored(Path(folder) / "study", {"seed": 0}) as store:
    ...         store.rows
    {'first': [1, 2.5]}
    """
    with opened(folder, identity) as place:
        yield Store(place / ROWS)
