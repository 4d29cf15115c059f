"""The page of a choice: what is claimed, the intervals as they shrank, what was spent, and what failed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from gumbelrace.errors import optional
from gumbelrace.report.figures import Size, inline_svg, log_axis
from gumbelrace.report.page import (
    LIGHT,
    Column,
    Page,
    Panel,
    Panels,
    Section,
    Table,
    Text,
    Verdict,
    count,
    made_by,
    percent,
    rate,
    short,
)

TONES = {"best": "good", "tied": "good", "racing": "open", "no better": "open", "out": "bad"}
MOST_LANES, MOST_FAILURES, LONGEST_ERROR, LONGEST_NAME = 12, 50, 200, 32
WIDTH, LANE, BELOW = 400, 66, 44  # pixels
BAR, BARS_LEFT, LONGEST_BESIDE_BAR = 26, 0.34, 20
CAPTION = (
    "(a) A lane for each candidate: its mean on the rows so far, and the interval that the mean over {all} "
    "lies in. A candidate is out, ✕, when bets on its differences from the leader say so, row by row, "
    "which is sooner than intervals come apart. The line across is the mean of {best} at the end. (b) What "
    "was spent on each candidate; the pale bar is what evaluating it on all examples would cost.{more}"
)
CAUTION = (
    "Each interval holds at all times with a probability of {confidence}; each by itself, not all "
    "together. Means of candidates that are out come from fewer rows, and from those on which they did "
    "badly enough to be dropped: take them as the reason for that, not as estimates of how good they are."
)
NOTHING = "Nothing was evaluated."
NO_BETTER = "A candidate is no better if it was shown not to beat the best by more than the tolerance."


class Lane(NamedTuple):
    """A candidate: where it stands, and its mean and interval after growing numbers of rows, if drawn."""

    name: str
    state: str
    mean: float
    low: float
    high: float
    evaluations: int
    failures: int
    cost: float
    full_cost: float
    out_at: int  # rows after which it was dropped, or -1
    rows: Sequence[int]
    means: Sequence[float]
    lows: Sequence[float]
    highs: Sequence[float]

    @property
    def end(self) -> str:
        """Say what became of it."""
        return f"out after {count(self.out_at)} rows" if self.out_at > 0 else self.state


@dataclass(frozen=True)
class Chosen:
    """What a choice has found.

    Attributes
    ----------
    name, statement : str
        Who was chosen, and what is claimed.
    facts : mapping of str
        Further facts, by their labels.
    claim : str
        What the means are over.
    delta : float
        Bound on the probability of an error.
    lanes : sequence of Lane
        The candidates as they are listed; the first `MOST_LANES` are drawn.
    failures : sequence of tuple
        Candidate, example and error of each evaluation that failed.
    """

    name: str
    statement: str
    facts: Mapping[str, str]
    claim: str
    delta: float
    lanes: Sequence[Lane]
    failures: Sequence[tuple[str, int, str]]


def choice_page(chosen: Chosen) -> Page:
    """Give the page of a choice."""
    lanes = chosen.lanes
    caution = [Text(CAUTION.format(confidence=f"{1.0 - chosen.delta:g}"))]
    if any(lane.state == "no better" for lane in lanes):
        caution.append(Text(NO_BETTER))
    sections = [Section("All candidates", [_table(lanes), *caution])]
    evaluated = any(lane.rows for lane in lanes)
    if chosen.failures:
        sections.append(Section("Evaluations that failed", _failures(chosen.failures)))
    return Page(
        f"The choice: {short(chosen.name, LONGEST_NAME)}",
        chosen.statement,
        {**chosen.facts, **made_by()},
        sections,
        about="" if evaluated else NOTHING,
        picture=_panels(lanes, chosen) if evaluated else None,
    )


def _table(lanes: Sequence[Lane]) -> Table:
    titles = ["mean", "interval", "evaluations", "failed"]
    columns = [
        Column("candidate", is_number=False),
        *map(Column, titles),
        Column("state", is_number=False),
    ]
    return Table(columns, [_cells(lane) for lane in lanes])


def _cells(lane: Lane) -> list[str | Verdict]:
    known = [f"{lane.mean:.4f}", f"{lane.low:.4f} to {lane.high:.4f}"] if lane.evaluations else ["", ""]
    return [
        short(lane.name, LONGEST_NAME),
        *known,
        count(lane.evaluations),
        count(lane.failures),
        Verdict(lane.end, TONES[lane.state]),
    ]


def _failures(failures: Sequence[tuple[str, int, str]]) -> list[Text | Table]:
    columns = [Column(title, is_number=False) for title in ("candidate", "example", "error")]
    rows = [
        [short(name, LONGEST_NAME), count(row), short(error, LONGEST_ERROR)]
        for name, row, error in failures[:MOST_FAILURES]
    ]
    table = Table(columns, rows, stacks=True)
    rest = len(failures) - len(rows)
    return [table, Text(f"And {count(rest)} more.")] if rest > 0 else [table]


def _panels(lanes: Sequence[Lane], chosen: Chosen) -> Panels:
    shown = [lane for lane in lanes if lane.rows][:MOST_LANES]
    left_out = len(lanes) - len(shown)
    more = (
        f" {count(left_out)} candidates that were dropped sooner are in the table only." if left_out else ""
    )
    spent, full = sum(lane.cost for lane in lanes), sum(lane.full_cost for lane in lanes)
    share = f" ({percent(spent / full)})" if full else ""
    size = Size(WIDTH, len(shown) * LANE + BELOW)
    race = inline_svg(lambda figure: _draw_lanes(figure, shown), chosen.statement, size)
    bars = Size(WIDTH, len(shown) * BAR + BELOW)
    told = f"Spent {rate(spent)} of {rate(full)}{share}"
    costs = inline_svg(lambda figure: _draw_costs(figure, shown), told, bars)
    caption = CAPTION.format(all=chosen.claim, best=short(chosen.name, LONGEST_NAME), more=more)
    panels = [Panel("(a) Intervals against rows", race), Panel(f"(b) {told}", costs)]
    return Panels(panels, 2, caption)


def _draw_lanes(figure: Any, lanes: Sequence[Lane]) -> None:
    all_axes = figure.subplots(len(lanes), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    height = len(lanes) * LANE + BELOW
    figure.subplots_adjust(left=0.12, right=0.97, top=1 - 20 / height, bottom=BELOW / height, hspace=0.5)
    for axes, lane in zip(all_axes, lanes, strict=True):
        _draw_lane(axes, lane, lanes[0])
    lowest = all_axes[-1]
    log_axis(lowest.xaxis, count)
    longest = max(lane.rows[-1] for lane in lanes)
    lowest.set(
        xlim=(1, max(1.25 * longest, 10)), ylim=_limits(lanes), xlabel="rows (examples evaluated on)"
    )
    lowest.spines["bottom"].set_visible(True)
    lowest.tick_params(bottom=True)


def _limits(lanes: Sequence[Lane]) -> tuple[float, float]:
    """Show what the means have come to, and the interval of the first; wider ones are cut off."""
    first, means = lanes[0], [lane.mean for lane in lanes]
    low, high = min(first.low, *means), max(first.high, *means)
    room = 0.1 * (high - low) or 0.5
    return low - room, high + room


def _draw_lane(axes: Any, lane: Lane, first: Lane) -> None:
    is_first = lane is first
    colour = LIGHT["accent" if is_first else "quiet"]
    axes.axhline(first.mean, color=LIGHT["accent"], linewidth=0.8)
    axes.fill_between(lane.rows, lane.lows, lane.highs, color=colour, alpha=0.25, linewidth=0)
    axes.plot(lane.rows, lane.means, color=colour, linewidth=1.8 if is_first else 1.2)
    if lane.out_at > 0:
        axes.plot(lane.out_at, lane.mean, "x", ms=7, mew=2.2, color=LIGHT["bad"], clip_on=False)
    axes.set_title(
        _literal(f"{short(lane.name, LONGEST_NAME)} ({lane.end})"),
        loc="left",
        fontsize=11,
        pad=3,
        color=LIGHT["accent" if is_first else "ink"],
    )
    axes.yaxis.set_major_locator(optional("matplotlib.ticker", "cli").MaxNLocator(2))
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(bottom=False, which="both")


def _draw_costs(figure: Any, lanes: Sequence[Lane]) -> None:
    height = len(lanes) * BAR + BELOW
    axes = figure.add_axes((BARS_LEFT, BELOW / height, 0.97 - BARS_LEFT, 1 - (BELOW + 6) / height))
    places = range(len(lanes))
    axes.barh(places, [lane.full_cost for lane in lanes], 0.6, color=LIGHT["rule"])
    colours = [LIGHT["accent" if lane is lanes[0] else "quiet"] for lane in lanes]
    axes.barh(places, [lane.cost for lane in lanes], 0.6, color=colours)
    axes.set_yticks(places, [_literal(short(lane.name, LONGEST_BESIDE_BAR)) for lane in lanes])
    axes.set(ylim=(len(lanes) - 0.4, -0.6), xlabel="cost")
    axes.tick_params(left=False)
    axes.grid(False, axis="y")
    axes.xaxis.set_major_locator(optional("matplotlib.ticker", "cli").MaxNLocator(4))


def _literal(text: str) -> str:
    """Keep matplotlib from reading mathematics between dollars."""
    return text.replace("$", r"\$")
