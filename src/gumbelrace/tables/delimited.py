"""CSV files, read by pyarrow: what lies between their columns, and batches of their rows.

They are UTF-8, plain or compressed by gzip, and have the columns' names in their first line. The separator
is recognised, and so are decimal commas, unless the user names them.
"""

import csv
import gzip
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument, InvalidFile, optional
from gumbelrace.tables.numbers import number, numbers
from gumbelrace.tables.rowfile import Reads
from gumbelrace.tables.source import Source

# Bytes of a CSV file parsed at a time; a row that is longer needs one of the larger blocks.
CSV_BLOCKS = (2**20, 2**24, 2**27)
# Lines that are looked at to recognise what lies between columns.
HEAD = 50
SEPARATORS = (",", "\t", ";", "|")
TAB = ("tab", "\\t")
WITH_COMMA = re.compile(r"\s*[+-]?\d*,\d+(e[+-]?\d+)?\s*", re.IGNORECASE)
WITH_POINT = re.compile(r"\s*[+-]?\d*\.\d+(e[+-]?\d+)?\s*", re.IGNORECASE)
# One thousand, or one and 234 thousandths: not to be told apart.
UNCLEAR = re.compile(r"\s*[+-]?\d{1,3},\d{3}\s*")
NOT_UTF8 = "{} is not in UTF-8; convert it, or save it as .parquet"


class Dialect(NamedTuple):
    """What lies between the columns of a CSV file, and before decimals; None: it is recognised."""

    separator: str | None = None
    decimal: str | None = None


def dialect(separator: str | None, decimal: str | None) -> Dialect:
    """Check what a user says about a CSV file."""
    if separator in TAB:
        separator = "\t"
    if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
        raise InvalidArgument(f"--sep is {separator!r}; give one character, or tab")
    if decimal not in (None, ".", ","):
        raise InvalidArgument(f"--decimal is {decimal!r}; give a point or a comma")
    if decimal is not None and decimal == separator:
        raise InvalidArgument(f"--sep and --decimal are both {decimal!r}; they must differ")
    return Dialect(separator, decimal)


def recognised(head: Sequence[str], given: Dialect, tabs: bool) -> tuple[str, str]:
    """Give separator and decimal mark: what the user says, or else what the first lines look like."""
    separator = given.separator or ("\t" if tabs else max(SEPARATORS, key=lambda one: _fit(head, one)))
    if given.decimal or separator == ",":
        return separator, given.decimal or "."
    cells = [cell for row in _rows(head, separator) for cell in row]
    commas = any(WITH_COMMA.fullmatch(cell) and not UNCLEAR.fullmatch(cell) for cell in cells)
    return separator, "," if commas and not any(map(WITH_POINT.fullmatch, cells)) else "."


def _fit(head: Sequence[str], separator: str) -> tuple[bool, int]:
    """Say how well a separator fits: several columns, as many in the first row as there are names."""
    names, first = islice(chain(_rows(head, separator), [[], []]), 2)
    return (len(names) > 1 and len(first) in (0, len(names)), len(names))


def _rows(head: Sequence[str], separator: str) -> Iterator[list[str]]:
    with suppress(csv.Error):  # a cell that goes on and on
        yield from (row for row in csv.reader(head, delimiter=separator) if row)


class CsvFile:
    """An open CSV file, used as a `ParquetFile`: every cell is a text, and `total` is a number of bytes."""

    rows: int | None = None  # known when all has been read, as are types
    types: list[np.dtype[Any]] | None = None
    has_names = True

    def __init__(self, source: Source, given: Dialect = Dialect(), reads: Reads | None = None) -> None:  # noqa: B008
        self._raw, self._kind, self.name, self._refusal = source.file, source.kind, source.name, ""
        self._reads = reads or Reads()
        self._arrow, self._arrow_csv = optional("pyarrow", "cli"), optional("pyarrow.csv", "cli")
        self.total = source.size
        text = io.TextIOWrapper(self._bytes(), encoding="utf-8-sig", newline="")
        head = list(islice(text, HEAD))
        tabs = source.kind.startswith(".tsv")
        self.separator, self.decimal = recognised(head, given, tabs)
        lines = csv.reader(head, delimiter=self.separator)
        self.names = [name.strip() for name in next(lines, [])]
        self._has_rows = any(line.strip() for line in chain(head[lines.line_num :], text))
        text.detach()  # the file itself stays open
        if not self.names:
            raise InvalidFile(
                f"{self.name} begins with an empty line; it must begin with the names of its columns"
            )

    def done(self) -> int:
        """Give how much of `total` has been read."""
        place: int = self._raw.tell()
        return place

    def candidates(self) -> list[str]:
        """Give the names of the columns that can be compared, two or more: those that have a name."""
        names = [name for name in self.names if name]
        # Whole numbers may be names: some programs number the columns.
        if None not in map(number, names) and not all(map(str.isdigit, names)):
            raise InvalidFile(
                f"{self.name} begins with numbers; its first line must have the names of the columns"
            )
        if len(names) == 1:
            raise InvalidFile(
                f"{self.name} has one column, {names[0]!r}; give two or more, or say by --sep what lies "
                "between them"
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

    def arrays(
        self, names: Sequence[str], workers: int = 1, rows: int | None = None
    ) -> Iterator[list[NDArray[Any]]]:
        """Read some columns as arrays of float64, as many rows at a time as come."""
        row = 0
        self._reads.note(0, self.total)
        for batch in self.batches(names):
            block = numbers(batch, self.name, row, self.decimal)
            row += len(block)
            yield list(block.T)

    def _bytes(self) -> Any:
        self._raw.seek(0)
        return gzip.GzipFile(fileobj=self._raw) if self._kind.endswith(".gz") else self._raw

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
        parsing = options.ParseOptions(
            delimiter=self.separator, newlines_in_values=True, invalid_row_handler=self._refuse
        )
        types = dict.fromkeys(wanted, self._arrow.binary())
        converting = options.ConvertOptions(include_columns=wanted, column_types=types)
        return options.open_csv(self._bytes(), reading, parsing, converting)

    def _refuse(self, row: Any) -> str:
        """Note what is wrong with a row: an exception would not come out of pyarrow."""
        self._refusal = (
            f"{self.name}: row {row.number - 2} (counted from 0) has {row.actual_columns} entries, "
            f"but there are {row.expected_columns} columns; mend it"
        )
        return "error"

    def _as_texts(self, batch: Any, names: Sequence[str]) -> Any:
        pa = self._arrow
        try:
            columns = [column.cast(pa.string()) for column in batch.columns]
        except pa.ArrowInvalid as error:
            raise InvalidFile(NOT_UTF8.format(self.name)) from error
        return pa.RecordBatch.from_arrays(columns, list(names))
