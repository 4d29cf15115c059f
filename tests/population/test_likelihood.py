"""Likelihoods of a parameter: a population for each set of points, compiled once."""

import math

import numba
import numpy as np
import pytest
from tests.common import seeded, totals

import gumbelrace as gr
from gumbelrace.errors import InvalidArgument, InvalidReward, RewardOutOfRange, ShapeMismatch
from gumbelrace.population.likelihood import by_arm


@numba.njit
def of_vector(n, theta, y):
    return -0.5 * (y[n] - theta[0] - theta[1]) ** 2


@numba.njit
def of_number(n, theta, y):
    return -0.5 * (y[n] - theta) ** 2


Y = seeded(1).normal(0.3, 1.0, 3000)


class Zero:
    """The control variate that knows nothing; it is asked for the points it is given."""

    def __init__(self):
        self.asked = []

    def at(self, points):
        self.asked.append(points)
        return gr.control_variates.ControlVariate(zero, (), np.zeros(len(points)))


@numba.njit
def zero(n, arm):
    return 0.0


def sums(centres):
    return np.array([math.fsum(-0.5 * (Y - centre) ** 2) for centre in centres])


@pytest.mark.parametrize(
    ("log_factor", "points"),
    [
        (of_vector, [[0.1, 0.0], [0.0, 0.3], [0.2, 0.4]]),
        (of_vector, np.array([[0.1, 0.0], [0.0, 0.3], [0.2, 0.4]], order="F")),
        (of_number, [0.1, 0.3, 0.6]),
        (of_number, np.array([0.1, 0.3, 0.6], np.float32)),
        (of_number, [0, 1, 2]),
    ],
)
def test_arms_are_points(log_factor, points):
    likelihood = gr.likelihood(log_factor, (Y,), size=len(Y))
    population = likelihood(points)
    assert (population.size, population.arms, likelihood.size) == (3000, 3, 3000)
    expected = sums(np.reshape(np.asarray(points, np.float64), (3, -1)).sum(axis=1))
    np.testing.assert_allclose(
        totals(population) - totals(population)[0], expected - expected[0], atol=1e-9
    )
    assert gr.Exact().best(population, None, seeded()).arm == expected.argmax()


def test_new_points_compile_nothing():
    likelihood, function = gr.likelihood(of_vector, (Y,), size=len(Y)), by_arm(of_vector)
    counts = []
    for seed in range(3):
        gr.Race().best(likelihood(seeded(seed).normal(size=(2 + seed, 2))), None, seeded())
        counts.append(len(function.signatures))
    assert counts[0] == counts[1] == counts[2]
    assert function is by_arm(of_vector)


def test_data_are_not_copied():
    y = Y.copy()
    population = gr.likelihood(of_number, (y,), size=len(y))([0.0, 1.0])
    y[:] = 1.0
    assert np.diff(totals(population)) == pytest.approx(0.5 * len(y))


def test_the_range_is_that_of_all_points():
    likelihood = gr.likelihood(of_number, (Y,), len(Y), reward_range=(-20.0, 0.0))
    low, high = likelihood([0.0, 0.1, 0.2]).reward_range
    assert (low.tolist(), high.tolist()) == ([-20.0] * 3, [0.0] * 3)
    with pytest.raises(RewardOutOfRange):
        totals(likelihood([0.0, 50.0]))


def test_a_control_variate_is_bound_to_the_same_points():
    control = Zero()
    plain = gr.likelihood(of_number, (Y,), len(Y), reward_range=(-20.0, 0.0))
    likelihood = plain.minus(control)
    population = likelihood([0.1, 0.3])
    np.testing.assert_array_equal(control.asked, [[0.1, 0.3]])
    bound = control.at(np.array([0.1, 0.3]))
    np.testing.assert_allclose(bound.sums - bound.sums.max(), population.known.sums)
    assert not population.knows_range  # that of the rewards is not that of the residuals
    assert plain.control is None
    with pytest.raises(InvalidArgument, match="already"):
        likelihood.minus(control)


def test_points_that_are_not_numbers_are_invalid_rewards():
    with pytest.raises(InvalidReward, match="arm 1"):
        totals(gr.likelihood(of_number, (Y,), len(Y))([0.0, np.nan]))


@pytest.mark.parametrize("points", [0.5, [], np.zeros((0, 2))])
def test_points_must_be_an_array_of_points(points):
    with pytest.raises(ShapeMismatch, match="at least one point"):
        gr.likelihood(of_number, (Y,), len(Y))(points)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"log_factor": lambda n, theta, y: 0.0}, "@numba.njit"),
        ({"data": Y}, "give a tuple"),
        ({"size": 0}, "size is 0"),
        ({"size": 1.5}, "size is 1.5"),
    ],
)
def test_arguments_are_checked(changes, message):
    with pytest.raises(InvalidArgument, match=message):
        gr.likelihood(**({"log_factor": of_number, "data": (Y,), "size": len(Y)} | changes))
