"""Errors along a chain: what they do to its law, and what an audit says of it."""

import functools

import numba
import numpy as np
import pytest
from tests.common import seeded
from tests.kernels.laws import Quadrature

import gumbelrace as gr
from gumbelrace.chain.trace import autocorrelation_time, shifts

SIZE = 200


@numba.njit
def log_factor(n, theta, x, y):
    return y[n] * x[n] * theta[0] - np.log1p(np.exp(x[n] * theta[0]))


@functools.cache
def problem():
    """Slope of a logistic regression: data, and mean and standard deviation by quadrature."""
    rng = seeded(0)
    x = rng.normal(size=SIZE)
    y = (rng.random(SIZE) < 1.0 / (1.0 + np.exp(-x))).astype(float)
    law = Quadrature(lambda t: y @ x * t - np.log1p(np.exp(x * t)).sum(), -1.0, 4.0)
    weights, middles = np.diff(law.cumulative), 0.5 * (law.grid[1:] + law.grid[:-1])
    mean = weights @ middles
    return (x, y), mean, np.sqrt(weights @ (middles - mean) ** 2)


@functools.cache
def walked(method, steps=60_000):
    """Give a trace, and its positions standardised by the right law."""
    data, mean, sd = problem()
    options = {} if method is None else {"method": method}
    kernel = gr.Metropolis(
        gr.likelihood(log_factor, data, SIZE), gr.kernels.RandomWalk(2.4 * sd), **options
    )
    start = gr.kernels.Position(np.array([mean]))
    trace = gr.run(kernel, start, steps=steps, rng=seeded(1), chains=2, progress=False, check=0)
    return trace, (trace["position"][..., 0] - mean) / sd


def variance_is_right(z, slack=0.01):
    """E z² = 1 but for `slack` and four standard errors: a false alarm once in 16,000 seeds."""
    squares = z**2
    error = squares.std() * np.sqrt(autocorrelation_time(squares) / squares.size)
    return abs(squares.mean() - 1.0) <= slack + 4.0 * error


def test_the_default_of_kernels_leaves_mean_and_variance_alone():
    """Oracle: quadrature. Mean within 0.01 sd and E z² within 1%, and four standard errors."""
    z = walked(None)[1]
    assert variance_is_right(z)
    assert abs(z.mean()) <= 0.01 + 4.0 * z.std() * np.sqrt(autocorrelation_time(z) / z.size)


def test_the_default_of_single_draws_would_not():
    """Negative control of the test above."""
    assert not variance_is_right(walked(gr.Race(delta=0.05))[1])


def test_the_audit_estimates_the_shift_of_the_law():
    """Within four standard errors and 30% of what quadrature shows: a false alarm once in 16,000 seeds."""
    trace, z = walked(gr.Race(delta=0.05))
    report = trace.audit(0.02, rng=seeded(2))
    mean, variance = report.bias
    assert (mean.of, mean.name, variance.of) == ("mean", "position[0]", "variance")
    for shift, truth in ((mean, z.mean() / z.std()), (variance, z.var() - 1.0)):
        assert abs(shift.value - truth) <= 0.3 * abs(truth) + 4.0 * shift.error
    assert variance.value > 2.0 * variance.error > 0.0
    assert not report.broken
    assert report.biased
    assert "kept, but the chain is biased: mean of position[0] +" in str(report)


def test_an_exact_chain_has_no_shift():
    report = walked(gr.Exact(), 2000)[0].audit(0.02, rng=seeded(2))
    assert {shift.value for shift in report.bias} == {shift.error for shift in report.bias} == {0.0}
    assert not report.biased
    assert "kept; bias of the chain: mean" in str(report)


class Half(gr.Method):
    """Finds the best arm, but half of the time names the first."""

    has_plan = False
    promise = gr.Promise(0.5)

    def rule(self, population):
        raise NotImplementedError

    def best_each(self, population, offsets, rng):
        found = gr.Exact().best_each(population, offsets, rng)
        found.arms[rng.random(len(found.arms)) < 0.5] = 0
        return found


def test_the_shift_of_a_probability():
    """Two labels of equal probability, drawn anew by each step: half of the ones become zeros, +25 points.

    Four standard errors: a false alarm once in 16,000 seeds.
    """
    population = gr.table(np.zeros((100, 2)))
    kernel = gr.Gibbs(lambda labels, variable: (population, None), 1, method=Half())
    trace = gr.run(
        kernel, gr.kernels.Labels(np.zeros(1, int)), steps=2000, rng=seeded(3), progress=False, check=0
    )
    zero, one = trace.audit(0.5, rng=seeded(4)).bias
    assert (zero.of, zero.name, one.name) == ("probability", "labels[0] = 0", "labels[0] = 1")
    assert zero.value == pytest.approx(-one.value)
    assert abs(zero.value - 0.25) < 4.0 * zero.error < 0.1


def test_thinned_chains_have_the_same_shift():
    """Every third state with the same audited steps: the factor counts steps, within 15%."""
    trace, _ = walked(gr.Race(delta=0.05))
    checks = list(trace.checks(300, seeded(5)))
    every = shifts(trace.kernel, trace.states, checks, 1)
    third = shifts(trace.kernel, gr.kernels.Position(trace["position"][:, ::3]), checks, 3)
    assert [s.value for s in third] == pytest.approx([s.value for s in every], rel=0.15)
    assert gr.run(trace.kernel, trace.last[0], steps=6, rng=seeded(), thin=3, progress=False).thin == 3


def test_clusters_are_counted():
    kernel = gr.ClusterGibbs.__new__(gr.ClusterGibbs)
    states = gr.kernels.Labels(np.array([[[0, 0, 2], [1, 5, 2]]]), np.zeros((1, 2)))
    assert kernel.watched(states).clusters.tolist() == [[2.0, 3.0]]
