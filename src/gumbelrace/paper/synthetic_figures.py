"""Figures 1, 5, 6 and 7 of the paper, panel by panel, from records."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from gumbelrace.paper.records import BoundPoint, Record
from gumbelrace.report.figures import (
    MARKERS,
    PANEL,
    inline_svg,
    log_axis,
    look_of,
    method_keys,
    panel_axes,
    say,
    shape_keys,
)
from gumbelrace.report.numbers import count, percent, power_of_ten, probability
from gumbelrace.report.page import LIGHT, Key, Panel, Panels

APART = 1.05  # series at one δ stand side by side
PAIRED = ("lil'UCB", "Racing-EBS", "Racing-Normal", "Betting")
MARGINAL = ("lil'UCB", "Racing-EBS, marginal", "Racing-Normal, marginal", "Betting")
DIFFICULTY = {0.1: "very hard", 1e-4: "easy", 1e-5: "very easy"}
BOUNDS = (
    "The bounds are for normal rewards of unit variance, with C the largest range of an arm in the "
    "sample. Betting has no bound of that form: its line is the true gap that half of its races have "
    "resolved by row T, which for a race with bound G is about G(T)."
)
ON_THE_LINE = Key("error = δ", "quiet", (2.0, 2.0))


@dataclass(frozen=True)
class Figure:
    """Which records a figure of the paper shows."""

    number: int
    arms: int
    methods: tuple[str, ...]
    about: str

    def chosen(self, records: Iterable[Record]) -> list[Record]:
        """Give the figure's records."""
        return [one for one in records if one.arms == self.arms and one.method in self.methods]


FIGURES = (
    Figure(1, 10, PAIRED, "D = 10, variance of pairs"),
    Figure(5, 10, MARGINAL, "D = 10, variance of each arm"),
    Figure(6, 2, PAIRED, "D = 2, variance of pairs"),
    Figure(7, 100, PAIRED, "D = 100, variance of pairs"),
)


