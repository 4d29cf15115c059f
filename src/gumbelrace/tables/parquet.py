"""Reading .parquet, by pyarrow."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gumbelrace.cli.checks import listed
from gumbelrace.cli.rows import Indices
from gumbelrace.cli.streamed import HELD, Streamed
from gumbelrace.errors import InvalidArgument, InvalidFile
from gumbelrace.optional import optional
from gumbelrace.population.arrays import LARGEST_WHOLE, ROUNDED
from gumbelrace.population.base import Floats

BUFFER_BYTES = 2**20


@contextmanager
def parquet_table(path: Path) -> Iterator[Streamed]:
    """Open a .parquet file."""
    parquet = parquet_package()
    with readable(path), parquet.ParquetFile(path, buffer_size=BUFFER_BYTES, pre_buffer=False) as file:
        table = ParquetTable(file, path)
        yield Streamed(table.names, table.batches, lambda: table.done, file.metadata.num_rows)


def parquet_package() -> Any:
    """Give the part of pyarrow that reads and writes .parquet."""
    return optional("pyarrow.parquet", "parquet")


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Say in our words what keeps a file from being read."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise  # of the system, in its own words
        raise InvalidFile(
            f"{path} is not a .parquet file, or is damaged ({error}); write it again"
        ) from error


class ParquetTable:
    """A .parquet file, its numbers read in batches of rows.

    Attributes
    ----------
    names : list of str
        Names of its columns, without those that are an index of pandas.
    done : int
        Rows read so far.
    """

    def __init__(self, file: Any, path: Path) -> None:
        self._file, self._path, self.done = file, path, 0
        index = (file.schema_arrow.pandas_metadata or {}).get("index_columns", [])
        self.names = [name for name in file.schema_arrow.names if name not in index]

    def batches(self, columns: Indices) -> Iterator[Floats]:
        """Read batches of rows."""
        import pyarrow as pa

        names = [self.names[column] for column in columns]
        self._check_types(names)
        for batch in self._file.iter_batches(max(1, HELD // len(names)), columns=names):
            self.done += batch.num_rows
            # A missing number becomes NaN, which is an error later.
            numbers = (batch.column(name).cast(pa.float64(), safe=False) for name in names)
            block = np.column_stack([column.to_numpy(zero_copy_only=False) for column in numbers])
            self._check_rounding(block, names)
            yield block

    def _check_rounding(self, block: Floats, names: list[str]) -> None:
        """Refuse numbers that were not floating-point numbers and are too large to become some."""
        from pyarrow import types

        large = np.flatnonzero((np.abs(block) >= LARGEST_WHOLE).any(axis=0))
        for name in (names[column] for column in large):
            if not types.is_floating(self._file.schema_arrow.field(name).type):
                raise InvalidFile(f"{self._path}: column {name!r} has {ROUNDED}")

    def _check_types(self, names: list[str]) -> None:
        texts = [name for name in names if not is_numeric(self._file.schema_arrow.field(name).type)]
        if texts:
            raise InvalidArgument(
                f"{self._path}: there are no numbers in {listed(texts)}; "
                "choose columns of numbers by --columns"
            )


def is_numeric(kind: Any) -> bool:
    """Whether a type of Arrow holds real numbers or truth values."""
    from pyarrow import types

    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return any(test(kind) for test in tests)
