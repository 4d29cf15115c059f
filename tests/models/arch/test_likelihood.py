"""Desks of ARCH likelihoods: what lies on them adds up to the posterior, and chains decide by it."""

import ctypes

import numba
import numpy as np
import pytest

import gumbelrace as gr
from gumbelrace.models.arch.build import expand
from gumbelrace.models.arch.data import lagged, simulate, standardised
from gumbelrace.models.arch.likelihood import ArchLikelihood
from gumbelrace.models.arch.model import Arch, compiled_prior, laplace
from gumbelrace.population.control import table_of

ORDERS = (2, 5, 8)

log_prior = compiled_prior()


class Case:
    def __init__(self):
        rng = np.random.default_rng(1)
        self.data = lagged(standardised(simulate(3000, rng)), max(ORDERS))
        self.models = [Arch(order) for order in ORDERS]
        self.fits = [laplace(model, self.data) for model in self.models]
        self.control = expand(self.data, self.models, [fit.sample(rng, 200) for fit in self.fits])
        self.weights = -np.array([fit.log_evidence for fit in self.fits])

    def likelihood(self, control):
        return ArchLikelihood(self.data, control=control)

    def kernel(self, control, method, **options):
        likelihood, models = self.likelihood(control), []
        for fit in self.fits:
            law = gr.NormalPseudoprior(fit.mean, fit.covariance)
            move = gr.Metropolis(likelihood, gr.Autoregressive(law), log_prior, method)
            models.append(gr.Candidate(move, law, log_prior))
        return gr.CarlinChib(models, likelihood, method=method, **options)

    def steps(self, kernel, count, seed=2):
        state = kernel.start(np.random.default_rng(0))._replace(log_weights=self.weights)
        return kernel.steps(np.random.default_rng(seed), state, count)


@pytest.fixture(scope="module")
def case():
    return Case()


def put(desk):
    """Put what is known of the parameters on a desk into offsets; give them, and what was read for it."""
    offset, low, high = np.zeros((3, len(desk.models)))
    pointers = [part.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for part in (offset, low, high)]
    words = desk.packed.words.ctypes.data_as(ctypes.POINTER(ctypes.c_int64))
    return offset, desk.setter.ctypes(words, *pointers)


def test_offsets_and_residuals_add_up_to_the_posterior(case):
    """Oracle: the plain log factors. Offsets must hold the prior, known sums and what is always read."""
    desk = case.likelihood(case.control).desk(3, np.array(ORDERS) + 2, log_prior)
    xs = [fit.sample(np.random.default_rng(4), 1)[0] for fit in case.fits]
    for arm, x in enumerate(xs):
        desk.models[arm] = arm
        desk.parameters[arm, : len(x)] = x
    offset, read = put(desk)
    rest = gr.Exact().best(desk.population, offset, np.random.default_rng(0))
    residuals = table_of(desk.population._log_factor)(
        np.arange(desk.population.size), np.arange(3), desk.population._data
    )
    expected = [
        model.log_prior(x) + model.log_likelihood(x, case.data)
        for model, x in zip(case.models, xs, strict=True)
    ]
    np.testing.assert_allclose(offset + residuals.sum(axis=0), expected, rtol=1e-11)
    assert rest.arm == np.argmax(expected)
    assert read + residuals.size == 3 * case.data.size


def test_an_exact_chain_reads_everything(case):
    block = case.steps(case.kernel(case.control, gr.Exact()), 60)
    assert len(set(block.states.model.tolist())) == len(ORDERS)
    np.testing.assert_array_equal(block.info.evaluations, case.data.size * (2 + len(ORDERS)))


def test_a_raced_chain_is_close_to_the_exact_one_and_reads_less(case):
    """The same noise and δ = 1e-4: of 200 steps with two decisions each, 0.04 are expected to differ."""
    exact = case.steps(case.kernel(case.control, gr.Exact()), 200)
    raced = case.steps(case.kernel(case.control, gr.Race(delta=1e-4), guard=0.999), 200)
    assert raced.info.evaluations.sum() < 0.5 * exact.info.evaluations.sum()
    visits = [np.bincount(block.states.model, minlength=3) / 200 for block in (exact, raced)]
    assert np.abs(visits[0] - visits[1]).max() < 0.25


def test_decisions_of_a_raced_chain_are_right(case):
    kernel = case.kernel(case.control, gr.Race(delta=0.01), guard=0.999)
    rng, state = np.random.default_rng(3), kernel.start(np.random.default_rng(0))
    state, errors, decisions = state._replace(log_weights=case.weights), 0, 0
    for _ in range(60):
        checked = kernel.audit(rng, state)
        errors, decisions = errors + checked.errors, decisions + checked.decisions
        state, _ = kernel.step(rng, state)
    assert decisions > 60
    assert errors <= 4  # of 120 at δ = 0.01, more have a probability below 1e-2


@numba.njit
def impossible(x):
    return -np.inf


def test_nothing_is_read_for_parameters_that_the_prior_rules_out(case):
    offset, read = put(case.likelihood(case.control).desk(2, np.array([4]), impossible))
    assert read == 0
    assert (offset == -np.inf).all()


def test_only_expansions_have_desks(case):
    for other in (None, gr.parameter_taylor):
        assert not hasattr(case.likelihood(other), "desk")
    kernel = case.kernel(None, gr.Exact())
    assert not kernel.is_compiled
    _, info = kernel.step(np.random.default_rng(0), kernel.start(np.random.default_rng(0)))
    assert info.evaluations == case.data.size * (2 + len(ORDERS))
