"""A live table of the campaign, where somebody looks; else a line now and then."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gumbelrace.choosing.campaign import Campaign
from gumbelrace.choosing.forecast import cost_to_decide
from gumbelrace.choosing.result import amount, table_of
from gumbelrace.choosing.table import HEADS, cells

# Seconds between two tables, and between two lines, which come less often the longer it takes.
OFTEN, SELDOM, GROWTH = 0.5, 10.0, 1.5
# Share of the time that may be spent on showing.
MOST_TIME = 0.02
AROUND = 9  # lines around the rows of the table
STOPPING = "stopping: {} evaluations under way will be finished and kept; Ctrl-C again gives them up"


@contextmanager
def shown(campaign: Campaign, wanted: bool) -> Iterator[Callable[[], None]]:
    """Lend what is called to bring the picture up to date; it mostly does nothing."""
    console = _console() if wanted else None
    if not wanted:
        yield lambda: None
    elif console is not None and console.is_jupyter:
        with _in_notebook(campaign) as show:
            yield _NowAndThen(show, OFTEN, 1.0)
    elif console is not None and console.is_terminal:
        from rich.live import Live

        with Live(console=console, auto_refresh=False, transient=True) as live:
            yield _NowAndThen(
                lambda: live.update(_picture(campaign, console.height), refresh=True), OFTEN, 1.0
            )
    else:
        yield _NowAndThen(lambda: _tell(campaign), SELDOM, GROWTH)


def _console() -> Any:
    """Give what somebody may look at, if there is the package rich."""
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(stderr=True)


@contextmanager
def _in_notebook(campaign: Campaign) -> Iterator[Callable[[], None]]:
    """Show the table as text below the cell, and in the end the line above it."""
    from IPython.display import display

    def update(text: str) -> None:
        handle.update({"text/plain": text}, raw=True)

    handle: Any = display({"text/plain": ""}, raw=True, display_id=True)
    yield lambda: update(f"{line(campaign)}\n\n{table_of(campaign)}")
    update(line(campaign))


class _NowAndThen:
    def __init__(self, act: Callable[[], None], seconds: float, growth: float) -> None:
        self._act, self._seconds, self._growth = act, seconds, growth
        self._due = time.monotonic() + seconds

    def __call__(self) -> None:
        begun = time.monotonic()
        if begun < self._due:
            return
        self._act()
        took = time.monotonic() - begun
        self._seconds *= self._growth
        self._due = begun + max(self._seconds, took / MOST_TIME)


def line(campaign: Campaign) -> str:
    """Say in a line how far it is.

    What was spent, who leads, how many are still racing, and what it is expected to cost to decide.
    """
    replay, terms = campaign.replay, campaign.terms
    made, racing = int(campaign.evaluated.sum()), int(replay.wanted.sum())
    spent = (
        f"{made:,} of {len(terms.names) * len(terms.rows):,} evaluations, spent {amount(campaign.spent)}"
    )
    expected = f"expected to decide: {amount(campaign.spent + cost_to_decide(campaign))}"
    return f"{spent}; {racing} of {len(terms.names)} racing, {terms.names[replay.leader]} leads; {expected}"


def _tell(campaign: Campaign) -> None:
    print(f"gumbelrace: {line(campaign)}", file=sys.stderr, flush=True)


def _picture(campaign: Campaign, height: int) -> Any:
    """Draw the table, as far as it fits the screen; names are shown as they are, whatever is in them."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    picture = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in HEADS:
        picture.add_column(
            name, justify="left" if name in ("candidate", "state") else "right", no_wrap=True
        )
    rows, room = table_of(campaign).ranked, max(height - AROUND, 1)
    for row in rows[:room]:
        picture.add_row(*map(Text, cells(row)))
    parts: list[Any] = [Text(line(campaign)), picture]
    if len(rows) > room:
        parts.append(Text(f"... and {len(rows) - room:,} more"))
    if campaign.patience.stopping and campaign.under_way:
        parts.append(Text(STOPPING.format(campaign.under_way)))
    return Group(*parts)
