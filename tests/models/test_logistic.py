"""Logistic regression: its log factors, their derivatives and the bound on what is left."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.common import seeded

from gumbelrace.errors import InvalidArgument, NoMode, ShapeMismatch
from gumbelrace.models import logistic

X = seeded(1).normal(size=(200, 3))
Y = seeded(2).integers(0, 2, 200).astype(float)
CENTRE = np.array([0.4, -0.7, 0.2])


def log_likelihoods(theta):
    """Give the log likelihood of every row in another way."""
    sign = 2.0 * Y - 1.0
    return -np.logaddexp(0.0, -sign * (X @ theta))


def along(direction, step):
    return log_likelihoods(CENTRE + step * direction)


def test_log_factors_are_log_likelihoods():
    found = [logistic.log_factor(n, CENTRE, X, Y) for n in range(200)]
    np.testing.assert_allclose(found, log_likelihoods(CENTRE), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("s", [-1e4, -750.0, -40.0, 0.0, 40.0, 750.0, 1e4])
@pytest.mark.parametrize("y", [0.0, 1.0])
def test_extreme_points_do_not_overflow(s, y):
    x, label, one = np.array([[s]]), np.array([y]), np.ones(1)
    expected = -np.logaddexp(0.0, -(2 * y - 1) * s)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = logistic.terms(0, one, one, x, label)
        stored = logistic.at_centre(one, x, label)
        slope = logistic.gradient(np.array([0]), one, x, label)
    assert logistic.log_factor(0, one, x, label) == pytest.approx(expected, rel=1e-13, abs=1e-300)
    assert found[0] == pytest.approx(expected, rel=1e-13, abs=1e-300)
    assert np.isfinite(stored).all()
    np.testing.assert_allclose(slope, found[1], rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("seed", range(5))
def test_terms_are_derivatives(seed):
    """Oracle: central differences, whose error is about 1e-9 here."""
    direction, step = seeded(seed).normal(size=3), 1e-4
    value, slope, curvature = np.array([logistic.terms(n, CENTRE, direction, X, Y) for n in range(200)]).T
    up, middle, down = along(direction, step), along(direction, 0.0), along(direction, -step)
    np.testing.assert_allclose(value, middle, rtol=1e-13)
    np.testing.assert_allclose(slope, (up - down) / (2 * step), atol=1e-6)
    np.testing.assert_allclose(curvature, (up - 2 * middle + down) / step**2, atol=1e-6)


@pytest.mark.parametrize("length", [1e-3, 1.0, 30.0])
def test_residuals_are_what_the_expansion_leaves(length):
    """Oracle: the difference itself, whose rounding is that of its terms."""
    direction, stored = length * seeded(4).normal(size=3), logistic.at_centre(CENTRE, X, Y)
    for n in range(200):
        value, slope, curvature = logistic.terms(n, CENTRE, direction, X, Y)
        plain = logistic.log_factor(n, CENTRE + direction, X, Y)
        rounding = 1e-15 * (1.0 + abs(plain) + abs(value) + abs(slope) + abs(curvature))
        expected = plain - (value + slope + 0.5 * curvature)
        assert abs(logistic.residual(n, CENTRE, direction, X, Y) - expected) < 4 * rounding
        assert abs(logistic.stored_residual(n, CENTRE, direction, X, stored) - expected) < 4 * rounding


def test_stored_terms_are_the_same():
    direction = seeded(3).normal(size=3)
    stored = logistic.at_centre(CENTRE, X, Y)
    for n in range(200):
        np.testing.assert_allclose(
            logistic.stored_terms(n, CENTRE, direction, X, stored),
            logistic.terms(n, CENTRE, direction, X, Y),
            rtol=1e-12,
        )


def test_gradient_is_the_sum_of_slopes():
    index = np.array([3, 7, 7, 150])
    expected = [
        sum(logistic.terms(n, CENTRE, direction, X, Y)[1] for n in index) for direction in np.eye(3)
    ]
    np.testing.assert_allclose(logistic.gradient(index, CENTRE, X, Y), expected)


@settings(max_examples=60, deadline=None)
@given(st.floats(-3.0, 1.5), st.integers(0, 2**32 - 1))
def test_the_remainder_bounds_what_is_left(log_scale, seed):
    rng = seeded(seed)
    metric = rng.normal(size=(3, 3)) + 3.0 * np.eye(3)
    step = 10.0**log_scale * rng.normal(size=3)
    expansion = np.array([logistic.terms(n, CENTRE, step, X, Y) for n in range(200)]) @ [1.0, 1.0, 0.5]
    left = np.abs(log_likelihoods(CENTRE + step) - expansion)
    most = logistic.remainder(X, metric) * np.linalg.norm(metric @ step) ** 3
    assert (left <= most + 1e-12).all()


def test_the_remainder_is_not_far_too_large():
    """Its constant is the largest third derivative of log(1 + e^s)."""
    s = np.linspace(-10, 10, 200_001)
    p = 1.0 / (1.0 + np.exp(-s))
    third = np.abs(p * (1 - p) * (1 - 2 * p)).max()
    assert abs(logistic.THIRD - third) < 1e-9


@pytest.mark.parametrize("prior_scale", [np.inf, 10.0, 0.1])
def test_the_mode_is_where_the_gradient_vanishes(prior_scale):
    theta, hessian = logistic.mode(X, Y, prior_scale)
    gradient = logistic.gradient(np.arange(200), theta, X, Y) - theta / prior_scale**2
    np.testing.assert_allclose(gradient, 0.0, atol=1e-9)
    curvature = [
        sum(logistic.terms(n, theta, direction, X, Y)[2] for n in range(200)) for direction in np.eye(3)
    ]
    np.testing.assert_allclose(np.diag(hessian), np.array(curvature) - prior_scale**-2, rtol=1e-9)


def test_lists_will_do_for_a_mode():
    theta, hessian = logistic.mode(X, Y)
    listed = logistic.mode(X.tolist(), Y.astype(bool).tolist())
    np.testing.assert_allclose(listed[0], theta, rtol=1e-12)
    np.testing.assert_allclose(X.T @ (Y - 1.0 / (1.0 + np.exp(-X @ theta))), 0.0, atol=1e-9)
    assert hessian.shape == (3, 3)
    assert logistic.at_centre(CENTRE.tolist(), X.tolist(), Y.tolist()).shape == (200, 4)


@pytest.mark.parametrize(
    ("x", "y", "error", "words"),
    [
        (X, 2.0 * Y - 1.0, InvalidArgument, r"write \(y \+ 1\) / 2"),
        (X, 2.0 * Y, InvalidArgument, "give 0 or 1"),
        (X, Y[:-1], ShapeMismatch, "a label for each row"),
        (X[:, 0], Y, ShapeMismatch, "rows, columns"),
        (np.where(np.arange(200)[:, None] == 7, np.nan, X), Y, InvalidArgument, "row 7 of x"),
        (X, ["yes"] * 200, InvalidArgument, "y is of dtype"),
        (X, (X[:, 0] > 0.0), NoMode, "separates"),
        (np.column_stack([np.ones(200), X[:, 0]]), (X[:, 0] > 0.3), NoMode, "separates"),
        (np.column_stack([X[:, 0], X[:, 0]]), Y, NoMode, "depend on each other"),
    ],
)
def test_what_has_no_mode_is_said(x, y, error, words):
    with pytest.raises(error, match=words):
        logistic.mode(x, y)


def test_with_a_prior_there_is_a_mode_always():
    apart = X[:, 0] > 0.3
    theta, _ = logistic.mode(np.column_stack([np.ones(200), X[:, 0]]), apart, prior_scale=10.0)
    assert np.isfinite(theta).all()
    with pytest.raises(InvalidArgument, match="prior_scale"):
        logistic.mode(X, Y, prior_scale=0.0)
