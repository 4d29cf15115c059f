"""How results are said: numbers of any size, and bounds that are never rounded down."""

import re

import numpy as np
import pytest

import gumbelrace as gr
from gumbelrace.choosing.result import rounded_up
from gumbelrace.choosing.table import Row, cells


@pytest.mark.parametrize("size", [1e-9, 1e-4, 1.0, 1e5])
def test_bounds_are_not_rounded_down(size):
    for bound in size * np.random.default_rng(0).random(300):
        assert (1.0 - 1e-8) * bound <= float(rounded_up(bound)) <= 1.01 * bound


def test_the_statement_has_digits_whatever_the_range():
    """Scores from 0 to 1e-4, and a budget that ends before the choice is made."""
    draws = np.random.default_rng(4).random(300)
    choice = gr.choose(
        lambda chance, example: 1e-4 * (draws[example] < chance),
        [0.4, 0.5, 0.6],
        range(300),
        score_range=(0, 1e-4),
        budget=60,
        rng=1,
        progress=False,
    )
    said = float(re.search("within (.*) of the best", str(choice))[1])
    assert choice.within <= said <= 1.01 * choice.within


@pytest.mark.parametrize(
    ("mean", "low", "high", "shown"),
    [
        (0.7, 0.6, 0.8, ("0.7000", "0.6000 - 0.8000")),
        (0.7, 0.7, 0.7, ("0.7000", "0.7000 - 0.7000")),
        (0.0, 0.0, 0.0, ("0.0000", "0.0000 - 0.0000")),
        (2e-5, 1e-5, 4e-5, ("0.000020", "0.000010 - 0.000040")),
        (3e-7, 3e-7, 3e-7, ("0.0000003000", "0.0000003000 - 0.0000003000")),
    ],
)
def test_the_table_has_digits_whatever_the_range(mean, low, high, shown):
    assert cells(Row("a", mean, low, high, 10, 0, "best"))[1:3] == shown
