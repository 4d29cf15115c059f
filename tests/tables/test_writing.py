"""Rows that are written can be read again by others."""

import csv

import pytest
from pyarrow import parquet

from gumbelrace.paper.claims import Claim
from gumbelrace.paper.synthetic_study import Problem
from gumbelrace.tables.writing import Kind, write_rows

ROWS = [Problem(2, "normal", 0.1), Problem(10, "log,normal", 1 / 3)]


def test_csv(tmp_path):
    write_rows(tmp_path, "problems", ROWS)
    with open(tmp_path / "problems.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [Problem(int(r["arms"]), r["shape"], float(r["scale"])) for r in rows] == ROWS


def test_parquet(tmp_path):
    assert write_rows(tmp_path, "problems", ROWS, Kind.PARQUET) == "problems.parquet"
    read = parquet.read_table(tmp_path / "problems.parquet").to_pylist()
    assert [Problem(**row) for row in read] == ROWS
    claims = [Claim("σ", "δ", None), Claim("a", "b", True, "c")]
    write_rows(tmp_path, "claims", claims, Kind.PARQUET)
    assert parquet.read_table(tmp_path / "claims.parquet").column("held").to_pylist() == [None, True]


def test_a_table_is_there_once(tmp_path):
    """The kind that is asked for replaces the other."""
    for kind in (Kind.CSV, Kind.PARQUET, Kind.CSV):
        assert write_rows(tmp_path, "problems", ROWS, kind) == f"problems.{kind}"
        assert [path.name for path in tmp_path.iterdir()] == [f"problems.{kind}"]


def test_an_error_leaves_the_old_file(tmp_path):
    write_rows(tmp_path, "problems", ROWS)
    before = (tmp_path / "problems.csv").read_bytes()
    with pytest.raises(UnicodeEncodeError):
        write_rows(tmp_path, "problems", [Problem(2, "\ud800", 0.1)])
    assert (tmp_path / "problems.csv").read_bytes() == before
