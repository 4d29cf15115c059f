"""The picture of the orders: every colour is the page's, and what is unknown does not stop it."""

import math
from typing import NamedTuple

import pytest

from gumbelrace.report.arch_picture import give_or_take, orders_picture
from gumbelrace.report.page import chance


class Order(NamedTuple):
    order: int
    log_probability: float
    error: float


FOUND = [Order(5, -math.inf, math.nan), Order(10, math.log(0.9), 0.02), Order(15, math.log(0.1), 0.2)]


def test_the_picture_says_which_order_is_the_most_probable():
    (panel,) = orders_picture(FOUND).panels
    assert 'aria-label="Order 10 has the highest probability, 0.9."' in panel.svg
    assert "var(--accent)" in panel.svg


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (FOUND[1], "give or take 0.018"),
        (Order(1, 0.0, 1e-6), "give or take less than 0.001"),
        (Order(1, 0.0, math.inf), "of unknown error"),
    ],
)
def test_how_sure_a_probability_is(order, said):
    assert give_or_take(order) == said


def test_a_probability_near_one_is_not_one():
    assert [chance(p) for p in (1.0, 0.9996, 0.9, 0.0004)] == [
        "above 0.999",
        "above 0.999",
        "0.9",
        "below 0.001",
    ]
