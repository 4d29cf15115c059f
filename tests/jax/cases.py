"""Posteriors that the tests of JAX models share, and what is right for them."""

import functools
from typing import NamedTuple

import numpy as np
from tests.methods.residuals import marginal

from gumbelrace.jax.data import as_rows
from gumbelrace.jax.model import JaxModel
from gumbelrace.jax.recipe import made_ready
from gumbelrace.laplace.progress import Progress

SIZE, FEW, CELLS = 20_000, 20, 8


class RareDummy(NamedTuple):
    """A logistic regression on a constant and a dummy that few rows have; a part of the logit is known."""

    x: np.ndarray
    known: np.ndarray
    y: np.ndarray

    @property
    def law(self):
        """The law of the dummy's coefficient, by quadrature."""
        return marginal(self.x[:, 1], self.known, self.y, 0.0, 0.02)

    @property
    def moments(self):
        """Mean and standard deviation of that law."""
        grid, chances = self.law.grid, np.gradient(self.law.cumulative)
        mean = chances @ grid / chances.sum()
        return mean, np.sqrt(chances @ (grid - mean) ** 2 / chances.sum())


@functools.cache
def rare_dummy():
    rng = np.random.default_rng(4)
    dummy, known = np.zeros(SIZE), rng.normal(-1.0, 0.7, SIZE)
    dummy[rng.choice(SIZE, FEW, replace=False)] = 1.0
    y = (rng.random(SIZE) < 1.0 / (1.0 + np.exp(-known - 4.0 * dummy))).astype(float)
    return RareDummy(np.column_stack([np.ones(SIZE), dummy]), known, y)


def log_factor(theta, row):
    import jax.numpy as jnp

    s = row["known"] + row["x"] @ theta
    return row["y"] * s - jnp.logaddexp(0.0, s)


def log_prior(theta):
    return -0.005 * (theta @ theta)


def model():
    import jax

    data = as_rows(rare_dummy()._asdict(), None)
    return JaxModel(
        lambda theta, rows, whole: jax.vmap(log_factor, (None, 0))(theta, rows),
        lambda theta, whole: log_prior(theta),
        data,
        (),
        np.zeros(2),
    )


@functools.cache
def fitted():
    """Give the posterior ready to be drawn from."""
    return made_ready(model(), Progress(wanted=False))


def visited(law, states):
    """Give how often each of 8 cells of equal probability was visited, and four standard errors.

    States have the shape (chains, draws); errors are those of means of 10 parts of each chain.
    """
    cells = np.minimum((law.cdf(states) * CELLS).astype(int), CELLS - 1)
    parts = np.stack([(cells == cell).reshape(len(cells) * 10, -1).mean(axis=1) for cell in range(CELLS)])
    return parts.mean(axis=1), 4.0 * parts.std(axis=1, ddof=1) / np.sqrt(parts.shape[1])
