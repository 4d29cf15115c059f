"""Rows of a population, and what is said of them: which are read in full, and their weights and bounds.

`orders` has how rows are read in random order; what is here is made once, and lends streams to draws.
"""

import functools
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumbelrace.core.orders import NO_ROWS, Stream, Streams, new_stream, new_streams
from gumbelrace.core.pool import Pool
from gumbelrace.core.random import EQUAL_CHANCES, NOTHING_AHEAD, Alias, alias_of
from gumbelrace.errors import InvalidArgument, ShapeMismatch

# Long blocks are read about as fast as a stream. But given the order of the rows, those read are a sample
# of blocks: with a thousand of them that is almost one of rows. Few rows are read one by one.
BLOCKS, LONGEST = 1024, 1024
SINGLE_ROWS = 16_384
# Sizes take part in floating-point arithmetic, which holds whole numbers up to this one.
MOST_ROWS = 2**53 - 1
# Of what is counted in 32 bits: variables and labels of graphs, mentions.
LARGEST = 2**31 - 1


class IndependentRows:
    """Rows of each arm, and the streams that read them, each arm's in an order of its own.

    Parameters
    ----------
    sizes : ndarray of int64
        Number of rows of each arm.
    block : int
        Rows in a block, as in `Rows`.
    tail : ndarray of int64
        The row at each place, where arms share their rows; empty: places are rows.
    """

    def __init__(self, sizes: NDArray[np.int64], block: int = 1, tail: NDArray[np.int64] = NO_ROWS) -> None:
        self._pool = Pool(functools.partial(new_streams, sizes, block, tail))

    def streams(self) -> AbstractContextManager[Streams]:
        """Lend streams to one thread."""
        return self._pool.lend()


