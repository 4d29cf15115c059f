"""Named columns from files of every kind: whatever blocks and quotes, cells are those written."""

import gzip
import io

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from gumbelrace.errors import InvalidArgument, InvalidFile
from gumbelrace.tables import delimited
from gumbelrace.tables.columns import open_columns, read_columns, texts
from gumbelrace.tables.delimited import CsvFile
from gumbelrace.tables.numbers import number, numbers
from gumbelrace.tables.source import Source

TEXT = 'author,title,year\n"Li, Wei", On races ,1999\n\nBo Ma,,\n'


def test_csv_gzip_and_parquet_give_the_same_texts(tmp_path):
    (tmp_path / "a.csv").write_text(TEXT, encoding="utf-8-sig")
    with gzip.open(tmp_path / "a.csv.gz", "wt", encoding="utf-8") as file:
        file.write(TEXT)
    table = {"author": ["Li, Wei", "Bo Ma"], "title": ["On races", None], "year": [1999, None]}
    parquet.write_table(pyarrow.table(table), tmp_path / "a.parquet")
    for path in sorted(tmp_path.iterdir()):
        with open_columns(path) as file:
            assert file.names == ["author", "title", "year"]
        read = [texts(column) for column in read_columns(path, ["year", "author", "title"])]
        assert read == [["1999", ""], ["Li, Wei", "Bo Ma"], ["On races", ""]]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("author\n", "has no rows"),
        ("", "is empty; write it again"),
        ("\nauthor\na\n", "begins with an empty line"),
        ("name,year\na,1\n", "no column 'author'; it has 'name', 'year'"),
        ("author,year,author\na,1,b\n", "column 'author' is there twice"),
        ("author,year\na\n", r"row 0 \(counted from 0\) has 1 entries, but there are 2 columns"),
        ("author,year\na,1,2\n", r"row 0 \(counted from 0\) has 3 entries, but there are 2 columns"),
    ],
)
def test_bad_files_are_explained(tmp_path, text, complaint):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(InvalidArgument, match=complaint):
        read_columns(path, ["author"])


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InvalidArgument, match=r"none\.csv does not exist"):
        read_columns(tmp_path / "none.csv", [])


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(1 - 2**53, 2**53 - 1).map(str),
    st.sampled_from(["True", "false", "TRUE", " 1.5", "2 ", "+3", "-0", ".5", "1e3", "1E-3", "-inf"]),
)


@st.composite
def csv_texts(draw) -> tuple[str, list[list[str]]]:
    width = draw(st.integers(2, 4))
    rows = draw(st.lists(st.lists(NUMBERS, min_size=width, max_size=width), min_size=1, max_size=8))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    quote = draw(st.sampled_from(["", '"']))
    head = [",".join(f'"name, {i}"' for i in range(width))]
    lines = head + [",".join(f"{quote}{text}{quote}" for text in row) for row in rows]
    bom, blank, last = draw(st.sampled_from(["", "\ufeff"])), draw(st.booleans()), draw(st.booleans())
    return bom + (end * (1 + blank)).join(lines) + end * last, rows


@settings(deadline=None)
@given(csv_texts(), st.booleans(), st.integers(64, 200))
def test_numbers_are_those_of_the_texts(pair, packed, block):
    text, rows = pair
    data = gzip.compress(text.encode()) if packed else text.encode()
    file = CsvFile(Source(io.BytesIO(data), "table", ".csv.gz" if packed else ".csv"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            delimited, "CSV_BLOCKS", (block, 2**12)
        )  # batches of a few rows, or rows that fit in none
        batches = file.batches(file.names[::-1])
        found = np.concatenate([numbers(batch, file.name, 0) for batch in batches])
    expected = [[float({"true": 1, "false": 0}.get(t.lower(), t)) for t in row[::-1]] for row in rows]
    np.testing.assert_array_equal(found, expected)
    assert file.names == [f"name, {i}" for i in range(len(rows[0]))]


def test_a_row_is_named_whatever_comes_before_it(tmp_path, monkeypatch):
    """Rows are counted across blocks, without empty lines, and a cell of two lines is one cell."""
    monkeypatch.setattr(delimited, "CSV_BLOCKS", (64,))
    (tmp_path / "a.csv").write_text('ant,bee\n"1\n",2\n\n' + "3,4\n" * 100 + "5\n" + "6,7\n" * 100)
    with pytest.raises(InvalidFile, match=r"row 101 \(counted from 0\) has 1 entries, but there are 2"):
        read_columns(tmp_path / "a.csv", ["bee"])


def test_a_row_that_fits_in_no_block_is_no_csv(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "CSV_BLOCKS", (16, 64))
    (tmp_path / "a.csv").write_text("ant,bee\n1,2\n" + "3" * 200 + ",4\n5,6\n")
    with pytest.raises(InvalidFile, match=r"is not a \.csv file, or is damaged \(.*straddl"):
        read_columns(tmp_path / "a.csv", ["bee"])
    monkeypatch.setattr(delimited, "CSV_BLOCKS", (16, 64, 256))
    assert read_columns(tmp_path / "a.csv", ["bee", "bee"])[1].tolist() == ["2", "4", "6"]


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
        "texts": pyarrow.array(["1.5", " true ", None], pyarrow.large_string()),
    }
    block = numbers(pyarrow.record_batch(columns), "a.parquet", 0)
    np.testing.assert_array_equal(block, [[1, 1, 1.5], [2, np.nan, 1], [np.nan, 0, np.nan]])


@pytest.mark.parametrize(
    ("columns", "error", "complaint"),
    [
        ({"a": ["1", "x"], "b": [1, 2], "c": ["y", ""]}, InvalidFile, "row 8 .* 'a' .nor in 'c'. but 'x'"),
        (
            {"a": pyarrow.array([1, 2], pyarrow.date32()), "b": [1, 2]},
            InvalidArgument,
            "no numbers in 'a'; choose",
        ),
        ({"a": [1.0, 2.0**60], "b": [1, 2**60]}, InvalidFile, "column 'b' has whole numbers of 2.53"),
    ],
)
def test_what_is_no_number_is_named(columns, error, complaint):
    with pytest.raises(error, match=complaint):
        numbers(pyarrow.record_batch(columns), "a.parquet", 7)
