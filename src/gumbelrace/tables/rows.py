"""Rows of numbers in a file, read a few at a time.

The file is not mapped into memory: a page of a mapped file counts as memory of the process
as soon as one of its rows is touched, and its neighbours come along.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidFile

Indices = NDArray[np.int64]


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
        if self.layout.by_column:
            return self._by_column(index, length, columns)
        run_bytes = length * self.layout.together
        block = self._room(len(index) * length, self.layout.columns)
        for first, last in stretches(index):
            self._fill(first * run_bytes, last * run_bytes, int(index[first]) * run_bytes)
        every = len(columns) == self.layout.columns and (columns == np.arange(len(columns))).all()
        return block if every else block[:, columns]

    def _by_column(self, index: Indices, length: int, columns: Indices) -> NDArray[Any]:
        run_bytes, rows = length * self.layout.together, len(index) * length
        block = self._room(len(columns), rows)
        for number, column in enumerate(columns.tolist()):
            before = number * rows * self.layout.together
            start = column * self.layout.rows * self.layout.together
            for first, last in stretches(index):
                to = before + first * run_bytes
                self._fill(to, before + last * run_bytes, start + int(index[first]) * run_bytes)
        return block.T

    def _room(self, rows: int, columns: int) -> NDArray[Any]:
        size = rows * columns * self.layout.dtype.itemsize
        if size > len(self._memory):
            self._memory = np.empty(size, np.uint8)
        return self._memory[:size].view(self.layout.dtype).reshape(rows, columns)

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
