"""``gumbelrace coreference``: clusters of mentions of authors, and weights fitted to labelled ones."""

from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from gumbelrace.cli.default_command import WithDefault
from gumbelrace.cli.options import Delta, Seed
from gumbelrace.cli.places import Folder, Jobs, made, processors
from gumbelrace.cli.progress import progress, waiting
from gumbelrace.cli.words import paragraphs, percent
from gumbelrace.errors import InvalidArgument
from gumbelrace.experiments.coreference import SAMPLERS, Search, picked
from gumbelrace.experiments.coreference_fit import fitted
from gumbelrace.experiments.coreference_study import Resolved, Task, resolve
from gumbelrace.experiments.files import write_rows
from gumbelrace.experiments.mentions import ReadMentions, read_mentions
from gumbelrace.models.coreference.block import blocks
from gumbelrace.models.coreference.factor import Factor
from gumbelrace.models.coreference.mentions import MISSING, mentions
from gumbelrace.models.coreference.simulate import simulate
from gumbelrace.report.coreference import coreference_page
from gumbelrace.report.page import write_page
from gumbelrace.solvers.base import checked_delta

PAGE, AUTO = "coreference.html", "auto"
SWEEPS, STARTS = Search.sweeps, Search.starts
CONTENTS = {"clusters": "the cluster of each mention", "sweeps": "what each sweep reached and took"}
COMPARED = ("raced", "sums")
# Simulated mentions to which the factor for others is fitted.
FITTED = 3000

app = typer.Typer(cls=WithDefault, help="Put mentions of authors into clusters, one for each person.")

Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="FIELD=NAME",
        help="Read FIELD (author, coauthors, label, ...) from the column NAME; may be repeated.",
        show_default=False,
    ),
]
Complete = Annotated[
    bool,
    typer.Option("--complete", help="All mentions of the labelled persons have labels."),
]


