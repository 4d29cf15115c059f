"""Rows of a table as bytes, one below the other: what is moved when rows change places."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidFile
from gumbelrace.tables.disk import DiskTable
from gumbelrace.tables.population import INDEX_MOST, counts_rows

Bytes = NDArray[np.uint8]


class Rowwise:
    """A table by rows. `dtype` is that of a number, if all columns have the same, or else that of a row."""

    def __init__(self, table: DiskTable, missing: bool = False) -> None:
        self._table, self._missing, self.columns, self.size = table, missing, table.columns, table.size
        self.types = types = list(table.dtypes.values())
        mixed = list(zip(self.columns, types, strict=True))
        self.dtype = types[0] if len(set(types)) == 1 else np.dtype(mixed)
        self.row_bytes = sum(dtype.itemsize for dtype in types)

    @property
    def counted(self) -> bool:
        """Whether the first column counts the rows."""
        first = next(self._table.chunks(self.columns[:1], INDEX_MOST)).columns[self.columns[0]]
        return first.dtype != np.bool_ and counts_rows(first)

    @property
    def bytes(self) -> int:
        """Bytes of all rows."""
        return self.size * self.row_bytes

    def blocks(self, count: int) -> Iterator[Bytes]:
        """Read `count` rows at a time, and check that no number is missing."""
        first = 0
        for block in self._table.row_blocks(self.dtype, count):
            if not self._missing:
                self._check(first, block)
            first += len(block)
            yield block.reshape(-1).view(np.uint8).reshape(len(block), self.row_bytes)

    def _check(self, first: int, block: NDArray[Any]) -> None:
        if self.dtype.kind in "biu" or (self.dtype.kind == "f" and not np.isnan(block.min())):
            return
        for name, column in zip(self.columns, columns_of_rows(block), strict=True):
            if column.dtype.kind == "f" and np.isnan(column.min()):
                row = first + int(np.argmax(np.isnan(column)))
                raise InvalidFile(
                    f"{self._table.name}: row {row} (counted from 0), column {name!r} is nan; replace it, "
                    "leave the column out, or allow for it by --missing"
                )

    def columns_in(self, rows: Bytes) -> list[NDArray[Any]]:
        """Give the columns of rows that have been moved."""
        typed = rows.reshape(-1).view(self.dtype)
        return columns_of_rows(typed if self.dtype.names else typed.reshape(len(rows), -1))


def columns_of_rows(rows: NDArray[Any]) -> list[NDArray[Any]]:
    return [rows[name] for name in rows.dtype.names] if rows.dtype.names else list(rows.T)
