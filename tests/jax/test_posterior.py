"""Posteriors of JAX models: the law of their draws, what is warned of, and what comes back."""

from dataclasses import replace

import numpy as np
import pytest
from tests.jax.cases import fitted, rare_dummy, visited

import gumbelrace as gr
from gumbelrace.errors import InvalidArgument, NotConverged, PoorFit
from gumbelrace.models import logistic

jax = pytest.importorskip("jax", reason="JAX is not installed")

import jax.numpy as jnp  # noqa: E402

import gumbelrace.jax as raced  # noqa: E402
from gumbelrace.jax.chain import BLOCK, Chains  # noqa: E402
from gumbelrace.jax.checks import audited  # noqa: E402
from gumbelrace.jax.packages import in_double  # noqa: E402
from gumbelrace.jax.picking import table_of  # noqa: E402

CHAINS, DRAWS = 8, 4000


@pytest.fixture(scope="module")
def trace():
    return fitted().sample(DRAWS, chains=CHAINS, rng_key=1, progress=False)


def test_a_column_that_few_rows_have_comes_out_right(trace):
    """Oracle: quadrature. Eight cells by four standard errors, mean by four: once in 1,700 seeds."""
    slopes, (mean, sd) = trace.positions[:, :, 1], rare_dummy().moments
    shares, margin = visited(rare_dummy().law, slopes)
    assert (np.abs(shares - 0.125) < margin).all()
    blocks = slopes.reshape(10 * CHAINS, -1).mean(axis=1)
    assert abs(slopes.mean() - mean) < 4.0 * blocks.std(ddof=1) / np.sqrt(len(blocks))
    assert abs(slopes.std() / sd - 1.0) < 0.05
    assert trace.fraction < 0.005
    assert not trace.checked.broken
    assert trace.rhat.max() < 1.01


def of_uniform_rows():
    """Give the same chains, but that all rows have the same chance, compiled once for both."""
    chains = fitted()._chains
    with in_double():
        table = jax.tree.map(jnp.asarray, table_of(chains.model, None))
    blind = replace(chains, table=table)
    vars(blind).update(_steps=chains._steps, _noise=chains._noise, _heights=chains._heights)
    return blind


def test_rows_without_weights_are_noticed():
    """Negative control, of the test above and of the check at the end of a run."""
    blind = replace(fitted(), _chains=of_uniform_rows())
    with pytest.warns((NotConverged, PoorFit, gr.PromiseBroken)):
        found = blind.sample(500, chains=CHAINS, rng_key=1, progress=False)
    shares, margin = visited(rare_dummy().law, found.positions[:, :, 1])
    assert not (np.abs(shares - 0.125) < margin).all()


REGRESSION = 20_000


@pytest.fixture(scope="module")
def regression():
    """Give data of a logistic regression on a constant and one column, and draws, all by default."""
    rng = np.random.default_rng(5)
    x = np.column_stack([np.ones(REGRESSION), rng.normal(size=REGRESSION)])
    y = (rng.random(REGRESSION) < 1.0 / (1.0 + np.exp(-x @ [-1.0, 0.5]))).astype(float)

    def of_row(theta, row):
        s = theta["constant"] + row[0] * theta["slope"]
        return row[1] * s - jnp.logaddexp(0.0, s)

    data = x[:, 1], y
    fit = raced.posterior(of_row, data, REGRESSION, start={"constant": 0.0, "slope": 0.0})
    return x, y, fit.sample(2000, chains=CHAINS, rng_key=3, progress=False)


def test_a_regression_has_the_law_of_quadrature(regression):
    """Oracle: a grid of 21 × 21 points. Means by four standard errors, once in 8,000 seeds; sds by 5%."""
    x, y, trace = regression
    draws = np.stack([trace.draws["constant"], trace.draws["slope"]], axis=-1)
    centre, width = draws.mean(axis=(0, 1)), 6.0 * draws.std(axis=(0, 1))
    grid = centre + width * np.stack(np.meshgrid(*[np.linspace(-1.0, 1.0, 21)] * 2), -1).reshape(-1, 2)
    heights = np.array([y @ (x @ point) - np.logaddexp(0.0, x @ point).sum() for point in grid])
    chances = np.exp(heights - heights.max())
    mean = chances @ grid / chances.sum()
    sd = np.sqrt(chances @ (grid - mean) ** 2 / chances.sum())
    blocks = draws.reshape(10 * CHAINS, -1, 2).mean(axis=1)
    assert (
        np.abs(blocks.mean(axis=0) - mean) < 4.0 * blocks.std(axis=0, ddof=1) / np.sqrt(len(blocks))
    ).all()
    assert (np.abs(draws.std(axis=(0, 1)) / sd - 1.0) < 0.05).all()
    assert trace.acceptance > 0.9


