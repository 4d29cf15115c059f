"""CSV files, plain or compressed by gzip: UTF-8, with commas, and the columns' names in the first line."""

import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gumbelrace.errors import InvalidFile, optional
from gumbelrace.tables.numbers import number

# Bytes parsed at a time; a row that is longer needs one of the larger blocks.
BLOCKS = (2**20, 2**24, 2**27)
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
        """Read batches of rows, as texts."""
        done = 0
        for block in BLOCKS if self._has_rows else ():
            try:
                for batch in self._rows_from(done, names, block):
                    yield self._as_texts(batch, names)
                    done += batch.num_rows
                return
            except self._arrow.ArrowInvalid as error:
                if self._refusal or block == BLOCKS[-1]:
                    reason = self._refusal or f"{self.path} is not a .csv file ({error}); write it again"
                    raise InvalidFile(reason) from error

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
        place = {name: str(column) for column, name in enumerate(self.names)}
        wanted = [place[name] for name in names]
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
