"""Newton's method finds modes from afar, and says which parameters have none."""

import numpy as np
import pytest
from tests.laplace.cases import log_prior, simulated

import gumbelrace as gr
from gumbelrace.errors import NoMode
from gumbelrace.laplace.compiled import CompiledModel
from gumbelrace.laplace.differences import by_differences
from gumbelrace.laplace.mode import find_mode
from gumbelrace.models import logistic

NAMES = ["a", "b", "c"]


def model_of(x, y, prior=None, start=None):
    point = np.zeros(x.shape[1]) if start is None else np.asarray(start, float)
    return CompiledModel(logistic.log_factor, logistic.terms, (x, y), len(x), prior, point, NAMES)


@pytest.mark.parametrize("start", [[0.0, 0.0, 0.0], [-30.0, 20.0, 8.0]])
def test_finds_the_mode_from_anywhere(start):
    x, y = simulated(2_000, 3)
    mode = find_mode(model_of(x, y, start=start))
    theta, hessian = logistic.mode(x, y)
    np.testing.assert_allclose(mode.theta, theta, atol=1e-4)
    np.testing.assert_allclose(mode.precision, -hessian, rtol=1e-3, atol=0.1)


def test_many_rows_begin_with_a_few():
    x, y = simulated(50_000, 3)
    model = model_of(x, y, start=[3.0, 3.0, 3.0])
    assert 1e-6 < np.abs(model.start - logistic.mode(x, y)[0]).max() < 0.2
    np.testing.assert_allclose(find_mode(model).theta, logistic.mode(x, y)[0], atol=1e-4)


def test_names_columns_that_say_the_same():
    x, y = simulated(500, 3)
    x[:, 2] = -2.0 * x[:, 0]
    with pytest.raises(NoMode, match=r"flat along a, c\."):
        find_mode(model_of(x, y))
    find_mode(model_of(x, y, log_prior))  # a prior decides


def test_names_a_parameter_that_no_row_has():
    x, y = simulated(500, 3)
    x[:, 1] = 0.0
    with pytest.raises(NoMode, match=r"flat along b\."):
        find_mode(model_of(x, y))


def test_labels_that_a_plane_separates_have_no_mode():
    x, _ = simulated(500, 3)
    y = (x[:, 0] > 0.0).astype(float)
    with pytest.raises(NoMode):
        find_mode(model_of(x, y))
    find_mode(model_of(x, y, log_prior))


def test_a_start_that_is_impossible_is_refused():
    x, y = simulated(100, 3)
    with pytest.raises(NoMode, match="-inf at the start a = 0"):
        find_mode(model_of(x, y, lambda theta: -np.inf))


def test_differences_find_derivatives_and_zeros():
    """A function of two pairs: those of different pairs do not depend on each other."""

    def function(x):
        return np.sin(x[0]) * x[1] ** 2 - np.exp(0.5 * x[2]) + 1e4

    point = np.array([0.3, 1.2, -0.7])
    found = by_differences(function, point)
    slopes = [np.cos(0.3) * 1.44, 2.4 * np.sin(0.3), -0.5 * np.exp(-0.35)]
    np.testing.assert_allclose(found.gradient, slopes, rtol=1e-6)
    mixed = 2.4 * np.cos(0.3)
    right = [[-np.sin(0.3) * 1.44, mixed, 0], [mixed, 2 * np.sin(0.3), 0], [0, 0, -0.25 * np.exp(-0.35)]]
    np.testing.assert_allclose(found.hessian, right, rtol=1e-2, atol=1e-3)
    assert found.hessian[0, 2] == found.hessian[1, 2] == 0.0


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"start": [[0.0, 0.0]]}, r"the position has shape \(1, 2\)"),
        ({"start": [np.nan, 0.0]}, "not finite"),
        ({"size": 0}, "size"),
        ({"log_factor": lambda n, theta: 0.0}, "numba"),
    ],
)
def test_bad_arguments_are_refused(change, complaint):
    x, y = simulated(100, 2)
    given = {"log_factor": logistic.log_factor, "terms": logistic.terms, "data": (x, y), "size": 100}
    with pytest.raises(gr.GumbelraceError, match=complaint):
        gr.posterior(**{**given, "start": [0.0, 0.0], **change})
