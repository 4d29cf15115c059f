"""The store: every evaluation that was paid for, in a SQLite file that any tool can read.

Two tables. `items` has a row for each candidate, example and claim: its kind, the key it is known by (a
hash of its contents), and its contents as JSON; those of a claim say in which order the examples are taken
(a seed), what was claimed, and about which candidates. `cells` has a row for each evaluation: the numbers
of its candidate and its example in `items`, its score (NULL if it failed), cost, seconds, attempts and
error. No wealth is kept: the race is replayed from the cells.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gumbelrace.choosing.bets import Floats
from gumbelrace.choosing.contents import Item, writable
from gumbelrace.choosing.scores import Indices
from gumbelrace.errors import InvalidFile, StoreBusy

IN_MEMORY = ":memory:"
LOCK = ".lock"
TABLES = """
CREATE TABLE IF NOT EXISTS items (
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT NOT NULL, text TEXT NOT NULL, UNIQUE (kind, key));
CREATE TABLE IF NOT EXISTS cells (
    candidate INTEGER NOT NULL REFERENCES items, example INTEGER NOT NULL REFERENCES items,
    score REAL, cost REAL NOT NULL, seconds REAL NOT NULL, attempts INTEGER NOT NULL, error TEXT,
    PRIMARY KEY (candidate, example)) WITHOUT ROWID;
"""
COLUMNS = {
    "items": ["id", "kind", "key", "text"],
    "cells": ["candidate", "example", "score", "cost", "seconds", "attempts", "error"],
}
CELLS = "SELECT candidate, example, COALESCE(score, 'nan'), cost FROM cells"


class Cell(NamedTuple):
    """An evaluation, as it is stored."""

    candidate: int
    example: int
    score: float | None
    cost: float
    seconds: float
    attempts: int
    error: str | None


class Stored(NamedTuple):
    """Evaluations of a store, as arrays; scores of failures are NaN."""

    candidates: Indices
    examples: Indices
    scores: Floats
    costs: Floats


class Store:
    """An open store, the only one that writes to its file.

    Parameters
    ----------
    path : str, Path or None
        The file; None keeps everything in memory.

    Examples
    --------
    >>> store = Store(None)
    >>> a, b = store.numbers("candidate", [Item("x", "1"), Item("y", "2")])
    >>> store.write([Cell(a, b, 0.5, 1.0, 0.1, 1, None)])
    >>> store.cells().scores
    array([0.5])
    >>> store.close()
    """

    def __init__(self, path: str | Path | None) -> None:
        self.path = None if path is None else Path(path)
        # A link and what it leads to are one file, with one lock.
        real = None if path is None else os.path.realpath(path)
        self._lock = None if real is None else _locked(real, path)
        try:
            self._connection = sqlite3.connect(real or IN_MEMORY)
            self._refuse_other_tables()
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.executescript(TABLES)
        except sqlite3.Error as error:
            self._unlock()
            raise InvalidFile(f"{path} cannot be used as a store ({error}); name another file") from error

    def _refuse_other_tables(self) -> None:
        for name, columns in COLUMNS.items():
            found = [row[1] for row in self._connection.execute(f"PRAGMA table_info({name})")]
            if found not in ([], columns):
                raise sqlite3.DatabaseError(f"its table {name} is that of another program")

    def numbers(self, kind: str, wanted: Sequence[Item]) -> list[int]:
        """Give the numbers of items, and put down those that are new."""
        with self._writing() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO items (kind, key, text) VALUES (?, ?, ?)",
                [(kind, item.key, item.text) for item in wanted],
            )
        rows = self._connection.execute("SELECT key, id FROM items WHERE kind = ?", (kind,))
        found = dict(rows.fetchall())
        return [found[item.key] for item in wanted]

    def keys(self, kind: str) -> set[str]:
        """Give the keys of all items of a kind."""
        rows = self._connection.execute("SELECT key FROM items WHERE kind = ?", (kind,))
        return {key for (key,) in rows}

    def texts(self, kind: str) -> list[str]:
        """Give the contents of all items of a kind, the oldest first."""
        rows = self._connection.execute("SELECT text FROM items WHERE kind = ? ORDER BY id", (kind,))
        return [text for (text,) in rows]

    def write(self, cells: Iterable[Cell]) -> None:
        """Put down evaluations; they are there if the process is killed after this."""
        rows = [cell._replace(error=cell.error and writable(cell.error)) for cell in cells]
        with self._writing() as connection:
            connection.executemany("INSERT INTO cells VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def cells(self) -> Stored:
        """Read all evaluations."""
        rows = self._connection.execute(CELLS).fetchall()
        table = np.array(rows, np.float64).reshape(-1, 4)
        candidates, examples = table[:, :2].T.astype(np.int64)
        return Stored(candidates, examples, table[:, 2], table[:, 3])

    def failures(self) -> list[tuple[int, int, str]]:
        """Give candidate, example and error of the evaluations that failed."""
        return self._connection.execute(
            "SELECT candidate, example, error FROM cells WHERE score IS NULL"
        ).fetchall()

    def forget_failures(self, cells: Iterable[tuple[int, int]]) -> None:
        """Take failures of these candidates and examples back, so that they are tried again."""
        with self._writing() as connection:
            connection.executemany(
                "DELETE FROM cells WHERE score IS NULL AND candidate = ? AND example = ?", cells
            )

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Lend a transaction: all of it is written, or nothing."""
        try:
            with self._connection as connection:
                yield connection
        except sqlite3.OperationalError as error:
            raise InvalidFile(f"{self.path} cannot be written ({error}); what is there stays") from error

    def close(self) -> None:
        """Let others write."""
        self._connection.close()
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()


def _locked(real: str, path: str | Path | None) -> sqlite3.Connection:
    """Keep other writers out by a transaction on a file beside it, which ends with the process."""
    try:
        lock = sqlite3.connect(real + LOCK, timeout=0.0, isolation_level=None)
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise StoreBusy(
                f"another process is writing to {path}: wait for it, or name another store"
            ) from None
        raise InvalidFile(f"{path} cannot be written ({error}); name another file") from error
    return lock
