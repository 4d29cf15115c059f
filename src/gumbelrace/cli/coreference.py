"""``gumbelrace coreference``: clusters of mentions of authors, and weights fitted to labelled ones."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from typer.core import TyperGroup

from gumbelrace.applications.block_search import SAMPLERS, Search, fitted, picked
from gumbelrace.applications.cluster_tables import write_resolved
from gumbelrace.applications.coreference import Resolved, Task, resolve, simulated_mentions
from gumbelrace.cli.folders import Folder, Keep, Restart, Run, results
from gumbelrace.cli.shared import (
    Complete,
    Delta,
    Fields,
    Format,
    Jobs,
    Ray,
    Seed,
    Separator,
    counting,
    fields,
    grouped,
    no_default,
    paragraphs,
    skipped,
    waiting,
    workers,
    write_skipped,
)
from gumbelrace.core.pool import processors
from gumbelrace.errors import InvalidArgument
from gumbelrace.methods.base import checked_delta
from gumbelrace.models.coreference.factor import Factor
from gumbelrace.models.coreference.mentions import MISSING, blocks, mentions
from gumbelrace.models.coreference.simulate import simulate
from gumbelrace.report.coreference import coreference_page, summary, task_facts
from gumbelrace.report.page import write_page
from gumbelrace.report.persons import Register
from gumbelrace.tables.delimited import dialect
from gumbelrace.tables.mentions import ReadMentions, read_mentions
from gumbelrace.tables.writing import Kind

PAGE, AUTO = "coreference.html", "auto"
# The command that needs no name.
RESOLVE = "resolve"
SWEEPS, STARTS, SAMPLES = Search.sweeps, Search.starts, 40
COMPARED = ("raced", "sums")
# Simulated mentions to which the factor for others is fitted.
FITTED = 3000


class WithDefault(TyperGroup):
    """Takes words that begin with no command's name for those of the command `RESOLVE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the name in front where it is missing."""
        known = args and (args[0] in self.commands or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if known else [RESOLVE, *args])

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show how to call the command that needs no name; its text names the other."""
        resolve = self.commands[RESOLVE]
        resolve.format_help(type(ctx)(resolve, parent=ctx.parent, info_name=ctx.info_name), formatter)


app = typer.Typer(cls=WithDefault, help="Put mentions of authors into clusters, one for each person.")


@dataclass(frozen=True)
class ResolveOptions:
    """What `resolve` takes."""

    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="Mentions, a row each: .csv, .tsv, .csv.gz, .parquet, or - for standard input.",
            show_default=False,
        ),
    ] = None
    out: Folder = Path("coreference")
    simulated: Annotated[
        int | None, no_default("N", "Use N simulated mentions.", "--simulate", least=10)
    ] = None
    column: Fields = None
    separator: Separator = None
    weights: Annotated[
        Path | None,
        no_default(
            "FILE",
            "Weights of the pairwise factor, as `fit` writes them; default: those of the library (for "
            "simulated mentions: fitted to others).",
        ),
    ] = None
    sampler: Annotated[str, typer.Option(metavar="NAME", help=f"{AUTO}, {', '.join(SAMPLERS)}.")] = AUTO
    compare: Annotated[
        bool, typer.Option("--compare", help="Show a raced and an exact sampler side by side.")
    ] = False
    complete: Complete = False
    sweeps: Annotated[int, typer.Option(min=2, metavar="N", help="Sweeps over all mentions.")] = SWEEPS
    starts: Annotated[
        int, typer.Option(min=1, metavar="N", help="Search each block so often; keep the most probable.")
    ] = STARTS
    samples: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Sweeps at temperature 1 that say how sure clusters are."),
    ] = SAMPLES
    runs: Annotated[int, typer.Option(min=1, metavar="N", help="Runs with other random numbers.")] = 1
    delta: Delta = 0.05
    seed: Seed = 0
    jobs: Jobs = None
    ray: Ray = None
    keep: Keep = False
    kind: Format = Kind.CSV
    restart: Restart = False

    @property
    def run_options(self) -> dict[str, Any]:
        """Options on which clusters depend, besides mentions and weights; what is done serves more runs."""
        names = ("sampler", "complete", "sweeps", "starts", "samples", "delta", "seed")
        return {f"--{name}": getattr(self, name) for name in names}


@app.command(RESOLVE)
@grouped
def resolve_file(options: ResolveOptions) -> None:
    """Put mentions of authors into clusters, one for each person.

    Mentions are compared in blocks, by default those with the same family name and first initial. Each is
    put where it fits best, sweep after sweep, at a falling temperature. FOLDER gets clusters.csv, a cluster
    for each mention, and a page, coreference.html, with how good the clusters are (where mentions
    have labels), what was evaluated, and how often choices were wrong.

    Columns: author, and where they exist mention_id, coauthors (with ; in between), title, venue, year,
    affiliation, city, country, cpc, block, and label, the true person.

    Stop it with Ctrl-C; the same command goes on where it was. `gumbelrace coreference fit --help` shows
    how to fit weights to labelled mentions.

    For example:

    `gumbelrace coreference mentions.csv --out results`

    `gumbelrace coreference inventors.csv --column author=inventor --column label=person`

    `gumbelrace coreference --simulate 20000`
    """
    checked_delta(options.delta)
    check_sampler(options.sampler)
    found, factor = mentions_and_factor(options)
    search = Search(
        options.sweeps,
        max(1, 3 * options.sweeps // 10),
        delta=options.delta,
        starts=options.starts,
        samples=options.samples,
    )
    samplers = chosen_samplers(options, largest=max(map(len, found.mentions.rows_by_block())))
    task = Task(found.mentions, factor, search, samplers, options.runs, options.seed, options.complete)
    run = Run("coreference", options.run_options, task.identity["mentions"])
    with results(options.out, run, options.restart, options.keep) as (folder, work):
        with workers(options.jobs, options.ray) as pool, counting("clustering", task.work) as finished:
            resolved = resolve(task, work / "search", pool, finished)
        with waiting("making the page"):
            files = write_resolved(folder, resolved, found.ids, options.kind)
            files |= write_skipped(folder, found.skipped)
            facts = task_facts(task) | {word.capitalize(): text for word, text in skipped(found)}
            page = coreference_page(resolved, register(resolved, found, files), facts, files)
            write_page(folder / PAGE, page)
    print(paragraphs([*summary(resolved), *skipped(found), ("page", str(folder / PAGE))]))


def register(resolved: Resolved, found: ReadMentions, files: Iterable[str]) -> Register:
    """Say which mentions a page shows as whose, and in which file all of them are."""
    blocks = [found.mentions.block_names[number] for number in found.mentions.block.tolist()]
    clusters, table = resolved.clusters[resolved.task.samplers[0]], next(iter(files))
    return Register(found.ids, found.texts, blocks, clusters, resolved.sure, table)


def mentions_and_factor(options: ResolveOptions) -> tuple[ReadMentions, Factor]:
    """Read mentions or simulate them, and take the factor that is meant for them."""
    loaded = None if options.weights is None else Factor.load(options.weights)
    if (options.file is None) == (options.simulated is None):
        raise InvalidArgument("give a file of mentions, or --simulate N, and not both")
    with waiting("reading mentions"):
        if options.file:
            csv = dialect(options.separator, None)
            return read_mentions(options.file, fields(options.column), csv), loaded or Factor.default()
        simulated = simulated_mentions(options.simulated or 0, options.seed)
    return simulated, loaded or factor_of_simulations(options.seed)


def chosen_samplers(options: ResolveOptions, largest: int) -> list[str]:
    first = options.sampler if options.sampler != AUTO else picked(largest)
    others = COMPARED if options.compare or options.simulated is not None else ()
    return [first, *(name for name in others if name != first)]


@app.command("fit")
def fit_file(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Labelled mentions: .csv, .csv.gz or .parquet.")
    ],
    weights: Annotated[Path, typer.Option(metavar="FILE", help="Write the weights here, as JSON.")] = Path(
        "weights.json"
    ),
    column: Fields = None,
    separator: Separator = None,
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
    found = read_mentions(file, fields(column), dialect(separator, None)).mentions
    if not (found.label != MISSING).any():
        raise InvalidArgument(f"{file} has no labels; name their column with --column label=NAME")
    with waiting("fitting"):
        factor, score = fitted(blocks(found), np.random.default_rng(seed), complete, processors())
    factor.save(weights)
    lines = {
        "fitted to": f"{np.sum(found.label != MISSING):,} labelled mentions",
        "F1": f"{score.f1:.4f} on the mentions it was fitted to (B³)",
        "shaping": str(factor.shaping),
        "weights": str(weights),
    }
    print(paragraphs(lines.items()))


def check_sampler(sampler: str) -> None:
    if sampler not in (AUTO, *SAMPLERS):
        raise InvalidArgument(f"--sampler is {sampler!r}; give {AUTO}, {', '.join(SAMPLERS)}")


def factor_of_simulations(seed: int) -> Factor:
    """Fit the factor to other simulated mentions: the library's is for real ones."""
    with waiting("fitting the factor"):
        found = mentions(simulate(FITTED, np.random.default_rng([seed, 21])))
        return fitted(blocks(found), np.random.default_rng(seed), complete=True, jobs=processors())[0]
