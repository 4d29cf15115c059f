"""The page of the demo, and the picture of one race: a lane for each arm, and where it was dropped."""

from collections.abc import Mapping, Sequence
from typing import Any

from gumbelrace.applications.demo import Row, Standing, WatchedRace
from gumbelrace.errors import optional
from gumbelrace.methods.base import Promise
from gumbelrace.report.figures import Size, inline_svg, log_axis
from gumbelrace.report.page import (
    LIGHT,
    Code,
    Page,
    Panel,
    Panels,
    Section,
    Text,
    count,
    interval,
    microseconds,
    percent,
    table_of,
    times,
)
from gumbelrace.verdict import clopper_pearson

LEAD = (
    "gumbelrace draws from a discrete distribution with very many factors while reading only those that"
    " the draw needs. Here is what its methods did on your machine a moment ago."
)
READING = (
    "Share read: of all factors, by an average draw. Wrong: unlike an exact draw with the same Gumbel "
    "variables. Speed-up: over an exact scan by compiled code, measured in turns with it. Error bound: "
    "the probability of a wrong draw that the method allows, and whether that is proved or rests on an "
    "assumption."
)
OWN = """\
import numba
import numpy as np
import gumbelrace as gr

rng = np.random.default_rng(0)
y, centers = rng.normal(0.30, 1.0, 200_000), np.array([0.10, 0.20, 0.30, 0.40])

@numba.njit
def log_factor(n, arm, y, centers):
    return -0.5 * (y[n] - centers[arm]) ** 2

population = gr.compiled(log_factor, (y, centers), size=len(y), arms=len(centers))
draws = gr.sample(population, log_prior=np.log([0.1, 0.4, 0.4, 0.1]), size=1000, rng=rng)
print(draws.fraction, draws.tv_bound)
print(gr.audit(population, gr.Race(gr.methods.Normal()), draws=200, rng=rng))"""
NEXT = (
    "Draw from a likelihood of your own. The audit in the last line does some draws again exactly and "
    "counts how often they were wrong: run it before you trust an assumption."
)
CONFIDENCE = 0.95
WIDTH, LANE, BELOW = 400, 72, 46  # pixels
# Gaps up to this are drawn to scale, larger ones more and more compressed.
TO_SCALE = 0.6
TICKS = [-10, -1, 0, 1]
READING_RACE = (
    "The picture has a lane for each state, the horizontal line being the sum of the state that leads. "
    "Dots: how far a state's sum is behind, estimated from the rows read so far (on the scale of log p; "
    "the axis is compressed away from zero). Bars: the interval of that gap by the method's own bound (δ "
    "= {delta:g}, shared by {rivals} rivals). A state is dropped, ✕, when its whole bar lies below the "
    "line. Which states were still read was noted while the method ran."
)


def demo_page(rows: Sequence[Row], race: WatchedRace, facts: Mapping[str, str] | None = None) -> Page:
    """Give the page of the demo: what each method did, one race to watch, and facts (label -> value)."""
    table = table_of([cells(row) for row in rows], words=("method", "error bound"))
    sections = [
        Section("What each method did", [table, Text(READING)]),
        race_section(race),
        Section("What to do next", [Text(NEXT), Code(OWN)]),
    ]
    return Page("gumbelrace, a demonstration", answer(rows), facts or {}, sections, LEAD, race_figure(race))


def answer(rows: Sequence[Row]) -> str:
    """Say what the fastest method that may err gained, and how often it was wrong."""
    raced = [row for row in rows if row.promise.delta > 0.0]
    best = max(raced or rows, key=lambda row: row.speed_up)
    low, high = clopper_pearson(best.errors, best.draws, CONFIDENCE)
    gained = (
        f"{times(best.speed_up)} as fast as reading everything" if best.speed_up > 1.0 else "not faster"
    )
    return (
        f"`{best.method}` drew after reading {percent(best.read)} of the factors, {gained}; "
        f"{count(best.errors)} of {count(best.draws)} draws were wrong (95% interval "
        f"{interval((low, high))}; at most {bound(best.promise)})."
    )


def cells(row: Row) -> dict[str, str]:
    return {
        "method": f"`{row.method}`" if "(" in row.method else row.method,
        "share read": percent(row.read),
        "wrong draws": f"{count(row.errors)} of {count(row.draws)}",
        "µs a draw": microseconds(row.seconds),
        "speed-up": times(row.speed_up),
        "error bound": bound(row.promise),
    }


