"""Bayesian logistic regression: P(y_n = 1) = 1 / (1 + exp(-x_n·θ))."""

from typing import Any

import numba
import numpy as np
import scipy  # its parts load when first used
from numpy.typing import ArrayLike, NDArray

from gumbelrace.core.jit import FAST
from gumbelrace.models.regression import Curve, checked_labels, mode_of_labels, remainder_of
from gumbelrace.population.arrays import Floats, floats

# The largest third derivative of log(1 + exp(s)): with p = 1 / (1 + exp(-s)) it is p (1 - p) (1 - 2 p), of
# which 1 - 6 p (1 - p) = 0 has the largest, 1 / (6 √3).
THIRD = np.sqrt(3.0) / 18.0


@numba.njit(fastmath=FAST)
def log_factor(n, theta, x, y):  # type: ignore[no-untyped-def]
    """Log likelihood of row n; y is 0 or 1."""
    s = 0.0
    for i in range(len(theta)):
        s += x[n, i] * theta[i]
    return log_chance(s, y[n], np.exp(-abs(s)))


@numba.njit
def log_chance(s, y, small):  # type: ignore[no-untyped-def]
    """Give the log likelihood of label y, 0 or 1, where small = exp(-|s|): no large numbers cancel."""
    return -max((1.0 - 2.0 * y) * s, 0.0) - np.log1p(small)


@numba.njit(fastmath=FAST)
def terms(n, centre, direction, x, y):  # type: ignore[no-untyped-def]
    """Value, slope and curvature of row n at `centre`, along `direction`."""
    s, t = 0.0, 0.0
    for i in range(len(centre)):
        s += x[n, i] * centre[i]
        t += x[n, i] * direction[i]
    small = np.exp(-abs(s))
    p = (1.0 if s > 0.0 else small) / (1.0 + small)
    return log_chance(s, y[n], small), (y[n] - p) * t, -p * (1.0 - p) * t * t


@numba.njit(fastmath=FAST)
def residual(n, centre, direction, x, y):  # type: ignore[no-untyped-def]
    """Log likelihood of row n at centre + direction, less its second-order expansion: y drops out."""
    s, t = 0.0, 0.0
    for i in range(len(centre)):
        s += x[n, i] * centre[i]
        t += x[n, i] * direction[i]
    small = np.exp(-abs(s))
    return beyond(-t if s > 0.0 else t, small / (1.0 + small))


@numba.njit
def beyond(t, p):  # type: ignore[no-untyped-def]
    """Give -log(1 + exp(s + t)), less its second-order expansion in t, where p = 1 / (1 + exp(-s)).

    It is the same for -t and 1 - p: give the smaller of p and 1 - p, of which nothing is lost.
    """
    return p * t * (1.0 + 0.5 * (1.0 - p) * t) - np.log1p(p * np.expm1(t))


@numba.njit(fastmath=FAST)
def stored_residual(n, centre, direction, x, at_centre):  # type: ignore[no-untyped-def]
    """Give the same from `at_centre(...)`."""
    t = 0.0
    for i in range(len(centre)):
        t += x[n, i] * direction[i]
    p = at_centre[n, 3]
    return beyond(-t if p < 0.0 else t, abs(p))


@numba.njit(fastmath=FAST)
def stored_terms(n, centre, direction, x, at_centre):  # type: ignore[no-untyped-def]
    """Give the same from `at_centre(...)`, which holds what does not depend on the direction."""
    t = 0.0
    for i in range(len(centre)):
        t += x[n, i] * direction[i]
    return at_centre[n, 0], at_centre[n, 1] * t, at_centre[n, 2] * t * t


def at_centre(centre: Floats, x: Floats, y: Floats) -> Floats:
    """Value, slope and curvature of every row at `centre`, as functions of x_n·θ; of shape (N, 4).

    The last column is p_n where it is below a half, else -(1 - p_n).
    """
    x, y = checked_labels(x, y)
    s = x @ floats(centre, "centre")
    p = scipy.special.expit(s)
    least = np.where(s > 0.0, -1.0, 1.0) * scipy.special.expit(-np.abs(s))
    return np.column_stack([y * s - np.logaddexp(0.0, s), y - p, -p * (1.0 - p), least])


def remainder(x: Floats, metric: Floats) -> Floats:
    """Give M_n: log f_n(θ) is within M_n ‖W(θ - c)‖³ of its second-order expansion at c, `metric` is W."""
    return remainder_of(THIRD, x, metric)


def gradient(index: NDArray[Any], theta: Floats, x: Floats, y: Floats) -> Floats:
    """Sum of the gradients of the rows in `index`."""
    p = scipy.special.expit(x[index] @ theta)
    total: Floats = (y[index] - p) @ x[index]
    return total


def mode(x: ArrayLike, y: ArrayLike, prior_scale: float = np.inf) -> tuple[Floats, Floats]:
    """Find the mode of the posterior under a N(0, prior_scale²) prior, and the Hessian there, by Newton.

    Parameters
    ----------
    x : array_like of shape (N, d)
        A row for each observation; a column of ones has the intercept.
    y : array_like of shape (N,)
        Labels, 0 or 1.
    prior_scale : float
        Standard deviation of the prior of each parameter; by default there is no prior.

    Examples
    --------
    >>> import gumbelrace as gr
    >>> theta, _ = gr.models.logistic.mode([[1.0], [1.0], [1.0], [1.0]], [1, 1, 1, 0])
    >>> round(float(theta[0]), 4)  # log(3)
    1.0986
    """
    rows, labels = checked_labels(x, y)

    def chance(s: Floats) -> Floats:
        p: Floats = scipy.special.expit(s)
        return p

    curve = Curve(lambda s: labels - chance(s), lambda s: -chance(s) * chance(-s))
    return mode_of_labels(rows, curve, prior_scale)
