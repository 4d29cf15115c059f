"""What is shown while chains run: in a terminal, and only there."""

import io
import re
import sys

import pytest
from tests.chain.kernels import Autoregression, Point
from tests.common import seeded

import gumbelrace as gr
from gumbelrace.chain.run import show_progress
from gumbelrace.chain.worker import NOTHING, Chain, Draw, Layout, Plan

rich_console = pytest.importorskip("rich.console")


def chains(count):
    layout = Layout(Draw(Point(0.0), NOTHING))
    return [
        Chain(Autoregression(), Point(0.0), seeded(), Plan(80, 20, 1), (layout, layout.columns(80)))
        for _ in range(count)
    ]


def screen(team, steps, terminal=True):
    """Give the lines that a person has on a screen of 80 columns after so many steps."""
    file = io.StringIO()
    console = rich_console.Console(file=file, force_terminal=terminal, color_system=None, width=80)
    with show_progress(team, console=console) as refresh:
        for chain in team:
            chain.advance(steps)
        refresh()
        text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", file.getvalue()).replace("\r", "\n")
    return [line for line in text.splitlines() if line][-len(team) :]


def test_a_line_for_each_chain():
    lines = screen(chains(3), 10)
    for number, line in enumerate(lines):
        assert f"chain {number} warm-up" in line
        assert " 10%" in line
        assert "25.0% read, 1.00 accepted" in line
    assert "warm-up" not in screen(chains(1), 50)[0]


def test_the_end():
    (line,) = screen(chains(1), 100)
    assert "100%" in line


def test_many_chains_share_a_line():
    line = screen(chains(100), 50)[-1]
    assert "100 chains" in line
    assert " 50%" in line


@pytest.mark.parametrize("count", [1, 8, 9, 1000])
def test_lines_are_not_cut(count):
    assert all(len(line) <= 80 and "…" not in line for line in screen(chains(count), 1))


def test_nothing_is_shown_where_nobody_looks(capfd):
    assert screen(chains(2), 10, terminal=False) == []
    gr.run(Autoregression(), Point(0.0), steps=10, rng=seeded(), chains=2)
    assert capfd.readouterr() == ("", "")


def test_nothing_is_shown_if_not_wanted(monkeypatch, capfd):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for a terminal
    gr.run(Autoregression(), Point(0.0), steps=10, rng=seeded(), progress=False)
    assert capfd.readouterr() == ("", "")
    gr.run(Autoregression(), Point(0.0), steps=10, rng=seeded(), progress=True)
    assert "chain 0" in capfd.readouterr().err


def test_without_rich_nothing_is_shown(monkeypatch, capfd):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert gr.run(Autoregression(), Point(0.0), steps=10, rng=seeded()).draws == 10
    assert capfd.readouterr() == ("", "")
