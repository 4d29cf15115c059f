"""Named columns of CSV and Parquet files, read by pyarrow from front to back in batches of rows."""

import csv
import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument, InvalidFile, optional
from gumbelrace.tables.ahead import side_by_side
from gumbelrace.tables.delimited import NOT_UTF8, CsvFile, Dialect
from gumbelrace.tables.numbers import float_array, listed, number_type, plain_array, typed_columns
from gumbelrace.tables.rowfile import Reads
from gumbelrace.tables.source import Source, open_source

# Bytes of a Parquet file read at a time, and the most cells that are held.
PARQUET_BUFFER, PARQUET_CELLS = 2**20, 2**18
RECOGNISED = Dialect()


@contextmanager
def open_columns(path: Path, dialect: Dialect = RECOGNISED) -> Iterator["ColumnFile"]:
    """Open a file of columns; say in our words what keeps it from being read."""
    with open_source(path) as source, columns_of(source, dialect) as file:
        yield file


@contextmanager
def columns_of(
    source: Source, dialect: Dialect = RECOGNISED, reads: Reads | None = None
) -> Iterator["ColumnFile"]:
    """Read an open file as one of columns."""
    pa, name, kind = optional("pyarrow", "cli"), source.name, source.kind
    reads = reads or Reads()
    try:
        yield (
            ParquetFile(source, reads) if kind in (".parquet", ".pq") else CsvFile(source, dialect, reads)
        )
    except UnicodeDecodeError as error:
        raise InvalidFile(NOT_UTF8.format(name)) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InvalidFile(f"{name} is not a gzip file, or is damaged; compress it again") from error
    except (csv.Error, pa.ArrowException, OSError) as error:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno):
            raise  # of the system, in its own words
        raise InvalidFile(
            f"{name} is not a {kind} file, or is damaged ({error}); write it again"
        ) from error


