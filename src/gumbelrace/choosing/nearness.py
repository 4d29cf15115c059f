"""Who beats a leader by no more than a tolerance.

For a pair (j, c) a wealth is kept against "j beats c by more than ε", by Z = score of c - score of j. Each
pair gets δ2 / (D - 1): whoever the best is, it may meet D - 1 others as leaders. The wealth grows with ε
along every path, so that solving it for ε (`limits`) says how near c is when the race is stopped early.
"""

import numpy as np
from numpy.typing import NDArray

from gumbelrace.choosing.bets import STAKES, Floats, Sampled, grown_on, mixed
from gumbelrace.choosing.scores import Indices, Scores


class Nearness:
    """Pairs of candidates and leaders, each followed up to the shorter of its settled prefixes.

    Parameters
    ----------
    scores : Scores
        The scores that are there.
    sampled : Sampled
        What they are a sample of.
    tolerance : float
        ε, in units of the range.
    level : float
        Bound on the probability of an error about one pair.
    """

    def __init__(self, scores: Scores, sampled: Sampled, tolerance: float, level: float) -> None:
        self.scores, self.level = scores, level
        self._claim = (-tolerance, sampled, -1.0)
        self._columns: dict[int, _Column] = {}

    def of(self, leader: int, candidates: Indices) -> NDArray[np.bool_]:
        """Say of all candidates whether they are known to be near the leader; look at these anew."""
        if leader not in self._columns:
            self._columns[leader] = _Column(len(self.scores.settled))
        column = self._columns[leader]
        candidates = candidates[~column.near[candidates] & (candidates != leader)]
        for rows in np.unique(column.rows[candidates]):
            group = candidates[column.rows[candidates] == rows]
            for until in np.unique(self.scores.settled[group]):
                self._follow(leader, group[self.scores.settled[group] == until], int(rows), int(until))
        return column.near

    def _follow(self, leader: int, group: Indices, rows: int, until: int) -> None:
        """Bet on the positions from `rows` on, which are settled by now."""
        column, scores = self._columns[leader], self.scores
        if until <= rows:
            return
        seen = scores.low_sums(np.array([leader]), rows) - scores.high_sums(group, rows)
        z = scores.low[leader, rows:until] - scores.high[group, rows:until]
        logs = grown_on(column.logs[:, group], z, seen, rows, self._claim)
        column.logs[:, group], column.rows[group] = logs[..., -1], until
        column.near[group] = (mixed(logs) >= -np.log(self.level)).any(axis=-1)


class _Column:
    """What is known of all candidates against one leader."""

    def __init__(self, count: int) -> None:
        self.logs: Floats = np.zeros((len(STAKES), count))
        self.rows: Indices = np.zeros(count, np.int64)
        self.near: NDArray[np.bool_] = np.zeros(count, np.bool_)
