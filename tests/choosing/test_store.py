"""The store: nothing is paid for twice, whatever happens, and changes are asked about."""

import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import pytest

import gumbelrace as gr
from gumbelrace.choosing.contents import items, named
from gumbelrace.choosing.store import Cell, Store
from gumbelrace.errors import InvalidArgument, InvalidFile, StoreBusy, StoreMismatch

SCORES = np.random.default_rng(2).random((3, 200)) < np.array([[0.5], [0.55], [0.6]])
PROMPTS = {"A": "first", "B": "second", "C": "third"}
INDEX = {text: number for number, text in enumerate(PROMPTS.values())}


class Counted:
    """Scores by the table, which counts how often each was asked for."""

    def __init__(self):
        self.asked = []

    def __call__(self, prompt, example):
        self.asked.append((prompt, example))
        return float(SCORES[INDEX.get(prompt, 0), example % 200])


def options(**changes):
    settled = {"score_range": (0, 1), "rng": 1, "workers": 3, "progress": False}
    return {"candidates": PROMPTS, "examples": list(range(200)), **settled, **changes}


def test_a_run_goes_on_where_it_was(tmp_path):
    alone, parts = Counted(), Counted()
    whole = gr.choose(alone, **options())
    for budget in (100, 250, None):
        found = gr.choose(parts, **options(budget=budget, store=tmp_path / "run.db"))
        assert budget is None or found.evaluations == budget == len(parts.asked)
    assert len(set(parts.asked)) == len(parts.asked) == found.evaluations
    assert (found.best, found.within) == (whole.best, whole.within)
    assert np.array_equal(found.out_at, whole.out_at)
    assert found.reused == 250


def test_examples_in_another_order_are_the_same_examples(tmp_path):
    score = Counted()
    first = gr.choose(score, **options(store=tmp_path / "run.db"))
    made, score.asked = score.asked, []
    backwards = options(store=tmp_path / "run.db", examples=list(range(200))[::-1], rng=9)
    again = gr.choose(score, **backwards)
    assert score.asked == []
    assert again.out_at.tolist() == first.out_at.tolist()
    gr.choose(score, **{**backwards, "delta": 1e-4})
    assert score.asked
    assert not set(made) & set(score.asked)


def test_the_tables_are_as_documented(tmp_path):
    gr.choose(Counted(), **options(store=tmp_path / "run.db", cost=0.5))
    with sqlite3.connect(tmp_path / "run.db") as connection:
        kinds = dict(connection.execute("SELECT kind, COUNT(*) FROM items GROUP BY kind"))
        cells = connection.execute(
            "SELECT c.text, e.text, score, cost, seconds, attempts, error FROM cells "
            "JOIN items c ON c.id = candidate JOIN items e ON e.id = example"
        ).fetchall()
    assert kinds == {"candidate": 3, "example": 200, "claim": 1}
    for prompt, example, score, cost, seconds, attempts, error in cells:
        assert score == SCORES[INDEX[json.loads(prompt)], json.loads(example)]
        assert (cost, attempts, error) == (0.5, 1, None)
        assert seconds >= 0.0


def test_changed_candidates_are_asked_about(tmp_path):
    store = tmp_path / "run.db"
    gr.choose(Counted(), **options(store=store))
    changed = {**PROMPTS, "B": "second, changed"}
    with pytest.raises(StoreMismatch, match=r"new_candidates='independent'.*'informed'"):
        gr.choose(Counted(), **options(candidates=changed, store=store))
    score = Counted()
    found = gr.choose(score, **options(candidates=changed, store=store, new_candidates="independent"))
    assert {prompt for prompt, _ in score.asked} >= {"second, changed"}
    assert found.reused > 0
    again = Counted()
    gr.choose(again, **options(candidates=changed, store=store))  # is known by now
    assert again.asked == []


def orders(store):
    return [json.loads(text)["seed"] for text in Store(store).texts("claim")]


def test_informed_candidates_get_a_fresh_order_and_keep_what_was_paid(tmp_path):
    store, score = tmp_path / "run.db", Counted()
    gr.choose(score, **options(store=store))
    gr.choose(
        score, **options(candidates={**PROMPTS, "D": "fourth"}, store=store, new_candidates="informed")
    )
    assert len(set(score.asked)) == len(score.asked)
    first, second = orders(store)
    assert first != second


def test_informed_candidates_need_rows_nobody_looked_at_for_claims_about_the_future(tmp_path):
    store = tmp_path / "run.db"
    kind = {"store": store, "claim": "future examples"}
    first, second = Counted(), Counted()
    gr.choose(first, **options(budget=60, **kind))
    more = options(candidates={**PROMPTS, "D": "fourth"}, new_candidates="informed", budget=200, **kind)
    gr.choose(second, **more)
    assert not {example for _, example in first.asked} & {example for _, example in second.asked}
    before = len(second.asked)
    gr.choose(second, **{**more, "new_candidates": None})
    assert len(second.asked) == before  # the same rows are left out when it goes on


