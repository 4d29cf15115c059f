"""Tables in files as populations: the rows read are those written, and sums of chunks add up."""

import decimal
import io
from itertools import chain, pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from pyarrow import parquet

from gumbelrace.core.rows import Rows
from gumbelrace.tables.numbers import allowed
from gumbelrace.tables.population import (
    CHUNK_BYTES,
    FEWEST_CHUNKS,
    MOST_CHUNKS,
    Chunks,
    Scores,
    Wanted,
    chunk_length,
    open_scores,
)
from gumbelrace.tables.rowfile import RowFile, npy_layout, stretches
from gumbelrace.tables.source import Source

DTYPES = ["?", "<i1", "<u2", "<i4", ">i4", "<i8", "<f2", "<f4", ">f4", "<f8", ">f8"]
SHAPES = st.tuples(st.integers(1, 40), st.integers(2, 6))


@st.composite
def in_files(draw) -> tuple[np.ndarray, RowFile]:
    array = draw(arrays.arrays(draw(st.sampled_from(DTYPES)), SHAPES, elements={"allow_nan": False}))
    file = io.BytesIO()
    np.save(file, np.asfortranarray(array) if draw(st.booleans()) else array)
    file.seek(0)
    return array, RowFile(file, layout_of(file), "memory")


def layout_of(file: io.BytesIO):
    return npy_layout(Source(file, "memory", ".npy"))


@given(in_files(), st.data())
def test_chunks_of_rows_are_those_of_the_array(pair, data):
    array, file = pair
    length = data.draw(st.integers(1, len(array)))
    index = np.array(data.draw(st.lists(st.integers(0, len(array) // length - 1), min_size=1)))
    columns = np.array(data.draw(st.permutations(range(array.shape[1]))))[: data.draw(st.integers(1, 6))]
    rows = (index[:, None] * length + np.arange(length)).ravel()
    np.testing.assert_array_equal(file.read_chunks(index, length, columns), array[np.ix_(rows, columns)])


@given(st.lists(st.integers(0, 9), min_size=1))
def test_stretches_cut_where_rows_do_not_follow(index):
    parts = [index[first:last] for first, last in stretches(np.array(index))]
    assert list(chain.from_iterable(parts)) == index
    assert all(np.diff(part).tolist() == [1] * (len(part) - 1) for part in parts)
    assert all(after[0] != before[-1] + 1 for before, after in pairwise(parts))


@given(in_files(), st.integers(1, 7), st.booleans())
def test_sums_of_chunks_add_up_to_those_of_the_columns(pair, length, lowest):
    array, file = pair
    bounded = np.nan_to_num(array.astype(float), posinf=1e3, neginf=-1e3).clip(-1e3, 1e3)
    if not (bounded == array).all():
        return  # sums of very different sizes are another matter
    length = min(length, len(array))
    columns = np.arange(array.shape[1])
    scores = Scores(
        file, columns, tuple(columns.tolist()), allowed(None, lowest, "memory"), None, lowest=lowest
    )
    chunks = Chunks(scores, length, Rows(len(array) // length))
    expected = (-1.0 if lowest else 1.0) * bounded.sum(axis=0)
    np.testing.assert_allclose(chunks.totals(), expected, atol=1e-9)
    by_engine = chunks.remainder + chunks._sums(np.arange(chunks.size), columns).sum(axis=0)
    np.testing.assert_allclose(by_engine, expected, atol=1e-9)
    assert chunks.scores_read == 2 * array.size - (len(array) - chunks.size * length) * len(columns)


@given(st.integers(1, 2**40), st.integers(1, 10**6))
def test_chunks_are_neither_few_nor_many_nor_long(rows, row_bytes):
    length = chunk_length(rows, row_bytes)
    chunks = rows // length
    assert 1 <= chunks <= MOST_CHUNKS
    assert length == 1 or chunks >= FEWEST_CHUNKS
    assert length * row_bytes <= CHUNK_BYTES or length in (1, -(-rows // MOST_CHUNKS))


def test_a_constant_column_stays_within_its_range(tmp_path):
    """Sums of equal numbers, rounded, must not leave the range that is the number itself."""
    table = np.full((FEWEST_CHUNKS * 7, 2), 0.1)
    table[:, 1] = 0.3
    np.save(tmp_path / "constant.npy", table)
    with open_scores(tmp_path / "constant.npy", Wanted(limits=(0.1, 0.3))) as scores:
        chunks = scores.population()
        assert chunks.length == 7
        sums = chunks._sums(np.arange(100), np.array([1, 0]))
        assert ((sums >= 7 * 0.1) & (sums <= 7 * 0.3)).all()


def all_of(scores: Scores) -> np.ndarray:
    rows, arms = np.arange(scores.rows), np.arange(len(scores.names))
    return scores.file.read_chunks(rows, 1, scores.columns[arms]).astype(float)


def test_types_of_parquet(tmp_path):
    columns = {
        "b": pa.array([True, False]),
        "i": pa.array([1, 2**52]),
        "h": pa.array(np.array([1.5, 2.5], np.float16)),
        "d": pa.array([decimal.Decimal("1.25"), decimal.Decimal("-2.50")]),
        "t": pa.array(["no", "numbers"]),
    }
    parquet.write_table(pa.table(columns), tmp_path / "types.parquet")
    with open_scores(tmp_path / "types.parquet", Wanted(["b", "i", "h", "d"])) as scores:
        np.testing.assert_array_equal(all_of(scores), [[1, 1, 1.5, 1.25], [0, 2**52, 2.5, -2.5]])
        np.testing.assert_array_equal(scores.bounds, [[0, 1, 1.5, -2.5], [1, 2**52, 2.5, 1.25]])


def test_an_index_of_pandas_is_no_column(tmp_path):
    table = pa.table({"ant": [1.0], "bee": [2.0], "id": [9]})
    table = table.replace_schema_metadata({"pandas": '{"index_columns": ["id"], "columns": []}'})
    parquet.write_table(table, tmp_path / "table.parquet")
    with open_scores(tmp_path / "table.parquet") as scores:
        assert scores.names == ("ant", "bee")
