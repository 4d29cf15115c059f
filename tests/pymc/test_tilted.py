"""Expansions of PyMC models that fit on average: the same sums, less that is left, and the right law."""

import numpy as np
import pytest
from tests.laplace.test_tilted import COLUMNS, check_tilted, rare_indicators
from tests.pymc.common import check_moments, moments

from gumbelrace.kernels.metropolis import Metropolis
from gumbelrace.laplace.mode import find_mode
from gumbelrace.laplace.posterior import made_ready
from gumbelrace.laplace.progress import Progress
from gumbelrace.pymc.model import model_of

pm = pytest.importorskip("pymc", reason='needs pip install "gumbelrace[pymc]"')

X, Y = rare_indicators()


@pytest.fixture(scope="module")
def rare():
    with pm.Model() as model:
        b = pm.Normal("b", 0, 10, shape=COLUMNS)
        pm.Bernoulli("y", logit_p=X @ b, observed=Y)
    compiled = model_of(model)
    return compiled, find_mode(compiled)


def test_sums_are_the_same_and_less_is_left(rare):
    check_tilted(*rare)


def test_draws_are_right(rare):
    """Oracle: importance sampling by all rows."""
    model, mode = rare
    fit = made_ready(model, model.functions.log_prior, None, Progress(False))
    assert isinstance(fit.kernel, Metropolis)
    assert np.abs((fit.law.mean - mode.theta) / np.sqrt(np.diag(fit.law.covariance))).max() > 0.05

    def log_density(theta):
        s = theta @ X.T
        return s @ Y - np.logaddexp(0.0, s).sum(axis=1) - 0.005 * np.square(theta).sum(axis=1)

    exact = moments(log_density, fit.law, lambda theta: theta, np.random.default_rng(0))
    check_moments(fit.sample(10_000, rng=1, progress=False)["position"], exact)
