"""The mode of a posterior, by Newton's method with safeguards."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import scipy  # its parts load when first used

from gumbelrace.errors import NoMode
from gumbelrace.laplace.bowl import FLAT, Bowl, bowl_of
from gumbelrace.laplace.model import Floats, Indices, Quadratic, Summed, dense

# A mode is found when Newton's next step is shorter than that many standard deviations of the posterior. So
# short a step may not be seen to go uphill, for rounding: then it is found as well.
FOUND, HARDLY_UPHILL = 1e-4, 1e-2
# Parameters that rows depend on are first brought that near, the others being held.
NEAR = 0.5
# Towards a mode at infinity, which labels have that a plane separates, steps stay as long: no longer than
# that share of the point's own size are those of a mode.
SHORT = 1e-2
MOST_STEPS, MOST_HALVINGS = 100, 30
# A step goes uphill by at least that share of what its slope says.
ARMIJO = 1e-4
# With more parameters than that a Hessian costs much more than a gradient: those lead most of the way.
MANY, ROUGHLY = 64, 300
# Where a prior curves so many times as much as the rows, its scale has gone towards zero.
SHRUNK = 10.0
FLAT_BECAUSE = (
    "A parameter that the data do not tell, columns that say the same, or labels that a plane separates: "
    "give a prior that decides, or leave a parameter out"
)


class Mode(NamedTuple):
    """A mode, and the two parts of the posterior near it."""

    theta: Floats
    prior: Quadratic
    factors: Quadratic

    @property
    def precision(self) -> Floats:
        """Minus the Hessian of the log posterior."""
        precision: Floats = -(self.prior.hessian + self.factors.hessian)
        return precision


class Climb(NamedTuple):
    """Where Newton's method has led."""

    mode: Mode
    bowl: Bowl
    distance: float  # to the mode, in standard deviations
    settled: bool  # whether the next step is short


def find_mode(model: Summed, start: Floats | None = None) -> Mode:
    """Find the mode of a posterior near `start`, by default the model's own.

    Raises
    ------
    NoMode
        The posterior is not finite at the start, or flat in some direction; parameters are named.
    """
    theta = np.array(model.start if start is None else start, np.float64)
    value = model.value(theta)
    if not np.isfinite(value):
        missing = ", and look for missing values in the data" if np.isnan(value) else ""
        raise NoMode(
            f"the log posterior is {value} at the start {named(model.names, theta)}; give another{missing}"
        )
    mode, bowl, distance, settled = climb(model, nearer(model, theta))
    check_curved(bowl, model, mode, settled or distance > HARDLY_UPHILL)
    if distance > HARDLY_UPHILL:
        raise NoMode(
            f"no mode was found: after {MOST_STEPS} steps at most it is still {distance:.2g} standard "
            f"deviations away, at {named(model.names, mode.theta)}; give a start closer to it, or scale "
            "the data"
        )
    return Mode(mode.theta, *(part._replace(hessian=dense(part.hessian)) for part in mode[1:]))


def nearer(model: Summed, theta: Floats) -> Floats:
    """Go some of the way.

    Parameters that no row depends on are held: where effects are still zero, the scale of their prior would
    go to zero as well.
    """
    factors = model.factors(theta)
    depends = (factors.gradient != 0.0) | (np.asarray(abs(factors.hessian).sum(axis=0)) != 0.0)
    if not depends.all() and depends.any():
        return climb(model, theta, np.flatnonzero(depends), NEAR).mode.theta
    if model.gradient is not None and len(theta) > MANY and isinstance(factors.hessian, np.ndarray):
        return roughly(model, model.gradient, theta)
    return theta


def climb(model: Summed, theta: Floats, free: Indices | None = None, near: float = FOUND) -> Climb:
    """Go uphill by Newton's steps, of the parameters `free` only, until the mode is `near`."""
    free = np.arange(len(theta)) if free is None else free
    for _ in range(MOST_STEPS):
        mode = Mode(theta, model.prior(theta), model.factors(theta))
        whole = mode.prior.plus(mode.factors)
        check_finite(whole, model, theta)
        bowl, step = bowl_of(-whole.hessian[free][:, free]), np.zeros_like(theta)
        step[free], distance = bowl.newton_step(whole.gradient[free])
        settled = float(np.abs(step).max()) <= SHORT * (1.0 + float(np.abs(theta).max()))
        length = 0.0 if distance < near and settled else uphill(model, theta, whole, step)
        if length == 0.0:
            break
        theta = theta + length * step
    return Climb(mode, bowl, distance, settled)


