"""What is said of each candidate, also if everything was read; and of a score that never works."""

import sqlite3
import time

import numpy as np
import pytest

import gumbelrace as gr
from gumbelrace.errors import EvaluationFailed, RewardOutOfRange

OPTIONS = {"score_range": (0, 1), "workers": 1, "rng": 0, "progress": False}


def test_what_was_read_to_the_end_is_known_exactly():
    """Too few examples to drop anybody by bets; oracle: the means themselves."""
    scores = {"a": [1, 0, 1], "b": [1, 1, 1], "c": [0, 0, 0], "d": [1, 1, 1]}
    choice = gr.choose(lambda row, n: row[n], scores, range(3), tolerance=0.1, **OPTIONS)
    assert {row.name: row.state for row in choice.table} == {
        "a": "out",
        "b": "best",
        "c": "out",
        "d": "tied",
    }
    assert (choice.within, choice.tied, choice.ended) == (0.0, ("d",), "examples")
    assert str(choice).startswith("b is the best, tied with d (")


def test_failures_that_may_have_been_anything_leave_it_open():
    """Negative control of the above: a failure counts as the worst case, so that c may be better."""

    def score(row, n):
        if row[n] is None:
            raise ValueError
        return row[n]

    scores = {"b": [1, 0, 1], "c": [0, None, 1]}
    choice = gr.choose(score, scores, range(3), on_failure="worst case", retries=0, **OPTIONS)
    assert (choice.within, choice.table[1].state) == (0.0, "no better")
    scores = {"b": [1, 0, 0.5], "c": [0, None, 1]}
    choice = gr.choose(score, scores, range(3), on_failure="worst case", retries=0, **OPTIONS)
    assert choice.within > 0.1
    assert choice.table[1].state == "racing"


def test_names_are_shown_without_what_a_terminal_obeys():
    choice = gr.choose(lambda c, n: c == 2, {"a\x1b[31m": 1, "b\nc": 2}, range(100), **OPTIONS)
    assert (choice.name, choice.best) == ("b c", "b\nc")
    assert "\x1b" not in repr(choice)
    assert gr.choose(lambda c, n: 1.0, ["x\x00\x1by"], range(1), **OPTIONS).name == "x y"


@pytest.mark.parametrize("workers", [1, 8])
def test_if_everything_fails_nothing_is_kept(tmp_path, workers):
    store, asked = tmp_path / "run.db", []

    def never(candidate, example):
        asked.append(example)
        raise RuntimeError("401 wrong key")

    options = OPTIONS | {"workers": workers, "retries": 0, "store": store}
    with pytest.raises(EvaluationFailed, match=r"failed, so that nothing is kept; .*: RuntimeError: 401"):
        gr.choose(never, "ab", range(1000), **options)
    assert len(asked) < 50
    assert sqlite3.connect(store).execute("SELECT COUNT(*) FROM cells").fetchone() == (0,)
    assert gr.choose(lambda c, n: c == "b", "ab", range(1000), **options).best == "b"


def test_failures_among_successes_are_kept():
    """Negative control: one that always fails beside one that works is dropped, and nothing ends."""

    def score(candidate, example):
        if candidate == "a":
            raise RuntimeError("this one is bad")
        return 1.0

    choice = gr.choose(score, "ab", range(1000), **(OPTIONS | {"retries": 0}))
    assert choice.best == "b"
    assert len(choice.failures) > 3


def test_a_score_can_end_everything():
    def score(candidate, example):
        raise EvaluationFailed("wrong key")

    with pytest.raises(EvaluationFailed, match=r"^wrong key$"):
        gr.choose(score, "ab", range(1000), **OPTIONS)


def test_rounding_does_not_lead_out_of_the_range():
    def score(candidate, example):
        return 1.0 + 2e-16 if candidate == "b" else -1e-12

    choice = gr.choose(score, "ab", range(100), **OPTIONS)
    assert (choice.best, choice.table[1].mean) == ("b", 1.0)
    with pytest.raises(RewardOutOfRange, match=r"scored 1\.00001, outside"):
        gr.choose(lambda candidate, example: 1.00001, "ab", range(100), **OPTIONS)


def test_a_page_of_many_candidates(tmp_path):
    """The best first, then who stayed longest; only those that are drawn have a path."""
    skill = np.linspace(0.2, 0.9, 40)
    draws = np.random.default_rng(0).random(300)
    choice = gr.choose(lambda c, n: draws[n] < skill[c], range(40), range(300), **OPTIONS)
    choice.report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    places = [text.index(f'data-label="candidate">{name}<') for name in range(40)]
    assert np.argsort(places)[0] == 39
    assert choice.out_at[np.argsort(places)[1]] == choice.out_at.max()


def fails(candidate, example):
    raise RuntimeError("outage")


def test_a_success_that_takes_longer_than_many_failures_is_kept():
    """The first success comes after failures enough to despair; nothing is evaluated twice."""
    asked = []

    def score(candidate, example):
        asked.append((candidate, example))
        if candidate != "good":
            raise ValueError("cannot be read")
        time.sleep(0.05 if len(asked) < 40 else 0.0)
        return 0.9

    choice = gr.choose(score, ["good", *"vwxyz"], range(60), **(OPTIONS | {"workers": 8, "retries": 0}))
    assert choice.best == "good"
    assert choice.evaluations == len(asked) == len(set(asked))


def test_a_store_of_failures_does_not_stop_what_works_now(tmp_path):
    options = OPTIONS | {"workers": 16, "retries": 0, "store": tmp_path / "run.db"}
    gr.choose(fails, "ab", list(range(500)), budget=20, **options)
    choice = gr.choose(lambda c, n: c == "b", "ab", list(range(500)), **(options | {"workers": 4}))
    assert (choice.best, choice.reused) == ("b", 20)


def test_only_failures_of_the_call_are_taken_back(tmp_path):
    def score(candidate, example):
        if example % 5 == 0:
            raise ValueError("cannot be read")
        return 0.6 if candidate == "a" else 0.4

    def kept():
        return (
            sqlite3.connect(tmp_path / "run.db")
            .execute("SELECT COUNT(*), COUNT(score) FROM cells")
            .fetchone()
        )

    options = OPTIONS | {"workers": 4, "retries": 0, "store": tmp_path / "run.db"}
    gr.choose(score, "ab", range(100), **options)
    before = kept()
    assert before[0] > before[1]
    with pytest.raises(EvaluationFailed):
        gr.choose(fails, "ab", range(1000, 1100), **options)
    assert kept() == before
