"""log p(q | r) without a chain."""

import numpy as np
import pytest

from gumbelrace.applications import arch_evidence as order_evidence
from gumbelrace.applications.arch import fit_orders
from gumbelrace.applications.arch_evidence import bic_by_package, by_importance
from gumbelrace.models.arch.data import simulate
from gumbelrace.models.returns import standardised

ORDERS = (1, 2, 4)


@pytest.fixture(scope="module")
def returns():
    return standardised(simulate(1500, np.random.default_rng(1), (0.3, 0.3, 0.2)))


def test_errors_are_those_of_repetitions(returns):
    """Of 40 repetitions; a ratio of 0.6 to 1.7 of deviations has a false-alarm rate below 1e-4.

    Of orders whose every α is clear of zero: at the bend of softplus weights have longer tails, and
    200 draws of them say too little of their own error.
    """
    rng = np.random.default_rng(2)
    fitted = fit_orders(returns, (1, 2), rng=rng)
    found = [by_importance(fitted, rng, 200) for _ in range(40)]
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
    assert np.argmin(bic_by_package(returns, ORDERS)) == 1


def test_without_the_package_there_is_no_bic(returns, monkeypatch):
    monkeypatch.setattr(order_evidence, "find_spec", lambda name: None)
    assert bic_by_package(returns, ORDERS) is None
