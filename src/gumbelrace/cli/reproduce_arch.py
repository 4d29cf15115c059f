"""``gumbelrace reproduce arch``: the ARCH experiment in the paper's setting, and in ours."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from gumbelrace.applications.arch import ORDERS, Estimates
from gumbelrace.applications.arch_chains import (
    Plan,
    check_packages,
    checkpoints,
    choose_order,
    write_result,
)
from gumbelrace.applications.store import write_tables
from gumbelrace.cli.options import (
    AtNight,
    Folder,
    Price,
    Seed,
    Segment,
    Time,
    described,
    no_default,
    returns_of,
    simulated_returns,
)
from gumbelrace.cli.terminal import paragraphs, waiting
from gumbelrace.models.arch.data import Overnight, Returns
from gumbelrace.paper.arch import claims, paper_facts, reproduced_page
from gumbelrace.paper.arch_setting import fit_paper_setting
from gumbelrace.paper.arch_study import PLAN, PaperStudy, run_paper_setting, with_twin
from gumbelrace.paper.claims import Claim, claims_summary
from gumbelrace.report.arch import plan_facts, summary
from gumbelrace.report.page import write_page
from gumbelrace.tables.writing import make_folder

PAGE = "arch.html"
# Returns that are simulated if there are no data, and plans of --quick.
SIMULATED = 13_000
QUICK = Plan(steps=4000, adapt=1000, audited=200)
QUICK_PAPER = replace(PLAN, steps=400, adapt=500, audited=100)
# The exact twin of our chains makes a step for so many of theirs.
STEPS_OF_TWIN = 10


def arch(
    out: Folder = Path("arch"),
    data: Annotated[
        Path | None,
        no_default("FILE", "Prices: .csv, .csv.gz or .parquet. Without it, 13,000 returns are simulated."),
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
    plans = (QUICK, QUICK_PAPER) if quick else (Plan(), PLAN)
    ours, paper = (replace(plan, seed=seed) for plan in plans)
    if data is None:
        returns = simulated_returns(SIMULATED, seed)
    else:
        returns = returns_of(data, price, time, segment, overnight)
    folder = make_folder(out)
    alone = choose_order(returns, ORDERS, ours, folder, waiting)
    result = with_twin(alone, ours.steps // STEPS_OF_TWIN, checkpoints(folder, ours))
    reproduced = study_paper_setting(returns, result.importance, paper, folder)
    with waiting("making the page"):
        stated = [*claims(reproduced)]
        files = write_result(folder, result) | write_reproduced(folder, reproduced, stated)
        facts = described(returns, result.fitted.data.size) | plan_facts(ours) | paper_facts(paper)
        page = reproduced_page((reproduced, result), stated, returns.values.tolist(), facts, files)
        write_page(folder / PAGE, page)
    print(paragraphs([*claims_summary(stated), *summary(result), ("page", str(folder / PAGE))]))


def study_paper_setting(returns: Returns, reference: Estimates, plan: Plan, folder: Path) -> PaperStudy:
    """Fit all orders in the paper's setting and run its chains."""
    with waiting("fitting all orders in the paper's setting"):
        setting = fit_paper_setting(returns, ORDERS, rng=np.random.default_rng(plan.seed))
    place = folder / f".paper-{plan.steps}-{plan.chains}-{plan.seed}"
    return run_paper_setting(setting, reference, plan, place)


def write_reproduced(folder: Path, study: PaperStudy, stated: Sequence[Claim]) -> dict[str, str]:
    """Write what the page shows of the paper's setting; return the files and what is in them."""
    tables: dict[str, tuple[str, Sequence[Any]]] = {
        "paper_claims": ("the paper's statements and what was found", stated),
        "paper_tracks": ("estimates of log p(q | r) over time in the paper's setting", study.tracks),
        "paper_orders": ("log p(q | r) by the raced chains in the paper's setting", study.raced.orders),
    }
    return write_tables(folder, tables)
