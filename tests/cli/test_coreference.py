"""Coreference from the command line, on files small enough for a test."""

import csv
import re

import numpy as np
import pytest

from gumbelrace.cli import coreference
from gumbelrace.models.coreference.simulate import simulate
from gumbelrace.paper import commands


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def labelled(tmp_path):
    """A file of mentions whose columns have other names."""
    columns = simulate(400, np.random.default_rng(1))
    names = {"author": "inventor", "label": "person"}
    with open(tmp_path / "mentions.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([names.get(name, name) for name in columns])
        writer.writerows(zip(*columns.values(), strict=True))
    return tmp_path / "mentions.csv"


COLUMNS = ("--column", "author=inventor", "--column", "label=person")


def test_simulated_mentions_show_raced_and_exact(run, tmp_path, monkeypatch):
    monkeypatch.setattr(coreference, "FITTED", 300)
    result = run("coreference", "--simulate", 300, "--sweeps", 4, "--runs", 2, "--out", "results")
    assert result.exit_code == 0, result.output
    assert "F1" in result.stdout
    folder = tmp_path / "results"
    page = (folder / "coreference.html").read_text(encoding="utf-8")
    assert page.count("<svg") >= 4
    assert "made again exactly" in page
    assert "± over runs" in page
    assert {row["sampler"] for row in rows(folder / "sweeps.csv")} >= {"raced", "sums"}
    found = rows(folder / "clusters.csv")
    assert [row["mention_id"] for row in found] == [str(row) for row in range(300)]

    again = run("coreference", "--simulate", 300, "--sweeps", 4, "--runs", 2, "--out", "results")
    assert again.exit_code == 0
    assert rows(folder / "clusters.csv") == found


def test_each_mention_has_a_probability_and_a_runner_up(run, labelled, tmp_path):
    result = run("coreference", "mentions.csv", *COLUMNS, "--sweeps", 3, "--samples", 8, "--out", "results")
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    assert "with a probability of" in said
    assert re.search(r"chance moves one in between by about 0\.\d\d", said)
    right, known, told = re.search(
        r"by labels (\S+) of (\S+) mentions whose .* with it, (\S+) were", said
    ).groups()
    assert 0.5 < float(right) <= 1.0
    assert 0 < int(known) <= 400
    assert "of exact sweeps" not in said  # no race ran: all pairs were evaluated once, and nothing saved
    folder = tmp_path / "results"
    found = rows(folder / "clusters.csv")
    shares = np.array([float(row["probability"]) for row in found])
    assert len(found) == 400
    np.testing.assert_allclose(8 * shares % 1.0, 0.0, atol=1e-9)
    assert 0.0 <= shares.min() < shares.max() == 1.0
    assert abs(shares.mean() - float(told)) < 0.15  # of those that are known, which are most
    clusters = {int(row["cluster"]) for row in found}
    for row in found:
        assert (row["runner_up"] == "") == (float(row["probability"]) == 1.0)
        if row["runner_up"]:
            assert int(row["runner_up"]) in clusters | {-1}
            assert row["runner_up"] != row["cluster"]
            assert 0.0 < float(row["runner_up_probability"]) <= 1.0 - float(row["probability"]) + 1e-4
    curve = rows(folder / "thresholds.csv")
    assert [float(row["threshold"]) for row in curve][:3] == [0.0, 0.05, 0.1]
    page = (folder / "coreference.html").read_text(encoding="utf-8")
    assert page.index('class="answer"') < page.index("<svg") < page.index("The largest")
    assert "400 mentions are of" in page[page.index('class="answer"') :][:200]
    assert "mentions below a probability are taken out" in page
    assert "is off by about 0." in page
    assert "of exact sweeps" not in page


def test_what_a_race_saved_is_said_in_pairs_and_seconds(run, labelled, tmp_path):
    words = ("mentions.csv", *COLUMNS, "--sampler", "raced", "--compare", "--sweeps", 3, "--samples", 4)
    result = run("coreference", *words, "--out", "results")
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    assert re.search(
        r"raced: [\d,]+ of the [\d,]+ pairs of exact sweeps were evaluated, in [\d.]+ s; all", said
    )
    assert re.search(r"sums \(exact\) took [\d.]+ s", said)


def test_names_that_would_do_harm_are_only_text(run, tmp_path):
    nasty = "</script><script>alert(1)</script> O\x1b[2J\u2028'`\"Neil"
    with open(tmp_path / "mentions.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["author", "title"], *([nasty, nasty] for _ in range(4))])
    result = run("coreference", "mentions.csv", "--sweeps", 2, "--samples", 2, "--out", "results")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "results" / "coreference.html").read_text(encoding="utf-8")
    assert page.count("<script") == 2  # the data, and the search
    assert "alert(1)&lt;/script&gt;" in page
    assert not set("\x1b\u2028") & set(page)


@pytest.mark.parametrize(("kind", "other"), [("csv", "parquet"), ("parquet", "csv")])
def test_each_data_file_is_there_once(run, labelled, tmp_path, kind, other):
    words = ("coreference", "mentions.csv", *COLUMNS, "--sweeps", 2, "--samples", 2, "--out", "results")
    for format in (other, kind):
        assert run(*words, "--format", format).exit_code == 0
    names = sorted(path.name for path in (tmp_path / "results").iterdir() if path.suffix != ".html")
    assert names[1:] == [f"{name}.{kind}" for name in ("clusters", "sweeps", "thresholds")]
    page = (tmp_path / "results" / "coreference.html").read_text(encoding="utf-8")
    assert f"clusters.{kind}" in page
    assert f"clusters.{other}" not in page


def test_fit_then_resolve(run, labelled, tmp_path):
    fitted = run("coreference", "fit", "mentions.csv", *COLUMNS, "--complete", "--weights", "w.json")
    assert fitted.exit_code == 0, fitted.output
    assert "400 labelled" in fitted.stdout
    words = ("mentions.csv", *COLUMNS, "--weights", "w.json", "--sampler", "raced", "--out", "results")
    result = run("coreference", *words)
    assert result.exit_code == 0, result.output
    assert "raced" in result.stdout
    assert {row["sampler"] for row in rows(tmp_path / "results" / "sweeps.csv")} == {"raced"}
    assert "± over runs" not in (tmp_path / "results" / "coreference.html").read_text(encoding="utf-8")


def test_without_labels_there_is_no_f1(run, labelled, tmp_path):
    text = labelled.read_text(encoding="utf-8").replace(",person", ",nobody", 1)
    labelled.write_text(text, encoding="utf-8")
    result = run("coreference", "mentions.csv", "--column", "author=inventor", "--sweeps", 3)
    assert result.exit_code == 0, result.output
    assert "B³" not in result.stdout
    assert "by labels" not in result.stdout
    page = (tmp_path / "coreference" / "coreference.html").read_text(encoding="utf-8")
    assert "F1" not in page
    assert "(c)" in page
    assert "(a) F1" not in page


def test_mentions_without_an_author_are_skipped_and_listed(run, fails, labelled, tmp_path):
    names, *lines = csv.reader(labelled.read_text(encoding="utf-8").splitlines())
    lines[3][names.index("inventor")] = lines[7][names.index("inventor")] = ""
    with open(labelled, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([[name.replace("inventor", "Author") for name in names], *lines])
    result = run("coreference", "mentions.csv", "--sweeps", 3, "--out", "results")
    assert result.exit_code == 0, result.output
    assert "skipped 2 without an author (3, 7); all are in skipped.csv" in " ".join(result.stdout.split())
    folder = tmp_path / "results"
    assert [row["mention_id"] for row in rows(folder / "skipped.csv")] == ["3", "7"]
    ids = [row["mention_id"] for row in rows(folder / "clusters.csv")]
    assert ids == [str(row) for row in range(400) if row not in (3, 7)]
    assert "2 without an author" in (folder / "coreference.html").read_text(encoding="utf-8")
    said = fails("reproduce", "coreference", "--data", "mentions.csv", "--out", "results")
    assert said.startswith("results holds a run of gumbelrace coreference; choose another --out")
    said = fails("coreference", "mentions.csv", "--sweeps", 4, "--out", "results")
    assert said.startswith("results holds a run with --sweeps 3, not 4; choose another --out")


def test_a_killed_run_goes_on_to_the_same_result(run, killed, labelled, tmp_path):
    """SIGKILL after some blocks: the next call does the others, as if nothing had happened."""
    words = ("coreference", "mentions.csv", *COLUMNS, "--sampler", "raced", "--runs", 4, "--jobs", 1)
    assert run(*words, "--out", "whole", "--keep").exit_code == 0
    place = ".gumbelrace/search/rows.jsonl"
    killed(*words, "--out", "killed", once=f"killed/{place}")
    done, pieces = ((tmp_path / name / place).read_bytes().count(b"\n") for name in ("killed", "whole"))
    assert 0 < done < pieces
    assert run(*words, "--out", "killed").exit_code == 0
    assert not (tmp_path / "killed" / place).exists()  # a finished run needs it no more
    for name in ("clusters.csv", "sweeps.csv"):
        found, expected = (rows(tmp_path / out / name) for out in ("killed", "whole"))
        assert [untimed(row) for row in found] == [untimed(row) for row in expected]


def untimed(row):
    return {name: value for name, value in row.items() if name != "seconds"}


def test_mistakes(fails, labelled, tmp_path):
    assert "not both" in fails("coreference")
    assert "not both" in fails("coreference", "mentions.csv", "--simulate", 100)
    assert "--column author=NAME" in fails("coreference", "mentions.csv")
    assert "FIELD=NAME" in fails("coreference", "mentions.csv", "--column", "inventor")
    assert "no labels" in fails("coreference", "fit", "mentions.csv", "--column", "author=inventor")
    assert "--sampler" in fails("coreference", "--simulate", 100, "--sampler", "best")
    assert "w.json" in fails("coreference", "--simulate", 100, "--weights", "w.json")
    assert "delta" in fails("coreference", "--simulate", 100, "--delta", 0)
    assert not (tmp_path / "coreference").exists()


def test_reproduce_shows_the_papers_setting_and_ours(run, tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "MENTIONS", 600)
    result = run("reproduce", "coreference", "--quick", "--least", 10, "--out", "results")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "results" / "coreference.html").read_text(encoding="utf-8")
    assert page.count("<svg") >= 8
    assert "The paper says" in page
    assert len(rows(tmp_path / "results" / "claims.csv")) == 6
