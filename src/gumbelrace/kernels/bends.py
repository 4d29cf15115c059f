"""Laws of single coordinates whose tails are heavier than normal ones, on either side.

A coordinate is z = sinh(c u) / c with u standard normal, c being its *bend*: one for u < 0 and one for
u > 0, where c = 0 stands for z = u. Close to 0 the law is the normal one; far out it falls off as slowly as
the posterior of a parameter about which few rows tell. Proposals are made in u, where they are normal.
"""

from typing import Any

import numpy as np

from gumbelrace.core.jit import part
from gumbelrace.population.base import Floats

# The heaviest tails: so many standard deviations out the log density has fallen by 3.2 instead of 8.
MOST, FAR_OUT = 1.5, 4.0
# Smaller bends than that change nothing but rounding.
LEAST = 1e-6


def no_bends(count: int) -> Floats:
    """Give the bends of normal coordinates: a row for each, its left side and its right."""
    return np.zeros((count, 2))


def bent(u: Any, bends: Any, xp: Any = np) -> Any:
    """Give z of u, the last axis of which are coordinates; `xp` is NumPy or what is called like it.

    Examples
    --------
    >>> bent(np.array([-1.0, 2.0]), np.array([[0.0, 1.0], [0.0, 1.0]])).round(3)
    array([-1.   ,  3.627])
    """
    c = _of_side(u, bends, xp)
    some = xp.maximum(c, LEAST)
    return xp.where(c > LEAST, xp.sinh(some * u) / some, u)


def unbent(z: Any, bends: Any, xp: Any = np) -> Any:
    """Give u of z.

    Examples
    --------
    >>> unbent(np.array([-1.0, 3.627]), np.array([[0.0, 1.0], [0.0, 1.0]])).round(3)
    array([-1.,  2.])
    """
    c = _of_side(z, bends, xp)
    some = xp.maximum(c, LEAST)
    return xp.where(c > LEAST, xp.arcsinh(some * z) / some, z)


def log_densities(z: Any, bends: Any, xp: Any = np) -> Any:
    """Give the log density of each coordinate, but for a constant: 0 at z = 0.

    Examples
    --------
    >>> log_densities(np.array([4.0, 4.0]), np.array([[0.0, 0.0], [0.0, 1.5]])).round(2)
    array([-8.  , -3.19])
    """
    u, c = unbent(z, bends, xp), _of_side(z, bends, xp)
    return -0.5 * u * u - 0.5 * xp.log1p((c * z) ** 2)


def bends_to(heights: Any) -> Any:
    """Give the bends of laws whose log densities, so far out, are what the heights of a posterior are.

    Examples
    --------
    >>> bends_to([-8.5, -8.0, -5.0, -1.0]).round(2)
    array([0.  , 0.  , 0.49, 1.5 ])
    """
    tried = np.linspace(0.0, MOST, 301)
    far = np.full((len(tried), 1), FAR_OUT)
    falls = log_densities(far, np.stack([tried, tried], axis=-1)[:, None])[:, 0]
    return np.interp(np.nan_to_num(heights, nan=-np.inf), falls, tried)


def _of_side(x: Any, bends: Any, xp: Any) -> Any:
    return xp.where(x > 0.0, bends[..., 1], bends[..., 0])


@part
def bent_one(u: float, bends: Floats, i: int) -> float:
    """Give z of u, for compiled code, by the bends in row i."""
    c = bends[i, 1] if u > 0.0 else bends[i, 0]
    return np.sinh(c * u) / c if c > LEAST else u


@part
def unbent_one(z: float, bends: Floats, i: int) -> float:
    """Give u of z, for compiled code."""
    c = bends[i, 1] if z > 0.0 else bends[i, 0]
    return np.arcsinh(c * z) / c if c > LEAST else z


@part
def log_slope_one(z: float, bends: Floats, i: int) -> float:
    """Give the logarithm of dz/du, for compiled code."""
    c = bends[i, 1] if z > 0.0 else bends[i, 0]
    return 0.5 * np.log1p(c * c * z * z) if c > LEAST else 0.0
