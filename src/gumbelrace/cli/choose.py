"""``gumbelrace choose``: the best of a few candidates, each evaluated by a program."""

import json
import math
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal, NoReturn, cast

import numpy as np
import typer

from gumbelrace.choosing.campaign import SLACK, Campaign
from gumbelrace.choosing.choose import Candidates
from gumbelrace.choosing.choose import choose as choose_best
from gumbelrace.choosing.claims import About, OnFailure
from gumbelrace.choosing.lines import read_candidates, read_examples
from gumbelrace.choosing.program import Program
from gumbelrace.choosing.progress import line
from gumbelrace.choosing.rehearsal import rows_if_behind
from gumbelrace.choosing.result import Choice, amount, conclude
from gumbelrace.choosing.scores import Indices
from gumbelrace.choosing.settings import Settings, begun
from gumbelrace.cli.shared import Delta, grouped, no_default, paragraphs
from gumbelrace.core.interrupts import INTERRUPTS
from gumbelrace.errors import InvalidArgument, InvalidFile
from gumbelrace.tables.writing import check_output

INTERRUPTED = 130
GAPS = (0.1, 0.05, 0.02)  # in units of the range
GOES_ON = "everything is kept in {}, and the same command goes on from there"
EXPECTED = """\
About: if all but one candidate were behind by so much, with scores at the ends
of the range that agree on half of the examples. Nothing was evaluated."""
FIELDS = (
    *("within", "decided", "ended", "delta", "tolerance", "tied"),
    *("evaluations", "full", "reused", "ahead", "cost", "full_cost"),
)
KEPT_NOTHING = "nothing was kept, as there is no --store"


@dataclass(frozen=True)
class ChooseOptions:
    """What the command takes."""

    candidates: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help='JSON lines: a candidate in each; {"name": ...} names it.', exists=True
        ),
    ]
    examples: Annotated[
        Path, typer.Option(metavar="FILE", help="JSON lines: an example in each.", exists=True)
    ]
    score_range: Annotated[
        tuple[float, float],
        typer.Option(
            "--range", metavar="LOW HIGH", help="The lowest and the highest score that there can be."
        ),
    ]
    program: Annotated[
        str | None,
        no_default(
            "COMMAND", 'Reads {"candidate": ..., "example": ...} and writes a number, a line each.', "--run"
        ),
    ] = None
    delta: Delta = 0.05
    tolerance: Annotated[
        float, typer.Option(metavar="SCORE", min=0.0, help="How far from the best is good enough.")
    ] = 0.0
    claim: Annotated[
        Literal["these-examples", "future-examples"],
        typer.Option(help="Whether the mean is that over these examples, or over all of their kind."),
    ] = "these-examples"
    budget: Annotated[
        float | None, no_default("COST", "What may be spent in all; evaluations, if there is no --cost.")
    ] = None
    cost: Annotated[
        list[str] | None,
        no_default("COST", "Of one evaluation; NAME=COST, repeated, for each candidate."),
    ] = None
    workers: Annotated[int, typer.Option(metavar="N", min=1, help="Processes, each asked in turn.")] = 16
    retries: Annotated[int, typer.Option(metavar="N", min=0, help="Tries after the first that failed.")] = 3
    timeout: Annotated[
        float | None, no_default("SECONDS", "An answer that takes longer has failed.", least=0.001)
    ] = None
    on_failure: Annotated[
        Literal["lowest", "worst-case", "stop"],
        typer.Option(help="A failure has the lowest score, counts as whatever is worst, or ends the run."),
    ] = "lowest"
    store: Annotated[
        Path | None, no_default("FILE", "Keep every evaluation here, and go on from what is there.")
    ] = None
    new_candidates: Annotated[
        Literal["independent", "informed"] | None,
        no_default("KIND", "If candidates are not those of the store: whether its results led to them."),
    ] = None
    seed: Annotated[
        int | None, no_default("N", "Of the order of the examples; the store keeps it.", least=0)
    ] = None
    out: Annotated[Path | None, no_default("FILE", "Write a page about the choice here.")] = None
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False
    status: Annotated[
        bool, typer.Option("--status", help="Say what the store shows so far, also while a run goes on.")
    ] = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would cost, and evaluate nothing.")
    ] = False

    @property
    def settings(self) -> Settings:
        """The options as those of `gumbelrace.choose`."""
        return Settings(
            self.score_range,
            self.delta,
            self.tolerance,
            cast(About, self.claim.replace("-", " ")),
            self.budget,
            costs(self.cost or ()),
            self.workers,
            self.retries,
            None,
            cast(OnFailure, self.on_failure.replace("-", " ")),
            self.store,
            self.new_candidates,
            self.seed,
        )


@grouped
def choose(options: ChooseOptions) -> None:
    """Choose the best of a few prompts, models or settings, with few evaluations by a program.

    Candidates are raced on the same examples, in random order, and dropped one after another. The
    answer is wrong with a probability of at most DELTA, *proved*, however often you look or stop.

    The program reads a line for each evaluation, such as `{"candidate": "Answer briefly.", "example":
    {"question": "2+2"}}`, and writes a number in a line of its own, at once (it flushes its output). Each
    worker has a process, which is started again if it ends.

    Ctrl-C keeps what was paid for: with `--store` the same command goes on.

    For example:

    `gumbelrace choose --candidates prompts.jsonl --examples data.jsonl --run "python score.py"
    --range 0 1 --tolerance 0.01 --budget 200 --cost 0.01 --store run.db`
    """
    if options.out is not None:
        check_output(options.out)
    settings = options.settings
    candidates, examples = read_candidates(options.candidates), read_examples(options.examples)
    if options.dry_run:
        print(rehearse(candidates, examples, settings))
    elif options.status:
        show(told(candidates, examples, settings), options)
    else:
        show(evaluated(candidates, examples, options), options)


