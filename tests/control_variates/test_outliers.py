"""The rows with the largest distance, a given share of them, are the head."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumbelrace.control_variates.pilot import farthest
from gumbelrace.errors import InvalidArgument


@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=50), st.floats(0.0, 1.0, exclude_max=True))
def test_no_row_of_the_tail_is_farther_than_one_of_the_head(distances, share):
    distance = np.array(distances)
    head = farthest(distance, share)
    assert len(head) == int(share * len(distance))
    assert np.all(np.diff(head) > 0)
    assert np.delete(distance, head).max() <= distance[head].min(initial=np.inf)


def test_rows_are_in_order_and_ties_are_no_trouble():
    found = farthest(np.array([5.0, 1.0, 5.0, 5.0, 0.0]), 0.6)
    assert found.tolist() == [0, 2, 3]
    assert len(farthest(np.ones(10), 0.5)) == 5


def test_an_infinite_distance_is_the_largest():
    assert farthest(np.array([0.0, np.inf, 3.0]), 0.4).tolist() == [1]


@pytest.mark.parametrize("share", [-0.1, 1.0, 2.0, np.nan, "a"])
def test_the_share_is_checked(share):
    with pytest.raises(InvalidArgument, match=r"must lie in \[0, 1\)"):
        farthest(np.ones(3), share)
