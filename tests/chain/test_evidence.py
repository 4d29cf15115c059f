"""Log evidence from visits: unbiased, with errors that are as large as they say."""

import warnings

import numpy as np
import pytest
from scipy import stats
from tests.chain.kernels import Autoregression, Point
from tests.common import seeded
from tests.kernels.nested import Nested, P

import gumbelrace as gr
from gumbelrace.chain import evidence
from gumbelrace.chain.trace import Trace
from gumbelrace.errors import InvalidArgument, WeakEvidence

ALARM = 1e-4
TRUE = np.array([0.0, 1.0, -2.0])


def trace_of(models, weights):
    """Make the trace of chains that went through these models with fixed weights."""
    chains, draws = models.shape
    all_weights = np.broadcast_to(np.reshape(weights, (-1, 1, 3)), (chains, draws, 3))
    nothing = np.zeros((chains, draws))
    states = gr.kernels.ModelChoice(models, (), all_weights, nothing)
    return Trace(None, states, gr.kernels.Info(*[nothing] * 5), [None] * chains)


def sticky(weights, draws, rng, stay=0.9):
    """Chains, one for each row of weights, that stay with probability 0.9, else draw the model anew."""
    shares = np.exp(weights + TRUE)
    cumulated = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)
    models = np.zeros((len(weights), draws), np.int64)
    now = np.zeros(len(weights), np.int64)
    for t in range(-100, draws):
        drawn = (rng.random((len(weights), 1)) > cumulated[:, :2]).sum(axis=1)
        now = np.where(rng.random(len(weights)) < stay, now, drawn)
        models[:, max(t, 0)] = now
    return models


def scores(replicates=150, chains=2, draws=1000, batches=None):
    """Give (estimate - truth) / error of many runs, whose chains have weights of their own."""
    rng = seeded(1)
    weights = -TRUE + rng.normal(0.0, 0.5, (replicates * chains, 3))
    models, found = sticky(weights, draws, rng), []
    with pytest.MonkeyPatch.context() as patch:
        if batches:
            patch.setattr(evidence, "BATCHES", batches)
        for part in np.split(np.arange(len(models)), replicates):
            one = gr.log_evidence(trace_of(models[part], weights[part]))
            found.append((one.values - TRUE)[1:] / one.errors[1:])
    return np.array(found)


def test_errors_are_as_large_as_they_say():
    """150 runs, two estimates each: mean square 1.2 at most (t law, short batches), false alarms 1e-4.

    Negative control: errors from single draws, as if these were independent.
    """
    limit = 1.2 * stats.chi2.isf(ALARM, 150) / 150
    right, wrong = (np.mean(scores(batches=batches) ** 2, axis=0) for batches in (None, 2000))
    assert (right < limit).all()
    assert (right > stats.chi2.ppf(ALARM, 150) / 150).all()
    assert (wrong > limit).all()


@pytest.mark.parametrize("right", [True, False])
def test_nested_models_have_their_exact_evidence(right):
    """Oracle: Bayes' theorem in closed form; t test with 31 degrees of freedom, false alarms 1e-4.

    Negative control: weights of pseudopriors without half of their constants.
    """
    problem = Nested()
    kernel = problem.kernel(adapt_for=300)
    if not right:
        kernel.__dict__["_laws"] = kernel._laws._replace(log_volumes=0.5 * kernel._laws.log_volumes)
    rng = seeded(2)
    trace = gr.run(kernel, kernel.start(rng=rng), steps=4000, rng=rng, chains=4, warmup=300, progress=False)
    found, exact = gr.log_evidence(trace), np.log(P) - problem.log_weights
    off = np.abs(found.values - (exact - exact[0]))[1:] / found.errors[1:]
    assert (off < stats.t.isf(ALARM / 4, 31)).all() == right
    assert (found.errors[1:] < 0.2).all()
    assert found.errors[0] == found.values[0] == 0.0
    assert found.visits.sum() == 16_000
    other = gr.log_evidence(trace, reference=2)
    np.testing.assert_allclose(other.values, found.values - found.values[2])
    assert other.errors[0] == pytest.approx(found.errors[2])


def test_weights_that_did_not_get_there_are_noticed():
    """A start 400 nats off, from which 300 steps of Wang-Landau gains move weights by 140 at most."""
    problem = Nested()
    kernel = problem.kernel(adapt_for=300)
    rng = seeded(3)
    start = kernel.start(rng=rng)._replace(log_weights=np.array([0.0, -400.0, 0.0]))
    trace = gr.run(kernel, start, steps=500, rng=rng, warmup=300, progress=False)
    with pytest.warns(WeakEvidence, match=r"model 1 has 0 draws.*log_weights"):
        found = gr.log_evidence(trace)
    assert np.isnan(found.values[1])
    assert found.errors[1] == np.inf
    assert np.isfinite(found.errors[2])


def test_chains_that_never_change_the_model_know_nothing():
    models = np.repeat([[0], [1]], 100, axis=1)
    with pytest.warns(WeakEvidence):
        found = gr.log_evidence(trace_of(models, np.zeros(3)))
    assert (found.errors == np.inf).all()


def test_enough_visits_need_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gr.log_evidence(trace_of(sticky(-TRUE[None], 2000, seeded(4)), -TRUE))


def test_what_is_wrong_is_said():
    rng = seeded()
    kernel = Nested().kernel(adapt_for=100)
    adapting = gr.run(kernel, kernel.start(rng=rng), steps=100, rng=rng, progress=False)
    with pytest.raises(InvalidArgument, match="more steps than adapt_for"):
        gr.log_evidence(adapting)
    with pytest.raises(InvalidArgument, match="CarlinChib"):
        gr.log_evidence(gr.run(Autoregression(), Point(0.0), steps=10, rng=rng, progress=False))
    with pytest.raises(InvalidArgument, match="reference"):
        gr.log_evidence(trace_of(sticky(-TRUE[None], 100, rng), -TRUE), reference=3)
