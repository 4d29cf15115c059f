"""States in arrays and back: nested as they may be, nothing of them is lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tests.chain.kernels import MIXED, Point

from gumbelrace.chain.worker import Layout, flat, form, named_leaves, reform

leaves = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    arrays.arrays(
        st.sampled_from([np.float64, np.float32, np.int16, np.bool_, np.complex64]),
        arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
    ),
    st.builds(np.float32, st.floats(width=32)),
    st.builds(np.uint8, st.integers(0, 255)),
)
states = st.recursive(leaves, lambda part: st.lists(part, min_size=1, max_size=3).map(tuple), max_leaves=6)
states = states.map(lambda state: state if isinstance(state, tuple) else (state,))


@given(states)
def test_a_state_is_put_together_again(state):
    layout = Layout(state)
    columns = layout.columns(2)
    for column, value in zip(columns, layout.values(state), strict=True):
        column[1] = value
    forms = [form(value) for value in flat(state)]
    again = layout.build([reform(column[1], kind) for column, kind in zip(columns, forms, strict=True)])
    assert repr(again) == repr(state)
    for ours, theirs in zip(flat(again), flat(state), strict=True):
        assert type(ours) is type(theirs)
        assert np.asarray(ours).tobytes() == np.asarray(theirs).tobytes()


def test_names():
    assert [name for name, _ in named_leaves(MIXED)] == [leaf.name for leaf in Layout(MIXED).leaves]
    assert [name for name, _ in named_leaves((Point(1.0), (2, 3)))] == ["0.x", "1.0", "1.1"]


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_order_of_an_array_is_kept(order):
    array = np.array([[1.0, 2.0], [3.0, 4.0]], order=order)
    again = reform(array.copy(order="C"), form(array))
    assert again.flags[f"{order}_CONTIGUOUS"]
    assert again.base is None
