"""Tables of numbers in files as populations to race on.

What the race draws at random is not a row but a chunk of rows that lie side by side, some 4 kB: about what
a disk and the system read anyway when they are asked for one row. The reward of a chunk is its sum. Chunks
are drawn without replacement and their sums add up to those of the rows, so every bound holds, whatever the
order of the rows.

A .npy file is read as it lies, others are first copied to a temporary file.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.rows import Rows, block_length
from gumbelrace.errors import InvalidArgument, InvalidFile, InvalidReward
from gumbelrace.population.arrays import ROUNDED, would_round
from gumbelrace.population.base import Floats, Range
from gumbelrace.population.control import Known
from gumbelrace.population.factors import Factors
from gumbelrace.tables.columns import RECOGNISED, find_name
from gumbelrace.tables.copies import copied
from gumbelrace.tables.delimited import Dialect
from gumbelrace.tables.numbers import Allowed, allowed, listed
from gumbelrace.tables.opened import ArrayFile, OpenFile, first_rows, open_files
from gumbelrace.tables.record import first_column_counted, is_shuffled
from gumbelrace.tables.rowfile import Indices, Reads, RowFile
from gumbelrace.tables.source import files_of

Advance = Callable[[float], None]
# Shows what is done and how much there is; lends a function that is told how far it is.
Progress = Callable[[str, float], AbstractContextManager[Advance]]
SILENT: Progress = lambda doing, total: nullcontext(lambda done: None)  # noqa: E731

CHUNK_BYTES = 4096
# Most bytes of rows in random order that are read in one stretch, before a jump.
STRETCH_BYTES = 2**20
# Few chunks would be a coarse sample, many would need an index of their own that is long.
FEWEST_CHUNKS, MOST_CHUNKS = 2**17, 2**21
# So many rows in a first column that counts them are no chance, and so many are looked at.
INDEX_LEAST, INDEX_MOST = 5, 100
# Most bytes read before they are added up.
PIECE_BYTES = 2**22


@contextmanager
def open_scores(
    path: Path | Sequence[Path],
    wanted: "Wanted | None" = None,
    progress: Progress = SILENT,
    reads: Reads | None = None,
) -> Iterator["Scores"]:
    """Open a table with a column for each candidate: .npy as it lies, others by way of a temporary file."""
    wanted = wanted or Wanted()
    with (
        open_files(path, wanted.dialect, reads) as file,
        scores_of(file, wanted, progress, reads) as scores,
    ):
        yield replace(scores, shuffled=is_shuffled(files_of(path)))


@contextmanager
def scores_of(
    file: OpenFile, wanted: "Wanted", progress: Progress = SILENT, reads: Reads | None = None
) -> Iterator["Scores"]:
    """Lend the columns that are wanted of an open file."""
    permitted = allowed(wanted.limits, wanted.lowest, file.name)
    with (
        _in_place(file, wanted, permitted)
        if isinstance(file, ArrayFile)
        else _copied(file, wanted, permitted, progress, reads)
    ) as scores:
        check_rows(scores.rows, file.name)
        yield replace(scores, lowest=wanted.lowest)


def check_rows(rows: int, file: str) -> None:
    """Refuse a table without rows."""
    if rows == 0:
        raise InvalidFile(f"{file} has no rows; give at least one")


class Wanted(NamedTuple):
    """What is wanted of a table."""

    columns: Sequence[str] | None = None  # by name, or by number in a .npy file; None: all
    limits: tuple[float, float] | None = None  # numbers beyond are refused; they let an answer be proved
    lowest: bool = False  # whether the lowest sum is the best, not the highest
    dialect: Dialect = RECOGNISED  # of a CSV file


@contextmanager
def _in_place(file: ArrayFile, wanted: Wanted, permitted: Allowed) -> Iterator["Scores"]:
    names, notes = names_and_notes(file, wanted)
    chosen, types = np.array([file.names.index(name) for name in names], np.int64), file.types
    low, high = (permitted.low, permitted.high) if permitted.given else (0.0, 1.0)
    known = permitted.given or all(types[column] == np.bool_ for column in chosen)
    bounds = (np.full(len(chosen), low), np.full(len(chosen), high)) if known else None
    called = tuple(names) if file.has_names else tuple(chosen.tolist())
    yield Scores(file.file, chosen, called, permitted, bounds, notes=tuple(notes))


@contextmanager
def _copied(
    file: OpenFile, wanted: Wanted, permitted: Allowed, progress: Progress, reads: Reads | None
) -> Iterator["Scores"]:
    names, notes = names_and_notes(file, wanted)
    checks = Checks(names, permitted)
    with ExitStack() as kept:
        with progress(f"reading {file.name}", file.total) as advance:
            copy = kept.enter_context(copied(file, names, checks.look, advance, reads))
        columns = np.arange(len(names))
        yield Scores(
            copy.file, columns, tuple(names), permitted, checks.range, checked=True, notes=tuple(notes)
        )


class Checks:
    """The least and largest number of each column, of numbers that are allowed."""

    def __init__(self, names: Sequence[str], permitted: Allowed) -> None:
        self.range = np.full(len(names), np.inf), np.full(len(names), -np.inf)
        self._names, self._permitted = names, permitted

    def look(self, columns: list[NDArray[Any]], first: int) -> None:
        """Check the next rows of all columns."""
        low, high = self.range
        for i, (name, column) in enumerate(zip(self._names, columns, strict=True)):
            if len(column):
                check_rounding(column, f"{self._permitted.file}: column {name!r}")
                self._permitted.check(column[:, None], [name], range(first, first + len(column)))
                low[i], high[i] = min(low[i], column.min()), max(high[i], column.max())


def check_rounding(numbers: NDArray[Any], what: str) -> None:
    """Refuse whole numbers that double precision does not hold."""
    if would_round(numbers):
        raise InvalidReward(f"{what} has {ROUNDED}")


def names_and_notes(file: OpenFile, wanted: Wanted, least: int = 2) -> tuple[Sequence[str], list[str]]:
    """Give the columns that are meant, at least so many, and what a user should know of their reading."""
    notes = (
        ["decimal commas are read as such"] if file.decimal == "," and not wanted.dialect.decimal else []
    )
    if wanted.columns is not None:
        return _several(_chosen(wanted.columns, file.names, file.name), file.name, least), notes
    names = _several(_chosen(None, file.candidates(), file.name), file.name, least)
    if "" in file.names:
        notes.append(f"column {file.names.index('')} (counted from 0) has no name and is left out")
    if _is_index(file, names[0]):
        first = names.pop(0)
        notes.append(index_note(first if file.has_names else int(first)))
    return _several(names, file.name, least), notes


def _is_index(file: OpenFile, name: str) -> bool:
    """Whether the first rows of a column count the rows, or it did so before they were shuffled."""
    if name == file.names[0] and first_column_counted(Path(file.name)):
        return True
    if file.types and file.types[file.names.index(name)] == np.bool_:
        return False
    with suppress(InvalidArgument):  # no numbers: said later, with all columns that have none
        return counts_rows(first_rows(file, name, INDEX_MOST))
    return False


def counts_rows(column: NDArray[Any]) -> bool:
    """Whether the first rows of a column are 0, 1, 2, ... or 1, 2, 3, ..., as programs write an index."""
    rows = np.arange(len(column))
    return len(rows) >= INDEX_LEAST and any((column.ravel() == rows + start).all() for start in (0, 1))


def index_note(name: str | int) -> str:
    return f"column {name!r} counts the rows and is left out; --columns would take it in"


def _chosen(wanted: Sequence[str] | None, names: Sequence[str], file: str) -> list[str]:
    """Give the names of the columns that are meant: different ones."""
    found = [find_name(name, names, file) for name in (names if wanted is None else wanted)]
    for name in found:
        find_name(name, found, file)
    return found


def _several(names: list[str], file: str, least: int) -> list[str]:
    if len(names) < least:
        raise InvalidArgument(
            f"{file}: with {listed(names) or 'no column'} alone there is nothing to choose from; "
            f"give {'two or more columns' if least > 1 else 'a column'}"
        )
    return names


@dataclass(frozen=True)
class Scores:
    """Columns of a table in a file."""

    file: RowFile
    columns: Indices  # those of the file that are meant
    names: tuple[str, ...] | tuple[int, ...]  # what they are called
    allowed: Allowed  # the numbers that may be met
    bounds: Range | None  # least and largest number of each column, if known
    checked: bool = False  # whether every number has been read once, and is allowed
    lowest: bool = False  # whether the lowest sum is the best, not the highest
    notes: tuple[str, ...] = ()  # what a user should know of how the file was read
    shuffled: bool = False  # whether a record says that the rows lie in random order

    @property
    def rows(self) -> int:
        return self.file.layout.rows

    @property
    def size(self) -> int:
        return self.rows * len(self.names)

    def population(self, shuffled: bool | None = None) -> "Chunks":
        """Give chunks of rows to race on; single rows if these already lie in random order."""
        if self.shuffled if shuffled is None else shuffled:
            longest = max(1, STRETCH_BYTES // self.file.layout.together)
            return Chunks(self, 1, Rows(self.rows, block_length(self.rows, longest)))
        length = chunk_length(self.rows, self.file.layout.together)
        return Chunks(self, length, Rows(self.rows // length))


def chunk_length(rows: int, row_bytes: int) -> int:
    return max(1, min(CHUNK_BYTES // row_bytes, rows // FEWEST_CHUNKS), -(-rows // MOST_CHUNKS))


class Chunks(Factors):
    """A population whose rewards are sums over chunks of `length` rows of a file.

    The last rows, too few for a chunk, are the `remainder`: sums that are known before the race.
    """

    # So much less costs a chunk when all are read in order: 3 times from memory, 10 and more from a disk.
    scan_speed = 10.0

    def __init__(self, scores: Scores, length: int, order: Rows) -> None:
        self.scores, self.length = scores, length
        self.rows_read = self.scores_read = 0
        self.added_up = False  # whether `totals` was asked for
        super().__init__(self._sums, order, len(scores.names), self._bounds())
        self.names = tuple(map(str, scores.names))
        self.remainder = self._remainder()
        rest = self.arms * (scores.rows > self.size * length)  # one shorter chunk
        self.known = Known(self.remainder, np.abs(self.remainder), rest) if rest else None

    @property
    def averaged(self) -> int:
        """Number of rows of the file: a mean is of these, not of chunks."""
        return self.scores.rows

    def totals(self) -> Floats:
        """Add up every column, reading all of it."""
        self.added_up = True
        arms, total = np.arange(self.arms), self.remainder.copy()
        for piece in self._pieces(np.arange(self.size)):
            total += self._read(piece, self.length, arms).sum(axis=0)
        return total

    def _bounds(self) -> Range | None:
        if self.scores.bounds is None:
            return None
        low, high = (self.length * side for side in self.scores.bounds)
        return (-high, -low) if self.scores.lowest else (low, high)

    def _remainder(self) -> Floats:
        arms = np.arange(self.arms)
        rest = np.arange(self.size * self.length, self.scores.rows)
        sums = self._read(rest, 1, arms).sum(axis=0) if len(rest) else np.zeros(self.arms)
        if self._range is not None:
            # A column that is known to hold an infinity need not be read.
            sums[np.isneginf(self._range[0])] = -np.inf
        return sums

    def _sums(self, index: Indices, arms: Indices) -> Floats:
        sums = np.concatenate([self._read(piece, self.length, arms) for piece in self._pieces(index)])
        # Rounding must not lead out of the range.
        return sums if self._range is None else sums.clip(*(side[arms] for side in self._range))

    def _pieces(self, index: Indices) -> Iterator[Indices]:
        layout = self.scores.file.layout
        most = max(1, PIECE_BYTES // (self.length * layout.columns * layout.dtype.itemsize))
        return (index[first : first + most] for first in range(0, len(index), most))

    def _read(self, index: Indices, length: int, arms: Indices) -> Floats:
        """Read and check chunks; give their sums, the higher the better."""
        self.rows_read += len(index) * length
        self.scores_read += len(index) * length * len(arms)
        scores = self.scores
        block = scores.file.read_chunks(index, length, scores.columns[arms])
        check_rounding(block, f"{scores.allowed.file}: a column")
        block = block.astype(np.float64, copy=False)
        with np.errstate(all="ignore"):
            sums: Floats = np.ones(length) @ block.reshape(len(index), length, len(arms))
        if scores.lowest:
            np.negative(sums, out=sums)
        if scores.allowed.given or not (sums < np.inf).all():
            self._check(block, index, length, arms)
        return sums

    def _check(self, block: NDArray[Any], index: Indices, length: int, arms: Indices) -> None:
        if not self.scores.checked:
            rows = (index[:, None] * length + np.arange(length)).ravel()
            self.scores.allowed.check(block, [self.scores.names[arm] for arm in arms], rows)