def costs(given: Sequence[str]) -> float | dict[str, float] | None:
    """Take apart what evaluations cost: a number, or one for each name."""
    pairs = [text.rpartition("=") for text in given]
    try:
        numbers = {name: float(number) for name, _, number in pairs}
    except ValueError:
        numbers = {}
    if given and len(numbers) < len(given):
        raise InvalidArgument(
            f"--cost is {' '.join(given)}; give a number, or NAME=NUMBER for each candidate"
        )
    return numbers[""] if list(numbers) == [""] else numbers or None


def evaluated(candidates: Candidates, examples: Sequence[Any], options: ChooseOptions) -> Choice:
    """Have the program evaluate candidates until one is chosen."""
    if options.program is None:
        raise InvalidArgument("--run is missing; name the program that evaluates a candidate on an example")
    with closing(Program(options.program, options.timeout)) as program:
        try:
            choice = choose_best(program, candidates, examples, **vars(options.settings))
        except KeyboardInterrupt:  # a second one: what was under way is given up
            INTERRUPTS.heard()
            leave(options)
        program.conclude()
        return choice


def told(candidates: Candidates, examples: Sequence[Any], settings: Settings) -> Choice:
    """Say what a store shows, whoever is writing to it."""
    if settings.store is None or not Path(settings.store).exists():
        raise InvalidArgument("--status tells what a store shows; name one that is there by --store")
    with replayed(candidates, examples, settings) as campaign:
        if campaign.reused == 0:
            raise InvalidArgument("there is no evaluation of these candidates on these examples yet")
        return conclude(campaign, list(candidates), settings.cost is not None)


@contextmanager
def replayed(candidates: Candidates, examples: Sequence[Any], settings: Settings) -> Iterator[Campaign]:
    """Lend a campaign that has read a copy of the store, and changes nothing."""
    with TemporaryDirectory() as folder:
        copy = Path(folder, "store")
        if settings.store is not None:
            copy_store(Path(settings.store), copy)
        campaign = begun(candidates, examples, replace(settings, store=copy))
        with closing(campaign.store):
            yield campaign


def copy_store(path: Path, to: Path) -> None:
    """Copy a store that may be in use."""
    try:
        with (
            closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as store,
            closing(sqlite3.connect(to)) as copy,
        ):
            store.backup(copy)
    except sqlite3.Error as error:
        raise InvalidFile(f"{path} cannot be read as a store ({error})") from error


def rehearse(candidates: Candidates, examples: Sequence[Any], settings: Settings) -> str:
    """Say what a run would cost."""
    begins = settings.store is None or not Path(settings.store).exists()
    with replayed(candidates, examples, replace(settings, store=None) if begins else settings) as campaign:
        terms, counts_money = campaign.terms, settings.cost is not None
        everything = np.full(len(terms.names), len(terms.rows))
        parts = [
            ("candidates", f"{len(terms.names):,}"),
            ("examples", f"{len(terms.rows):,}"),
            ("everything", priced(everything, campaign, counts_money)),
            *budget_lines(campaign),
        ]
        if campaign.reused:
            return paragraphs([*parts, ("so far", line(campaign))])
        return f"{paragraphs([*parts, *expected(campaign, counts_money)])}\n\n{EXPECTED}"


def budget_lines(campaign: Campaign) -> list[tuple[str, str]]:
    terms = campaign.terms
    if math.isinf(terms.budget):
        return []
    each = int(terms.budget * (1.0 + SLACK) / max(terms.costs.sum(), SLACK))
    return [("budget", f"{amount(terms.budget)}, enough for all candidates on {each:,} examples")]


def expected(campaign: Campaign, counts_money: bool) -> Iterator[tuple[str, str]]:
    """Say what deciding would cost if all but one candidate were behind by a gap."""
    low, high = campaign.terms.score_range
    for gap in GAPS:
        rows = rows_if_behind(gap, campaign)
        if rows is not None:
            yield f"{gap * (high - low):.3g} behind", f"about {priced(rows, campaign, counts_money)}"


def priced(rows: Indices, campaign: Campaign, counts_money: bool) -> str:
    """Say how many evaluations these are, and what they cost."""
    money = f", {amount(float((rows * campaign.terms.costs).sum()))}" if counts_money else ""
    return f"{int(rows.sum()):,} evaluations{money}"


def show(choice: Choice, options: ChooseOptions) -> None:
    """Print what was found, and write the page."""
    print(json.dumps(as_data(choice)) if options.as_json else as_text(choice), flush=True)
    if options.out is not None:
        choice.report(options.out)
    if choice.ended == "interrupted":
        leave(options)


def as_text(choice: Choice) -> str:
    """Give the statement and the table; and if it goes on, how far it is."""
    text = f"{choice}\n\n{choice.table}"
    return f"{text}\n\n{line(choice.campaign)}" if choice.ended == "open" else text


def leave(options: ChooseOptions) -> NoReturn:
    """Say what becomes of what was paid for."""
    kept = KEPT_NOTHING if options.store is None else GOES_ON.format(options.store)
    print(f"gumbelrace: interrupted; {kept}", file=sys.stderr, flush=True)
    raise typer.Exit(INTERRUPTED)


def as_data(choice: Choice) -> dict[str, Any]:
    """Give what was found, for programs."""
    return {
        "best": choice.name,
        **{name: getattr(choice, name) for name in FIELDS},
        "candidates": [number_or_none(row._asdict()) for row in choice.table],
        "failures": [failure._asdict() for failure in choice.failures],
    }


def number_or_none(row: dict[str, Any]) -> dict[str, Any]:
    """JSON has no NaN."""
    return {name: None if value != value else value for name, value in row.items()}
