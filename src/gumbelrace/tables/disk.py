"""Tables in files, of any size: read from front to back, some rows at a time, or raced."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.pool import processors
from gumbelrace.errors import InvalidArgument
from gumbelrace.population.base import checked_count, checked_flag
from gumbelrace.tables.columns import find_name
from gumbelrace.tables.copies import as_rows, copied
from gumbelrace.tables.delimited import dialect
from gumbelrace.tables.opened import ArrayFile, OpenFile, open_file, open_files
from gumbelrace.tables.population import Chunks, Wanted, names_and_notes, open_scores
from gumbelrace.tables.record import is_shuffled
from gumbelrace.tables.rowfile import Reads
from gumbelrace.tables.source import Stamp, check_stamp, files_of, stamp_of

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]
Columns = dict[str, NDArray[Any]]


def open_table(
    path: Paths,
    columns: Sequence[str] | None = None,
    *,
    shuffled: bool | None = None,
    reward_range: tuple[float, float] | None = None,
    separator: str | None = None,
    decimal: str | None = None,
) -> "DiskTable":
    """Open a table in files, which may be larger than memory.

    Nothing is read before it is needed, and never more than some rows at a time. What is opened stands
    wherever a population does: ``gr.best(gr.open_table("scores.npy"))``; and it gives its columns by
    `chunks`, from front to back.

    Parameters
    ----------
    path : str, path, or sequence of them
        A .npy, .npz, .csv, .tsv (also .gz) or .parquet file; a folder of such files, with those in folders
        within it; a pattern such as ``"scores/*.parquet"``; or several files. Files of one table have the
        same columns and follow each other in the order of their names.
    columns : sequence of str, optional
        The columns that are meant; those of a .npy file are called "0", "1", ..., unless it has named
        fields. Default: all that have a name, without a first one that counts the rows (see `notes`).
    shuffled : bool, optional
        Whether the rows lie in random order. Default: what the record says that `gumbelrace shuffle` leaves
        beside a file, and no where there is none.
    reward_range : (low, high), optional
        Numbers between which all lie: it lets a race prove its answer. Checked on every number read.
    separator, decimal : str, optional
        What lies between columns of CSV, and before decimals. Default: recognised.

    Returns
    -------
    DiskTable
        The table.

    Examples
    --------
    >>> import pathlib, tempfile, numpy as np, gumbelrace as gr
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "scores.npy")
    >>> np.save(path, np.random.default_rng(0).random((40_000, 3), np.float32) + np.float32([0, 0.1, 0]))
    >>> table = gr.open_table(path)
    >>> table
    DiskTable('...scores.npy', rows=40_000, columns=3)
    >>> gr.best(table, rng=1).name
    '1'
    >>> for first, columns in table.chunks(["2"], rows=30_000):
    ...     print(first, columns["2"].dtype, len(columns["2"]))
    0 float32 30000
    30000 float32 10000
    >>> folder.cleanup()
    """
    files = files_of(_as_paths(path))
    wanted = Wanted(_as_names(columns), reward_range, False, dialect(separator, decimal))
    asked = None if shuffled is None else checked_flag(shuffled, "shuffled")
    return DiskTable(files, str(path), wanted, asked)


def _as_paths(given: Paths) -> Path | list[Path]:
    if isinstance(given, str | PathLike):
        return Path(given)
    paths = [Path(one) for one in given]
    if not paths:
        raise InvalidArgument("there is no file; give at least one")
    return paths


def _as_names(columns: Sequence[str] | None) -> list[str] | None:
    if columns is None:
        return None
    names = [columns] if isinstance(columns, str) else [str(name) for name in columns]
    if not names:
        raise InvalidArgument("columns is empty; name at least one, or leave it out")
    return names


class Chunk(NamedTuple):
    """Columns of some rows of a table that lie side by side."""

    first: int  # the number of the first row
    columns: Columns


class DiskTable:
    """A table in files. See `open_table`.

    Attributes
    ----------
    name : str
        What it was opened by.
    paths : list of Path
        Its files.
    columns : tuple of str
        The names of its columns.
    notes : tuple of str
        What a user should know of how it is read.
    reads : Reads
        Bytes that have been read through this object, and the stretches in which they lay.
    stamps : list
        Of each file, its bytes and when it was last written to: one that has changed since is not read.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        name: str,
        wanted: Wanted,
        shuffled: bool | None = None,
        stamps: Sequence[Stamp | None] | None = None,
    ) -> None:
        self.paths, self.name, self._wanted, self._asked = list(paths), name, wanted, shuffled
        # Of a table that is read several times, by several processes, all must read the same.
        self.stamps = list(stamps or map(stamp_of, self.paths))
        self._check_unchanged()
        self.reads, self._kept = Reads(), ExitStack()
        with open_files(self.paths, wanted.dialect) as file:
            names, notes = names_and_notes(file, wanted, least=1)
            self.columns, self.notes = tuple(names), tuple(notes)
            self._known = None if file.rows is None else (file.rows, self._types_of(file))
            self._is_text = file.rows is None
        self._wanted = wanted._replace(columns=list(names))

    def __repr__(self) -> str:
        """Say how much there is; of CSV that is known after it has been read."""
        rows = "" if self._known is None else f"rows={self.size:_}, "
        return f"{type(self).__name__}({self.name!r}, {rows}columns={len(self.columns):_})"

    def __reduce__(self) -> Any:
        """Leave to pickle what the table was opened by: another process opens it for itself."""
        return DiskTable, (self.paths, self.name, self._wanted, self._asked, self.stamps)

    def __enter__(self) -> Self:
        """Return the table, which is closed at the end."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the table."""
        self.close()

    def close(self) -> None:
        """Close files, and delete temporary copies; the table can still be read, by opening them again."""
        self._kept.close()
        for name in ("_copy", "_population"):
            vars(self).pop(name, None)

    @property
    def size(self) -> int:
        """Number of rows; CSV is read through to count them."""
        return self._rows_and_types[0]

    @property
    def dtypes(self) -> dict[str, np.dtype[Any]]:
        """The type of each column; of CSV, the narrowest that holds it."""
        return self._rows_and_types[1]

    @property
    def _rows_and_types(self) -> tuple[int, dict[str, np.dtype[Any]]]:
        if self._known is None and len(self.paths) == 1:
            self._known = self._copy.rows, self._types_of(self._copy)
        elif self._known is None:
            types = {name: [shard.dtypes[name] for shard in self.shards] for name in self.columns}
            common = {name: np.result_type(*found) for name, found in types.items()}
            self._known = sum(shard.size for shard in self.shards), common
        return self._known

    def _types_of(self, file: OpenFile) -> dict[str, np.dtype[Any]]:
        types = dict(zip(file.names, file.types or (), strict=True))
        return {name: types[name] for name in self.columns}

    @cached_property
    def shuffled(self) -> bool:
        """Whether the rows lie in random order."""
        return is_shuffled(self.paths) if self._asked is None else self._asked

    @cached_property
    def shards(self) -> "tuple[DiskTable, ...]":
        """The files of the table, each a table; of one file, the table itself."""
        if len(self.paths) == 1:
            return (self,)
        return tuple(
            DiskTable([path], str(path), self._wanted, self._asked, [stamp])
            for path, stamp in zip(self.paths, self.stamps, strict=True)
        )

    def _check_unchanged(self) -> None:
        for path, stamp in zip(self.paths, self.stamps, strict=True):
            check_stamp(path, stamp)

    def chunks(self, columns: Sequence[str] | None = None, rows: int = 65_536) -> Iterator[Chunk]:
        """Read columns from front to back.

        Parameters
        ----------
        columns : sequence of str, optional
            Names of columns. Default: all of the table.
        rows : int
            Rows of a chunk. The last one of each shard has those that are left.

        Yields
        ------
        Chunk
            The number of the first row, and the columns by name: arrays of one dimension and of the type
            that the column has.
        """
        asked = _as_names(columns) or self.columns
        names = [find_name(name, self.columns, self.name) for name in asked]
        rows, first, types = checked_count(rows, "rows"), 0, [self.dtypes[name] for name in names]
        for shard in self.shards:
            for found in shard._read(names, rows, self.reads):
                typed = [
                    column.astype(dtype, copy=False) for column, dtype in zip(found, types, strict=True)
                ]
                yield Chunk(first, dict(zip(names, typed, strict=True)))
                first += len(typed[0])

    def _read(self, names: Sequence[str], rows: int, reads: Reads) -> Iterator[list[NDArray[Any]]]:
        if self._is_text:
            self._copy.file.reads = reads
            yield from regrouped(self._copy.arrays(names, rows=rows), rows)
            return
        self._check_unchanged()
        with open_file(self.paths[0], self._wanted.dialect, reads) as file:
            yield from regrouped(file.arrays(names, processors(), rows), rows)
        self._check_unchanged()

    def row_blocks(self, dtype: np.dtype[Any], count: int) -> Iterator[NDArray[Any]]:
        """Read all columns, `count` rows at a time, as rows of such a type: as they lie, if they lie so."""
        for shard in self.shards:
            shard._check_unchanged()
            with open_file(shard.paths[0], shard._wanted.dialect, self.reads) as file:
                if isinstance(file, ArrayFile) and file.lies_as(self.columns, dtype):
                    yield from file.rows_as_they_lie(count)
                    shard._check_unchanged()
                    continue
            for _, columns in shard.chunks(self.columns, count):
                yield as_rows(list(columns.values()), dtype)

    @cached_property
    def _copy(self) -> ArrayFile:
        """The rows of a CSV file as numbers, in a temporary file."""
        self._check_unchanged()
        with open_file(self.paths[0], self._wanted.dialect, self.reads) as file:
            found = self._kept.enter_context(copied(file, self.columns))
        self._check_unchanged()
        return found

    def population(self) -> Chunks:
        """Give the population of rewards that methods read, with an arm for each column.

        What is not a .npy file is copied to a temporary file for it, its columns in their types.
        """
        self._check_unchanged()
        return self._population

    @cached_property
    def _population(self) -> Chunks:
        scores = self._kept.enter_context(open_scores(self.paths, self._wanted, reads=self.reads))
        self._check_unchanged()
        return scores.population(self.shuffled)


def regrouped(parts: Iterator[list[NDArray[Any]]], rows: int) -> Iterator[list[NDArray[Any]]]:
    """Cut columns that come in parts of any length into parts of `rows`, and the rest.

    Examples
    --------
    >>> parts = [[np.arange(3)], [np.arange(3, 8)]]
    >>> [part.tolist() for part, in regrouped(iter(parts), 2)]
    [[0, 1], [2, 3], [4, 5], [6, 7]]
    """
    waiting: list[list[NDArray[Any]]] = []
    for part in parts:
        waiting.append(part)
        while (have := sum(len(one[0]) for one in waiting)) >= rows:
            joined = waiting[0] if len(waiting) == 1 else _joined(waiting)
            yield [column[:rows] for column in joined]
            waiting = [[column[rows:] for column in joined]] if have > rows else []
    if any(len(one[0]) for one in waiting):
        yield _joined(waiting)


def _joined(parts: Sequence[list[NDArray[Any]]]) -> list[NDArray[Any]]:
    return [np.concatenate(column) for column in zip(*parts, strict=True)]
