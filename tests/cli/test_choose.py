"""`gumbelrace choose`: a program evaluates, the store keeps, and whatever goes wrong is one line."""

import json
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from gumbelrace.choosing.store import Store

pytestmark = pytest.mark.skipif(os.name != "posix", reason="processes of Unix")

# Scores by a candidate's skill, and writes down whatever it was asked.
SCORE = """
import json, random, sys, time
for line in sys.stdin:
    with open("asked", "a") as file:
        file.write(line)
    asked = json.loads(line)
    time.sleep(asked["candidate"].get("seconds", 0))
    print(float(random.Random(asked["example"]).random() < asked["candidate"]["skill"]), flush=True)
"""
CANDIDATES = [{"name": "good", "skill": 0.9}, {"name": "fair", "skill": 0.5}, {"name": "bad", "skill": 0.2}]
EXAMPLES = list(range(300))
RUN = f"{shlex.quote(sys.executable)} -S score.py"
WORDS = ("choose", "--candidates", "candidates.jsonl", "--examples", "examples.jsonl", "--range", "0", "1")
EVALUATE = (*WORDS, "--run", RUN, "--workers", "2", "--seed", "0")


@pytest.fixture(autouse=True)
def folder(tmp_path):
    write(tmp_path / "candidates.jsonl", CANDIDATES)
    write(tmp_path / "examples.jsonl", EXAMPLES)
    (tmp_path / "score.py").write_text(SCORE)
    return tmp_path


def write(path, values):
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")


def asked(folder):
    return (folder / "asked").read_text().splitlines() if (folder / "asked").exists() else []


def test_the_best_is_found_and_nothing_is_paid_for_twice(run, folder):
    first = run(*EVALUATE, "--store", "run.db", "--out", "page.html", "--cost", "0.01")
    assert (first.exit_code, first.stderr) == (0, "")
    assert first.stdout.startswith("good is the best (error at most 0.05, proved). ")
    assert "failed  state\ngood " in first.stdout
    assert "good is the best" in (folder / "page.html").read_text(encoding="utf-8")
    paid = len(asked(folder))
    assert paid < 900
    again = run(*EVALUATE, "--store", "run.db", "--cost", "0.01")
    assert again.stdout == first.stdout
    assert len(asked(folder)) == paid == len(set(asked(folder)))


def test_json_has_what_the_text_has(run):
    found = json.loads(run(*EVALUATE, "--json", "--budget", "9", "--cost", "1").stdout)
    assert (found["ended"], found["evaluations"], found["cost"], found["decided"]) == (
        "budget",
        9,
        9.0,
        False,
    )
    assert [row["name"] for row in found["candidates"]] == ["good", "fair", "bad"]


def test_costs_by_name(run, fails):
    prices = [word for name in ("good=1", "fair=2", "bad=3") for word in ("--cost", name)]
    assert json.loads(run(*EVALUATE, "--json", "--budget", "6", *prices).stdout)["cost"] == 6.0
    assert "there is none for fair, bad" in fails(*EVALUATE, "--cost", "good=1")
    assert fails(*EVALUATE, "--cost", "dear") == (
        "--cost is dear; give a number, or NAME=NUMBER for each candidate"
    )


def test_a_dry_run_evaluates_nothing(run, folder):
    shown = run(*WORDS, "--dry-run", "--budget", "2", "--cost", "0.01", "--store", "run.db").stdout
    assert "everything   900 evaluations, 9\n" in shown
    assert "budget       2, enough for all candidates on 66 examples\n" in shown
    assert "0.1 behind   about " in shown
    assert sorted(os.listdir(folder)) == ["candidates.jsonl", "examples.jsonl", "score.py"]
    run(*EVALUATE, "--store", "run.db", "--budget", "30")
    assert "so far       30 of 900 evaluations" in run(*WORDS, "--dry-run", "--store", "run.db").stdout


def test_status_is_told_while_another_process_writes(run, fails, folder):
    run(*EVALUATE, "--store", "run.db", "--budget", "30")
    before = (folder / "run.db").read_bytes()
    store = Store(folder / "run.db")
    assert fails(*EVALUATE, "--store", "run.db").startswith("another process is writing to run.db")
    found = json.loads(run(*WORDS, "--store", "run.db", "--status", "--json").stdout)
    assert "expected to decide: " in run(*WORDS, "--store", "run.db", "--status").stdout
    store.close()
    assert (found["evaluations"], found["ended"]) == (30, "open")
    assert len(asked(folder)) == 30
    assert (folder / "run.db").read_bytes() == before


