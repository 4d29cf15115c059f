"""Named columns of CSV and Parquet files."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from gumbelrace.errors import InvalidArgument, InvalidFile, optional
from gumbelrace.tables.csv import csv_file
from gumbelrace.tables.numbers import listed
from gumbelrace.tables.parquet import parquet_file


class ColumnFile(Protocol):
    """An open file, read from front to back in batches of rows."""

    path: Path
    names: list[str]
    total: float  # how much there is to read

    def done(self) -> float:
        """Give how much of `total` has been read."""

    def candidates(self) -> list[str]:
        """Give the names of the columns that can be compared."""

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Read some columns as record batches of Arrow."""


OPENERS: dict[str, Callable[[Path], AbstractContextManager[ColumnFile]]] = {
    ".csv": csv_file,
    ".csv.gz": csv_file,
    ".parquet": parquet_file,
    ".pq": parquet_file,
}


def open_columns(path: Path) -> AbstractContextManager[ColumnFile]:
    """Open a file of columns."""
    return OPENERS[ending(path)](path)


def ending(path: Path, *more: str) -> str:
    """Give the ending of a file of columns, or of one of `more` kinds, that can be opened."""
    kinds = ", ".join([*more, ".csv", ".csv.gz or .parquet"])
    if path.is_dir():
        raise InvalidFile(f"{path} is a folder; give a {kinds} file")
    if not path.exists():
        raise InvalidFile(f"{path} does not exist; give a {kinds} file")
    found = next((end for end in (*more, *OPENERS) if path.name.lower().endswith(end)), None)
    if found is None:
        raise InvalidFile(f"{path} is of a kind that cannot be read; convert it to {kinds}")
    if path.stat().st_size == 0:
        raise InvalidFile(f"{path} is empty; write it again")
    return found


def check_names(wanted: Sequence[str], names: Sequence[str], path: str | Path) -> None:
    """Check that each of the columns that are wanted is there, and there once."""
    counts = Counter(names)
    for name in wanted:
        if name not in counts:
            raise InvalidArgument(f"{path} has no column {name!r}; it has {listed(names)}")
        if counts[name] > 1:
            raise InvalidArgument(f"{path}: column {name!r} is there twice; name each column once")


def column_names(path: str | Path) -> list[str]:
    """Give the names of the columns of a file that ends in .csv, .csv.gz or .parquet."""
    with open_columns(Path(path)) as file:
        return file.names


def read_columns(path: str | Path, names: Sequence[str]) -> list[Any]:
    r"""Read some columns of a file that has one row or more.

    Parameters
    ----------
    path : str or Path
        A file that ends in .csv, .csv.gz or .parquet; CSV is UTF-8 with commas and a header.
    names : sequence of str
        The columns.

    Returns
    -------
    list of ndarray
        For each name its cells: texts without spaces around them if the file is CSV, and what the file says
        if it is Parquet, times as clocks show them in their zone. See `texts`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mentions.csv"
    ...     _ = path.write_text("author,title,year\nWei Li,On races,1999\nBo Ma, ,\n")
    ...     [column.tolist() for column in read_columns(path, ["year", "title"])]
    [['1999', ''], ['On races', '']]
    """
    pa = optional("pyarrow", "cli")
    with open_columns(Path(path)) as file:
        check_names(names, file.names, path)
        batches = list(file.batches(names))
    if not any(batch.num_rows for batch in batches):
        raise InvalidFile(f"{path} has no rows; give at least one")
    columns = (pa.chunked_array([batch.column(i) for batch in batches]) for i in range(len(names)))
    return [_cells(column) for column in columns]


def texts(column: Any) -> list[str]:
    """Turn a column that `read_columns` gave into texts, "" where a cell is missing."""
    return [_text(cell) for cell in column]


def _cells(column: Any) -> Any:
    types, compute = optional("pyarrow.types", "cli"), optional("pyarrow.compute", "cli")
    if types.is_string(column.type):
        column = compute.utf8_trim_whitespace(column)
    if getattr(column.type, "tz", None):
        column = compute.local_timestamp(column)
    return column.to_numpy()


def _text(cell: Any) -> str:
    if cell is None or cell != cell:  # missing, or NaN
        return ""
    whole = isinstance(cell, float) and cell.is_integer()  # a whole number in a column with missing ones
    return str(int(cell) if whole else cell).strip()
