"""Expansions whose derivatives are stored, given as arrays or found by JAX."""

import numpy as np
import pytest
from tests.control_variates.cases import (
    MODELS,
    assert_same_sums,
    likelihood,
    near,
    remainders,
    student,
    student_curvature,
    student_slope,
    variance_ratio,
)

import gumbelrace as gr
from gumbelrace.errors import InvalidArgument, MissingPackage, ShapeMismatch

MODEL = MODELS["student"](2000)
SIZE = len(MODEL.x)


def stored(order=2, **options):
    z = MODEL.y - MODEL.x @ MODEL.mode
    hessians = student_curvature(z)[:, None, None] * MODEL.x[:, :, None] * MODEL.x[:, None, :]
    given = (student(z), -student_slope(z)[:, None] * MODEL.x, hessians if order == 2 else None)
    return gr.control_variates.stored_taylor(*given, MODEL.mode, **options)


def options_of(order, outliers):
    return {"remainder": remainders(MODEL, order), "outliers": outliers}


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("outliers", [0.0, 0.1])
def test_same_as_computed_where_it_is_needed(order, outliers):
    """Oracle: `parameter_taylor`, which is tested by itself."""
    options, points = options_of(order, outliers), near(MODEL)
    found = stored(order, **options).at(points)
    computed = gr.parameter_taylor(MODEL.terms, MODEL.data, SIZE, MODEL.mode, order, **options).at(points)
    np.testing.assert_allclose(found.sums, computed.sums, rtol=1e-12)
    rows, arms = np.arange(SIZE), np.arange(4)
    np.testing.assert_allclose(
        found.values(rows, arms), computed.values(rows, arms), rtol=1e-12, atol=1e-13
    )
    np.testing.assert_allclose(found.residual_range, computed.residual_range, rtol=1e-6, atol=1e-10)
    population = likelihood(MODEL)(points).minus(found)
    assert_same_sums(population, MODEL.rewards(points))


def test_residual_variance_is_at_least_100_times_smaller():
    points = near(MODEL)
    assert min(variance_ratio(stored().at(points), MODEL.rewards(points))) >= 100.0


def test_derivatives_of_the_head_are_not_used():
    values, gradients = np.zeros(10), np.zeros((10, 1))
    values[3], gradients[3] = np.nan, np.nan
    bounds = np.ones(10)
    bounds[3] = np.inf
    found = gr.control_variates.stored_taylor(
        values, gradients, None, [0.0], remainder=bounds, outliers=0.1
    )
    assert found.rows.head.tolist() == [3]
    assert np.isfinite(found.at([[1.0]]).residual_range).all()


@pytest.mark.parametrize(
    ("values", "gradients", "hessians", "message"),
    [
        (np.zeros((5, 1)), np.zeros((5, 2)), None, r"order 0 have shape \(5, 1\), not \(5,\)"),
        (np.zeros(5), np.zeros((5, 3)), None, r"order 1 have shape \(5, 3\), not \(5, 2\)"),
        (np.zeros(5), np.zeros((4, 2)), None, r"order 1 have shape \(4, 2\), not \(5, 2\)"),
        (np.zeros(5), np.zeros((5, 2)), np.zeros((5, 2)), "order 2 have shape"),
        (0.0, np.zeros((1, 2)), None, "order 0 have shape"),
    ],
)
def test_shapes_are_checked(values, gradients, hessians, message):
    with pytest.raises(ShapeMismatch, match=message):
        gr.control_variates.stored_taylor(values, gradients, hessians, [0.0, 0.0])


@pytest.mark.parametrize("part", [0, 1, 2])
def test_derivatives_that_are_not_finite_are_an_error(part):
    given = [np.zeros(5), np.zeros((5, 2)), np.zeros((5, 2, 2))]
    given[part][3] = np.nan
    with pytest.raises(InvalidArgument, match="no finite value, gradient or Hessian"):
        gr.control_variates.stored_taylor(*given, [0.0, 0.0])


def test_no_rows_are_an_error():
    with pytest.raises(InvalidArgument, match="size is 0"):
        gr.control_variates.stored_taylor(np.zeros(0), np.zeros((0, 1)), None, [0.0])


@pytest.mark.parametrize("order", [1, 2])
def test_by_jax(order):
    """Oracle: derivatives by hand; in double precision, whatever JAX's default is."""
    jnp = pytest.importorskip("jax.numpy")

    def log_factor(theta, x, y):
        return -2.5 * jnp.log1p((y - jnp.dot(x, theta)) ** 2 / 4.0)

    options, points = options_of(order, 0.1), near(MODEL)
    found = gr.control_variates.jax_taylor(log_factor, MODEL.data, MODEL.mode, order, **options)
    expected = stored(order, **options)
    for part in ("value", "gradient", "hessian"):
        np.testing.assert_allclose(getattr(found, part), getattr(expected, part), rtol=1e-10, atol=1e-9)
    assert_same_sums(likelihood(MODEL).minus(found)(points), MODEL.rewards(points))
    assert jnp.zeros(1).dtype == np.float32  # the user's setting is as it was


def test_without_jax_the_extra_is_named(without):
    without("jax")
    with pytest.raises(MissingPackage, match=r"gumbelrace\[jax\]"):
        gr.control_variates.jax_taylor(lambda theta: 0.0, (), [0.0])
