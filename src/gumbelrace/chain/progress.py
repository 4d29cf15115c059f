"""What a person sees while chains run: a line for each, in a terminal or a notebook only."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any

from gumbelrace.chain.worker import Chain, added

MOST_LINES = 8  # more chains than this share one line


@contextmanager
def show_progress(
    chains: Sequence[Chain], wanted: bool = True, console: Any = None
) -> Iterator[Callable[[], None]]:
    """Show how far chains are; call what is lent to bring it up to date.

    Nothing is shown where nobody looks (the output is not a terminal), or without the package rich.
    """
    console = (console or _console()) if wanted else None
    if console is None or not (console.is_terminal or console.is_jupyter):
        yield lambda: None
        return
    lines = [[chain] for chain in chains] if len(chains) <= MOST_LINES else [list(chains)]
    with _display(console) as display:
        tasks = [display.add_task(**_line(line, number)) for number, line in enumerate(lines)]

        def refresh() -> None:
            for number, (task, line) in enumerate(zip(tasks, lines, strict=True)):
                display.update(task, **_line(line, number))
            display.refresh()

        yield refresh


def _console() -> Any:
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(stderr=True)


def _display(console: Any) -> Any:
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    # With 80 columns a line fits whole.
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.percentage:3.0f}%"),
        TextColumn("{task.fields[took]}", style="dim"),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=console,
        auto_refresh=False,
    )


def _line(chains: list[Chain], number: int) -> dict[str, Any]:
    name = f"chain {number}" if len(chains) == 1 else f"{len(chains)} chains"
    warming = any(chain.done < chain.plan.warmup for chain in chains)
    return {
        "description": f"{name} {'warm-up' if warming else '':7}",
        "completed": sum(chain.done for chain in chains),
        "total": sum(chain.plan.total for chain in chains),
        "took": _took(chains),
    }


def _took(chains: list[Chain]) -> str:
    steps = sum(chain.done - chain.begun for chain in chains)
    if steps == 0:
        return ""
    total = reduce(added, (chain.tally for chain in chains))
    read = f"{total.evaluations / total.rewards:.1%} read, " if total.rewards else ""
    return f"{read}{total.acceptance / steps:.2f} accepted"
