"""Chains by Thinning: the law of quadrature, for every model that knows its bound."""

from dataclasses import replace

import numba
import numpy as np
import pytest
from scipy.special import log_ndtr, softmax
from tests.methods.test_thinning import HalfDeaf

import gumbelrace as gr
from gumbelrace.control_variates import pilot
from gumbelrace.core.rows import Rows
from gumbelrace.errors import RewardOutOfRange
from gumbelrace.models import logistic, probit, student

STEPS, SIZE = 1_000_000, 300
FREEDOM, SCALE = 3.0, 4.0


@numba.njit
def log_prior(theta):
    total = 0.0
    for i in range(len(theta)):
        total -= theta[i] * theta[i]
    return 0.5 * total / 9.0


def labels(rare):
    """Give labels of which few are 1, so that posteriors are skewed."""
    return rare.astype(float)


def skewed_errors(rare):
    """Give observations most of which lie on one side."""
    return np.where(rare, 2.0, -0.5) * SCALE


# The model, its number of rows, what is observed, numbers that it takes, and log factors in another way.
CASES = {
    "logistic": (logistic, SIZE, labels, (), lambda s, y: y * s - np.logaddexp(0.0, s)),
    "probit": (probit, SIZE, labels, (), lambda s, y: log_ndtr((2.0 * y - 1.0) * s)),
    "student": (
        student,
        24,
        skewed_errors,
        (FREEDOM, SCALE),
        lambda s, y: -0.5 * (FREEDOM + 1.0) * np.log(1.0 + ((y - s) / SCALE) ** 2 / FREEDOM),
    ),
}


class Regression:
    """A posterior that is not normal, and chains by bounds of its rows."""

    def __init__(self, d, name="logistic", every=None):
        self.model, size, observe, numbers, self.log_factors = CASES[name]
        rng = np.random.default_rng(5)
        self.x = np.column_stack([np.ones(size), rng.normal(size=size)])[:, :d].copy()
        rare = np.arange(size) % (every or size // 8) == 0
        self.data, self.numbers = (self.x, observe(rare), *numbers), numbers
        self.mode, hessian = self.model.mode(*self.data, prior_scale=3.0)
        self.law = gr.kernels.NormalPseudoprior(self.mode, np.linalg.inv(-hessian))
        self.metric = np.linalg.inv(self.law.root)

    def likelihood(self, bounds, share=1.0):
        """Give the residuals: with one bound for all rows, bounds of rows, or those beside a head."""
        remainder = share * self.model.remainder(self.x, self.metric, *self.numbers)
        taylor = gr.parameter_taylor(
            self.model.terms,
            self.data,
            len(self.x),
            self.mode,
            remainder=remainder.max() if bounds == "one" else remainder,
            metric=self.metric,
            outliers=0.05 if bounds == "head" else 0.0,
        )
        likelihood = gr.likelihood(self.model.log_factor, self.data, len(self.x)).minus(taylor)
        if bounds != "rows":
            return likelihood
        return replace(likelihood, rows=Rows(len(self.x), bounds=remainder / remainder.max()))

    def chain(self, method, bounds="rows", proposal=None, steps=STEPS, share=1.0):
        """Give the standardised positions of a long chain, of a random walk unless told."""
        walk = proposal or gr.kernels.RandomWalk(1.5 * self.law.root)
        kernel = gr.Metropolis(self.likelihood(bounds, share), walk, log_prior=log_prior, method=method)
        states, info = kernel.steps(np.random.default_rng(6), kernel.start(self.mode), steps)
        self.rows_read = info.evaluations.mean() / 2.0
        return (states.position - self.mode) @ self.metric.T

    def exact(self):
        """Find expectations by quadrature: cells of which ±1.5 are edges."""
        axes = [(np.arange(-120, 120) + 0.5) * 0.075] * self.x.shape[1]
        z = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
        theta = self.mode + z @ self.law.root.T
        heights = -(theta**2).sum(axis=1) / 18.0
        for x, y in zip(self.x, self.data[1], strict=True):
            heights += self.log_factors(theta @ x, y)
        return softmax(heights) @ statistics(z)


def statistics(z):
    """Means, squares, and tails beyond ±1.5, of every coordinate."""
    return np.concatenate([z, z**2, z < -1.5, z > 1.5], axis=1)


def worst(chain, exact, batches=100):
    """Give the largest deviation in standard errors, by batch means."""
    means = statistics(chain).reshape(batches, -1, len(exact)).mean(axis=1)
    errors = means.std(axis=0, ddof=1) / np.sqrt(batches)
    return np.abs((means.mean(axis=0) - exact) / errors).max(), errors.max()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("d", "bounds"), [(1, "one"), (2, "rows"), (2, "head")])