class Rows:
    """Rows that all arms share: a head that is read in full, and a tail of which rows are chosen at random.

    Rows of the tail are read in random order, each once; or they are drawn with replacement, by their
    weights or their bounds. A tail, tables of chances and orders are as long as the data: rows are made
    once, for all populations that read them.

    Parameters
    ----------
    size : int
        Number of rows, N.
    block : int, optional
        Rows in a block. More than one is for rows that lie in random order: only then is a sample of
        blocks one of rows.
    head : array_like of int, optional
        Rows that are read in full, in increasing order. Default: none.
    weights : array_like of shape (N,), optional
        How much each row is expected to matter: large ones are drawn more often. Default: all the same.
    bounds : array_like of shape (N,), optional
        Sizes that the rewards of each row cannot exceed, on any scale. Default: all the same.

    Attributes
    ----------
    weights, bounds : ndarray of shape (N,), or None
        Those of the tail, zero in the head; bounds relative to the largest.

    Examples
    --------
    >>> rows = Rows(6, head=[1, 4], weights=[1, 9, 2, 1, 9, 2])
    >>> rows.tail
    array([0, 2, 3, 5])
    >>> rows.weights
    array([1., 0., 2., 1., 0., 2.])
    """

    #: Where those who read rows that were drawn ahead stand; see `DrawnRows`.
    cursor = NOTHING_AHEAD

    def __init__(
        self,
        size: int,
        block: int = 1,
        *,
        head: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        bounds: ArrayLike | None = None,
    ) -> None:
        check_size(size)
        self.size, self.block = size, block
        self.head = checked_head(head, size)
        self._of_all = checked_chances(weights, size, "weights"), checked_chances(bounds, size, "bounds")
        self.weights, highest = self._in_tail(self._of_all[0]), self._in_tail(self._of_all[1])
        self.bounds = None if highest is None else highest / highest.max()
        self._joined: tuple[Rows, Rows] | None = None
        self._pool = Pool(self._new_stream)

    def _in_tail(self, given: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
        """Give numbers with zeros in the head; None if no others are left."""
        if given is None or not len(self.head):
            return given
        kept = given.copy()
        kept[self.head] = 0.0
        return kept if kept.any() else None

    def __reduce__(self) -> Any:
        """Leave to pickle what rows are made of, not the tables that follow from it."""
        weights, bounds = self._of_all
        made = functools.partial(Rows, head=self.head, weights=weights, bounds=bounds)
        return made, (self.size, self.block)

    @property
    def tail(self) -> NDArray[np.int64]:
        """The rows that are not in the head."""
        return self.names if len(self.head) else np.arange(self.size)

    @functools.cached_property
    def names(self) -> NDArray[np.int64]:
        """The row at each place of the tail; empty if places are rows."""
        return np.delete(np.arange(self.size), self.head) if len(self.head) else NO_ROWS

    @property
    def tail_size(self) -> int:
        """How many rows are not in the head."""
        return self.size - len(self.head)

    @property
    def identity(self) -> dict[str, Any]:
        """How many there are, and what is said of them; their order every process draws anew."""
        said = {
            "head": self.head if len(self.head) else None,
            "weights": self.weights,
            "bounds": self.bounds,
        }
        return {"size": self.size} | {name: value for name, value in said.items() if value is not None}

    def with_head(self, head: NDArray[np.int64]) -> "Rows":
        """Give the same rows with another head."""
        weights, bounds = self._of_all
        return Rows(self.size, self.block, head=head, weights=weights, bounds=bounds)

    def joined(self, other: "Rows") -> "Rows":
        """Give rows with the heads of both, and the weights and bounds of these or else of the others.

        Asked again for the same others, it gives the same rows: populations of every step share them.
        """
        head = np.union1d(self.head, other.head) if len(other.head) else self.head
        weights, bounds = (
            theirs if ours is None else ours
            for ours, theirs in zip(self._of_all, other._of_all, strict=True)
        )
        if len(head) == len(self.head) and weights is self._of_all[0] and bounds is self._of_all[1]:
            return self
        last = self._joined
        if last is None or last[0] is not other:
            last = other, Rows(self.size, self.block, head=head, weights=weights, bounds=bounds)
            self._joined = last
        return last[1]

    def stream(self) -> AbstractContextManager[Stream]:
        """Lend a stream to one thread."""
        return self._pool.lend()

    @functools.cached_property
    def mean_bound(self) -> float:
        """Mean of the bounds of the tail, which are relative to the largest."""
        return 1.0 if self.bounds is None else float(self.bounds.sum()) / self.tail_size

    def _new_stream(self) -> Stream:
        return new_stream(self.tail_size, self.block, self.names, self._weighted, self._bounded)

    @functools.cached_property
    def _weighted(self) -> Alias:
        return self._table(self.weights)

    @functools.cached_property
    def _bounded(self) -> Alias:
        return self._table(self.bounds)

    def _table(self, chances: NDArray[np.float64] | None) -> Alias:
        """Give the table of chances, which are relative to those of an equal draw from the tail."""
        if chances is None:
            return EQUAL_CHANCES._replace(other=self.names)
        table = alias_of(chances)
        return table._replace(chance=table.chance * (self.tail_size / self.size))


class DrawnRows(Rows):
    """Rows that were drawn ahead, with replacement and by their weights: read in order, each once.

    Parameters
    ----------
    inverse : ndarray of shape (K,)
        W / w of each, w being its weight and W the sum of the weights of all rows that it was drawn from:
        what it says of a sum over all of them is that many times its reward.
    most : int
        Rows that a decision reads at most.

    Examples
    --------
    >>> rows = DrawnRows(np.array([10.0, 20.0, 10.0]), most=2)
    >>> rows.tail_size, rows.size
    (2, 3)
    """

    def __init__(self, inverse: NDArray[np.float64], most: int) -> None:
        super().__init__(len(inverse))
        self.inverse, self.most, self.cursor = inverse, most, np.zeros(3, np.int64)

    def __reduce__(self) -> Any:
        """Leave to pickle what rows are made of."""
        return DrawnRows, (self.inverse, self.most)

    @property
    def tail_size(self) -> int:
        """As many rows as a decision can read: it never reads all."""
        return self.most

    def joined(self, other: Rows) -> "DrawnRows":
        """Give the same rows: nothing else is known of them."""
        return self

    @functools.cached_property
    def _weighted(self) -> Alias:
        # Sums are estimated as means times `most`.
        chance = self.most / self.inverse
        return Alias(chance, NO_ROWS, chance, self.cursor)


def checked_head(head: ArrayLike | None, size: int) -> NDArray[np.int64]:
    """Return the rows of a head, or say what is wrong with them."""
    if head is None:
        return NO_ROWS
    rows = np.asarray(head)
    if rows.ndim != 1 or (len(rows) and rows.dtype.kind not in "iu"):
        raise InvalidArgument("rows that are read in full must be a sequence of integers")
    if np.any(np.diff(rows) <= 0):
        raise InvalidArgument("rows that are read in full must be in increasing order")
    if len(rows) and not 0 <= rows[0] <= rows[-1] < size:
        raise InvalidArgument(f"rows that are read in full must lie in 0..{size - 1}")
    if len(rows) == size:
        raise InvalidArgument("every row is read in full: nothing is left to race on; use Exact()")
    return rows.astype(np.int64, copy=False)


def largest(values: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Give the rows of the `count` largest values, in increasing order."""
    return np.sort(np.argsort(values, kind="stable")[len(values) - count :])


def checked_chances(given: ArrayLike | None, size: int, name: str) -> NDArray[np.float64] | None:
    """Return one number for each row, none negative, or say what is wrong with them."""
    if given is None:
        return None
    try:
        chances = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument(f"{name} must be numbers, one for each of the {size} rows") from None
    if chances.shape != (size,):
        raise ShapeMismatch(f"{name} have shape {chances.shape}; give one for each of the {size} rows")
    if not (np.isfinite(chances).all() and (chances >= 0.0).all() and chances.any()):
        raise InvalidArgument(f"{name} must be finite and not negative, and not all of them zero")
    if name == "weights" and not chances.all():
        raise InvalidArgument(
            f"row {int(np.argmin(chances))} has a weight of 0, and would never be drawn; give rows that "
            "matter little a small weight, such as a tenth of the mean"
        )
    return chances


def check_size(size: int) -> None:
    """Check that there are rows, and that they can be counted."""
    if not 1 <= size <= MOST_ROWS:
        raise InvalidArgument(f"size is {size}; a population has 1 to {MOST_ROWS} rows")


def block_length(size: int, longest: int = LONGEST) -> int:
    """Give the length of the blocks in which rows in random order are read: a power of two, or 1."""
    if size < SINGLE_ROWS:
        return 1
    return 1 << min(size // BLOCKS, longest).bit_length() - 1
