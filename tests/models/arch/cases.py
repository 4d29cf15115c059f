"""Data, models and points that the tests of ARCH models share."""

import functools

import numpy as np

from gumbelrace.models.arch import Arch, lagged, laplace, simulate, standardised

LAGS = 12
ORDERS = (1, 4, 10, 12)


def seeded(seed=0):
    return np.random.default_rng(seed)


@functools.cache
def small():
    """Give 400 returns in three segments, one of them too short to have a row."""
    returns = simulate(400, seeded(5))
    return lagged(standardised(returns, np.repeat([0, 1, 2], [250, 12, 138])), LAGS)


@functools.cache
def large():
    """Give 13,000 returns of an ARCH model of order 10."""
    return lagged(standardised(simulate(13_000, seeded(6))), LAGS)


@functools.cache
def fitted(order, tau=0.003):
    return laplace(Arch(order, tau), large())


def some_x(model, seed=0):
    """Give a parameter whose α are of all sizes down to τ / 100, where softplus is bent most."""
    rng = seeded(seed)
    alpha = model.tau * 10.0 ** rng.uniform(-2.0, 1.5, model.order + 1)
    return model.parameter(np.minimum(alpha, 0.8) + 1e-9, rng.uniform(2.5, 9.0))
