"""Tables of numbers in files as populations to race on.

What the race draws at random is not a row but a chunk of rows that lie side by side, some 4 kB: about what
a disk and the system read anyway when they are asked for one row. The reward of a chunk is its sum. Chunks
are drawn without replacement and their sums add up to those of the rows, so every bound holds, whatever the
order of the rows.

A .npy file is read as it lies, others are first copied to a temporary file. Neither is mapped into memory:
a page of a mapped file counts as memory of the process as soon as one of its rows is touched, and its
neighbours come along.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.rows import Rows, block_length
from gumbelrace.errors import InvalidArgument, InvalidFile, InvalidReward
from gumbelrace.population.arrays import ROUNDED, would_round
from gumbelrace.population.base import Floats, Range
from gumbelrace.population.factors import Factors
from gumbelrace.tables.columns import RECOGNISED, ColumnFile, columns_of, find_name
from gumbelrace.tables.delimited import Dialect
from gumbelrace.tables.numbers import Allowed, allowed, listed, numbers
from gumbelrace.tables.source import ARRAYS, Source, open_source, room_for

Indices = NDArray[np.int64]
Advance = Callable[[float], None]
# Shows what is done and how much there is; lends a function that is told how far it is.
Progress = Callable[[str, float], AbstractContextManager[Advance]]
SILENT: Progress = lambda doing, total: nullcontext(lambda done: None)  # noqa: E731

CHUNK_BYTES = 4096
# Few chunks would be a coarse sample, many would need an index of their own that is long.
FEWEST_CHUNKS, MOST_CHUNKS = 2**17, 2**21
# So many rows in a first column that counts them are no chance, and so many are looked at.
INDEX_LEAST, INDEX_MOST = 5, 100
# Most bytes read before they are added up.
PIECE_BYTES = 2**22
NPY_HEADS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


@contextmanager
def open_scores(
    path: Path, wanted: "Wanted | None" = None, progress: Progress = SILENT
) -> Iterator["Scores"]:
    """Open a table with a column for each candidate: .npy as it lies, others by way of a temporary file."""
    wanted = wanted or Wanted()
    with open_source(path, *ARRAYS) as source:
        permitted = allowed(wanted.limits, wanted.lowest, source.name)
        opened = _npy if source.kind == ".npy" else partial(_copied, progress=progress)
        with opened(source, wanted, permitted) as scores:
            if scores.rows == 0:
                raise InvalidFile(f"{source.name} has no rows; give at least one")
            yield replace(scores, lowest=wanted.lowest)


class Wanted(NamedTuple):
    """What is wanted of a table."""

    columns: Sequence[str] | None = None  # by name, or by number in a .npy file; None: all
    limits: tuple[float, float] | None = None  # numbers beyond are refused; they let an answer be proved
    lowest: bool = False  # whether the lowest sum is the best, not the highest
    dialect: Dialect = RECOGNISED  # of a CSV file


@contextmanager
def _npy(source: Source, wanted: Wanted, permitted: Allowed) -> Iterator["Scores"]:
    layout = npy_layout(source)
    file, names = RowFile(source.file, layout, source.name), [str(i) for i in range(layout.columns)]
    found = np.array(_chosen(wanted.columns, names, source.name), np.int64)
    index = wanted.columns is None and _is_index_of_rows(file)
    notes = [index_note(0)] if index else []
    chosen = np.array(_several(found[index:].tolist(), source.name))
    low, high = (permitted.low, permitted.high) if permitted.given else (0.0, 1.0)
    known = permitted.given or layout.dtype == np.bool_
    bounds = (np.full(len(chosen), low), np.full(len(chosen), high)) if known else None
    yield Scores(file, chosen, tuple(chosen.tolist()), permitted, bounds, notes=tuple(notes))


@contextmanager
def _copied(source: Source, wanted: Wanted, permitted: Allowed, progress: Progress) -> Iterator["Scores"]:
    with tempfile.TemporaryFile() as file:
        with columns_of(source, wanted.dialect) as table:
            names, notes = _names_and_notes(table, wanted)
            with progress(f"reading {source.name}", table.total) as advance, room_for(source.name):
                rows, bounds = _copy(table, names, permitted, file, advance)
        copy = RowFile(file, Layout(0, np.dtype(np.float64), rows, len(names)), "the temporary file")
        columns = np.arange(len(names))
        yield Scores(copy, columns, tuple(names), permitted, bounds, checked=True, notes=tuple(notes))


def _names_and_notes(table: ColumnFile, wanted: Wanted) -> tuple[Sequence[str], list[str]]:
    """Give the columns to compare, and what a user should know of how the file is read."""
    notes = (
        ["decimal commas are read as such"] if table.decimal == "," and not wanted.dialect.decimal else []
    )
    if wanted.columns is not None:
        return _chosen(wanted.columns, table.names, table.name), notes
    names = list(_chosen(None, table.candidates(), table.name))
    if "" in table.names:
        notes.append(f"column {table.names.index('')} (counted from 0) has no name and is left out")
    if _is_index(table, names[0]):
        notes.append(index_note(names.pop(0)))
    return _several(names, table.name), notes


def _is_index(table: ColumnFile, name: str) -> bool:
    """Whether the first rows of a column count the rows."""
    batch = next(table.batches([name]), None)
    if batch is None:
        return False
    with suppress(InvalidArgument):  # no numbers: said later, with all columns that have none
        return counts_rows(numbers(batch.slice(0, INDEX_MOST), table.name, 0, table.decimal))
    return False


def _is_index_of_rows(file: "RowFile") -> bool:
    """Whether the first column of a table of numbers counts the rows, by its first ones."""
    if file.layout.dtype == np.bool_ or file.layout.rows < INDEX_LEAST:
        return False
    first = np.arange(min(file.layout.rows, INDEX_MOST))
    return counts_rows(file.read_chunks(first, 1, np.array([0])))


def counts_rows(column: NDArray[Any]) -> bool:
    """Whether the first rows of a column are 0, 1, 2, ... or 1, 2, 3, ..., as programs write an index."""
    rows = np.arange(len(column))
    return len(rows) >= INDEX_LEAST and any((column.ravel() == rows + start).all() for start in (0, 1))


def index_note(name: str | int) -> str:
    return f"column {name!r} counts the rows and is left out; --columns would take it in"


def _copy(
    source: ColumnFile, names: Sequence[str], permitted: Allowed, file: BinaryIO, advance: Advance
) -> tuple[int, Range]:
    """Check columns and write them to a file; count the rows, and give the range of each column."""
    rows, low, high = 0, np.full(len(names), np.inf), np.full(len(names), -np.inf)
    for batch in source.batches(names):
        block = numbers(batch, source.name, rows, source.decimal)
        permitted.check(block, names, range(rows, rows + len(block)))
        np.minimum(low, block.min(axis=0), out=low)
        np.maximum(high, block.max(axis=0), out=high)
        file.write(np.ascontiguousarray(block).data)
        rows += len(block)
        advance(source.done())
    file.flush()
    return rows, (low, high)


def _chosen(wanted: Sequence[str] | None, names: Sequence[str], file: str) -> Sequence[str]:
    """Give the names of the columns to compare: different ones, and two or more."""
    found = [find_name(name, names, file) for name in (names if wanted is None else wanted)]
    for name in found:
        find_name(name, found, file)
    return _several(found, file)


def _several(names: Sequence[Any], file: str) -> Sequence[Any]:
    if len(names) < 2:
        raise InvalidArgument(
            f"{file}: with {listed(names) or 'no column'} alone there is nothing to choose from; "
            "give two or more columns"
        )
    return names


def npy_layout(source: Source) -> "Layout":
    file, name = source.file, source.name
    try:
        shape, by_column, dtype = NPY_HEADS[np.lib.format.read_magic(file)](file)
    except (ValueError, KeyError, EOFError) as error:
        raise InvalidFile(f"{name} is not a .npy file, or is damaged; save it again by np.save") from error
    _check_dtype(dtype, name)
    if len(shape) != 2:
        raise InvalidFile(
            f"{name} has shape {shape}; it must be (rows, columns), with a column for each candidate"
        )
    start, present = file.tell(), source.size
    if present < (size := start + shape[0] * shape[1] * dtype.itemsize):
        raise InvalidFile(
            f"{name} has {present:,} bytes of {size:,}: its end is missing; save or copy it again"
        )
    return Layout(start, dtype, *shape, by_column)


def _check_dtype(dtype: np.dtype[Any], name: str) -> None:
    if dtype.hasobject:
        raise InvalidFile(
            f"{name} holds Python objects, which are not opened since they may run code; "
            "save the numbers: np.save(file, array.astype(float))"
        )
    if dtype.names:
        raise InvalidFile(f"{name} has named fields; save it as a 2-D array of numbers, or as .parquet")
    if dtype.kind not in "biuf":
        raise InvalidFile(
            f"{name} holds {dtype.name}; convert it to bool, int, uint, float16, float32 or float64"
        )


class Layout(NamedTuple):
    """Where the numbers of a table lie in its file."""

    start: int  # the byte at which they begin
    dtype: np.dtype[Any]
    rows: int
    columns: int
    by_column: bool = False

    @property
    def together(self) -> int:
        """Bytes of a row that lie side by side."""
        return self.dtype.itemsize * (1 if self.by_column else self.columns)


class RowFile:
    """A table of numbers in a file, open for reading and unbuffered; `name` stands for it in messages."""

    def __init__(self, file: Any, layout: Layout, name: str) -> None:
        self.layout, self._file, self._name = layout, file, name
        self._memory = np.empty(0, np.uint8)

    def read_chunks(self, index: Indices, length: int, columns: Indices) -> NDArray[Any]:
        """Read the chunks of `length` rows of which `index` has the numbers, one below the other.

        What is returned is overwritten by the next call.
        """
        layout, rows = self.layout, len(index) * length
        if layout.by_column:
            return self._read(index, length, columns.tolist()).reshape(len(columns), rows).T
        block = self._read(index, length, [0]).reshape(rows, layout.columns)
        every = len(columns) == layout.columns and (columns == np.arange(len(columns))).all()
        return block if every else block[:, columns]

    def _read(self, index: Indices, length: int, parts: list[int]) -> NDArray[Any]:
        """Read chunks from some parts of the file: its columns, or the only one if it lies by row."""
        chunk_bytes, part_bytes = length * self.layout.together, self.layout.rows * self.layout.together
        size = len(parts) * len(index) * chunk_bytes
        if size > len(self._memory):
            self._memory = np.empty(size, np.uint8)
        for number, part in enumerate(parts):
            before = number * len(index) * chunk_bytes
            for first, last in stretches(index):
                position = part * part_bytes + int(index[first]) * chunk_bytes
                self._fill(before + first * chunk_bytes, before + last * chunk_bytes, position)
        return self._memory[:size].view(self.layout.dtype)

    def _fill(self, first: int, last: int, position: int) -> None:
        """Read what begins at `position` of the table into the bytes from `first` to `last`."""
        self._file.seek(self.layout.start + position)
        left = self._memory.data[first:last]
        while len(left):
            count = self._file.readinto(left)
            if not count:
                raise InvalidFile(f"{self._name} became shorter while it was read; run the command again")
            left = left[count:]


def stretches(index: Indices) -> Iterator[tuple[int, int]]:
    """Cut `index` where it does not go on by one; give the first and last + 1 position of each part."""
    cuts = np.flatnonzero(np.diff(index) != 1) + 1
    return pairwise([0, *cuts.tolist(), len(index)])


@dataclass(frozen=True)
class Scores:
    """Columns of a table in a file."""

    file: RowFile
    columns: Indices  # those of the file that are meant
    names: tuple[str, ...] | tuple[int, ...]  # what they are called
    allowed: Allowed  # the numbers that may be met
    bounds: Range | None  # least and largest number of each column, if known
    checked: bool = False  # whether every number has been read once, and is allowed
    lowest: bool = False  # whether the lowest sum is the best, not the highest
    notes: tuple[str, ...] = ()  # what a user should know of how the file was read

    @property
    def rows(self) -> int:
        return self.file.layout.rows

    @property
    def size(self) -> int:
        return self.rows * len(self.names)

    def population(self, shuffled: bool = False) -> "Chunks":
        """Give chunks of rows to race on; single rows if these already lie in random order."""
        if shuffled:
            return Chunks(self, 1, Rows(self.rows, block_length(self.rows)))
        length = chunk_length(self.rows, self.file.layout.together)
        return Chunks(self, length, Rows(self.rows // length))


def chunk_length(rows: int, row_bytes: int) -> int:
    return max(1, min(CHUNK_BYTES // row_bytes, rows // FEWEST_CHUNKS), -(-rows // MOST_CHUNKS))


class Chunks(Factors):
    """A population whose rewards are sums over chunks of `length` rows of a file.

    The last rows, too few for a chunk, are the `remainder`: sums that are an offset of the race.
    """

    # So much less costs a chunk when all are read in order: 3 times from memory, 10 and more from a disk.
    scan_speed = 10.0

    def __init__(self, scores: Scores, length: int, order: Rows) -> None:
        self.scores, self.length = scores, length
        self.rows_read = self.scores_read = 0
        self.added_up = False  # whether `totals` was asked for
        super().__init__(self._sums, order, len(scores.names), self._bounds())
        self.names = tuple(map(str, scores.names))
        self.remainder = self._remainder()

    def totals(self) -> Floats:
        """Add up every column, reading all of it."""
        self.added_up = True
        arms, total = np.arange(self.arms), self.remainder.copy()
        for piece in self._pieces(np.arange(self.size)):
            total += self._read(piece, self.length, arms).sum(axis=0)
        return total

    def _bounds(self) -> Range | None:
        if self.scores.bounds is None:
            return None
        low, high = (self.length * side for side in self.scores.bounds)
        return (-high, -low) if self.scores.lowest else (low, high)

    def _remainder(self) -> Floats:
        arms = np.arange(self.arms)
        rest = np.arange(self.size * self.length, self.scores.rows)
        sums = self._read(rest, 1, arms).sum(axis=0) if len(rest) else np.zeros(self.arms)
        if self._range is not None:
            # A column that is known to hold an infinity need not be read.
            sums[np.isneginf(self._range[0])] = -np.inf
        return sums

    def _sums(self, index: Indices, arms: Indices) -> Floats:
        sums = np.concatenate([self._read(piece, self.length, arms) for piece in self._pieces(index)])
        # Rounding must not lead out of the range.
        return sums if self._range is None else sums.clip(*(side[arms] for side in self._range))

    def _pieces(self, index: Indices) -> Iterator[Indices]:
        layout = self.scores.file.layout
        most = max(1, PIECE_BYTES // (self.length * layout.columns * layout.dtype.itemsize))
        return (index[first : first + most] for first in range(0, len(index), most))

    def _read(self, index: Indices, length: int, arms: Indices) -> Floats:
        """Read and check chunks; give their sums, the higher the better."""
        self.rows_read += len(index) * length
        self.scores_read += len(index) * length * len(arms)
        scores = self.scores
        block = scores.file.read_chunks(index, length, scores.columns[arms])
        if would_round(block):
            raise InvalidReward(f"{scores.allowed.file}: a column has {ROUNDED}")
        block = block.astype(np.float64, copy=False)
        with np.errstate(all="ignore"):
            sums: Floats = np.ones(length) @ block.reshape(len(index), length, len(arms))
        if scores.lowest:
            np.negative(sums, out=sums)
        if scores.allowed.given or not (sums < np.inf).all():
            self._check(block, index, length, arms)
        return sums

    def _check(self, block: NDArray[Any], index: Indices, length: int, arms: Indices) -> None:
        if not self.scores.checked:
            rows = (index[:, None] * length + np.arange(length)).ravel()
            self.scores.allowed.check(block, [self.scores.names[arm] for arm in arms], rows)
