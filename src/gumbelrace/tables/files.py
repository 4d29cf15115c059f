"""Opening tables: .npy as they lie, .csv and .parquet by way of a temporary file."""

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gumbelrace.cli.checks import Allowed, listed
from gumbelrace.cli.from_csv import csv_table
from gumbelrace.cli.from_parquet import parquet_table
from gumbelrace.cli.rows import Indices, Layout, RowFile
from gumbelrace.cli.runs import Scores
from gumbelrace.cli.streamed import Streamed, written
from gumbelrace.errors import InvalidArgument, InvalidFile

KINDS = ".npy, .csv, .csv.gz or .parquet"
STREAMED = {".csv": csv_table, ".csv.gz": csv_table, ".parquet": parquet_table, ".pq": parquet_table}
NUMBERS = "bool, int, uint, float16, float32 or float64"


class Wanted(NamedTuple):
    """What of a table is wanted."""

    allowed: Allowed
    columns: Sequence[str] | None = None  # None: all
    lowest: bool = False


def opened(path: Path, wanted: Wanted) -> AbstractContextManager[Scores]:
    """Open a table."""
    if path.is_dir():
        raise InvalidFile(f"{path} is a folder; give a {KINDS} file")
    if not path.exists():
        raise InvalidFile(f"{path} does not exist; give a {KINDS} file")
    ending = next((e for e in (".npy", *STREAMED) if path.name.lower().endswith(e)), None)
    if ending is None:
        raise InvalidFile(f"{path} is of a kind that cannot be read; convert it to {KINDS}")
    if path.stat().st_size == 0:
        raise InvalidFile(f"{path} is empty; write it again")
    return _npy(path, wanted) if ending == ".npy" else _streamed(STREAMED[ending](path), path, wanted)


@contextmanager
def _npy(path: Path, wanted: Wanted) -> Iterator[Scores]:
    with open(path, "rb", buffering=0) as file:
        layout = npy_layout(file, path)
        columns = chosen(wanted.columns, [str(number) for number in range(layout.columns)], path)
        names = tuple(columns.tolist())
        bounds = (wanted.allowed.low, wanted.allowed.high) if wanted.allowed.given else None
        if bounds is None and layout.dtype == np.bool_:
            bounds = (0.0, 1.0)
        sides = None if bounds is None else (np.full(len(names), bounds[0]), np.full(len(names), bounds[1]))
        rows = RowFile(file, layout, str(path))
        yield Scores(rows, columns, names, wanted.allowed, sides, lowest=wanted.lowest)


@contextmanager
def _streamed(table: AbstractContextManager[Streamed], path: Path, wanted: Wanted) -> Iterator[Scores]:
    with table as source:
        columns = chosen(wanted.columns, source.names, path)
        names = tuple(source.names[column] for column in columns)
        with written(source, columns, wanted.allowed, path) as (rows, bounds):
            every = np.arange(len(names))
            yield Scores(rows, every, names, wanted.allowed, bounds, checked=True, lowest=wanted.lowest)


def npy_layout(file: Any, path: Path) -> Layout:
    """Read the head of a .npy file."""
    try:
        version = np.lib.format.read_magic(file)
        head = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, by_column, dtype = head(file)
    except (ValueError, KeyError, EOFError) as error:
        raise InvalidFile(f"{path} is not a .npy file, or is damaged; save it again by np.save") from error
    check_dtype(dtype, path)
    check_shape(shape, path)
    layout = Layout(file.tell(), dtype, shape[0], shape[1], by_column)
    present = path.stat().st_size
    if present < layout.size:
        raise InvalidFile(
            f"{path} has {present:,} bytes of {layout.size:,}: its end is missing; save or copy it again"
        )
    return layout


def check_dtype(dtype: np.dtype[Any], path: Path) -> None:
    """Check that an array holds real numbers."""
    if dtype.hasobject:
        raise InvalidFile(
            f"{path} holds Python objects, which are not opened since they may run code; "
            "save the numbers: np.save(file, array.astype(float))"
        )
    if dtype.names:
        raise InvalidFile(f"{path} has named fields; save it as a 2-D array of numbers, or as .parquet")
    if dtype.kind not in "biuf":
        raise InvalidFile(f"{path} holds {dtype.name}; convert it to {NUMBERS}")


def check_shape(shape: tuple[int, ...], path: Path) -> None:
    """Check that an array is a table with something in it."""
    if len(shape) != 2:
        raise InvalidFile(
            f"{path} has shape {shape}; it must be (rows, columns), with a column for each candidate"
        )
    if shape[0] == 0:
        raise InvalidFile(f"{path} has no rows; give at least one")


def named(columns: str | None) -> list[str] | None:
    """Take names apart that have commas in between."""
    return None if columns is None else [name.strip() for name in next(csv.reader([columns]), [])]


def chosen(wanted: Sequence[str] | None, names: Sequence[str], path: Path) -> Indices:
    """Give the numbers of the columns that are wanted."""
    wanted = names if wanted is None else wanted
    number = {name: column for column, name in enumerate(names)}
    unknown = [name for name in wanted if name not in number]
    if unknown:
        raise InvalidArgument(f"{path} has no column {unknown[0]!r}; it has {listed(names)}")
    counts = Counter(names), Counter(wanted)
    repeated = [name for name in wanted if max(count[name] for count in counts) > 1]
    if repeated:
        raise InvalidArgument(f"{path}: column {repeated[0]!r} is there twice; name each column once")
    if len(wanted) < 2:
        raise InvalidArgument(
            f"{path}: with {listed(wanted) or 'no column'} alone there is nothing to choose from; "
            "give two or more columns"
        )
    return np.array([number[name] for name in wanted])
