"""Tables in files, open for reading from front to back: arrays of their columns, some rows at a time.

What is open has a `name` for messages, the `names` of its columns, and `arrays`, which reads some of them;
`total` and `done` say how far that is. `rows` and `types` are None where they are known only after all has
been read: those of CSV.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidFile
from gumbelrace.tables.ahead import side_by_side
from gumbelrace.tables.columns import RECOGNISED, ColumnFile, columns_of
from gumbelrace.tables.delimited import Dialect
from gumbelrace.tables.numbers import listed
from gumbelrace.tables.record import read_record
from gumbelrace.tables.rowfile import Reads, RowFile, npy_layout
from gumbelrace.tables.source import ARRAYS, Source, files_of, open_source

# Bytes of rows read at a time.
PIECE_BYTES = 2**22
NO_ROWS = np.empty(0)


class ArrayFile:
    """An open .npy file, or a temporary copy: rows of numbers that can be read in any order."""

    decimal = "."

    def __init__(self, file: RowFile, name: str, names: Sequence[str] | None = None) -> None:
        self.file, self.name, self._done, layout = file, name, 0, file.layout
        self.has_names = bool(names or layout.dtype.names)  # else columns are numbered
        self.names = list(names or layout.dtype.names or map(str, range(layout.columns)))
        self.types, self.rows, self.total = layout.types, layout.rows, layout.rows

    def done(self) -> int:
        """Give how much of `total` has been read."""
        return self._done

    def candidates(self) -> list[str]:
        """Give the names of the columns that can be compared: all."""
        return self.names

    def arrays(
        self, names: Sequence[str], workers: int = 1, rows: int | None = None
    ) -> Iterator[list[NDArray[Any]]]:
        """Read some columns from front to back, `rows` at a time."""
        layout, columns = self.file.layout, np.array([self.names.index(name) for name in names], np.int64)
        step = rows or max(1, PIECE_BYTES // sum(kind.itemsize for kind in layout.types))
        for first in range(0, layout.rows, step):
            self._done = min(first + step, layout.rows)
            yield self.file.read_columns(first, self._done - first, columns)

    def lies_as(self, names: Sequence[str], dtype: np.dtype[Any]) -> bool:
        """Whether its rows are these columns, in numbers or rows of such a type."""
        layout = self.file.layout
        return tuple(names) == tuple(self.names) and layout.dtype == dtype and not layout.by_column

    def rows_as_they_lie(self, count: int) -> Iterator[NDArray[Any]]:
        """Read `count` rows at a time."""
        for first in range(0, self.rows, count):
            yield self.file.read_rows(first, min(count, self.rows - first))


class JoinedFiles:
    """Files with the same columns, one below the other, each opened when its turn comes; used as one."""

    has_names = True

    def __init__(self, paths: Sequence[Path], name: str, dialect: Dialect, reads: Reads | None) -> None:
        self._paths, self._dialect, self._reads, self.name, self._done = paths, dialect, reads, name, 0
        known = [facts_of(path, dialect) for path in paths]
        for one in known[1:]:
            _check_alike(known[0], one)
        self.names, self.types, self.decimal = known[0].names, known[0].types, known[0].decimal
        self.total = sum(one.total for one in known)
        self.rows = None if self.types is None else sum(one.rows or 0 for one in known)

    def done(self) -> int:
        """Give how much of `total` has been read."""
        return self._done

    def candidates(self) -> list[str]:
        """Give the names of the columns that can be compared."""
        with open_file(self._paths[0], self._dialect) as file:
            return file.candidates()

    def arrays(
        self, names: Sequence[str], workers: int = 1, rows: int | None = None
    ) -> Iterator[list[NDArray[Any]]]:
        """Read some columns of all files; threads read the next files meanwhile."""
        parts = [partial(self._part, path, names) for path in self._paths]
        self._done = before = last = 0
        for found, done in side_by_side(parts, workers):
            before, last = before + (last if done < last else 0), done
            self._done = before + done
            yield found

    def _part(self, path: Path, names: Sequence[str]) -> Iterator[tuple[list[NDArray[Any]], int]]:
        with open_file(path, self._dialect, self._reads) as file:
            for found in file.arrays(names):
                yield found, file.done()


OpenFile = ColumnFile | ArrayFile | JoinedFiles


def first_rows(file: OpenFile, name: str, most: int) -> NDArray[Any]:
    """Read a column of the first rows."""
    if isinstance(file, ArrayFile):
        return file.file.read_columns(0, min(most, file.rows), np.array([file.names.index(name)]))[0]
    return next(file.arrays([name]), [NO_ROWS])[0][:most]


class Facts(NamedTuple):
    """What is known of a file before it is read."""

    name: str
    names: list[str]
    types: list[np.dtype[Any]] | None
    rows: int | None
    total: int
    decimal: str


def facts_of(path: Path, dialect: Dialect) -> Facts:
    with open_file(path, dialect) as file:
        return Facts(file.name, file.names, file.types, file.rows, file.total, file.decimal)


def _check_alike(first: Facts, other: Facts) -> None:
    """Refuse a file that has other columns than the first, or other types of them."""
    differ = sorted(set(first.names) ^ set(other.names))
    if differ:
        raise InvalidFile(
            f"{first.name} and {other.name} have different columns: {listed(differ)} in one of them only; "
            "give files with the same columns"
        )
    if first.types is None or other.types is None:
        return
    theirs = dict(zip(other.names, other.types, strict=True))
    for name, dtype in zip(first.names, first.types, strict=True):
        if theirs[name] != dtype:
            raise InvalidFile(
                f"column {name!r} holds {dtype} in {first.name} but {theirs[name]} in {other.name}; "
                "convert one of them"
            )


@contextmanager
def open_file(path: Path, dialect: Dialect = RECOGNISED, reads: Reads | None = None) -> Iterator[OpenFile]:
    """Open one file, or what comes through a pipe or standard input."""
    with open_source(path, *ARRAYS) as source:
        if source.kind == ".npy":
            yield _array_file(source, reads)
            return
        with columns_of(source, dialect, reads) as file:
            yield file


def _array_file(source: Source, reads: Reads | None) -> ArrayFile:
    """Open a .npy file, whose columns have the names in its record, if there is one."""
    layout = npy_layout(source)
    record = None if source.path is None or layout.dtype.names else read_record(source.path)
    names = record.columns if record and len(record.columns) == layout.columns else None
    numbered = names == tuple(map(str, range(layout.columns)))
    return ArrayFile(
        RowFile(source.file, layout, source.name, reads), source.name, None if numbered else names
    )


@contextmanager
def open_files(
    given: Path | Sequence[Path], dialect: Dialect = RECOGNISED, reads: Reads | None = None
) -> Iterator[OpenFile]:
    """Open a file, or several as one: a folder, a pattern, a sequence of paths."""
    paths = files_of(given)
    if len(paths) > 1:
        yield JoinedFiles(paths, str(given), dialect, reads)
        return
    with open_file(paths[0], dialect, reads) as file:
        yield file
