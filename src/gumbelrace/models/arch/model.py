"""Bayesian ARCH models of order q (paper, section 5.2 and appendix C.2).

    r_t = σ_t z_t,    σ_t² = α_0 + α_1 r²_{t-1} + ... + α_q r²_{t-q},    z_t ~ t_ν(0, 1),

with independent Gamma(1, 1) priors on α_0, ..., α_q and ν. z_t is Student's t as it is, not scaled to unit
variance: the variance of r_t given the past is σ_t² ν / (ν - 2). The parameter that is sampled is
x = (x_0, ..., x_{q+1}), any real numbers:

    α_i = τ softplus(x_i / τ),    ν = softplus(x_{q+1}),    softplus(t) = log(1 + exp(t)).

The paper has τ = 1, at which softplus is almost exp where α is about 0.01, and normal approximations of the
posterior are poor. With τ = 0.003 x_i is almost α_i unless that is close to zero, and they are good.

With d parameters, mode x̂ and Hessian H of the log posterior there, Laplace's approximation is

    log p(r | q) ≈ log p(r, x̂ | q) + ½d log 2π - ½ log |-H|,

and the normal law N(x̂, -H⁻¹) serves as pseudoprior and to draw from for importance sampling.
"""

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numba
import numpy as np
import scipy  # its parts load when first used
from numpy.typing import ArrayLike

from gumbelrace.core.random import check_generator
from gumbelrace.errors import InvalidArgument, NoMode, ShapeMismatch
from gumbelrace.models.arch import rows
from gumbelrace.models.arch.data import Lagged
from gumbelrace.models.arch.rows import NU, Floats, Indices, points_of
from gumbelrace.population.base import checked_count

TAU, PAPER_TAU = 0.003, 1.0
# Rows whose lags are copied at a time to multiply matrices: they fit into the cache.
BLOCK = 2048
# Where the search starts. From an α_0 of the size of the variance, 1, it ends far off.
START_ALPHA_0, START_SUM, START_NU = 0.02, 0.5, 4.0
# The search ends where a Newton step would gain this much; what it ends with must be as good as this.
ENOUGH, GOOD = 1e-12, 1e-6
ROUGH_STEPS, NEWTON_STEPS = 200, 20


