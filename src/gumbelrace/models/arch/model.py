"""Bayesian ARCH models of order q (paper, section 5.2 and appendix C.2).

    r_t = σ_t z_t,    σ_t² = α_0 + α_1 r²_{t-1} + ... + α_q r²_{t-q},    z_t ~ t_ν(0, 1),

with independent Gamma(1, 1) priors on α_0, ..., α_q and ν. z_t is Student's t as it is, not scaled to unit
variance: the variance of r_t given the past is σ_t² ν / (ν - 2). The parameter that is sampled is
x = (x_0, ..., x_{q+1}), any real numbers:

    α_i = τ softplus(x_i / τ),    ν = softplus(x_{q+1}),    softplus(t) = log(1 + exp(t)).

The paper has τ = 1, at which softplus is almost exp where α is about 0.01, and normal approximations of the
posterior are poor. With τ = 0.003 x_i is almost α_i unless that is close to zero, and they are good.
"""

import functools
from dataclasses import dataclass
from typing import Any, Self

import numba
import numpy as np
import scipy  # its parts load when first used
from numpy.typing import ArrayLike

from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.models.arch import rows
from gumbelrace.models.arch.data import Lagged
from gumbelrace.models.arch.rows import NU, Floats, Indices, points_of
from gumbelrace.population.base import checked_count

TAU, PAPER_TAU = 0.003, 1.0

# Rows whose lags are copied at a time to multiply matrices: they fit into the cache.
BLOCK = 2048


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
    >>> from gumbelrace.models.arch.data import lagged, simulate
    >>> from gumbelrace.models.returns import standardised
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
        return float(rows.log_likelihood(self._points(x, data), *data.parts)[0])

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
        """Sum gradients in α and ν."""
        (point,) = self._points(x, data)
        sums: Floats = rows.slope_sums(np.asarray(index, np.int64), point, *data.parts)
        sums[-1] += len(index) * _constant_slope(point[NU])
        return sums

    def _natural_hessian(self, x: Floats, data: Lagged) -> Floats:
        """Sum Hessians in α and ν: products of matrices, weighted by the derivatives in σ² and ν."""
        (point,) = self._points(x, data)
        twice, mixed, in_nu = rows.row_curvatures(point, *data.parts)
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
        """Give the derivatives of α and ν in x."""
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
