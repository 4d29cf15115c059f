"""What a person sees: results as text, and during long work how far it is (nothing where nobody looks)."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from textwrap import fill

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

Advance = Callable[[float], None]
WIDTH, INDENT = 80, 13


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
