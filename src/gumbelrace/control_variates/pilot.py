"""A pilot: how far log factors are from their control variate, row by row, at some points.

Which rows are read every time is a choice that does not bias anything, so the points are the same in every
run. They are drawn around the centre of an expansion, from a law wider than Laplace's: posteriors with rows
that an expansion does not follow are wider than it.
"""

from collections.abc import Iterator
from numbers import Real
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.population.control import Always
from gumbelrace.population.likelihood import Family, Likelihood

Floats = NDArray[np.float64]

POINTS = 16
WIDER = 1.5
SEED = 0
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
    for plain, left in _rows_at(likelihood, control, points):
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


def _rows_at(likelihood: Likelihood, control: Family, points: Floats) -> Iterator[tuple[Floats, Floats]]:
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


def farthest(distance: Floats, share: float) -> Always | None:
    """Choose the share of the rows with the largest distance.

    Examples
    --------
    >>> farthest(np.array([0.1, 5.0, 0.2, 3.0]), 0.5).rows
    array([1, 3])
    """
    count = int((checked_share(share) or 0.0) * len(distance))
    if count == 0:
        return None
    return Always(np.sort(np.argpartition(distance, -count)[-count:]), len(distance))


def checked_share(share: float | None) -> float | None:
    """Return a share of outliers, or None where the choice is ours."""
    if share is not None and not (isinstance(share, Real) and 0.0 <= share < 1.0):
        raise InvalidArgument(f"the share of outliers is {share!r}; it must lie in [0, 1)")
    return share
