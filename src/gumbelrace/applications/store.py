"""Long work in pieces, by threads or others; what is finished is on disk, and stopped work goes on.

Results are written as tables, each with a few words on what is in it.
"""

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gumbelrace.chain.checkpoint import opened
from gumbelrace.core.atomic import named
from gumbelrace.tables.writing import Kind, write_rows

ROWS = "rows.jsonl"


class Store:
    """Rows by their keys, in a file that only grows.

    A last line that a killed process left unfinished does not count.
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
        with named(self.path), open(self.path, "r+b" if self.path.exists() else "wb") as file:
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


class Stop(threading.Event):
    """Says that work is to stop; in another process nobody does, and who wants it stopped ends that."""

    def __reduce__(self) -> Any:
        """Leave nothing to pickle."""
        return Stop, ()


# Does a piece of work; looks from time to time whether it is to stop, and then raises `Stopped`.
Work = Callable[[Any, Stop], Any]


class Stopped(Exception):
    """The work was stopped before it was done."""


def do_pieces(
    work: Work,
    pieces: Mapping[str, Any],
    store: Store,
    workers: Executor,
    finished: Callable[[str], None],
) -> None:
    """Do the pieces that are not in the store yet, in this order; put what `work` gives there by key.

    `finished` is called with the key of each piece that is done, or was before.
    """
    stop = Stop()
    futures: dict[Future[Any], str] = {}
    for key, piece in pieces.items():
        if key in store.rows:
            finished(key)
        else:
            futures[workers.submit(work, piece, stop)] = key
    try:
        for future in as_completed(futures):
            store.add(futures[future], future.result())
            finished(futures[future])
    finally:  # also after Ctrl-C: what is under way ends soon
        stop.set()
        for future in futures:
            future.cancel()


def write_tables(
    folder: Path, tables: Mapping[str, tuple[str, Sequence[Any]]], kind: Kind = Kind.CSV
) -> dict[str, str]:
    """Write tables, given as name -> (what is in it, rows); return the files and what is in them."""
    return {write_rows(folder, name, rows, kind): contents for name, (contents, rows) in tables.items()}
