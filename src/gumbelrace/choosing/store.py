"""The store: every evaluation that was paid for, in a SQLite file that any tool can read.

Two tables. `items` has a row for each candidate, example and claim: its kind, the key it is known by (a
hash of its contents), and its contents as JSON; those of a claim say in which order the examples are taken
(a seed), what was claimed, and about which candidates. `cells` has a row for each evaluation: the numbers
of its candidate and its example in `items`, its score (NULL if it failed), cost, seconds, attempts and
error. No wealth is kept: the race is replayed from the cells.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gumbelrace.choosing.bets import Floats
from gumbelrace.choosing.contents import Item
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
        self._lock = None if self.path is None else _locked(self.path)
        try:
            self._connection = sqlite3.connect(IN_MEMORY if self.path is None else self.path)
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.executescript(TABLES)
        except sqlite3.Error as error:
            self._unlock()
            raise InvalidFile(f"{path} cannot be used as a store ({error}); name another file") from error

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
        with self._writing() as connection:
            connection.executemany("INSERT INTO cells VALUES (?, ?, ?, ?, ?, ?, ?)", cells)

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


def _locked(path: Path) -> sqlite3.Connection:
    """Keep other writers out by a transaction on a file beside it, which ends with the process."""
    try:
        lock = sqlite3.connect(path.with_name(path.name + LOCK), timeout=0.0, isolation_level=None)
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise StoreBusy(
                f"another process is writing to {path}: wait for it, or name another store"
            ) from None
        raise InvalidFile(f"{path} cannot be written ({error}); name another file") from error
    return lock