def test_new_examples_are_a_new_claim(tmp_path):
    store, score = tmp_path / "run.db", Counted()
    gr.choose(score, **options(store=store))
    gr.choose(score, **options(store=store, examples=list(range(260))))
    assert len(set(score.asked)) == len(score.asked)
    assert len(orders(store)) == 2


@pytest.mark.parametrize("changes", [{"score_range": (0, 2)}, {"on_failure": "worst case"}])
def test_other_settings_are_refused(tmp_path, changes):
    gr.choose(Counted(), **options(store=tmp_path / "run.db"))
    with pytest.raises(StoreMismatch, match=next(iter(changes))):
        gr.choose(Counted(), **options(store=tmp_path / "run.db", **changes))


def test_a_second_writer_is_refused(tmp_path):
    store = Store(tmp_path / "run.db")
    with pytest.raises(StoreBusy, match="another process is writing"):
        Store(tmp_path / "run.db")
    store.close()
    Store(tmp_path / "run.db").close()


def test_another_file_is_no_store(tmp_path):
    (tmp_path / "text").write_text("not a database, " * 100)
    with pytest.raises(InvalidFile, match="cannot be used as a store"):
        Store(tmp_path / "text")


def test_the_lock_is_that_of_the_file_a_link_leads_to(tmp_path):
    (tmp_path / "link.db").symlink_to("run.db")
    store = Store(tmp_path / "run.db")
    with pytest.raises(StoreBusy, match=r"link\.db"):
        Store(tmp_path / "link.db")
    store.close()


