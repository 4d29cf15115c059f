"""CSV files: whatever their blocks, quotes and line ends, the numbers read are those written."""

import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gumbelrace.errors import InvalidFile
from gumbelrace.tables import csv
from gumbelrace.tables.columns import read_columns
from gumbelrace.tables.csv import CsvFile
from gumbelrace.tables.numbers import numbers

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
def test_numbers_are_those_of_the_texts(pair, packed, block):
    text, rows = pair
    data = gzip.compress(text.encode()) if packed else text.encode()
    file = CsvFile(io.BytesIO(data), Path("table.csv.gz" if packed else "table.csv"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv, "BLOCKS", (block, 2**12))  # batches of a few rows, or rows that fit in none
        batches = file.batches(file.names[::-1])
        found = np.concatenate([numbers(batch, file.path, 0) for batch in batches])
    expected = [[float({"true": 1, "false": 0}.get(t.lower(), t)) for t in row[::-1]] for row in rows]
    np.testing.assert_array_equal(found, expected)
    assert file.names == [f"name, {i}" for i in range(len(rows[0]))]


def test_a_row_is_named_whatever_comes_before_it(tmp_path, monkeypatch):
    """Rows are counted across blocks, without empty lines, and a cell of two lines is one cell."""
    monkeypatch.setattr(csv, "BLOCKS", (64,))
    (tmp_path / "a.csv").write_text('ant,bee\n"1\n",2\n\n' + "3,4\n" * 100 + "5\n" + "6,7\n" * 100)
    with pytest.raises(InvalidFile, match=r"row 101 \(counted from 0\) has 1 entries, but there are 2"):
        read_columns(tmp_path / "a.csv", ["bee"])


def test_a_row_that_fits_in_no_block_is_no_csv(tmp_path, monkeypatch):
    monkeypatch.setattr(csv, "BLOCKS", (16, 64))
    (tmp_path / "a.csv").write_text("ant,bee\n1,2\n" + "3" * 200 + ",4\n5,6\n")
    with pytest.raises(InvalidFile, match=r"is not a \.csv file \(.*straddl"):
        read_columns(tmp_path / "a.csv", ["bee"])
    monkeypatch.setattr(csv, "BLOCKS", (16, 64, 256))
    assert read_columns(tmp_path / "a.csv", ["bee", "bee"])[1].tolist() == ["2", "4", "6"]
