"""The demo's table: one line for each method, numbers that agree with each other."""

import re
from pathlib import Path

import pytest

from gumbelrace.applications.demo import CONTENDERS, Row, problem, rows
from gumbelrace.cli import demo

SIZE, ARMS, DRAWS = 20_000, 4, 40


@pytest.fixture(scope="module")
def found() -> list[Row]:
    return list(rows(problem(SIZE, ARMS), DRAWS))


def test_every_method_has_a_row(found: list[Row]) -> None:
    assert [row.method for row in found] == [name for name, *_ in CONTENDERS]


def test_numbers_are_consistent(found: list[Row]) -> None:
    exact = found[0]
    for row in found:
        assert 1 <= row.draws <= DRAWS
        assert 0 <= row.errors <= row.draws
        assert 0.0 < row.read <= 1.0
        assert row.seconds > 0.0
        assert row.speed_up > 0.0
        assert row.speed_up == exact.seconds / row.seconds
    assert (exact.read, exact.errors, exact.speed_up) == (1.0, 0, 1.0)


def test_only_proved_bounds_are_called_proved(found: list[Row]) -> None:
    words = {row.method: demo.line(row).split()[-1] for row in found}
    assert words == {
        "exact scan": "exact",
        "Race(Normal())": "assumed",
        "Betting()": "proved",
        "Race(Serfling())": "proved",
        "LilUCB()": "assumed",
    }


def test_main_prints_the_table_and_writes_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    demo.show(tmp_path / "demo.html", SIZE, ARMS, DRAWS)
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines if str(tmp_path) not in line)
    first = lines.index(demo.HEADER) + 2
    for line, (name, _, _) in zip(lines[first:], CONTENDERS, strict=False):
        match = re.match(re.escape(name) + r" +([\d.]+)% +(\d+) of (\d+) +[\d.,]+ +[\d.]+x", line)
        assert match, line
        assert 0.0 <= float(match[1]) <= 100.0
        assert int(match[2]) <= int(match[3])
    page = (tmp_path / "demo.html").read_text(encoding="utf-8")
    assert all(name in page for name, *_ in CONTENDERS)
    assert "<svg" in page
