"""Limits of means that hold at all times at once, by solving wealth for the mean that it bets against."""

import numpy as np

from gumbelrace.choosing.bets import STAKES, Floats, Sampled, grown, mixed

HALVINGS = 16
# Numbers held at a time.
HELD = 2**21


def lowest_means(values: Floats, sampled: Sampled, level: float, lowest: float) -> Floats:
    """Give what the means of Z are at least, at any number of rows, but for a probability `level` each.

    Parameters
    ----------
    values : ndarray of shape (K, T)
        Z at positions 1..T, of K kinds.
    sampled : Sampled
        What they are a sample of.
    level : float
        The probability that the mean is less at any T.
    lowest : float
        No Z is less, and none is more than `lowest` + 2.

    Examples
    --------
    >>> values = np.random.default_rng(0).random((1, 2000))
    >>> 0.45 < lowest_means(values, Sampled(10_000, finite=True), 0.05, 0.0)[0] < 0.5
    np.True_
    """
    count, rows = values.shape
    if rows == 0 or (sampled.finite and rows == sampled.size):
        return _certain(values, sampled, lowest)
    together = max(1, HELD // (len(STAKES) * rows))
    parts = [values[first : first + together] for first in range(0, count, together)]
    return np.concatenate([_solved(part, sampled, level, lowest) for part in parts])


def _solved(values: Floats, sampled: Sampled, level: float, lowest: float) -> Floats:
    """Halve between a mean that is refuted and one that is not; wealth falls with the mean."""
    below, above = np.full(len(values), lowest), values.max(axis=1)  # no more can be shown
    for _ in range(HALVINGS):
        middle = 0.5 * (below + above)
        wealth = mixed(grown(values, middle, sampled, lowest))
        refuted = (wealth >= -np.log(level)).any(axis=-1)
        below, above = np.where(refuted, middle, below), np.where(refuted, above, middle)
    found: Floats = np.maximum(below, _certain(values, sampled, lowest))
    return found


def _certain(values: Floats, sampled: Sampled, lowest: float) -> Floats:
    """Give what the mean is at least if all that is unseen were the lowest."""
    if not sampled.finite:
        return np.full(len(values), lowest)
    rows = values.shape[1]
    certain: Floats = (values.sum(axis=1) + (sampled.size - rows) * lowest) / sampled.size
    return certain