def test_a_chain_has_the_law_of_quadrature(name, d, bounds):
    """Eight statistics within 4.5 standard errors: a false alarm once in 10,000 seeds."""
    posterior = Regression(d, name)
    deviation, error = worst(posterior.chain(gr.Thinning(), bounds), posterior.exact())
    assert deviation < 4.5
    assert error < 0.02
    assert posterior.rows_read < 0.5 * len(posterior.x)


class NoRatio(gr.kernels.StudentT):
    """Negative control: proposals that are taken for symmetric ones."""

    laws = property()  # there is none: Python proposes

    def log_ratio(self, x, proposed):
        return 0.0


def test_proposals_by_student_find_the_same_law():
    posterior = Regression(2)
    exact = posterior.exact()
    found = posterior.chain(gr.Thinning(), "rows", gr.kernels.StudentT(posterior.law))
    assert worst(found, exact)[0] < 4.5
    wrong = posterior.chain(gr.Thinning(), "rows", NoRatio(posterior.law), steps=20_000)
    assert worst(wrong, exact)[0] > 9.0


@pytest.mark.parametrize("name", CASES)
def test_a_chain_with_missing_rings_is_noticed(name):
    posterior = Regression(1, name)
    assert worst(posterior.chain(HalfDeaf(), "one"), posterior.exact())[0] > 9.0


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("bounds", ["one", "rows"])
def test_half_of_a_bound_is_an_error_that_names_a_row(name, bounds):
    """Where every fifth row is 1, the third derivatives of some are about as large as any."""
    with pytest.raises(RewardOutOfRange, match="row"):
        Regression(1, name, every=5).chain(gr.Thinning(), bounds, share=0.5)


# ---- Who decides if nobody says ----


def test_thinning_is_the_default_where_rings_are_few():
    """It keeps the law of quadrature, as in `test_a_chain_has_the_law_of_quadrature`."""
    posterior = Regression(1)
    kernel = gr.Metropolis(posterior.likelihood("rows"), gr.kernels.RandomWalk(0.1))
    assert repr(kernel.method) == "default method (Thinning)"
    assert kernel.method.promise == gr.Thinning().promise
    deviation, _ = worst(posterior.chain(None), posterior.exact())
    assert deviation < 4.5
    assert posterior.rows_read < gr.Penalty().least_rows


def test_penalty_is_the_default_where_rings_would_be_many():
    posterior = Regression(1)
    for likelihood in (
        posterior.likelihood("rows", share=1000.0),
        gr.likelihood(logistic.log_factor, posterior.data, SIZE),
        gr.likelihood(logistic.log_factor, posterior.data, SIZE, reward_range=(-100.0, 0.0)),
    ):
        kernel = gr.Metropolis(likelihood, gr.kernels.RandomWalk(0.1))
        assert repr(kernel.method) == "default method (Penalty)"


def test_what_rings_reject_counts_as_well():
    """A few rings that let hardly any move pass cost more than many that do."""
    rewards = np.full((10, 2), [0.5, 0.0])
    moves = [gr.table(rewards, reward_range=(0.0, 0.5))]
    assert gr.Thinning().rows_a_move(moves, 48.0) > 48.0
    assert gr.Thinning().rows_a_move([gr.table(0.01 * rewards)], 48.0) < 1.0


@numba.njit
def nowhere(theta):
    return -np.inf


def test_a_bound_that_does_not_hold_is_an_error_when_the_default_is_chosen():
    """Unless the prior rules the points out: bounds need not hold there."""
    likelihood = Regression(1, every=5).likelihood("rows", share=0.1)
    with pytest.raises(RewardOutOfRange, match="row"):
        gr.Metropolis(likelihood, gr.kernels.RandomWalk(0.1))
    kernel = gr.Metropolis(likelihood, gr.kernels.RandomWalk(0.1), log_prior=nowhere)
    assert repr(kernel.method) == "default method (Penalty)"


