"""Means of arms that share their rows, and intervals around them, from the state in which a race ends.

An arm of which T of N rewards were read has an interval by Hoeffding's inequality for draws without
replacement (Serfling 1974; Bardenet and Maillard 2015): with rewards in [l, h], at a fixed T

    P(|mean of T - mean of N| > (h - l) √(ρ_T log(2/δ) / 2T)) ≤ δ,
    ρ_T = min(1 - (T-1)/N, (1 - T/N)(1 + 1/T)).

A race decides by what it reads when it stops reading an arm, so the inequality must hold at all T at once:
T has the share w_T = 1 / (2.11 (T+1) log²(T+1)) of δ, each of D arms a D-th of that. What rewards not read
can be at least and at most bounds the mean for sure.

Without a range nothing is proved. A race that takes means for normal then has intervals by the bound it
decided with, which holds at all its looks together: G(δ/2D, T, σ̂) to both sides, with σ̂ of the rewards of
the arm that are still held when the race ends.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.methods.reading import HELD, KEPT
from gumbelrace.methods.shared import SharedWorkspace
from gumbelrace.methods.state import ALIVE, EXHAUSTED
from gumbelrace.population.arrays import LARGEST_REWARD
from gumbelrace.population.base import Floats

# Σ 1 / (m log² m) over m ≥ 2, rounded up.
SUM_OF_SHARES = 2.11


@dataclass(frozen=True, eq=False)
class Estimates:
    """Means of all arms, offset included, and intervals that hold together with probability `level`.

    Attributes
    ----------
    means : ndarray of float64
        Offset plus sum of the rewards, over the number of rows: exact where all were read, else estimated;
        -inf of impossible arms, NaN of those that were ruled out before anything was read. With a control
        variate they lack a part that all arms share.
    low, high : ndarray of float64
        Ends of the intervals. Where the range of rewards is not known they are those of the method's own
        bound, or infinite if it has none.
    level : float
        Probability with which all intervals hold, whenever the race ended: 1 - δ of the method.
    proved : bool
        Whether they hold whatever the rewards are: the range of all arms is known. Else they rest on what
        the method assumes.
    """

    means: Floats
    low: Floats
    high: Floats
    level: float
    proved: bool


class Ended(NamedTuple):
    """What is left of a race when it has ended: who wants estimates makes them of that."""

    taken: NDArray[np.int64]  # rows read of each arm
    seen: Floats  # their sums
    offset: Floats
    possible: NDArray[np.bool_]  # whether nothing has shown an arm to be impossible
    low: Floats  # of the rewards, as far as they are known
    high: Floats
    size: int  # rows that a race could read
    rows: int  # and those in all
    delta: float
    margins: Floats | None  # how far means of rows read may be off by the method's own bound, if it has one


def ended(workspace: SharedWorkspace, rows: int, delta: float, margins: Floats | None) -> Ended:
    """Copy the end of a race, of so many rows in all."""
    state, source, size = workspace.state, workspace.source, int(workspace.sizes[0])
    taken = state.rows.copy()
    if state.tally[EXHAUSTED]:  # by a scan, which does not count
        taken[state.arms[: state.tally[ALIVE]]] = size
    known = np.isneginf(source.low) if not source.verify else False
    possible = (state.offset > -np.inf) & ~np.asarray(known) & (source.ruled_out == 0)
    shift = state.shift[0] if np.isfinite(state.shift[0]) else 0.0
    seen = np.where(taken > 0, state.sums + shift * taken, 0.0)
    low, high = source.low.copy(), source.high.copy()
    return Ended(taken, seen, state.offset.copy(), possible, low, high, size, rows, delta, margins)


def knows_all_ranges(low: Floats, high: Floats) -> bool:
    """Whether the rewards of every arm are known to lie between two numbers."""
    return bool(((low > -LARGEST_REWARD) & (high < LARGEST_REWARD)).all())


def deviations(workspace: SharedWorkspace) -> Floats:
    """Give the standard deviation of each arm's rewards, of those that are held where they were copied.

    The first KEPT columns hold rewards of rows that were read, each of another row: when they are full,
    later rows overwrite earlier ones, some HELD at most at a time. Arms out of the race are not written to.
    """
    held, taken = workspace.sample.rewards, workspace.state.rows
    counts = np.where(taken <= KEPT, taken, KEPT - HELD).tolist()
    return np.array([held[arm, :n].std() if n > 1 else np.inf for arm, n in enumerate(counts)])


def estimated(end: Ended) -> Estimates:
    """Estimate the means at the end of a race."""
    low = np.where(end.low > -LARGEST_REWARD, end.low, -np.inf)
    high = np.where(end.high < LARGEST_REWARD, end.high, np.inf)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = end.seen / end.taken * end.size
        margin = half_width(high - low, end.taken, end.size, end.delta / len(low))
        if end.margins is not None:
            margin = np.where(np.isinf(margin), end.margins, margin)
        margin *= end.size
        left = end.size - end.taken
        surely = [end.seen + np.where(left > 0, left * side, 0.0) for side in (low, high)]
        ends = np.fmax(value - margin, surely[0]), np.fmin(value + margin, surely[1])
        found = [(x + end.offset) / end.rows for x in (value, *ends)]
    means, lowest, highest = (np.where(end.possible, x, -np.inf) for x in found)
    return Estimates(means, lowest, highest, 1.0 - end.delta, knows_all_ranges(end.low, end.high))


def half_width(width: Floats, taken: NDArray[np.int64], size: int, delta: float) -> Floats:
    """How far means of `taken` rewards may be off, at any time; 0 of those that were read to the end."""
    t = np.maximum(taken, 1).astype(np.float64)
    without = np.minimum(1.0 - (t - 1.0) / size, (1.0 - t / size) * (1.0 + 1.0 / t))
    shares = SUM_OF_SHARES * (t + 1.0) * np.square(np.log(t + 1.0))
    log_term = np.log(2.0 * shares / delta) if delta > 0.0 else np.full(len(t), np.inf)
    found: Floats = np.where(taken >= size, 0.0, width * np.sqrt(without * log_term / (2.0 * t)))
    return np.where(taken > 0, found, np.inf)
