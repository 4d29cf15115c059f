"""Racing-Normal drops the better arm far more often than it promises; proved bounds do not."""

import numpy as np
import pytest

from gumbelrace.paper.failures import CASES, COMPARED, DELTAS, SIZE, broken
from gumbelrace.paper.synthetic_claims import too_many

DRAWS = 400


@pytest.fixture(scope="module")
def rows():
    return list(broken(DRAWS, seed=1))


def test_every_case_method_and_delta_has_a_row(rows):
    assert [row[:3] for row in rows] == [(c, s, d) for c in CASES for s in COMPARED for d in DELTAS]


def test_normal_breaks_and_proved_bounds_hold(rows):
    """400 races a row, seed 1; a proved method fails if as many errors have probability below 1e-4."""
    for row in rows:
        chance = too_many(row.errors, row.draws, row.delta)
        if row.method == "Racing-Normal":
            assert chance < 1e-12, row
        else:
            assert chance > 1e-4, row


def test_the_outlier_decides():
    difference = CASES["one outlier"](np.random.default_rng(0))
    assert difference.max() > 0.9 * SIZE
    assert np.sort(difference)[-2] < 10
