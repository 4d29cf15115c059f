"""What commands share: options, results as text, and how far long work is (nothing where nobody looks)."""

import csv
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from textwrap import fill
from typing import Annotated, Any, TypeVar, get_type_hints

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from gumbelrace.errors import InvalidArgument
from gumbelrace.models.arch.data import Overnight, Returns, returns_from_prices, simulate, standardised
from gumbelrace.tables.prices import read_prices

Advance = Callable[[float], None]
WIDTH, INDENT = 80, 13  # of text


def no_default(metavar: str, help: str, *names: str, least: float | None = None) -> Any:
    """Give an option that need not be given, and whose help shows no default."""
    return typer.Option(*names, metavar=metavar, help=help, min=least, show_default=False)


Delta = Annotated[
    float, typer.Option(metavar="DELTA", help="How likely an error may be: more than 0, less than 1.")
]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="The same seed gives the same result.")]
Folder = Annotated[
    Path, typer.Option(metavar="FOLDER", help="Write the page and the data here; made if missing.")
]
Jobs = Annotated[int | None, no_default("N", "Threads; default: as many as processors.", least=1)]
COLUMN = "Read FIELD (author, coauthors, label, ...) from the column NAME; may be repeated."
Fields = Annotated[list[str] | None, no_default("FIELD=NAME", COLUMN, "--column")]
Complete = Annotated[
    bool, typer.Option("--complete", help="All mentions of the labelled persons have labels.")
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


def processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def fields(column: Sequence[str] | None) -> dict[str, str]:
    """Take apart FIELD=NAME."""
    pairs = [text.partition("=") for text in column or ()]
    for field, sign, _ in pairs:
        if not (field and sign):
            raise InvalidArgument(f"--column is {field!r}; give FIELD=NAME, such as author=inventor")
    return {field: name for field, _, name in pairs}


Price = Annotated[str, typer.Option(metavar="COLUMN", help="Column of the prices.")]
Time = Annotated[str, typer.Option(metavar="COLUMN", help="Column of their times.")]
Segment = Annotated[str | None, no_default("COLUMN", "Column of labels that returns never cross.")]
AtNight = Annotated[Overnight, typer.Option(help="What becomes of returns from one day to another.")]


def simulated_returns(count: int, seed: int) -> Returns:
    return standardised(simulate(count, np.random.default_rng([seed, 10])))


def returns_of(path: Path, price: str, time: str, segment: str | None, overnight: Overnight) -> Returns:
    return returns_from_prices(*read_prices(path, price, time, segment), overnight)


def described(returns: Returns, rows: int) -> dict[str, str]:
    """Say what the series is, and how many rows have all lags."""
    segments = len(returns.lengths)
    return {
        "Returns": f"{len(returns.values):,} in {segments:,} segment{'' if segments == 1 else 's'}",
        "Rows with all lags": f"{rows:,}",
        "Repairs": str(returns.repairs),
        "Standardised by": f"mean {returns.mean:.3g}, deviation {returns.scale:.3g}",
    }


def paragraphs(parts: Iterable[tuple[str, str]]) -> str:
    """Put texts below each other, each with a word in front that says what it is about."""
    return "\n".join(
        fill(
            text,
            WIDTH,
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
        yield lambda done: None
        return
    parts = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:3.0f}%"),
        TimeRemainingColumn(),
    )
    with Progress(*parts, console=console, transient=True) as display:
        task = display.add_task(doing, total=total)
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
    if not console.is_terminal:
        yield
        return
    with console.status(doing):
        yield
