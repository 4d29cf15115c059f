"""``gumbelrace arch``: the order of an ARCH model of a series of prices."""

from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from gumbelrace.atomic import unfinished
from gumbelrace.chain.export import package
from gumbelrace.cli.options import Seed
from gumbelrace.cli.progress import waiting
from gumbelrace.cli.reproduce import made
from gumbelrace.cli.words import paragraphs, percent
from gumbelrace.errors import InvalidArgument
from gumbelrace.experiments.files import write_rows
from gumbelrace.experiments.order_study import OrderStudy, Plan, run_study
from gumbelrace.experiments.orders import ORDERS, Fitted, fit_orders
from gumbelrace.experiments.prices import read_prices
from gumbelrace.models.arch.data import simulate
from gumbelrace.models.returns import Overnight, Returns, returns_from_prices, standardised
from gumbelrace.report.orders import orders_page
from gumbelrace.report.page import write_page
from gumbelrace.solvers.base import check_delta

PAGE, TRACE = "arch.html", "trace.nc"
CONTENTS = {
    "orders": "log p(q | r) of each order, with its error",
    "parameters": "parameters of the most probable order",
    "tracks": "estimates of log p(q | r) over time",
    "correlations": "autocorrelation of the order",
}


def arch(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Prices: .csv, .csv.gz or .parquet.", show_default=False),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Write the page and the data here; made if missing.")
    ] = Path("arch"),
    simulated: Annotated[
        int | None,
        typer.Option(
            "--simulate",
            min=100,
            metavar="N",
            help="Use N simulated returns of order 10.",
            show_default=False,
        ),
    ] = None,
    price: Annotated[str, typer.Option(metavar="COLUMN", help="Column of the prices.")] = "close",
    time: Annotated[str, typer.Option(metavar="COLUMN", help="Column of their times.")] = "datetime",
    segment: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Column of labels that returns never cross.", show_default=False
        ),
    ] = None,
    overnight: Annotated[
        Overnight, typer.Option(help="What becomes of returns from one day to another.")
    ] = Overnight.DROPPED,
    orders: Annotated[str, typer.Option(metavar="Q,Q,...", help="Orders to choose from.")] = ",".join(
        map(str, ORDERS)
    ),
    steps: Annotated[int, typer.Option(min=100, metavar="N", help="Steps of each chain.")] = 20_000,
    chains: Annotated[int, typer.Option(min=2, metavar="N", help="Number of chains.")] = 4,
    delta: Annotated[
        float, typer.Option(metavar="DELTA", help="How likely a decision may be wrong.")
    ] = 0.05,
    seed: Seed = 0,
) -> None:
    """Find how many lags an ARCH model of a series of prices needs.

    Models of all orders are compared by one chain that walks over them and their parameters. Each of its
    decisions is a race that reads a few rows of the data, after a control variate has said most of
    it. FOLDER gets a page, arch.html, with the probability of each order, its error, the
    parameters, what was read, and how often audited decisions were wrong; and the chains as
    trace.nc, for ArviZ.

    Stop it with Ctrl-C; the same command goes on where it was.

    For example:

    `gumbelrace arch prices.csv --price close --time datetime --out results`

    `gumbelrace arch --simulate 13000`
    """
    check_delta(delta)
    for name in ("arviz_base", "arviz_stats"):
        package(name)  # now, not after the chains
    wanted, plan = numbers(orders), Plan(steps, max(100, steps // 10), chains, delta, seed=seed)
    returns = given(file, simulated, seed) or prices(Path(str(file)), price, time, segment, overnight)
    folder = made(out)
    with waiting("fitting all orders"):
        fitted = fit_orders(returns, wanted, rng=np.random.default_rng(seed))
    study = run_study(fitted, plan, folder / f".arch-{steps}-{chains}-{seed}")
    with waiting("making the page"):
        files = write_data(folder, study)
        write_page(
            folder / PAGE, orders_page(study, returns.values.tolist(), facts(returns, fitted, plan), files)
        )
    print(told(study, folder))


def numbers(orders: str) -> list[int]:
    """Take numbers apart that have commas in between."""
    try:
        return sorted({int(word) for word in orders.split(",")})
    except ValueError as error:
        raise InvalidArgument(f"--orders is {orders!r}; give whole numbers, such as 5,10,15") from error


def given(file: Path | None, simulated: int | None, seed: int) -> Returns | None:
    """Simulate returns, unless there is a file."""
    if (file is None) == (simulated is None):
        raise InvalidArgument("give a file of prices, or --simulate N, and not both")
    if simulated is None:
        return None
    return standardised(simulate(simulated, np.random.default_rng([seed, 10])))


def prices(path: Path, price: str, time: str, segment: str | None, overnight: Overnight) -> Returns:
    """Read prices and take returns."""
    return returns_from_prices(*read_prices(path, price, time, segment), overnight)


def facts(returns: Returns, fitted: Fitted, plan: Plan) -> dict[str, str]:
    """Say what was run."""
    segments = len(returns.lengths)
    return {
        "Returns": f"{len(returns.values):,} in {segments:,} segment{'' if segments == 1 else 's'}",
        "Rows with all lags": f"{fitted.data.size:,}",
        "Repairs": str(returns.repairs),
        "Standardised by": f"mean {returns.mean:.3g}, deviation {returns.scale:.3g}",
        "Chains": f"{plan.chains} of {plan.steps:,} steps",
        "δ of a decision": f"{plan.delta:g}",
        "Seed": str(plan.seed),
        "gumbelrace": f"{version('gumbelrace')}, {date.today().isoformat()}",
    }


def write_data(folder: Path, study: OrderStudy) -> dict[str, str]:
    """Write what the page shows, and the chains; return the files and what is in them."""
    tables: dict[str, Sequence[Any]] = {
        "orders": study.raced.orders,
        "parameters": study.parameters,
        "tracks": study.tracks,
        "correlations": study.correlations,
    }
    files = {
        name: CONTENTS[table] for table, rows in tables.items() for name in write_rows(folder, table, rows)
    }
    with unfinished(folder / TRACE) as path:
        study.raced.trace.to_arviz().to_netcdf(path)
    return {**files, TRACE: "the raced chains, for ArviZ"}


def told(study: OrderStudy, folder: Path) -> str:
    """Say what was found and where it is."""
    best, cost, audit = study.raced.orders[study.best], study.raced.cost, study.audit
    return paragraphs(
        [
            ("order", f"{best.order}, p = {np.exp(best.log_probability):.3g}"),
            ("read", f"{percent(cost.share)} of what exact Gibbs sampling reads"),
            ("audit", f"{audit.errors} of {audit.draws} decisions were wrong"),
            ("page", str(folder / PAGE)),
        ]
    )
