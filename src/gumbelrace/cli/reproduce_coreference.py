"""``gumbelrace reproduce coreference``: section 5.3 in the paper's setting, and in ours."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from gumbelrace.applications.coreference import (
    Resolved,
    Search,
    Task,
    fitted,
    resolve,
    simulated_mentions,
    write_resolved,
)
from gumbelrace.applications.store import write_tables
from gumbelrace.cli.options import Complete, Fields, Folder, Seed, fields, no_default, processors
from gumbelrace.cli.terminal import counting, paragraphs, waiting
from gumbelrace.paper.coreference import (
    EXACT,
    PAPER,
    PAPER_SETTING,
    baselines,
    claims,
    held_out,
    reproduced_page,
    training_blocks,
)
from gumbelrace.report.coreference import summary, task_facts
from gumbelrace.report.page import write_page
from gumbelrace.tables.mentions import read_mentions
from gumbelrace.tables.writing import make_folder

PAGE, WEIGHTS = "coreference.html", "weights.json"
SIMULATED = 20_000
RUNS, QUICK_RUNS = 7, 2
OURS = ("raced", "pairs", "sums")


def coreference(
    out: Folder = Path("coreference"),
    data: Annotated[
        Path | None,
        no_default("FILE", "Mentions: .csv, .csv.gz or .parquet. Without it, 20,000 are simulated."),
    ] = None,
    column: Fields = None,
    complete: Complete = False,
    least: Annotated[int, typer.Option(min=1, metavar="N", help="Mentions in the smallest block.")] = 100,
    most: Annotated[int, typer.Option(min=1, metavar="N", help="Mentions in the largest block.")] = 3000,
    quick: Annotated[bool, typer.Option("--quick", help=f"{QUICK_RUNS} runs, not {RUNS}.")] = False,
    seed: Seed = 0,
) -> None:
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
        given = read_mentions(data, fields(column)) if data else simulated_mentions(SIMULATED, seed)
    runs, folder, jobs = QUICK_RUNS if quick else RUNS, make_folder(out), processors()
    with waiting("fitting the factor to the training blocks"):
        rng = np.random.default_rng(seed)
        factor, _ = fitted(training_blocks(given.mentions), rng, complete, jobs)
        factor.save(folder / WEIGHTS)
    blocks = held_out(given.mentions, least, most)
    tasks = [
        Task(given.mentions, factor, PAPER_SETTING, (PAPER, EXACT), runs, seed, complete, blocks),
        Task(given.mentions, factor, Search(), OURS, runs, seed, complete, blocks),
    ]
    places = (folder / f".{name}-{seed}" for name in ("paper", "ours"))
    paper, ours = (search_blocks(task, place, jobs) for task, place in zip(tasks, places, strict=True))
    with waiting("making the page"):
        found = [*claims(paper)]
        tables: dict[str, tuple[str, Sequence[Any]]] = {
            "paper_sweeps": ("what each sweep reached and took in the paper's setting", paper.points),
            "claims": ("the paper's statements and what was found", found),
        }
        files = write_resolved(folder, ours, given.ids) | {WEIGHTS: "the factor"}
        files |= write_tables(folder, tables)
        beside = (found, [*baselines(ours.task)])
        write_page(folder / PAGE, reproduced_page((paper, ours), beside, task_facts(ours.task), files))
    print(paragraphs([*summary(ours), ("page", str(folder / PAGE))]))


def search_blocks(task: Task, place: Path, jobs: int) -> Resolved:
    """Search all blocks, and show how far it is."""
    with counting("clustering", task.work) as finished:
        return resolve(task, place, jobs, finished)
