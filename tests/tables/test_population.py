"""Whatever a table's kind, type, order and size: the numbers read are those written."""

import gzip
import io
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from gumbelrace.cli import from_csv
from gumbelrace.cli.checks import allowed
from gumbelrace.cli.files import Wanted, npy_layout, opened
from gumbelrace.cli.from_csv import CsvFile, number
from gumbelrace.cli.rows import RowFile, stretches
from gumbelrace.cli.runs import FEWEST_RUNS, MOST_RUNS, RUN_BYTES, Runs, Scores, run_length
from gumbelrace.shuffle import Rows

DTYPES = ["?", "<i1", "<u2", "<i4", ">i4", "<i8", "<f2", "<f4", ">f4", "<f8", ">f8"]
SHAPES = st.tuples(st.integers(1, 40), st.integers(2, 6))


def all_of(scores: Scores) -> np.ndarray:
    rows, arms = np.arange(scores.rows), np.arange(len(scores.names))
    return scores.file.runs(rows, 1, scores.columns[arms]).astype(float)


@st.composite
def in_files(draw) -> tuple[np.ndarray, RowFile]:
    array = draw(arrays.arrays(draw(st.sampled_from(DTYPES)), SHAPES, elements={"allow_nan": False}))
    file = io.BytesIO()
    np.save(file, np.asfortranarray(array) if draw(st.booleans()) else array)
    file.seek(0)
    return array, RowFile(file, layout_of(file), "memory")


def layout_of(file: io.BytesIO):
    class InMemory:
        def stat(self):
            return type("Stat", (), {"st_size": len(file.getvalue())})

    return npy_layout(file, InMemory())