def test_the_same_law_as_the_compiled_kernel(regression):
    """Oracle: `gr.posterior`, by numba, on the same rows: means by 4 standard errors, spreads by 5%."""
    x, y, trace = regression
    fit = gr.posterior(logistic.log_factor, logistic.terms, (x, y), len(x), start=np.zeros(2))
    compiled = fit.sample(10_000, chains=2, rng=0, progress=False)["position"]
    for n, ours in enumerate((trace.draws["constant"], trace.draws["slope"])):
        parts = [found.reshape(40, -1).mean(axis=1) for found in (ours, compiled[:, :, n])]
        error = np.sqrt(sum(part.var(ddof=1) for part in parts) / 40)
        assert abs(parts[0].mean() - parts[1].mean()) < 4.0 * error
        assert abs(ours.std() / compiled[:, :, n].std() - 1.0) < 0.05


def test_the_same_key_gives_the_same_draws(trace):
    again = fitted().sample(300, chains=CHAINS, rng_key=jax.random.key(1), progress=False)
    np.testing.assert_array_equal(again.positions, trace.positions[:, :300])
    other = fitted().sample(300, chains=CHAINS, rng_key=2, progress=False)
    assert (other.positions != trace.positions[:, :300]).any()


def test_arguments_of_other_samplers_are_answered():
    with pytest.raises(InvalidArgument, match="num_warmup: it is called warmup; thinning: thin the draws"):
        fitted().sample(300, num_warmup=10, thinning=2)


def test_ctrl_c_keeps_what_there_is(monkeypatch):
    real, turns = Chains.steps, iter(range(3))

    def interrupted(self, *arguments):
        if next(turns) == 2:
            raise KeyboardInterrupt
        return real(self, *arguments)

    monkeypatch.setattr(Chains, "steps", interrupted)
    found = fitted().sample(DRAWS, chains=CHAINS, rng_key=1, progress=False)
    assert found.interrupted
    assert found.positions.shape == (CHAINS, 2 * BLOCK - 100, 2)
    assert found.checked is None


def test_draws_go_to_arviz(trace):
    pytest.importorskip("arviz_base", reason="arviz-base is not installed")
    tree = trace.to_arviz(dims={"theta": ["column"]}, coords={"column": ["constant", "dummy"]})
    assert tree["posterior"]["theta"].sel(column="dummy").shape == (CHAINS, DRAWS)
    assert (tree["sample_stats"]["evaluations"] >= 96).all()
    assert "detailed balance" in tree.attrs["checked"]


def test_the_check_sees_a_law_that_is_off():
    """Negative control: an expansion that is off by 0.3 at one standard deviation."""
    chains = fitted()._chains
    with in_double():
        law = chains.law._replace(gradient=chains.law.gradient + jnp.array([0.0, 0.3]))
    wrong = replace(chains, law=law)
    vars(wrong).update(_steps=chains._steps, _noise=chains._noise)
    vars(wrong)["_heights"] = lambda table, law, z: chains._heights(table, chains.law, z)
    z = np.random.default_rng(0).normal(size=(CHAINS, 100, 2))
    assert audited(wrong, jax.random.key(0), z, 0.0).broken
    assert not audited(chains, jax.random.key(0), z, 0.0).broken


def test_labels_that_can_be_swapped_are_warned_of():
    rng = np.random.default_rng(0)
    y = rng.normal(size=200) + 1.5 * rng.choice([-1.0, 1.0], 200)

    def of_two(theta, row):
        return jnp.logaddexp(-0.5 * (row - theta[0]) ** 2, -0.5 * (row - theta[1]) ** 2)

    with pytest.warns(PoorFit, match="another mode"):
        raced.posterior(
            of_two, y, start=np.array([-0.1, 0.1]), log_prior=lambda theta: -0.02 * theta @ theta
        )


def test_a_funnel_is_warned_of():
    y, groups = np.random.default_rng(0).normal(0.0, 10.0, 160), np.arange(160) % 8

    def of_row(theta, row):
        return -0.5 * ((row["y"] - theta["x"][row["group"]]) / 10.0) ** 2

    def of_funnel(theta):
        squares = jnp.sum(theta["x"] ** 2) * jnp.exp(-theta["v"])
        return -0.5 * (theta["v"] / 3.0) ** 2 - 0.5 * squares - 4.0 * theta["v"]

    start = {"v": 0.0, "x": np.zeros(8)}
    fit = raced.posterior(of_row, {"y": y, "group": groups}, start=start, log_prior=of_funnel)
    with pytest.warns((NotConverged, PoorFit), match="r-hat is|does not fit"):
        fit.sample(500, rng_key=0, progress=False)
