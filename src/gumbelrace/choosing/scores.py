"""Scores in the order of positions, as far as they are there, and their sums, as far as they are settled.

A failure may stand between the lowest and the highest score: `low` and `high` then differ.
"""

import numpy as np
from numpy.typing import NDArray

from gumbelrace.choosing.bets import Floats
from gumbelrace.errors import NotSettled

Indices = NDArray[np.int64]
FIRST_ROOM = 64


class Scores:
    """Scores of all candidates at all positions, in units of the range.

    Bets ask for `sums`, which there are of settled positions only.

    Parameters
    ----------
    candidates, size : int
        Number of candidates and of positions.

    Examples
    --------
    >>> scores = Scores(2, 10)
    >>> scores.put(0, 0, 0.25, 0.25)
    >>> scores.has(np.array([0]), 0), scores.has(np.array([0, 1]), 0)
    (True, False)
    """

    def __init__(self, candidates: int, size: int) -> None:
        self.size, room = size, min(FIRST_ROOM, size)
        self.low, self.high = np.full((2, candidates, room), np.nan)
        self._low_sums, self._high_sums = np.zeros((2, candidates, room + 1))
        self.settled = np.zeros(candidates, np.int64)
        self.known = np.zeros(candidates, np.int64)  # positions known without a gap

    def put(self, candidate: int, position: int, low: float, high: float) -> None:
        """Put down the score at a position, or what it lies between."""
        self._make_room(position + 1)
        self.low[candidate, position], self.high[candidate, position] = low, high
        while self.is_there(candidate, int(self.known[candidate])):
            self.known[candidate] += 1

    def put_all(self, low: Floats, high: Floats) -> None:
        """Put down the scores at the first positions, NaN where there are none."""
        rows = low.shape[1]
        self._make_room(rows)
        self.low[:, :rows], self.high[:, :rows] = low, high
        missing = np.isnan(self.low)
        self.known[:] = np.where(missing.any(axis=1), missing.argmax(axis=1), missing.shape[1])

    def has(self, candidates: Indices, position: int) -> bool:
        """Whether the scores of all these candidates at a position are there."""
        return bool((self.known[candidates] > position).all())

    def is_there(self, candidate: int, position: int) -> bool:
        """Whether the score of a candidate at a position is there."""
        return position < self.low.shape[1] and not np.isnan(self.low[candidate, position])

    def settle(self, candidates: Indices, position: int) -> None:
        """Add up what is at the next position of these candidates."""
        if (self.settled[candidates] != position).any() or not self.has(candidates, position):
            raise NotSettled(f"position {position} cannot be settled: one before it is not, or it is empty")
        for sums, values in ((self._low_sums, self.low), (self._high_sums, self.high)):
            sums[candidates, position + 1] = sums[candidates, position] + values[candidates, position]
        self.settled[candidates] = position + 1

    def low_at(self, candidates: Indices, position: int) -> Floats:
        """Give the lowest that the scores at a position can be."""
        return self._at(self.low, candidates, position)

    def high_at(self, candidates: Indices, position: int) -> Floats:
        """Give the highest that the scores at a position can be."""
        return self._at(self.high, candidates, position)

    def _at(self, values: Floats, candidates: Indices, position: int) -> Floats:
        if not self.has(candidates, position):
            raise NotSettled(f"a bet asks for scores at position {position}, which are not all there")
        found: Floats = values[candidates, position]
        return found

    def low_sums(self, candidates: Indices, rows: int) -> Floats:
        """Give the sums over the first `rows` positions, of the lowest that the scores can be."""
        return self._sums(self._low_sums, candidates, rows)

    def high_sums(self, candidates: Indices, rows: int) -> Floats:
        """Give the sums over the first `rows` positions, of the highest that the scores can be."""
        return self._sums(self._high_sums, candidates, rows)

    def _sums(self, sums: Floats, candidates: Indices, rows: int) -> Floats:
        if (self.settled[candidates] < rows).any():
            raise NotSettled(f"a bet asks for {rows} positions, of which not all are settled")
        found: Floats = sums[candidates, rows]
        return found

    def _make_room(self, rows: int) -> None:
        room = self.low.shape[1]
        if rows <= room:
            return
        more = min(max(rows, 2 * room), self.size) - room
        self.low, self.high = (_wider(values, more, np.nan) for values in (self.low, self.high))
        self._low_sums, self._high_sums = (
            _wider(sums, more, 0.0) for sums in (self._low_sums, self._high_sums)
        )


def _wider(values: Floats, more: int, fill: float) -> Floats:
    return np.pad(values, ((0, 0), (0, more)), constant_values=fill)