def test_bounds_of_rows_that_never_ring_are_checked():
    """Ten rows that carry the skewness claim to have no remainder: the chain would be off by a quarter."""
    rng = np.random.default_rng(0)
    x = 0.05 * rng.choice([-1.0, 1.0], (2000, 1))
    x[:10] = 3.0
    y = (rng.uniform(size=2000) < 1.0 / (1.0 + np.exp(-0.4 * x[:, 0]))).astype(float)
    y[:10] = np.arange(10) < 9
    mode, hessian = logistic.mode(x, y)
    scale = np.sqrt(-hessian)
    remainder = logistic.remainder(x, scale)
    remainder[:10] = 0.0
    given = {"remainder": remainder, "metric": scale}
    taylor = gr.parameter_taylor(logistic.terms, (x, y), 2000, mode, **given)
    likelihood = gr.likelihood(logistic.log_factor, (x, y), 2000).minus(taylor)
    with pytest.raises(RewardOutOfRange, match=r"residual of row ., arm .* enlarge them"):
        gr.Metropolis(likelihood, gr.kernels.RandomWalk(0.1), method=gr.Thinning())


def many_rows(observe, model, numbers=(), unit=1.0, metric=True):
    """Give the residuals of 20,000 rows, the second column in another unit, and the Laplace law."""
    rng = np.random.default_rng(7)
    z = np.column_stack([np.ones(20_000), rng.normal(size=20_000)])
    data = (z * [1.0, unit], observe(rng, z), *numbers)
    mode, hessian = model.mode(*data)
    law = gr.kernels.NormalPseudoprior(mode, np.linalg.inv(-hessian))
    scale = np.linalg.inv(law.root)
    remainder = model.remainder(data[0], scale, *numbers)
    given = {"metric": scale} if metric else {}
    taylor = gr.parameter_taylor(model.terms, data, len(z), mode, remainder=remainder, **given)
    return gr.likelihood(model.log_factor, data, len(z)).minus(taylor), law


def coins(rng, z):
    return (rng.uniform(size=len(z)) < 1.0 / (1.0 + np.exp(-z[:, 1]))).astype(float)


def test_a_forgotten_metric_is_noticed_though_rings_are_few():
    with pytest.raises(RewardOutOfRange, match="row"):
        gr.Metropolis(many_rows(coins, logistic, metric=False)[0], gr.kernels.RandomWalk(0.1))


@pytest.mark.parametrize("unit", [1e-6, 1e-3, 1e3, 1e6])
def test_what_is_read_does_not_depend_on_units(unit):
    """The same chain, by the same random numbers: within a factor of 2."""
    read = []
    for each in (1.0, unit):
        likelihood, law = many_rows(coins, logistic, unit=each)
        kernel = gr.Metropolis(likelihood, gr.kernels.Autoregressive(law, 0.0))
        assert repr(kernel.method) == "default method (Thinning)"
        _, info = kernel.steps(np.random.default_rng(8), kernel.start(law.mean), 20_000)
        read.append(info.evaluations.sum())
    assert 0.5 < read[0] / read[1] < 2.0


@pytest.mark.parametrize("shift", [1e6, 1.7e9])
def test_observations_far_from_zero_keep_to_their_bounds(shift, monkeypatch):
    """Differences of y and x·θ have lost digits: bounds that do not allow for what is seen fail."""

    def far(rng, z):
        return shift + z[:, 1] + rng.standard_t(4.0, size=len(z))

    def chain():
        likelihood, law = many_rows(far, student, (4.0, 1.0))
        kernel = gr.Metropolis(likelihood, gr.kernels.Autoregressive(law, 0.0))
        assert repr(kernel.method) == "default method (Thinning)"
        return kernel.steps(np.random.default_rng(9), kernel.start(law.mean), 50_000)[1]

    assert chain().evaluations.mean() < 2.0
    monkeypatch.setattr(pilot, "SAFETY", 0.0)
    with pytest.raises(RewardOutOfRange, match="row"):
        chain()
