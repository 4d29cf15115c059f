"""Where the law of blocks lies: at the mode of the parameters that all rows share, others integrated out.

With a thousand effects of groups and their unknown scale, the mode of all parameters together is far from
where the posterior is: effects are closer to zero there than elsewhere, and the scale is the one that suits
them, several standard deviations too small. With w the effects and g the parameters that all rows share,
blocks are centred where Laplace's approximation of g's own posterior is largest instead,

    log p(g) ≈ log p(g, ŵ(g)) - ½ log det H(g),    H = -∂² log p / ∂w² at the effects' mode ŵ(g),

and the law of g has the curvature of that.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts load when first used

from gumbelrace.errors import NoMode
from gumbelrace.laplace.bowl import positive_factor
from gumbelrace.laplace.mode import Mode, climb
from gumbelrace.laplace.model import Floats, Indices, Summed, dense

# If more parameters than that are shared, the mode is the centre: each takes two passes over all rows.
MOST_SHARED = 50
# The centre is found when it would move by less than that, in standard deviations; or after so many rounds,
# of which none leads farther than that.
NEAR, ROUNDS, FARTHEST = 0.1, 8, 2.0
# In no direction is the law's precision less than that share of the one at the mode.
LEAST = 0.2


class Parts(NamedTuple):
    """Parameters that have rows of their own, and those that all rows share."""

    own: Indices
    shared: Indices


class Split(NamedTuple):
    """Minus the Hessian of a log posterior, in parts."""

    factor: Any  # of H, for parameters of their own; None: it is not positive
    coupled: Floats  # these beside the shared ones
    shared: Floats

    @property
    def half_log_det(self) -> float:
        """½ log det H; NaN if H is not positive."""
        return np.nan if self.factor is None else 0.5 * float(np.log(self.factor.U.diagonal()).sum())

    @property
    def following(self) -> Floats:
        """By how much the mode of the others moves with the shared parameters."""
        moved: Floats = -self.factor.solve(self.coupled)
        return moved

    @property
    def profile(self) -> Floats:
        """The precision of the shared parameters if the others follow them."""
        profile: Floats = self.shared + self.coupled.T @ self.following
        return profile


class Tilt(NamedTuple):
    """½ log det H near a centre, of the shared parameters in units in which they are uncorrelated."""

    shared: Indices
    units: Floats  # a column for each
    slope: Floats
    curvature: Floats  # along each unit

    def at(self, step: Floats) -> float:
        """By how much it grows from the centre to a step."""
        v = np.linalg.solve(self.units, step[self.shared])
        return float(v @ (self.slope + 0.5 * self.curvature * v))

    def precision(self, profile: Floats) -> Floats:
        """Give the precision of the shared parameters, in units."""
        values, axes = np.linalg.eigh(self.units.T @ profile @ self.units + np.diag(self.curvature))
        precision: Floats = (axes * np.maximum(values, LEAST)) @ axes.T
        return precision


NO_TILT = Tilt(np.zeros(0, np.int64), np.zeros((0, 0)), np.zeros(0), np.zeros(0))


class Centre(NamedTuple):
    """A point, the two parts of the posterior near it, and the precision of the law around it."""

    near: Mode
    precision: Floats
    tilt: Tilt


class Here(NamedTuple):
    """A point at which the others are at their mode, given the shared parameters."""

    near: Mode
    split: Split
    tilt: Tilt

    @property
    def shift(self) -> Floats:
        """Newton's step of the shared parameters to their own mode, in units."""
        gradient = (self.near.prior.gradient + self.near.factors.gradient)[self.tilt.shared]
        slope = self.tilt.units.T @ gradient - self.tilt.slope
        shift = np.linalg.solve(self.tilt.precision(self.split.profile), slope)
        length = max(float(np.linalg.norm(shift)), NEAR)
        return np.asarray(shift * min(1.0, FARTHEST / length), np.float64)


def centre_of(model: Summed, mode: Mode, parts: Parts) -> Centre:
    """Find the centre for blocks; the mode, if no parameters or too many are shared."""
    if not (len(parts.own) and 0 < len(parts.shared) <= MOST_SHARED):
        return Centre(mode, mode.precision, NO_TILT)
    split = split_of(mode, parts)
    units = np.linalg.inv(np.linalg.cholesky(split.profile)).T
    here = Here(mode, split, tilt_at(model, mode.theta, parts, split, units))
    for _ in range(ROUNDS):
        there = beyond(model, here, parts) if np.linalg.norm(here.shift) > NEAR else None
        if there is None:
            break
        here = there
    return Centre(dense_near(here.near), precision_of(here, parts), here.tilt)


def beyond(model: Summed, here: Here, parts: Parts) -> Here | None:
    """Go where the shared parameters' own mode seems to be; None if there is no mode of the others."""
    move = along(parts, here.split, here.tilt.units @ here.shift)
    try:
        near = climb(model, here.near.theta + move, parts.own).mode
    except NoMode:  # derivatives are not finite
        return None
    split = split_of(near, parts)
    if split.factor is None:
        return None
    return Here(near, split, tilt_at(model, near.theta, parts, split, here.tilt.units))


def split_of(near: Mode, parts: Parts) -> Split:
    """Split minus the Hessian at a point."""
    precision = scipy.sparse.csr_array(-(near.prior.hessian + near.factors.hessian))
    of_own, of_shared = precision[parts.own], precision[parts.shared]
    factor = positive_factor(of_own[:, parts.own])
    return Split(factor, of_own[:, parts.shared].toarray(), of_shared[:, parts.shared].toarray())


def along(parts: Parts, split: Split, of_shared: Floats) -> Floats:
    """Give the step of all parameters if the others follow the shared ones."""
    step = np.zeros(len(parts.own) + len(parts.shared))
    step[parts.shared], step[parts.own] = of_shared, split.following @ of_shared
    return step


def tilt_at(model: Summed, theta: Floats, parts: Parts, split: Split, units: Floats) -> Tilt:
    """Look at ½ log det H a unit to either side; flat where it is not known."""
    steps = np.stack([along(parts, split, unit) for unit in units.T])
    found = [[half_log_det(model, theta + sign * step, parts) for step in steps] for sign in (-1.0, 1.0)]
    below, above = np.array(found) - split.half_log_det
    slope, curvature = 0.5 * (above - below), above + below
    known = np.isfinite(slope)
    return Tilt(parts.shared, units, np.where(known, slope, 0.0), np.where(known, curvature, 0.0))


def half_log_det(model: Summed, theta: Floats, parts: Parts) -> float:
    """Give ½ log det H at a point; NaN where H is not positive."""
    return split_of(Mode(theta, model.prior(theta), model.factors(theta)), parts).half_log_det


def precision_of(here: Here, parts: Parts) -> Floats:
    """Give the precision of the law: given the shared parameters, that of the others is what it is."""
    near, split, tilt = here
    precision: Floats = -dense(near.prior.hessian + near.factors.hessian)
    inverse, shared = np.linalg.inv(tilt.units), np.ix_(parts.shared, parts.shared)
    precision[shared] += inverse.T @ tilt.precision(split.profile) @ inverse - split.profile
    return precision


def dense_near(near: Mode) -> Mode:
    """Give the same with dense Hessians."""
    return Mode(near.theta, *(part._replace(hessian=dense(part.hessian)) for part in near[1:]))
