"""Expansions of JAX models that fit on average: the same sums, less that is left, and the right law."""

import numpy as np
import pytest
from tests.laplace.cases import log_prior as compiled_prior
from tests.laplace.test_posterior import FAR, batches
from tests.laplace.test_tilted import COLUMNS, check_tilted, rare_indicators

jax = pytest.importorskip("jax", reason='needs pip install "gumbelrace[jax]"')

import gumbelrace as gr  # noqa: E402
import gumbelrace.jax as raced  # noqa: E402
from gumbelrace.jax.chain import Chains  # noqa: E402
from gumbelrace.jax.data import as_rows  # noqa: E402
from gumbelrace.jax.model import JaxModel  # noqa: E402
from gumbelrace.laplace.mode import find_mode  # noqa: E402
from gumbelrace.models import logistic  # noqa: E402

jnp = jax.numpy
X, Y = rare_indicators()


def log_factor(theta, row):
    s = row[0] @ theta
    return row[1] * s - jnp.logaddexp(0.0, s)


def log_prior(theta):
    return -0.005 * (theta @ theta)


@pytest.fixture(scope="module")
def rare():
    def log_factors(theta, rows, whole):
        return jax.vmap(lambda row: log_factor(theta, row))(rows)

    def prior(theta, whole):
        return log_prior(theta)

    model = JaxModel(log_factors, prior, as_rows((X, Y), None), (), np.zeros(COLUMNS))
    return model, find_mode(model)


def test_sums_are_the_same_and_less_is_left(rare):
    check_tilted(*rare)


def test_draws_are_those_of_the_compiled_model(rare):
    """Largest of 24 differences in standard errors: false alarms 2e-4 over seeds."""
    fit = raced.posterior(log_factor, (X, Y), start=np.zeros(COLUMNS), log_prior=log_prior, progress=False)
    assert isinstance(fit._chains, Chains)
    assert fit._chains.model.is_steepened
    _, mode = rare
    sds = np.sqrt(np.diag(fit.law.covariance))
    assert np.abs((fit.law.mean - mode.theta) / sds).max() > 0.05
    given = logistic.log_factor, logistic.terms, (X, Y), len(X)
    right = gr.posterior(*given, start=np.zeros(COLUMNS), log_prior=compiled_prior, progress=False)
    draws = fit.sample(5_000, rng_key=1, progress=False).positions, right.sample(5_000, rng=1)["position"]
    z = [(one - mode.theta) / sds for one in draws]
    for power in (1, 2):
        (ours, one), (theirs, other) = (batches(part**power) for part in z)
        assert (np.abs(ours - theirs) < FAR * np.hypot(one, other)).all()
