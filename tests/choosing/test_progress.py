"""What is shown while a campaign runs, and what it is expected to cost."""

import io

import numpy as np
import pytest
from tests.choosing.cases import campaign_of, paired, raced, served

import gumbelrace as gr
from gumbelrace.choosing import progress
from gumbelrace.choosing.forecast import cost_to_decide, rows_to_decide

SCORES = paired(np.array([0.4, 0.9, 0.6]), 200, np.random.default_rng(0))


@pytest.fixture
def campaign():
    """A campaign whose budget ended it early."""
    found = campaign_of(3, 200, budget=30)
    return served(
        found, lambda task: float(SCORES[task.candidate, task.position]), np.random.default_rng(0), 1
    )


def test_a_line_says_how_far_it_is(campaign):
    said = progress.line(campaign)
    assert "30 of 600 evaluations, spent 30; " in said
    assert "1 leads" in said


def run(monkeypatch, seconds=0.0):
    monkeypatch.setattr(progress, "SELDOM", seconds)
    monkeypatch.setattr(progress, "OFTEN", seconds)
    kind = {"score_range": (0, 1), "rng": 0, "workers": 1, "progress": True}
    return gr.choose(lambda candidate, example: SCORES[candidate, example], range(3), range(200), **kind)


def test_lines_where_nobody_looks(monkeypatch, capsys):
    run(monkeypatch)
    lines = capsys.readouterr().err.splitlines()
    assert lines
    assert all(line.startswith("gumbelrace: ") and " leads; " in line for line in lines)
    run(monkeypatch, seconds=100.0)
    assert capsys.readouterr().err == ""


def test_lines_without_rich(monkeypatch, capsys, without):
    without("rich")
    run(monkeypatch)
    assert "gumbelrace: " in capsys.readouterr().err


def test_a_table_in_a_terminal(monkeypatch):
    from rich.console import Console

    screen = io.StringIO()
    monkeypatch.setattr(progress, "_terminal", lambda: Console(file=screen, force_terminal=True, width=100))
    run(monkeypatch)
    for word in ("candidate", "interval", "racing", "leads"):
        assert word in screen.getvalue()


def test_the_forecast_is_of_the_right_size():
    """Rows after which it is decided, foretold from a fifth of them: right up to a factor of 3."""
    told, true = [], []
    for seed in range(20):
        scores = paired(np.array([0.70, 0.74, 0.80]), 4000, np.random.default_rng(seed))
        whole = raced(scores)
        early = raced(np.where(np.arange(4000) < whole.rows // 5, scores, np.nan))
        told.append(rows_to_decide(early).max())
        true.append(whole.rows)
    assert 1 / 3 < np.median(told) / np.median(true) < 3


def test_nothing_is_to_be_paid_when_it_is_over(campaign):
    assert cost_to_decide(campaign) > 0.0
    over = served(
        campaign_of(3, 200),
        lambda task: float(SCORES[task.candidate, task.position]),
        np.random.default_rng(0),
        1,
    )
    assert cost_to_decide(over) == 0.0


def test_before_anything_is_known_all_may_be_needed():
    assert cost_to_decide(campaign_of(3, 200)) == 600.0
