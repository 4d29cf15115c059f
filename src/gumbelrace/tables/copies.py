"""A table copied to a temporary file, from which rows can be read in any order.

Columns keep their types. Those of CSV, which says none, get the narrowest type that holds what has been
read: a number that needs a wider one has the rows before it written again.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.pool import processors
from gumbelrace.errors import InvalidFile
from gumbelrace.tables.numbers import narrowest
from gumbelrace.tables.opened import PIECE_BYTES, ArrayFile, OpenFile
from gumbelrace.tables.rowfile import Layout, Reads, RowFile
from gumbelrace.tables.source import no_room, room_for

NARROWEST = np.dtype(np.int8)
# What is done with the columns of some rows, the first of which has this number, before they are written.
Look = Callable[[list[NDArray[Any]], int], None]


def ignore(columns: list[NDArray[Any]], first: int) -> None:
    """Do not look at the columns."""


class Copy:
    """A temporary file of rows that grows."""

    def __init__(self, types: Sequence[np.dtype[Any]] | None, columns: int) -> None:
        self.file: Any = tempfile.TemporaryFile()  # noqa: SIM115 (`copied` closes it)
        self.rows, self.are_known = 0, types is not None
        self.types = [NARROWEST] * columns if types is None else list(types)

    @property
    def layout(self) -> Layout:
        """How the rows lie in the file."""
        return Layout(0, row_type(self.types), self.rows, len(self.types))

    def append(self, columns: Sequence[NDArray[Any]]) -> None:
        """Write some rows."""
        if not self.are_known:
            found = [narrowest(column) for column in columns]
            self._widen([np.promote_types(*pair) for pair in zip(self.types, found, strict=True)])
        self.file.write(as_rows(columns, row_type(self.types)).data)
        self.rows += len(columns[0])

    def _widen(self, types: list[np.dtype[Any]]) -> None:
        if types == self.types:
            return
        before, layout = self.file, self.layout
        self.file = tempfile.TemporaryFile()  # noqa: SIM115
        self.types, every = types, np.arange(len(types))
        old, step = RowFile(before, layout, "the temporary file"), max(1, PIECE_BYTES // layout.together)
        before.flush()
        for first in range(0, self.rows, step):
            columns = old.read_columns(first, min(step, self.rows - first), every)
            self.file.write(as_rows(columns, row_type(types)).data)
        before.close()


def row_type(types: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """Give the type of a number if it is the same in all columns, else that of a row."""
    if len(set(types)) == 1:
        return types[0]
    return np.dtype([(f"{column}", dtype) for column, dtype in enumerate(types)])


def as_rows(columns: Sequence[NDArray[Any]], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Put columns side by side."""
    if not dtype.names:
        return np.stack(columns, axis=1, dtype=dtype, casting="unsafe")
    rows = np.empty(len(columns[0]), dtype)
    for name, column in zip(dtype.names, columns, strict=True):
        rows[name] = column
    return rows


@contextmanager
def copied(
    file: OpenFile,
    names: Sequence[str],
    look: Look = ignore,
    advance: Callable[[float], None] = lambda done: None,
    reads: Reads | None = None,
) -> Iterator[ArrayFile]:
    """Copy columns to a temporary file, which is gone at the end; its folder must have the room."""
    types = None if file.types is None else [file.types[file.names.index(name)] for name in names]
    copy = Copy(types, len(names))
    try:
        with room_for(file.name):
            _fill(copy, file, names, look, advance)
        yield ArrayFile(RowFile(copy.file, copy.layout, "the temporary file", reads), file.name, names)
    finally:
        copy.file.close()


def _fill(
    copy: Copy, file: OpenFile, names: Sequence[str], look: Look, advance: Callable[[float], None]
) -> None:
    if file.rows is not None:
        check_room(file.rows * copy.layout.together, file.name)
    for columns in file.arrays(names, processors()):
        look(columns, copy.rows)
        copy.append(columns)
        advance(file.done())
        if file.rows is None:
            expected = copy.rows * copy.layout.together * (file.total / max(file.done(), 1) - 1.0)
            check_room(expected, file.name)
    copy.file.flush()


def check_room(size: float, name: str) -> None:
    """Refuse what will not fit into the folder of temporary files."""
    if size > shutil.disk_usage(tempfile.gettempdir()).free:
        raise InvalidFile(no_room(name))
