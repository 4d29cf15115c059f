"""The posteriors: simulated data, and log factors as numba takes them.

A model has one vector θ of parameters without constraints: coefficients first, then logarithms of what is
positive, then effects of groups. Results are compared as users see them: `natural` gives these.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np

from gumbelrace.models import logistic

PRIOR_SD = 10.0  # of coefficients
SEED = 1
# Prior of the scale of errors, half normal; of degrees of freedom, a gamma law of shape 2.
SIGMA_SD, NU_RATE = 5.0, 0.1
COLUMNS = 4  # of Poisson regressions, the first of ones


class Problem(NamedTuple):
    """Data, and a model of them."""

    kind: str  # "logistic", "student" or "poisson"
    data: tuple[Any, ...]
    names: dict[str, int]  # variables, in the order of θ, and how many entries each has
    log_factor: Any
    terms: Any
    log_prior: Any
    logs: slice  # entries of θ that are logarithms
    remainder: Callable[[Any], Any] | None = None

    @property
    def size(self) -> int:
        return len(self.data[0])

    @property
    def dimension(self) -> int:
        return sum(self.names.values())

    def natural(self, theta):
        """Give draws of shape (..., d) as users know them."""
        draws = np.array(theta, float)
        draws[..., self.logs] = np.exp(draws[..., self.logs])
        return draws

    def parts(self, theta):
        """Give the variables, those of one entry as numbers, from a vector."""
        ends = np.cumsum(list(self.names.values()))[:-1]
        split = zip(self.names, np.split(np.asarray(theta, float), ends), strict=True)
        return {name: part if name in ("b", "effect") else part[0] for name, part in split}


# ---- Logistic regression ----


@numba.njit
def normal_prior(theta):
    total = 0.0
    for i in range(len(theta)):
        total += theta[i] * theta[i]
    return -0.5 * total / PRIOR_SD**2


def logistic_problem(x, beta, rng):
    y = (rng.uniform(size=len(x)) < 1.0 / (1.0 + np.exp(-x @ beta))).astype(float)
    return Problem(
        "logistic",
        (x, y),
        {"b": x.shape[1]},
        logistic.log_factor,
        logistic.terms,
        normal_prior,
        slice(0, 0),
        lambda metric: logistic.remainder(x, metric),
    )


def normal_columns(size, dimension):
    """Standard normal columns beside one of ones."""
    rng = np.random.default_rng(SEED)
    x = rng.normal(size=(size, dimension))
    x[:, 0] = 1.0
    return logistic_problem(x, rng.normal(size=dimension) / math.sqrt(dimension), rng)


def rare_indicators(size, dimension):
    """Columns of zeros and ones, of which the rarest has 1.5% ones, beside one of ones."""
    rng = np.random.default_rng(SEED)
    shares = np.r_[1.0, np.geomspace(0.015, 0.6, dimension - 1)]
    x = (rng.uniform(size=(size, dimension)) < shares).astype(float)
    beta = rng.normal(0.0, 0.7, dimension)
    beta[0] = -1.2 - shares[1:] @ beta[1:]
    return logistic_problem(x, beta, rng)


# ---- Student-t regression, scale and degrees of freedom unknown ----


@numba.njit
def gap(nu, derivatives):
    """Give log Γ((ν + 1)/2) - log Γ(ν/2), and its first two derivatives in ν, if they are wanted."""
    value = math.lgamma(0.5 * nu + 0.5) - math.lgamma(0.5 * nu)
    if not derivatives:
        return value, 0.0, 0.0
    first, second = digammas(0.5 * nu + 0.5), digammas(0.5 * nu)
    return value, 0.5 * (first[0] - second[0]), 0.25 * (first[1] - second[1])


@numba.njit
def digammas(x):
    """Give the first two derivatives of log Γ: by recurrence to large x, where a series is exact."""
    digamma, trigamma = 0.0, 0.0
    while x < 12.0:
        digamma -= 1.0 / x
        trigamma += 1.0 / (x * x)
        x += 1.0
    r = 1.0 / (x * x)
    digamma += (
        math.log(x) - 0.5 / x - r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r / 132))))
    )
    series = 1 / 6 - r * (1 / 30 - r * (1 / 42 - r * (1 / 30 - r * 5 / 66)))
    return digamma, trigamma + 1.0 / x + 0.5 * r + r / x * series


@numba.njit
def student_factor(n, theta, x, y):
    d = x.shape[1]
    location, nu = 0.0, math.exp(theta[d + 1])
    for i in range(d):
        location += x[n, i] * theta[i]
    r = (y[n] - location) * math.exp(-theta[d])
    constant = math.lgamma(0.5 * nu + 0.5) - math.lgamma(0.5 * nu) - 0.5 * math.log(nu * math.pi)
    return constant - theta[d] - 0.5 * (nu + 1.0) * math.log1p(r * r / nu)


@numba.njit
def student_terms(n, centre, direction, x, y):
    d = x.shape[1]
    location, along = 0.0, 0.0
    for i in range(d):
        location += x[n, i] * centre[i]
        along += x[n, i] * direction[i]
    nu, c = math.exp(centre[d + 1]), direction[d] + 0.5 * direction[d + 1]
    value, slope, curvature = gap(nu, direction[d + 1] != 0.0)
    # e = residual / (σ √ν), and w = log(1 + e²), with their derivatives along the direction
    scale, m = math.exp(-centre[d] - 0.5 * centre[d + 1]), y[n] - location
    e, e1, e2 = m * scale, -(along + c * m) * scale, (2.0 * c * along + c * c * m) * scale
    share = 1.0 / (1.0 + e * e)
    w, w1 = math.log1p(e * e), 2.0 * e * e1 * share
    w2 = 2.0 * (e1 * e1 + e * e2) * share - w1 * w1
    nu1 = nu * direction[d + 1]
    inner = slope - 0.5 * w
    return (
        value - 0.5 * math.log(nu * math.pi) - centre[d] - 0.5 * (nu + 1.0) * w,
        nu1 * inner - c - 0.5 * (nu + 1.0) * w1,
        nu1 * direction[d + 1] * inner + nu1 * nu1 * curvature - nu1 * w1 - 0.5 * (nu + 1.0) * w2,
    )


@numba.njit
def student_prior(theta):
    d = len(theta) - 2
    sigma, nu = math.exp(theta[d]), math.exp(theta[d + 1])
    of_scale = theta[d] - 0.5 * (sigma / SIGMA_SD) ** 2
    return normal_prior(theta[:d]) + of_scale + 2.0 * theta[d + 1] - NU_RATE * nu


def student(size, dimension):
    """Errors of scale 1 with 5 degrees of freedom."""
    rng, d = np.random.default_rng(SEED), dimension - 2
    x = rng.normal(size=(size, d))
    x[:, 0] = 1.0
    y = x @ rng.normal(size=d) + rng.standard_t(5.0, size=size)
    names = {"b": d, "sigma": 1, "nu": 1}
    functions = student_factor, student_terms, student_prior
    return Problem("student", (x, y), names, *functions, slice(d, d + 2))


# ---- Poisson regression with effects of groups, their scale unknown ----


@numba.njit
def poisson_factor(n, theta, x, group, y):
    s = theta[COLUMNS + 1 + group[n]]
    for i in range(COLUMNS):
        s += x[n, i] * theta[i]
    return y[n] * s - math.exp(s)


@numba.njit
def poisson_terms(n, centre, direction, x, group, y):
    s, t = centre[COLUMNS + 1 + group[n]], direction[COLUMNS + 1 + group[n]]
    for i in range(COLUMNS):
        s += x[n, i] * centre[i]
        t += x[n, i] * direction[i]
    mean = math.exp(s)
    return y[n] * s - mean, (y[n] - mean) * t, -mean * t * t


@numba.njit
def poisson_prior(theta):
    log_tau, squares = theta[COLUMNS], 0.0
    for i in range(COLUMNS + 1, len(theta)):
        squares += theta[i] * theta[i]
    of_effects = -0.5 * squares * math.exp(-2.0 * log_tau) - (len(theta) - COLUMNS - 1) * log_tau
    return normal_prior(theta[:COLUMNS]) + of_effects + log_tau - 0.5 * math.exp(2.0 * log_tau)


def poisson(size, dimension):
    """Effects of scale a half; all but five parameters are effects."""
    rng, groups = np.random.default_rng(SEED), dimension - COLUMNS - 1
    x = np.column_stack([np.ones(size), 0.3 * rng.normal(size=(size, COLUMNS - 1))])
    group, effects = rng.integers(groups, size=size), rng.normal(0.0, 0.5, groups)
    y = rng.poisson(np.exp(x @ [0.3, 0.2, -0.1, 0.4] + effects[group])).astype(float)
    names = {"b": COLUMNS, "tau": 1, "effect": groups}
    functions = poisson_factor, poisson_terms, poisson_prior
    return Problem("poisson", (x, group, y), names, *functions, slice(COLUMNS, COLUMNS + 1))


MAKERS = {
    "logistic_small": (normal_columns, 31_622, 10),
    "logistic_large": (normal_columns, 1_000_000, 10),
    "logistic_wide": (normal_columns, 100_000, 50),
    "rare": (rare_indicators, 32_560, 72),
    "student": (student, 1_000_000, 12),
    "groups_100": (poisson, 500_000, 105),
    "groups_1000": (poisson, 200_000, 1_005),
}


def problem_of(name: str, size: int | None = None) -> Problem:
    """Simulate data, by default as many as the table has."""
    make, usual, dimension = MAKERS[name]
    return make(size or usual, dimension)