@given(in_files(), st.data())
def test_runs_of_rows_are_those_of_the_array(pair, data):
    array, file = pair
    length = data.draw(st.integers(1, len(array)))
    index = np.array(data.draw(st.lists(st.integers(0, len(array) // length - 1), min_size=1)))
    columns = np.array(data.draw(st.permutations(range(array.shape[1]))))[: data.draw(st.integers(1, 6))]
    rows = (index[:, None] * length + np.arange(length)).ravel()
    np.testing.assert_array_equal(file.runs(index, length, columns), array[np.ix_(rows, columns)])


@given(in_files(), st.integers(1, 7), st.booleans())
def test_sums_of_runs_add_up_to_those_of_the_columns(pair, length, lowest):
    array, file = pair
    bounded = np.nan_to_num(array.astype(float), posinf=1e3, neginf=-1e3).clip(-1e3, 1e3)
    if not (bounded == array).all():
        return  # sums of very different sizes are another matter
    length = min(length, len(array))
    columns = np.arange(array.shape[1])
    scores = Scores(file, columns, tuple(columns.tolist()), allowed(None, lowest), None, lowest=lowest)
    runs = Runs(scores, length, Rows(len(array) // length))
    expected = (-1.0 if lowest else 1.0) * bounded.sum(axis=0)
    np.testing.assert_allclose(runs.totals(), expected, atol=1e-9)
    by_engine = runs.rest + runs._sums(np.arange(runs.size), columns).sum(axis=0)
    np.testing.assert_allclose(by_engine, expected, atol=1e-9)
    assert runs.scores_read == 2 * array.size - (len(array) - runs.size * length) * len(columns)


@given(st.integers(1, 2**40), st.integers(1, 10**6))
def test_runs_are_neither_few_nor_many_nor_long(rows, row_bytes):
    length = run_length(rows, row_bytes)
    runs = rows // length
    assert 1 <= runs <= MOST_RUNS
    assert length == 1 or runs >= FEWEST_RUNS
    assert length * row_bytes <= RUN_BYTES or length in (1, -(-rows // MOST_RUNS))


@given(st.lists(st.integers(0, 9), min_size=1))
def test_stretches_cut_where_rows_do_not_follow(index):
    parts = [index[first:last] for first, last in stretches(np.array(index))]
    assert list(chain.from_iterable(parts)) == index
    assert all(np.diff(part).tolist() == [1] * (len(part) - 1) for part in parts)
    assert all(after[0] != before[-1] + 1 for before, after in pairwise(parts))


def test_a_constant_column_stays_within_its_range(tmp_path):
    """Sums of equal numbers, rounded, must not leave the range that is the number itself."""
    table = np.full((FEWEST_RUNS * 7, 2), 0.1)
    table[:, 1] = 0.3
    np.save(tmp_path / "constant.npy", table)
    with opened(tmp_path / "constant.npy", Wanted(allowed((0.1, 0.3)))) as scores:
        runs = scores.population()
        assert runs.length == 7
        sums = runs._sums(np.arange(100), np.array([1, 0]))
        assert ((sums >= 7 * 0.1) & (sums <= 7 * 0.3)).all()


TEXTS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(1 - 2**53, 2**53 - 1).map(str),
    st.sampled_from(["True", "false", "TRUE", " 1.5", "2 ", "+3", "-0", ".5", "1e3", "1E-3", "-inf"]),
)


@st.composite
def csv_texts(draw) -> tuple[str, list[list[str]]]:
    columns = draw(st.integers(2, 4))
    rows = draw(st.lists(st.lists(TEXTS, min_size=columns, max_size=columns), min_size=1, max_size=8))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    quote = draw(st.sampled_from(["", '"']))
    head = [",".join(f'"name, {i}"' for i in range(columns))]
    lines = head + [",".join(f"{quote}{text}{quote}" for text in row) for row in rows]
    bom, blank, last = draw(st.sampled_from(["", "\ufeff"])), draw(st.booleans()), draw(st.booleans())
    return bom + (end * (1 + blank)).join(lines) + end * last, rows


@settings(deadline=None)
@given(csv_texts(), st.booleans(), st.integers(64, 200))
def test_csv_is_read_alike_with_and_without_pyarrow(pair, packed, block):
    text, rows = pair
    data = gzip.compress(text.encode()) if packed else text.encode()
    file = CsvFile(io.BytesIO(data), Path("table.csv.gz" if packed else "table.csv"))
    columns = np.arange(len(rows[0]))[::-1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(from_csv, "BLOCK_BYTES", block)  # batches of a few rows, or rows that fit in none
        patch.setattr(from_csv, "HELD", 6)
        by_pyarrow = np.concatenate(list(file.by_pyarrow(columns)))
        by_python = np.concatenate(list(file.by_python(columns)))
    expected = [[float({"true": 1, "false": 0}.get(t.lower(), t)) for t in row[::-1]] for row in rows]
    np.testing.assert_array_equal(by_pyarrow, expected)
    np.testing.assert_array_equal(by_python, expected)
    assert file.names == [f"name, {i}" for i in range(len(columns))]


@given(st.text(max_size=6))
def test_a_text_is_a_number_or_is_not(text):
    value = number(text)
    assert value is None or isinstance(value, float)
    if value is not None:
        assert text.isascii()
        assert text.strip().lower() in ("true", "false") or repr(float(text)) == repr(value)


@pytest.mark.parametrize("names", [["a.b", "a"], ["a b", "ä"], ["0", "1"], ["[red]x[/red]", "\\"]])
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_names_are_kept_as_they_are(run, write_table, tmp_path, names, ending):
    write_table(tmp_path / f"table{ending}", np.array([[1.0, 2.0]] * 5), names)
    assert run("best", f"table{ending}").stdout.splitlines()[0] == f"best column  {names[1]}"


def test_types_of_parquet(tmp_path):
    import decimal

    import pyarrow as pa
    from pyarrow import parquet

    columns = {
        "b": pa.array([True, False]),
        "i": pa.array([1, 2**52]),
        "h": pa.array(np.array([1.5, 2.5], np.float16)),
        "d": pa.array([decimal.Decimal("1.25"), decimal.Decimal("-2.50")]),
        "t": pa.array(["no", "numbers"]),
    }
    parquet.write_table(pa.table(columns), tmp_path / "types.parquet")
    with opened(tmp_path / "types.parquet", Wanted(allowed(None), ["b", "i", "h", "d"])) as scores:
        np.testing.assert_array_equal(all_of(scores), [[1, 1, 1.5, 1.25], [0, 2**52, 2.5, -2.5]])
        np.testing.assert_array_equal(scores.bounds, [[0, 1, 1.5, -2.5], [1, 2**52, 2.5, 1.25]])


def test_an_index_of_pandas_is_no_column(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({"ant": [1.0], "bee": [2.0], "id": [9]})
    table = table.replace_schema_metadata({"pandas": '{"index_columns": ["id"], "columns": []}'})
    parquet.write_table(table, tmp_path / "table.parquet")
    with opened(tmp_path / "table.parquet", Wanted(allowed(None))) as scores:
        assert scores.names == ("ant", "bee")
