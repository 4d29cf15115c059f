"""The demo's table: one line for each solver, numbers that agree with each other."""

import re

import pytest

from gumbelrace import demo

SIZE, ARMS, DRAWS = 20_000, 4, 40


@pytest.fixture(scope="module")
def rows() -> list[demo.Row]:
    return list(demo.rows(demo.problem(SIZE, ARMS), DRAWS))


def test_every_solver_has_a_row(rows: list[demo.Row]) -> None:
    assert [row.solver for row in rows] == [name for name, *_ in demo.CONTENDERS]


def test_numbers_are_consistent(rows: list[demo.Row]) -> None:
    exact = rows[0]
    for row in rows:
        assert 1 <= row.draws <= DRAWS
        assert 0 <= row.errors <= row.draws
        assert 0.0 < row.read <= 1.0
        assert row.seconds > 0.0
        assert row.speed_up > 0.0
    assert (exact.read, exact.errors, exact.speed_up) == (1.0, 0, 1.0)


def test_only_proved_bounds_are_called_proved(rows: list[demo.Row]) -> None:
    words = {row.solver: demo.line(row).split()[-1] for row in rows}
    assert words == {
        "exact scan": "exact",
        "Race(Normal())": "assumed",
        "Betting()": "proved",
        "Race(Serfling())": "proved",
        "LilUCB()": "assumed",
    }


def test_main_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main(SIZE, ARMS, DRAWS) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    first = lines.index(demo.HEADER) + 2
    for line, (name, _, _) in zip(lines[first:], demo.CONTENDERS, strict=False):
        match = re.match(re.escape(name) + r" +([\d.]+)% +(\d+) of (\d+) +[\d.,]+ +[\d.]+x", line)
        assert match, line
        assert 0.0 <= float(match[1]) <= 100.0
        assert int(match[2]) <= int(match[3])


def test_interrupt_keeps_what_was_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, rows: list[demo.Row]
) -> None:
    def interrupted(*_: object):
        yield rows[0]
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "rows", interrupted)
    assert demo.main(SIZE, ARMS, DRAWS) == demo.INTERRUPTED
    out = capsys.readouterr().out
    assert demo.line(rows[0]) in out
    assert "Interrupted" in out
