"""Sweeps over blocks by JAX: the law of their draws, what they read, and Hessians of many parameters."""

from dataclasses import replace

import numpy as np
import pytest
from tests.laplace.cases import Groups, Separated, counts_in_groups, group_terms, moments_of_groups

from gumbelrace.control_variates.expansion import sums_of
from gumbelrace.errors import InvalidArgument
from gumbelrace.kernels.bends import bent, unbent
from gumbelrace.laplace.blocks import plan_blocks
from gumbelrace.laplace.mode import find_mode

jax = pytest.importorskip("jax", reason="JAX is not installed")

import jax.numpy as jnp  # noqa: E402

import gumbelrace.jax as raced  # noqa: E402
from gumbelrace.jax import sweep as sweeps  # noqa: E402
from gumbelrace.jax.chain import BLOCK, Small  # noqa: E402
from gumbelrace.jax.checks import log_ratios  # noqa: E402
from gumbelrace.jax.data import as_rows  # noqa: E402
from gumbelrace.jax.model import JaxModel  # noqa: E402
from gumbelrace.jax.packages import in_double, random  # noqa: E402
from gumbelrace.jax.recipe import SMALL, SMALL_SWEEPS, made_ready  # noqa: E402
from gumbelrace.jax.stacks import filled_up  # noqa: E402
from gumbelrace.jax.sweep import Sweeps, ends_of, growth, sweeps_of  # noqa: E402
from gumbelrace.laplace.progress import Progress  # noqa: E402

GROUPS, DRAWS, PARTS = 160, 1000, 80


def log_factor(theta, row):
    s = theta["slope"] * row["x"] + theta["effects"][row["group"]]
    return row["y"] * s - jnp.exp(s)


def model_of(case):
    return JaxModel(
        lambda theta, rows, whole: jax.vmap(log_factor, (None, 0))(theta, rows),
        lambda theta, whole: -0.005 * (theta["slope"] ** 2 + jnp.sum(theta["effects"] ** 2)),
        as_rows({"x": case.x, "group": case.group, "y": case.y}, None),
        (),
        {"slope": case.start[0], "effects": case.start[1:]},
    )


def slope_first(values):
    """Order parameters as `Groups` does: the leaves of a pytree come in the order of their names."""
    return np.concatenate([values[-1:], values[:-1]])


@pytest.fixture(scope="module")
def many():
    return Groups(8_000, GROUPS, 0.3)


@pytest.fixture(scope="module")
def fit(many):
    """Give the posterior of many groups, all by default."""
    model = model_of(many)
    return raced.posterior(
        log_factor,
        {"x": many.x, "group": many.group, "y": many.y},
        start=model.example,
        log_prior=lambda theta: model.prior_of(theta, ()),
        progress=False,
    )


@pytest.fixture(scope="module")
def trace(fit):
    return fit.sample(DRAWS, rng_key=0, progress=False)


def errors(case, draws):
    """By how many standard errors means are off, and standard deviations as a share."""
    mean, sd = case.moments()
    parts = draws.reshape(PARTS, -1, draws.shape[-1]).mean(axis=1)
    error = parts.std(axis=0, ddof=1) / np.sqrt(PARTS)
    found = parts.mean(axis=0), error, draws.std(axis=(0, 1))
    means, margins, sds = map(slope_first, found)
    return (means - mean) / margins, sds / sd


def test_many_parameters_are_drawn_in_blocks(many, fit, trace):
    """Oracle: quadrature. 161 means by 4.5 standard errors: once in 900 seeds; sds by 10%."""
    assert isinstance(fit._chains, Sweeps)
    assert len(fit._chains.blocks) > 2
    assert trace.draws["effects"].shape == (4, DRAWS, GROUPS)
    off, ratios = errors(many, trace.positions)
    assert np.abs(off).max() < 4.5
    assert np.abs(ratios - 1.0).max() < 0.1
    assert trace.fraction < 0.4
    assert not trace.checked.broken


