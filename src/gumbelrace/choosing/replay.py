"""The race as a replay: its state is a function of the scores in the order of positions, of nothing else.

For each candidate j one wealth is kept against "j is the best". At every position j bets on a rival (the
leader by the positions before; the leader itself on the runner-up) by Z = score of the rival - score of j.
j is out when its wealth reaches 1/δ1: only the true best can be dropped wrongly, so that δ1 is not divided.
With a tolerance, candidates shown to beat the leader by no more than that pause (`nearness`) as long as it
leads. They lag behind then; when another leads they first catch up, against the leaders of the positions
they missed.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gumbelrace.choosing.bets import MOST_AT_STAKE, ROUNDING, Floats, Sampled, kelly
from gumbelrace.choosing.nearness import Nearness
from gumbelrace.choosing.scores import Indices, Scores

# Variance of Z to begin with, worth one row.
PRIOR_VARIANCE = 1.0
NEVER = -1


@dataclass(frozen=True)
class Promise:
    """What is claimed, and how the chance of an error is divided.

    Parameters
    ----------
    sampled : Sampled
        What the scores are a sample of.
    delta : float
        Bound on the probability that what is said of the best candidate is wrong.
    tolerance : float
        How far from the best is good enough, in units of the range.
    """

    sampled: Sampled
    delta: float
    tolerance: float = 0.0

    @property
    def delta_out(self) -> float:
        """δ1: bounds the probability that the best candidate is dropped."""
        return self.delta - self.delta_near

    @property
    def delta_near(self) -> float:
        """δ2: bounds the probability that the best is farther from a leader than was shown.

        Without a tolerance it is needed if the race is stopped early: a tenth will do.
        """
        return self.delta * (0.5 if self.tolerance > 0.0 else 0.1)


class Replay:
    """The state of the race after all positions for which the scores are there.

    Parameters
    ----------
    scores : Scores
        Filled by others, in any order.
    promise : Promise
        What is claimed.

    Examples
    --------
    >>> scores = Scores(2, 100)
    >>> replay = Replay(scores, Promise(Sampled(100, finite=True), delta=0.05))
    >>> for position in range(30):
    ...     scores.put(0, position, 0.0, 0.0)
    ...     scores.put(1, position, 1.0, 1.0)
    >>> replay.go_on()
    >>> replay.is_over, replay.leader, replay.rows < 20
    (True, 1, True)
    """

    def __init__(self, scores: Scores, promise: Promise) -> None:
        count = len(scores.settled)
        self.scores, self.promise = scores, promise
        self.nearness = Nearness(scores, promise.sampled, promise.tolerance, self._near_level(count))
        self.log_wealth, self.squares = np.zeros((2, count))
        self.out_at = np.full(count, NEVER)  # positions settled when a candidate was dropped
        self.rows, self.leader = 0, 0
        self._leaders: list[int] = []
        self._want(np.ones(count, np.bool_))

    def _near_level(self, count: int) -> float:
        return self.promise.delta_near / max(count - 1, 1)

    @property
    def out(self) -> NDArray[np.bool_]:
        """Who was dropped."""
        out: NDArray[np.bool_] = self.out_at != NEVER
        return out

    def _want(self, wanted: NDArray[np.bool_]) -> None:
        """Note whose scores are needed: who is neither out nor near the leader."""
        self.wanted, self.racing = wanted, np.flatnonzero(wanted)
        self.position = int(self.scores.settled[self.racing].min())  # the next to be settled
        #: Whether no further score is needed, or there is none.
        self.is_over = len(self.racing) == 1 or self.position == self.scores.size

    def go_on(self) -> None:
        """Settle every position for which the scores are there, those of who lags behind first."""
        while not self.is_over:
            group = self.racing[self.scores.settled[self.racing] == self.position]
            if not self.scores.has(group, self.position):
                return
            self._settle(group, self.position)

    def _settle(self, group: Indices, position: int) -> None:
        is_new = position == self.rows
        if is_new:
            self._leaders.append(self.leader)
        self._bet(group, self._rivals(group, position), position)
        self.scores.settle(group, position)
        self._drop(group, position + 1)
        if is_new:
            self.rows += 1
            self._rank()
        self._pause()

    def _rivals(self, group: Indices, position: int) -> Indices:
        """Give the leader at the position; to the leader, who is not behind, the best of the others."""
        leader = self._leaders[position]
        others = group[group != leader]
        runner_up = others[self._sums(others, position).argmax()]
        return np.where(group == leader, runner_up, leader)

    def _sums(self, candidates: Indices, rows: int) -> Floats:
        return self.scores.low_sums(candidates, rows) + self.scores.high_sums(candidates, rows)

    def _bet(self, group: Indices, rivals: Indices, position: int) -> None:
        """Bet by what lies before the position, and pay out what the scores at the position bring."""
        scores, sampled = self.scores, self.promise.sampled
        seen = scores.low_sums(rivals, position) - scores.high_sums(group, position)
        z = scores.low_at(rivals, position) - scores.high_at(group, position)
        ceiling, mean = sampled.ceiling(0.0, seen, position), seen / max(position, 1)
        stake = self._stakes(group, mean - ceiling, ceiling, position)
        self.log_wealth[group] += np.log1p(stake * (z - ceiling))
        self.squares[group] += (z - mean) ** 2
        self.log_wealth[group[ceiling < -1.0 - ROUNDING]] = np.inf  # cannot be the best, whatever comes

    def _stakes(self, group: Indices, gain: Floats, ceiling: Floats, position: int) -> Floats:
        if position == 0:
            return np.zeros(len(group))
        variance = (self.squares[group] + PRIOR_VARIANCE) / (position + 1.0)
        most = MOST_AT_STAKE / np.maximum(ceiling + 1.0, ROUNDING)
        return np.minimum(kelly(gain, variance, self.promise.sampled, position), most)

    def _drop(self, group: Indices, settled: int) -> None:
        beaten = group[self.log_wealth[group] >= -np.log(self.promise.delta_out)]
        self.out_at[beaten] = settled
        if self.out[group].all() and self.out[self.leader]:  # somebody has to lead
            self.out_at[self.leader] = NEVER

    def _rank(self) -> None:
        """Find the leader among those that are not behind."""
        racing = np.flatnonzero(~self.out & (self.scores.settled == self.rows))
        self.leader = int(racing[self._sums(racing, self.rows).argmax()])

    def _pause(self) -> None:
        wanted = ~self.out
        if self.promise.tolerance > 0.0:
            wanted &= ~self.nearness.of(self.leader, np.flatnonzero(wanted))
        wanted[self.leader] = True
        self._want(wanted)
