"""Whatever a table's type and order: the rows read are those written."""

from itertools import chain, pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.tables.cases import in_files

from gumbelrace.tables.rows import stretches


@given(in_files(), st.data())
def test_runs_of_rows_are_those_of_the_array(pair, data):
    array, file = pair
    length = data.draw(st.integers(1, len(array)))
    index = np.array(data.draw(st.lists(st.integers(0, len(array) // length - 1), min_size=1)))
    columns = np.array(data.draw(st.permutations(range(array.shape[1]))))[: data.draw(st.integers(1, 6))]
    rows = (index[:, None] * length + np.arange(length)).ravel()
    np.testing.assert_array_equal(file.runs(index, length, columns), array[np.ix_(rows, columns)])


@given(st.lists(st.integers(0, 9), min_size=1))
def test_stretches_cut_where_rows_do_not_follow(index):
    parts = [index[first:last] for first, last in stretches(np.array(index))]
    assert list(chain.from_iterable(parts)) == index
    assert all(np.diff(part).tolist() == [1] * (len(part) - 1) for part in parts)
    assert all(after[0] != before[-1] + 1 for before, after in pairwise(parts))
