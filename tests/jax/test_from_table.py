"""A JAX model given a table on disk.

False-alarm rate of the statistical test: 1e-4 over seeds.
"""

import numpy as np
import pytest
from tests.laplace.cases import simulated
from tests.laplace.test_from_table import quadrature, stored
from tests.laplace.test_posterior import check_moments

import gumbelrace as gr
from gumbelrace.errors import CheckpointMismatch, InvalidArgument

jax = pytest.importorskip("jax", reason="JAX is not installed")

import jax.numpy as jnp  # noqa: E402

import gumbelrace.jax as raced  # noqa: E402
from gumbelrace.jax.chain import BLOCK  # noqa: E402

COLUMNS = {"x": ["0", "1"], "y": "2"}


def log_factor(theta, row):
    s = row["x"] @ theta
    return row["y"] * s - jnp.logaddexp(0.0, s)


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    x, y = simulated(30_000, 2)
    table, _ = stored(tmp_path_factory.mktemp("rows"), x, y)
    passes = gr.Passes(table, rng=0, pool_rows=120_000)
    fit = raced.posterior(log_factor, COLUMNS, table=passes, start=np.zeros(2), progress=False)
    return x, y, table, fit


def test_draws_are_right_and_pools_follow_each_other(case):
    """Oracle: quadrature. Each pool is used up after some blocks."""
    x, y, table, fit = case

    def log_posterior(theta):
        s = x @ theta
        return y @ s - np.logaddexp(0.0, s).sum()

    trace = fit.sample(1_000, chains=4, rng_key=1, progress=False)
    check_moments(trace.positions, *quadrature(log_posterior, fit))
    assert trace.size == table.size
    assert trace.checked is None
    rule = fit._chains.rule
    blocks = fit.pool_rows // (BLOCK * 4 * (rule.pilot + rule.first))  # that a pool lasts for
    assert fit.passes == 3 + (-(-1_100 // BLOCK) - 1) // blocks
    assert fit.passes > 4
    assert f"{fit.passes} passes over 30,000 rows" in repr(fit)


def test_the_same_seed_gives_the_same_draws(case):
    *_, fit = case
    draws = [fit.sample(300, chains=2, rng_key=3, progress=False).positions for _ in range(2)]
    assert np.array_equal(*draws)


def test_a_checkpoint_knows_the_model(case, tmp_path):
    """Passes are found again for the same functions, and refused for others."""
    *_, table, _ = case
    passes, fits = gr.Passes(table, rng=0, pool_rows=20_000, checkpoint=tmp_path / "kept"), []
    for _ in range(2):
        fits.append(raced.posterior(log_factor, COLUMNS, table=passes, start=np.zeros(2), progress=False))
    assert np.array_equal(fits[0].law.mean, fits[1].law.mean)
    with pytest.raises(CheckpointMismatch, match="log_factor"):
        raced.posterior(
            lambda theta, row: 2.0 * log_factor(theta, row),
            COLUMNS,
            table=passes,
            start=np.zeros(2),
            progress=False,
        )


@pytest.mark.parametrize(
    ("data", "message"),
    [({"x": ["0", "9"], "y": "2"}, "no column '9'"), ({"x": 3.0, "y": "2"}, "names of its columns")],
)
def test_what_is_wrong_is_said(case, data, message):
    *_, table, _ = case
    with pytest.raises(InvalidArgument, match=message):
        raced.posterior(log_factor, data, table=table, start=np.zeros(2), progress=False)


def test_whole_numbers_do_not_overflow(tmp_path):
    """CSV gives them in the narrowest type, int8 here. Oracle: least squares."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 100, 20_000)
    y = 1.0 + 1e-3 * x**2 + rng.normal(size=len(x))
    lines = (f"{a},{b!r}" for a, b in zip(x.tolist(), y.tolist(), strict=True))
    (tmp_path / "rows.csv").write_text("\n".join(["x,y", *lines]))

    def quadratic(theta, row):
        return -0.5 * (row["y"] - theta[0] - theta[1] * 1e-3 * row["x"] ** 2) ** 2

    passes = gr.Passes(gr.open_table(tmp_path / "rows.csv"), rng=0, pool_rows=20_000)
    fit = raced.posterior(quadratic, {"x": "x", "y": "y"}, table=passes, start=np.zeros(2), progress=False)
    known = np.linalg.lstsq(np.column_stack([np.ones(len(x)), 1e-3 * x**2]), y, rcond=None)[0]
    assert np.allclose(fit.law.mean, known, atol=1e-6)
