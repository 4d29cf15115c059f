"""``gumbelrace arch``: the order of an ARCH model of a series of prices."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from gumbelrace.applications.arch import ORDERS, fit_orders
from gumbelrace.applications.arch_chains import Plan
from gumbelrace.applications.arch_evidence import bic_by_package
from gumbelrace.applications.arch_study import OrderStudy, run_study
from gumbelrace.atomic import unfinished
from gumbelrace.chain.export import package
from gumbelrace.cli.options import Seed
from gumbelrace.cli.places import Folder, made
from gumbelrace.cli.progress import waiting
from gumbelrace.cli.series import AtNight, Price, Segment, Time, described, returns_of, simulated_returns
from gumbelrace.cli.words import paragraphs, percent
from gumbelrace.errors import InvalidArgument
from gumbelrace.experiments.files import write_rows
from gumbelrace.models.returns import Overnight, Returns
from gumbelrace.report.arch import orders_page
from gumbelrace.report.page import write_page
from gumbelrace.solvers.base import checked_delta

# Steps whose decisions are made again exactly, at most: none wrong of so many is a rate below 0.0025.
AUDITED = 1500
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
    out: Folder = Path("arch"),
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
    price: Price = "close",
    time: Time = "datetime",
    segment: Segment = None,
    overnight: AtNight = Overnight.DROPPED,
    orders: Annotated[str, typer.Option(metavar="Q,Q,...", help="Orders to choose from.")] = ",".join(
        map(str, ORDERS)
    ),
    steps: Annotated[int, typer.Option(min=100, metavar="N", help="Steps of each chain.")] = 20_000,
    chains: Annotated[int, typer.Option(min=2, metavar="N", help="Number of chains.")] = 5,
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
    checked_delta(delta)
    check_packages()
    tenth = max(100, steps // 10)
    plan = Plan(steps, tenth, chains, delta, seed=seed, audited=min(tenth, AUDITED))
    wanted = numbers(orders)
    if (file is None) == (simulated is None):
        raise InvalidArgument("give a file of prices, or --simulate N, and not both")
    if simulated is not None:
        returns = simulated_returns(simulated, seed)
    else:
        returns = returns_of(Path(str(file)), price, time, segment, overnight)
    folder = made(out)
    study = studied(returns, wanted, plan, folder)
    with waiting("making the page"):
        files = write_data(folder, study)
        facts = described(returns, study.fitted.data.size) | of_plan(plan)
        write_page(folder / PAGE, orders_page(study, returns.values.tolist(), facts, files))
    print(told(study, folder / PAGE))


def check_packages() -> None:
    """Say now, not after the chains, what is not installed."""
    for name in ("arviz_base", "arviz_stats"):
        package(name)


def studied(returns: Returns, orders: Sequence[int], plan: Plan, folder: Path) -> OrderStudy:
    """Fit all orders and run the chains."""
    with waiting("fitting all orders"):
        fitted = fit_orders(returns, orders, rng=np.random.default_rng(plan.seed))
    study = run_study(fitted, plan, folder / f".arch-{plan.steps}-{plan.chains}-{plan.seed}")
    with waiting("fitting all orders by the package arch"):
        return replace(study, bic=bic_by_package(returns, orders))


def numbers(orders: str) -> list[int]:
    """Take numbers apart that have commas in between."""
    try:
        return sorted({int(word) for word in orders.split(",")})
    except ValueError as error:
        raise InvalidArgument(f"--orders is {orders!r}; give whole numbers, such as 5,10,15") from error


def of_plan(plan: Plan) -> dict[str, str]:
    """Say how it was run."""
    return {
        "Chains": f"{plan.chains} of {plan.steps:,} steps",
        "δ of a decision": f"{plan.delta:g}",
        "Seed": str(plan.seed),
        "gumbelrace": f"{version('gumbelrace')}, {date.today().isoformat()}",
    }


def write_data(folder: Path, study: OrderStudy) -> dict[str, str]:
    """Write what the page shows, and the chains; return the files and what is in them."""
    tables: dict[str, Sequence[Any]] = {
        "orders": study.orders,
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


def told(study: OrderStudy, page: Path) -> str:
    """Say what was found and where it is."""
    best, cost, audits = study.orders[study.best], study.raced.cost, study.audits
    found = [("order", f"{best.order}, p = {np.exp(best.log_probability):.3g}")]
    if study.bic is not None:
        found += [("BIC", f"{study.orders[int(np.argmin(study.bic))].order} (package arch)")]
    wrong = sum(check.errors for check in audits), sum(check.decisions for check in audits)
    return paragraphs(
        [
            *found,
            ("read", f"{percent(cost.share)} of what exact Gibbs sampling reads"),
            ("audit", f"{wrong[0]} of {wrong[1]:,} decisions were wrong"),
            ("page", str(page)),
        ]
    )