class ParquetFile:
    """An open Parquet file: its `names` are those of all columns, `total` is the number of its rows."""

    separator, decimal = None, "."
    has_names = True

    def __init__(self, source: Source, reads: Reads) -> None:
        self._source, self._reads, self._done, self.name = source, reads, 0, source.name
        self._file = self._opened(source.file)
        self.names = list(self._file.schema_arrow.names)
        self.rows: int = self._file.metadata.num_rows
        self.total = self.rows

    @cached_property
    def types(self) -> list[np.dtype[Any]]:
        """The type of each column; where it has gaps or no plain numbers, float64."""
        schema, metadata = self._file.schema_arrow, self._file.metadata
        places = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
        return [self._type(field, places.get(field.name)) for field in schema]

    def done(self) -> int:
        """Give how much of `total` has been read."""
        return self._done

    def candidates(self) -> list[str]:
        """Give the names of the columns that can be compared: not those that are an index of pandas."""
        index = (self._file.schema_arrow.pandas_metadata or {}).get("index_columns", [])
        return [name for name in self.names if name not in index]

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Read some columns as record batches of Arrow, of the types that the file says."""
        self._done = 0
        for batch in self._file.iter_batches(_most_rows(names), columns=list(names)):
            self._done += batch.num_rows
            yield batch.select(list(names))

    def arrays(
        self, names: Sequence[str], workers: int = 1, rows: int | None = None
    ) -> Iterator[list[NDArray[Any]]]:
        """Read some columns as arrays; threads read the next groups of rows meanwhile."""
        groups, self._done = range(self._file.metadata.num_row_groups), 0
        parts = [partial(self._group, group, list(names)) for group in groups]
        types = [self.types[self.names.index(name)] for name in names]
        for batch in side_by_side(parts, workers if self._source.path else 1):
            found = typed_columns(batch, types, self.name, self._done)
            self._done += batch.num_rows
            yield found

    def _group(self, group: int, names: list[str]) -> Iterator[Any]:
        """Read a group of rows from a file of its own: threads cannot share one."""
        path = self._source.path
        with nullcontext(self._source.file) if path is None else open(path, "rb") as file:
            self._note(group, names)
            opened = self._opened(file, self._file.metadata)
            for batch in opened.iter_batches(_most_rows(names), row_groups=[group], columns=names):
                yield batch.select(names)

    def _opened(self, file: Any, metadata: Any = None) -> Any:
        parquet = optional("pyarrow.parquet", "cli")
        return parquet.ParquetFile(file, metadata=metadata, buffer_size=PARQUET_BUFFER, pre_buffer=False)

    def _type(self, field: Any, place: int | None) -> np.dtype[Any]:
        found = number_type(field.type)
        if found is None or (found.kind != "f" and (place is None or self._has_gaps(place))):
            return np.dtype(np.float64)
        return found

    def _has_gaps(self, place: int) -> bool:
        """Whether a cell of a column may be missing."""
        metadata = self._file.metadata
        groups = (metadata.row_group(i).column(place).statistics for i in range(metadata.num_row_groups))
        return any(found is None or not found.has_null_count or found.null_count > 0 for found in groups)

    def _note(self, group: int, names: Sequence[str]) -> None:
        """Note the bytes of a group of rows that will be read, in the order in which they lie."""
        row_group = self._file.metadata.row_group(group)
        columns = (row_group.column(i) for i in range(row_group.num_columns))
        wanted = [column for column in columns if column.path_in_schema.split(".")[0] in names]
        starts = [column.dictionary_page_offset or column.data_page_offset for column in wanted]
        for start, column in sorted(zip(starts, wanted, strict=True), key=lambda pair: pair[0]):
            self._reads.note(start, column.total_compressed_size)


def _most_rows(names: Sequence[str]) -> int:
    return max(1, PARQUET_CELLS // max(1, len(names)))


ColumnFile = CsvFile | ParquetFile


def find_name(wanted: str, names: Sequence[str], file: str, option: str = "") -> str:
    """Find the column that is meant: spelt so, or else in other case; it must be there once.

    `option` is how a user names another one.

    Examples
    --------
    >>> find_name("author", ["Author", "Year"], "mentions.csv")
    'Author'
    """
    exact = [name for name in names if name == wanted]
    alike = exact or [name for name in names if name.casefold() == wanted.casefold()]
    if not alike or not wanted:
        remedy = f"name one of {listed(names)} by {option}" if option else f"it has {listed(names)}"
        raise InvalidArgument(f"{file} has no column {wanted!r}; {remedy}")
    if len(alike) > 1:
        raise InvalidArgument(f"{file}: column {wanted!r} is there twice; name each column once")
    return alike[0]


def read_columns(path: str | Path, names: Sequence[str]) -> list[Any]:
    r"""Read some columns, each as an array, of a file of columns with one row or more.

    Cells are texts without spaces around them if the file is CSV, and what the file says if it is Parquet,
    times as clocks show them in their zone. See `texts`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mentions.csv"
    ...     _ = path.write_text("author,title,year\nWei Li,On races,1999\nBo Ma, ,\n")
    ...     [column.tolist() for column in read_columns(path, ["year", "title"])]
    [['1999', ''], ['On races', '']]
    """
    with open_columns(Path(path)) as file:
        return cells_of(file, [find_name(name, file.names, file.name) for name in names])


def cells_of(file: ColumnFile, names: Sequence[str]) -> list[Any]:
    """Read some columns of an open file, each as an array; see `read_columns`."""
    pa, batches = optional("pyarrow", "cli"), list(file.batches(names))
    if not any(batch.num_rows for batch in batches):
        raise InvalidFile(f"{file.name} has no rows; give at least one")
    return [_cells(pa.chunked_array([batch.column(i) for batch in batches])) for i in range(len(names))]


def _cells(chunks: Any) -> NDArray[Any]:
    """Give numbers and times as such, NaN and NaT where they are missing, and all else as objects."""
    pa, compute = optional("pyarrow", "cli"), optional("pyarrow.compute", "cli")
    column = pa.concat_arrays(chunks.chunks)
    if pa.types.is_string(column.type):
        column = compute.utf8_trim_whitespace(column)
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s"))
    if pa.types.is_timestamp(column.type):
        local = compute.local_timestamp(column) if column.type.tz else column
        counts = plain_array(local.cast(pa.int64()), np.int64, missing=np.iinfo(np.int64).min)
        return counts.view(f"datetime64[{column.type.unit}]")  # the least is NaT
    if pa.types.is_integer(column.type) and column.null_count == 0:
        return plain_array(column.cast(pa.int64()), np.int64)
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return float_array(column)
    return np.array(column.to_pylist(), dtype=object)


def texts(column: Any) -> list[str]:
    """Turn a column that `read_columns` gave into texts, "" where a cell is missing."""
    return [_text(cell) for cell in column]


def _text(cell: Any) -> str:
    if cell is None or cell != cell:  # missing, or NaN
        return ""
    whole = isinstance(cell, float) and cell.is_integer()  # a whole number in a column with missing ones
    return str(int(cell) if whole else cell).strip()
