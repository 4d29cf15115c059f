"""Models for tests of posteriors, and their oracles."""

import numba
import numpy as np
from scipy.special import expit

from gumbelrace.models import logistic


@numba.njit
def log_prior(theta):
    """N(0, 10²) for each parameter."""
    total = 0.0
    for i in range(len(theta)):
        total += theta[i] * theta[i]
    return -0.005 * total


def simulated(size, dimension, seed=0):
    """Give rows and labels of a logistic regression."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(size, dimension))
    return x, (rng.uniform(size=size) < expit(x @ np.linspace(-0.5, 0.5, dimension))).astype(float)


class Dummy:
    """Logistic regression of 20,000 rows, 20 of which have a dummy: few rows tell of its coefficient."""

    size, few, ones = 20_000, 20, 19

    def __init__(self):
        dummy = (np.arange(self.size) < self.few).astype(float)
        self.x = np.column_stack([np.ones(self.size), dummy])
        self.y = (np.random.default_rng(1).uniform(size=self.size) < expit(-1.0)).astype(float)
        self.y[: self.few] = 1.0
        self.y[: self.few - self.ones] = 0.0
        self.given = logistic.log_factor, logistic.terms, (self.x, self.y), self.size

    def moments(self):
        """Mean and standard deviation of the coefficient, by quadrature on a grid."""
        a, b = np.linspace(-1.15, -0.8, 141)[:, None], np.linspace(-3.0, 25.0, 2801)
        others, rows = self.y[self.few :].sum(), self.size - self.few
        log_p = others * a - rows * np.logaddexp(0.0, a) - 0.005 * (a**2 + b**2)
        log_p = log_p + self.ones * (a + b) - self.few * np.logaddexp(0.0, a + b)
        p = np.exp(log_p - log_p.max()).sum(axis=0)
        p /= p.sum()
        mean = p @ b
        return mean, np.sqrt(p @ (b - mean) ** 2)


@numba.njit
def group_factor(n, theta, x, group, y):
    """Log likelihood of a Poisson count: a slope, and an effect of each group."""
    s = theta[0] * x[n] + theta[1 + group[n]]
    return y[n] * s - np.exp(s)


@numba.njit
def group_terms(n, centre, direction, x, group, y):
    s = centre[0] * x[n] + centre[1 + group[n]]
    t = direction[0] * x[n] + direction[1 + group[n]]
    rate = np.exp(s)
    return y[n] * s - rate, (y[n] - rate) * t, -rate * t * t


class Groups:
    """Poisson counts in groups: N(0, 10²) priors of a slope and of the effect of each group."""

    def __init__(self, size, groups, level, seed=3):
        rng = np.random.default_rng(seed)
        self.x, self.group = rng.normal(size=size), np.sort(rng.integers(groups, size=size))
        effects = rng.normal(level, 0.5, groups)
        self.y = rng.poisson(np.exp(0.3 * self.x + effects[self.group])).astype(float)
        self.groups = groups
        self.given = group_factor, group_terms, (self.x, self.group, self.y), size
        self.start = np.full(1 + groups, level)

    def moments(self):
        """Means and standard deviations: given the slope, effects are independent, and a grid has them."""
        slopes, effects = np.linspace(-1.0, 1.6, 261), np.linspace(-8.0, 5.0, 1301)
        log_slope, given = -0.005 * slopes**2, np.empty((self.groups, 2, len(slopes)))
        for g in range(self.groups):
            own = self.group == g
            total, rates = self.y[own].sum(), np.exp(np.outer(slopes, self.x[own])).sum(axis=1)
            log_p = effects * total - np.exp(effects) * rates[:, None] - 0.005 * effects**2
            log_p += slopes[:, None] * (self.y[own] @ self.x[own])
            largest = log_p.max(axis=1)
            p = np.exp(log_p - largest[:, None])
            mass = p.sum(axis=1)
            log_slope = log_slope + largest + np.log(mass)
            given[g] = p @ effects / mass, p @ effects**2 / mass
        chance = np.exp(log_slope - log_slope.max())
        chance /= chance.sum()
        first = np.concatenate([[chance @ slopes], given[:, 0] @ chance])
        second = np.concatenate([[chance @ slopes**2], given[:, 1] @ chance])
        return first, np.sqrt(second - first**2)
