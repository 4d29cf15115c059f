"""``gumbelrace reproduce coreference``: section 5.3 as the paper prints it, and in our setting."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from gumbelrace.cli.coreference import Columns, Complete, facts, shown, taken, told, write_data
from gumbelrace.cli.options import Seed
from gumbelrace.cli.places import Folder, made, processors
from gumbelrace.cli.progress import waiting
from gumbelrace.experiments.coreference import Search
from gumbelrace.experiments.coreference_baselines import baselines
from gumbelrace.experiments.coreference_claims import EXACT, PRINTED, claims
from gumbelrace.experiments.coreference_fit import fitted, training_blocks
from gumbelrace.experiments.coreference_study import Task, held_out
from gumbelrace.experiments.files import write_rows
from gumbelrace.report.page import write_page
from gumbelrace.report.reproduced_coreference import reproduced_page

PAGE, WEIGHTS = "coreference.html", "weights.json"
SIMULATED = 20_000
RUNS, QUICK_RUNS = 7, 2
OURS = ("raced", "pairs", "sums")


def coreference(
    out: Folder = Path("coreference"),
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Mentions: .csv, .csv.gz or .parquet. Without it, 20,000 are simulated.",
            show_default=False,
        ),
    ] = None,
    column: Columns = None,
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
    given = taken(data, SIMULATED if data is None else None, column, seed)
    runs, folder, jobs = QUICK_RUNS if quick else RUNS, made(out), processors()
    with waiting("fitting the factor to the training blocks"):
        rng = np.random.default_rng(seed)
        factor, _ = fitted(training_blocks(given.mentions), rng, complete, jobs)
        factor.save(folder / WEIGHTS)
    blocks = held_out(given.mentions, least, most)
    as_printed = Search(sweeps=20, cold=5, placed=True, merges=False, starts=1)
    tasks = [
        Task(given.mentions, factor, as_printed, (PRINTED, EXACT), runs, seed, complete, blocks),
        Task(given.mentions, factor, Search(), OURS, runs, seed, complete, blocks),
    ]
    places = (folder / f".{name}-{seed}" for name in ("printed", "ours"))
    printed, ours = (shown(task, place, jobs) for task, place in zip(tasks, places, strict=True))
    with waiting("making the page"):
        found = [*claims(printed)]
        files = write_data(folder, ours, given.ids) | {WEIGHTS: "the factor"}
        for name in write_rows(folder, "printed_sweeps", printed.points):
            files[name] = "what each sweep reached and took in the paper's setting"
        for name in write_rows(folder, "claims", found):
            files[name] = "the paper's statements and what was found"
        beside = (found, [*baselines(ours.task)])
        write_page(folder / PAGE, reproduced_page((printed, ours), beside, facts(ours.task), files))
    print(told(ours, folder))
