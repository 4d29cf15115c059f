"""``gumbelrace reproduce``: the paper's experiments, run again."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from gumbelrace.applications.arch import ORDERS, Estimates
from gumbelrace.applications.arch_chains import (
    ArchResult,
    Plan,
    check_packages,
    checkpoints,
    choose_order,
    write_result,
)
from gumbelrace.applications.arch_compared import compared
from gumbelrace.applications.block_search import Search, fitted
from gumbelrace.applications.cluster_tables import write_resolved
from gumbelrace.applications.coreference import Resolved, Task, mentions_digest, resolve, simulated_mentions
from gumbelrace.applications.store import stored, write_tables
from gumbelrace.cli.folders import Folder, Restart, Results, Run, results
from gumbelrace.cli.shared import (
    Complete,
    Fields,
    Format,
    Jobs,
    PriceOptions,
    Ray,
    Seed,
    counting,
    described,
    fields,
    grouped,
    no_default,
    paragraphs,
    simulated_returns,
    skipped,
    waiting,
    workers,
    write_skipped,
)
from gumbelrace.core.pool import processors
from gumbelrace.errors import InvalidArgument
from gumbelrace.models.arch.data import Returns
from gumbelrace.models.coreference.mentions import Mentions
from gumbelrace.paper.arch import PLAN, PaperStudy, paper_facts, run_paper_setting
from gumbelrace.paper.arch import claims as arch_claims
from gumbelrace.paper.arch import reproduced_page as arch_page
from gumbelrace.paper.arch_setting import fit_paper_setting
from gumbelrace.paper.bounds import compared_levels
from gumbelrace.paper.claims import Claim, claims_summary
from gumbelrace.paper.coreference import (
    EXACT,
    PAPER,
    PAPER_SETTING,
    baselines,
    held_out,
    training_blocks,
)
from gumbelrace.paper.coreference import (
    claims as coreference_claims,
)
from gumbelrace.paper.coreference import (
    reproduced_page as coreference_page,
)
from gumbelrace.paper.synthetic import study_record, synthetic_page, write_data
from gumbelrace.paper.synthetic_study import Level, Record, Settings, expected_cost
from gumbelrace.paper.synthetic_study import run as run_study
from gumbelrace.report.arch import plan_facts
from gumbelrace.report.arch import summary as arch_summary
from gumbelrace.report.coreference import summary as coreference_summary
from gumbelrace.report.coreference import task_facts
from gumbelrace.report.page import write_page
from gumbelrace.tables.mentions import ReadMentions, read_mentions
from gumbelrace.tables.writing import Kind

# Draws of a point with --quick, without it, and with --full.
QUICK_DRAWS, USUAL_DRAWS, FULL_DRAWS = 50, 2000, 10_000
# Beyond this δ the printed table drifts from what it says to hold.
TRUSTED = 0.37
# Returns and mentions that are simulated if there are no data.
RETURNS, MENTIONS = 13_000, 20_000
# ARCH: plans of --quick.
QUICK_OURS = Plan(steps=4000, adapt=1000, audited=200)
QUICK_PAPER = replace(PLAN, steps=400, adapt=500, audited=100)
# Coreference: runs, and the samplers of our setting.
RUNS, QUICK_RUNS = 7, 2
OURS = ("raced", "pairs", "sums")
ARCH_PAGE, COREFERENCE_PAGE, SYNTHETIC_PAGE = "arch.html", "coreference.html", "synthetic.html"
WEIGHTS = "weights.json"

app = typer.Typer()


@app.callback(invoke_without_command=True)
def reproduce(ctx: typer.Context) -> None:
    """Run the paper's experiments again."""
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())


@dataclass(frozen=True)
class ArchOptions(PriceOptions):
    """What `arch` takes."""

    out: Folder = Path("paper-arch")
    data: Annotated[
        Path | None,
        no_default("FILE", "Prices: .csv, .csv.gz or .parquet. Without it, 13,000 returns are simulated."),
    ] = None
    quick: Annotated[bool, typer.Option("--quick", help="Short chains: a look at the page.")] = False
    seed: Seed = 0
    kind: Format = Kind.CSV
    restart: Restart = False


