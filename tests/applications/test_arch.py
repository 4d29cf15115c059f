"""The order of an ARCH model: the chain's probabilities are those of the evidence.

Oracle: importance sampling from the Laplace approximation. False-alarm rate 1e-4 over seeds, by the
quantile 4.5 of a normal law for three orders; the error of the estimates is that of batch means.
"""

import numpy as np
import pytest

import gumbelrace as gr
from gumbelrace.applications import arch
from gumbelrace.errors import InvalidArgument
from gumbelrace.models.arch.data import simulate, standardised
from gumbelrace.models.arch.model import log_evidence_by_importance

ALPHA = (0.3, 0.3, 0.2)  # an order of 2, which shorter and longer ones nearly match in 1,500 rows


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(1)
    return arch.fit_orders(standardised(simulate(1500, rng, ALPHA, nu=6.0)), (1, 2, 4), rng=rng)


def test_probabilities_are_those_of_the_evidence(fitted):
    rng = np.random.default_rng(2)
    kernel = fitted.kernel(gr.Race(delta=0.01))
    assert kernel.is_compiled
    start = fitted.start(kernel, rng)
    trace = gr.run(kernel, start, steps=4000, rng=rng, chains=2, progress=False)
    found = arch.posterior(trace["model"], start.log_weights, fitted)
    evidence = [log_evidence_by_importance(fit, fitted.data, rng, 4000) for fit in fitted.fits]
    log_p = np.array([one.log_evidence for one in evidence])
    log_p -= np.logaddexp.reduce(log_p)
    for one, oracle, by_importance in zip(found, log_p, evidence, strict=True):
        error = np.hypot(one.error, by_importance.error)
        assert abs(one.log_probability - oracle) < 4.5 * error + 0.01  # and δ for each decision
        assert one.visits > 500
        assert abs(one.laplace - oracle) < 0.5
    assert sum(np.exp(one.log_probability) for one in found) == pytest.approx(1.0)


def test_shifted_weights_are_noticed(fitted):
    """Negative control: visits read with other weights than the chain had."""
    rng = np.random.default_rng(3)
    kernel = fitted.kernel(gr.Race(delta=0.01))
    start = fitted.start(kernel, rng)
    visited = gr.run(kernel, start, steps=2000, rng=rng, chains=2, progress=False)["model"]
    right, wrong = (
        arch.posterior(visited, start.log_weights + shift, fitted)[0] for shift in (0.0, [1.0, 0.0, 0.0])
    )
    assert right.log_probability - wrong.log_probability > 10 * right.error


def test_the_exact_twin_reads_everything(fitted):
    kernel = fitted.kernel(gr.Exact())
    block = kernel.steps(np.random.default_rng(4), fitted.start(kernel, np.random.default_rng(4)), 5)
    np.testing.assert_array_equal(block.info.evaluations, fitted.data.size * (2 + 3))


def test_orders_that_were_never_visited_have_no_probability(fitted):
    visited = np.zeros((1, 40), np.int64)
    found = arch.posterior(visited, np.zeros(3), fitted)
    assert found[0].log_probability == pytest.approx(0.0)
    assert found[1].log_probability == -np.inf


@pytest.mark.parametrize("wanted", [(3,), (4, 2), (2, 2)])
def test_orders_are_increasing(wanted):
    rng = np.random.default_rng(5)
    with pytest.raises(InvalidArgument, match="orders"):
        arch.fit_orders(standardised(simulate(500, rng)), wanted, rng=rng)


def test_short_chains_are_refused(fitted):
    with pytest.raises(InvalidArgument, match="too short"):
        arch.posterior(np.zeros((2, 10), np.int64), np.zeros(3), fitted)


@pytest.fixture(scope="module")
def returns():
    return standardised(simulate(1500, np.random.default_rng(1), ALPHA))


def test_errors_are_those_of_repetitions(returns):
    """Of 40 repetitions; a ratio of 0.6 to 1.7 of deviations has a false-alarm rate below 1e-4.

    Of orders whose every α is clear of zero: at the bend of softplus weights have longer tails, and
    200 draws of them say too little of their own error.
    """
    rng = np.random.default_rng(2)
    fitted = arch.fit_orders(returns, (1, 2), rng=rng)
    found = [arch.by_importance(fitted, rng, 200) for _ in range(40)]
    spread = np.std([one.log_probability for one in found], axis=0, ddof=1)
    claimed = np.mean([one.error for one in found], axis=0)
    assert 0.6 < spread[0] / claimed[0] < 1.7
    assert spread[1] < 1e-12 > claimed[1]  # order 2 is certain
    assert np.exp(found[0].log_probability).sum() == pytest.approx(1.0)
    assert np.abs(found[0].log_probability - laplace(fitted)).max() < 0.5


def laplace(fitted):
    return fitted.log_evidence - np.logaddexp.reduce(fitted.log_evidence)


def test_the_package_prefers_the_order_of_the_simulation():
    pytest.importorskip("arch")
    returns = standardised(simulate(3000, np.random.default_rng(3), (0.3, 0.3, 0.3)))
    assert np.argmin(arch.bic_by_package(returns, (1, 2, 4))) == 1


def test_without_the_package_there_is_no_bic(returns, monkeypatch):
    monkeypatch.setattr(arch, "find_spec", lambda name: None)
    assert arch.bic_by_package(returns, (1, 2, 4)) is None
