r"""The Gaussian walk of standardised means, and the constant B of the bound G_Normal.

Means of T = first * 2^k < N rewards, drawn without replacement and standardised, behave like a
Gaussian walk z (Corollary 1). With pi = T / N and the clock v = pi / (1 - pi),

.. math:: z_t \sim N(0, 1), \qquad \mathrm{corr}(z_s, z_t) = \sqrt{v_s / v_t}, \quad s < t.

``b_normal`` solves E(B) = delta for B, where E is one of two readings:

* one-sided (default), P(z_t > B at some look t): Eq. 5 as written, and the only one that gives the
  guarantee for more than two arms;
* two-sided, P(the first exit of z from [-B, B] is upward): the one that the paper's table of
  B_Normal holds.

E(B) is the sum over the looks of the probability of leaving at that look. All terms are positive,
so tiny probabilities keep their relative accuracy, which one minus the survival would not.
"""

from functools import lru_cache

import numpy as np
import scipy  # its parts load when first used: they would be half of our import time
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument

__all__ = ["b_normal", "crossing_probability"]

Array = NDArray[np.float64]

# Standard deviations below min(B, 0) where the one-sided walk is cut: Phi(-8) is 6e-16.
_REACH = 8.0
# The normal tail beyond it is zero in double precision.
_HIGHEST = 40.0
# Densities of the walk have standard deviations of 0.7 and more: this leaves 1e-12 in B.
_NODES_PER_UNIT = 5


def crossing_probability(bound: float, first_fraction: float, two_sided: bool = False) -> float:
    """Return the probability that the Gaussian walk leaves upward.

    Parameters
    ----------
    bound : float
        The level B, finite; not negative if `two_sided`.
    first_fraction : float
        Share of the population read at the first look, in (0, 1). Looks double it while below 1.
    two_sided : bool
        False: P(the walk exceeds B at some look). True: P(its first exit from [-B, B] is upward).

    Returns
    -------
    float
        The probability.

    Examples
    --------
    >>> round(crossing_probability(2.0, first_fraction=0.001), 6)
    0.144557
    >>> round(crossing_probability(2.0, first_fraction=0.001, two_sided=True), 6)
    0.141409
    """
    _check_fraction(first_fraction)
    lowest = 0.0 if two_sided else -np.inf
    if not (np.isfinite(bound) and bound >= lowest):
        allowed = "finite and not negative (two-sided)" if two_sided else "finite"
        raise InvalidArgument(f"bound is {bound}; it must be {allowed}")
    r = _correlations(float(first_fraction))
    return _exits(min(float(bound), _HIGHEST), r, two_sided)[0]


def b_normal(delta: float, first_fraction: float, two_sided: bool = False) -> float:
    """Return B_Normal, the bound that the Gaussian walk crosses with probability `delta`.

    Parameters
    ----------
    delta : float
        The error probability, in (0, 1), or in (0, 0.5) if `two_sided`.
    first_fraction : float
        Share of the population read at the first look, in (0, 1). Looks double it while below 1.
    two_sided : bool
        The meaning of crossing, as in `crossing_probability`. True is the paper's table.

    Returns
    -------
    float
        B, negative for a large one-sided `delta`. Results are cached.

    Examples
    --------
    >>> round(b_normal(0.05, first_fraction=0.001), 4)
    2.4697
    >>> round(b_normal(0.05, first_fraction=0.001, two_sided=True), 4)
    2.4678
    """
    highest = 0.5 if two_sided else 1.0
    if not 0.0 < delta < highest:
        raise InvalidArgument(f"delta is {delta}; it must lie in (0, {highest:g})")
    _check_fraction(first_fraction)
    return _invert(float(delta), float(first_fraction), bool(two_sided))


def _check_fraction(first_fraction: float) -> None:
    if not 0.0 < first_fraction < 1.0:
        raise InvalidArgument(f"first_fraction is {first_fraction}; it must lie in (0, 1)")


@lru_cache(maxsize=4096)
def _invert(delta: float, first_fraction: float, two_sided: bool) -> float:
    """Solve E(B) = delta between the bound of one look and the union bound over all looks."""
    r = _correlations(first_fraction)
    log_delta = np.log(delta)
    high = -scipy.special.ndtri_exp(log_delta - np.log1p(r.size))
    # The union bound is exact for one look, and for a delta so small that no walk crosses twice.
    if r.size == 0 or delta < 1e-100:
        return float(high)
    # The margin outweighs rounding where a limit is itself the answer; two-sided E(0) is 0.5.
    low = max(-scipy.special.ndtri_exp(log_delta) - 1e-6, 0.0 if two_sided else -np.inf)
    log_odds = log_delta - np.log1p(-delta)

    def excess(bound: float) -> float:
        up, other = _exits(bound, r, two_sided)
        # Surviving a thousand looks below a low bound underflows.
        return float(np.log(up / max(other, 1e-300)) - log_odds)

    return float(scipy.optimize.brentq(excess, low, high + 1e-6, xtol=1e-10))


def _correlations(first_fraction: float) -> Array:
    """Return the correlation of each look with the one before it; empty for a single look."""
    exponent = int(np.frexp(first_fraction)[1])
    pi = np.ldexp(first_fraction, np.arange(1 - exponent))
    v = pi / (1.0 - pi)
    return np.asarray(np.sqrt(v[:-1] / v[1:]))


def _exits(bound: float, r: Array, two_sided: bool) -> tuple[float, float]:
    """Return the probabilities of an upward exit and of anything else.

    Follows the density of the walk that is still inside and adds up what leaves above `bound`.
    """
    x, weight = _nodes(bound, two_sided)
    inside = weight * _density(x)
    up = scipy.special.ndtr(-bound)
    for r_t in r:
        s_t = np.sqrt(1.0 - r_t * r_t)
        up += inside @ scipy.special.ndtr((r_t * x - bound) / s_t)
        inside = weight * (_density((x[:, None] - r_t * x) / s_t) @ inside) / s_t
    down = up if two_sided else 0.0
    return float(up), float(down + inside.sum())


def _density(z: Array) -> Array:
    """Return the standard normal density."""
    return np.asarray(np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi))


def _nodes(bound: float, two_sided: bool) -> tuple[Array, Array]:
    """Return Gauss-Legendre nodes and weights on the interval that the walk stays in."""
    low = max(-bound, -_REACH) if two_sided else min(bound, 0.0) - _REACH
    half = 0.5 * (bound - low)
    x, weight = _legendre(_NODES_PER_UNIT * (2 + int(2.0 * half)))
    return low + half * (1.0 + x), half * weight


@lru_cache(maxsize=64)
def _legendre(count: int) -> tuple[Array, Array]:
    return np.polynomial.legendre.leggauss(count)
