"""Desks of ARCH likelihoods: exact chains are the same with and without a control variate."""

import ctypes

import numba
import numpy as np
import pytest

import gumbelrace as gr
from gumbelrace.errors import InvalidArgument
from gumbelrace.models.arch.build import expand
from gumbelrace.models.arch.data import lagged, simulate
from gumbelrace.models.arch.fit import laplace
from gumbelrace.models.arch.likelihood import ArchLikelihood
from gumbelrace.models.arch.model import Arch, compiled_prior
from gumbelrace.models.returns import standardised

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

    def kernel(self, control, solver, **options):
        likelihood, models = ArchLikelihood(self.data, control=control), []
        for fit in self.fits:
            law = gr.NormalPseudoprior(fit.mean, fit.covariance)
            move = gr.Metropolis(likelihood, gr.Autoregressive(law), log_prior, solver)
            models.append(gr.Candidate(move, law, log_prior))
        return gr.CarlinChib(models, likelihood, solver=solver, **options)

    def steps(self, kernel, count, seed=2):
        state = kernel.start(np.random.default_rng(0))._replace(log_weights=self.weights)
        return kernel.steps(np.random.default_rng(seed), state, count)


@pytest.fixture(scope="module")
def case():
    return Case()


def test_a_control_variate_changes_nothing_of_an_exact_chain(case):
    """Oracle: the plain log factors. Offsets must hold the prior, known sums and what is always read."""
    plain, controlled = (case.steps(case.kernel(c, gr.Exact()), 60) for c in (None, case.control))
    np.testing.assert_array_equal(plain.states.model, controlled.states.model)
    for mine, other in zip(plain.states.parameters, controlled.states.parameters, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-12)
    assert len(set(plain.states.model.tolist())) == len(ORDERS)
    np.testing.assert_array_equal(plain.info.evaluations, case.data.size * (2 + len(ORDERS)))
    np.testing.assert_array_equal(controlled.info.evaluations, plain.info.evaluations)


def test_a_raced_chain_is_close_to_the_exact_one_and_reads_less(case):
    """The same noise and δ = 1e-4: of 200 steps with two decisions each, 0.04 are expected to differ."""
    exact = case.steps(case.kernel(None, gr.Exact()), 200)
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
    desk = ArchLikelihood(case.data, control=case.control).desk(2, np.array([4]), impossible)
    offset, low, high = np.zeros((3, 2))
    pointers = [part.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for part in (offset, low, high)]
    words = desk.packed.words.ctypes.data_as(ctypes.POINTER(ctypes.c_int64))
    assert desk.setter.ctypes(words, *pointers) == 0
    assert (offset == -np.inf).all()


def test_only_expansions_have_desks(case):
    family = gr.parameter_taylor  # any other control variate
    with pytest.raises(InvalidArgument, match="desk"):
        ArchLikelihood(case.data, control=family).desk(2, np.array([4]), log_prior)
