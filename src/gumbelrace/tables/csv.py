"""Reading .csv and .csv.gz: by pyarrow where it is installed, else by Python's csv module."""

import csv
import gzip
import io
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from gumbelrace.cli.checks import listed
from gumbelrace.cli.rows import Indices
from gumbelrace.cli.streamed import HELD, Streamed
from gumbelrace.errors import InvalidFile
from gumbelrace.population.arrays import LARGEST_WHOLE, ROUNDED
from gumbelrace.population.base import Floats

BLOCK_BYTES = 2**20
WORDS = {"true": 1.0, "false": 0.0}


@contextmanager
def csv_table(path: Path) -> Iterator[Streamed]:
    """Open a .csv file that begins with the names of its columns."""
    with readable(path), open(path, "rb") as raw:
        file = CsvFile(raw, path)
        read = file.by_pyarrow if find_spec("pyarrow") else file.by_python
        yield Streamed(file.names, read, raw.tell, path.stat().st_size)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Say in our words what keeps a file from being read."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise InvalidFile(f"{path} is not in UTF-8; convert it, or save it as .parquet") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InvalidFile(f"{path} is not a gzip file, or is damaged; compress it again") from error
    except csv.Error as error:
        raise InvalidFile(f"{path} is not a .csv file ({error}); write it again") from error


class CsvFile:
    """A .csv file, its numbers read in batches of rows.

    Attributes
    ----------
    names : list of str
        Names of the columns, from the first line.
    """

    def __init__(self, raw: Any, path: Path) -> None:
        self._raw, self._path = raw, path
        with closing(self._records()) as records:
            self.names = [name.strip() for name in next(records, [])]
        self._check_names()

    def by_python(self, columns: Indices, done: int = 0) -> Iterator[Floats]:
        """Read batches by the csv module, from row `done` on."""
        with closing(self._records()) as records:
            rows = self._rows(records)
            for _ in islice(rows, done):
                pass
            while batch := list(islice(rows, max(1, HELD // len(columns)))):
                texts = [[row[column] for row in batch] for column in columns]
                yield self._numbers(texts, columns, done)
                done += len(batch)

    def by_pyarrow(self, columns: Indices) -> Iterator[Floats]:
        """Read batches by pyarrow; what it cannot read, the csv module reads or names."""
        import pyarrow as pa

        done = 0
        try:
            for batch in self._arrow_batches(columns):
                yield self._from_arrow(batch.columns, columns, done)
                done += batch.num_rows
        except pa.ArrowInvalid:
            yield from self.by_python(columns, done)

    def _bytes(self) -> Any:
        self._raw.seek(0)
        packed = self._path.name.lower().endswith(".gz")
        return gzip.GzipFile(fileobj=self._raw) if packed else self._raw

    def _records(self) -> Generator[list[str], None, None]:
        text = io.TextIOWrapper(self._bytes(), encoding="utf-8-sig", newline="")
        try:
            yield from csv.reader(text)
        finally:
            text.detach()  # the file itself stays open

    def _rows(self, records: Iterator[list[str]]) -> Iterator[list[str]]:
        """Give the rows below the names, empty lines left out."""
        next(records)
        for number, row in enumerate(filter(None, records)):
            if len(row) != len(self.names):
                raise InvalidFile(
                    f"{self._path}: row {number} (counted from 0) has {len(row)} entries, "
                    f"but there are {len(self.names)} columns; mend it"
                )
            yield row

    def _arrow_batches(self, columns: Indices) -> Any:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        wanted = [str(column) for column in columns]
        return arrow_csv.open_csv(
            self._bytes(),
            arrow_csv.ReadOptions(
                use_threads=False,
                block_size=BLOCK_BYTES,
                column_names=[str(column) for column in range(len(self.names))],
                skip_rows_after_names=1,
            ),
            arrow_csv.ParseOptions(newlines_in_values=True),
            arrow_csv.ConvertOptions(
                include_columns=wanted, column_types=dict.fromkeys(wanted, pa.string())
            ),
        )

    def _from_arrow(self, texts: Sequence[Any], columns: Indices, done: int) -> Floats:
        import pyarrow as pa

        try:
            result = np.column_stack([column.cast(pa.float64()).to_numpy() for column in texts])
        except pa.ArrowInvalid:  # words, spaces, or what is no number at all
            return self._numbers([column.to_pylist() for column in texts], columns, done)
        self._check_rounding(result, texts, columns)
        return result

    def _numbers(self, texts: Sequence[Sequence[str]], columns: Indices, done: int) -> Floats:
        """Turn columns of texts into numbers; the first row has the number `done`."""
        result, faults = np.empty((len(texts[0]), len(columns))), []
        for place, column in enumerate(columns):
            values = numbers(texts[place])
            if None in values:
                row = values.index(None)
                faults.append((self.names[column], done + row, texts[place][row]))
            else:
                result[:, place] = values
        if faults:
            self._refuse(faults)
        self._check_rounding(result, texts, columns)
        return result

    def _check_rounding(self, result: Floats, texts: Sequence[Any], columns: Indices) -> None:
        """Refuse whole numbers that are too large; with a point or an exponent they are meant roughly."""
        for row, place in np.argwhere(np.abs(result) >= LARGEST_WHOLE).tolist():
            if str(texts[place][row]).strip().lstrip("+-").isdigit():
                name = self.names[columns[place]]
                raise InvalidFile(f"{self._path}: column {name!r} has {ROUNDED}")

    def _refuse(self, faults: list[tuple[str, int, str]]) -> None:
        name, row, text = faults[0]
        more = f" (nor in {listed([name for name, *_ in faults[1:]])})" if faults[1:] else ""
        raise InvalidFile(
            f"{self._path}: there is no number in row {row} (counted from 0) of column {name!r}{more} "
            f"but {text[:40]!r}; mend it, or choose columns of numbers by --columns"
        )

    def _check_names(self) -> None:
        path, names = self._path, self.names
        if not names:
            raise InvalidFile(
                f"{path} begins with an empty line; it must begin with the names of its columns"
            )
        if "" in names:
            raise InvalidFile(
                f"{path}: column {names.index('')} (counted from 0) has no name; "
                "name it in the first line, or leave it out when you write the file"
            )
        # Whole numbers may be names: some programs number the columns.
        if all(number(name) is not None for name in names) and not all(map(str.isdigit, names)):
            raise InvalidFile(
                f"{path} begins with numbers; its first line must have the names of the columns"
            )
        if len(names) == 1:
            raise InvalidFile(
                f"{path} has one column, {names[0]!r}; give two or more, with commas in between"
            )


def numbers(texts: Sequence[str]) -> Sequence[float | None]:
    """Give `number` of each text; fast if all are plain numbers, or few are different."""
    together = "".join(texts)
    if together.isascii() and "_" not in together:
        with suppress(ValueError):
            return list(map(float, texts))
    known = {text: number(text) for text in set(texts)}
    return [known[text] for text in texts]


def number(text: str) -> float | None:
    """Give the number, or truth value, that a text stands for; None if it is none."""
    if not text.isascii() or "_" in text:
        return None  # Python reads numbers that no other program would
    try:
        return float(text)
    except ValueError:
        return WORDS.get(text.strip().lower())
