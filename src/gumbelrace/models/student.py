"""Bayesian regression with Student's t errors: y_n = x_n·θ + scale · t_ν, its location the parameter.

With r = (y_n - x_n·θ) / scale and tan a = r / √ν, the third derivative of -½ (ν + 1) log(1 + r²/ν) in r is
2 (ν + 1) ν^-1.5 cos³a sin 3a. It is largest where cos 4a = 0, at a = π/8: cos³a sin 3a = cos⁴(π/8) there,
which is (3 + 2√2) / 8.
"""

from typing import Any

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumbelrace.core.jit import FAST
from gumbelrace.errors import InvalidArgument, NoMode
from gumbelrace.models.regression import Curve, checked_pair, find_mode, remainder_of
from gumbelrace.population.arrays import Floats

# The largest of 2 cos³a sin 3a.
STEEPEST = (3.0 + 2.0 * np.sqrt(2.0)) / 4.0


@numba.njit(fastmath=FAST)
def log_factor(n, theta, x, y, freedom, scale):  # type: ignore[no-untyped-def]
    """Log likelihood of row n, less what does not depend on θ."""
    location = 0.0
    for i in range(len(theta)):
        location += x[n, i] * theta[i]
    r = (y[n] - location) / scale
    return -0.5 * (freedom + 1.0) * np.log1p(r * r / freedom)


@numba.njit(fastmath=FAST)
def terms(n, centre, direction, x, y, freedom, scale):  # type: ignore[no-untyped-def]
    """Value, slope and curvature of row n at `centre`, along `direction`."""
    location, t = 0.0, 0.0
    for i in range(len(centre)):
        location += x[n, i] * centre[i]
        t += x[n, i] * direction[i]
    r, u = (y[n] - location) / scale, t / scale
    share = (freedom + 1.0) / (freedom + r * r)
    curvature = -share * (freedom - r * r) / (freedom + r * r)
    return -0.5 * (freedom + 1.0) * np.log1p(r * r / freedom), share * r * u, curvature * u * u


def remainder(x: ArrayLike, metric: ArrayLike, freedom: float, scale: float) -> Floats:
    """Give M_n: log f_n(θ) is within M_n ‖W(θ - c)‖³ of its second-order expansion at c, `metric` is W."""
    _check_law(freedom, scale)
    return remainder_of(STEEPEST * (freedom + 1.0) / (freedom**1.5 * scale**3), x, metric)


def gradient(
    index: NDArray[Any], theta: Floats, x: Floats, y: Floats, freedom: float, scale: float
) -> Floats:
    """Sum of the gradients of the rows in `index`."""
    r = (y[index] - x[index] @ theta) / scale
    total: Floats = (freedom + 1.0) / scale * (r / (freedom + r * r)) @ x[index]
    return total


def mode(
    x: ArrayLike, y: ArrayLike, freedom: float, scale: float, prior_scale: float = np.inf
) -> tuple[Floats, Floats]:
    """Find a mode of the posterior under a N(0, prior_scale²) prior, and the Hessian there.

    It is the one to which weighted least squares lead, which never go downhill, from plain least squares.

    Parameters
    ----------
    x : array_like of shape (N, d)
        A row for each observation; a column of ones has the intercept.
    y : array_like of shape (N,)
        The observations.
    freedom, scale : float
        Degrees of freedom ν, and scale, of the errors.
    prior_scale : float
        Standard deviation of the prior of each parameter; by default there is no prior.

    Examples
    --------
    >>> import gumbelrace as gr
    >>> theta, _ = gr.models.student.mode([[1.0]] * 5, [1.0, 2.0, 3.0, 2.0, 1e6], freedom=4.0, scale=0.5)
    >>> bool(1.9 < theta[0] < 2.1)  # one outlier hardly counts
    True
    """
    rows, observed = checked_pair(x, y, "an observation")
    _check_law(freedom, scale)
    start = np.asarray(np.linalg.lstsq(rows, observed)[0], np.float64)
    found = find_mode(rows, _curve(observed, freedom, scale), prior_scale, start)
    if found is None:
        raise NoMode("no mode was found: columns of x depend on each other; give a prior_scale")
    return found


def _curve(y: Floats, freedom: float, scale: float) -> Curve:
    def weight(s: Floats) -> Floats:
        shares: Floats = (freedom + 1.0) / (freedom + ((y - s) / scale) ** 2) / scale**2
        return shares

    def curvature(s: Floats) -> Floats:
        squared = ((y - s) / scale) ** 2
        return -weight(s) * (freedom - squared) / (freedom + squared)

    return Curve(lambda s: weight(s) * (y - s), curvature, lambda s: -weight(s))


def _check_law(freedom: float, scale: float) -> None:
    for name, given in (("freedom", freedom), ("scale", scale)):
        if not 0.0 < given < np.inf:
            raise InvalidArgument(f"{name} is {given!r}; it must be positive and finite")