def test_the_comparison_notices_a_wrong_expansion(many, fit, trace):
    """Negative control: half of the expansion's curvature is left out; compiled once for both."""
    chains = fit._chains
    stacks = [stack._replace(curvature=0.5 * np.asarray(stack.curvature)) for stack in chains.data.stacks]
    with in_double():
        wrong = replace(chains, data=jax.tree.map(jnp.asarray, chains.data._replace(stacks=stacks)))
    vars(wrong).update(_sweeps=chains._sweeps)
    z, found = np.zeros((4, 1 + GROUPS)), []
    for turn in range(DRAWS // BLOCK):
        found.append(wrong.steps(random.key(turn), z, Small(SMALL_SWEEPS, SMALL)).z)
        z = found[-1][:, -1]
    off, ratios = errors(many, wrong.thetas(np.concatenate(found, axis=1)))
    assert np.abs(off).max() > 4.5 or np.abs(ratios - 1.0).max() > 0.1


def test_blocks_of_few_rows_are_judged_by_all_of_them():
    """Oracle: the exact log ratio, whatever rows are picked first."""
    model = model_of(Groups(360, 12, -0.3))
    made = sweeps_of(model, plan_blocks(model, find_mode(model)))
    rng = np.random.default_rng(0)
    here = rng.normal(size=(3, 13))
    there = made.proposed(rng, here)
    found = made.judged(random.key(0), here, there)
    expected = np.broadcast_to(log_ratios(made, here, there)[:, None], found.log_chance.shape)
    np.testing.assert_allclose(found.log_chance, expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(found.z, np.broadcast_to(here[:, None], found.z.shape))


def test_separated_columns_are_right():
    """Of rows with an indicator all, or all but one, are ones. Oracle: quadrature; 4.5 standard errors."""
    case = Separated([20, 20, 10, 30, 40], [19, 1, 10, 29, 39])
    fit = raced.posterior(
        lambda theta, row: row["y"] * (row["x"] @ theta) - jnp.logaddexp(0.0, row["x"] @ theta),
        {"x": case.x, "y": case.y},
        start=np.zeros(6),
        log_prior=lambda theta: -0.005 * jnp.sum(theta**2),
        progress=False,
    )
    assert isinstance(fit._chains, Sweeps)
    draws, (mean, sd) = fit.sample(5_000, rng_key=1, progress=False).positions, case.moments()
    z = (draws - mean) / sd
    for power, right in ((z, 0.0), (z * z, 1.0)):
        parts = power.reshape(PARTS, -1, 6).mean(axis=1)
        error = parts.std(axis=0, ddof=1) / np.sqrt(PARTS)
        assert (np.abs(parts.mean(axis=0) - right) < 4.5 * error).all()
    np.testing.assert_allclose(draws.std(axis=(0, 1)), sd, rtol=0.05)


def rate_prior(theta):
    """N(0, 2²) for the rate, half normal for the scale, N(0, scale²) for effects."""
    scale = jnp.exp(theta[1])
    of_effects = -0.5 * jnp.sum((theta[2:] / scale) ** 2) - len(theta[2:]) * theta[1]
    return of_effects - 0.125 * theta[0] ** 2 - 0.5 * scale**2 + theta[1]


def test_a_scale_of_effects_with_few_rows_is_right():
    """Oracle: quadrature. 204 comparisons by 5 standard errors: once in 1,000 seeds; sds by 5%.

    A hundred groups have sixteen rows each; of the scale one sweep in ten is an effective draw at least.
    """
    group, y = counts_in_groups(100, 1_600)
    fit = raced.posterior(
        lambda theta, row: row[1] * (theta[0] + theta[2 + row[0]]) - jnp.exp(theta[0] + theta[2 + row[0]]),
        (group, y),
        start=np.zeros(102),
        log_prior=rate_prior,
        progress=False,
    )
    assert isinstance(fit._chains, Sweeps)
    draws = fit.sample(5_000, rng_key=2, progress=False).positions.copy()
    draws[..., 1] = np.exp(draws[..., 1])
    mean, sd = moments_of_groups(np.bincount(group, y), np.bincount(group))
    z = (draws - mean) / sd
    for power, right in ((z, 0.0), (z * z, 1.0)):
        parts = power.reshape(PARTS, -1, 102).mean(axis=1)
        error = parts.std(axis=0, ddof=1) / np.sqrt(PARTS)
        assert (np.abs(parts.mean(axis=0) - right) < 5.0 * error).all()
    np.testing.assert_allclose(draws.std(axis=(0, 1)), sd, rtol=0.05)
    assert z[..., 1].reshape(PARTS, -1).mean(axis=1).var() < PARTS / (0.1 * z[..., 1].size)


def test_what_a_block_changes(fit):
    """Oracle: θ = mode + W z and the quadratic form, for all coordinates at once."""
    rng, made = np.random.default_rng(2), fit._chains
    law = made.law
    z, normal = rng.normal(size=(2, len(law.mode)))
    with in_double():
        draw = sweeps.Draw(jnp.asarray(normal), 0.3, True, jnp.asarray(z))
    for stack in made.data.stacks:
        for n in range(len(stack.size)):
            block = jax.tree.map(lambda field, n=n: np.asarray(field)[n], stack)
            with in_double():
                before, after = map(np.asarray, ends_of(block, draw, jnp.asarray(z)))
                grown = growth(block, jnp.asarray(z), after - before)
            own = block.coordinates[block.coordinates < len(z)]
            moved = z.copy()
            u = 0.3 * unbent(z[own], law.bends[own]) + np.sqrt(1.0 - 0.09) * normal[own]
            moved[own] = bent(u, law.bends[own])
            np.testing.assert_allclose(after[: len(own)], moved[own])
            expected = np.diff(law.expansion(np.stack([z, moved])))
            np.testing.assert_allclose(grown, expected[0], rtol=1e-9, atol=1e-9)
            step = np.zeros(len(z) + 1)
            np.add.at(step, block.parameters, block.matrix @ (after - before))
            np.testing.assert_allclose(step[:-1], law.points(moved) - law.points(z), atol=1e-12)


def test_arrays_of_different_shapes_become_one():
    found = filled_up([np.ones((1, 2)), np.full((2, 1), 3.0)], 0)
    np.testing.assert_array_equal(found, [[[1, 1], [0, 0]], [[3, 0], [3, 0]]])
    np.testing.assert_array_equal(filled_up([np.array([4]), np.array([5, 6])], 9), [[4, 9], [5, 6]])
    np.testing.assert_array_equal(filled_up([1.0, 2.0], 0), [1.0, 2.0])


def test_a_hessian_of_many_parameters_is_sparse(many):
    """Oracle: dense sums by numba."""
    point, data = 0.1 * np.random.default_rng(1).normal(size=1 + GROUPS), many.given[2]
    found = model_of(many).factors(point)
    right = sums_of(group_terms, data, slope_first(point), np.arange(len(many.y)), 2)
    assert found.hessian.nnz == 1 + 3 * GROUPS
    np.testing.assert_allclose(found.value, right.value)
    np.testing.assert_allclose(slope_first(found.gradient), right.gradient, rtol=1e-9)
    order = slope_first(np.arange(1 + GROUPS))
    np.testing.assert_allclose(
        found.hessian.toarray()[np.ix_(order, order)], right.hessian, rtol=1e-9, atol=1e-9
    )


def test_residuals_of_some_rows_are_those_of_all(many):
    model, step = model_of(many), np.full(1 + GROUPS, 0.2)
    some = np.random.default_rng(3).choice(len(many.y), 3_000, replace=False)
    whole = model.residuals(model.start, step)
    np.testing.assert_allclose(model.of_rows(some).residuals(model.start, step), whole[some], atol=1e-14)


def test_too_many_parameters_are_refused(many):
    with pytest.raises(InvalidArgument, match=r"5,001 parameters \(effects\[0\], .* at most: integrate"):
        made_ready(
            replace(model_of(many), example={"slope": 0.0, "effects": np.zeros(5_000)}), Progress(False)
        )
