"""Which texts are numbers, and which columns hold them."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumbelrace.errors import InvalidArgument, InvalidFile
from gumbelrace.tables.numbers import number, numbers


@given(st.text(max_size=6))
def test_a_text_is_a_number_or_is_not(text):
    value = number(text)
    assert value is None or isinstance(value, float)
    if value is not None:
        assert text.isascii()
        assert text.strip().lower() in ("true", "false") or repr(float(text)) == repr(value)


def test_columns_of_all_types_become_numbers():
    columns = {
        "counts": [1, 2, None],
        "truths": [True, None, False],
        "texts": pa.array(["1.5", " true ", None], pa.large_string()),
    }
    block = numbers(pa.record_batch(columns), "a.parquet", 0)
    np.testing.assert_array_equal(block, [[1, 1, 1.5], [2, np.nan, 1], [np.nan, 0, np.nan]])


@pytest.mark.parametrize(
    ("columns", "error", "complaint"),
    [
        ({"a": ["1", "x"], "b": [1, 2], "c": ["y", ""]}, InvalidFile, "row 8 .* 'a' .nor in 'c'. but 'x'"),
        ({"a": pa.array([1, 2], pa.date32()), "b": [1, 2]}, InvalidArgument, "no numbers in 'a'; choose"),
        ({"a": [1.0, 2.0**60], "b": [1, 2**60]}, InvalidFile, "column 'b' has whole numbers of 2.53"),
    ],
)
def test_what_is_no_number_is_named(columns, error, complaint):
    with pytest.raises(error, match=complaint):
        numbers(pa.record_batch(columns), "a.parquet", 7)
