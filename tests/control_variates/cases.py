"""Likelihoods near their modes, in numba and in NumPy, and exact sums of what they give."""

import math

import numba
import numpy as np
from scipy.special import expit
from tests.common import seeded, totals

import gumbelrace as gr
from gumbelrace.models import logistic

# Of the largest sum; 1e-9 is asked for.
RELATIVE = 1e-11
FREEDOM = 4.0
SIZE, RARE = 20_000, 20  # rows, and how many of them have a column that the others do not
# Largest absolute first to third derivatives in z of the log of Student's t, its scale 1 (on a fine grid in
# the tests).
SLOPE, CURVATURE, THIRD = 1.25, 1.25, 0.911


class Logistic:
    """Logistic regression."""

    log_factor, terms = staticmethod(logistic.log_factor), staticmethod(logistic.terms)
    third = logistic.THIRD
    second = 0.25

    def __init__(self, size=5000, dimension=3, seed=0):
        rng = seeded(seed)
        self.x = rng.normal(size=(size, dimension))
        theta = rng.normal(size=dimension)
        self.y = (rng.uniform(size=size) < expit(self.x @ theta)).astype(float)
        self.data, self.mode = (self.x, self.y), logistic.mode(self.x, self.y)[0]

    def rewards(self, points):
        s = self.x @ np.asarray(points).T
        return self.y[:, None] * s - np.logaddexp(0.0, s)


@numba.njit
def t_log_factor(n, theta, x, y):
    z = y[n]
    for i in range(len(theta)):
        z -= x[n, i] * theta[i]
    return -0.5 * (FREEDOM + 1.0) * np.log1p(z * z / FREEDOM)


@numba.njit
def t_terms(n, centre, direction, x, y):
    z, t = y[n], 0.0
    for i in range(len(centre)):
        z -= x[n, i] * centre[i]
        t -= x[n, i] * direction[i]
    w = FREEDOM + z * z
    slope, curvature = -(FREEDOM + 1.0) * z / w, -(FREEDOM + 1.0) * (FREEDOM - z * z) / (w * w)
    return -0.5 * (FREEDOM + 1.0) * np.log1p(z * z / FREEDOM), slope * t, curvature * t * t


class StudentT:
    """Linear regression with Student-t noise, at its maximum by Newton's method from the truth."""

    log_factor, terms = staticmethod(t_log_factor), staticmethod(t_terms)
    third, second = THIRD, CURVATURE

    def __init__(self, size=5000, dimension=3, seed=0):
        rng = seeded(seed)
        self.x = rng.normal(size=(size, dimension))
        truth = rng.normal(size=dimension)
        self.y = self.x @ truth + rng.standard_t(FREEDOM, size)
        self.data, self.mode = (self.x, self.y), truth
        for _ in range(20):
            z = self.y - self.x @ self.mode
            slope, curvature = student_slope(z), student_curvature(z)
            self.mode = self.mode + np.linalg.solve((self.x.T * curvature) @ self.x, self.x.T @ slope)

    def rewards(self, points):
        z = self.y[:, None] - self.x @ np.asarray(points).T
        return student(z)


def student(z):
    return -0.5 * (FREEDOM + 1.0) * np.log1p(z**2 / FREEDOM)


def student_slope(z):
    return -(FREEDOM + 1.0) * z / (FREEDOM + z**2)


def student_curvature(z):
    return -(FREEDOM + 1.0) * (FREEDOM - z**2) / (FREEDOM + z**2) ** 2


MODELS = {"logistic": Logistic, "student": StudentT}


def remainders(model, order):
    """M_n in the usual metric: the largest next derivative along x_n, over (order + 1)!"""
    largest = model.second / 2.0 if order == 1 else model.third / 6.0
    return largest * np.linalg.norm(model.x, axis=1) ** (order + 1)


def near(model, arms=4, scale=None, seed=1):
    """Give points about a standard deviation of the posterior from the mode, the mode among them."""
    scale = 1.0 / np.sqrt(len(model.x)) if scale is None else scale
    steps = scale * seeded(seed).normal(size=(arms, len(model.mode)))
    steps[0] = 0.0
    return model.mode + steps


def likelihood(model):
    return gr.likelihood(model.log_factor, model.data, size=len(model.x))


def exact_sums(rewards):
    return np.array([math.fsum(column) for column in rewards.T])


def assert_same_sums(population, rewards):
    """Compare totals, which are known up to a constant of all arms, with sums that do not round."""
    sums, found = exact_sums(rewards), totals(population)
    error = np.abs((found - found[0]) - (sums - sums[0])).max()
    assert error <= RELATIVE * np.abs(sums).max()


def variance_ratio(control, rewards):
    """Give how much smaller the variance of residuals is, at worst, of an arm and of a pair of arms."""
    rows = control.rows.tail
    residuals = rewards[rows] - control.values(rows, np.arange(rewards.shape[1]))
    ratio_of_arms = rewards.var(axis=0) / np.maximum(residuals.var(axis=0), 1e-300)
    raw, left = rewards[:, 1:] - rewards[:, :1], residuals[:, 1:] - residuals[:, :1]
    return ratio_of_arms.min(), (raw.var(axis=0) / left.var(axis=0)).min()


def raced(rare, order=2, **options):
    """Give the likelihood of a regression that few rows decide (the fixture `rare`), with its expansion."""
    x, y, mode, _ = rare
    taylor = gr.parameter_taylor(logistic.terms, (x, y), SIZE, mode, order, **options)
    return gr.likelihood(logistic.log_factor, (x, y), SIZE).minus(taylor)
