"""Probit and Student-t regression: log factors, their derivatives, bounds on what is left, and modes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erfcx, log_ndtr
from tests.common import seeded

from gumbelrace.errors import InvalidArgument, NoMode, ShapeMismatch
from gumbelrace.models import probit, student

SIZE, FREEDOM, SCALE = 200, 3.0, 0.7
X = seeded(1).normal(size=(SIZE, 3))
LABELS = seeded(2).integers(0, 2, SIZE).astype(float)
OBSERVED = X.sum(axis=1) + SCALE * seeded(3).standard_t(FREEDOM, SIZE)
CENTRE = np.array([0.4, -0.7, 0.2])


def by_probit(theta):
    return log_ndtr((2.0 * LABELS - 1.0) * (X @ theta))


def by_student(theta):
    return -0.5 * (FREEDOM + 1.0) * np.log(1.0 + ((OBSERVED - X @ theta) / SCALE) ** 2 / FREEDOM)


# The model, its data, numbers of the law among them, and its log factors in another way.
PROBIT = probit, (X, LABELS), (), by_probit
STUDENT = student, (X, OBSERVED, FREEDOM, SCALE), (FREEDOM, SCALE), by_student
BOTH = pytest.mark.parametrize(
    ("model", "data", "numbers", "direct"), [PROBIT, STUDENT], ids=["probit", "student"]
)


def terms_of(model, data, direction, centre=CENTRE):
    return np.array([model.terms(n, centre, direction, *data) for n in range(SIZE)]).T


@BOTH
def test_log_factors_are_log_likelihoods(model, data, numbers, direct):
    found = [model.log_factor(n, CENTRE, *data) for n in range(SIZE)]
    np.testing.assert_allclose(found, direct(CENTRE), rtol=1e-13, atol=1e-15)


@BOTH
@pytest.mark.parametrize("seed", range(3))
def test_terms_are_derivatives(model, data, numbers, direct, seed):
    """Oracle: central differences, whose error is about 1e-7 here."""
    direction, step = seeded(seed).normal(size=3), 1e-4
    value, slope, curvature = terms_of(model, data, direction)
    up, middle, down = (direct(CENTRE + k * step * direction) for k in (1, 0, -1))
    np.testing.assert_allclose(value, middle, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(slope, (up - down) / (2 * step), atol=1e-5)
    np.testing.assert_allclose(curvature, (up - 2 * middle + down) / step**2, atol=1e-5)


@BOTH
def test_gradient_is_the_sum_of_slopes(model, data, numbers, direct):
    index = np.array([3, 7, 7, 150])
    expected = [terms_of(model, data, axis)[1][index].sum() for axis in np.eye(3)]
    np.testing.assert_allclose(model.gradient(index, CENTRE, *data), expected)


@BOTH
@settings(max_examples=40, deadline=None)
@given(log_scale=st.floats(-3.0, 1.5), seed=st.integers(0, 2**32 - 1))
def test_the_remainder_bounds_what_is_left(model, data, numbers, direct, log_scale, seed):
    rng = seeded(seed)
    metric = rng.normal(size=(3, 3)) + 3.0 * np.eye(3)
    step = 10.0**log_scale * rng.normal(size=3)
    left = np.abs(direct(CENTRE + step) - [1.0, 1.0, 0.5] @ terms_of(model, data, step))
    most = model.remainder(X, metric, *numbers) * np.linalg.norm(metric @ step) ** 3
    assert (left <= most + 1e-12 * (1.0 + np.abs(direct(CENTRE + step)))).all()


@BOTH
@pytest.mark.parametrize("prior_scale", [np.inf, 10.0, 0.1])
def test_the_mode_is_where_the_gradient_vanishes(model, data, numbers, direct, prior_scale):
    theta, hessian = model.mode(*data, prior_scale=prior_scale)
    gradient = model.gradient(np.arange(SIZE), theta, *data) - theta / prior_scale**2
    np.testing.assert_allclose(gradient, 0.0, atol=1e-8)
    curvature = [terms_of(model, data, axis, theta)[2].sum() for axis in np.eye(3)]
    np.testing.assert_allclose(np.diag(hessian), np.array(curvature) - prior_scale**-2, rtol=1e-8)


# ---- Probit ----


def third_derivative(s):
    ratio = np.sqrt(2.0 / np.pi) / erfcx(-s / np.sqrt(2.0))
    return ratio * ((s + ratio) * (s + 2.0 * ratio) - 1.0)


def test_the_bound_of_probit_is_the_largest_third_derivative():
    """A dense grid; below -30 it is less than 3 / 30³ (its expansion at infinity), above 30 it vanishes."""
    found = third_derivative(np.linspace(-30.0, 30.0, 2_000_001))
    assert found.min() > -1e-9
    assert probit.THIRD - 1e-8 < found.max() <= probit.THIRD


@pytest.mark.parametrize("s", [-1e8, -1e4, -100.0, -40.0, -30.0, -10.0, -8.01, -8.0, -7.99, -5.0])
def test_the_far_tail_keeps_its_digits(s):
    """Oracle: scaled error functions; far out λ(s + λ) = 1 - 1 / s² + 6 / s⁴ - ..."""
    ratio, beyond = probit.hazard(s)
    assert probit.log_phi(s) == pytest.approx(log_ndtr(s), rel=1e-13)
    assert ratio == pytest.approx(np.sqrt(2.0 / np.pi) / erfcx(-s / np.sqrt(2.0)), rel=1e-13)
    if s <= -30.0:
        assert ratio * beyond == pytest.approx(1.0 - s**-2 + 6.0 * s**-4, abs=60.0 * s**-6 + 1e-15)


@pytest.mark.parametrize("s", [0.0, 1.0, 5.0, 8.0, 38.0, 40.0, 1e4])
def test_the_other_tail_does_not_overflow(s):
    one = np.ones(1)
    value, slope, curvature = probit.terms(0, one, one, np.array([[s]]), one)
    assert value == pytest.approx(log_ndtr(s), rel=1e-13, abs=1e-300)
    assert 0.0 <= slope < np.inf
    assert -np.inf < curvature <= 0.0


# ---- Student ----


def test_the_bound_of_student_is_the_largest_third_derivative():
    u = np.linspace(-20.0, 20.0, 400_001)
    found = np.abs(2.0 * u * (3.0 - u**2) / (1.0 + u**2) ** 3).max()
    assert student.STEEPEST - 1e-8 < found < student.STEEPEST + 1e-12
    scaled = student.remainder([[2.0]], [[1.0]], FREEDOM, SCALE)[0]
    expected = (FREEDOM + 1.0) / FREEDOM**1.5 * student.STEEPEST * (2.0 / SCALE) ** 3 / 6.0
    assert scaled == pytest.approx(expected)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ((X, OBSERVED[:-1], 3.0, 1.0), ShapeMismatch, "an observation for each row"),
        ((X, OBSERVED, 0.0, 1.0), InvalidArgument, "freedom is 0.0"),
        ((X, OBSERVED, 3.0, -1.0), InvalidArgument, "scale is -1.0"),
        ((X, OBSERVED, 3.0, 1.0, -1.0), InvalidArgument, "prior_scale"),
        ((np.column_stack([X[:, 0], X[:, 0]]), OBSERVED, 3.0, 1.0), NoMode, "depend on each other"),
    ],
)
def test_what_has_no_mode_is_said(given, error, words):
    with pytest.raises(error, match=words):
        student.mode(*given)


def test_labels_that_a_plane_separates_have_no_mode():
    with pytest.raises(NoMode, match="separates"):
        probit.mode(X, X[:, 0] > 0.0)
