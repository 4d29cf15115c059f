"""The paper's control variates of ARCH models."""

import numpy as np
import pytest
from tests.models.arch.cases import fitted, large, seeded

import gumbelrace as gr
from gumbelrace.models.arch import ArchLikelihood
from gumbelrace.models.arch.rows import log_factor, points_of
from gumbelrace.paper.arch_setting import binned
from gumbelrace.population.control import table_of
from gumbelrace.population.likelihood import by_arm

ORDERS = (4, 10)


def made(share=0.2, bins=10):
    return binned(large(), [fitted(order) for order in ORDERS], bins, share)


def drawn(each=10):
    rng = seeded(2)
    return points_of([x for order in ORDERS for x in fitted(order).sample(rng, each)], 0.003, large().lags)


def log_factors(points):
    every = np.arange(large().size), np.arange(len(points))
    return table_of(by_arm(log_factor))(*every, (points, *large().arrays))


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_sums_are_those_of_the_rows(share):
    control, points = made(share), drawn()
    found = control.at(points)
    tail = control.rows.tail
    np.testing.assert_allclose(found.sums, found.values(tail, np.arange(20)).sum(axis=0), atol=1e-7)


def test_it_reduces_the_variance_by_two_orders_of_magnitude():
    """Of two arms of order 10, and of arms of different orders, a median of 10, as the paper says: 2 to 3.

    Negative control: with a single bin it does not.
    """
    points, plain = drawn(), log_factors(drawn())

    def gains(control):
        tail = control.rows.tail
        left = plain - control.at(points).values(np.arange(large().size), np.arange(20))
        pairs = (slice(10, 15), slice(15, 20)), (slice(0, 10), slice(10, 20))
        return [
            np.median(
                np.var((plain[:, a] - plain[:, b])[tail], axis=0)
                / np.var((left[:, a] - left[:, b])[tail], axis=0)
            )
            for a, b in pairs
        ]

    assert min(gains(made())) > 50.0
    assert max(gains(made(bins=1))) < 50.0


def test_races_with_it_find_the_best_arm():
    likelihood, rng = ArchLikelihood(large(), control=made()), seeded(0)
    far = fitted(10).at(np.full((1, 12), 1.5))[0]
    outcome = gr.Race(gr.methods.Normal(), delta=1e-6).best(likelihood([far, fitted(10).mean]), None, rng)
    assert outcome.arm == 1
