"""Files as people have them: an index, other separators and decimals, pipes, odd names, missing cells."""

import io
import json
import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

ROWS = 60
HEAD, MEANS = ["ant", "bee", "cat"], [0.2, 0.7, 0.4]
RANGE = ("--reward-range", 0, 1)


@pytest.fixture
def cells() -> np.ndarray:
    return np.random.default_rng(0).normal(MEANS, 0.02, (ROWS, 3)).round(6)


def text(names, rows, separator=",", decimal=".") -> str:
    lines = [[str(cell).replace(".", decimal) for cell in row] for row in rows]
    return "\n".join(map(separator.join, [names, *lines])) + "\n"


def indexed(cells, start=0) -> list[list[float]]:
    return [[row + start, *line] for row, line in enumerate(cells.tolist())]


def found(result) -> dict:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("command", ["best", "sample"])
@pytest.mark.parametrize(
    ("name", "start", "note"),
    [
        ("", 0, "column 0 (counted from 0) has no name and is left out"),
        (
            "Unnamed: 0",
            0,
            "column 'Unnamed: 0' counts the rows and is left out; --columns would take it in",
        ),
        ("row", 1, "column 'row' counts the rows and is left out; --columns would take it in"),
    ],
)
def test_an_index_is_no_candidate(run, tmp_path, cells, command, name, start, note):
    """Also numbers beyond the range that was given are then no fault of the file."""
    (tmp_path / "scores.csv").write_text(text([name, *HEAD], indexed(cells, start)))
    answer = found(run(command, "scores.csv", "--json", *RANGE))
    assert (answer["notes"], answer["columns"]) == ([note], 3)
    shown = run(command, "scores.csv", *RANGE).stdout
    assert f"note {note}" in " ".join(shown.split())


def test_an_index_of_an_array_is_no_candidate(run, tmp_path, cells):
    np.save(tmp_path / "scores.npy", np.array(indexed(cells)))
    answer = found(run("best", "scores.npy", "--json", *RANGE))
    assert (answer["column"], answer["columns"]) == (2, 3)
    assert "column 0 counts the rows" in answer["notes"][0]


def test_an_index_can_be_asked_for_and_few_rows_are_no_index(run, tmp_path, cells):
    """Negative control: what is named is compared, and four rows that count are a chance."""
    (tmp_path / "scores.csv").write_text(text(["row", *HEAD], indexed(cells)))
    assert found(run("best", "scores.csv", "--columns", "row,bee", "--json"))["column"] == "row"
    (tmp_path / "few.csv").write_text(text(["row", *HEAD], indexed(cells)[:4]))
    answer = found(run("best", "few.csv", "--json"))
    assert (answer["column"], answer["notes"]) == ("row", [])


def test_unnamed_columns_do_not_stop_others(run, tmp_path, cells):
    (tmp_path / "scores.csv").write_text(text(["", *HEAD, ""], [["x", *row, ""] for row in cells.tolist()]))
    assert found(run("best", "scores.csv", "--columns", "Bee,cat", "--json"))["column"] == "bee"
    assert found(run("best", "scores.csv", "--json"))["columns"] == 3


