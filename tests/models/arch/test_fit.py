"""Modes and evidences of ARCH models, against quadrature and across parametrisations."""

import itertools

import numpy as np
import pytest
from tests.models.arch.cases import fitted, large, seeded, small

from gumbelrace.errors import InvalidArgument, InvalidGenerator, NoMode
from gumbelrace.models.arch import Arch, lagged, laplace, log_evidence_by_importance
from gumbelrace.models.arch.fit import log_posterior
from gumbelrace.models.returns import standardised


def quadrature(fit, data, nodes=24):
    """Integrate prior times likelihood on a grid of Gauss-Hermite nodes around the mode."""
    axis, weight = np.polynomial.hermite_e.hermegauss(nodes)
    z = np.array(list(itertools.product(axis, repeat=len(fit.mean))))
    log_weight = sum(map(np.log, np.meshgrid(*[weight] * len(fit.mean), indexing="ij"))).ravel()
    log_volume = np.log(np.diag(fit.root)).sum()
    values = [log_posterior(fit.model, x, data) for x in fit.at(z)] + 0.5 * np.square(z).sum(axis=1)
    return float(np.logaddexp.reduce(values + log_weight) + log_volume)


@pytest.mark.parametrize("tau", [0.003, 0.2, 1.0])
@pytest.mark.parametrize("order", [1, 10, 12])
def test_the_mode_is_a_maximum(order, tau):
    fit, data = fitted(order, tau), large()
    gradient = fit.model.prior_gradient(fit.mean)
    gradient += fit.model.gradient(np.arange(data.size), fit.mean, data)
    assert gradient @ fit.covariance @ gradient < 1e-8
    np.testing.assert_allclose(fit.covariance @ -fit.hessian, np.eye(order + 2), atol=1e-6)
    np.testing.assert_allclose(np.triu(fit.root, 1), 0.0, atol=0.0)
    assert fit.log_posterior == log_posterior(fit.model, fit.mean, data)
    others = [log_posterior(fit.model, x, data) for x in fit.sample(seeded(), 100)]
    assert max(others) < fit.log_posterior


@pytest.mark.parametrize("order", [20, 30])
def test_a_mode_is_found_in_few_rows_of_pure_noise(order):
    fit = laplace(Arch(order), lagged(standardised(seeded(1).standard_t(3, 200)), order))
    assert np.isfinite(fit.log_evidence)


@pytest.mark.parametrize("tau", [0.003, 1.0])
def test_evidence_agrees_with_quadrature(tau):
    """Order 1, three parameters; seed 2, 4,000 draws; a false alarm at 5 errors has odds of 1e-6.

    Negative control: the same estimate with a prior of ν that is flat.
    """
    data = small()
    fit = laplace(Arch(1, tau), data)
    exact = quadrature(fit, data)
    found = log_evidence_by_importance(fit, data, seeded(2), 4000)
    assert 0.0 < found.efficiency <= 1.0
    assert abs(found.log_evidence - exact) < 5 * found.error
    assert found.error < 0.05
    flat = found.log_evidence + fit.model.natural(fit.mean)[1]
    assert abs(flat - exact) > 5 * found.error
    assert abs(fit.log_evidence - exact) < 0.3


def test_evidence_does_not_depend_on_the_parametrisation():
    """τ = 0.003 and τ = 1 at order 4, seeds 3 and 4: the difference within 5 of its errors."""
    narrow, wide = (
        log_evidence_by_importance(fitted(4, tau), large(), seeded(seed))
        for tau, seed in ((0.003, 3), (1.0, 4))
    )
    assert abs(narrow.log_evidence - wide.log_evidence) < 5 * np.hypot(narrow.error, wide.error)


def test_errors_are_those_of_repeated_estimates():
    """40 estimates of 200 draws: their deviation is within 1/2 to 2 of the mean error (odds 1e-6)."""
    runs = [log_evidence_by_importance(fitted(4), large(), seeded(k), 200) for k in range(40)]
    ratio = np.std([run.log_evidence for run in runs], ddof=1) / np.mean([run.error for run in runs])
    assert 0.5 < ratio < 2.0


def test_the_order_of_simulated_data_is_found():
    """13,000 returns of order 10: the log evidence of 4 and 12 is smaller by 5 and more."""
    evidence = {order: fitted(order).log_evidence for order in (4, 10, 12)}
    assert evidence[10] > max(evidence[4], evidence[12]) + 5.0


def test_draws_have_the_laws_covariance():
    fit = fitted(4)
    z = np.linalg.solve(fit.root, (fit.sample(seeded(), 20_000) - fit.mean).T)
    np.testing.assert_allclose(np.cov(z), np.eye(6), atol=0.05)  # 7 standard errors
    np.testing.assert_array_equal(fit.at(np.zeros((1, 6)))[0], fit.mean)


def test_failures_are_explained(monkeypatch):
    with pytest.raises(InvalidArgument, match="draws"):
        log_evidence_by_importance(fitted(4), large(), seeded(), 1)
    with pytest.raises(InvalidGenerator):
        log_evidence_by_importance(fitted(4), large(), 0.5)
    monkeypatch.setattr("gumbelrace.models.arch.fit.GOOD", -1.0)
    with pytest.raises(NoMode, match="order 4"):
        laplace(Arch(4), small())
