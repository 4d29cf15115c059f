"""What commands share: options, results as text, and how far long work is (lines, without a terminal)."""

import csv
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill
from typing import Annotated, Any, TypeVar, get_type_hints

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from gumbelrace.cli.text import HERE, is_address, one_line, printable
from gumbelrace.core.pool import processors
from gumbelrace.core.progress import Lines, ticking
from gumbelrace.errors import InvalidArgument
from gumbelrace.models.arch.data import (
    LONG_DAYS,
    Overnight,
    Returns,
    returns_from_prices,
    simulate,
    standardised,
)
from gumbelrace.ray.cluster import Cluster
from gumbelrace.tables.delimited import dialect
from gumbelrace.tables.mentions import ReadMentions
from gumbelrace.tables.prices import read_prices
from gumbelrace.tables.source import about
from gumbelrace.tables.writing import Kind, write_table

Advance = Callable[[float], None]
NARROWEST, WIDEST, INDENT = 40, 100, 13  # of text
LISTED = 3  # long gaps, or mentions that were skipped
SKIPPED = "skipped.csv"


def no_default(metavar: str, help: str, *names: str, least: float | None = None) -> Any:
    """Give an option that need not be given, and whose help shows no default."""
    return typer.Option(*names, metavar=metavar, help=help, min=least, show_default=False)


Delta = Annotated[
    float, typer.Option(metavar="DELTA", help="How likely an error may be: more than 0, less than 1.")
]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="The same seed gives the same result.")]
Jobs = Annotated[int | None, no_default("N", "Threads; default: as many as processors.", least=1)]
RAY = (
    "Workers of the Ray at ADDRESS (auto, ray://host:port) in the place of threads; without an address, of "
    "the one that runs here, or else one is started."
)
Ray = Annotated[str | None, no_default("[ADDRESS]", RAY)]
COLUMN = "Read FIELD (author, coauthors, label, ...) from the column NAME; may be repeated."
Fields = Annotated[list[str] | None, no_default("FIELD=NAME", COLUMN, "--column")]
Complete = Annotated[
    bool, typer.Option("--complete", help="All mentions of the labelled persons have labels.")
]


def workers(jobs: int | None, ray: str | None) -> Executor:
    """Give who does pieces of work: threads, or workers of Ray."""
    if ray is None:
        return ThreadPoolExecutor(jobs or processors())
    if not is_address(ray):
        raise InvalidArgument(f"--ray is {ray!r}; give auto, ray://host:port, or no address")
    return Cluster(None if ray == HERE else ray)


Format = Annotated[Kind, typer.Option("--format", help="Kind of the files of data.")]
Separator = Annotated[
    str | None, no_default("SEP", "What lies between columns of CSV; default: recognised.", "--sep")
]
Decimal = Annotated[
    str | None, no_default("MARK", "What stands before decimals in CSV; default: recognised.", "--decimal")
]

Options = TypeVar("Options")


def grouped(command: Callable[[Options], None]) -> Callable[..., None]:
    """Let a command take its options as one dataclass, whose fields are the options that typer sees."""
    kind = next(iter(get_type_hints(command).values()))

    @wraps(command)
    def run(**given: Any) -> None:
        command(kind(**given))

    run.__signature__ = inspect.signature(kind)  # type: ignore[attr-defined]
    run.__annotations__ = get_type_hints(kind, include_extras=True)
    return run


def split_names(columns: str | None) -> list[str] | None:
    """Take names apart that have commas in between."""
    return None if columns is None else [name.strip() for name in next(csv.reader([columns]), [])]


def fields(column: Sequence[str] | None) -> dict[str, str]:
    """Take apart FIELD=NAME."""
    pairs = [text.partition("=") for text in column or ()]
    for field, sign, _ in pairs:
        if not (field and sign):
            raise InvalidArgument(f"--column is {field!r}; give FIELD=NAME, such as author=inventor")
    return {field: name for field, _, name in pairs}