@pytest.mark.parametrize("name", ["scores.csv", "scores.tsv"])
@pytest.mark.parametrize(
    ("separator", "decimal", "more"),
    [
        ("\t", ".", []),
        ("\t", ",", []),
        (";", ",", []),
        ("|", ".", []),
        ("/", ".", ["--sep", "/"]),
        (";", ",", ["--sep", ";", "--decimal", ","]),
        ("\t", ".", ["--sep", "tab"]),
    ],
)
def test_separators_and_decimals(run, tmp_path, cells, name, separator, decimal, more):
    if name.endswith(".tsv") and separator != "\t":
        more = [*more, "--sep", separator]
    (tmp_path / "plain.csv").write_text(text(HEAD, cells.tolist()))
    (tmp_path / name).write_text(text(HEAD, cells.tolist(), separator, decimal))
    expected = found(run("best", "plain.csv", "--exact", "--json"))
    answer = found(run("best", name, "--exact", "--json", *more))
    recognised = decimal == "," and "--decimal" not in more
    assert answer.pop("notes") == (["decimal commas are read as such"] if recognised else [])
    assert expected.pop("notes") == []
    assert answer == expected | {"columns": 3}


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("--sep ab", "--sep is 'ab'; give one character, or tab"),
        ("--decimal ;", "--decimal is ';'; give a point or a comma"),
        ("--decimal , --sep ,", "they must differ"),
        ("--sep :", "has one column, 'ant,bee,cat'"),
    ],
)
def test_wrong_separators_are_explained(fails, tmp_path, cells, words, complaint):
    (tmp_path / "scores.csv").write_text(text(HEAD, cells.tolist()))
    assert complaint in fails("best", "scores.csv", *words.split())


def test_arrays_in_archives(run, tmp_path, cells):
    np.savez(tmp_path / "plain.npz", cells)
    np.savez_compressed(tmp_path / "packed.npz", scores=np.asfortranarray(cells))
    np.save(tmp_path / "plain.npy", cells)
    answers = [
        found(run("best", name, "--json", *RANGE)) for name in ("plain.npy", "plain.npz", "packed.npz")
    ]
    assert answers[0] == answers[1]
    assert answers[2]["column"] == answers[0]["column"] == 1


def contents(cells) -> dict[str, bytes]:
    import pyarrow as pa
    from pyarrow import parquet

    array, table = io.BytesIO(), io.BytesIO()
    np.save(array, cells)
    parquet.write_table(pa.table(dict(zip(HEAD, cells.T, strict=True))), table)
    return {
        "npy": array.getvalue(),
        "csv": text(HEAD, cells.tolist()).encode(),
        "parquet": table.getvalue(),
    }


@pytest.mark.parametrize("kind", ["npy", "csv", "parquet"])
def test_standard_input(tmp_path, cells, kind):
    found = subprocess.run(
        [sys.executable, "-m", "gumbelrace", "best", "-", "--reward-range", "0", "1"],
        input=contents(cells)[kind],
        capture_output=True,
        timeout=300,
    )
    assert (found.returncode, found.stderr) == (0, b"")
    assert found.stdout.split()[2] == (b"1" if kind == "npy" else b"bee")
    assert (b"read standard input once, all 60 rows" in b" ".join(found.stdout.split())) == (kind != "npy")


def test_standard_input_that_is_closed(fails, monkeypatch):
    """As under `<&-`, or in a service without one."""
    monkeypatch.setattr("gumbelrace.tables.source.sys", SimpleNamespace(stdin=None))
    assert fails("best", "-").startswith("standard input is closed; send a file")


def test_standard_input_that_is_empty(fails):
    assert fails("best", "-") == "standard input is empty; write it again"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of Unix")
@pytest.mark.parametrize("kind", ["npy", "csv", "parquet"])
def test_a_pipe_is_read(run, tmp_path, cells, kind):
    os.mkfifo(tmp_path / "pipe")
    content = contents(cells)[kind]
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(content))
    writer.start()
    assert found(run("best", "pipe", "--json", *RANGE))["column"] == (1 if kind == "npy" else "bee")
    writer.join()


@pytest.mark.parametrize("command", ["best", "sample"])
def test_control_characters_do_not_reach_the_terminal(run, fails, tmp_path, cells, command):
    names = ["ant", "\x1b[31mbee\x07", "cat"]
    (tmp_path / "scores.csv").write_text(text(names, cells.tolist()))
    shown = run(command, "scores.csv").stdout
    assert "\\x1b[31mbee\\x07" in shown
    assert shown.replace("\n", "").isprintable()
    (tmp_path / "odd\x1b[2J.csv").write_text("ant,bee\n1,x\n")
    said = fails(command, "odd\x1b[2J.csv")
    assert "odd\\x1b[2J.csv" in said
    assert said.isprintable()
