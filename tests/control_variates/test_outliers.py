"""The rows with the largest distance, a given share of them, are always read."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumbelrace.control_variates.pilot import farthest
from gumbelrace.errors import InvalidArgument


@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=50), st.floats(0.0, 1.0, exclude_max=True))
def test_no_row_that_is_raced_is_farther_than_one_always_read(distances, share):
    distance = np.array(distances)
    found = farthest(distance, share)
    count = int(share * len(distance))
    if count == 0:
        assert found is None
        return
    assert len(found.rows) == count
    assert distance[found.raced].max() <= distance[found.rows].min()
    np.testing.assert_array_equal(np.sort([*found.rows, *found.raced]), np.arange(len(distance)))


def test_rows_are_in_order_and_ties_are_no_trouble():
    found = farthest(np.array([5.0, 1.0, 5.0, 5.0, 0.0]), 0.6)
    assert found.rows.tolist() == [0, 2, 3]
    assert len(farthest(np.ones(10), 0.5).rows) == 5


def test_an_infinite_distance_is_the_largest():
    assert farthest(np.array([0.0, np.inf, 3.0]), 0.4).rows.tolist() == [1]


@pytest.mark.parametrize("share", [-0.1, 1.0, 2.0, np.nan, "a"])
def test_the_share_is_checked(share):
    with pytest.raises(InvalidArgument, match=r"must lie in \[0, 1\)"):
        farthest(np.ones(3), share)