@app.command()
@grouped
def arch(options: ArchOptions) -> None:
    """Reproduce the ARCH order selection (section 5.2, appendix C.2).

    The order of an ARCH model of 5-minute returns, of 5, 10, ..., 30 lags: in the paper's setting, whose
    figures stand beside the paper's, and in ours, which mixes better and reads less. FOLDER gets a page,
    arch.html, and its data.

    Stop it with Ctrl-C; the same command goes on where it was.

    For example:

    `gumbelrace reproduce arch --data prices.csv --segment segment --out results`
    """
    check_packages()
    plans = (QUICK_OURS, QUICK_PAPER) if options.quick else (Plan(), PLAN)
    ours, paper = (replace(plan, seed=options.seed) for plan in plans)
    if options.data is None:
        returns = simulated_returns(RETURNS, options.seed)
    else:
        returns = options.read(options.data)
    run = Run("reproduce arch", {"--quick": options.quick, "--seed": options.seed}, returns.digest)
    with results(options.out, run, options.restart) as place:
        stated, result = reproduced_arch(returns, (ours, paper), place, options.kind)
    found = [*claims_summary(stated), *arch_summary(result), *options.remarks(returns)]
    print(paragraphs([*found, ("page", str(options.out / ARCH_PAGE))]))


def reproduced_arch(
    returns: Returns, plans: tuple[Plan, Plan], place: Results, kind: Kind
) -> tuple[list[Claim], ArchResult]:
    """Run our setting and the paper's, and write what they gave."""
    (ours, paper), (folder, work) = plans, place
    alone = choose_order(returns, ORDERS, ours, work, waiting)
    result = compared(alone, returns, checkpoints(work, ours), waiting)
    reproduced = study_paper_setting(returns, result.importance, paper, work)
    with waiting("making the page"):
        stated = [*arch_claims(reproduced)]
        files = write_result(folder, result, kind)
        files |= write_reproduced(folder, reproduced, stated, kind)
        facts = described(returns, result.fitted.data.size) | plan_facts(ours) | paper_facts(paper)
        page = arch_page((reproduced, result), stated, returns.values.tolist(), facts, files)
        write_page(folder / ARCH_PAGE, page)
    return stated, result


def study_paper_setting(returns: Returns, reference: Estimates, plan: Plan, folder: Path) -> PaperStudy:
    """Fit all orders in the paper's setting and run its chains."""
    with waiting("fitting all orders in the paper's setting"):
        setting = fit_paper_setting(returns, ORDERS, rng=np.random.default_rng(plan.seed))
    place = folder / f"paper-{plan.steps}-{plan.chains}-{plan.seed}"
    return run_paper_setting(setting, reference, plan, place)


def write_reproduced(
    folder: Path, study: PaperStudy, stated: Sequence[Claim], kind: Kind
) -> dict[str, str]:
    """Write what the page shows of the paper's setting; return the files and what is in them."""
    tables: dict[str, tuple[str, Sequence[Any]]] = {
        "paper_claims": ("the paper's statements and what was found", stated),
        "paper_tracks": ("estimates of log p(q | r) over time in the paper's setting", study.tracks),
        "paper_orders": ("log p(q | r) by the raced chains in the paper's setting", study.raced.orders),
    }
    return write_tables(folder, tables, kind)


@dataclass(frozen=True)
class CoreferenceOptions:
    """What `coreference` takes."""

    out: Folder = Path("paper-coreference")
    data: Annotated[
        Path | None,
        no_default("FILE", "Mentions: .csv, .csv.gz or .parquet. Without it, 20,000 are simulated."),
    ] = None
    column: Fields = None
    complete: Complete = False
    least: Annotated[int, typer.Option(min=1, metavar="N", help="Mentions in the smallest block.")] = 100
    most: Annotated[int, typer.Option(min=1, metavar="N", help="Mentions in the largest block.")] = 3000
    quick: Annotated[bool, typer.Option("--quick", help=f"{QUICK_RUNS} runs, not {RUNS}.")] = False
    seed: Seed = 0
    kind: Format = Kind.CSV
    restart: Restart = False

    @property
    def run_options(self) -> dict[str, Any]:
        return {f"--{name}": getattr(self, name) for name in ("complete", "least", "most", "quick", "seed")}


@app.command()
@grouped
def coreference(options: CoreferenceOptions) -> None:
    """Reproduce the author coreference experiment (section 5.3, appendix C.3).

    Annealed Gibbs sampling of clusters of mentions, raced and exact: in the paper's setting, whose figures
    stand beside the paper's, and in ours. The factor is fitted to about half of the blocks, which
    a hash of their names chooses; the others are clustered. FOLDER gets a page, coreference.html, and its
    data.

    Stop it with Ctrl-C; the same command goes on where it was.

    For example:

    `gumbelrace reproduce coreference --data mentions.csv --out results`
    """
    with waiting("reading mentions"):
        if options.data is None:
            given = simulated_mentions(MENTIONS, options.seed)
        else:
            given = read_mentions(options.data, fields(options.column))
    run = Run("reproduce coreference", options.run_options, mentions_digest(given.mentions))
    with results(options.out, run, options.restart, keep=True) as place:
        resolved = reproduced_coreference(options, given, place)
    page = ("page", str(options.out / COREFERENCE_PAGE))
    print(paragraphs([*coreference_summary(resolved), *skipped(given), page]))


