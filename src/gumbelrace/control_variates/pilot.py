"""A pilot: how far log factors are from their control variate, row by row, at some points.

Which rows are the head, read every time, and which weights the rows have, are choices that do not bias
anything, so the points are the same in every run. They are drawn around the centre of an expansion, from a
law wider than Laplace's: posteriors with rows that an expansion does not follow are wider than it.

Rows that decide a race and that its first look would miss are better read every time. A normal bound
believes the spread of the rows that it has seen. If a few rows out of many carry the differences between
arms, the first look sees none of them, and the race decides without them. With s_n the root mean square of
the differences of row n between arms, N rows are tame for a first look at T of them if

    N Σ s² / T ≤ SMALL²            the estimate from T rows is right within SMALL, whatever its law, or
    N Σ s⁴ / (Σ s²)² ≤ EVEN        the rows that matter are so many that T rows contain some of them.

If a share p of the rows were equal and the others zero, the second number would be 1 / p, and T rows would
contain none with a probability of e^(-T / EVEN), which is 0.001; above UNEVEN they contain less than one.

Methods that draw rows with replacement, by weights, need no head: they draw such rows more often.
"""

import sys
import warnings
from collections.abc import Iterator
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumbelrace.core.rows import largest
from gumbelrace.errors import BlindPilot, InvalidArgument, ShapeMismatch, UnevenResiduals
from gumbelrace.population.likelihood import Family, Likelihood

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

POINTS = 16
WIDER = 1.5
SEED = 0
# How much smaller remainders are, where rounding is looked for, than at a standard deviation: large ones
# would hide it, and steps that are themselves lost by rounding would show too little of it.
BESIDE = np.array([1e-9, 1e-12, 1e-15, 1e-18])
ULPS = 4.0
# Rounding may be this many times as large as where it was seen.
SAFETY = 8.0
# Directions in which the data say less than this share of what they say in others are left out.
LEAST = 1e-12


class Misfit(NamedTuple):
    """Mean squares of differences between two points."""

    squares: Floats  # of the residuals of each row
    plain: float  # of the log factors themselves, summed over the rows


def pilot_points(centre: Floats, factor: Floats) -> Floats:
    """Draw points around a centre, `factor` being a square root of the covariance of Laplace's law."""
    normal = np.random.default_rng(SEED).standard_normal((POINTS, len(centre)))
    points: Floats = centre + WIDER * normal @ factor.T
    return points


def points_beside(centre: Floats, factor: Floats, order: int) -> Floats:
    """Draw points so close to a centre that residuals are little but rounding, yet none equals it."""
    distances = BESIDE[:, None] ** (1.0 / (order + 1))
    steps = distances * pilot_points(np.zeros(len(centre)), factor)[: len(BESIDE)]
    least = ULPS * np.spacing(np.abs(centre))
    points: Floats = centre + np.copysign(np.maximum(np.abs(steps), least), steps)
    return points


def laplace_factor(hessian: Floats, outer: Floats) -> Floats:
    """Give a square root of the inverse of -hessian, or, if it is not positive, of Σ gg' in its place."""
    values, vectors = np.linalg.eigh(-hessian)
    if not values[0] > LEAST * values[-1]:
        values, vectors = np.linalg.eigh(outer)
    told = values > LEAST * max(values[-1], 0.0)
    factor: Floats = vectors * np.where(told, 1.0, 0.0) / np.sqrt(np.where(told, values, 1.0))
    return factor


def checked_spread(spread: ArrayLike | None, dimension: int) -> Floats | None:
    """Return a user's spread as a square root of a covariance."""
    if spread is None:
        return None
    given = np.asarray(spread, np.float64)
    if given.shape not in ((), (dimension,), (dimension, dimension)):
        raise ShapeMismatch(
            f"spread has shape {given.shape}; it must be a number, or ({dimension},) or its square"
        )
    if not np.isfinite(given).all():
        raise InvalidArgument("spread must be finite: how far from the centre points will be")
    factor = given if given.ndim == 2 else given * np.eye(dimension)
    if (given.ndim < 2 and (given <= 0.0).any()) or not factor.any(axis=1).all():
        raise InvalidArgument(
            f"spread is {spread!r}; it must be positive: how far from the centre points will be"
        )
    return factor


def misfit(likelihood: Likelihood, control: Family, points: Floats) -> Misfit:
    """Compare log factors with a control variate at points, leaving out those that are not possible."""
    mean, spread, plain_mean = np.zeros((3, likelihood.size))
    count, plain_spread = 0, 0.0
    for plain, left in rows_at(likelihood, control, points):
        count += 1
        # Welford's update: no more than one point is held.
        change, plain_change = left - mean, plain - plain_mean
        mean, plain_mean = mean + change / count, plain_mean + plain_change / count
        spread += change * (left - mean)
        plain_spread += float(plain_change @ (plain - plain_mean))
    if count < 2:
        raise InvalidArgument(
            "log factors are not finite around the centre; give spread=, how far from it points will be"
        )
    return Misfit(2.0 * spread / (count - 1), 2.0 * plain_spread / (count - 1))


def rows_at(likelihood: Likelihood, control: Family, points: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Give the log factors of all rows and their residuals, at one point after the other."""
    rows, arm = np.arange(likelihood.size), np.zeros(1, np.int64)
    for point in points:
        population = likelihood.plain(point[None])
        approximation = control.at(point[None])
        try:
            plain = population.rewards_at(rows)[:, 0]
        except (ArithmeticError, ValueError):
            continue  # what the prior rules out need not have a log factor
        left = plain - approximation.values(rows, arm)[:, 0]
        if np.isfinite(left).all():
            yield plain, left


def rounding_seen(likelihood: Likelihood, control: Any, bounds: Floats) -> float:
    """Give how far rounding moves residuals beyond their bounds close to the centre, on the safe side.

    A log factor may lose digits within, of y - x·θ for example, that its terms do not know of.
    """
    factor = laplace_factor(control.hessian, control.metric.T @ control.metric)
    tail, relative, seen = control.rows.tail, control.rows.bounds, 0.0
    for point in points_beside(control.centre, factor, control.order):
        distance = np.linalg.norm(control.metric @ (point - control.centre))
        allowed = bounds * distance ** (control.order + 1)
        for _, left in rows_at(likelihood, control, point[None]):
            seen = max(seen, float((np.abs(left) - allowed)[tail].max()))
    return SAFETY * seen / (1.0 if relative is None else float(relative[tail].min()))


def farthest(distance: Floats, share: float) -> Indices:
    """Choose the share of the rows with the largest distance.

    Examples
    --------
    >>> farthest(np.array([0.1, 5.0, 0.2, 3.0]), 0.5)
    array([1, 3])
    """
    return largest(distance, int((checked_share(share) or 0.0) * len(distance)))


def checked_share(share: float | None) -> float | None:
    """Return a share of outliers, or None where the choice is ours."""
    if share is not None and not (isinstance(share, Real) and 0.0 <= share < 1.0):
        raise InvalidArgument(f"the share of outliers is {share!r}; it must lie in [0, 1)")
    return share


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
    return largest(squares, count)


def check_residuals(squares: Floats, plain: float) -> None:
    """Refuse residuals that vary more than the rewards; warn of those that a normal bound would misjudge.

    Parameters
    ----------
    squares : ndarray
        s² of the rows of the tail.
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
