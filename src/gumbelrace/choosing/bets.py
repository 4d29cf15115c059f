"""Bets on one uniform order of the examples, row after row, for many claims at once.

A claim says that the mean of Z is at most m. Before the score at position T + 1 is looked at, a stake λ is
fixed by what lies at positions 1..T, and the wealth becomes

    W <- W (1 + λ (Z - η)),    η = (N m - Σ_seen Z) / (N - T)    (these N examples)
                               η = m                             (future examples).

If the claim holds, Z has mean at most η given the past, W is a nonnegative supermartingale along the order,
and it ever reaches 1/α with probability at most α (Ville). That is a statement about the whole order: which
scores are asked for, when they arrive and when one stops may depend on anything.

Scores are in units of their range: they lie between 0 and 1.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# One score may cost at most this share of the wealth.
MOST_AT_STAKE = 0.95
# How much a gain counts that does not stand out from its error; `benchmarks/choose.py` tries others.
CAUTION = 2.0
# Stakes of a mixture. Its wealth falls with m along every path, so that it can be solved for m.
STAKES = 2.0 ** np.arange(0.0, -8.0, -1.0)
# Rounding of sums, as a share of the range.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Sampled:
    """What the scores at successive positions are a sample of.

    Parameters
    ----------
    size : int
        Number of examples.
    finite : bool
        Whether the claim is about these examples, which are drawn without replacement, or about those to
        come, of which these are independent ones.

    Examples
    --------
    >>> Sampled(10, finite=True).ceiling(0.5, 4.0, 6), Sampled(10, finite=False).ceiling(0.5, 4.0, 6)
    (0.25, 0.5)
    """

    size: int
    finite: bool

    def ceiling(self, mean: Any, seen: Any, rows: Any) -> Any:
        """Give η: the most that the next Z is on average, if all have at most this mean."""
        return (self.size * mean - seen) / (self.size - rows) if self.finite else mean + 0.0 * seen

    def error(self, spread: Floats, rows: int) -> Floats:
        """Give the squared error of the difference between the mean of what was seen and η."""
        return spread * (self.size / (rows * (self.size - rows)) if self.finite else 1.0 / rows)


def kelly(gain: Floats, variance: Floats, sampled: Sampled, rows: int) -> Floats:
    """Give the stakes that let wealth grow fastest, the smaller the less a gain stands out.

    Parameters
    ----------
    gain : ndarray
        By how much the mean of Z over the rows seen exceeds η.
    variance : ndarray
        Of Z.
    sampled : Sampled
        Tells the error of the gain.
    rows : int
        Number of rows seen, at least one.

    Examples
    --------
    >>> kelly(np.array([0.0, 0.1]), np.array([0.2, 0.2]), Sampled(1000, True), 500).round(2)
    array([0.  , 0.41])
    """
    gain = np.maximum(gain, 0.0)
    spread = variance + gain * gain
    noise = CAUTION * sampled.error(spread, rows)
    with np.errstate(invalid="ignore"):  # 0/0 where nothing was gained
        stake = gain**3 / (spread * (gain * gain + noise))
    return np.where(gain > 0.0, stake, 0.0)


def grown(values: Floats, mean: Floats | float, sampled: Sampled, lowest: float) -> Floats:
    """Give the logarithms of the wealth of every stake of the mixture, after each row from the first.

    Parameters
    ----------
    values : ndarray of shape (..., T)
        Z at positions 1..T.
    mean : float, or ndarray of shape (...)
        The claim: the mean of Z is at most this.
    sampled : Sampled
        What Z is a sample of.
    lowest : float
        No Z is less.

    Returns
    -------
    ndarray of shape (len(STAKES), ..., T)
        A claim that the scores seen refute for certain has infinite wealth.
    """
    start = np.zeros((len(STAKES), *values.shape[:-1]))
    return grown_on(start, values, np.zeros(values.shape[:-1]), 0, (mean, sampled, lowest))


Claim = tuple[Floats | float, Sampled, float]


def grown_on(start: Floats, values: Floats, seen: Floats, rows: int, claim: Claim) -> Floats:
    """Continue `grown` from `rows` rows, of which Z has the sum `seen`, with the logarithms `start`."""
    mean, sampled, lowest = claim
    before = np.cumsum(np.concatenate([seen[..., None], values], axis=-1), axis=-1)[..., :-1]
    ceiling = sampled.ceiling(np.asarray(mean)[..., None], before, rows + np.arange(values.shape[-1]))
    refuted = ceiling < lowest - ROUNDING
    room = np.where(refuted, np.inf, np.maximum(ceiling - lowest, 1e-300))
    stakes = np.minimum(STAKES.reshape(-1, *[1] * values.ndim), MOST_AT_STAKE / room)
    steps = np.log1p(stakes * (values - np.where(refuted, values, ceiling)))
    steps = np.where(refuted, np.inf, steps)
    return np.cumsum(np.concatenate([start[..., None], steps], axis=-1), axis=-1)[..., 1:]


def mixed(logs: Floats) -> Floats:
    """Give the logarithm of the mean over the stakes, which is a wealth, too."""
    top = logs.max(axis=0)
    with np.errstate(invalid="ignore"):
        total = np.log(np.exp(logs - top).mean(axis=0)) + top
    return np.where(np.isposinf(top), np.inf, total)
