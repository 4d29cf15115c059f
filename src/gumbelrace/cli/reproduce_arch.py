"""``gumbelrace reproduce arch``: the ARCH experiment as the paper prints it, and in our setting."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from gumbelrace.applications.arch import ORDERS
from gumbelrace.applications.arch_chains import Plan
from gumbelrace.applications.arch_evidence import Estimates
from gumbelrace.cli.arch import check_packages, of_plan, studied, told, write_data
from gumbelrace.cli.options import Seed
from gumbelrace.cli.places import Folder, made
from gumbelrace.cli.progress import waiting
from gumbelrace.cli.series import AtNight, Price, Segment, Time, described, returns_of, simulated_returns
from gumbelrace.cli.words import paragraphs
from gumbelrace.experiments.files import write_rows
from gumbelrace.models.returns import Overnight, Returns
from gumbelrace.paper.arch_page import arch_page
from gumbelrace.paper.arch_setting import fit_paper_setting
from gumbelrace.paper.arch_study import PLAN, PaperStudy, run_paper_setting
from gumbelrace.report.page import write_page

PAGE = "arch.html"
# Returns that are simulated if there are no data, and plans of --quick.
SIMULATED = 13_000
QUICK = Plan(steps=4000, exact_steps=400, adapt=1000, audited=200)
QUICK_PRINTED = replace(PLAN, steps=400, exact_steps=400, adapt=500, audited=100)
CONTENTS = {
    "printed_claims": "the paper's statements and what was found",
    "printed_tracks": "estimates of log p(q | r) over time in the paper's setting",
    "printed_orders": "log p(q | r) by the raced chains in the paper's setting",
}


def arch(
    out: Folder = Path("arch"),
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Prices: .csv, .csv.gz or .parquet. Without it, 13,000 returns are simulated.",
            show_default=False,
        ),
    ] = None,
    price: Price = "close",
    time: Time = "datetime",
    segment: Segment = None,
    overnight: AtNight = Overnight.DROPPED,
    quick: Annotated[bool, typer.Option("--quick", help="Short chains: a look at the page.")] = False,
    seed: Seed = 0,
) -> None:
    """Reproduce the ARCH order selection (section 5.2, appendix C.2).

    The order of an ARCH model of 5-minute returns, of 5, 10, ..., 30 lags: in the paper's setting, whose
    figures stand beside the paper's, and in ours, which mixes better and reads less. FOLDER gets a page,
    arch.html, and its data.

    Stop it with Ctrl-C; the same command goes on where it was.

    For example:

    `gumbelrace reproduce arch --data prices.csv --segment segment --out results`
    """
    check_packages()
    plans = (QUICK, QUICK_PRINTED) if quick else (Plan(), PLAN)
    ours, paper = (replace(plan, seed=seed) for plan in plans)
    if data is None:
        returns = simulated_returns(SIMULATED, seed)
    else:
        returns = returns_of(data, price, time, segment, overnight)
    folder = made(out)
    study = studied(returns, ORDERS, ours, folder)
    printed = as_printed(returns, study.importance, paper, folder)
    with waiting("making the page"):
        files = write_data(folder, study) | write_printed(folder, printed)
        facts = described(returns, study.fitted.data.size) | of_plan(ours) | of_printed(paper)
        write_page(folder / PAGE, arch_page((printed, study), returns.values.tolist(), facts, files))
    print(claims_told(printed), told(study, folder / PAGE), sep="\n")


def as_printed(returns: Returns, reference: Estimates, plan: Plan, folder: Path) -> PaperStudy:
    """Fit all orders in the paper's setting and run its chains."""
    with waiting("fitting all orders as printed"):
        printed = fit_paper_setting(returns, ORDERS, rng=np.random.default_rng(plan.seed))
    place = folder / f".printed-{plan.steps}-{plan.chains}-{plan.seed}"
    return run_paper_setting(printed, reference, plan, place)


def write_printed(folder: Path, study: PaperStudy) -> dict[str, str]:
    """Write what the page shows of the paper's setting; return the files and what is in them."""
    tables: dict[str, Sequence[Any]] = {
        "printed_claims": study.claims,
        "printed_tracks": study.tracks,
        "printed_orders": study.raced.orders,
    }
    return {
        name: CONTENTS[table] for table, rows in tables.items() for name in write_rows(folder, table, rows)
    }


def of_printed(plan: Plan) -> dict[str, str]:
    """Say how the paper's setting was run."""
    return {
        "As printed": f"{plan.chains} chains of {plan.adapt:,} steps that adapt, {plan.steps:,} that do not"
    }


def claims_told(study: PaperStudy) -> str:
    """Count the paper's statements that held, and name the others."""
    claims = study.claims
    held = sum(claim.held is True for claim in claims)
    differ = [("differs", claim.paper) for claim in claims if claim.held is False]
    return paragraphs([("claims", f"{held} of {len(claims)} held"), *differ])
