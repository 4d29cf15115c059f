"""CSV files, plain or compressed by gzip: UTF-8, with commas, and the columns' names in the first line."""

import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gumbelrace.errors import InvalidFile
from gumbelrace.optional import optional
from gumbelrace.population.arrays import LARGEST_WHOLE, ROUNDED
from gumbelrace.population.base import Floats
from gumbelrace.tables.checks import listed

# Bytes parsed at a time; a row that is longer needs one of the larger blocks.
BLOCKS = (2**20, 2**25, 2**30)
TRUTH = {"true": 1.0, "false": 0.0}
NOT_UTF8 = "{} is not in UTF-8; convert it, or save it as .parquet"


@contextmanager
def csv_file(path: Path) -> Iterator["CsvFile"]:
    """Open a CSV file; say in our words what keeps it from being read."""
    try:
        with open(path, "rb") as raw:
            yield CsvFile(raw, path)
    except UnicodeDecodeError as error:
        raise InvalidFile(NOT_UTF8.format(path)) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InvalidFile(f"{path} is not a gzip file, or is damaged; compress it again") from error
    except csv.Error as error:
        raise InvalidFile(f"{path} is not a .csv file ({error}); write it again") from error


class CsvFile:
    """A CSV file, read in batches of rows. See `columns.ColumnFile`."""

    def __init__(self, raw: Any, path: Path) -> None:
        self._raw, self._path, self._refusal = raw, path, ""
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
        path, names = self._path, self.names
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
        """Read batches of rows, as texts."""
        pa, done = optional("pyarrow", "cli"), 0
        for block in BLOCKS if self._has_rows else ():
            try:
                for batch in self._rows_from(done, names, block):
                    yield self._as_texts(batch, names)
                    done += batch.num_rows
                return
            except pa.ArrowInvalid as error:
                if self._refusal or block == BLOCKS[-1]:
                    reason = self._refusal or f"{self._path} is not a .csv file ({error}); write it again"
                    raise InvalidFile(reason) from error

    def numbers(self, names: Sequence[str]) -> Iterator[Floats]:
        """Read batches of rows, as numbers."""
        pa, done = optional("pyarrow", "cli"), 0
        for batch in self.batches(names):
            try:
                block = np.column_stack([column.cast(pa.float64()).to_numpy() for column in batch.columns])
            except pa.ArrowInvalid:  # truth values, spaces, or what is no number at all
                block = self._converted(batch, names, done)
            self._check_rounding(block, batch, names)
            yield block
            done += len(block)

    def _bytes(self) -> Any:
        self._raw.seek(0)
        packed = self._path.name.lower().endswith(".gz")
        return gzip.GzipFile(fileobj=self._raw) if packed else self._raw

    def _rows_from(self, row: int, names: Sequence[str], block: int) -> Iterator[Any]:
        for batch in self._parsed(names, block):
            if batch.num_rows > row:
                yield batch.slice(row)
            row = max(0, row - batch.num_rows)

    def _parsed(self, names: Sequence[str], block: int) -> Any:
        """Open the reader of pyarrow; it knows columns by their numbers, since names may be there twice."""
        pa, arrow = optional("pyarrow", "cli"), optional("pyarrow.csv", "cli")
        place = {name: str(column) for column, name in enumerate(self.names)}
        wanted = [place[name] for name in names]
        reading = arrow.ReadOptions(
            use_threads=False,  # with threads a row that is refused has no number
            block_size=block,
            column_names=list(map(str, range(len(self.names)))),
            skip_rows_after_names=1,
        )
        parsing = arrow.ParseOptions(newlines_in_values=True, invalid_row_handler=self._refuse)
        types = dict.fromkeys(wanted, pa.binary())
        converting = arrow.ConvertOptions(include_columns=wanted, column_types=types)
        return arrow.open_csv(self._bytes(), reading, parsing, converting)

    def _refuse(self, row: Any) -> str:
        """Note what is wrong with a row: an exception would not come out of pyarrow."""
        self._refusal = (
            f"{self._path}: row {row.number - 2} (counted from 0) has {row.actual_columns} entries, "
            f"but there are {row.expected_columns} columns; mend it"
        )
        return "error"

    def _as_texts(self, batch: Any, names: Sequence[str]) -> Any:
        pa = optional("pyarrow", "cli")
        try:
            columns = [column.cast(pa.string()) for column in batch.columns]
        except pa.ArrowInvalid as error:
            raise InvalidFile(NOT_UTF8.format(self._path)) from error
        return pa.RecordBatch.from_arrays(columns, list(names))

    def _converted(self, batch: Any, names: Sequence[str], done: int) -> Floats:
        """Turn texts into numbers one by one; the first row has the number `done`."""
        read = [numbers(column) for column in batch.columns]
        faults = [place for place, values in enumerate(read) if None in values]
        if not faults:
            return np.array(read, np.float64).T
        first, row = faults[0], read[faults[0]].index(None)
        more = f" (nor in {listed([names[place] for place in faults[1:]])})" if faults[1:] else ""
        raise InvalidFile(
            f"{self._path}: there is no number in row {done + row} (counted from 0) of column "
            f"{names[first]!r}{more} but {batch.column(first)[row].as_py()[:40]!r}; mend it, or choose "
            "columns of numbers by --columns"
        )

    def _check_rounding(self, block: Floats, batch: Any, names: Sequence[str]) -> None:
        """Refuse whole numbers that are too large; with a point or an exponent they are meant roughly."""
        for row, place in np.argwhere(np.abs(block) >= LARGEST_WHOLE).tolist():
            if batch.column(place)[row].as_py().strip().lstrip("+-").isdigit():
                raise InvalidFile(f"{self._path}: column {names[place]!r} has {ROUNDED}")


def numbers(texts: Any) -> list[float | None]:
    """Give `number` of each text of a column, asking once for each that is different."""
    encoded = texts.dictionary_encode()
    known = [number(text) for text in encoded.dictionary.to_pylist()]
    return [known[place] for place in encoded.indices.to_pylist()]


def number(text: str) -> float | None:
    """Give the number, or truth value, that a text stands for; None if it is none."""
    if not text.isascii() or "_" in text:
        return None  # Python reads numbers that no other program would
    try:
        return float(text)
    except ValueError:
        return TRUTH.get(text.strip().lower())
