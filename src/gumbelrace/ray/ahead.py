"""Races on tables in many files: rows of a random order are drawn ahead, in growing blocks, by workers.

All draws read the rows of the table in one random order, from its front. Blocks of that order are fetched
when the first of their rows is asked for, each larger than the one before, and only the columns of the arms
that are still in: a race that ends early has read little, and one that goes on has fetched few blocks.
"""

from collections.abc import Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumbelrace.core.jit import kernel
from gumbelrace.core.orders import Stream, new_stream, take
from gumbelrace.core.pool import of_shards
from gumbelrace.core.random import Bits, Rng, as_generator, bits_of
from gumbelrace.core.rows import Rows
from gumbelrace.errors import InvalidArgument
from gumbelrace.laplace.columns import CHUNK, Table, checked_table
from gumbelrace.population.arrays import ROUNDED, would_round
from gumbelrace.population.base import Floats, Range, checked_range
from gumbelrace.population.factors import Factors

Indices = NDArray[np.int64]
# Rows of the first block, and how many times as long as all before it the next one is.
FIRST, GROWTH = 16_384, 3
MEMORY = 1e9


def population(
    table: Any,
    columns: Sequence[str] | None = None,
    *,
    reward_range: tuple[ArrayLike, ArrayLike] | None = None,
    workers: Executor | None = None,
    memory: float = MEMORY,
) -> "DrawnAhead":
    """Make a population of a table in many files, an arm for each column, for `best` and `sample`.

    Rows are fetched from all files at once, in blocks of a random order that draws share: a bound on the
    error of draws is one on average over the order (`sample(reshuffle_every=)` has it drawn anew).

    Parameters
    ----------
    table : table
        As `open_table` or `load_table` gives it.
    columns : sequence of str, optional
        The columns that are meant. Default: all.
    reward_range : (low, high), optional
        As in `factors`: numbers between which all rewards lie.
    workers : concurrent.futures.Executor, optional
        Who reads the files, such as `Cluster`; the answer is the same, bit for bit. Default: this process.
    memory : float
        Bytes of rows that are kept. A race that needs more fetches so many at a time, each by reading all
        files.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr, gumbelrace.ray
    >>> def load(shard):
    ...     rewards = np.random.default_rng(shard).random((50_000, 3)) + [0.0, 0.1, 0.0]
    ...     return dict(zip("abc", rewards.T))
    >>> population = gumbelrace.ray.population(gumbelrace.ray.load_table(range(4), load))
    >>> gr.best(population, rng=0).name
    'b'
    """
    found = checked_table(table)
    names = list(found.columns if columns is None else columns)
    missing = [name for name in names if name not in found.columns]
    if missing or len(set(names)) < max(2, len(names)):
        wrong = f"the table has no column {missing[0]!r}" if missing else f"columns are {names}"
        raise InvalidArgument(f"{wrong}; name two or more different ones of {', '.join(found.columns)}")
    return DrawnAhead(found, names, checked_range(reward_range, len(names)), workers, memory)


