"""Slots of ARCH likelihoods: what is known of them adds up to the posterior, and chains decide by it."""

import ctypes

import numpy as np
import pytest

import gumbelrace as gr
from gumbelrace.models.arch.data import lagged, simulate, standardised
from gumbelrace.models.arch.likelihood import ArchLikelihood, expand
from gumbelrace.models.arch.model import Arch, compiled_prior, laplace
from gumbelrace.population.control import table_of
from gumbelrace.population.likelihood import KNOWN, LOST, READ

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
            law = gr.kernels.NormalPseudoprior(fit.mean, fit.covariance)
            move = gr.Metropolis(
                likelihood, gr.kernels.Autoregressive(law), log_prior=log_prior, method=method
            )
            models.append(gr.kernels.Candidate(move, law, log_prior))
        return gr.CarlinChib(models, likelihood, method=method, **options)

    def steps(self, kernel, count, seed=2):
        state = kernel.start(rng=np.random.default_rng(0))._replace(log_weights=self.weights)
        return kernel.steps(np.random.default_rng(seed), state, count)


@pytest.fixture(scope="module")
def case():
    return Case()


@pytest.mark.parametrize("head", [True, False])
def test_what_slots_know_and_residuals_add_up_to_the_posterior(case, head):
    """Oracle: the plain log factors, of which the slots know sums, and the head, where there is one."""
    likelihood = case.likelihood(case.control)
    slots = (likelihood if head else likelihood.without_head).slots(3, np.array(ORDERS) + 2)
    xs = [fit.sample(np.random.default_rng(4), 1)[0] for fit in case.fits]
    words, read = slots.packed.words.ctypes.data_as(ctypes.POINTER(ctypes.c_int64)), 0
    for arm, x in enumerate(xs):
        slots.models[arm] = arm
        slots.parameters[arm, : len(x)] = x
        read += slots.known.ctypes(words, arm)
    known, rows = slots.numbers[:, [KNOWN, READ, LOST]].sum(axis=1), slots.population.rows.tail
    rest = gr.Exact().best(slots.population, known, np.random.default_rng(0))
    residuals = table_of(slots.population._log_factor)(rows, np.arange(3), slots.population._data)
    expected = [model.log_likelihood(x, case.data) for model, x in zip(case.models, xs, strict=True)]
    np.testing.assert_allclose(known + residuals.sum(axis=0), expected, rtol=1e-11)
    assert rest.arm == np.argmax(expected)
    assert read + residuals.size == 3 * case.data.size
    assert (read > 0) == head


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
    rng, state = np.random.default_rng(3), kernel.start(rng=np.random.default_rng(0))
    state, errors, decisions = state._replace(log_weights=case.weights), 0, 0
    for _ in range(60):
        checked = kernel.audit(rng, state)
        errors, decisions = errors + checked.errors, decisions + checked.decisions
        state, _ = kernel.step(rng, state)
    assert decisions > 60
    assert errors <= 4  # of 120 at δ = 0.01, more have a probability below 1e-2


def test_only_expansions_have_slots(case):
    for other in (None, gr.parameter_taylor):
        assert not case.likelihood(other).has_slots
    kernel = case.kernel(None, gr.Exact())
    assert not kernel.is_compiled
    _, info = kernel.step(np.random.default_rng(0), kernel.start(rng=np.random.default_rng(0)))
    assert info.evaluations == case.data.size * (2 + len(ORDERS))
