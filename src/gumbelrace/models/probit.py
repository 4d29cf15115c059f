"""Bayesian probit regression: P(y_n = 1) = Φ(x_n·θ), Φ the normal distribution function.

With s = ±x_n·θ, λ = φ(s) / Φ(s) and κ = s + λ, the derivatives of log Φ(s) are λ, -λκ and λ(κ(κ + λ) - 1).
"""

import math
from typing import Any

import numba
import numpy as np
import scipy  # its parts load when first used
from numpy.typing import ArrayLike, NDArray

from gumbelrace.core.jit import FAST
from gumbelrace.models.regression import Curve, checked_labels, mode_of_labels, remainder_of
from gumbelrace.population.arrays import Floats

# The largest third derivative of log Φ(s) is 0.295718819193, at s = 1.002369: rounded up.
THIRD = 0.29571882
# Below TAIL, 1 / Φ comes from Laplace's continued fraction, of which so many terms are enough there.
TAIL, TERMS = -8.0, 16
LOG_ROOT = 0.5 * math.log(2.0 * math.pi)


@numba.njit
def hazard(s):  # type: ignore[no-untyped-def]
    """Give λ = φ(s) / Φ(s) and s + λ, neither of which loses digits in the far tail."""
    if s < TAIL:
        beyond = 0.0
        for k in range(TERMS, 0, -1):
            beyond = k / (beyond - s)
        return beyond - s, beyond
    ratio = math.exp(-0.5 * s * s - LOG_ROOT) / (0.5 * math.erfc(-s * math.sqrt(0.5)))
    return ratio, s + ratio


@numba.njit
def log_phi(s):  # type: ignore[no-untyped-def]
    """Give log Φ(s), however small it is."""
    if s < TAIL:
        return -0.5 * s * s - LOG_ROOT - math.log(hazard(s)[0])
    if s < 0.0:
        return math.log(0.5 * math.erfc(-s * math.sqrt(0.5)))
    return math.log1p(-0.5 * math.erfc(s * math.sqrt(0.5)))


@numba.njit(fastmath=FAST)
def log_factor(n, theta, x, y):  # type: ignore[no-untyped-def]
    """Log likelihood of row n; y is 0 or 1."""
    s = 0.0
    for i in range(len(theta)):
        s += x[n, i] * theta[i]
    return log_phi((2.0 * y[n] - 1.0) * s)


@numba.njit(fastmath=FAST)
def terms(n, centre, direction, x, y):  # type: ignore[no-untyped-def]
    """Value, slope and curvature of row n at `centre`, along `direction`."""
    s, t = 0.0, 0.0
    for i in range(len(centre)):
        s += x[n, i] * centre[i]
        t += x[n, i] * direction[i]
    sign = 2.0 * y[n] - 1.0
    ratio, beyond = hazard(sign * s)
    return log_phi(sign * s), sign * ratio * t, -ratio * beyond * t * t


def remainder(x: ArrayLike, metric: ArrayLike) -> Floats:
    """Give M_n: log f_n(θ) is within M_n ‖W(θ - c)‖³ of its second-order expansion at c, `metric` is W."""
    return remainder_of(THIRD, x, metric)


def gradient(index: NDArray[Any], theta: Floats, x: Floats, y: Floats) -> Floats:
    """Sum of the gradients of the rows in `index`."""
    sign = 2.0 * y[index] - 1.0
    total: Floats = (sign * _hazards(sign * (x[index] @ theta))) @ x[index]
    return total


def mode(x: ArrayLike, y: ArrayLike, prior_scale: float = np.inf) -> tuple[Floats, Floats]:
    """Find the mode of the posterior under a N(0, prior_scale²) prior, and the Hessian there, by Newton.

    The parameters are those of `logistic.mode`.

    Examples
    --------
    >>> import gumbelrace as gr
    >>> theta, _ = gr.models.probit.mode([[1.0], [1.0], [1.0], [1.0]], [1, 1, 1, 0])
    >>> round(float(theta[0]), 4)  # Φ(θ) = 3 / 4
    0.6745
    """
    rows, labels = checked_labels(x, y)
    sign = 2.0 * labels - 1.0

    def slope(s: Floats) -> Floats:
        return sign * _hazards(sign * s)

    def curvature(s: Floats) -> Floats:
        ratio = _hazards(sign * s)
        return -ratio * (sign * s + ratio)

    return mode_of_labels(rows, Curve(slope, curvature), prior_scale)


def _hazards(s: Floats) -> Floats:
    """Give φ(s) / Φ(s) of many s."""
    with np.errstate(over="ignore"):  # far above zero Φ is 1, and the ratio 0
        ratios: Floats = math.sqrt(2.0 / math.pi) / scipy.special.erfcx(-s * math.sqrt(0.5))
    return ratios