class DrawnAhead(Factors):
    """A population whose rows are drawn ahead. See `population`.

    Attributes
    ----------
    blocks_fetched, rows_fetched : int
        Blocks that were asked of workers, and their rows.
    """

    def __init__(
        self, table: Table, names: list[str], given: Range | None, workers: Executor | None, memory: float
    ) -> None:
        # One block: rows are read from its front.
        super().__init__(self._rewards, Rows(table.size, table.size), len(names), given)
        self.table, self._columns, self.names = table, names, tuple(names)
        self.blocks_fetched = self.rows_fetched = 0
        self._workers, self._memory = workers, memory
        self._shards = [shard for shard in table.shards if shard.size > 0]
        most = max(FIRST, int(memory / 2 / (8 * len(names))))
        self._starts = block_starts(table.size, most)
        self._kept: dict[int, dict[int, Floats]] = {}
        self._order: Order | None = None

    @property
    def assumption(self) -> str | None:
        """Nothing: the order is random."""
        return None

    def draw_order(self, rng: np.random.Generator | None) -> None:
        """Draw the order of the rows, once. See `Population.draw_order`."""
        if self._order is None:
            seed = as_generator(rng).integers(2**32, size=4)
            self._order = Order(self.size, [int(word) for word in seed])

    def reshuffled(self, rng: Rng) -> Self:
        """Return the same population, its rows in a new random order. See `Population.reshuffled`."""
        other = type(self)(self.table, self._columns, self._range, self._workers, self._memory)
        other.draw_order(as_generator(rng))
        return other

    def _row_name(self, row: int) -> int:
        return int(self._rows(row, row + 1)[0])

    def _rows(self, first: int, last: int) -> Indices:
        if self._order is None:
            self.draw_order(None)
        return self._order.rows(first, last)  # type: ignore[union-attr]

    def _rewards(self, places: Indices, arms: Indices) -> Floats:
        """Give the rewards at places of the order."""
        found = np.empty((len(places), len(arms)))
        numbers = np.searchsorted(self._starts, places, side="right") - 1
        for number in np.unique(numbers).tolist():
            own = np.flatnonzero(numbers == number)
            block, at = self._block(number, arms), places[own] - self._starts[number]
            for k, arm in enumerate(arms.tolist()):
                found[own, k] = block[arm][at]
        return found

    def _block(self, number: int, arms: Indices) -> dict[int, Floats]:
        """Give a block with some arms, fetched if it is not kept."""
        block = self._kept.setdefault(number, {})
        missing = [arm for arm in arms.tolist() if arm not in block]
        if missing:
            self._make_room(number)
            block |= dict(zip(missing, self._fetched(number, missing).T.copy(), strict=True))
        return block

    def _make_room(self, number: int) -> None:
        """Forget the last blocks, if those kept are too large: every draw reads the first ones."""
        for other in sorted(self._kept, reverse=True):
            held = sum(column.nbytes for block in self._kept.values() for column in block.values())
            if held > self._memory / 2 and other != number:
                del self._kept[other]

    def _fetched(self, number: int, arms: list[int]) -> Floats:
        """Have the rows of a block read, each in its file."""
        rows = self._rows(int(self._starts[number]), int(self._starts[number + 1]))
        self.blocks_fetched, self.rows_fetched = self.blocks_fetched + 1, self.rows_fetched + len(rows)
        order = np.argsort(rows)
        ends = np.cumsum([shard.size for shard in self._shards])
        parts = np.split(rows[order], np.searchsorted(rows[order], ends[:-1]))
        within = [part - start for part, start in zip(parts, [0, *ends[:-1].tolist()], strict=True)]
        asked = [(shard, part) for shard, part in zip(self._shards, within, strict=True) if len(part)]
        names = [self._columns[arm] for arm in arms]
        read = of_shards(self._workers, partial(rows_of_shard, names), *zip(*asked, strict=True))
        found = np.empty((len(rows), len(arms)))
        found[order] = np.concatenate(list(read))
        return found


def block_starts(size: int, most: int) -> Indices:
    """Give the place at which each block begins, and the end of the last one."""
    starts, length = [0], min(FIRST, most)
    while starts[-1] < size:
        starts.append(min(starts[-1] + length, size))
        length = min(GROWTH * starts[-1], most)
    return np.array(starts)


def rows_of_shard(names: list[str], shard: Table, rows: Indices) -> Floats:
    """Give columns of some rows of a file, whose numbers increase."""
    found = np.empty((len(rows), len(names)))
    for first, arrays in shard.chunks(names, CHUNK):
        begin, end = np.searchsorted(rows, [first, first + len(arrays[names[0]])])
        for k, name in enumerate(names):
            given = arrays[name][rows[begin:end] - first]
            check_double(given, name, shard)
            found[begin:end, k] = given
        if end == len(rows):
            break
    return found


def check_double(given: NDArray[Any], name: str, shard: Any) -> None:
    """Refuse what is no number, and whole numbers that double precision does not hold."""
    if given.dtype.kind not in "biuf" or given.dtype.itemsize > 8:
        raise InvalidArgument(
            f"column {name!r} of {shard.name} has {given.dtype}; convert it to bool, int, uint or float"
        )
    if would_round(given):
        raise InvalidArgument(f"column {name!r} of {shard.name} has {ROUNDED}")


class Order:
    """A random order of numbers, read from its front; going back begins anew."""

    def __init__(self, size: int, seed: list[int]) -> None:
        self._size, self._seed = size, seed
        self._begin()

    def _begin(self) -> None:
        self._rng, self._stream, self._at = np.random.default_rng(self._seed), new_stream(self._size), 0

    def rows(self, first: int, last: int) -> Indices:
        """Give the numbers from place `first` on."""
        if first < self._at:
            self._begin()
        while self._at < first:
            self._taken(min(first - self._at, 2**20))
        return self._taken(last - first)

    def _taken(self, count: int) -> Indices:
        rows: Indices = np.empty(count, np.int64)
        take_rows(self._stream, bits_of(self._rng), rows)
        self._at += count
        return rows


@kernel
def take_rows(stream: Stream, bits: Bits, rows: Indices) -> None:
    """Fill `rows` with the next ones of an order."""
    take(stream, bits, rows, len(rows))
