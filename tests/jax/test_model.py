"""Models by JAX: values and derivatives, by chunks, in double precision; what cannot be a model."""

import re

import numpy as np
import pytest

from gumbelrace.errors import InvalidArgument, NoMode, ShapeMismatch

jax = pytest.importorskip("jax", reason="JAX is not installed")

import jax.numpy as jnp  # noqa: E402

import gumbelrace.jax as raced  # noqa: E402
from gumbelrace.jax import model as models  # noqa: E402
from gumbelrace.jax.data import as_rows  # noqa: E402
from gumbelrace.jax.model import JaxModel  # noqa: E402
from gumbelrace.jax.packages import in_double  # noqa: E402
from gumbelrace.jax.recipe import as_key  # noqa: E402
from gumbelrace.jax.sums import left_between  # noqa: E402

SIZE = 70
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(SIZE, 2)), RNG.normal(size=SIZE)
THETA, STEP = np.array([0.3, -0.2, 0.5]), np.array([0.1, 0.2, -0.1])


def log_factor(theta, row):
    """Poisson-like: its derivatives are easily written by hand."""
    s = theta["a"] + row["x"] @ theta["b"]
    return row["y"] * s - jnp.exp(s)


def made(monkeypatch, chunk):
    monkeypatch.setattr(models, "FEWEST", chunk)
    monkeypatch.setattr(models, "MOST", chunk)
    return JaxModel(
        lambda theta, rows, whole: jax.vmap(log_factor, (None, 0))(theta, rows),
        lambda theta, whole: -0.5 * theta["a"] ** 2,
        as_rows({"x": X, "y": Y}, SIZE),
        (),
        {"a": 0.0, "b": np.zeros(2)},
    )


def by_hand(theta):
    """Give log factors, and the sum of their gradients and Hessians."""
    rows = np.column_stack([np.ones(SIZE), X])
    s = rows @ theta
    return Y * s - np.exp(s), rows.T @ (Y - np.exp(s)), -(rows.T * np.exp(s)) @ rows


@pytest.mark.parametrize("chunk", [16, 35, 100])
def test_sums_and_residuals_are_those_by_hand(monkeypatch, chunk):
    """Chunks that fit, that do not, and one for all."""
    model = made(monkeypatch, chunk)
    terms, gradient, hessian = by_hand(THETA)
    found = model.factors(THETA)
    np.testing.assert_allclose(model.value(THETA), terms.sum() - 0.5 * THETA[0] ** 2)
    np.testing.assert_allclose(found.value, terms.sum())
    np.testing.assert_allclose(found.gradient, gradient)
    np.testing.assert_allclose(found.hessian, hessian)
    np.testing.assert_allclose(model.gradient(THETA), gradient - [THETA[0], 0.0, 0.0])
    s = np.column_stack([np.ones(SIZE), X]) @ THETA
    u = np.column_stack([np.ones(SIZE), X]) @ STEP
    expected = -np.exp(s) * (np.exp(u) - 1.0 - u - 0.5 * u**2)
    np.testing.assert_allclose(model.residuals(THETA, STEP), expected, rtol=1e-8, atol=1e-14)


def test_differences_are_those_of_residuals(monkeypatch):
    model = made(monkeypatch, 100)
    with in_double():
        between = left_between(lambda at: model.terms(at, model.rows, ()), THETA, STEP, -2.0 * STEP)
    expected = model.residuals(THETA, -2.0 * STEP) - model.residuals(THETA, STEP)
    np.testing.assert_allclose(between, expected, rtol=1e-8, atol=1e-14)


def test_coordinates_have_names_and_the_setting_of_jax_is_left(monkeypatch):
    model = made(monkeypatch, 100)
    assert model.names == ["a", "b[0]", "b[1]"]
    assert model.value(THETA).dtype == np.float64
    assert jnp.zeros(1).dtype == np.float32


@pytest.mark.parametrize(
    ("data", "options", "error", "text"),
    [
        ({"x": X, "y": Y[:-1]}, {}, ShapeMismatch, r"y of the data has shape \(69,\)"),
        ({"x": X, "y": 1.0}, {}, ShapeMismatch, r"y of the data has shape \(\)"),
        ({"x": X, "y": Y}, {"size": 71}, ShapeMismatch, r"shape \(70, 2\), and size is 71"),
        ({}, {}, InvalidArgument, "no arrays"),
        ({"x": X, "y": Y}, {"log_prior": lambda theta: theta["b"]}, InvalidArgument, r"log_prior .*\(2,\)"),
    ],
)
def test_what_is_no_data_and_no_prior(data, options, error, text):
    with pytest.raises(error, match=text):
        raced.posterior(log_factor, data, start={"a": 0.0, "b": np.zeros(2)}, **options)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"log_factor": 3}, "log_factor is 3; it must be a function"),
        ({"log_prior": "flat"}, "log_prior is 'flat'; it must be a function"),
        ({"start": None}, "start is None; give a θ"),
        ({"start": {"a": "x", "b": np.zeros(2)}}, "a of start is of type <U1"),
        ({"start": np.zeros(2, complex)}, "all of start is of type complex128"),
        ({"data": {"x": X, "y": np.full(SIZE, "a")}}, "y of data is of type <U1"),
        ({"data": {"x": X[:0], "y": Y[:0]}}, "no rows"),
    ],
)
def test_arguments_of_other_kinds(changed, text):
    given = {"log_factor": log_factor, "data": {"x": X, "y": Y}, "start": {"a": 0.0, "b": np.zeros(2)}}
    with pytest.raises(InvalidArgument, match=re.escape(text)):
        raced.posterior(**given | changed)


def test_a_log_factor_gives_a_number():
    with pytest.raises(InvalidArgument, match=r"log_factor gives an array of shape \(2,\)"):
        raced.posterior(lambda theta, row: row * theta, X, start=np.zeros(2))
    with pytest.raises(InvalidArgument, match="log_factor returns None; it must return a number"):
        raced.posterior(lambda theta, row: None, X, start=np.zeros(2))


def test_a_flat_posterior_is_refused_and_its_parameter_named():
    with pytest.raises(NoMode, match=re.escape("b[1]")):
        raced.posterior(
            log_factor, {"x": X * [1.0, 0.0], "y": np.abs(Y)}, start={"a": 0.0, "b": np.zeros(2)}
        )


def test_keys_of_each_kind():
    expected = jax.random.key_data(jax.random.key(3))
    for given in (3, np.int64(3), jax.random.key(3), jax.random.PRNGKey(3)):
        np.testing.assert_array_equal(jax.random.key_data(as_key(given)), expected)
    assert (jax.random.key_data(as_key(None)) != jax.random.key_data(as_key(None))).any()
    for wrong in ("seed", 1.5, True):
        with pytest.raises(InvalidArgument, match="rng_key"):
            as_key(wrong)


def test_without_jax_the_extra_is_named(without):
    from gumbelrace.errors import MissingPackage

    without("jax")
    with pytest.raises(MissingPackage, match=r"gumbelrace\[jax\]"):
        raced.posterior(log_factor, {"x": X, "y": Y}, start=np.zeros(2))
