"""`gumbelrace sample`: the right law, whichever way a draw is made, and draws written whole or not."""

import csv
import json

import numpy as np
import pytest
import scipy.stats

from gumbelrace.tables import writing

PROBABILITIES = np.array([0.1, 0.2, 0.3, 0.4])
ROWS = 100_000
LEVEL = 1e-4


def log_factors(deviation: float) -> np.ndarray:
    noise = np.random.default_rng(0).normal(scale=deviation, size=(ROWS, 4))
    return noise - noise.mean(axis=0) + np.log(PROBABILITIES) / ROWS


def drawn(result) -> dict:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def law_holds(counts: dict, probabilities: np.ndarray) -> bool:
    counts = np.array(list(counts.values()))
    return scipy.stats.chisquare(counts, counts.sum() * probabilities).pvalue > LEVEL


@pytest.mark.parametrize(
    ("deviation", "draws", "more", "added_up"),
    [
        (1e-8, 1500, ["--reward-range", -2.5e-5, -9e-6], False),
        (1e-8, 1500, [], False),
        (1e-3, 4000, [], True),
    ],
)
def test_law(run, tmp_path, deviation, draws, more, added_up):
    """Oracle: softmax of the sums, χ² at 1e-4, seed 4. Negative control: a law that is not far from it.

    The easy tables are raced for each draw (but for near ties), the hard one is added up after a few
    draws. Columns are
    drawn from the exact law but for δ = 0.001.
    """
    np.save(tmp_path / "factors.npy", log_factors(deviation))
    options = ["--draws", draws, "--delta", 0.001, "--seed", 4, "--json", *more]
    answer = drawn(run("sample", "factors.npy", *options))
    assert answer["added_up"] == added_up
    assert answer["proved"] == bool(more)
    assert law_holds(answer["counts"], PROBABILITIES)
    assert not law_holds(answer["counts"], np.array([0.2, 0.2, 0.3, 0.3]))


def test_log_prior(run, tmp_path):
    """The prior is a table of one row; what it makes impossible is never drawn. χ² at 1e-4, seed 4."""
    np.save(tmp_path / "factors.npy", log_factors(1e-3))
    np.save(tmp_path / "prior.npy", [[np.log(2.0), 0.0, -np.inf, 0.0]])
    answer = drawn(run("sample", "factors.npy", "--log-prior", "prior.npy", "--draws", 2000, "--json"))
    assert answer["counts"].pop("2") == 0
    expected = PROBABILITIES[[0, 1, 3]] * [2.0, 1.0, 1.0]
    assert law_holds(answer["counts"], expected / expected.sum())


def test_all_kinds_of_output_hold_the_same(run, table):
    answers = [
        drawn(run("sample", table, "--draws", 50, "--out", f"draws{ending}", "--json"))
        for ending in (".csv", ".npy", ".parquet")
    ]
    assert all(answer["counts"] == answers[0]["counts"] for answer in answers)
    assert answers[0]["out"] == "draws.csv"
    by_csv, by_npy, by_parquet = read_csv("draws.csv"), np.load("draws.npy"), read_parquet("draws.parquet")
    assert by_npy.tolist() == by_parquet
    assert [(str(column), read) for column, read, *_ in by_parquet] == by_csv
    assert len(by_csv) == 50
    assert sum(read for _, read in by_csv) == answers[0]["numbers_read"]
    assert answers[0]["fraction"] == answers[0]["numbers_read"] / (50 * 6000)


def read_csv(path):
    with open(path, newline="") as file:
        fields, *rows = csv.reader(file)
    assert fields[:2] == ["column", "numbers_read"]
    return [(column, int(read)) for column, read, *_ in rows]


def read_parquet(path):
    from pyarrow import parquet

    return [tuple(row.values()) for row in parquet.read_table(path).to_pylist()]


def test_no_more_is_read_than_two_passes_and_a_draw(run, tmp_path):
    np.save(tmp_path / "factors.npy", log_factors(1e-2))
    answer = drawn(run("sample", "factors.npy", "--draws", 500, "--json"))
    assert answer["added_up"]
    assert ROWS * 4 < answer["numbers_read"] <= 3 * ROWS * 4