def test_a_table_of_another_program_is_left_alone(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE items (name TEXT)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(InvalidFile, match="its table items is that of another program"):
        Store(path)
    assert path.read_bytes() == before


def test_errors_of_any_letters_can_be_written():
    store = Store(None)
    store.write([Cell(1, 2, None, 1.0, 0.0, 1, "half \ud800 a pair")])
    assert store.failures() == [(1, 2, r"half \ud800 a pair")]


def test_a_cell_is_never_written_over():
    store = Store(None)
    store.write([Cell(1, 2, 0.5, 1.0, 0.0, 1, None)])
    with pytest.raises(sqlite3.IntegrityError):
        store.write([Cell(1, 2, 0.6, 1.0, 0.0, 1, None)])


RUN = """
import sys, time, numpy as np, gumbelrace as gr
scores = np.random.default_rng(2).random((3, 200)) < np.array([[0.5], [0.55], [0.6]])
asked = open(sys.argv[2], "a", buffering=1)
def score(candidate, example):
    time.sleep(0.0005)
    print(candidate, example, file=asked)
    return float(scores[candidate, example])
print("ready", flush=True)
choice = gr.choose(score, candidates=[0, 1, 2], examples=list(range(200)), score_range=(0, 1), rng=1,
                   workers=4, store=sys.argv[1], progress=False)
print(choice.best, choice.out_at.tolist())
"""


def test_killed_runs_go_on_and_pay_for_nothing_stored_twice(tmp_path):
    """kill -9 at 20 random moments: nothing in the store is evaluated again, and the answer is the same."""
    rng = np.random.default_rng(0)
    arguments = [sys.executable, "-c", RUN]
    stored = set()
    for kill in range(21):
        log = tmp_path / f"asked{kill}"
        process = subprocess.Popen(
            [*arguments, tmp_path / "run.db", log], stdout=subprocess.PIPE, text=True
        )
        process.stdout.readline()
        if kill < 20:
            time.sleep(rng.uniform(0.0, 0.03))
            process.send_signal(signal.SIGKILL)
        said = process.communicate()[0]
        asked = [tuple(map(int, line.split())) for line in log.read_text().splitlines()]
        assert not stored & set(asked)
        stored = cells(tmp_path / "run.db")
    alone = subprocess.run(
        [*arguments, tmp_path / "other.db", tmp_path / "other"], capture_output=True, text=True, check=True
    )
    assert said.strip() == alone.stdout.removeprefix("ready").strip()


def cells(path):
    """Candidates and examples of which the store has an evaluation."""
    if not path.exists():
        return set()
    with sqlite3.connect(path) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'cells'").fetchone():
            return set()
        return set(
            connection.execute(
                "SELECT CAST(c.text AS INTEGER), CAST(e.text AS INTEGER) FROM cells "
                "JOIN items c ON c.id = candidate JOIN items e ON e.id = example"
            )
        )


@dataclass
class Prompt:
    text: str
    shots: int


def test_contents_decide_what_is_the_same():
    values = [
        "a",
        {"x": 1, "y": [2.5, None]},
        Prompt("a", 2),
        np.arange(3),
        b"a",
        np.float64(0.5),
        ("a", 1),
    ]
    keys = [item.key for item in items(values, None, stored=True)]
    assert len(set(keys)) == len(values)
    assert keys == [item.key for item in items(list(values), None, stored=True)]
    assert items([{"y": 1, "x": 2}], None, True) == items([{"x": 2, "y": 1}], None, True)
    assert items([Prompt("a", 3)], None, True) != items([Prompt("a", 2)], None, True)


class Knn(NamedTuple):
    size: int


class Tree(NamedTuple):
    size: int


class Text(str):
    temperature = 0.0


class Level(IntEnum):
    LOW = 1
    OTHER_NAME = 2


def test_values_that_json_writes_alike_are_told_apart():
    values = [
        *([5], Knn(5), Tree(5), [Tree(5)]),
        *(1, Level.LOW, Level.OTHER_NAME, {"1": 0}, {1: 0}, {1: 0, "1": 0}),
        *("half \ud800 a pair", "half \\ud800 a pair"),
    ]
    found = items(values, None, stored=True)
    assert len({item.key for item in found}) == len(values)
    assert json.loads(found[-2].text) == "half \ud800 a pair"


@pytest.mark.parametrize(
    "value", [Text("a"), [Text("a")], Counter("a"), np.ma.masked_array([1, 2], [0, 1]), np.longdouble(1)]
)
def test_values_with_more_to_them_than_their_contents_are_refused(value):
    with pytest.raises(InvalidArgument, match="cannot know"):
        items([value], None, stored=True)
    assert items([value], None, stored=False)


def test_contents_nested_too_deeply_are_refused():
    value = []
    for _ in range(100_000):
        value = [value]
    assert items([value], None, stored=False)[0].text == "0"
    with pytest.raises(InvalidArgument, match="cannot know list number 0 again"):
        items([value], None, stored=True)


def test_what_has_no_contents_is_known_by_its_name():
    assert items([print], ["P"], stored=True) == items([len], ["P"], stored=True)
    assert len(items([print, len], None, stored=False)) == 2
    with pytest.raises(InvalidArgument, match=r"number 1.*dict by names"):
        items(["text", print], None, stored=True)


def test_names():
    assert named({"A": 1, "B": 2}) == ("A", "B")
    assert named(["short", "two\nlines"]) == ("short", "two lines")
    assert named(["same", "same"]) == ("0", "1")
    assert named([print, len]) == ("0", "1")
    assert len(named(["x" * 100])[0]) == 40


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(InvalidFile, match="cannot be written"):
        Store(tmp_path / "nowhere" / "run.db")


@pytest.mark.parametrize("changes", [{"examples": list(range(199))}, {"claim": "future examples"}])
def test_stored_scores_outside_of_the_range_are_refused_whatever_is_claimed(tmp_path, changes):
    store = tmp_path / "run.db"
    gr.choose(lambda prompt, example: 10.0 * (example % 2), **options(store=store, score_range=(0, 10)))
    with pytest.raises(StoreMismatch, match=r"scores from 0 to 10, outside score_range=\(0, 1\)"):
        gr.choose(Counted(), **options(store=store, **changes))
    wider = gr.choose(Counted(), **options(store=store, **changes, score_range=(0, 11)))
    assert wider.reused > 0


@pytest.mark.parametrize("changes", [{"claim": "these examples"}, {"examples": list(range(199))}])
def test_candidates_are_asked_about_if_the_claim_before_was_another(tmp_path, changes):
    """New ones for a claim about the future, on rows that were looked at for another claim."""
    store, kind = tmp_path / "run.db", {"claim": "future examples", "store": tmp_path / "run.db"}
    first, second = Counted(), Counted()
    gr.choose(first, **options(budget=60, **{**kind, **changes}))
    new = options(candidates={**PROMPTS, "D": "fourth"}, budget=200, **kind)
    with pytest.raises(StoreMismatch, match=r"new_candidates='independent'.*'informed'"):
        gr.choose(second, **new)
    gr.choose(second, **new, new_candidates="informed")
    assert second.asked
    assert not {example for _, example in first.asked} & {example for _, example in second.asked}
    # Those it began with depend on no result, and the others are known by now, with the rows left out.
    assert gr.choose(Counted(), **options(store=store, claim="future examples")).reused > 0
    third = Counted()
    gr.choose(third, **{**new, "examples": list(range(150, 250)), "budget": None})
    assert third.asked
    assert not {example for _, example in first.asked} & {example for _, example in third.asked}
