"""Rows of numbers in a file, read a few at a time: a .npy file as it lies, or a temporary one.

The file is not mapped into memory: a page of a mapped file counts as memory of the process
as soon as one of its rows is touched, and its neighbours come along.
"""

import errno
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidFile

Indices = NDArray[np.int64]
HEADS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


class Layout(NamedTuple):
    """Where the numbers of a table lie in its file."""

    start: int  # the byte at which they begin
    dtype: np.dtype[Any]
    rows: int
    columns: int
    by_column: bool = False

    @property
    def size(self) -> int:
        """Length of a file that holds them all."""
        return self.start + self.rows * self.columns * self.dtype.itemsize

    @property
    def together(self) -> int:
        """Bytes of a row that lie side by side."""
        return self.dtype.itemsize * (1 if self.by_column else self.columns)


class RowFile:
    """A table of numbers in a file.

    Parameters
    ----------
    file : raw binary file
        Open for reading, and unbuffered.
    layout : Layout
        Where the numbers lie.
    name : str
        What to call the file in a message.
    """

    def __init__(self, file: Any, layout: Layout, name: str) -> None:
        self.layout, self._file, self._name = layout, file, name
        self._memory = np.empty(0, np.uint8)

    def runs(self, index: Indices, length: int, columns: Indices) -> NDArray[Any]:
        """Read the runs of `length` rows of which `index` has the numbers, one below the other.

        What is returned is overwritten by the next call.
        """
        layout, rows = self.layout, len(index) * length
        if layout.by_column:
            return self._read(index, length, columns.tolist()).reshape(len(columns), rows).T
        block = self._read(index, length, [0]).reshape(rows, layout.columns)
        every = len(columns) == layout.columns and (columns == np.arange(len(columns))).all()
        return block if every else block[:, columns]

    def _read(self, index: Indices, length: int, parts: list[int]) -> NDArray[Any]:
        """Read runs from each of some parts of the file: its columns, or the only one if it lies by row."""
        run_bytes, part_bytes = length * self.layout.together, self.layout.rows * self.layout.together
        size = len(parts) * len(index) * run_bytes
        if size > len(self._memory):
            self._memory = np.empty(size, np.uint8)
        for number, part in enumerate(parts):
            before = number * len(index) * run_bytes
            for first, last in stretches(index):
                position = part * part_bytes + int(index[first]) * run_bytes
                self._fill(before + first * run_bytes, before + last * run_bytes, position)
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


def npy_layout(file: Any, path: Path) -> Layout:
    """Read the head of a .npy file."""
    try:
        shape, by_column, dtype = HEADS[np.lib.format.read_magic(file)](file)
    except (ValueError, KeyError, EOFError) as error:
        raise InvalidFile(f"{path} is not a .npy file, or is damaged; save it again by np.save") from error
    _check_dtype(dtype, path)
    if len(shape) != 2:
        raise InvalidFile(
            f"{path} has shape {shape}; it must be (rows, columns), with a column for each candidate"
        )
    layout = Layout(file.tell(), dtype, *shape, by_column)
    present = path.stat().st_size
    if present < layout.size:
        raise InvalidFile(
            f"{path} has {present:,} bytes of {layout.size:,}: its end is missing; save or copy it again"
        )
    return layout


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


@contextmanager
def room_for(path: Path) -> Iterator[None]:
    """Say what to do if there is no room for a temporary file with the numbers of `path`."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise InvalidFile(
            f"{tempfile.gettempdir()} has no room for the numbers of {path}; set TMPDIR to a larger folder"
        ) from error