@app.command("resolve")
def resolve_file(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="Mentions, a row each: .csv, .csv.gz or .parquet.", show_default=False
        ),
    ] = None,
    out: Folder = Path("coreference"),
    simulated: Annotated[
        int | None,
        typer.Option(
            "--simulate", min=10, metavar="N", help="Use N simulated mentions.", show_default=False
        ),
    ] = None,
    column: Columns = None,
    weights: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Weights of the pairwise factor, as `fit` writes them; default: those of the library (for "
            "simulated mentions: fitted to others).",
            show_default=False,
        ),
    ] = None,
    sampler: Annotated[str, typer.Option(metavar="NAME", help=f"{AUTO}, {', '.join(SAMPLERS)}.")] = AUTO,
    compare: Annotated[
        bool, typer.Option("--compare", help="Show a raced and an exact sampler side by side.")
    ] = False,
    complete: Complete = False,
    sweeps: Annotated[int, typer.Option(min=2, metavar="N", help="Sweeps over all mentions.")] = SWEEPS,
    starts: Annotated[
        int, typer.Option(min=1, metavar="N", help="Search each block so often; keep the most probable.")
    ] = STARTS,
    runs: Annotated[int, typer.Option(min=1, metavar="N", help="Runs with other random numbers.")] = 1,
    delta: Delta = 0.05,
    seed: Seed = 0,
    jobs: Jobs = None,
) -> None:
    """Put mentions of authors into clusters, one for each person.

    Mentions are compared in blocks, by default those with the same family name and first initial. Each is
    put where it fits best, sweep after sweep, at a falling temperature. FOLDER gets clusters.csv, a cluster
    for each mention, and a page, coreference.html, with how good the clusters are (where mentions
    have labels), what was evaluated, and how often choices were wrong.

    Columns: author, and where they exist mention_id, coauthors (with ; in between), title, venue, year,
    affiliation, city, country, cpc, block, and label, the true person.

    Stop it with Ctrl-C; the same command goes on where it was.

    For example:

    `gumbelrace coreference mentions.csv --out results`

    `gumbelrace coreference inventors.csv --column author=inventor --column label=person`

    `gumbelrace coreference --simulate 20000`
    """
    checked_delta(delta)
    check_sampler(sampler)
    loaded = None if weights is None else Factor.load(weights)
    given = taken(file, simulated, column, seed)
    factor = loaded or (Factor.default() if simulated is None else factor_of_simulations(seed))
    search = Search(sweeps, max(1, 3 * sweeps // 10), delta=delta, starts=starts)
    first = sampler if sampler != AUTO else picked(max(map(len, given.mentions.rows_by_block())))
    others = COMPARED if compare or simulated is not None else ()
    samplers = [first, *(name for name in others if name != first)]
    task = Task(given.mentions, factor, search, samplers, runs, seed, complete)
    folder = made(out)
    resolved = shown(task, folder / f".coreference-{starts}-{sweeps}-{seed}", jobs or processors())
    with waiting("making the page"):
        files = write_data(folder, resolved, given.ids)
        write_page(folder / PAGE, coreference_page(resolved, facts(task), files))
    print(told(resolved, folder))


@app.command("fit")
def fit_file(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Labelled mentions: .csv, .csv.gz or .parquet.")
    ],
    weights: Annotated[Path, typer.Option(metavar="FILE", help="Write the weights here, as JSON.")] = Path(
        "weights.json"
    ),
    column: Columns = None,
    complete: Complete = False,
    seed: Seed = 0,
) -> None:
    """Fit the pairwise factor to labelled mentions.

    Logistic regression on pairs of a block, each block of the same weight; then the values are shaped (a
    cap, a leak, a shift) so that clusters of these mentions match their labels best.

    For example:

    `gumbelrace coreference fit labelled.csv --weights weights.json`

    `gumbelrace coreference mentions.csv --weights weights.json`
    """
    found = read_mentions(file, mapped(column)).mentions
    if not (found.label != MISSING).any():
        raise InvalidArgument(f"{file} has no labels; name their column with --column label=NAME")
    with waiting("fitting"):
        factor, score = fitted(blocks(found), np.random.default_rng(seed), complete, processors())
    factor.save(weights)
    print(
        paragraphs(
            [
                ("fitted to", f"{np.sum(found.label != MISSING):,} labelled mentions"),
                ("F1", f"{score.f1:.4f} on the mentions it was fitted to (B³)"),
                ("shaping", str(factor.shaping)),
                ("weights", str(weights)),
            ]
        )
    )


def check_sampler(sampler: str) -> None:
    """Check that there is such a sampler."""
    if sampler not in (AUTO, *SAMPLERS):
        raise InvalidArgument(f"--sampler is {sampler!r}; give {AUTO}, {', '.join(SAMPLERS)}")


def mapped(column: Sequence[str] | None) -> dict[str, str]:
    """Take apart FIELD=NAME."""
    pairs = [text.partition("=") for text in column or ()]
    for field, sign, _ in pairs:
        if not (field and sign):
            raise InvalidArgument(f"--column is {field!r}; give FIELD=NAME, such as author=inventor")
    return {field: name for field, _, name in pairs}


def taken(
    file: Path | None, simulated: int | None, column: Sequence[str] | None, seed: int
) -> ReadMentions:
    """Read mentions, or simulate them."""
    if (file is None) == (simulated is None):
        raise InvalidArgument("give a file of mentions, or --simulate N, and not both")
    if file is not None:
        with waiting("reading mentions"):
            return read_mentions(file, mapped(column))
    columns = simulate(int(simulated or 0), np.random.default_rng([seed, 20]))
    return ReadMentions([str(row) for row in range(len(columns["author"]))], mentions(columns))


def factor_of_simulations(seed: int) -> Factor:
    """Fit the factor to other simulated mentions: the library's is for real ones."""
    with waiting("fitting the factor"):
        found = mentions(simulate(FITTED, np.random.default_rng([seed, 21])))
        return fitted(blocks(found), np.random.default_rng(seed), complete=True, jobs=processors())[0]


def shown(task: Task, place: Path, jobs: int) -> Resolved:
    """Search all blocks, and show how far it is."""
    done, total = 0, sum(map(len, task.rows)) * task.runs * len(task.samplers)
    with progress("clustering", total) as advance:

        def finished(count: int) -> None:
            nonlocal done
            done += count
            advance(done)

        return resolve(task, place, jobs, finished)


class Assigned(NamedTuple):
    """A row of clusters.csv."""

    mention_id: str
    block: str
    cluster: int


def write_data(folder: Path, resolved: Resolved, ids: Sequence[str]) -> dict[str, str]:
    """Write the clusters and what the page shows; return the files and what is in them."""
    found = resolved.task.mentions
    clusters = resolved.clusters[resolved.task.samplers[0]].tolist()
    names = [found.block_names[number] for number in found.block.tolist()]
    rows = [Assigned(*row) for row in zip(ids, names, clusters, strict=True)]
    tables: dict[str, Sequence[Any]] = {"clusters": rows, "sweeps": resolved.points}
    return {
        name: CONTENTS[table] for table, kept in tables.items() for name in write_rows(folder, table, kept)
    }


def facts(task: Task) -> dict[str, str]:
    """Say what was run."""
    sizes = [len(rows) for rows in task.rows]
    return {
        "Mentions": f"{sum(sizes):,} in {len(sizes):,} blocks, the largest of {max(sizes):,}",
        "Labelled": f"{np.sum(task.mentions.label != MISSING):,}",
        "Sweeps": f"{task.search.sweeps}, the last {task.search.cold} at temperature 0",
        "Starts": f"{task.search.starts}, of which the most probable clusters are kept",
        "Runs": str(task.runs),
        "δ of a choice": f"{task.search.delta:g}",
        "Seed": str(task.seed),
        "gumbelrace": f"{version('gumbelrace')}, {date.today().isoformat()}",
    }


def told(resolved: Resolved, folder: Path) -> str:
    """Say what was found and where it is."""
    task = resolved.task
    last = resolved.last(task.samplers[0])[0]
    searched = sum(map(len, task.rows))
    parts = [("clusters", f"{last.clusters:,} of {searched:,} mentions ({task.samplers[0]})")]
    if last.f1 is not None:
        parts.append(("B³", f"F1 {last.f1:.4f}, precision {last.precision:.4f}, recall {last.recall:.4f}"))
    parts.append(("evaluated", f"{percent(last.evaluations / max(last.exact, 1))} of exact sweeps"))
    for audit in resolved.audits:
        parts.append(("audit", f"{audit.errors} of {audit.choices:,} choices were wrong ({audit.sampler})"))
    return paragraphs([*parts, ("page", str(folder / PAGE))])
