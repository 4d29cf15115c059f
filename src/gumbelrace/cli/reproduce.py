"""``gumbelrace reproduce``: the paper's experiments, run again."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from gumbelrace.applications.store import stored
from gumbelrace.cli.options import Jobs, Seed, processors
from gumbelrace.cli.reproduce_arch import arch
from gumbelrace.cli.reproduce_coreference import coreference
from gumbelrace.cli.terminal import counting, paragraphs, waiting
from gumbelrace.errors import InvalidArgument
from gumbelrace.paper.bounds import compared_levels
from gumbelrace.paper.claims import claims_summary
from gumbelrace.paper.synthetic import study_record, synthetic_page, write_data
from gumbelrace.paper.synthetic_study import Level, Record, Settings, expected_cost, run
from gumbelrace.report.page import write_page
from gumbelrace.tables.writing import make_folder

QUICK, USUAL, FULL = 50, 2000, 10_000
PAGE = "synthetic.html"
# Beyond this δ the printed table drifts from what it says to hold.
TRUSTED = 0.37

app = typer.Typer()
app.command()(arch)
app.command()(coreference)


@app.callback(invoke_without_command=True)
def reproduce(ctx: typer.Context) -> None:
    """Run the paper's experiments again."""
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())


@app.command()
def synthetic(
    out: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER", help="Write the page and the data here; made if missing.", show_default=False
        ),
    ],
    quick: Annotated[bool, typer.Option("--quick", help=f"{QUICK} draws a point: two minutes.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help=f"The paper's {FULL:,} draws a point: most of an hour.")
    ] = False,
    seed: Seed = 0,
    jobs: Jobs = None,
) -> None:
    """Reproduce the synthetic study (section 5.1, appendices B and C.1).

    Every method draws from p(X) with 2, 10 and 100 states and 100,000 rewards each: normal, uniform and
    lognormal ones, at three levels of difficulty and several error bounds δ. FOLDER gets a page,
    synthetic.html, with the paper's figures, its claims and whether they held, and all records as CSV and
    Parquet.

    Without --quick or --full a point has 2,000 draws, which takes about ten minutes on two processors. Stop
    it with Ctrl-C; the same command goes on where it was.

    For example:

    `gumbelrace reproduce synthetic --out results --quick`
    """
    settings = Settings(draws_of(quick, full), seed)
    folder = make_folder(out)
    records = recorded(settings, folder, jobs or processors())
    with waiting("making the page"):
        study = write_data(folder, study_record(settings, records))
        write_page(folder / PAGE, synthetic_page(study))
    files = ", ".join(study.files)
    print(paragraphs([*claims_summary(study.claims), ("page", str(folder / PAGE)), ("data", files)]))


def draws_of(quick: bool, full: bool) -> int:
    if quick and full:
        raise InvalidArgument("--quick and --full exclude each other; give one of them, or neither")
    return QUICK if quick else FULL if full else USUAL


def recorded(settings: Settings, folder: Path, jobs: int) -> list[Record]:
    """Run the study, or what is left of it, and show how far it is."""
    total = sum(map(expected_cost, settings.points))
    place = folder / f".synthetic-{settings.draws}-{settings.seed}"
    with stored(place, settings.identity) as store, counting("drawing", total) as more:
        return run(settings, store, jobs, lambda point: more(expected_cost(point)))


@app.command()
def table() -> None:
    """Print B_Normal, the constant of Racing-Normal, beside the paper's table (appendix B).

    For each δ and each share of the rows read at the first look, in both readings: *two-sided*, the
    probability that the walk leaves [-B, B] upwards, which is what the printed table holds; and
    *one-sided*, that it ever exceeds B, which the paper's Eq. 5 asks for and `Race()` uses.
    """
    levels = compared_levels()
    Console(width=80).print(level_table(levels))
    print(differences(levels))


def level_table(levels: Sequence[Level]) -> Table:
    """Lay out three lines for each δ: printed, two-sided, one-sided."""
    fractions = sorted({level.first_fraction for level in levels})
    table = Table("δ", "B", *(f"{fraction:g}" for fraction in fractions), box=None, pad_edge=False)
    for column in table.columns[2:]:
        column.justify = "right"
    for delta, some in groupby(levels, lambda level: level.delta):
        for row in level_rows(delta, sorted(some, key=lambda level: level.first_fraction)):
            table.add_row(*row)
    return table


def level_rows(delta: float, levels: Sequence[Level]) -> Iterator[list[str]]:
    yield [f"{delta:g}", "printed", *(f"{level.printed:.5f}" for level in levels)]
    yield ["", "two-sided", *(f"{level.two_sided:.5f}" for level in levels)]
    yield ["", "one-sided", *(f"{level.one_sided:.5f}" for level in levels)]


def differences(levels: Sequence[Level]) -> str:
    """Say how far the readings lie from the printed numbers."""
    trusted = [level for level in levels if level.delta <= TRUSTED]
    small = [level for level in levels if level.delta <= 0.05]
    two, all_two = (max(abs(x.two_sided - x.printed) for x in some) for some in (trusted, levels))
    near, far = (max(abs(x.one_sided - x.two_sided) for x in some) for some in (small, levels))
    return paragraphs(
        [
            ("two-sided", f"within {two:.4f} of the print for δ ≤ {TRUSTED:g}, {all_two:.4f} for all δ"),
            ("one-sided", f"within {near:.4f} of the two-sided one for δ ≤ 0.05, {far:.4f} for all δ"),
        ]
    )
