"""Named columns of tables in files: CSV, CSV compressed by gzip, and Parquet."""

import csv
import gzip
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gumbelrace.errors import InvalidArgument
from gumbelrace.optional import optional


def column_names(path: str | Path) -> list[str]:
    """Give the names of a file's columns.

    Parameters
    ----------
    path : str or Path
        A file that ends in .csv, .csv.gz or .parquet; CSV is UTF-8 with commas and a header.
    """
    path = _existing(path)
    if _is_parquet(path):
        with _parquet(path) as parquet:
            return list(map(str, parquet.read_schema(path).names))
    with _csv(path) as reader:
        return _header(reader)


def read_columns(path: str | Path, names: Sequence[str]) -> list[Any]:
    r"""Read some columns of a file that has one row or more.

    Parameters
    ----------
    path : str or Path
        As in `column_names`.
    names : sequence of str
        The columns.

    Returns
    -------
    list
        For each name, the texts of its cells without spaces around them if the file is CSV, and an array of
        the type that the file says if it is Parquet. See `texts`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mentions.csv"
    ...     _ = path.write_text("author,title,year\nWei Li,On races,1999\nBo Ma, ,\n")
    ...     read_columns(path, ["year", "title"])
    [['1999', ''], ['On races', '']]
    """
    path = _existing(path)
    columns = _from_parquet(path, names) if _is_parquet(path) else _from_csv(path, names)
    if columns and len(columns[0]) == 0:
        raise InvalidArgument(f"{path} holds a header and no rows")
    return columns


def texts(column: Any) -> list[str]:
    """Turn a column that `read_columns` gave into texts, "" where a cell is missing."""
    return [_text(cell) for cell in column]


def _text(cell: Any) -> str:
    if cell is None or cell != cell:  # missing, or NaN
        return ""
    whole = isinstance(cell, float) and cell.is_integer()  # a whole number in a column with missing ones
    return str(int(cell) if whole else cell).strip()


def _existing(path: str | Path) -> Path:
    path = Path(path)
    if not path.is_file():
        raise InvalidArgument(f"there is no file {path}; give the path of a CSV or Parquet file")
    return path


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() == ".parquet"


@contextmanager
def _csv(path: Path) -> Iterator[Any]:
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            yield csv.reader(file)
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidArgument(f"{path} is no CSV file that can be read: {error}") from error


def _header(reader: Any) -> list[str]:
    return [name.strip() for name in next(reader, [])]


def _from_csv(path: Path, names: Sequence[str]) -> list[Any]:
    with _csv(path) as reader:
        header = _header(reader)
        _check(names, header, path)
        places = [header.index(name) for name in names]
        columns: list[Any] = [[] for _ in names]
        for cells in filter(None, reader):  # blank lines hold nothing
            if len(cells) != len(header):
                raise InvalidArgument(
                    f"{path}, line {reader.line_num}: {len(cells)} cells; there are {len(header)} columns"
                )
            for column, place in zip(columns, places, strict=True):
                column.append(cells[place].strip())
        return columns


@contextmanager
def _parquet(path: Path) -> Iterator[Any]:
    pyarrow, parquet = (optional(name, "parquet") for name in ("pyarrow", "pyarrow.parquet"))
    try:
        yield parquet
    except pyarrow.ArrowException as error:
        raise InvalidArgument(f"{path} is no Parquet file that can be read: {error}") from error


def _from_parquet(path: Path, names: Sequence[str]) -> list[Any]:
    with _parquet(path) as parquet:
        _check(names, parquet.read_schema(path).names, path)
        table = parquet.read_table(path, columns=list(names))
    return [_clock(table[name]).to_numpy() for name in names]


def _clock(column: Any) -> Any:
    """Give the local time of a column of times with a zone; any other column as it is."""
    from pyarrow import compute

    return compute.local_timestamp(column) if getattr(column.type, "tz", None) else column


def _check(names: Sequence[str], found: Sequence[str], path: Path) -> None:
    for name in names:
        if name not in found:
            raise InvalidArgument(
                f"{path} has no column {name!r}; its columns are {', '.join(found) or 'none'}"
            )
        if found.count(name) > 1:
            raise InvalidArgument(f"{path} has {found.count(name)} columns {name!r}; rename all but one")