def coreference_tasks(options: CoreferenceOptions, found: Mentions) -> tuple[Task, Task]:
    """Fit the factor to the training blocks; give the searches in the paper's setting and in ours."""
    with waiting("fitting the factor to the training blocks"):
        rng = np.random.default_rng(options.seed)
        factor, _ = fitted(training_blocks(found), rng, options.complete, processors())
    runs, blocks = QUICK_RUNS if options.quick else RUNS, held_out(found, options.least, options.most)
    setting, samplers = PAPER_SETTING, (PAPER, EXACT)
    paper = Task(found, factor, setting, samplers, runs, options.seed, options.complete, blocks)
    return paper, replace(paper, search=Search(), samplers=OURS)


def reproduced_coreference(options: CoreferenceOptions, given: ReadMentions, place: Results) -> Resolved:
    """Search the blocks in the paper's setting and in ours, and write what was found."""
    (folder, work), tasks = place, coreference_tasks(options, given.mentions)
    tasks[0].factor.save(folder / WEIGHTS)
    paper, ours = (
        search_blocks(task, work / name) for task, name in zip(tasks, ("paper", "ours"), strict=True)
    )
    with waiting("making the page"):
        found = [*coreference_claims(paper)]
        tables: dict[str, tuple[str, Sequence[Any]]] = {
            "paper_sweeps": ("what each sweep reached and took in the paper's setting", paper.points),
            "claims": ("the paper's statements and what was found", found),
        }
        files = write_resolved(folder, ours, given.ids, options.kind) | {WEIGHTS: "the factor"}
        files |= write_skipped(folder, given.skipped) | write_tables(folder, tables, options.kind)
        beside = (found, [*baselines(ours.task)])
        facts = task_facts(ours.task) | {word.capitalize(): text for word, text in skipped(given)}
        page = coreference_page((paper, ours), beside, facts, files)
        write_page(folder / COREFERENCE_PAGE, page)
    return ours


def search_blocks(task: Task, place: Path) -> Resolved:
    """Search all blocks, and show how far it is."""
    with workers(None, None) as pool, counting("clustering", task.work) as finished:
        return resolve(task, place, pool, finished)


@app.command()
def synthetic(
    out: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER", help="Write the page and the data here; made if missing.", show_default=False
        ),
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help=f"{QUICK_DRAWS} draws a point: two minutes.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help=f"The paper's {FULL_DRAWS:,} draws a point: most of an hour.")
    ] = False,
    seed: Seed = 0,
    jobs: Jobs = None,
    ray: Ray = None,
    kind: Format = Kind.CSV,
    restart: Restart = False,
) -> None:
    """Reproduce the synthetic study (section 5.1, appendices B and C.1).

    Every method draws from p(X) with 2, 10 and 100 states and 100,000 rewards each: normal, uniform and
    lognormal ones, at three levels of difficulty and several error bounds δ. FOLDER gets a page,
    synthetic.html, with the paper's figures, its claims and whether they held, and all records.

    Without --quick or --full a point has 2,000 draws, which takes about ten minutes on two processors. Stop
    it with Ctrl-C; the same command goes on where it was.

    For example:

    `gumbelrace reproduce synthetic --out results --quick`
    """
    settings = Settings(draws_of(quick, full), seed)
    run = Run("reproduce synthetic", {"--seed": seed, "draws": settings.draws}, "")
    with results(out, run, restart, keep=True) as (folder, work):
        with workers(jobs, ray) as pool:
            records = recorded(settings, work / "draws", pool)
        with waiting("making the page"):
            study = write_data(folder, study_record(settings, records), kind)
            write_page(folder / SYNTHETIC_PAGE, synthetic_page(study))
    found = [("page", str(folder / SYNTHETIC_PAGE)), ("data", ", ".join(study.files))]
    print(paragraphs([*claims_summary(study.claims), *found]))


def draws_of(quick: bool, full: bool) -> int:
    if quick and full:
        raise InvalidArgument("--quick and --full exclude each other; give one of them, or neither")
    return QUICK_DRAWS if quick else FULL_DRAWS if full else USUAL_DRAWS


def recorded(settings: Settings, folder: Path, pool: Executor) -> list[Record]:
    """Run the study, or what is left of it, and show how far it is."""
    total = sum(map(expected_cost, settings.points))
    with stored(folder, settings.identity) as store, counting("drawing", total) as more:
        return run_study(settings, store, pool, lambda point: more(expected_cost(point)))


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