def roughly(model: Summed, gradient: Callable[[Floats], Floats], theta: Floats) -> Floats:
    """Go most of the way by gradients."""

    def minus(point: Floats) -> tuple[float, Floats]:
        value = model.value(point)
        return (-value, -gradient(point)) if np.isfinite(value) else (np.inf, np.zeros_like(point))

    options = {"maxiter": ROUGHLY, "maxcor": 20}
    found = scipy.optimize.minimize(minus, theta, jac=True, method="L-BFGS-B", options=options)
    reached: Floats = found.x
    return reached


def uphill(model: Summed, theta: Floats, whole: Quadratic, step: Floats) -> float:
    """Give how much of a step to take so that the posterior grows as it should; 0 if no part of it does."""
    slope, length = float(whole.gradient @ step), 1.0
    for _ in range(MOST_HALVINGS):
        value = model.value(theta + length * step)
        if value > whole.value + ARMIJO * length * slope:
            return length
        length *= 0.5
    return 0.0


def check_finite(whole: Quadratic, model: Summed, theta: Floats) -> None:
    """Refuse derivatives that are not numbers."""
    for what, part in (("gradient", whole.gradient), ("Hessian", whole.hessian)):
        sums = np.asarray(part if part.ndim == 1 else part.sum(axis=1))
        if not np.isfinite(sums).all():
            where = np.flatnonzero(~np.isfinite(sums)).tolist()
            raise NoMode(
                f"the {what} of the log posterior is not finite in {listed(model.names, where)} "
                f"at {named(model.names, theta)}; mend the model or give another start"
            )


def check_curved(bowl: Bowl, model: Summed, mode: Mode, settled: bool) -> None:
    """Refuse a place where the posterior is flat, or not even a mode, and name the parameters."""
    least, loadings = bowl.flattest()
    if settled and least > FLAT:
        return
    guilty = np.flatnonzero(loadings > 0.3 * loadings.max()).tolist()
    reason = next(funnels(model, mode), FLAT_BECAUSE)
    raise NoMode(
        f"the posterior has no curved mode: it is flat along {listed(model.names, guilty)}. {reason}"
    )


def funnels(model: Summed, mode: Mode) -> Iterator[str]:
    """Say which parameters are scales of others that have shrunk together: that has no mode at all.

    A unit more of the logarithm of a scale changes the prior's curvature of what it scales by e², and where
    that has shrunk the curvature of the rows is nothing beside it.
    """
    theta, (_, prior, factors) = mode.theta, mode
    of_prior, of_rows = (np.abs(dense(part.hessian).diagonal()) for part in (prior, factors))
    shrunk = (of_rows > 0.0) & (of_prior > SHRUNK * of_rows)
    untold = np.flatnonzero((of_rows == 0.0) & (factors.gradient == 0.0)).tolist()
    for i in untold if shrunk.sum() > 1 else ():
        wider = theta.copy()
        wider[i] += 1.0
        after = np.abs(dense(model.prior(wider).hessian).diagonal())
        scaled = np.flatnonzero(shrunk & (after < 0.5 * of_prior)).tolist()
        if len(scaled) > 1:
            yield (
                f"{model.names[i]} scales {listed(model.names, scaled)}, and the posterior grows without "
                "bound as these come together and it goes to zero (a funnel): write each as "
                "mean + scale * z with z ~ Normal(0, 1) as the parameter (non-centred), or use a sampler "
                "such as NUTS"
            )


def listed(names: Sequence[str], where: Sequence[int]) -> str:
    """Name some parameters."""
    few = ", ".join(names[i] for i in where[:5])
    return few if len(where) <= 5 else f"{few} and {len(where) - 5} more"


def named(names: Sequence[str], theta: Floats) -> str:
    """Give a point with the names of its coordinates, the first of them."""
    few = ", ".join(f"{name} = {x:.4g}" for name, x in zip(names[:4], theta[:4], strict=True))
    return few if len(theta) <= 4 else f"{few}, ..."
