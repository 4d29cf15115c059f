"""The paper's experiments from the command line, on problems small enough for a test."""

import csv
from functools import partial
from pathlib import Path

import pytest
from tests.report.studies import study

from gumbelrace.applications.store import Store
from gumbelrace.paper import commands, synthetic
from gumbelrace.paper.synthetic_study import Settings

DRAWS = 10
DATA = ["b_normal", "bounds", "broken", "claims", "records"]


@pytest.fixture
def small(monkeypatch):
    """Let --quick be a study of few rows and draws."""
    monkeypatch.setattr(commands, "QUICK_DRAWS", DRAWS)
    monkeypatch.setattr(commands, "Settings", partial(Settings, size=1000))


def test_synthetic_writes_a_page_and_the_data(run, small, tmp_path, monkeypatch):
    result = run("reproduce", "synthetic", "--out", "results/new", "--quick", "--jobs", 2)
    assert result.exit_code == 0, result.output
    folder = tmp_path / "results" / "new"
    page = (folder / "synthetic.html").read_text(encoding="utf-8")
    assert all(f"Figure {number}" in page for number in (1, 5, 6, 7))
    names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    assert [name for name in names if name.endswith(".csv")] == [f"{name}.csv" for name in DATA]
    assert all(name in page for name in names if name != "synthetic.html")
    with open(folder / "records.csv", newline="", encoding="utf-8") as file:
        records = list(csv.DictReader(file))
    assert len(records) == len(Settings(DRAWS).points)
    assert "it cannot be said" in " ".join(result.stdout.split())  # of 10 draws
    assert "results/new/synthetic.html" in result.stdout

    before = (folder / "records.csv").read_bytes()
    again = "gumbelrace.paper.synthetic_study.measured"
    monkeypatch.setattr(again, lambda *words: pytest.fail("what is finished is run again"))
    assert run("reproduce", "synthetic", "--out", "results/new", "--quick").exit_code == 0
    assert (folder / "records.csv").read_bytes() == before


def test_ctrl_c_keeps_what_is_done(run, small, tmp_path, monkeypatch):
    words, add = ("reproduce", "synthetic", "--quick", "--jobs", 1, "--out"), Store.add
    kept = []

    def interrupted(store, key, row):
        if len(kept) == 2:
            raise KeyboardInterrupt
        add(store, key, row)
        kept.append(key)

    with monkeypatch.context() as context:
        context.setattr(Store, "add", interrupted)
        result = run(*words, "stopped")
        assert result.exit_code == 130
        assert result.stderr == "gumbelrace: interrupted; the same command goes on where it was\n"
    assert not (tmp_path / "stopped" / "synthetic.html").exists()
    monkeypatch.setattr(Store, "add", lambda store, key, row: (kept.append(key), add(store, key, row)))
    assert run(*words, "stopped").exit_code == 0
    points = len(Settings(DRAWS).points)
    assert len(kept) == len(set(kept)) >= points  # nothing is run twice
    with open(tmp_path / "stopped" / "records.csv", newline="", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == points


def test_mistakes(fails, tmp_path):
    assert "exclude each other" in fails("reproduce", "synthetic", "--out", "x", "--quick", "--full")
    (tmp_path / "file").write_text("mine")
    assert "is a file" in fails("reproduce", "synthetic", "--out", "file", "--quick")
    assert (tmp_path / "file").read_text() == "mine"
    assert "--out" in fails("reproduce", "synthetic")
    assert "jobs" in fails("reproduce", "synthetic", "--out", "x", "--jobs", 0)
    assert not (tmp_path / "x").exists()


def test_table_shows_both_readings_beside_the_printed_numbers(run):
    result = run("reproduce", "table")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert all(len(line.rstrip()) <= 80 for line in lines)
    assert sum("printed" in line for line in lines) == 39
    assert "5.27250" in result.stdout  # printed for δ = 1e-6 and a first look at 5e-5
    assert "within 0.00" in lines[-2]


def test_demo_says_early_that_it_cannot_write(fails):
    assert "no folder" in fails("demo", "--out", "nowhere/demo.html")


def test_data_names_are_explained(tmp_path):
    files = synthetic.write_data(tmp_path, study()).files
    assert sorted({Path(name).stem for name in files}) == DATA
    assert all(files.values())
