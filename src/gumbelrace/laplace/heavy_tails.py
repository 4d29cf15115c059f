"""Parameters whose posterior reaches much farther out than the law that proposes them.

Their priors fall off like a power, and the rows tell little of them; or a few rows tell all, whose log
factors do: Student's t law with few degrees of freedom, Cauchy's. Chains hardly ever get so far out, and
stay for long where they do.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy  # its parts load when first used

from gumbelrace.laplace.mode import Mode
from gumbelrace.laplace.model import Floats, Model, Summed

# Distances at which the posterior is looked at, in standard deviations: the next one only where it has
# fallen by less than this share of what a normal law would have.
DISTANCES, SHARE = np.array([5.0, 8.0, 16.0, 32.0, 64.0, 128.0]), 0.5
# The share of the posterior farther out than one of them that counts, and how many times lower than the
# posterior the law that proposes may be there: less where coordinates have laws of their own, since others
# that go with a parameter by the normal law need not do so far out.
SOME, TIMES, TIMES_OF_BLOCKS = 0.002, 10.0, 3.0
# The logarithm of the longest stay; it does not matter how much longer it is.
FOR_EVER = 100.0
# Rows say less than that share of what is known of a parameter: nothing, but for rounding.
NOTHING = 1e-9
# Of rows that lie in a table, those parameters alone are looked at of which they say less than that.
LITTLE = 0.5
# Parameters for which rows are read: as many as read about so many, and no fewer than that.
AFFORDABLE, FEWEST = 2e7, 2


# By how much the log density of a law that proposes falls to a step from the mode, so many standard
# deviations long.
Fall = Callable[[Floats, float], float]


class Suspects(NamedTuple):
    """Parameters whose tails may be heavy, those first of which rows tell least."""

    alone: list[int]  # rows tell nothing of them
    some: list[int]  # rows have to be read
    along: Floats  # a column for each parameter: a standard deviation of it

    def steps(self, parameter: int, sign: float) -> Floats:
        """Give the steps from the mode at which the posterior is looked at, on one side."""
        steps: Floats = sign * DISTANCES[:, None] * self.along[:, parameter]
        return steps


def suspects_of(mode: Mode, root: Floats, told_most: float = np.inf) -> Suspects:
    """Give the parameters of which rows tell less than that, of the 1 that is known in all."""
    along = root @ (root / np.linalg.norm(root, axis=1)[:, None]).T
    told = -np.sum(along * (mode.factors.hessian @ along), axis=0)
    order = np.argsort(told, kind="stable")
    alone, some = order[told[order] < NOTHING], order[told[order] >= NOTHING]
    return Suspects(alone.tolist(), some[told[some] < told_most].tolist(), along)


def suspects_of_table(mode: Mode, root: Floats, size: int) -> Suspects:
    """Give fewer: all their points are read in a pass, needed or not."""
    suspects = suspects_of(mode, root, LITTLE)
    most = max(FEWEST, int(AFFORDABLE / (2 * len(DISTANCES) * size)))
    return suspects._replace(some=suspects.some[:most])


def stays_of(
    model: Model, mode: Mode, root: Floats, fall: Fall, among: Sequence[int] | None = None
) -> dict[int, float]:
    """Give how long chains of a law stay far out in parameters, of all or among some. See `stays_by`."""

    def left(step: Floats) -> float:
        return float(model.residuals(mode.theta, step).sum())

    passes = max(AFFORDABLE / model.size, 2.0 * len(DISTANCES) * FEWEST)
    suspects = suspects_of(mode, root)
    if among is not None:
        alone, some = ([i for i in part if i in among] for part in suspects[:2])
        suspects = suspects._replace(alone=alone, some=some)
    return stays_by(suspects, model, mode, left, fall, passes)


def stays_by(
    suspects: Suspects,
    model: Summed,
    mode: Mode,
    left: Callable[[Floats], float],
    fall: Fall,
    passes: float = np.inf,
) -> dict[int, float]:
    """Give for each suspect how many steps a chain stays where it is farthest out.

    `left` gives what expansions leave of all rows, `passes` times; the last suspects may be left out.
    """
    found = {}
    for i in [*suspects.alone, *suspects.some]:
        of_rows = None if i in suspects.alone else left
        if of_rows and passes < 2.0:
            break
        steps = [suspects.steps(i, sign) for sign in (1.0, -1.0)]
        sides = np.stack([heights_at_steps(model, mode, side, of_rows) for side in steps])
        falls = np.array([list(map(fall, side, DISTANCES)) for side in steps])
        passes -= 2.0 + float(np.isfinite(sides).sum()) if of_rows else 0.0
        found[i] = stay_of(sides, falls)
    return found


def stay_of(sides: Floats, falls: Floats) -> float:
    """Give how many times lower the law that proposes is, where it is lowest and some of the posterior is.

    A chain stays there for as many steps, and is there as many times too seldom.
    """
    matters = [share_far_out(sides, k) > SOME for k in range(len(DISTANCES))]
    too_low = np.max(sides - falls, axis=0)[matters]
    return float(np.exp(np.clip(np.max(too_low, initial=0.0), 0.0, FOR_EVER)))


def too_heavy(stays: dict[int, float], times: float = TIMES) -> list[int]:
    """Give the parameters whose tails are too heavy."""
    return sorted(i for i, stay in stays.items() if stay > times)


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


def share_far_out(heights: Floats, first: int = 0) -> float:
    """Give the share of a parameter's posterior beyond a distance, from heights on two sides."""
    distances = DISTANCES[first:]
    densities = np.exp(heights[:, first:]) * distances
    masses = scipy.integrate.trapezoid(densities, np.log(distances), axis=1)
    return float(masses.sum() / np.sqrt(2.0 * np.pi))