def bound(promise: Promise) -> str:
    if promise.delta == 0.0:
        return "never wrong"
    return f"{promise.delta:g}, {'proved' if promise.proved else 'assumed'}"


def race_figure(race: WatchedRace) -> Panels:
    size = Size(WIDTH, len(lanes(race)) * LANE + BELOW)
    svg = inline_svg(lambda figure: draw_race(figure, race), story(race), size)
    return Panels([Panel("", svg)], caption=story(race))


def race_section(race: WatchedRace) -> Section:
    """Say how to read the picture of a race."""
    return Section("Watch one race", [Text(READING_RACE.format(delta=race.delta, rivals=race.arms - 1))])


def story(race: WatchedRace) -> str:
    """Tell a race in two sentences."""
    dropped: dict[int, list[str]] = {}
    for one in race.standings:
        if not one.alive:
            dropped.setdefault(one.rows, []).append(str(one.arm))
    ends = [f"{joined('state', arms)} dropped after {count(rows)} rows" for rows, arms in dropped.items()]
    rest = ["the others read to the end"] if race.outcome.exhausted else []
    share = percent(race.outcome.evaluations / (race.size * race.arms))
    return (
        f"One draw from {race.arms} states with {count(race.size)} factors each: {', '.join(ends + rest)}. "
        f"State {race.outcome.arm} won, with {share} of the factors read."
    )


def joined(noun: str, names: Sequence[str]) -> str:
    return f"{noun} {names[0]}" if len(names) == 1 else f"{noun}s {', '.join(names[:-1])} and {names[-1]}"


def lanes(race: WatchedRace) -> list[list[Standing]]:
    """Give the looks at each arm, the winner's first, then by how long an arm stayed."""
    tracks = [[one for one in race.standings if one.arm == arm] for arm in range(race.arms)]
    return sorted(
        (track for track in tracks if track),
        key=lambda track: (track[0].arm != race.outcome.arm, -track[-1].rows, -track[-1].estimate),
    )


def draw_race(figure: Any, race: WatchedRace) -> None:
    """Draw a race into a figure or a part of one."""
    tracks = lanes(race)
    all_axes = figure.subplots(len(tracks), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    bottom = BELOW / (len(tracks) * LANE + BELOW)
    figure.subplots_adjust(left=0.14, right=0.985, top=0.985, bottom=bottom, hspace=0.1)
    for axes, track in zip(all_axes, tracks, strict=True):
        draw_lane(axes, track, track[0].arm == race.outcome.arm)
    rows, lowest = [standing.rows for standing in race.standings], all_axes[-1]
    log_axis(lowest.xaxis, count)
    lowest.set(xlim=(min(rows) / 1.3, max(rows) * 2.0), xlabel=f"rows read, of {count(race.size)}")
    lowest.spines["bottom"].set_visible(True)
    lowest.tick_params(bottom=True)
    figure.supylabel("behind the leader", x=0.012, fontsize="medium")


def draw_lane(axes: Any, track: list[Standing], wins: bool) -> None:
    """Draw one arm from its first look to its last."""
    rows, gaps, last = [one.rows for one in track], [one.estimate for one in track], track[-1]
    colour = LIGHT["accent" if wins else "quiet"]
    axes.axhline(0.0, color=LIGHT["quiet"], linewidth=0.9)
    axes.vlines(
        rows, [one.low for one in track], [one.high for one in track], colour, linewidth=5, alpha=0.4
    )
    axes.plot(rows, gaps, color=colour, linewidth=1.8 if wins else 1.0, marker="o", markersize=4)
    if not last.alive:
        axes.vlines(last.rows, last.low, last.high, LIGHT["bad"], linewidth=5)
        axes.plot(1.22 * last.rows, last.estimate, "x", ms=7, mew=2.2, color=LIGHT["bad"])
    end = "wins" if wins else "read to the end" if last.alive else f"dropped after {count(last.rows)} rows"
    axes.text(
        0.995,
        0.93,
        f"state {last.arm} {end}",
        transform=axes.transAxes,
        ha="right",
        va="top",
        color=LIGHT["accent" if wins else "ink"],
        fontweight="bold" if wins else "normal",
    )
    tidy(axes)


def tidy(axes: Any) -> None:
    """Set the axis of the gaps, and leave the other one to the lowest lane."""
    axes.set_yscale("asinh", linear_width=TO_SCALE)
    axes.set_yticks(TICKS, [f"{tick:g}".replace("-", "−") for tick in TICKS])
    axes.yaxis.set_minor_locator(optional("matplotlib.ticker", "cli").NullLocator())
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(bottom=False)
