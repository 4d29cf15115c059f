"""``gumbelrace demo``: what each method reads, how often it errs, and how long it takes."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from gumbelrace.applications.demo import SCALE, Row, example_race, problem, rows
from gumbelrace.cli.shared import waiting
from gumbelrace.report.demo import demo_page
from gumbelrace.report.page import write_page
from gumbelrace.tables.writing import check_output

INTRODUCTION = """\
Draws from p(x) over {arms} states, each the product of {size:,} factors (σ={scale:g}).
The first run compiles the methods (about a minute); later runs use the cache.
"""
EXPLANATION = """
read: share of the factors read by a draw; errors: draws unlike the exact ones;
speed-up: over an exact scan, in turns with it; error bound: proved or assumed."""
COLUMNS = "{:<17}{:>9}{:>16}{:>13}{:>11}  {:<12}"
HEADER = COLUMNS.format("method", "read", "errors", "µs a draw", "speed-up", "error bound").rstrip()


def demo(
    out: Annotated[Path, typer.Option(metavar="FILE", help="Write the page here.")] = Path("demo.html"),
) -> None:
    """Show what the methods do on a built-in problem, in ten seconds.

    Prints a table and writes a page with the same table, one race to watch, and what to do next. It opens
    nothing and needs no network.
    """
    check_output(out)
    show(out)


def show(out: Path, size: int = 200_000, arms: int = 10, draws: int = 2000) -> None:
    """Print a table of all methods on a problem, and write a page; slow methods make fewer draws."""
    print(INTRODUCTION.format(arms=arms, size=size, scale=SCALE))
    sys.stdout.flush()
    with waiting("timing the methods in turns"):
        found = list(rows(problem(size, arms), draws))
    print("\n".join([HEADER, "-" * len(HEADER), *map(line, found), EXPLANATION]), flush=True)
    facts = {"States": str(arms), "Factors of each": f"{size:,}", "Standard deviation σ": f"{SCALE:g}"}
    write_page(out, demo_page(found, example_race(), facts))
    print(f"\nThe same with a race to watch: {out}")


def line(row: Row) -> str:
    ground = "proved" if row.promise.proved else "assumed"
    return COLUMNS.format(
        row.method,
        f"{row.read:.2%}",
        f"{row.errors} of {row.draws}",
        f"{1e6 * row.seconds:,.1f}",
        f"{row.speed_up:.3g}x",
        "exact" if row.promise.delta == 0.0 else f"{row.promise.delta:g} {ground}",
    ).rstrip()
