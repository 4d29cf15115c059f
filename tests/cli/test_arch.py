"""The order of an ARCH model from the command line, on series small enough for a test."""

import csv
import re
from functools import partial

import numpy as np
import pytest

from gumbelrace.applications import arch_compared
from gumbelrace.applications.arch_chains import Plan
from gumbelrace.cli import arch
from gumbelrace.core import progress as lines
from gumbelrace.paper import commands
from gumbelrace.report.arch import TITLE

SMALL = ("--orders", "1,3", "--steps", 400, "--chains", 2)
ORDERS, WHICH = "orders.csv", ("order", "visits", "log_probability")


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(arch, "Plan", partial(Plan, adapt=100))


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def prices(path, count=700, seed=1):
    """Write a price every five minutes of 70 a day."""
    rng = np.random.default_rng(seed)
    walk = 100.0 * np.exp(np.cumsum(0.001 * rng.standard_t(6.0, count)))
    day, bar = np.divmod(np.arange(count), 70)
    times = (
        np.datetime64("2024-01-01T09:00", "s")
        + day * np.timedelta64(1, "D")
        + bar * np.timedelta64(300, "s")
    )
    lines = [f"{time},{value:.6f}" for time, value in zip(times, walk, strict=True)]
    path.write_text("\n".join(["datetime,close", *lines]), encoding="utf-8")
    return path


def test_simulated_returns(run, short, tmp_path):
    result = run("arch", "--simulate", 1200, "--out", "results", *SMALL)
    assert result.exit_code == 0, result.output
    shown = " ".join(result.stdout.split())
    assert shown.startswith("order ")
    assert "probability" in shown
    assert "BIC" not in shown
    folder = tmp_path / "results"
    page = (folder / "arch.html").read_text(encoding="utf-8")
    assert page.count("<svg") >= 5
    found = rows(folder / ORDERS)
    assert [row["order"] for row in found] == ["1", "3"]
    assert sum(int(row["visits"]) for row in found) == 800
    names = [row["name"] for row in rows(folder / "parameters.csv")]
    assert names[0] == "α0"
    assert names[-1] == "ν"

    again = run("arch", "--simulate", 1200, "--out", "results", *SMALL)
    assert again.exit_code == 0, again.output
    assert rows(folder / ORDERS) == found


def test_the_answer_is_the_first_line_of_the_page(run, short, tmp_path):
    run("arch", "--simulate", 1200, "--out", "results", *SMALL)
    page = (tmp_path / "results" / "arch.html").read_text(encoding="utf-8")
    text = re.sub(r"<style.*?</style>|<[^>]+>", " ", page, flags=re.DOTALL)
    after = " ".join(text.split()).split(TITLE)[-1]
    assert re.match(r".{0,40}Order (1|3) is the most probable of 1, 3: probability (over )?0\.\d+", after)
    assert "p = " not in after[:400]


def test_an_answer_at_the_edge_of_the_orders_says_so(run, short, tmp_path):
    """Simulated returns have order 10, prices of independent returns need no lags."""
    prices(tmp_path / "prices.csv")
    for words, best in (
        (["--simulate", 1200, "--out", "far"], "3"),
        (["prices.csv", "--out", "near"], "1"),
    ):
        shown = " ".join(run("arch", *words, *SMALL).stdout.split())
        page = (tmp_path / words[-1] / "arch.html").read_text(encoding="utf-8")
        assert shown.startswith(f"order {best},")
        assert ("3 is the largest order that was offered; --orders" in shown) == (best == "3")
        assert ("3 is the largest order that was offered; --orders" in page) == (best == "3")


def test_others_are_run_only_to_compare(run, short, tmp_path, monkeypatch):
    """Twin, importance sampling and the other package take many times as long as the answer."""

    def never(*_, **__):
        raise AssertionError

    with monkeypatch.context() as alone:
        for name in ("by_importance", "bic_by_package", "with_twin"):
            alone.setattr(arch_compared, name, never)
        assert run("arch", "--simulate", 1200, "--out", "alone", *SMALL).exit_code == 0
        assert run("arch", "--simulate", 1200, "--out", "x", *SMALL, "--compare").exit_code != 0
    result = run("arch", "--simulate", 1200, "--out", "both", *SMALL, "--compare")
    assert result.exit_code == 0, result.output
    alone, both = (rows(tmp_path / name / ORDERS) for name in ("alone", "both"))
    assert [{name: row[name] for name in WHICH} for row in both] == [
        {name: row[name] for name in WHICH} for row in alone
    ]
    assert "importance" in both[0]
    assert "importance" not in alone[0]
    assert "exact chain" in (tmp_path / "both" / "arch.html").read_text(encoding="utf-8")


