"""Rows that decide a race and that its first look would miss: they are better read every time.

A normal bound believes the spread of the rows that it has seen. If a few rows out of many carry the
differences between arms, the first look sees none of them, and the race decides without them. With s_n the
root mean square of the differences of row n between arms, N rows are tame for a first look at T of them if

    N Σ s² / T ≤ SMALL²            the estimate from T rows is right within SMALL, whatever its law, or
    N Σ s⁴ / (Σ s²)² ≤ EVEN        the rows that matter are so many that T rows contain some of them.

If a share p of the rows were equal and the others zero, the second number would be 1 / p, and T rows would
contain none with a probability of e^(-T / EVEN), which is 0.001; above UNEVEN they contain less than one.
"""

import sys
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import BlindPilot, InvalidArgument, UnevenResiduals

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

FIRST = 50  # T, the first look of a race
SMALL = 0.05
EVEN, UNEVEN = FIRST / np.log(1000.0), FIRST

# Largest share of the rows that is read every time without being asked for.
MOST = 0.1


def heavy_rows(squares: Floats, share: float | None = None) -> Indices:
    """Choose the fewest rows, those of largest s², without which the others are tame.

    Parameters
    ----------
    squares : ndarray of shape (N,)
        s² of each row.
    share : float, optional
        How many to choose instead, as a share of the rows.

    Examples
    --------
    >>> squares = np.full(10_000, 1e-12)
    >>> squares[[7, 30, 500]] = 0.1, 0.2, 0.3
    >>> heavy_rows(squares)
    array([  7,  30, 500])
    """
    size = len(squares)
    if share is not None:
        count = int(share * size)
    else:
        tame = _tame_without(np.sort(squares), min(int(MOST * size), size - 1))
        count = int(np.argmax(tame)) if tame.any() else len(tame) - 1
    return np.sort(np.argsort(squares, kind="stable")[size - count :])


def check_residuals(squares: Floats, plain: float) -> None:
    """Refuse residuals that vary more than the rewards; warn of those that a normal bound would misjudge.

    Parameters
    ----------
    squares : ndarray
        s² of the rows that are raced on.
    plain : float
        Sum of the s² of the rewards themselves, over all rows.
    """
    if _is_small(len(squares), squares.sum()):
        return
    if squares.sum() > plain:
        raise InvalidArgument(
            f"the control variate makes it worse: residuals vary {squares.sum() / max(plain, 1e-300):.3g} "
            "times as much as the rewards; expand closer to where they are read (centre, or more bins), "
            "have more rows read every time (outliers), or use none"
        )
    if not _is_even(len(squares), squares.sum(), np.square(squares).sum(), UNEVEN):
        warnings.warn(
            "a few rows carry the residuals of the control variate, and a race with a normal bound would "
            "miss them; have more rows read every time (outliers=0.2), use Betting with a remainder, or "
            "check decisions by an audit",
            UnevenResiduals,
            stacklevel=_users_frame(),
        )


def check_pilot(plain: float, size: int, what: str) -> None:
    """Refuse points at which all rewards are the same; warn of those at which a race needs no help.

    Parameters
    ----------
    plain : float
        Sum of the s² of the rewards themselves, over all rows.
    size : int
        Number of rows.
    what : str
        What a user has given, and what to give instead.
    """
    if plain == 0.0:
        raise InvalidArgument(f"rewards do not differ between the points of the pilot: {what}")
    if size * plain <= FIRST * SMALL**2:
        warnings.warn(
            f"rewards hardly differ between the points of the pilot, which sees nothing there: {what}",
            BlindPilot,
            stacklevel=_users_frame(),
        )


def _tame_without(ascending: Floats, most: int) -> NDArray[np.bool_]:
    """Whether the rows without the last 0, 1, ..., `most` are tame."""
    size = len(ascending)
    second, fourth = np.cumsum(ascending), np.cumsum(np.square(ascending))
    left = np.arange(size, size - most - 1, -1)
    second, fourth = second[left - 1], fourth[left - 1]
    tame: NDArray[np.bool_] = _is_small(left, second) | _is_even(left, second, fourth)
    return tame


def _is_small(count: Any, second: Any) -> Any:
    # After `count` rows nothing is left to guess.
    return np.maximum(count - FIRST, 0) * second <= FIRST * SMALL**2


def _is_even(count: Any, second: Any, fourth: Any, most: float = EVEN) -> Any:
    return count * fourth <= most * np.square(second)


def _users_frame() -> int:
    """Give the stack level of the first frame outside the package, for the function that calls this."""
    level, package = 1, __name__.split(".")[0]
    while sys._getframe(level).f_globals.get("__name__", "").split(".")[0] == package:
        level += 1
    return level