@pytest.fixture
def signalled(folder):
    """Start a run with slow evaluations, and send it a signal in the middle."""

    def call(number):
        write(folder / "candidates.jsonl", [one | {"seconds": 0.05} for one in CANDIDATES])
        command = [sys.executable, "-m", "gumbelrace", *EVALUATE, "--store", "run.db"]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, cwd=folder, stdout=pipe, stderr=pipe, text=True)
        while len(asked(folder)) < 8:
            time.sleep(0.01)
        process.send_signal(number)
        return *process.communicate(timeout=60), process.returncode

    return call


def cells(folder):
    with sqlite3.connect(folder / "run.db") as store:
        return store.execute("SELECT COUNT(*) FROM cells").fetchone()[0]


def test_a_killed_run_goes_on(run, signalled, folder):
    """What is stored is not asked again; lost is what was under way, or answered and not yet written."""
    signalled(signal.SIGKILL)
    time.sleep(0.3)  # until its processes have answered, and ended
    kept, before = cells(folder), len(asked(folder))
    assert before - 2 * 2 <= kept < before
    assert run(*EVALUATE, "--store", "run.db").stdout.startswith("good is the best")
    assert len(set(asked(folder))) == cells(folder)
    assert len(asked(folder)) == cells(folder) + before - kept


def test_ctrl_c_keeps_everything_and_says_so(run, signalled, folder):
    stdout, stderr, status = signalled(signal.SIGINT)
    assert status == 130
    assert "; it was interrupted. " in stdout
    assert stderr == (
        "gumbelrace: interrupted; everything is kept in run.db, and the same command goes on from there\n"
    )
    told = json.loads(run(*WORDS, "--store", "run.db", "--status", "--json").stdout)
    assert told["evaluations"] == len(asked(folder))


HANGING = "import os, time; print(os.getpid(), file=open('asked', 'a'), flush=True); time.sleep(60)"


def test_a_second_ctrl_c_is_said_once_and_leaves_no_process(folder):
    (folder / "score.py").write_text(HANGING)
    command = [sys.executable, "-m", "gumbelrace", *EVALUATE]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    while len(asked(folder)) < 2:
        time.sleep(0.01)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
    said = process.communicate(timeout=60)[1]
    assert said == "gumbelrace: interrupted; nothing was kept, as there is no --store\n"
    for number in asked(folder):
        with pytest.raises(ProcessLookupError):
            os.kill(int(number), 0)


def test_a_program_that_cannot_work_ends_the_run(fails, folder):
    assert fails(*WORDS).startswith("--run is missing")
    assert fails(*WORDS, "--run", "no-such-program") == "there is no program 'no-such-program' to be run"
    said = fails(*WORDS, "--run", f"{shlex.quote(sys.executable)} missing.py", "--store", "run.db")
    assert "before it gave any number" in said
    assert "missing.py" in said
    assert cells(folder) == 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--delta", "2"), "delta must be between 0 and 1"),
        (("--range", "1", "0"), "score_range must be two numbers, the lower first"),
        (("--store", "nowhere/run.db"), "nowhere/run.db cannot be written"),
        (("--store", "score.py"), "score.py cannot be used as a store"),
        (("--status",), "--status tells what a store shows"),
        (("--status", "--store", "none.db"), "--status tells what a store shows"),
        (("--out", "nowhere/page.html"), "there is no folder nowhere"),
        (("--examples", "none.jsonl"), "path 'none.jsonl' does not exist"),
        (("--candidates", "score.py"), "score.py, line 2: it is not JSON"),
    ],
)
def test_what_is_wrong_is_one_line(fails, folder, words, complaint):
    assert complaint in fails(*EVALUATE, *words)
    assert asked(folder) == []


def test_scores_outside_the_range_are_named(fails):
    said = fails(*WORDS, "--run", f'{shlex.quote(sys.executable)} -Sc "print(input() and 7)"')
    assert "scored 7.0, outside score_range=(0, 1)" in said
