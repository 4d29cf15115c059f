"""The command `gumbelrace shuffle`."""

import json

import numpy as np
import pytest

from gumbelrace.cli.shuffle import amount
from gumbelrace.errors import InvalidArgument


def test_a_shuffled_table_is_known_as_such(run, tmp_path):
    scores = np.random.default_rng(0).normal([0.5, 0.6, 0.5], 0.1, (20_000, 3)).clip(0, 2)
    np.savetxt(tmp_path / "scores.csv", scores, delimiter=",", header="ant,bee,cat", comments="")
    said = run("shuffle", "scores.csv", "shuffled.npy", "--seed", 5, "--memory", "20MB")
    assert said.exit_code == 0, said.output
    assert "20,000 rows of 3 columns, in random order" in said.stdout
    record = json.loads((tmp_path / "shuffled.npy.json").read_text())
    assert (record["columns"], record["rows"], record["seed"]) == (["ant", "bee", "cat"], 20_000, 5)
    answer = json.loads(run("best", "shuffled.npy", "--json", "--reward-range", 0, 2).stdout)
    assert (answer["column"], answer["assumption"]) == ("bee", "the rows lie in random order")
    found = np.load(tmp_path / "shuffled.npy")
    np.testing.assert_allclose(np.sort(found, axis=0), np.sort(scores, axis=0))


def test_a_first_column_that_counts_is_kept(run, tmp_path):
    """Nothing of a table is lost, unless columns are named."""
    np.save(tmp_path / "a.npy", np.stack([np.arange(50), np.ones(50, int)], axis=1))
    assert run("shuffle", "a.npy", "b.npy").exit_code == 0
    assert sorted(np.load(tmp_path / "b.npy")[:, 0]) == list(range(50))
    assert run("shuffle", "a.npy", "c.npy", "--columns", "1").exit_code == 0
    assert np.load(tmp_path / "c.npy").shape == (50, 1)


def test_a_first_column_that_counted_is_no_candidate(run, tmp_path):
    """It would win: its numbers are the largest. The record knows that they were those of the rows."""
    scores = np.random.default_rng(0).random((20_000, 2)) + np.array([0.0, 0.1])
    rows = np.column_stack([np.arange(1, 20_001), scores])
    np.savetxt(tmp_path / "a.csv", rows, delimiter=",", header="id,ant,bee", comments="")
    for target in ("b.npy", "b.csv"):
        assert run("shuffle", "a.csv", target).exit_code == 0
        said = run("best", target, "--json")
        assert said.exit_code == 0, said.output
        answer = json.loads(said.stdout)
        assert answer["column"] == "bee"
        assert "column 'id' counts the rows and is left out; --columns would take it in" in answer["notes"]


GOOD = "ant,bee\n1,2\n3,4\n5,6\n"
FAULTS = {
    "ragged.csv": (GOOD + "7\n", "row 3 (counted from 0) has 1 entries, but there are 2 columns; mend it"),
    "nan.csv": (GOOD + "7,nan\n", "row 3 (counted from 0), column 'bee' is nan"),
    "word.csv": (GOOD + "7,x\n", "no number in row 3 (counted from 0) of column 'bee' but 'x'"),
    "norows.csv": ("ant,bee\n", "there are no rows"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_bad_tables_are_refused_in_one_line(fails, tmp_path, name):
    text, complaint = FAULTS[name]
    (tmp_path / name).write_text(text)
    assert complaint in fails("shuffle", name, "target.npy")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_files_that_disagree_are_refused_in_one_line(fails, tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "a.csv").write_text(GOOD)
    (tmp_path / "parts" / "b.csv").write_text(GOOD.replace("bee", "cat"))
    said = fails("shuffle", "parts", "target.npy")
    assert "have different columns: 'bee', 'cat' in one of them only" in said


def test_bad_options_of_shuffle(fails, tmp_path):
    (tmp_path / "good.csv").write_text(GOOD)
    assert "--memory is 'much'" in fails("shuffle", "good.csv", "b.npy", "--memory", "much")
    assert "give at least" in fails("shuffle", "good.csv", "b.npy", "--memory", "1kB")
    assert "there is no folder nowhere" in fails("shuffle", "good.csv", "nowhere/b.npy")
    assert "does not exist" in fails("shuffle", "nowhere.csv", "b.npy")


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "1 PB", "1,5GB"])
def test_amounts_that_mean_nothing(text):
    with pytest.raises(InvalidArgument, match="--memory"):
        amount(text)
