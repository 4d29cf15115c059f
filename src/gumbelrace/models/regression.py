"""What regressions share: checks of their data, the way to a mode, and what an expansion leaves of a row.

A row's log factor is f_n(x_n·θ). If |f_n‴| ≤ B everywhere, Taylor's theorem along the line from c to θ says
that log f_n(θ) is within B |x_n·(θ - c)|³ / 6 of its second-order expansion at c, and by Cauchy and Schwarz
|x_n·(θ - c)| ≤ ‖W⁻ᵀx_n‖ ‖W(θ - c)‖, whatever the metric W.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy  # its parts load when first used
from numpy.typing import ArrayLike

from gumbelrace.errors import InvalidArgument, NoMode, ShapeMismatch
from gumbelrace.population.arrays import Floats, floats

# The last step is shorter than that at a mode, and the curvature there larger than that share of what it is
# at the start: where a plane separates labels, the likelihood runs flat.
FOUND, FLAT = 1e-6, 1e-12
MOST_STEPS = 200

# A function of the x_n·θ that gives a number for each row.
OfRows = Callable[[Floats], Floats]


class Curve(NamedTuple):
    """Derivatives of the f_n."""

    slope: OfRows
    curvature: OfRows
    steepest: OfRows | None = None  # the curvature of parabolas below the f_n, where these are not concave


def remainder_of(third: float, x: ArrayLike, metric: ArrayLike) -> Floats:
    """Give M_n from the largest third derivative of the f_n."""
    spread = checked_rows(x) @ np.linalg.inv(floats(metric, "metric"))
    bounds: Floats = third / 6.0 * np.linalg.norm(spread, axis=1) ** 3
    return bounds


def find_mode(x: Floats, curve: Curve, prior_scale: float, start: Floats) -> tuple[Floats, Floats] | None:
    """Find a mode under a N(0, prior_scale²) prior, and the Hessian there; None if there is none."""
    precision = checked_prior_scale(prior_scale) ** -2
    try:
        theta, last = _climb(x, curve, precision, start)
        hessian = _hessian(x, curve.curvature(x @ theta), precision)
        at_start = _hessian(x, (curve.steepest or curve.curvature)(x @ start), precision)
        curved = scipy.linalg.eigvalsh(-hessian, -at_start).min() > (FLAT if precision == 0.0 else 0.0)
    except np.linalg.LinAlgError:
        return None
    return (theta, hessian) if last < FOUND and curved else None


def _climb(x: Floats, curve: Curve, precision: float, start: Floats) -> tuple[Floats, float]:
    """Step to the top of one parabola after another; give where, and the relative size of the last step."""
    theta, last, bend = start, np.inf, curve.steepest or curve.curvature
    for _ in range(MOST_STEPS):
        s = x @ theta
        uphill = x.T @ curve.slope(s) - precision * theta
        step = np.linalg.solve(_hessian(x, bend(s), precision), uphill)
        theta = theta - step
        last = float(np.abs(step).max() / (1.0 + np.abs(theta).max()))
        if last < 1e-12:
            break
    return theta, last


def _hessian(x: Floats, curvature: Floats, precision: float) -> Floats:
    hessian: Floats = (x.T * curvature) @ x - precision * np.eye(x.shape[1])
    return hessian


def mode_of_labels(x: Floats, curve: Curve, prior_scale: float) -> tuple[Floats, Floats]:
    """Find the mode of a regression of labels, and the Hessian there."""
    found = find_mode(x, curve, prior_scale, np.zeros(x.shape[1]))
    if found is None:
        raise NoMode(
            "no mode was found: a plane separates the labels, or columns of x depend on each other; "
            "give a prior_scale"
        )
    return found


def checked_prior_scale(prior_scale: float) -> float:
    """Return the standard deviation of a prior, which may be infinite."""
    if not prior_scale > 0.0:
        raise InvalidArgument(f"prior_scale is {prior_scale!r}; it must be more than 0")
    return prior_scale


def checked_labels(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """Return rows and their labels, which are 0 or 1."""
    rows, labels = checked_pair(x, y, "a label")
    found = np.unique(labels)
    if not np.isin(found, (0.0, 1.0)).all():
        advice = "write (y + 1) / 2" if np.isin(found, (-1.0, 1.0)).all() else "give 0 or 1 for each row"
        raise InvalidArgument(f"y has labels other than 0 and 1; {advice}")
    return rows, labels


def checked_pair(x: ArrayLike, y: ArrayLike, what: str) -> tuple[Floats, Floats]:
    """Return rows, and as many observations."""
    rows, observed = checked_rows(x), floats(y, "y")
    if observed.shape != (len(rows),):
        raise ShapeMismatch(f"y has shape {observed.shape}, and x {rows.shape}; give {what} for each row")
    return rows, observed


def checked_rows(x: ArrayLike) -> Floats:
    """Return the rows of a regression, or say what is wrong with them."""
    rows = floats(x, "x")
    if rows.ndim != 2 or rows.size == 0:
        raise ShapeMismatch(f"x has shape {rows.shape}; it must be (rows, columns)")
    if not np.isfinite(rows).all():
        raise InvalidArgument(f"row {np.argwhere(~np.isfinite(rows))[0, 0]} of x has a NaN or an infinity")
    return rows
