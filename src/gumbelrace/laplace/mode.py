"""The mode of a posterior, by Newton's method with safeguards."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy  # its parts load when first used

from gumbelrace.errors import NoMode
from gumbelrace.laplace.model import Floats, Model, Quadratic

# A mode is found when Newton's next step is shorter than that many standard deviations of the posterior. So
# short a step may not be seen to go uphill, for rounding: then it is found as well.
FOUND, HARDLY_UPHILL = 1e-4, 1e-2
# Towards a mode at infinity, which labels have that a plane separates, steps stay as long: no longer than
# that share of the point's own size are those of a mode.
SHORT = 1e-2
MOST_STEPS, MOST_HALVINGS = 100, 30
# A step goes uphill by at least that share of what its slope says.
ARMIJO = 1e-4
# Curvatures below that share of the largest (parameters scaled to equal curvature) are those of no mode.
FLAT = 1e-10
# With more parameters than that a Hessian costs much more than a gradient: those lead most of the way.
MANY, ROUGHLY = 64, 300


class Mode(NamedTuple):
    """A mode, and the two parts of the posterior near it."""

    theta: Floats
    prior: Quadratic
    factors: Quadratic

    @property
    def precision(self) -> Floats:
        """Minus the Hessian of the log posterior."""
        return -(self.prior.hessian + self.factors.hessian)


class Bowl(NamedTuple):
    """Minus a Hessian, diagonalised after parameters were scaled to equal curvature."""

    scales: Floats
    curvatures: Floats
    axes: Floats

    def newton_step(self, gradient: Floats) -> tuple[Floats, float]:
        """Give the step to the mode, and how many standard deviations away it is.

        Where the curvature has the wrong sign, the step goes uphill all the same.
        """
        along = self.axes.T @ (self.scales * gradient)
        curvatures = np.maximum(np.abs(self.curvatures), FLAT * np.abs(self.curvatures).max())
        step = self.scales * (self.axes @ (along / curvatures))
        return step, float(np.sqrt(np.sum(along**2 / curvatures)))


def find_mode(model: Model, start: Floats | None = None) -> Mode:
    """Find the mode of a posterior near `start`, by default the model's own.

    Raises
    ------
    NoMode
        The posterior is not finite at the start, or flat in some direction; parameters are named.
    """
    theta = np.array(model.start if start is None else start, np.float64)
    value = model.value(theta)
    if not np.isfinite(value):
        raise NoMode(f"the log posterior is {value} at the start {named(model.names, theta)}; give another")
    if model.gradient is not None and len(theta) > MANY:
        theta = roughly(model, model.gradient, theta)
    for _ in range(MOST_STEPS):
        mode = Mode(theta, model.prior(theta), model.factors(theta))
        whole = mode.prior.plus(mode.factors)
        check_finite(whole, model, theta)
        bowl = bowl_of(-whole.hessian)
        step, distance = bowl.newton_step(whole.gradient)
        settled = float(np.abs(step).max()) <= SHORT * (1.0 + float(np.abs(theta).max()))
        length = 0.0 if distance < FOUND and settled else uphill(model, theta, whole, step)
        if length == 0.0:
            break
        theta = theta + length * step
    check_curved(bowl, model.names, settled or distance > HARDLY_UPHILL)
    if distance > HARDLY_UPHILL:
        raise NoMode(
            f"no mode was found: after {MOST_STEPS} steps at most it is still {distance:.2g} standard "
            f"deviations away, at {named(model.names, theta)}; give a start closer to it, or scale the data"
        )
    return mode


def roughly(model: Model, gradient: Callable[[Floats], Floats], theta: Floats) -> Floats:
    """Go most of the way by gradients."""

    def minus(point: Floats) -> tuple[float, Floats]:
        value = model.value(point)
        return (-value, -gradient(point)) if np.isfinite(value) else (np.inf, np.zeros_like(point))

    options = {"maxiter": ROUGHLY, "maxcor": 20}
    found = scipy.optimize.minimize(minus, theta, jac=True, method="L-BFGS-B", options=options)
    reached: Floats = found.x
    return reached


def uphill(model: Model, theta: Floats, whole: Quadratic, step: Floats) -> float:
    """Give how much of a step to take so that the posterior grows as it should; 0 if no part of it does."""
    slope, length = float(whole.gradient @ step), 1.0
    for _ in range(MOST_HALVINGS):
        value = model.value(theta + length * step)
        if value > whole.value + ARMIJO * length * slope:
            return length
        length *= 0.5
    return 0.0


def bowl_of(precision: Floats) -> Bowl:
    """Diagonalise minus a Hessian."""
    diagonal = np.abs(np.diag(precision))
    scales = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, max(diagonal.max(), 1e-300)))
    curvatures, axes = np.linalg.eigh(scales[:, None] * precision * scales)
    return Bowl(scales, curvatures, axes)


def check_finite(whole: Quadratic, model: Model, theta: Floats) -> None:
    """Refuse derivatives that are not numbers."""
    for what, part in (("gradient", whole.gradient), ("Hessian", whole.hessian)):
        if not np.isfinite(part).all():
            where = sorted(set(np.argwhere(~np.isfinite(part))[:, 0].tolist()))
            raise NoMode(
                f"the {what} of the log posterior is not finite in {listed(model.names, where)} "
                f"at {named(model.names, theta)}; mend the model or give another start"
            )


def check_curved(bowl: Bowl, names: Sequence[str], settled: bool) -> None:
    """Refuse a place where the posterior is flat, or not even a mode, and name the parameters."""
    least = int(np.argmin(bowl.curvatures))
    if settled and bowl.curvatures[least] > FLAT * bowl.curvatures[-1]:
        return
    loadings = np.abs(bowl.scales * bowl.axes[:, least])
    guilty = np.flatnonzero(loadings > 0.3 * loadings.max()).tolist()
    raise NoMode(
        f"the posterior has no curved mode: it is flat along {listed(names, guilty)}. A parameter that the "
        "data do not tell, columns that say the same, or labels that a plane separates: give a prior that "
        "decides, or leave a parameter out"
    )


def listed(names: Sequence[str], where: Sequence[int]) -> str:
    """Name some parameters."""
    few = ", ".join(names[i] for i in where[:5])
    return few if len(where) <= 5 else f"{few} and {len(where) - 5} more"


def named(names: Sequence[str], theta: Floats) -> str:
    """Give a point with the names of its coordinates, the first of them."""
    few = ", ".join(f"{name} = {x:.4g}" for name, x in zip(names[:4], theta[:4], strict=True))
    return few if len(theta) <= 4 else f"{few}, ..."