def test_a_finished_run_leaves_no_more_than_it_says(run, short, tmp_path):
    small, whole = (tmp_path / name for name in ("small", "whole"))
    shown = run("arch", "--simulate", 1200, "--out", "small", *SMALL).stdout
    assert "--keep would also keep the chains" in " ".join(shown.split())
    assert [path.name for path in (small / ".gumbelrace").iterdir()] == ["run.json"]
    assert not (small / "trace.nc").exists()
    assert sum(path.stat().st_size for path in small.rglob("*") if path.is_file()) < 2e6
    assert run("arch", "--simulate", 1200, "--out", "whole", *SMALL, "--keep").exit_code == 0
    assert (whole / "trace.nc").exists()
    assert [*whole.glob(".gumbelrace/arch-*/raced/chain-0.npz")]
    assert rows(whole / ORDERS) == rows(small / ORDERS)
    run("arch", "--simulate", 1200, "--out", "whole", *SMALL)
    assert {path.name for path in whole.iterdir()} == {path.name for path in small.iterdir()}


def test_without_a_terminal_lines_tell_how_far_it_is(run, short, monkeypatch):
    monkeypatch.setattr(lines, "FIRST", 0.0)
    monkeypatch.setattr(lines, "OFTEN", 0.0)
    result = run("arch", "--simulate", 1200, "--out", "results", *SMALL)
    assert re.search(r"^gumbelrace: fitting all orders: \d+ s so far$", result.stderr, re.MULTILINE)
    assert re.search(r"^gumbelrace: steps of 2 chains: \d+%", result.stderr, re.MULTILINE)


def test_prices_from_a_file(run, short, tmp_path):
    prices(tmp_path / "prices.csv")
    result = run("arch", "prices.csv", "--out", "results", *SMALL)
    assert result.exit_code == 0, result.output
    page = (tmp_path / "results" / "arch.html").read_text(encoding="utf-8")
    assert "690 in 1 segment" in page  # 9 overnight returns are dropped
    assert "9 overnight" in page


def test_holes_are_told_and_cut(run, short, tmp_path):
    """Two rows without a price and a year without any: counted and named on the terminal and the page."""
    prices(tmp_path / "prices.csv", 630)
    head, *lines = (tmp_path / "prices.csv").read_text().splitlines()
    later = [line.replace("2024-", "2025-") for line in lines[350:]]
    times = [lines[k].split(",")[0] for k in (10, 20)]
    lines[10], lines[20] = (f"{time}," for time in times)
    (tmp_path / "holes.csv").write_text("\n".join([head.replace("close", "Close"), *lines[:350], *later]))
    result = run("arch", "holes.csv", "--out", "results", *SMALL)
    assert result.exit_code == 0, result.output
    shown = " ".join(result.stdout.split())
    assert "mended 2 missing, 7 overnight, 2 gaps, 1 long gaps" in shown
    assert "gap no price from 2024-01-05 14:45 to 2025-01-06 09:00: the series is cut there" in shown
    page = (tmp_path / "results" / "arch.html").read_text(encoding="utf-8")
    assert "619 in 2 segments" in page
    assert "2024-01-05 14:45 to 2025-01-06 09:00" in page

    joined = run("arch", "holes.csv", "--out", "joined", "--longest-gap", 400, *SMALL)
    assert "gap " not in joined.stdout
    assert "619 in 1 segment" in (tmp_path / "joined" / "arch.html").read_text(encoding="utf-8")


