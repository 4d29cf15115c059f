"""Parameters whose posterior reaches much farther out than the law that proposes them.

Their priors fall off like a power, and the rows tell little of them; or a few rows tell all, whose log
factors do: Student's t law with few degrees of freedom, Cauchy's. Chains hardly ever get so far out, and
stay for long where they do.
"""

from typing import Protocol

import numpy as np
import scipy  # its parts load when first used

from gumbelrace.laplace.mode import Mode
from gumbelrace.laplace.model import Floats, Model

# Distances at which the posterior is looked at, in standard deviations: the next one only where it has
# fallen by less than this share of what a normal law would have.
DISTANCES, SHARE = np.array([8.0, 16.0, 32.0, 64.0, 128.0]), 0.5
# The share of the posterior farther out than the first of them that is too much, if the law that proposes
# has so many times less there.
MOST, TIMES = 0.004, 10.0
# Rows say less than that share of what is known of a parameter: nothing, but for rounding.
NOTHING = 1e-9
# Parameters for which rows are read: as many as read about so many, and no fewer than that.
AFFORDABLE, FEWEST = 2e7, 2


class Law(Protocol):
    """What proposes."""

    def fall(self, distance: float, dimension: int) -> float:
        """By how much the log density falls from a usual point to one that is so far out besides."""


def heavy_tailed(model: Model, mode: Mode, root: Floats, law: Law) -> list[int]:
    """Give the parameters with too heavy tails for a law; those come first of which rows tell least."""
    along = root @ (root / np.linalg.norm(root, axis=1)[:, None]).T  # a column each: a standard deviation
    told = -np.sum(along * (mode.factors.hessian @ along), axis=0)  # by the rows, of 1 in all
    enough, found = law.fall(DISTANCES[0], len(root)) + np.log(TIMES), []
    passes = max(AFFORDABLE / model.size, 2.0 * len(DISTANCES) * FEWEST)  # over all rows
    for i in np.argsort(told, kind="stable").tolist():
        alone = bool(told[i] < NOTHING)
        if passes < 2.0 and not alone:
            break
        sides = np.stack([heights_along(model, mode, sign * along[:, i], alone) for sign in (1.0, -1.0)])
        passes -= 0.0 if alone else 2.0 + float(np.isfinite(sides).sum())
        if sides[:, 0].max() > enough and share_far_out(sides) > MOST:
            found.append(i)
    return sorted(found)


def heights_along(model: Model, mode: Mode, direction: Floats, prior_alone: bool) -> Floats:
    """Give the log posterior at distances along a direction, less that at the mode; -inf where low."""
    heights = np.full(len(DISTANCES), -np.inf)
    for k, distance in enumerate(DISTANCES):
        step = distance * direction
        height = model.log_prior(mode.theta + step) - mode.prior.value
        if not prior_alone:
            height += mode.factors.change(step) + float(model.residuals(mode.theta, step).sum())
        if not height > -0.5 * SHARE * distance**2:
            break
        heights[k] = height
    return heights


def share_far_out(heights: Floats) -> float:
    """Give the share of a parameter's posterior beyond the first distance, from heights on two sides."""
    densities = np.exp(heights) * DISTANCES
    masses = scipy.integrate.trapezoid(densities, np.log(DISTANCES), axis=1)
    return float(masses.sum() / np.sqrt(2.0 * np.pi))