def figure_panels(figure: Figure, records: Sequence[Record], before: Sequence[Panel] = ()) -> Panels:
    """Give a row of errors and a row of shares read, a column for each σ.

    `before` are panels to put before either row (Figure 1 has them).
    """
    chosen = figure.chosen(records)
    scales = sorted({one.scale for one in chosen}, reverse=True)
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    rows = []
    for number, draw in enumerate((error_panel, read_panel)):
        panels = [*before[number : number + 1], *(draw(chosen, scale) for scale in scales)]
        rows += [Panel(f"({next(letters)}) {panel.title}", panel.svg) for panel in panels]
    legend = [*method_keys(figure.methods), *shape_keys(), ON_THE_LINE]
    return Panels(rows, len(rows) // 2, caption(figure, chosen, before), legend)


def caption(figure: Figure, chosen: Sequence[Record], before: Sequence[Panel]) -> str:
    """Say what a figure shows, after the paper's own words."""
    most = max(one.draws for one in chosen)
    about = f"Figure {figure.number} of the paper, with Betting added: {figure.about}. Upper row"
    about += ", after p(X)" if before else ""
    about += (
        f": estimated error with its 95% interval over up to {count(most)} draws; points with no "
        "error are not shown, and bars that reach the lower edge go on below it. Lower row"
    )
    about += (", after the bounds" if before else "") + ": share of the rewards read."
    return f"{about} {BOUNDS}" if before else about


def series(records: Iterable[Record]) -> list[tuple[str, str, list[Record]]]:
    """Give the records of each method and shape, by δ."""
    order = sorted(records, key=lambda one: (list(MARKERS).index(one.shape), one.method, one.delta))
    return [(*key, list(group)) for key, group in groupby(order, lambda one: (one.method, one.shape))]


def error_panel(records: Sequence[Record], scale: float) -> Panel:
    """Draw errors against δ on logarithmic axes."""
    here = [one for one in records if one.scale == scale]

    def draw(figure: Any) -> None:
        axes = panel_axes(figure, "δ", "error")
        delta_axis(axes, [one.delta for one in records])
        log_axis(axes.yaxis, power_of_ten)
        axes.set_ylim(1.0 / (3.0 * max(one.draws for one in records)), 0.5)
        axes.axline((1e-3, 1e-3), (1e-1, 1e-1), color=LIGHT["quiet"], dashes=(2, 2), linewidth=1)
        for number, (method, shape, track) in enumerate(series(here)):
            draw_errors(axes, track, method, shape, APART ** (number / 2 - 2.5))
        if not any(one.errors for one in here):
            say(axes, "no error in any draw")

    problem = f"D = {records[0].arms}, σ = {scale:g}"
    level = f", {DIFFICULTY[scale]}" if scale in DIFFICULTY else ""
    label = f"Estimated error against δ, both logarithmic, {problem}. {describe_errors(here)}"
    return Panel(f"σ = {sigma(scale)}{level}", inline_svg(draw, label, PANEL))


def draw_errors(axes: Any, track: Sequence[Record], method: str, shape: str, shift: float) -> None:
    """Draw one method's errors, with gaps where there are none."""
    look = look_of(method)
    shown = [one.error if one.errors else math.nan for one in track]
    bars = [[one.error - one.interval[0] for one in track], [one.interval[1] - one.error for one in track]]
    at = [one.delta * shift for one in track]
    axes.errorbar(at, shown, bars, fmt="none", ecolor=look.ink, elinewidth=1.0, alpha=0.75)
    draw_line(axes, at, shown, method, shape)


def draw_line(axes: Any, at: Sequence[float], values: Sequence[float], method: str, shape: str) -> None:
    """Draw a line in the method's colour with the shape's markers."""
    look = look_of(method)
    axes.plot(
        at,
        values,
        color=look.ink,
        linestyle=look.style,
        linewidth=1.2,
        marker=MARKERS[shape],
        markerfacecolor="none",
        markeredgewidth=1.3,
    )


def read_panel(records: Sequence[Record], scale: float) -> Panel:
    """Draw shares read against δ; on a logarithmic axis unless this is the largest σ, as in the paper."""
    here = [one for one in records if one.scale == scale]
    linear = scale == max(one.scale for one in records)

    def draw(figure: Any) -> None:
        axes = panel_axes(figure, "δ", "share read")
        delta_axis(axes, [one.delta for one in records])
        if linear:
            axes.set_ylim(0.0, 1.08)
            axes.set_yticks([0.0, 0.5, 1.0], ["0%", "50%", "100%"])
        else:
            log_axis(axes.yaxis, percent)
            # A race that is decided by the range of the rewards alone has read nothing, and has no mark.
            lowest = min((one.read for one in here if one.read > 0.0), default=0.1)
            axes.set_ylim(10.0 ** math.floor(math.log10(lowest)), 1.6)
        for method, shape, track in series(here):
            draw_line(axes, [one.delta for one in track], [one.read for one in track], method, shape)

    problem = f"D = {records[0].arms}, σ = {scale:g}"
    label = f"Share of the rewards read against δ, {problem}. {describe_reads(here)}"
    note = "" if linear else ", log scale"
    return Panel(f"σ = {sigma(scale)}{note}", inline_svg(draw, label, PANEL))


def delta_axis(axes: Any, deltas: Sequence[float]) -> None:
    """Make the x axis that of δ."""
    log_axis(axes.xaxis, probability)
    axes.set_xlim(min(deltas) / 1.6, max(deltas) * 1.6)


def probabilities_panel(probabilities: Sequence[float]) -> Panel:
    """Draw the bars of p(X)."""

    def draw(figure: Any) -> None:
        axes = panel_axes(figure, "X", "p(X)")
        axes.bar(range(1, len(probabilities) + 1), probabilities, 0.72, color=LIGHT["quiet"])
        axes.grid(visible=False, axis="x")
        axes.locator_params(axis="y", nbins=4)
        if len(probabilities) <= 12:
            axes.set_xticks(range(1, len(probabilities) + 1))

    told = ", ".join(probability(p) for p in probabilities)
    return Panel("p(X)", inline_svg(draw, f"The distribution of X. p is {told}.", PANEL))


def bounds_panel(points: Sequence[BoundPoint], delta: float = 0.1) -> Panel:
    """Draw how wide each method's bound is after T rows."""
    methods = list(dict.fromkeys(point.method for point in points))

    def draw(figure: Any) -> None:
        axes = panel_axes(figure, "rows read, T", "G(T), in σ")
        log_axis(axes.xaxis, power_of_ten)
        log_axis(axes.yaxis, power_of_ten)
        axes.set_ylim(1e-3, 2.0 * max(point.width for point in points))
        for method in methods:
            track = [point for point in points if point.method == method]
            look = look_of(method)
            width = [point.width for point in track]
            axes.plot([point.rows for point in track], width, color=look.ink, linestyle=look.style)

    label = f"Width of the uncertainty bound against rows read at δ = {delta:g}, for {', '.join(methods)}."
    return Panel(f"G(T) at δ = {delta:g}", inline_svg(draw, label, PANEL))


def sigma(scale: float) -> str:
    """Give σ as the paper does: 0.1, 10⁻⁴."""
    is_power = abs(math.log10(scale) - round(math.log10(scale))) < 1e-9
    return power_of_ten(scale) if is_power and scale < 0.01 else f"{scale:g}"


def describe_errors(records: Sequence[Record]) -> str:
    """Tell each method's largest error."""
    methods = dict.fromkeys(one.method for one in records)
    most = {name: max(one.error for one in records if one.method == name) for name in methods}
    told = [f"{name} {probability(error) if error else 'none'}" for name, error in most.items()]
    return f"Largest error: {', '.join(told)}."


def describe_reads(records: Sequence[Record]) -> str:
    """Tell the least and most that each method read."""
    told = []
    for name in dict.fromkeys(one.method for one in records):
        shares = [one.read for one in records if one.method == name]
        told.append(f"{name} {percent(min(shares))} to {percent(max(shares))}")
    return f"{'; '.join(told)}."
