"""Parameters whose posterior reaches much farther out than the law that proposes them.

Of those the rows tell little, and their priors fall off like a power: Student's t law with few degrees of
freedom, Cauchy's. Chains hardly ever get so far out, and stay for long where they do.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
import scipy  # its parts load when first used

from gumbelrace.laplace.mode import Mode
from gumbelrace.laplace.model import Floats, Model, Summed

# Distances at which the posterior is looked at, in standard deviations: the next one only where it has
# fallen by less than this share of what a normal law would have.
DISTANCES, SHARE = np.array([8.0, 16.0, 32.0, 64.0, 128.0]), 0.5
# The share of the posterior farther out than the first of them that is too much, if the law that proposes
# has so many times less there.
MOST, TIMES = 0.004, 10.0
# Rows say less than that share of what is known of such a parameter, or nothing, but for rounding.
LITTLE, NOTHING = 0.5, 1e-9
# Parameters for which rows are read: as many as read about so many, and no fewer than that.
AFFORDABLE, FEWEST = 2e7, 2


class Law(Protocol):
    """What proposes."""

    def fall(self, distance: float, dimension: int) -> float:
        """By how much the log density falls from a usual point to one that is so far out besides."""


class Suspects(NamedTuple):
    """Parameters of which rows tell little: those of which they tell nothing, and some of the others."""

    alone: list[int]
    some: list[int]
    along: Floats  # a column for each parameter: a standard deviation of it

    def steps(self, parameter: int, sign: float) -> Floats:
        """Give the steps from the mode at which the posterior is looked at, on one side."""
        steps: Floats = sign * DISTANCES[:, None] * self.along[:, parameter]
        return steps


def suspects_of(mode: Mode, root: Floats, size: int) -> Suspects:
    """Give the parameters of which so many rows tell little; of some of them, rows are to be read."""
    along = root @ (root / np.linalg.norm(root, axis=1)[:, None]).T
    told = -np.sum(along * (mode.factors.hessian @ along), axis=0)  # by the rows, of 1 in all
    alone = np.flatnonzero(told < NOTHING)
    some = np.flatnonzero((told >= NOTHING) & (told < LITTLE))
    most = max(FEWEST, int(AFFORDABLE / (2 * len(DISTANCES) * size)))
    return Suspects(alone.tolist(), some[:most].tolist(), along)


def heavy_tailed(model: Model, mode: Mode, root: Floats, law: Law) -> list[int]:
    """Give the parameters with too heavy tails for a law, of those about which rows tell little."""

    def left(step: Floats) -> float:
        return float(model.residuals(mode.theta, step).sum())

    return too_heavy(suspects_of(mode, root, model.size), model, mode, left, law)


def too_heavy(
    suspects: Suspects, model: Summed, mode: Mode, left: Callable[[Floats], float], law: Law
) -> list[int]:
    """Give those with too heavy tails; `left` gives what expansions leave of all rows at a step."""
    enough, found = law.fall(DISTANCES[0], len(suspects.along)) + np.log(TIMES), []
    for i in sorted([*suspects.alone, *suspects.some]):
        of_rows = None if i in suspects.alone else left
        steps = [suspects.steps(i, sign) for sign in (1.0, -1.0)]
        sides = np.stack([heights_at_steps(model, mode, side, of_rows) for side in steps])
        if sides[:, 0].max() > enough and share_far_out(sides) > MOST:
            found.append(i)
    return found


def heights_at_steps(
    model: Summed, mode: Mode, steps: Floats, left: Callable[[Floats], float] | None
) -> Floats:
    """Give the log posterior at steps, less that at the mode; -inf where low. None: rows tell nothing."""
    heights = np.full(len(DISTANCES), -np.inf)
    for k, distance in enumerate(DISTANCES):
        height = model.log_prior(mode.theta + steps[k]) - mode.prior.value
        if left is not None:
            height += mode.factors.change(steps[k]) + left(steps[k])
        if not height > -0.5 * SHARE * distance**2:
            break
        heights[k] = height
    return heights


def share_far_out(heights: Floats) -> float:
    """Give the share of a parameter's posterior beyond the first distance, from heights on two sides."""
    densities = np.exp(heights) * DISTANCES
    masses = scipy.integrate.trapezoid(densities, np.log(DISTANCES), axis=1)
    return float(masses.sum() / np.sqrt(2.0 * np.pi))