@dataclass(frozen=True)
class PriceOptions:
    """How prices are read from a file."""

    price: Annotated[str, typer.Option(metavar="COLUMN", help="Column of the prices.")] = "close"
    time: Annotated[str, typer.Option(metavar="COLUMN", help="Column of their times.")] = "datetime"
    segment: Annotated[str | None, no_default("COLUMN", "Column of labels that returns never cross.")] = (
        None
    )
    overnight: Annotated[
        Overnight | None,
        typer.Option(
            help="What becomes of returns from one day to another; default: dropped, of daily prices kept.",
            show_default=False,
        ),
    ] = None
    longest_gap: Annotated[
        float,
        typer.Option(min=0.0, metavar="DAYS", help="Cut the series where prices are missing for longer."),
    ] = LONG_DAYS
    separator: Separator = None
    decimal: Decimal = None

    def read(self, path: Path) -> Returns:
        found = read_prices(
            path, self.price, self.time, self.segment, dialect=dialect(self.separator, self.decimal)
        )
        with about(str(path)):
            return returns_from_prices(*found, self.overnight, self.longest_gap)

    def remarks(self, returns: Returns) -> list[tuple[str, str]]:
        """Say what was done to the prices, where a user should know."""
        found = [("mended", str(returns.repairs))] if any(returns.repairs) else []
        for last, first in returns.holes[:LISTED]:
            found.append(
                ("gap", f"no price from {minute(last)} to {minute(first)}: the series is cut there")
            )
        if len(returns.holes) > LISTED:
            found.append(
                ("gaps", f"and {len(returns.holes) - LISTED:,} more of over {self.longest_gap:g} days")
            )
        if self.overnight is None and returns.overnight is Overnight.KEPT:
            found.append(("overnight", "returns from day to day are kept: most days have one price"))
        return found


def minute(time: np.datetime64) -> str:
    return str(time.astype("datetime64[m]")).replace("T", " ")


def simulated_returns(count: int, seed: int) -> Returns:
    return standardised(simulate(count, np.random.default_rng([seed, 10])))


def described(returns: Returns, rows: int) -> dict[str, str]:
    """Say what the series is, and how many rows have all lags."""
    segments = len(returns.lengths)
    holes = [f"{minute(last)} to {minute(first)}" for last, first in returns.holes]
    return {
        "Returns": f"{len(returns.values):,} in {segments:,} segment{'' if segments == 1 else 's'}",
        "Rows with all lags": f"{rows:,}",
        "Repairs": str(returns.repairs),
        **({"Cut at long gaps": ", ".join(holes)} if holes else {}),
        "Standardised by": f"mean {returns.mean:.3g}, deviation {returns.scale:.3g}",
    }


def write_skipped(folder: Path, ids: Sequence[str]) -> dict[str, str]:
    """List the mentions that were skipped; return the file and what is in it."""
    if not ids:
        (folder / SKIPPED).unlink(missing_ok=True)  # of an earlier run
        return {}
    write_table(folder / SKIPPED, {"mention_id": ids})
    return {SKIPPED: "mentions without an author, which were skipped"}


def skipped(found: ReadMentions) -> list[tuple[str, str]]:
    if not found.skipped:
        return []
    first = ", ".join(found.skipped[:LISTED]) + (", ..." if len(found.skipped) > LISTED else "")
    return [("skipped", f"{len(found.skipped):,} without an author ({first}); all are in {SKIPPED}")]


def paragraphs(parts: Iterable[tuple[str, str]]) -> str:
    """Put texts below each other, each with a word in front that says what it is about."""
    width = min(max(get_terminal_size().columns, NARROWEST), WIDEST)
    return "\n".join(
        fill(
            printable(text),
            width,
            initial_indent=f"{about:<{INDENT}}",
            subsequent_indent=" " * INDENT,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for about, text in parts
    )


@contextmanager
def progress(doing: str, total: float) -> Iterator[Advance]:
    """Show how far the work is; call what is lent with how much of `total` is done."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Lines(one_line(doing), total)
        return
    parts = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:3.0f}%"),
        TimeRemainingColumn(),
    )
    with Progress(*parts, console=console, transient=True) as display:
        task = display.add_task(escape(one_line(doing)), total=total)
        yield lambda done: display.update(task, completed=done)


@contextmanager
def counting(doing: str, total: float) -> Iterator[Advance]:
    """Show how far the work is; call what is lent with how much more of `total` is done."""
    done = 0.0
    with progress(doing, total) as advance:

        def more(amount: float) -> None:
            nonlocal done
            done += amount
            advance(done)

        yield more


@contextmanager
def waiting(doing: str) -> Iterator[None]:
    """Show that work of unknown length goes on."""
    console = Console(stderr=True)
    with console.status(doing) if console.is_terminal else ticking(doing):
        yield
