"""Models for tests of posteriors, and their oracles."""

import numba
import numpy as np
from scipy import stats
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


@numba.njit
def rate_factor(n, theta, group, y):
    """Log likelihood of a Poisson count: a rate, the logarithm of a scale, and an effect of each group."""
    s = theta[0] + theta[2 + group[n]]
    return y[n] * s - np.exp(s)


@numba.njit
def rate_terms(n, centre, direction, group, y):
    s, t = centre[0] + centre[2 + group[n]], direction[0] + direction[2 + group[n]]
    rate = np.exp(s)
    return y[n] * s - rate, (y[n] - rate) * t, -rate * t * t


@numba.njit
def rate_prior(theta):
    """N(0, 2²) for the rate, half normal for the scale, N(0, scale²) for effects."""
    scale = np.exp(theta[1])
    total = -0.125 * theta[0] ** 2 - 0.5 * scale * scale + theta[1]
    for i in range(2, len(theta)):
        total -= 0.5 * (theta[i] / scale) ** 2 + theta[1]
    return total


def counts_in_groups(groups=100, size=4_000):
    """Give the group of each row, and its count: about forty rows in each group."""
    rng = np.random.default_rng(7)
    group = rng.integers(0, groups, size)
    return group, rng.poisson(np.exp(-0.3 + 0.6 * rng.standard_normal(groups)[group])).astype(float)


def moments_of_groups(totals, counts):
    """Means and sds by quadrature: given the rate and the scale, effects are independent."""
    a, logs = np.meshgrid(np.linspace(-0.9, 0.3, 61), np.linspace(-1.1, 0.0, 56), indexing="ij")
    a, scale, z = a.ravel(), np.exp(logs.ravel()), np.linspace(-7.0, 7.0, 281)
    heights = stats.norm.logpdf(a, 0, 2) + stats.halfnorm.logpdf(scale) + np.log(scale)
    effects, given = scale[:, None] * z, np.empty((len(totals), 2, len(a)))
    rates = a[:, None] + effects
    for i, (total, count) in enumerate(zip(totals, counts, strict=True)):
        log_p = total * rates - count * np.exp(rates) - 0.5 * z**2
        p = np.exp(log_p - log_p.max(axis=1)[:, None])
        mass = p.sum(axis=1)
        heights += log_p.max(axis=1) + np.log(mass)
        given[i] = np.sum(p * effects, axis=1) / mass, np.sum(p * effects**2, axis=1) / mass
    chances = np.exp(heights - heights.max())
    chances /= chances.sum()
    first = np.concatenate([[chances @ a, chances @ scale], given[:, 0] @ chances])
    second = np.concatenate([[chances @ a**2, chances @ scale**2], given[:, 1] @ chances])
    return first, np.sqrt(second - first**2)


class Separated:
    """Logistic regression of 20,000 rows on indicators that no two rows share, some nearly separated.

    Of `counts[j]` rows that have indicator j, `ones[j]` have y = 1.
    """

    size = 20_000

    def __init__(self, counts, ones):
        self.counts, self.ones, held = counts, ones, sum(counts)
        self.x = np.zeros((self.size, 1 + len(counts)))
        self.x[:, 0] = 1.0
        self.x[np.arange(held), 1 + np.repeat(np.arange(len(counts)), counts)] = 1.0
        self.y = (np.random.default_rng(1).uniform(size=self.size) < expit(-1.0)).astype(float)
        self.y[:held] = np.concatenate([np.arange(c) < k for c, k in zip(counts, ones, strict=True)])
        self.given = logistic.log_factor, logistic.terms, (self.x, self.y), self.size

    def moments(self):
        """Means and standard deviations: given the intercept, coefficients are independent."""
        a, b = np.linspace(-1.15, -0.85, 121)[:, None], np.linspace(-45.0, 45.0, 9001)
        held, given = sum(self.counts), []
        heights = self.y[held:].sum() * a - (self.size - held) * np.logaddexp(0.0, a) - 0.005 * a**2
        heights = heights[:, 0]
        for count, ones in zip(self.counts, self.ones, strict=True):
            log_p = ones * (a + b) - count * np.logaddexp(0.0, a + b) - 0.005 * b**2
            p = np.exp(log_p - log_p.max(axis=1)[:, None])
            mass = p.sum(axis=1)
            heights = heights + log_p.max(axis=1) + np.log(mass)
            given.append((p @ b / mass, p @ b**2 / mass))
        chances = np.exp(heights - heights.max())
        chances /= chances.sum()
        first, second = (np.array([one[k] for one in given]) @ chances for k in (0, 1))
        first, second = np.r_[chances @ a[:, 0], first], np.r_[chances @ a[:, 0] ** 2, second]
        return first, np.sqrt(second - first**2)