@dataclass(frozen=True)
class Arch:
    """An ARCH model: priors, and likelihoods of given data.

    Parameters
    ----------
    order : int
        q, at least 1.
    tau : float
        τ; see also `paper`.

    Examples
    --------
    >>> from gumbelrace.models.arch.data import lagged, simulate, standardised
    >>> data = lagged(standardised(simulate(2000, np.random.default_rng(0))), 10)
    >>> model = Arch(2)
    >>> x = model.parameter([0.1, 0.3, 0.3], nu=6.0)
    >>> alpha, nu = model.natural(x)
    >>> alpha.round(3), round(nu, 3), bool(model.log_likelihood(x, data) < 0.0)
    (array([0.1, 0.3, 0.3]), 6.0, True)
    """

    order: int
    tau: float = TAU

    def __post_init__(self) -> None:
        checked_count(self.order, "order")
        if not 0.0 < self.tau < np.inf:
            raise InvalidArgument(f"tau is {self.tau}; it must be positive and finite")

    @classmethod
    def paper(cls, order: int) -> Self:
        """Make the model with the paper's transformation, τ = 1."""
        return cls(order, PAPER_TAU)

    @property
    def dimension(self) -> int:
        """Number of parameters, q + 2."""
        return self.order + 2

    @property
    def scales(self) -> Floats:
        """τ for each α, and 1 for ν."""
        return np.append(np.full(self.order + 1, self.tau), 1.0)

    def natural(self, x: Floats) -> tuple[Floats, float]:
        """Give α and ν of a parameter."""
        values = self.scales * np.logaddexp(0.0, self._checked(x) / self.scales)
        return values[:-1], float(values[-1])

    def parameter(self, alpha: ArrayLike, nu: float) -> Floats:
        """Give the parameter x of α and ν."""
        values = np.append(np.asarray(alpha, np.float64), nu)
        if not (values > 0.0).all():
            raise InvalidArgument(f"alpha is {alpha!r} and nu {nu}; they must be positive")
        return self._checked(values + self.scales * np.log(-np.expm1(-values / self.scales)))

    def log_prior(self, x: Floats) -> float:
        """Log density of x, normalised."""
        return float(rows.log_prior(self._checked(x), self.tau))

    def prior_gradient(self, x: Floats) -> Floats:
        """Gradient of the log prior."""
        slope = self._slope(x)
        gradient: Floats = (1.0 - slope) / self.scales - slope
        return gradient

    def prior_hessian(self, x: Floats) -> Floats:
        """Hessian of the log prior, which is diagonal."""
        slope = self._slope(x)
        return np.diag(-slope * (1.0 - slope) / self.scales * (1.0 + 1.0 / self.scales))

    def log_likelihood(self, x: Floats, data: Lagged) -> float:
        """Sum the log factors of all rows."""
        return float(rows.log_likelihood(self._points(x, data), *data.arrays)[0])

    def gradient(self, index: Indices, x: Floats, data: Lagged) -> Floats:
        """Sum the gradients of the log factors of the rows in `index`."""
        gradient: Floats = self._natural_gradient(index, x, data) * self._slope(x)
        return gradient

    def hessian(self, x: Floats, data: Lagged) -> Floats:
        """Sum the Hessians of the log factors of all rows."""
        slope, every = self._slope(x), np.arange(data.size)
        bent = self._natural_gradient(every, x, data) * slope * (1.0 - slope) / self.scales
        hessian: Floats = self._natural_hessian(x, data) * np.outer(slope, slope) + np.diag(bent)
        return hessian

    def _natural_gradient(self, index: Indices, x: Floats, data: Lagged) -> Floats:
        (point,) = self._points(x, data)
        sums: Floats = rows.slope_sums(np.asarray(index, np.int64), point, *data.arrays)
        sums[-1] += len(index) * _constant_slope(point[NU])
        return sums

    def _natural_hessian(self, x: Floats, data: Lagged) -> Floats:
        """Sum Hessians in α and ν: products of matrices, weighted by the derivatives in σ² and ν."""
        (point,) = self._points(x, data)
        twice, mixed, in_nu = rows.row_curvatures(point, *data.arrays)
        total = np.zeros((self.dimension, self.dimension))
        for start in range(0, data.size, BLOCK):
            block = slice(start, start + BLOCK)
            design = data.design(self.order, block)
            total[:-1, :-1] += (design.T * twice[block]) @ design
            total[:-1, -1] += mixed[block] @ design
        total[-1, :-1] = total[:-1, -1]
        total[-1, -1] = in_nu.sum() + data.size * _constant_curvature(point[NU])
        return total

    def _slope(self, x: Floats) -> Floats:
        slope: Floats = scipy.special.expit(self._checked(x) / self.scales)
        return slope

    def _points(self, x: Floats, data: Lagged) -> Floats:
        if data.lags < self.order:
            raise ShapeMismatch(
                f"the data have {data.lags} lags; a model of order {self.order} needs as many"
            )
        return points_of([self._checked(x)], self.tau, data.lags)

    def _checked(self, x: ArrayLike) -> Floats:
        values = np.asarray(x, np.float64)
        if values.shape != (self.dimension,):
            raise ShapeMismatch(
                f"x has shape {values.shape}; a model of order {self.order} has {self.dimension}"
            )
        return values


@functools.cache
def compiled_prior(tau: float = TAU) -> Any:
    """Give the log prior of all orders as a numba function of x, for compiled chains.

    Examples
    --------
    >>> x = Arch(2).parameter([0.1, 0.3, 0.3], nu=6.0)
    >>> bool(np.isclose(compiled_prior()(x), Arch(2).log_prior(x)))
    True
    """

    @numba.njit
    def log_prior(x):  # type: ignore[no-untyped-def]
        return rows.log_prior(x, tau)

    return log_prior


def _constant_slope(nu: float) -> float:
    """Give the derivative of c(ν), the part of the log density that is the same for every row."""
    psi = scipy.special.digamma
    return float(0.5 * (psi(0.5 * nu + 0.5) - psi(0.5 * nu) + np.log(nu) + 1.0))


def _constant_curvature(nu: float) -> float:
    trigamma = scipy.special.polygamma(1, [0.5 * nu + 0.5, 0.5 * nu])
    return float(0.25 * (trigamma[0] - trigamma[1]) + 0.5 / nu)


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
    >>> from gumbelrace.models.arch.data import lagged, simulate, standardised
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


def log_evidence_by_importance(
    fit: Laplace, data: Lagged, rng: np.random.Generator, draws: int = 1000
) -> Evidence:
    """Estimate the evidence by importance sampling from the Laplace approximation.

    Parameters
    ----------
    fit : Laplace
        From `laplace`, of the same data.
    data : Lagged
        Rows.
    rng : numpy.random.Generator
        Source of randomness.
    draws : int
        Number of draws; each reads all rows.
    """
    draws, d = checked_count(draws, "draws", least=2), len(fit.mean)
    z = check_generator(rng).standard_normal((draws, d))
    xs = fit.at(z)
    points = rows.points_of(xs, fit.model.tau, data.lags)
    log_target = rows.log_likelihood(points, *data.arrays) + [fit.model.log_prior(x) for x in xs]
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
