"""Tables written row by row, some rows at a time: .npy, Parquet or CSV."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from gumbelrace.errors import optional
from gumbelrace.tables.npy_head import write_npy_head
from gumbelrace.tables.rowwise import Bytes, Rowwise

# Bytes written at a time: for more, the system looks for memory that lies side by side, which takes long.
PIECE = 2**16


class Writer(Protocol):
    """An open file that rows are written to."""

    def write(self, block: Bytes) -> Any:
        """Write some rows."""


@contextmanager
def open_writer(path: Path, kind: str, rows: Rowwise) -> Iterator[Writer]:
    """Open a file for all rows of a table; at the end they are on disk."""
    with open(path, "wb") as file:
        with _npy(file, rows) if kind == ".npy" else _arrow(file, kind, rows) as writer:
            yield writer
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _npy(file: Any, rows: Rowwise) -> Iterator[Writer]:
    shape = (rows.size,) if rows.dtype.names else (rows.size, len(rows.columns))
    write_npy_head(file, rows.dtype, shape)
    yield _Bytes(file)


class _Bytes:
    """Rows written as they lie in memory."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, block: Bytes) -> None:
        """Write some rows."""
        write_all(self._file, block)


def write_all(file: Any, rows: Bytes) -> None:
    """Write all bytes of some rows."""
    left = rows.reshape(-1).data
    while len(left):
        left = left[file.write(left[:PIECE]) :]


@contextmanager
def _arrow(file: Any, kind: str, rows: Rowwise) -> Iterator[Writer]:
    pa = optional("pyarrow", "cli")
    schema = pa.schema(
        [(name, pa.from_numpy_dtype(dtype)) for name, dtype in zip(rows.columns, rows.types, strict=True)]
    )
    if kind == ".parquet":
        opened = optional("pyarrow.parquet", "cli").ParquetWriter(file, schema)
    else:
        opened = optional("pyarrow.csv", "cli").CSVWriter(file, schema)
    with opened:
        yield _Columns(opened, schema, rows)


class _Columns:
    """Rows written column by column."""

    def __init__(self, opened: Any, schema: Any, rows: Rowwise) -> None:
        self._opened, self._schema, self._rows = opened, schema, rows

    def write(self, block: Bytes) -> None:
        """Write some rows."""
        pa = optional("pyarrow", "cli")
        columns = [pa.array(np.ascontiguousarray(column)) for column in self._rows.columns_in(block)]
        self._opened.write_table(pa.Table.from_arrays(columns, schema=self._schema))
