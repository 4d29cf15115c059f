"""Regressions whose expansion at the mode leaves few rows that matter, with weights made by hand."""

import functools
from dataclasses import replace
from typing import NamedTuple

import numba
import numpy as np
from tests.kernels.laws import Quadrature

import gumbelrace as gr
from gumbelrace.core.rows import Rows

SIZE, FEW = 20_000, 20


@numba.njit
def residual(n, theta, dummy, known, mode):
    """Give a logistic log factor less its expansion at the mode; what is linear in y cancels."""
    u = theta[0] - mode[0] + (theta[1] - mode[1]) * dummy[n]
    a = mode[0] + mode[1] * dummy[n] + known[n]
    b, p = a + u, 1.0 / (1.0 + np.exp(-a))
    new = -np.log1p(np.exp(-abs(b))) - max(-b, 0.0)
    old = -np.log1p(np.exp(-abs(a))) - max(-a, 0.0)
    return new - old - (1.0 - p) * u + 0.5 * p * (1.0 - p) * u * u


class Regression(NamedTuple):
    """What a chain needs, and the law of the second coefficient."""

    weighted: gr.population.Likelihood
    uniform: gr.population.Likelihood
    log_prior: object  # the expansion and the prior
    proposal: gr.kernels.RandomWalk
    mode: np.ndarray
    law: Quadrature

    def kernel(self, method, by_weights=True):
        likelihood = self.weighted if by_weights else self.uniform
        return gr.Metropolis(likelihood, self.proposal, log_prior=self.log_prior, method=method)


@functools.cache
def rare_dummy():
    """Regress on a constant and a dummy that 20 rows of 20,000 have; a part of the logit is known."""
    rng = np.random.default_rng(2)
    dummy, known = np.zeros(SIZE), rng.normal(-1.0, 0.7, SIZE)
    dummy[rng.choice(SIZE, FEW, replace=False)] = 1.0
    y = (rng.random(SIZE) < 1.0 / (1.0 + np.exp(-known - 2.5 * dummy))).astype(float)
    x = np.column_stack([np.ones(SIZE), dummy])
    mode = np.zeros(2)
    for _ in range(30):
        p = 1.0 / (1.0 + np.exp(-x @ mode - known))
        hessian = -(x.T * (p * (1.0 - p))) @ x - 0.01 * np.eye(2)
        mode = mode - np.linalg.solve(hessian, x.T @ (y - p) - 0.01 * mode)
    root = np.linalg.cholesky(np.linalg.inv(-hessian))

    @numba.njit
    def expansion(theta):
        one, two = theta[0] - mode[0], theta[1] - mode[1]
        return 0.5 * (hessian[0, 0] * one**2 + 2.0 * hessian[0, 1] * one * two + hessian[1, 1] * two**2)

    uniform = gr.likelihood(residual, (dummy, known, mode), SIZE)
    points = mode + np.random.default_rng(3).normal(size=(64, 2)) @ root.T
    sizes = np.sqrt(np.mean(uniform(points).rewards_at(np.arange(SIZE)) ** 2, axis=1))
    weighted = replace(uniform, rows=Rows(SIZE, weights=sizes + 0.1 * sizes.mean()))
    law = marginal(dummy, known, y, mode[0], root[0, 0])
    return Regression(weighted, uniform, expansion, gr.kernels.RandomWalk(1.5 * root), mode, law)


def marginal(dummy, known, y, centre, sd):
    """Integrate the constant out, on a grid."""
    grid, few = centre + np.linspace(-6.0, 6.0, 61) * sd, dummy == 1.0
    others = [y[~few] @ (known[~few] + a) - np.logaddexp(0.0, known[~few] + a).sum() for a in grid]

    def log_density(b):
        z = grid[:, None] + b + known[few]
        log_p = others + z @ y[few] - np.logaddexp(0.0, z).sum(axis=1) - 0.005 * (grid**2 + b * b)
        return np.logaddexp.reduce(log_p)

    return Quadrature(log_density, -2.0, 14.0, 4001)