def test_daily_prices_counted_in_seconds(run, short, tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{1.6e9 + 86400 * day:.0f},{price}" for day, price in enumerate(np.exp(rng.normal(size=400)))]
    (tmp_path / "daily.csv").write_text("\n".join(["datetime,close", *lines]))
    result = run("arch", "daily.csv", "--out", "results", *SMALL)
    assert result.exit_code == 0, result.output
    assert "overnight returns from day to day are kept" in " ".join(result.stdout.split())
    assert "399 in 1 segment" in (tmp_path / "results" / "arch.html").read_text(encoding="utf-8")


def test_what_is_wrong_with_prices_is_said_with_the_remedy(fails, tmp_path):
    prices(tmp_path / "prices.csv", 60)
    assert fails("arch", "prices.csv", "--price", "paid") == (
        "prices.csv has no column 'paid'; name one of 'datetime', 'close' by --price"
    )
    (tmp_path / "daily.csv").write_text("datetime,close\n2024-01-02,1\n2024-01-03,2\n2024-01-04,1\n")
    said = fails("arch", "daily.csv", "--overnight", "dropped")
    assert said.startswith("daily.csv: 3 usable prices give no return")
    assert "--overnight kept" in said


def test_mistakes(fails, tmp_path):
    prices(tmp_path / "prices.csv", 200)
    assert "not both" in fails("arch")
    assert "not both" in fails("arch", "prices.csv", "--simulate", 1000)
    assert "does not exist" in fails("arch", "nowhere.csv")
    assert "--orders" in fails("arch", "--simulate", 1000, "--orders", "5,ten")
    assert "orders" in fails("arch", "--simulate", 1000, "--orders", "5")
    assert "order" in fails("arch", "--simulate", 200, "--orders", "0,5")
    assert "price" in fails("arch", "prices.csv", "--price", "price")
    assert "too few" in fails("arch", "prices.csv", "--orders", "5,190")
    assert "delta" in fails("arch", "prices.csv", "--delta", 2)
    assert not (tmp_path / "arch").exists()


def test_a_folder_belongs_to_one_run(run, fails, short, tmp_path):
    """README's own lines: another command, other data or options never replace what is there unasked."""
    words = ("--out", "results", *SMALL)
    assert run("arch", "--simulate", 1000, *words).exit_code == 0
    before = contents(tmp_path / "results")
    remedy = "; choose another --out, or --restart to replace it"
    assert fails("arch", "--simulate", 1100, *words) == "results holds a run on other data" + remedy
    said = fails("arch", "--simulate", 1000, *words, "--steps", 500)
    assert said == "results holds a run with --steps 400, not 500" + remedy
    said = fails("reproduce", "arch", "--quick", "--out", "results")
    assert said == "results holds a run of gumbelrace arch" + remedy
    assert contents(tmp_path / "results") == before
    assert run("arch", "--simulate", 1100, *words, "--restart").exit_code == 0
    assert contents(tmp_path / "results") != before
    assert run("arch", "--simulate", 1100, *words, "--keep").exit_code == 0
    (path,) = tmp_path.glob("results/.gumbelrace/arch-*/raced/run.json")
    path.write_text(path.read_text().replace('"chains": 2', '"chains": 3'))
    said = fails("arch", "--simulate", 1100, *words)
    assert said == "results holds a run of another version" + remedy


def contents(folder):
    return {path: path.read_bytes() for path in folder.glob("*.*") if path.is_file()}


def test_a_killed_run_goes_on_to_the_same_result(run, killed, tmp_path):
    """SIGKILL while chains run: the next call goes on from its checkpoints, as if nothing had happened."""
    words = [*map(str, SMALL), "--steps", "1000", "--simulate", "1200", "--out"]
    assert run("arch", *words, "whole").exit_code == 0
    killed("arch", *words, "killed", once="killed/.gumbelrace/arch-1000-2-0/raced*")
    assert not (tmp_path / "killed" / ORDERS).exists()
    assert run("arch", *words, "killed").exit_code == 0
    for name in (ORDERS, "parameters.csv", "tracks.csv"):
        assert rows(tmp_path / "killed" / name) == rows(tmp_path / "whole" / name)


def test_reproduce_shows_the_papers_setting_and_ours(run, tmp_path, monkeypatch):
    short = Plan(steps=400, chains=2, first=50, adapt=100, audited=10)
    monkeypatch.setattr(commands, "QUICK_OURS", short)
    monkeypatch.setattr(commands, "QUICK_PAPER", short)
    monkeypatch.setattr(commands, "ORDERS", (1, 3))
    prices(tmp_path / "prices.csv")
    result = run("reproduce", "arch", "--data", "prices.csv", "--quick", "--out", "results")
    assert result.exit_code == 0, result.output
    assert "it cannot be said" in " ".join(result.stdout.split())  # of 10 steps
    folder = tmp_path / "results"
    page = (folder / "arch.html").read_text(encoding="utf-8")
    assert page.count("<svg") >= 8
    assert "The paper says" in page
    assert len(rows(folder / "paper_claims.csv")) == 7
    assert [row["order"] for row in rows(folder / "paper_orders.csv")] == ["1", "3"]
