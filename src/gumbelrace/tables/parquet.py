"""Parquet files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gumbelrace.errors import InvalidFile, optional

BUFFER_BYTES = 2**20
# Most cells that are held at a time.
HELD = 2**18


@contextmanager
def parquet_file(path: Path) -> Iterator["ParquetFile"]:
    """Open a Parquet file; say in our words what keeps it from being read."""
    pa, parquet = optional("pyarrow", "cli"), optional("pyarrow.parquet", "cli")
    try:
        with parquet.ParquetFile(path, buffer_size=BUFFER_BYTES, pre_buffer=False) as file:
            yield ParquetFile(file, path)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise  # of the system, in its own words
        raise InvalidFile(
            f"{path} is not a .parquet file, or is damaged ({error}); write it again"
        ) from error


class ParquetFile:
    """A Parquet file, read in batches of rows. See `columns.ColumnFile`."""

    def __init__(self, file: Any, path: Path) -> None:
        self._file, self.path, self._done = file, path, 0
        self.names, self.total = list(file.schema_arrow.names), file.metadata.num_rows

    def done(self) -> int:
        """Count the rows read so far."""
        return self._done

    def candidates(self) -> list[str]:
        """Give the names of the columns, without those that are an index of pandas."""
        index = (self._file.schema_arrow.pandas_metadata or {}).get("index_columns", [])
        return [name for name in self.names if name not in index]

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Read batches of rows, of the types that the file says."""
        for batch in self._file.iter_batches(max(1, HELD // max(1, len(names))), columns=list(names)):
            self._done += batch.num_rows
            yield batch.select(list(names))
