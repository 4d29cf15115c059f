"""What is shown while a campaign runs, and what it is expected to cost."""

import dataclasses
import io
import sys
import types

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
    monkeypatch.setattr(progress, "_console", lambda: Console(file=screen, force_terminal=True, width=100))
    run(monkeypatch)
    for word in ("candidate", "interval", "racing", "leads"):
        assert word in screen.getvalue()


def test_a_table_in_a_notebook(monkeypatch):
    """A stand-in for IPython, which keeps what it is told to show in one place."""
    shown = []

    class Handle:
        def update(self, data, raw):
            shown.append(data["text/plain"])

    notebook = types.ModuleType("IPython.display")
    notebook.display = lambda data, raw, display_id: Handle()
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", notebook)
    monkeypatch.setattr(progress, "_console", lambda: types.SimpleNamespace(is_jupyter=True))
    run(monkeypatch)
    assert "candidate  " in shown[0]
    assert shown[-1].count("\n") == 0


def test_names_are_shown_as_they_are_and_as_many_as_fit(campaign):
    from rich.console import Console

    names = ("[bold]x[/bold]", *(f"p{n}" for n in range(1, 3)))
    campaign.terms = dataclasses.replace(campaign.terms, names=names)
    screen = Console(file=io.StringIO(), width=100)
    screen.print(progress._picture(campaign, progress.AROUND + 2))
    text = screen.file.getvalue()
    assert "... and 1 more" in text
    screen.print(progress._picture(campaign, 100))
    assert "[bold]x[/bold]" in screen.file.getvalue()


def test_it_says_what_ctrl_c_waits_for(campaign):
    from rich.console import Console

    screen = Console(file=io.StringIO(), width=100)
    screen.print(progress._picture(campaign, 100))
    assert "stopping" not in screen.file.getvalue()
    campaign.interrupt()
    campaign.under_way = 5
    screen.print(progress._picture(campaign, 100))
    assert "stopping: 5 evaluations under way will be finished" in screen.file.getvalue()


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
