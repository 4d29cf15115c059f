"""Bayesian logistic regression: P(y_n = 1) = 1 / (1 + exp(-x_n·θ))."""

from typing import Any

import numba
import numpy as np
import scipy  # its parts load when first used
from numpy.typing import ArrayLike, NDArray

from gumbelrace.errors import InvalidArgument, NoMode, ShapeMismatch
from gumbelrace.population.arrays import Floats, floats

# Largest third derivative of log(1 + exp(s)), over 3!
REMAINDER = np.sqrt(3.0) / 18.0 / 6.0
# Newton's last step is shorter than that at a mode, and the curvature there larger than that share of what
# it is at zero.
FOUND, FLAT = 1e-6, 1e-12


@numba.njit
def log_factor(n, theta, x, y):  # type: ignore[no-untyped-def]
    """Log likelihood of row n; y is 0 or 1."""
    s = 0.0
    for i in range(len(theta)):
        s += x[n, i] * theta[i]
    return y[n] * s - max(s, 0.0) - np.log1p(np.exp(-abs(s)))


@numba.njit
def terms(n, centre, direction, x, y):  # type: ignore[no-untyped-def]
    """Value, slope and curvature of row n at `centre`, along `direction`."""
    s, t = 0.0, 0.0
    for i in range(len(centre)):
        s += x[n, i] * centre[i]
        t += x[n, i] * direction[i]
    small = np.exp(-abs(s))
    p = (1.0 if s > 0.0 else small) / (1.0 + small)
    return y[n] * s - max(s, 0.0) - np.log1p(small), (y[n] - p) * t, -p * (1.0 - p) * t * t


@numba.njit
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


@numba.njit
def stored_residual(n, centre, direction, x, at_centre):  # type: ignore[no-untyped-def]
    """Give the same from `at_centre(...)`."""
    t = 0.0
    for i in range(len(centre)):
        t += x[n, i] * direction[i]
    p = at_centre[n, 3]
    return beyond(-t if p < 0.0 else t, abs(p))


@numba.njit
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
    x, y = _checked(x, y)
    s = x @ floats(centre, "centre")
    p = scipy.special.expit(s)
    least = np.where(s > 0.0, -1.0, 1.0) * scipy.special.expit(-np.abs(s))
    return np.column_stack([y * s - np.logaddexp(0.0, s), y - p, -p * (1.0 - p), least])


def remainder(x: Floats, metric: Floats) -> Floats:
    """Give M_n: log f_n(θ) is within M_n ‖W(θ - c)‖³ of its second-order expansion at c, `metric` is W."""
    spread = _checked_rows(x) @ np.linalg.inv(floats(metric, "metric"))
    bounds: Floats = REMAINDER * np.linalg.norm(spread, axis=1) ** 3
    return bounds


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
    rows, labels = _checked(x, y)
    if not prior_scale > 0.0:
        raise InvalidArgument(f"prior_scale is {prior_scale!r}; it must be more than 0")
    try:
        theta, hessian, last = _newton(rows, labels, prior_scale**-2)
        found = last < FOUND and (np.isfinite(prior_scale) or _is_curved(rows, hessian))
    except np.linalg.LinAlgError:
        found = False
    if not found:
        raise NoMode(
            "no mode was found: a plane separates the labels, or columns of x depend on each other; "
            "give a prior_scale"
        )
    return theta, hessian


def _newton(x: Floats, y: Floats, precision: float) -> tuple[Floats, Floats, float]:
    """Give where Newton's steps end, the Hessian there, and the length of the last step."""
    theta, prior = np.zeros(x.shape[1]), precision * np.eye(x.shape[1])
    for _ in range(50):
        p = scipy.special.expit(x @ theta)
        hessian = -(x.T * (p * (1.0 - p))) @ x - prior
        step = np.linalg.solve(hessian, x.T @ (y - p) - prior @ theta)
        theta = theta - step
        last = float(np.abs(step).max() / (1.0 + np.abs(theta).max()))
        if last < 1e-12:
            break
    return theta, hessian, last


def _is_curved(x: Floats, hessian: Floats) -> bool:
    """Whether the likelihood bends in every direction; where a plane separates the labels it runs flat."""
    at_zero = 0.25 * x.T @ x
    return bool(scipy.linalg.eigvalsh(-hessian, at_zero).min() > FLAT)


def _checked(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    rows, labels = _checked_rows(x), floats(y, "y")
    if labels.shape != (len(rows),):
        raise ShapeMismatch(f"y has shape {labels.shape}, and x {rows.shape}; give a label for each row")
    found = np.unique(labels)
    if not np.isin(found, (0.0, 1.0)).all():
        advice = "write (y + 1) / 2" if np.isin(found, (-1.0, 1.0)).all() else "give 0 or 1 for each row"
        raise InvalidArgument(f"y has labels other than 0 and 1; {advice}")
    return rows, labels


def _checked_rows(x: ArrayLike) -> Floats:
    rows = floats(x, "x")
    if rows.ndim != 2 or rows.size == 0:
        raise ShapeMismatch(f"x has shape {rows.shape}; it must be (rows, columns)")
    if not np.isfinite(rows).all():
        raise InvalidArgument(f"row {np.argwhere(~np.isfinite(rows))[0, 0]} of x has a NaN or an infinity")
    return rows
