"""Expansions that fit on average have the same sums, leave less, and give chains of the right law.

False-alarm rate of each statistical test: 1e-4 over seeds.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from tests.laplace.cases import Groups, log_prior
from tests.laplace.test_posterior import FAR, batches

import gumbelrace as gr
from gumbelrace.kernels.metropolis import Metropolis
from gumbelrace.laplace.compiled import CompiledModel
from gumbelrace.laplace.mode import find_mode
from gumbelrace.laplace.pilot import chosen, pilot_of, root_of, step_to_top
from gumbelrace.laplace.tilted import tilted
from gumbelrace.models import logistic

SIZE, COLUMNS = 3_000, 12
POINTS = 256
PROPOSED, AT_ONCE = 20_000, 1_000


def rare_indicators():
    """Give columns of zeros and ones, the rarest with 1.5% ones, and labels: few rows tell of some."""
    rng = np.random.default_rng(1)
    shares = np.r_[1.0, np.geomspace(0.015, 0.6, COLUMNS - 1)]
    x = (rng.uniform(size=(SIZE, COLUMNS)) < shares).astype(float)
    beta = rng.normal(0.0, 0.7, COLUMNS)
    beta[0] = -1.2 - shares[1:] @ beta[1:]
    return x, (rng.uniform(size=SIZE) < expit(x @ beta)).astype(float)


@pytest.fixture(scope="module")
def rare():
    x, y = rare_indicators()
    names = [f"theta[{i}]" for i in range(COLUMNS)]
    functions = logistic.log_factor, logistic.terms, (x, y), SIZE, log_prior
    model = CompiledModel(*functions, np.zeros(COLUMNS), names)
    return model, find_mode(model)


def steps_of(mode, count, seed=0):
    z = np.random.default_rng(seed).standard_normal((count, len(mode.theta)))
    return z @ root_of(mode.precision).T


def likelihood_at(model, mode, step):
    return mode.factors.value + mode.factors.change(step) + model.residuals(mode.theta, step).sum()


def check_tilted(model, mode):
    """Expansion and residuals together give the likelihood, whatever the expansion is; less is left."""
    other = tilted(model, mode, steps_of(mode, 64))
    squares = np.zeros(2)
    for step in steps_of(mode, 5, seed=1):
        right = model.value(mode.theta + step) - model.log_prior(mode.theta + step)
        assert likelihood_at(*other, step) == pytest.approx(right, rel=1e-12)
        squares += [np.square(one.residuals(mode.theta, step)).sum() for one in (model, other[0])]
    assert squares[1] < 0.7 * squares[0]


def test_sums_are_the_same(rare):
    """Expansion and residuals together give the likelihood, whatever the expansion is."""
    model, mode = rare
    other = tilted(model, mode, steps_of(mode, POINTS))
    for step in steps_of(mode, 5, seed=1):
        right = model.value(mode.theta + step) - model.log_prior(mode.theta + step)
        assert likelihood_at(model, mode, step) == pytest.approx(right, rel=1e-12)
        assert likelihood_at(*other, step) == pytest.approx(right, rel=1e-12)


def test_sums_of_many_parameters_are_the_same():
    """More parameters than are summed densely: each row depends on two."""
    case = Groups(1_000, 70, 0.0)
    model = CompiledModel(*case.given, log_prior, case.start, [f"theta[{i}]" for i in range(71)])
    mode = find_mode(model)
    other = tilted(model, mode, steps_of(mode, POINTS))
    (step,) = steps_of(mode, 1, seed=1)
    assert likelihood_at(*other, step) == pytest.approx(likelihood_at(model, mode, step), rel=1e-12)


def test_less_is_left_and_more_is_accepted(rare):
    model, mode = rare
    other = tilted(model, mode, steps_of(mode, POINTS))
    plain, better = pilot_of(model, mode).forecast, pilot_of(*other).forecast
    assert better.misfit < 0.7 * plain.misfit
    assert better.effective > 1.05 * plain.effective
    fresh = steps_of(mode, 20, seed=1)
    left = [
        sum(np.square(one.residuals(mode.theta, step)).sum() for step in fresh) for one in (model, other[0])
    ]
    assert left[1] < 0.7 * left[0]


@pytest.fixture(scope="module")
def oracle(rare):
    """Means and mean squares of an exact chain, with their standard errors: all rows, all at once."""
    model, mode = rare
    x, y = model.data
    rng, root = np.random.default_rng(2), root_of(mode.precision)
    z = 1.1 * rng.standard_normal((PROPOSED, COLUMNS))
    theta = mode.theta + z @ root.T
    products = (part @ x.T for part in np.split(theta, PROPOSED // AT_ONCE))
    heights = np.concatenate([s @ y - np.log1p(np.exp(s)).sum(axis=1) for s in products])
    heights += 0.5 * np.square(z / 1.1).sum(axis=1) - 0.005 * np.square(theta).sum(axis=1)
    at, kept, least = 0, [], -rng.standard_exponential(len(z))
    for k in range(len(z)):
        at = k if heights[k] - heights[at] > least[k] else at
        kept.append(at)
    draws = ((theta - mode.theta) / np.sqrt(np.diag(root @ root.T)))[kept]
    return [batches(draws[None] ** power) for power in (1, 2)]


def differences(fit, oracle, mode):
    """By how many standard errors means and mean squares of a chain are off."""
    sds = np.sqrt(np.diag(fit.law.covariance))
    draws = (fit.sample(5_000, rng=3, progress=False, check=0)["position"] - mode.theta) / sds
    found = [batches(draws**power) for power in (1, 2)]
    pairs = zip(found, oracle, strict=True)
    return np.array([(ours - right) / np.hypot(one, other) for (ours, one), (right, other) in pairs])


def made(model):
    given = model.log_factor, model.terms, model.data, model.size
    return gr.posterior(*given, start=np.zeros(COLUMNS), log_prior=log_prior, progress=False)


def test_rare_indicators_have_the_right_law(rare, oracle):
    """Oracle: an exact chain that reads all rows. The law that proposes is not at the mode."""
    model, mode = rare
    fit = made(model)
    assert isinstance(fit.kernel, Metropolis)
    assert np.abs(fit.law.mean - mode.theta).max() > 0.01
    assert np.abs(differences(fit, oracle, mode)).max() < FAR


def test_wrong_sums_are_noticed(rare, oracle):
    """Negative control: slopes are made steeper, and their sums are not."""
    model, mode = rare
    fit = made(model)
    control = replace(fit.kernel.likelihood.control, gradient=mode.factors.gradient)
    likelihood = replace(fit.kernel.likelihood, control=control)
    wrong = replace(fit, kernel=replace(fit.kernel, likelihood=likelihood))
    assert np.abs(differences(wrong, oracle, mode)).max() > FAR


def test_the_step_to_the_top_goes_to_the_mean(rare, oracle):
    model, mode = rare
    _, other = tilted(model, mode, steps_of(mode, POINTS))
    scale = np.sqrt(np.diag(np.linalg.inv(mode.precision)))
    (mean, _), _ = oracle
    assert np.linalg.norm(step_to_top(other) / scale - mean) < 0.5 * np.linalg.norm(mean)
    assert np.abs(step_to_top(mode) / scale).max() < 1e-3


def test_heavy_tails_are_chosen_where_they_are_needed():
    """Not for a few in ten thousand draws, where they would cost most of all."""
    assert chosen(np.array([0.98, 0.39, 0.26]), np.array([2.1, 0.95, 0.97])) == 0
    assert chosen(np.array([0.9, 0.8, 0.7]), np.array([5.0, 1.0, 1.0])) == 1
    assert chosen(np.array([0.8, 0.85, 0.7]), np.array([1.0, 1.0, 1.0])) == 0
    assert chosen(np.array([0.9, 0.8, 0.7]), np.array([9.0, 8.0, 3.0])) == 2
