"""Numbers that lie in a file in rows of equal length: a .npy file, or a temporary copy of another table.

The file is never mapped into memory: a page of a mapped file counts as memory of the process as soon as one
of its rows is touched, and its neighbours come along.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidFile
from gumbelrace.tables.npy_head import read_npy_head
from gumbelrace.tables.source import Source

Indices = NDArray[np.int64]
NOTING = threading.Lock()  # held for so short that one does for all


@dataclass
class Reads:
    """What was read of a file.

    Attributes
    ----------
    bytes : int
        Bytes read.
    stretches : int
        Stretches of the file that were read from front to back: one more for every jump.
    """

    bytes: int = 0
    stretches: int = 0
    _end: int = -1

    def note(self, start: int, count: int) -> None:
        """Note that `count` bytes were read, from `start` on."""
        with NOTING:
            self.stretches += start != self._end
            self.bytes += count
            self._end = start + count


def npy_layout(source: Source) -> "Layout":
    file, name = source.file, source.name
    try:
        shape, by_column, dtype = read_npy_head(file)
    except (ValueError, KeyError, EOFError) as error:
        raise InvalidFile(f"{name} is not a .npy file, or is damaged; save it again by np.save") from error
    _check_dtype(dtype, name)
    if len(shape) != (1 if dtype.names else 2) or min(shape) < 0:
        raise InvalidFile(
            f"{name} has shape {shape}; it must be (rows, columns), with a column for each candidate"
        )
    start, present, columns = file.tell(), source.size, len(dtype.names or ()) or shape[1]
    if present < (size := start + int(np.prod(shape, dtype=object)) * dtype.itemsize):
        raise InvalidFile(
            f"{name} has {present:,} bytes of {size:,}: its end is missing; save or copy it again"
        )
    return Layout(start, dtype, shape[0], columns, by_column and not dtype.names)


def _check_dtype(dtype: np.dtype[Any], name: str) -> None:
    if dtype.hasobject:
        raise InvalidFile(
            f"{name} holds Python objects, which are not opened since they may run code; "
            "save the numbers: np.save(file, array.astype(float))"
        )
    fields = [dtype[i] for i in range(len(dtype.names))] if dtype.names else [dtype]
    for field in fields:
        if field.kind not in "biuf" or field.itemsize > 8:
            raise InvalidFile(
                f"{name} holds {field.name}; convert it to bool, int, uint, float16, float32 or float64"
            )


class Layout(NamedTuple):
    """Where the numbers of a table lie in its file."""

    start: int  # the byte at which they begin
    dtype: np.dtype[Any]  # of a number; or of a row, if its columns have types of their own
    rows: int
    columns: int
    by_column: bool = False

    @property
    def together(self) -> int:
        """Bytes of a row that lie side by side."""
        alone = self.by_column or self.dtype.names
        return self.dtype.itemsize * (1 if alone else self.columns)

    @property
    def types(self) -> list[np.dtype[Any]]:
        """The type of each column, in the byte order of this machine."""
        fields = [self.dtype[name] for name in self.dtype.names or ()] or [self.dtype] * self.columns
        return [field.newbyteorder("=") for field in fields]


class RowFile:
    """A table of numbers in a file, open for reading and unbuffered; `name` stands for it in messages."""

    def __init__(self, file: Any, layout: Layout, name: str, reads: Reads | None = None) -> None:
        self.layout, self._file, self._name = layout, file, name
        self._memory, self.reads = np.empty(0, np.uint8), reads or Reads()

    def read_chunks(self, index: Indices, length: int, columns: Indices) -> NDArray[Any]:
        """Read the chunks of `length` rows of which `index` has the numbers, one below the other.

        What is returned is overwritten by the next call.
        """
        layout, rows = self.layout, len(index) * length
        if layout.by_column:
            return self._read(index, length, columns.tolist()).reshape(len(columns), rows).T
        block = self._read(index, length, [0])
        if layout.dtype.names:
            return np.stack([block[layout.dtype.names[column]] for column in columns], axis=1)
        block = block.reshape(rows, layout.columns)
        every = len(columns) == layout.columns and (columns == np.arange(len(columns))).all()
        return block if every else block[:, columns]

    def read_columns(self, first: int, count: int, columns: Indices) -> list[NDArray[Any]]:
        """Read some columns of the rows from `first` on, each as an array that stays as it is."""
        self._memory, rows = np.empty(0, np.uint8), np.arange(first, first + count)
        names = self.layout.dtype.names
        if names:
            block = self._read(rows, 1, [0])
            found = [block[names[column]] for column in columns]
        else:
            found = list(self.read_chunks(rows, 1, columns).T)
        self._memory = np.empty(0, np.uint8)  # what was read belongs to the caller
        return [column.astype(column.dtype.newbyteorder("="), copy=False) for column in found]

    def read_rows(self, first: int, count: int) -> NDArray[Any]:
        """Read rows from `first` on, in full, of a file that lies by row; the next call overwrites them."""
        block = self._read(np.arange(first, first + count), 1, [0])
        return block if self.layout.dtype.names else block.reshape(count, self.layout.columns)

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
        self.reads.note(self.layout.start + position, last - first)
        left = self._memory.data[first:last]
        while len(left):
            count = self._file.readinto(left)
            if not count:
                raise InvalidFile(f"{self._name} became shorter while it was read; run the command again")
            left = left[count:]


def stretches(index: Indices) -> Iterator[tuple[int, int]]:
    """Cut `index` where it does not go on by one; give the first and last + 1 position of each part."""
    if not len(index):
        return iter(())
    cuts = np.flatnonzero(np.diff(index) != 1) + 1
    return pairwise([0, *cuts.tolist(), len(index)])
