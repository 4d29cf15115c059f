"""A pool of rows, drawn by their weights in one pass that also tries the law around the mode.

Each row n is drawn k_n ~ Poisson(λ w_n) times. Given how many draws there are in all, they are independent
draws with replacement, with chances w_n / W; put in random order, they are read one after another as if
each had been drawn when it was needed. So λ may be chosen by a guess of W: only the length of the pool
depends on it. If it grows too long, each draw is kept with probability ½, which leaves Poisson numbers
with λ / 2.
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from gumbelrace.core.rows import DrawnRows
from gumbelrace.kernels.pooled import most_rows
from gumbelrace.laplace.columns import Array, Chunk
from gumbelrace.laplace.mode import Mode
from gumbelrace.laplace.model import Floats, Indices
from gumbelrace.laplace.passes import PICKS, SHUFFLE, THINNING, Scanner, concatenated
from gumbelrace.population.control import FLOOR

# A pool that is so many times as long as it should be is thinned.
TOO_LONG = 2.0


class Trial(NamedTuple):
    """What some rows say of the law: sums over them."""

    left: Floats  # of residuals at each point
    ruled_out: Floats  # how many rows rule each point out
    sizes: Floats  # of s, for each law
    weights: Floats  # of w, and for each law of s² / w

    @property
    def whole(self) -> Floats:
        """All of it in one array, that can be added up."""
        return np.concatenate(self)


def trial_of(whole: Floats, points: int) -> Trial:
    """Give what `Trial.whole` was made of, of so many points."""
    laws = (len(whole) - 2 * points - 1) // 2
    return Trial(*np.split(whole, np.cumsum([points, points, laws])))


class Weighing(NamedTuple):
    """How rows are weighed: w = s + floor, s² being the mean square change between two points of a law."""

    centre: Floats
    steps: Floats  # from the centre: points of each law, and others
    laws: Indices  # the law that each point belongs to; -1: none, or the prior rules it out
    law: int  # by whose points rows are weighed
    floor: float

    def tried(self, model: Any) -> tuple[Trial, Floats]:
        """Read some rows at all points; give sums and the weights of rows."""
        left, ruled_out, sums = model.tried(self.centre, self.steps, self.laws)
        points = np.bincount(self.laws[self.laws >= 0])
        squares = 2.0 * sums / np.maximum(points, 1)[:, None]
        weights = np.sqrt(squares[self.law]) + self.floor
        of_weights = np.array([weights.sum(), *(squares / weights).sum(axis=1)])
        sizes = np.sqrt(squares).sum(axis=1)
        return Trial(left, ruled_out, sizes, of_weights), weights


@dataclass(frozen=True)
class Drawing:
    """A pass that weighs all rows, and draws some of them."""

    scanner: Scanner
    model: Any
    weighing: Weighing
    rate: float  # λ
    most: int  # rows from which on a pool is thinned
    longest: int  # rows that there is memory for
    number: int = 0  # of the pool

    def of_pool(self, number: int) -> "Drawing":
        """Give the drawing of another pool, twice as long as the one before it where memory allows.

        Who needs another one reads more rows than was foreseen, and each takes a pass.
        """
        times = max(min(2.0 ** min(number, 60), TOO_LONG * self.longest / self.most), 1.0)
        return replace(self, rate=times * self.rate, most=int(times * self.most), number=number)

    def of_chunk(self, chunk: Chunk) -> list[Array]:
        """Weigh the rows of a chunk, and draw some."""
        rows = self.scanner.columns.rows_of(chunk.data)
        trial, weights = self.weighing.tried(self.model.of_data(chunk.data, len(rows[0])))
        rng = self.scanner.rng(PICKS, self.number, chunk.shard, chunk.number)
        ends, rate = np.cumsum(weights), self.rate
        while rate * ends[-1] > self.most:  # rows that the subsample has told nothing of
            rate *= 0.5
        count = rng.poisson(rate * ends[-1])
        picked = np.searchsorted(ends, np.sort(rng.random(count)) * ends[-1], side="right")
        picked = np.minimum(picked, len(ends) - 1)
        return [trial.whole, np.array(rate), weights[picked], *(array[picked] for array in rows)]

    def joined(self, parts: Iterable[list[Array]], shard: int) -> list[Array]:
        """Add up what was found, and put draws together, all with the same rate."""
        total, rate, thinned, drawn = np.zeros(1), self.rate, 0, list[list[Array]]()
        for trial, own_rate, *rows in parts:
            total, rate = total + trial, min(rate, float(own_rate))
            drawn.append([own_rate, *rows])
            if sum(len(part[1]) for part in drawn) > self.most:
                rate *= 0.5
            if any(float(part[0]) > rate for part in drawn):
                rng = self.scanner.rng(THINNING, self.number, shard, thinned)
                drawn, thinned = [to_rate(rng, part, rate) for part in drawn], thinned + 1
        return [total, np.array(rate), *concatenated(part[1:] for part in drawn)]


def to_rate(rng: np.random.Generator, part: list[Array], rate: float) -> list[Array]:
    """Keep draws with the chance that makes their rate what it shall be."""
    if float(part[0]) <= rate:
        return part
    kept = rng.random(len(part[1])) < rate / float(part[0])
    return [np.array(rate), *(array[kept] for array in part[1:])]


class RowPool(NamedTuple):
    """Rows that were drawn: W / w of each, and the arrays of their data."""

    inverse: Floats
    rows: list[Array]

    @property
    def bytes(self) -> int:
        """How much memory it takes."""
        return self.inverse.nbytes + sum(array.nbytes for array in self.rows)


def pool_of(result: list[Array], points: int, rng: np.random.Generator) -> tuple[Trial, RowPool]:
    """Give what the pass found at so many points, and the rows in random order."""
    whole, _, weights, *rows = result
    trial = trial_of(whole, points)
    order = rng.permutation(len(weights))
    for k in range(len(rows)):  # one after another: the memory of one is free for the next
        rows[k] = rows[k][order]
    return trial, RowPool(trial.weights[0] / weights[order], rows)


@dataclass(eq=False)
class Pools:
    """Pools of rows of a table, each drawn in a pass when it is first asked for. See `RowPools`.

    The last two are kept: a chain that has fallen further behind has its pool drawn again.
    """

    drawing: Drawing
    mode: Mode
    _known: dict[int, RowPool] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def scanner(self) -> Scanner:
        """What makes passes."""
        return self.drawing.scanner

    @property
    def size(self) -> int:
        """Number of rows that pools are drawn from, N."""
        return self.scanner.size

    @property
    def identity(self) -> dict[str, Any]:
        """What the pools follow from."""
        drawing, columns = self.drawing, self.scanner.columns
        own = {"entropy": self.scanner.entropy, "rate": drawing.rate, "columns": list(columns.given)}
        return {**own, "weighing": drawing.weighing, "size": self.size, "sums": self.mode.factors}

    @property
    def remark(self) -> str:
        """What was read so far."""
        passes, pool = self.scanner, self._known[max(self._known)]
        return (
            f"{passes.made} passes over {self.size:,} rows, {passes.bytes / 1e9:.3g} GB read; "
            f"pool of {len(pool.inverse):,} rows, {pool.bytes / 1e6:.3g} MB"
        )

    def first(self) -> Trial:
        """Draw the first pool, and give what was found on the way."""
        trial, self._known[0] = self._drawn(0)
        return trial

    def pool(self, number: int) -> RowPool:
        """Give a pool."""
        with self._lock:
            if number not in self._known:
                if number > 0:
                    self.scanner.said.tell("the pool of rows is used up; another one is drawn")
                self._known.pop(number - 2, None)
                self._known[number] = self._drawn(number)[1]
            return self._known[number]

    def _drawn(self, number: int) -> tuple[Trial, RowPool]:
        drawing = self.drawing.of_pool(number)
        points = len(drawing.weighing.steps)
        result = self.scanner.result(f"pool {number}, {points} points", drawing)
        return pool_of(result, points, self.scanner.rng(SHUFFLE, number))

    def length(self, number: int) -> int:
        """Give the number of rows in a pool."""
        return len(self.pool(number).inverse)

    def likelihood(self, number: int) -> tuple[Any, DrawnRows]:
        """Give the log factors of the rows in a pool, less their expansion, and a cursor of their own."""
        pool = self.pool(number)
        rows = DrawnRows(pool.inverse, most_rows(len(pool.inverse)))
        data = self.scanner.columns.with_rows(pool.rows)
        return self.drawing.model.likelihood_of_drawn(self.mode, data, rows), rows


def floor_of(sizes: Floats) -> float:
    """Give what is added to the size of each row's changes, as `row_weights` does; 1 if nothing changes."""
    return float(FLOOR * sizes.mean()) or 1.0
