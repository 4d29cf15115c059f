"""Parquet files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gumbelrace.errors import InvalidArgument, InvalidFile
from gumbelrace.optional import optional
from gumbelrace.population.arrays import LARGEST_WHOLE, ROUNDED
from gumbelrace.population.base import Floats
from gumbelrace.tables.checks import listed

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
        self._file, self._path, self._done = file, path, 0
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

    def numbers(self, names: Sequence[str]) -> Iterator[Floats]:
        """Read batches of rows, as numbers."""
        pa = optional("pyarrow", "cli")
        self._check_types(names)
        for batch in self.batches(names):
            # A missing number becomes NaN, which is an error later.
            columns = (column.cast(pa.float64(), safe=False) for column in batch.columns)
            block = np.column_stack([column.to_numpy(zero_copy_only=False) for column in columns])
            self._check_rounding(block, batch)
            yield block

    def _check_types(self, names: Sequence[str]) -> None:
        types = optional("pyarrow.types", "cli")
        numeric = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
        kinds = {name: self._file.schema_arrow.field(name).type for name in names}
        others = [name for name, kind in kinds.items() if not any(test(kind) for test in numeric)]
        if others:
            raise InvalidArgument(
                f"{self._path}: there are no numbers in {listed(others)}; "
                "choose columns of numbers by --columns"
            )

    def _check_rounding(self, block: Floats, batch: Any) -> None:
        """Refuse numbers that were not floating-point numbers and are too large to become some."""
        types = optional("pyarrow.types", "cli")
        for place in np.flatnonzero((np.abs(block) >= LARGEST_WHOLE).any(axis=0)).tolist():
            if not types.is_floating(batch.schema.field(place).type):
                raise InvalidFile(f"{self._path}: column {batch.schema.names[place]!r} has {ROUNDED}")
