"""Tables of numbers in files as populations to race on.

What the race draws at random is not a row but a chunk of rows that lie side by side, some 4 kB: about what
a disk and the system read anyway when they are asked for one row. The reward of a chunk is its sum. Chunks
are drawn without replacement and their sums add up to those of the rows, so every bound holds, whatever the
order of the rows.

A .npy file is read as it lies, others are first copied to a temporary file. Neither is mapped into memory:
a page of a mapped file counts as memory of the process as soon as one of its rows is touched, and its
neighbours come along.
"""

import errno
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
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
from gumbelrace.tables.columns import (
    Allowed,
    ColumnFile,
    allowed,
    check_names,
    ending,
    listed,
    numbers,
    open_columns,
)

Indices = NDArray[np.int64]
Advance = Callable[[float], None]
# Shows what is done and how much there is; lends a function that is told how far it is.
Progress = Callable[[str, float], AbstractContextManager[Advance]]

CHUNK_BYTES = 4096
# Few chunks would be a coarse sample, many would need an index of their own that is long.
FEWEST_CHUNKS, MOST_CHUNKS = 2**17, 2**21
# Most bytes read before they are added up.
PIECE_BYTES = 2**22
NPY_HEADS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


@contextmanager
def open_scores(
    path: Path,
    columns: Sequence[str] | None = None,
    limits: tuple[float, float] | None = None,
    lowest: bool = False,
    progress: Progress = lambda doing, total: nullcontext(lambda done: None),
) -> Iterator["Scores"]:
    """Open a table with a column for each candidate: .npy as it lies, others by way of a temporary file.

    Columns are chosen by name, or by number if it is a .npy file. Numbers beyond the limits, which let an
    answer be proved, are refused. `lowest` says that the lowest sum is the best, not the highest.
    """
    permitted = allowed(limits, lowest)
    npy = ending(path, ".npy") == ".npy"
    opened = _npy(path, columns, permitted) if npy else _copied(path, columns, permitted, progress)
    with opened as scores:
        if scores.rows == 0:
            raise InvalidFile(f"{path} has no rows; give at least one")
        yield replace(scores, lowest=lowest)


@contextmanager
def _npy(path: Path, columns: Sequence[str] | None, permitted: Allowed) -> Iterator["Scores"]:
    with open(path, "rb", buffering=0) as file:
        layout = npy_layout(file, path)
        chosen = np.array(_chosen(columns, [str(i) for i in range(layout.columns)], path), np.int64)
        low, high = (permitted.low, permitted.high) if permitted.given else (0.0, 1.0)
        known = permitted.given or layout.dtype == np.bool_
        bounds = (np.full(len(chosen), low), np.full(len(chosen), high)) if known else None
        yield Scores(RowFile(file, layout, str(path)), chosen, tuple(chosen.tolist()), permitted, bounds)


@contextmanager
def _copied(
    path: Path, columns: Sequence[str] | None, permitted: Allowed, progress: Progress
) -> Iterator["Scores"]:
    with tempfile.TemporaryFile() as file:
        with open_columns(path) as source:
            names = _chosen(columns, source.candidates(), path)
            with progress(f"reading {path.name}", source.total) as advance, _room_for(path):
                rows, bounds = _copy(source, names, permitted, file, advance)
        copy = RowFile(file, Layout(0, np.dtype(np.float64), rows, len(names)), "the temporary file")
        yield Scores(copy, np.arange(len(names)), tuple(names), permitted, bounds, checked=True)


def _copy(
    source: ColumnFile, names: Sequence[str], permitted: Allowed, file: BinaryIO, advance: Advance
) -> tuple[int, Range]:
    """Check columns and write them to a file; count the rows, and give the range of each column."""
    rows, low, high = 0, np.full(len(names), np.inf), np.full(len(names), -np.inf)
    for batch in source.batches(names):
        block = numbers(batch, source.path, rows)
        permitted.check(block, names, range(rows, rows + len(block)))
        np.minimum(low, block.min(axis=0), out=low)
        np.maximum(high, block.max(axis=0), out=high)
        file.write(np.ascontiguousarray(block).data)
        rows += len(block)
        advance(source.done())
    file.flush()
    return rows, (low, high)


@contextmanager
def _room_for(path: Path) -> Iterator[None]:
    """Say what to do if there is no room for a temporary file with the numbers of `path`."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise InvalidFile(
            f"{tempfile.gettempdir()} has no room for the numbers of {path}; set TMPDIR to a larger folder"
        ) from error


def _chosen(wanted: Sequence[str] | None, names: Sequence[str], path: Path) -> Sequence[str]:
    """Give the names of the columns to compare: different ones, and two or more."""
    wanted = names if wanted is None else wanted
    check_names(wanted, names, path)
    check_names(wanted, wanted, path)
    if len(wanted) < 2:
        raise InvalidArgument(
            f"{path}: with {listed(wanted) or 'no column'} alone there is nothing to choose from; "
            "give two or more columns"
        )
    return wanted


def npy_layout(file: Any, path: Path) -> "Layout":
    try:
        shape, by_column, dtype = NPY_HEADS[np.lib.format.read_magic(file)](file)
    except (ValueError, KeyError, EOFError) as error:
        raise InvalidFile(f"{path} is not a .npy file, or is damaged; save it again by np.save") from error
    _check_dtype(dtype, path)
    if len(shape) != 2:
        raise InvalidFile(
            f"{path} has shape {shape}; it must be (rows, columns), with a column for each candidate"
        )
    start, present = file.tell(), path.stat().st_size
    if present < (size := start + shape[0] * shape[1] * dtype.itemsize):
        raise InvalidFile(
            f"{path} has {present:,} bytes of {size:,}: its end is missing; save or copy it again"
        )
    return Layout(start, dtype, *shape, by_column)


def _check_dtype(dtype: np.dtype[Any], path: Path) -> None:
    if dtype.hasobject:
        raise InvalidFile(
            f"{path} holds Python objects, which are not opened since they may run code; "
            "save the numbers: np.save(file, array.astype(float))"
        )
    if dtype.names:
        raise InvalidFile(f"{path} has named fields; save it as a 2-D array of numbers, or as .parquet")
    if dtype.kind not in "biuf":
        raise InvalidFile(
            f"{path} holds {dtype.name}; convert it to bool, int, uint, float16, float32 or float64"
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
            raise InvalidReward(f"a column has {ROUNDED}")
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