def test_people_are_told_the_shares(run, table):
    result = run("sample", table, "--draws", 30, "--out", "draws.csv")
    assert result.exit_code == 0
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert lines[0].split()[:3] == ["column", "draws", "share"]
    assert lines[1].split()[:3] == ["1" if table.suffix == ".npy" else "bee", "30", "100.00%"]
    assert len(lines[2:4]) == 2
    text = " ".join(result.stdout.split())
    if table.suffix == ".npy":
        assert "within 0.05 of the exact one in total variation" in text
    else:
        assert "law exact" in text
        assert f"read {table.name} once, all 2,000 rows, and added up: exact" in text
    assert text.endswith("written draws.csv")
    assert all(len(line) <= 80 for line in lines)


def test_many_columns_are_cut_short(run, tmp_path):
    np.save(tmp_path / "factors.npy", np.zeros((10, 30)))
    lines = run("sample", "factors.npy", "--draws", 300).stdout.splitlines()
    last = next(line for line in lines if line.startswith("... and"))
    shown = sum(int(line.split()[1]) for line in lines[1 : lines.index(last)])
    assert last == f"... and 10 columns with {300 - shown} draws together"


def test_equal_seeds_give_equal_draws(run, tmp_path):
    np.save(tmp_path / "factors.npy", log_factors(1e-8))
    names = ["a.csv", "b.csv", "c.csv"]
    for name, seed in zip(names, (5, 5, 6), strict=True):
        run("sample", "factors.npy", "--draws", 40, "--seed", seed, "--out", name)
    first, second, other = ((tmp_path / name).read_bytes() for name in names)
    assert first == second != other


def test_an_old_file_is_kept_when_writing_fails(fails, tmp_path, monkeypatch, scores):
    def stop(*_):
        raise OSError(28, "No space left on device")

    np.save(tmp_path / "scores.npy", scores)
    (tmp_path / "draws.csv").write_text("old")
    monkeypatch.setitem(writing.WRITERS, ".csv", stop)
    assert fails("sample", "scores.npy", "--out", "draws.csv") == "draws.csv: No space left on device"
    assert (tmp_path / "draws.csv").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["draws.csv", "scores.npy"]


def test_an_old_file_is_replaced(run, tmp_path, scores):
    np.save(tmp_path / "scores.npy", scores)
    (tmp_path / "draws.csv").write_text("old")
    assert run("sample", "scores.npy", "--out", "draws.csv", "--draws", 3).exit_code == 0
    assert len((tmp_path / "draws.csv").read_text().splitlines()) == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["draws.csv", "scores.npy"]


@pytest.mark.parametrize("ending", [".npy", ".csv", ".parquet"])
def test_probabilities_are_shown_once_they_are_known(run, write_table, tmp_path, ending):
    """Oracle: softmax of the sums. Arrays are added up after some draws, other files at once."""
    values = log_factors(1e-3)[:20_000] * 5.0
    names = ["ant", "bee", "cat", "dog"]
    write_table(tmp_path / f"factors{ending}", values, names)
    sums = values.sum(axis=0)
    exact = np.exp(sums - sums.max()) / np.exp(sums - sums.max()).sum()
    words = ("sample", f"factors{ending}", "--draws", 3000, "--seed", 2)
    answer = drawn(run(*words, "--out", "draws.csv", "--json"))
    assert answer["added_up"]
    np.testing.assert_allclose(list(answer["probabilities"].values()), exact, rtol=1e-9)
    assert law_holds(answer["counts"], exact)
    assert (answer["total_variation"] == 0.0) == (ending != ".npy")
    with open("draws.csv", newline="") as file:
        first = next(csv.DictReader(file))
    by_name = dict(zip(answer["probabilities"], exact, strict=True))
    assert float(first["probability"]) == pytest.approx(by_name[first["column"]], rel=1e-9)
    lines = run(*words).stdout.splitlines()
    assert lines[0].split() == ["column", "draws", "share", "probability"]
    name, _, _, shown = lines[1].split()
    assert float(shown) == pytest.approx(by_name[name], rel=1e-4)


def test_probabilities_that_nobody_knows_are_not_shown(run, tmp_path):
    np.save(tmp_path / "factors.npy", log_factors(1e-8))
    answer = drawn(run("sample", "factors.npy", "--draws", 20, "--json"))
    assert (answer["added_up"], answer["probabilities"]) == (False, None)
    assert "probability" not in run("sample", "factors.npy", "--draws", 20).stdout
