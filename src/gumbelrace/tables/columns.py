"""Named columns of CSV and Parquet files, read by pyarrow from front to back in batches of rows.

CSV is UTF-8 with commas, plain or compressed by gzip, and has the columns' names in its first line. Here
is also decided which texts stand for numbers, and which numbers are allowed.
"""

import csv
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument, InvalidFile, InvalidReward, RewardOutOfRange, optional
from gumbelrace.population.arrays import LARGEST_REWARD, LARGEST_WHOLE, ROUNDED
from gumbelrace.population.base import Floats

TRUTH = {"true": 1.0, "false": 0.0}
ENDINGS = (".csv", ".csv.gz", ".parquet", ".pq")
# Bytes of a CSV file parsed at a time; a row that is longer needs one of the larger blocks.
CSV_BLOCKS = (2**20, 2**24, 2**27)
# Bytes of a Parquet file read at a time, and the most cells that are held.
PARQUET_BUFFER, PARQUET_CELLS = 2**20, 2**18
NOT_UTF8 = "{} is not in UTF-8; convert it, or save it as .parquet"


@contextmanager
def open_columns(path: Path) -> Iterator["ColumnFile"]:
    """Open a file of columns; say in our words what keeps it from being read."""
    kind = ending(path)
    pa = optional("pyarrow", "cli")
    try:
        with open(path, "rb") as raw:
            yield CsvFile(raw, path) if kind.startswith(".csv") else ParquetFile(raw, path)
    except UnicodeDecodeError as error:
        raise InvalidFile(NOT_UTF8.format(path)) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InvalidFile(f"{path} is not a gzip file, or is damaged; compress it again") from error
    except (csv.Error, pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise  # of the system, in its own words
        raise InvalidFile(
            f"{path} is not a {kind} file, or is damaged ({error}); write it again"
        ) from error


def ending(path: Path, *more: str) -> str:
    """Give the ending of a file of columns, or of one of `more` kinds, that can be opened."""
    kinds = ", ".join([*more, ".csv", ".csv.gz or .parquet"])
    if path.is_dir():
        raise InvalidFile(f"{path} is a folder; give a {kinds} file")
    if not path.exists():
        raise InvalidFile(f"{path} does not exist; give a {kinds} file")
    found = next((end for end in (*more, *ENDINGS) if path.name.lower().endswith(end)), None)
    if found is None:
        raise InvalidFile(f"{path} is of a kind that cannot be read; convert it to {kinds}")
    if path.stat().st_size == 0:
        raise InvalidFile(f"{path} is empty; write it again")
    return found


class ParquetFile:
    """An open Parquet file: its `names` are those of all columns, `total` is the number of its rows."""

    def __init__(self, raw: Any, path: Path) -> None:
        parquet = optional("pyarrow.parquet", "cli")
        self._file = parquet.ParquetFile(raw, buffer_size=PARQUET_BUFFER, pre_buffer=False)
        self.path, self._done = path, 0
        self.names, self.total = list(self._file.schema_arrow.names), self._file.metadata.num_rows

    def done(self) -> int:
        """Give how much of `total` has been read."""
        return self._done

    def candidates(self) -> list[str]:
        """Give the names of the columns that can be compared: not those that are an index of pandas."""
        index = (self._file.schema_arrow.pandas_metadata or {}).get("index_columns", [])
        return [name for name in self.names if name not in index]

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Read some columns as record batches of Arrow, of the types that the file says."""
        for batch in self._file.iter_batches(
            max(1, PARQUET_CELLS // max(1, len(names))), columns=list(names)
        ):
            self._done += batch.num_rows
            yield batch.select(list(names))


class CsvFile:
    """An open CSV file, used as a `ParquetFile`: every cell is a text, and `total` is a number of bytes."""

    def __init__(self, raw: Any, path: Path) -> None:
        self._raw, self.path, self._refusal = raw, path, ""
        self._arrow, self._arrow_csv = optional("pyarrow", "cli"), optional("pyarrow.csv", "cli")
        self.done, self.total = raw.tell, raw.seek(0, io.SEEK_END)
        text = io.TextIOWrapper(self._bytes(), encoding="utf-8-sig", newline="")
        self.names = [name.strip() for name in next(csv.reader(text), [])]
        self._has_rows = any(line.strip() for line in text)
        text.detach()  # the file itself stays open
        if not self.names:
            raise InvalidFile(
                f"{path} begins with an empty line; it must begin with the names of its columns"
            )

    def candidates(self) -> list[str]:
        """Give the names of the columns, which must be names and two or more."""
        path, names = self.path, self.names
        if "" in names:
            raise InvalidFile(
                f"{path}: column {names.index('')} (counted from 0) has no name; "
                "name it in the first line, or leave it out when you write the file"
            )
        # Whole numbers may be names: some programs number the columns.
        if None not in map(number, names) and not all(map(str.isdigit, names)):
            raise InvalidFile(
                f"{path} begins with numbers; its first line must have the names of the columns"
            )
        if len(names) == 1:
            raise InvalidFile(
                f"{path} has one column, {names[0]!r}; give two or more, with commas in between"
            )
        return names

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Read some columns as record batches of texts."""
        done = 0
        for block in CSV_BLOCKS if self._has_rows else ():
            try:
                for batch in self._rows_from(done, names, block):
                    yield self._as_texts(batch, names)
                    done += batch.num_rows
                return
            except self._arrow.ArrowInvalid as error:
                if self._refusal:
                    raise InvalidFile(self._refusal) from error
                if block == CSV_BLOCKS[-1]:
                    raise

    def _bytes(self) -> Any:
        self._raw.seek(0)
        packed = self.path.name.lower().endswith(".gz")
        return gzip.GzipFile(fileobj=self._raw) if packed else self._raw

    def _rows_from(self, row: int, names: Sequence[str], block: int) -> Iterator[Any]:
        for batch in self._parsed(names, block):
            if batch.num_rows > row:
                yield batch.slice(row)
            row = max(0, row - batch.num_rows)

    def _parsed(self, names: Sequence[str], block: int) -> Any:
        """Open the reader of pyarrow; it knows columns by their numbers, since names may be there twice."""
        options = self._arrow_csv
        column_of = {name: str(column) for column, name in enumerate(self.names)}
        wanted = [column_of[name] for name in names]
        reading = options.ReadOptions(
            use_threads=False,  # with threads a row that is refused has no number
            block_size=block,
            column_names=list(map(str, range(len(self.names)))),
            skip_rows_after_names=1,
        )
        parsing = options.ParseOptions(newlines_in_values=True, invalid_row_handler=self._refuse)
        types = dict.fromkeys(wanted, self._arrow.binary())
        converting = options.ConvertOptions(include_columns=wanted, column_types=types)
        return options.open_csv(self._bytes(), reading, parsing, converting)

    def _refuse(self, row: Any) -> str:
        """Note what is wrong with a row: an exception would not come out of pyarrow."""
        self._refusal = (
            f"{self.path}: row {row.number - 2} (counted from 0) has {row.actual_columns} entries, "
            f"but there are {row.expected_columns} columns; mend it"
        )
        return "error"

    def _as_texts(self, batch: Any, names: Sequence[str]) -> Any:
        pa = self._arrow
        try:
            columns = [column.cast(pa.string()) for column in batch.columns]
        except pa.ArrowInvalid as error:
            raise InvalidFile(NOT_UTF8.format(self.path)) from error
        return pa.RecordBatch.from_arrays(columns, list(names))


ColumnFile = CsvFile | ParquetFile


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
    r"""Read some columns, each as an array, of a .csv, .csv.gz or .parquet file with one row or more.

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
    pa = optional("pyarrow", "cli")
    with open_columns(Path(path)) as file:
        check_names(names, file.names, path)
        batches = list(file.batches(names))
    if not any(batch.num_rows for batch in batches):
        raise InvalidFile(f"{path} has no rows; give at least one")
    columns = (pa.chunked_array([batch.column(i) for batch in batches]) for i in range(len(names)))
    return [_cells(column) for column in columns]


def _cells(column: Any) -> Any:
    types, compute = optional("pyarrow.types", "cli"), optional("pyarrow.compute", "cli")
    if types.is_string(column.type):
        column = compute.utf8_trim_whitespace(column)
    if getattr(column.type, "tz", None):
        column = compute.local_timestamp(column)
    return column.to_numpy()


def texts(column: Any) -> list[str]:
    """Turn a column that `read_columns` gave into texts, "" where a cell is missing."""
    return [_text(cell) for cell in column]


def _text(cell: Any) -> str:
    if cell is None or cell != cell:  # missing, or NaN
        return ""
    whole = isinstance(cell, float) and cell.is_integer()  # a whole number in a column with missing ones
    return str(int(cell) if whole else cell).strip()


class Allowed(NamedTuple):
    """The numbers that are allowed: from `low` to `high`."""

    low: float
    high: float
    given: bool  # by the user, not only by what can be raced

    def check(
        self, block: NDArray[Any], names: Sequence[str | int], rows: NDArray[np.int64] | range
    ) -> None:
        """Raise an error that names the first number of a block that is not allowed."""
        # NaN is neither above nor below, and the least and largest of numbers with a NaN is NaN.
        if not (block.min() >= self.low and block.max() <= self.high):
            wrong = ~((block >= self.low) & (block <= self.high))
            row, column = (int(i) for i in np.argwhere(wrong)[0])
            self._refuse(block[row, column], f"row {rows[row]} (counted from 0), column {names[column]!r}")

    def _refuse(self, number: Any, place: str) -> None:
        infinite = np.inf if self.high < np.inf else -np.inf
        if np.isnan(number) or number == infinite or not self.given:
            raise InvalidReward(
                f"{place} is {number}; replace it by a number of at most {LARGEST_REWARD:g}, "
                "or leave the column or the row out"
            )
        raise RewardOutOfRange(
            f"{place} is {number}, outside the range {self.low:g} to {self.high:g}; widen --reward-range"
        )


def allowed(limits: tuple[float, float] | None, lowest: bool = False) -> Allowed:
    """Give the range as the user named it; without one, all numbers but that infinity which always wins."""
    if limits is None:
        low, high = (-LARGEST_REWARD, np.inf) if lowest else (-np.inf, LARGEST_REWARD)
        return Allowed(low, high, given=False)
    low, high = limits
    if not -np.inf < low < high < np.inf:
        raise InvalidArgument(
            f"--reward-range is {low:g} to {high:g}; give two numbers, the lower one first"
        )
    return Allowed(low, high, given=True)


def numbers(batch: Any, path: Path, first: int) -> Floats:
    """Turn a record batch of a file, whose first row has the number `first`, into an array.

    Columns hold numbers, truth values or texts of them. What is missing becomes NaN.
    """
    _check_types(batch, path)
    block: Floats = np.column_stack([_column(column) for column in batch.columns])
    _check_texts(block, batch, path, first)
    _check_rounding(block, batch, path)
    return block


def number(text: str) -> float | None:
    """Give the number, or truth value, that a text stands for; None if it is none."""
    if not text.isascii() or "_" in text:
        return None  # Python reads numbers that no other program would
    try:
        return float(text)
    except ValueError:
        return TRUTH.get(text.strip().lower())


def _check_types(batch: Any, path: Path) -> None:
    types = optional("pyarrow", "cli").types
    numeric = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    known = (*numeric, types.is_string, types.is_large_string)
    others = [field.name for field in batch.schema if not any(test(field.type) for test in known)]
    if others:
        raise InvalidArgument(
            f"{path}: there are no numbers in {listed(others)}; choose columns of numbers by --columns"
        )


def _column(column: Any) -> Floats:
    """Give the numbers of a column, NaN where a text is none."""
    pa, trimmed = optional("pyarrow", "cli"), optional("pyarrow.compute", "cli").utf8_trim_whitespace
    for prepared in (lambda column: column, trimmed):
        with suppress(pa.ArrowInvalid):
            ready = prepared(column)
            ready.slice(0, 1).cast(pa.float64(), safe=False)  # a long cast takes long to fail
            return np.asarray(ready.cast(pa.float64(), safe=False), np.float64)
    texts = column.fill_null("nan").dictionary_encode()  # truth values, or what is no number at all
    known = np.array([number(text) for text in texts.dictionary.to_pylist()], np.float64)
    return known.take(np.asarray(texts.indices))


def _check_texts(block: Floats, batch: Any, path: Path, first: int) -> None:
    """Refuse texts that are no numbers: NaN in the block, but not written so."""
    faults = []
    for i in np.flatnonzero(np.isnan(block).any(axis=0)).tolist():
        texts = [(row, batch.column(i)[row].as_py()) for row in np.flatnonzero(np.isnan(block[:, i]))]
        wrong = [(row, text) for row, text in texts if isinstance(text, str) and number(text) is None]
        faults += [(batch.schema.names[i], *wrong[0])] if wrong else []
    if faults:
        (name, row, text), *more = faults
        others = f" (nor in {listed([name for name, *_ in more])})" if more else ""
        raise InvalidFile(
            f"{path}: there is no number in row {first + row} (counted from 0) of column {name!r}{others} "
            f"but {text[:40]!r}; mend it, or choose columns of numbers by --columns"
        )


def _check_rounding(block: Floats, batch: Any, path: Path) -> None:
    """Refuse whole numbers that are too large; with a point or an exponent they are meant roughly."""
    pa, large = optional("pyarrow", "cli"), np.abs(block) >= LARGEST_WHOLE
    for i in np.flatnonzero(large.any(axis=0)).tolist():
        column = batch.column(i).filter(pa.array(large[:, i]))
        exact = not pa.types.is_floating(column.type)
        if exact and any(str(cell).strip().lstrip("+-").isdigit() for cell in column.to_pylist()):
            raise InvalidFile(f"{path}: column {batch.schema.names[i]!r} has {ROUNDED}")


def listed(names: Sequence[str], most: int = 10) -> str:
    """Put names in a row, or the first of them."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(repr(name) for name in names[:most]) + more
