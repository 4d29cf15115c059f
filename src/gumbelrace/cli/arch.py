"""``gumbelrace arch``: the order of an ARCH model of a series of prices."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from gumbelrace.applications.arch import ORDERS, models_of
from gumbelrace.applications.arch_chains import (
    TRACE,
    ArchResult,
    Plan,
    check_packages,
    checkpoints,
    choose_order,
    write_result,
    write_trace,
)
from gumbelrace.applications.arch_compared import compared
from gumbelrace.cli.folders import Folder, Keep, Restart, Results, Run, kept, results
from gumbelrace.cli.shared import (
    Format,
    PriceOptions,
    Seed,
    described,
    grouped,
    no_default,
    paragraphs,
    simulated_returns,
    waiting,
)
from gumbelrace.errors import InvalidArgument
from gumbelrace.methods.base import checked_delta
from gumbelrace.models.arch.data import Returns
from gumbelrace.report.arch import arch_page, plan_facts, summary
from gumbelrace.report.page import write_page
from gumbelrace.tables.writing import Kind

# Steps whose decisions are made again exactly, at most: none wrong of so many is a rate below 0.0025.
AUDITED = 1500
PAGE = "arch.html"
KEPT = (
    "{}: the page and its tables; --keep would also keep the chains and what the run went on from",
    "{}: the page and its tables, the chains (trace.nc) and what the run goes on from",
)
PRICES = "Prices: .csv, .tsv, .csv.gz, .parquet, or - for standard input."


@dataclass(frozen=True)
class ArchOptions(PriceOptions):
    """What the command takes."""

    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help=PRICES, show_default=False),
    ] = None
    out: Folder = Path("arch")
    simulated: Annotated[
        int | None, no_default("N", "Use N simulated returns of order 10.", "--simulate", least=100)
    ] = None
    orders: Annotated[str, typer.Option(metavar="Q,Q,...", help="Orders to choose from.")] = ",".join(
        map(str, ORDERS)
    )
    steps: Annotated[int, typer.Option(min=100, metavar="N", help="Steps of each chain.")] = 5_000
    chains: Annotated[int, typer.Option(min=2, metavar="N", help="Number of chains.")] = 5
    delta: Annotated[float, typer.Option(metavar="DELTA", help="How likely a decision may be wrong.")] = (
        0.05
    )
    seed: Seed = 0
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Compare with an exact chain, importance sampling and the BIC; takes many times as long.",
        ),
    ] = False
    keep: Keep = False
    kind: Format = Kind.CSV
    restart: Restart = False

    @property
    def run_options(self) -> dict[str, Any]:
        """Options on which the result depends, besides the data."""
        names = ("orders", "steps", "chains", "delta", "seed")
        return {f"--{name}": getattr(self, name) for name in names}


@grouped
def arch(options: ArchOptions) -> None:
    """Find how many lags an ARCH model of a series of prices needs.

    Models of all orders are compared by one chain that walks over them and their parameters. Each of its
    decisions is a race that reads a few rows of the data, after a control variate has said most of
    it. FOLDER gets a page, arch.html, with the probability of each order, its error, the
    parameters, what was read, and how often audited decisions were wrong; and the same as tables.

    Stop it with Ctrl-C; the same command goes on where it was. What it goes on from is deleted at the
    end; `--keep` keeps it, and writes the chains as trace.nc, for ArviZ (1 kB for each step).

    For example:

    `gumbelrace arch prices.csv --price close --time datetime --out results`

    `gumbelrace arch --simulate 13000`
    """
    checked_delta(options.delta)
    check_packages()
    audited = min(max(100, options.steps // 10), AUDITED)
    plan = Plan(options.steps, options.chains, options.delta, seed=options.seed, audited=audited)
    wanted = numbers(options.orders)
    returns = read_or_simulate(options)
    models_of(returns, wanted)  # what is wrong with them is said before a folder is made
    run = Run("arch", options.run_options, returns.digest)
    with results(options.out, run, options.restart, options.keep) as place:
        result = choose_order(returns, wanted, plan, place.work, waiting)
        if options.compare:
            result = compared(result, returns, checkpoints(place.work, plan), waiting)
        with waiting("making the page"):
            write(place, result, returns, options)
    found = [*summary(result), *options.remarks(returns), ("page", str(options.out / PAGE))]
    print(paragraphs([*found, ("kept", KEPT[options.keep].format(kept(place)))]))


def write(place: Results, result: ArchResult, returns: Returns, options: ArchOptions) -> None:
    """Write the page and what belongs to it."""
    files = write_result(place.folder, result, options.kind)
    if options.keep:
        files |= write_trace(place.folder, result)
    else:
        (place.folder / TRACE).unlink(missing_ok=True)  # of the same run, when it was to be kept
    facts = described(returns, result.fitted.data.size) | plan_facts(result.plan)
    write_page(place.folder / PAGE, arch_page(result, returns.values.tolist(), facts, files))


def read_or_simulate(options: ArchOptions) -> Returns:
    if (options.file is None) == (options.simulated is None):
        raise InvalidArgument("give a file of prices, or --simulate N, and not both")
    if options.file is None:
        return simulated_returns(options.simulated or 0, options.seed)
    return options.read(options.file)


def numbers(orders: str) -> list[int]:
    try:
        return sorted({int(word) for word in orders.split(",")})
    except ValueError as error:
        raise InvalidArgument(f"--orders is {orders!r}; give whole numbers, such as 5,10,15") from error
