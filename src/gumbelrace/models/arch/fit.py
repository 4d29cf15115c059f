"""The posterior of an ARCH model around its mode: Laplace's approximation and the evidence.

With d parameters, mode x̂ and Hessian H of the log posterior there,

    log p(r | q) ≈ log p(r, x̂ | q) + ½d log 2π - ½ log |-H|,

and the normal law N(x̂, -H⁻¹) serves as pseudoprior and to draw from for importance sampling.
"""

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy  # its parts load when first used

from gumbelrace.core.jit import Rng, as_generator, check_generator
from gumbelrace.errors import NoMode
from gumbelrace.models.arch import rows
from gumbelrace.models.arch.data import Lagged
from gumbelrace.models.arch.model import Arch
from gumbelrace.models.arch.rows import Floats
from gumbelrace.population.base import checked_count

# Where the search starts. From an α_0 of the size of the variance, 1, it ends far off.
START_ALPHA_0, START_SUM, START_NU = 0.02, 0.5, 4.0

# The search ends where a Newton step would gain this much; what it ends with must be as good as this.
ENOUGH, GOOD = 1e-12, 1e-6
ROUGH_STEPS, NEWTON_STEPS = 200, 20


@dataclass(frozen=True, eq=False)
class Laplace:
    """Normal approximation N(mean, covariance) of a model's posterior.

    Attributes
    ----------
    model : Arch
        The model.
    mean : ndarray of shape (d,)
        The mode x̂.
    hessian : ndarray of shape (d, d)
        Hessian of the log posterior at the mode.
    log_posterior : float
        Log prior and log likelihood at the mode, summed.
    """

    model: Arch
    mean: Floats
    hessian: Floats
    log_posterior: float

    @functools.cached_property
    def covariance(self) -> Floats:
        """The inverse of -hessian."""
        covariance: Floats = self.root @ self.root.T
        return covariance

    @functools.cached_property
    def root(self) -> Floats:
        """A triangular square root L of the covariance, L Lᵀ."""
        # The Cholesky factor of the precision, turned around: no inverse of an ill-conditioned matrix.
        upper = np.linalg.cholesky(-self.hessian[::-1, ::-1])[::-1, ::-1]
        root: Floats = scipy.linalg.solve_triangular(upper, np.eye(len(self.mean))).T
        return root

    @property
    def log_evidence(self) -> float:
        """Laplace's approximation of log p(r | q)."""
        log_volume = np.log(np.diag(self.root)).sum()
        return float(self.log_posterior + 0.5 * len(self.mean) * np.log(2.0 * np.pi) + log_volume)

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """Draw parameters, of shape (size, d)."""
        return self.at(check_generator(rng).standard_normal((size, len(self.mean))))

    def at(self, z: Floats) -> Floats:
        """Give the parameters whose standardised values are z."""
        return self.mean + z @ self.root.T


class Evidence(NamedTuple):
    """An estimate of the evidence.

    Attributes
    ----------
    log_evidence : float
        Estimate of log p(r | q).
    error : float
        Its Monte Carlo standard error.
    efficiency : float
        Effective sample size over the number of draws: 1 if the posterior were the law drawn from.
    """

    log_evidence: float
    error: float
    efficiency: float


def laplace(model: Arch, data: Lagged) -> Laplace:
    """Find the mode of a model's posterior, and the normal law that fits it there.

    Examples
    --------
    >>> from gumbelrace.models.arch.data import lagged, simulate
    >>> from gumbelrace.models.returns import standardised
    >>> data = lagged(standardised(simulate(5000, np.random.default_rng(0))), 12)
    >>> fits = [laplace(Arch(order), data) for order in (4, 10, 12)]
    >>> int(np.argmax([fit.log_evidence for fit in fits]))
    1
    """
    found = scipy.optimize.minimize(
        lambda x: -log_posterior(model, x, data),
        start(model),
        jac=lambda x: -_gradient(model, x, data),
        hess=lambda x: -_hessian(model, x, data),
        method="trust-exact",
        options={"gtol": 0.1, "maxiter": ROUGH_STEPS},
    )
    mode, gain = _polished(model, found.x, data)
    if not gain < GOOD:
        raise NoMode(f"no mode found for order {model.order}: a Newton step would still gain {gain:.3g}")
    return Laplace(model, mode, _hessian(model, mode, data), log_posterior(model, mode, data))


def start(model: Arch) -> Floats:
    """Give the parameter from which the search for the mode starts."""
    alpha = np.full(model.order + 1, START_SUM / model.order)
    alpha[0] = START_ALPHA_0
    return model.parameter(alpha, START_NU)


def log_posterior(model: Arch, x: Floats, data: Lagged) -> float:
    """Log prior and log likelihood of x, summed."""
    return model.log_prior(x) + model.log_likelihood(x, data)


def log_evidence_by_importance(fit: Laplace, data: Lagged, rng: Rng = None, draws: int = 1000) -> Evidence:
    """Estimate the evidence by importance sampling from the Laplace approximation.

    Parameters
    ----------
    fit : Laplace
        From `laplace`, of the same data.
    data : Lagged
        Rows.
    rng : numpy.random.Generator, int, or None
        Source of randomness.
    draws : int
        Number of draws; each reads all rows.
    """
    draws, d = checked_count(draws, "draws", least=2), len(fit.mean)
    z = as_generator(rng).standard_normal((draws, d))
    xs = fit.at(z)
    points = rows.points_of(xs, fit.model.tau, data.lags)
    log_target = rows.log_likelihood(points, *data.parts) + [fit.model.log_prior(x) for x in xs]
    log_volume = np.log(np.diag(fit.root)).sum() + 0.5 * d * np.log(2.0 * np.pi)
    log_weights = log_target + 0.5 * np.square(z).sum(axis=1) + log_volume
    weights = np.exp(log_weights - log_weights.max())
    error = weights.std(ddof=1) / np.sqrt(draws) / weights.mean()
    efficiency = weights.mean() ** 2 / np.square(weights).mean()
    return Evidence(float(np.log(weights.mean()) + log_weights.max()), float(error), float(efficiency))


def _polished(model: Arch, x: Floats, data: Lagged) -> tuple[Floats, float]:
    """Make Newton steps; give the point, and what another step would gain (infinity at a saddle)."""
    for _ in range(NEWTON_STEPS):
        gradient, precision = _gradient(model, x, data), -_hessian(model, x, data)
        if np.linalg.eigvalsh(precision)[0] <= 0.0:
            return x, np.inf
        step = np.linalg.solve(precision, gradient)
        gain = 0.5 * float(step @ gradient)
        if gain < ENOUGH:
            break
        x = x + step
    return x, gain


def _gradient(model: Arch, x: Floats, data: Lagged) -> Floats:
    return model.prior_gradient(x) + model.gradient(np.arange(data.size), x, data)


def _hessian(model: Arch, x: Floats, data: Lagged) -> Floats:
    return model.prior_hessian(x) + model.hessian(x, data)
