"""Scanner over a table that does not fit into memory: sums, and rows drawn at random, chunk by chunk.

A pass is a function of a chunk, whose results are put together in the order of the chunks of a file, and
those of the files in their order. What is random in it follows from the numbers of the chunk. So the result
is the same whoever computes the parts, and however many do.
"""

import functools
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from gumbelrace.core.pool import of_shards
from gumbelrace.laplace.columns import CHUNK, Array, Chunk, Columns, Table
from gumbelrace.laplace.model import Floats, dense
from gumbelrace.laplace.pass_store import PassStore
from gumbelrace.laplace.progress import Progress

# What the results of all files together are called, where each file has a number.
ALL_FILES = 2**32 - 1
# First words of seeds: what they are for.
SUBSAMPLE, PICKS, THINNING, SHUFFLE, MOVES = range(5)


class Pass(Protocol):
    """What is computed in a pass; results are lists of arrays."""

    def of_chunk(self, chunk: Chunk) -> list[Array]:
        """Give what one chunk has to say."""

    def joined(self, parts: Iterable[list[Array]], shard: int) -> list[Array]:
        """Put results together, in their order: those of the chunks of a file, or those of all files."""


def of_shard(work: Pass, columns: Columns, table: Table, shard: int) -> tuple[list[Array], int]:
    """Give the result of one file, and how many bytes were read of it."""
    read = 0

    def parts() -> Iterator[list[Array]]:
        nonlocal read
        chunks = ahead(iter(table.chunks(columns.names, CHUNK)))
        for number, (_, arrays) in enumerate(chunks):
            read += sum(arrays[name].nbytes for name in columns.names)
            yield work.of_chunk(Chunk(shard, number, columns.data(arrays)))

    return work.joined(parts(), shard), read


def ahead(chunks: Iterator[Any]) -> Iterator[Any]:
    """Give what an iterator gives, the next item being read meanwhile."""
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, chunks, None)
        while (chunk := coming.result()) is not None:
            coming = reader.submit(next, chunks, None)
            yield chunk


@dataclass
class Scanner:
    """Makes passes over a table, or finds in a checkpoint what they gave.

    Attributes
    ----------
    table : Table
        The table.
    columns : Columns
        Those that are read.
    entropy : tuple of int
        What all random numbers follow from.
    workers : Executor or None
        Who works on the files; None: this process.
    made, bytes : int
        Passes made or found, and bytes that they have read.
    """

    table: Table
    columns: Columns
    entropy: tuple[int, ...]
    said: Progress
    store: PassStore = field(default_factory=PassStore)
    workers: Executor | None = None
    made: int = 0
    bytes: int = 0

    def __reduce__(self) -> Any:
        """Leave to pickle what work on a chunk needs: a worker makes no passes itself."""
        return Scanner, (None, self.columns, self.entropy, None)

    @property
    def size(self) -> int:
        """Number of rows, N."""
        return self.table.size

    def rng(self, *words: int) -> np.random.Generator:
        """Give the generator of one purpose."""
        return np.random.default_rng([*self.entropy, *words])

    def result(self, name: str, work: Pass) -> list[Array]:
        """Make a pass, unless a checkpoint has what it gave under that name."""
        self.made += 1
        found = self.store.found(name)
        if found is None:
            with self.said(f"pass {self.made} over {self.size:,} rows: {name}"):
                found = self._made(work)
            self.store.keep(name, found)
        *result, read = found
        self.bytes += int(read)
        return result

    def _made(self, work: Pass) -> list[Array]:
        shards, read = [shard for shard in self.table.shards if shard.size > 0], 0

        def parts() -> Iterator[list[Array]]:
            nonlocal read
            one = functools.partial(of_shard, work, self.columns)
            for part, count in of_shards(self.workers, one, shards, range(len(shards))):
                read += count
                yield part

        return [*work.joined(parts(), ALL_FILES), np.array(read)]


@dataclass(frozen=True)
class Subsample:
    """A pass that takes each row with the same chance."""

    scanner: Scanner
    share: float

    def of_chunk(self, chunk: Chunk) -> list[Array]:
        """Take some rows of a chunk."""
        rows = self.scanner.columns.rows_of(chunk.data)
        size = len(rows[0])
        if self.share >= 1.0:
            return rows
        rng = self.scanner.rng(SUBSAMPLE, chunk.shard, chunk.number)
        some = np.sort(rng.choice(size, rng.binomial(size, self.share), replace=False))
        return [array[some] for array in rows]

    def joined(self, parts: Iterable[list[Array]], shard: int) -> list[Array]:
        """Put rows one below the other."""
        return concatenated(parts)


@dataclass(frozen=True)
class Sums:
    """A pass that sums log factors and their derivatives at a point."""

    model: Any  # of whatever rows
    columns: Columns
    theta: Floats

    def of_chunk(self, chunk: Chunk) -> list[Array]:
        """Give value, gradient and Hessian of a chunk."""
        size = len(self.columns.rows_of(chunk.data)[0])
        value, gradient, hessian = self.model.of_data(chunk.data, size).factors(self.theta)
        return [np.array(value), gradient, dense(hessian)]

    def joined(self, parts: Iterable[list[Array]], shard: int) -> list[Array]:
        """Add them up."""
        return added(parts)


@dataclass(frozen=True)
class Missing:
    """A pass that looks for the first number that is none, or infinite: its file, row and column."""

    columns: Columns

    def of_chunk(self, chunk: Chunk) -> list[Array]:
        """Look at the numbers of a chunk."""
        arrays = [np.atleast_2d(array.T) for array in self.columns.rows_of(chunk.data)]
        found = np.argwhere(~np.concatenate([np.isfinite(array) for array in arrays]).T)[:1]
        return [found + np.array([chunk.number * CHUNK, 0]), np.full(len(found), chunk.shard)]

    def joined(self, parts: Iterable[list[Array]], shard: int) -> list[Array]:
        """Give the first that was found."""
        return [array[:1] for array in concatenated(parts)]


def missing_number(scanner: Scanner) -> str | None:
    """Say which number of a table is the first that is none, or infinite."""
    places, shards, _ = scanner._made(Missing(scanner.columns))
    if not len(places):
        return None
    row, column = places[0].tolist()
    file = [shard for shard in scanner.table.shards if shard.size > 0][int(shards[0])]
    listed = [name for one in scanner.columns.named for name in ([one] if isinstance(one, str) else one)]
    name = getattr(file, "name", "the table")
    return f"{name} has no finite number in row {row} (counted from 0) of column {listed[column]!r}"


def added(parts: Iterable[list[Array]]) -> list[Array]:
    """Add up lists of arrays, in their order."""
    total: list[Array] = []
    for part in parts:
        total = [one + other for one, other in zip(total, part, strict=True)] if total else part
    return total


def concatenated(parts: Iterable[list[Array]]) -> list[Array]:
    """Put arrays one below the other."""
    return [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]
