"""`gumbelrace best`: the right column, an honest count, and a promise that is kept."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from gumbelrace.methods.betting import Betting
from gumbelrace.tables.population import open_scores
from gumbelrace.tables.rowfile import RowFile

LEVEL = 1e-4


def found(result) -> dict:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    "more", [[], ["--shuffled"], ["--exact"], ["--reward-range", -1, 2], ["--delta", 0.001]]
)
def test_the_best_column_of_every_kind_of_file(run, table, more):
    answer = found(run("best", table, "--json", *more))
    assert answer["column"] == (1 if table.suffix == ".npy" else "bee")
    assert (answer["rows"], answer["columns"]) == (2000, 3)
    assert 0 < answer["rows_read"] <= 2000
    assert answer["share_of_numbers"] == answer["numbers_read"] / 6000 <= answer["share_of_rows"]
    if "--exact" in more or table.suffix != ".npy":
        assert (answer["delta"], answer["proved"], answer["share_of_numbers"]) == (0.0, True, 1.0)
    else:
        assert answer["share_of_rows"] < 0.2


def test_people_are_told_what_was_found(run, table):
    result = run("best", table, "--delta", 0.01)
    assert result.exit_code == 0
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["best", "column", "1" if table.suffix == ".npy" else "bee"]
    assert all(len(line) <= 80 for line in lines)
    text = " ".join(result.stdout.split())
    if table.suffix == ".npy":
        assert "at most 0.01 likely" in text
        assert "assuming that" in text
        assert "--reward-range LOW HIGH would prove it" in text
    else:
        assert "likely" not in text
        assert "error none: every number was read" in text
        assert f"read {table.name} once, all 2,000 rows, and added up: exact" in text


@pytest.mark.parametrize(("more", "best", "off"), [([], 2, 0.5), (["--minimum"], 0, 1.0)])
def test_a_race_tells_means(run, tmp_path, more, best, off):
    """Oracle: the means of all rows; an interval misses with a probability below 0.001."""
    values = np.random.default_rng(3).normal(size=(400_001, 3)) + np.array([0.0, 1.0, 1.5])
    np.save(tmp_path / "far.npy", values)
    with open_scores(tmp_path / "far.npy") as scores:
        assert scores.population().length > 1  # what is drawn are chunks, what is shown is a mean of rows
    answer = found(run("best", "far.npy", "--json", "--delta", 0.001, *more))
    low, high = answer["mean_between"]
    assert (answer["column"], answer["runner_up"]) == (best, 1)
    assert low < values[:, best].mean() < high
    assert low < answer["mean"] < high
    assert answer["gap"] == pytest.approx(off, abs=0.3)
    text = " ".join(run("best", "far.npy", "--delta", 0.001, *more).stdout.split())
    assert f"mean about {answer['mean']:.4g}, between {low:.4g} and {high:.4g}; next is 1, about" in text


def test_what_was_added_up_is_exact(run, write_table, tmp_path):
    """Two columns that differ by 2e-6 in the mean: no race could tell them apart without reading all."""
    means = np.array([0.5, 0.5 + 2e-6, 0.4])
    noise = np.random.default_rng(3).normal(size=(50_000, 3))
    values = noise - noise.mean(axis=0) + means
    for ending in (".csv", ".parquet"):
        write_table(tmp_path / f"close{ending}", values, ["ant", "bee", "cat"])
        for more, best in (([], "bee"), (["--minimum"], "cat"), (["--columns", "cat,ant"], "ant")):
            answer = found(run("best", f"close{ending}", "--json", *more))
            assert (answer["column"], answer["delta"], answer["tied"]) == (best, 0.0, [])
            assert answer["mean"] == pytest.approx(means[["ant", "bee", "cat"].index(best)], abs=1e-12)
        answer = found(run("best", f"close{ending}", "--json"))
        assert (answer["runner_up"], answer["gap"]) == ("ant", pytest.approx(2e-6, abs=1e-12))


def test_a_scan_after_a_race_is_told(run, tmp_path):
    """Two columns that are all but equal: at some moment a scan is cheaper, and it is said."""
    values = np.random.default_rng(3).normal(size=(300_000, 2))
    np.save(tmp_path / "close.npy", values - values.mean(axis=0) + [0.0, 1e-6])
    answer = found(run("best", "close.npy", "--json"))
    assert (answer["column"], answer["scanned"], answer["delta"]) == (1, True, 0.0)
    text = " ".join(run("best", "close.npy").stdout.split())
    assert "100% of the numbers: a scan of what was left was faster than to race on" in text
    np.save(tmp_path / "far.npy", values + np.array([0.0, 1.0]))
    assert not found(run("best", "far.npy", "--json"))["scanned"]
    assert "scan" not in run("best", "far.npy").stdout


def test_what_is_proved_and_what_is_assumed(run, tmp_path, scores):
    np.save(tmp_path / "floats.npy", scores)
    np.save(tmp_path / "bools.npy", scores > 0.6)
    np.save(tmp_path / "many.npy", np.resize(scores > 0.6, (20_000, scores.shape[1])))

    def assumption(*words):
        answer = found(run("best", *words, "--json"))
        assert answer["proved"] == (answer["assumption"] is None)
        return answer["assumption"]

    assert "normally distributed" in assumption("floats.npy")
    assert "unless --reward-range goes down to it" in assumption("floats.npy")
    assert not any(argument in assumption("floats.npy") for argument in ("impossible=", "reward_range"))
    assert assumption("floats.npy", "--reward-range", -5, 5) is None
    assert assumption("bools.npy") is None
    assert "random order" in assumption("many.npy", "--shuffled")
    # Few rows are drawn one by one: how they lie does not matter.
    assert assumption("bools.npy", "--shuffled") is None


def test_columns_and_the_lowest(run, table):
    names = ["0", "2"] if table.suffix == ".npy" else ["ant", "cat"]
    answers = [
        found(run("best", table, "--columns", ",".join(names), "--json", *more))["column"]
        for more in ([], ["--minimum"], ["--minimum", "--reward-range", -2, 2])
    ]
    assert [str(answer) for answer in answers] == [names[0], names[1], names[1]]


def test_equal_seeds_give_equal_answers(run, table):
    first, second, other = (run("best", table, "--json", "--seed", s).stdout for s in (3, 3, 4))
    assert first == second
    assert json.loads(other)["column"] == json.loads(first)["column"]


def test_infinite_scores_rule_a_column_out(run, tmp_path, scores):
    scores[7, 1], scores[9, 2] = -np.inf, np.inf
    np.save(tmp_path / "scores.npy", scores)
    assert found(run("best", "scores.npy", "--columns", "0,1", "--exact", "--json"))["column"] == 0
    lowest = run("best", "scores.npy", "--columns", "0,2", "--exact", "--minimum", "--json")
    assert found(lowest)["column"] == 0


def test_what_is_read_is_counted(run, tmp_path, monkeypatch):
    """Bytes that leave the file, over those of a row, are the rows that the answer owns up to."""
    rows = 300_007  # not a multiple of a run
    np.save(tmp_path / "scores.npy", np.random.default_rng(0).random((rows, 4)) < [0.3, 0.5, 0.4, 0.45])
    fill, sizes = RowFile._fill, []
    monkeypatch.setattr(RowFile, "_fill", lambda *a: sizes.append(a[2] - a[1]) or fill(*a))
    for more in ([], ["--shuffled"], ["--exact"]):
        sizes.clear()
        answer = found(run("best", "scores.npy", "--delta", 0.01, "--json", *more))
        assert answer["column"] == 1
        assert sum(sizes) == 4 * answer["rows_read"]
        assert answer["rows_read"] == rows if more == ["--exact"] else answer["share_of_rows"] < 0.05


def test_the_promise_is_kept_in_any_order_of_the_rows(tmp_path):
    """Oracle: the sums. Two columns all but tied, the rows on which each wins lying together; δ = 0.2.

    100 seeds; a method that keeps its promise fails only if the binomial tail at δ is below 1e-4. Negative
    control: the same table read as if its rows lay in random order.
    """
    races, delta, rows = 100, 0.2, 2**18
    rewards = np.zeros((rows, 2), np.bool_)
    rewards[: rows // 2, 0] = rewards[rows // 2 - 2 :, 1] = True
    np.save(tmp_path / "sorted.npy", rewards)
    with open_scores(tmp_path / "sorted.npy") as scores:

        def errors(shuffled: bool) -> int:
            return sum(raced(scores, delta, seed, shuffled) != 1 for seed in range(races))

        assert scores.population().length > 1
        assert tail(errors(shuffled=False), races, delta) > LEVEL
        assert tail(errors(shuffled=True), races, delta) < LEVEL


def raced(scores, delta: float, seed: int, shuffled: bool) -> int:
    rng = np.random.default_rng(seed)
    population = scores.population(shuffled)
    return Betting(delta).best(population, rng=rng).arm


def tail(errors: int, races: int, delta: float) -> float:
    return float(scipy.stats.binom.sf(errors - 1, races, delta))


def test_the_file_is_left_as_it_was(run, table: Path):
    before = table.read_bytes()
    run("best", table)
    assert table.read_bytes() == before
    assert list(table.parent.iterdir()) == [table]


@pytest.mark.parametrize("more", [[], ["--exact"], ["--minimum"]])
def test_ties_are_told(run, tmp_path, more):
    (tmp_path / "ties.csv").write_text("ant,bee,cat\n" + "2,1,2\n" * 20 + "1,1,1\n" * 20)
    best = ["ant", "cat"] if "--minimum" not in more else ["bee"]
    assert found(run("best", "ties.csv", "--json", *more))["tied"] == (best if len(best) > 1 else [])
    text = run("best", "ties.csv", *more).stdout
    assert ("columns ant and cat tie for the best" in text) == (len(best) > 1)


@pytest.mark.parametrize("names", [["a.b", "a"], ["a b", "ä"], ["0", "1"], ["[red]x[/red]", "\\"]])
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_names_are_kept_as_they_are(run, write_table, tmp_path, names, ending):
    write_table(tmp_path / f"table{ending}", np.array([[1.0, 2.0]] * 5), names)
    assert run("best", f"table{ending}").stdout.splitlines()[0] == f"best column  {names[1]}"
