"""Figures 1, 5, 6 and 7 of the paper; B_Normal beside its table; cases that break Racing-Normal."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

from gumbelrace.paper.synthetic_study import BoundPoint, Broken, Level, Record
from gumbelrace.report.figures import (
    MARKERS,
    PANEL,
    Size,
    inline_svg,
    log_axis,
    look_of,
    method_keys,
    panel_axes,
    say,
    shape_keys,
)
from gumbelrace.report.page import (
    LIGHT,
    Column,
    Key,
    Panel,
    Panels,
    Table,
    count,
    interval,
    percent,
    power_of_ten,
    probability,
)

# Series at one δ stand side by side, those of few methods further apart.
APART, FURTHER_APART = 1.05, 1.07
LEVEL_PANEL, BROKEN_PANEL = Size(400, 300), Size(400, 290)
DASHES = (4.0, 2.0)
PAIRED = ("lil'UCB", "Racing-EBS", "Racing-Normal", "Betting")
MARGINAL = ("lil'UCB", "Racing-EBS, marginal", "Racing-Normal, marginal", "Betting")
DIFFICULTY = {0.1: "very hard", 1e-4: "easy", 1e-5: "very easy"}
BOUNDS = (
    "The bounds are for normal rewards of unit variance, with C the largest range of an arm in the "
    "sample. Betting has no bound of that form: its line is the true gap that half of its races have "
    "resolved by row T, which for a race with bound G is about G(T)."
)
LEVELS = (
    "B against δ, for first looks at six shares of the rows (the second panel has a linear δ axis). The"
    " printed numbers are those of the two-sided reading; Eq. 5 as written asks for the one-sided one, "
    "which the library uses. The readings agree where δ is small."
)
BROKEN = (
    "Estimated error with its 95% interval against δ. A method keeps its promise on or below the dotted"
    " line. Where no draw was wrong, a triangle stands at the upper end of the interval."
)
BROKEN_COLUMNS = [
    Column("case", is_number=False),
    Column("method", is_number=False),
    Column("wrong draws"),
    Column("error"),
    Column("95% interval"),
    Column("share read"),
]
ON_THE_LINE = Key("error = δ", "quiet", (2.0, 2.0))


@dataclass(frozen=True)
class Figure:
    """Which records a figure of the paper shows."""

    number: int
    arms: int
    methods: tuple[str, ...]
    about: str

    def chosen(self, records: Iterable[Record]) -> list[Record]:
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
    here = [one for one in records if one.scale == scale]

    def draw(figure: Any) -> None:
        axes = error_axes(figure, records, 0.5)
        for number, (_, shape, track) in enumerate(series(here)):
            draw_errors(axes, track, MARKERS[shape], APART ** (number / 2 - 2.5))
        if not any(one.errors for one in here):
            say(axes, "no error in any draw")

    problem = f"D = {records[0].arms}, σ = {scale:g}"
    level = f", {DIFFICULTY[scale]}" if scale in DIFFICULTY else ""
    label = f"Estimated error against δ, both logarithmic, {problem}. {describe_errors(here)}"
    return Panel(f"σ = {sigma(scale)}{level}", inline_svg(draw, label, PANEL))


def error_axes(figure: Any, records: Sequence[Record] | Sequence[Broken], top: float) -> Any:
    """Give logarithmic axes of error against δ, with a line where they are equal."""
    axes = panel_axes(figure, "δ", "error")
    delta_axis(axes, [one.delta for one in records])
    log_axis(axes.yaxis, power_of_ten)
    axes.set_ylim(1.0 / (3.0 * max(one.draws for one in records)), top)
    axes.axline((1e-3, 1e-3), (1e-1, 1e-1), color=LIGHT["quiet"], dashes=(2, 2), linewidth=1)
    return axes


def draw_errors(axes: Any, track: Sequence[Record] | Sequence[Broken], marker: str, shift: float) -> None:
    """Draw one method's errors, with gaps where there are none."""
    errors = [one.error if one.errors else math.nan for one in track]
    bars = [[one.error - one.interval[0] for one in track], [one.interval[1] - one.error for one in track]]
    at, method = [one.delta * shift for one in track], track[0].method
    axes.errorbar(at, errors, bars, fmt="none", ecolor=look_of(method).ink, elinewidth=1.0, alpha=0.75)
    draw_line(axes, at, errors, method, marker)


def draw_line(axes: Any, at: Sequence[float], values: Sequence[float], method: str, marker: str) -> None:
    look = look_of(method)
    style = {"marker": marker, "markerfacecolor": "none", "markeredgewidth": 1.3}
    axes.plot(at, values, color=look.ink, linestyle=look.style, linewidth=1.2, **style)


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
            at, read = [one.delta for one in track], [one.read for one in track]
            draw_line(axes, at, read, method, MARKERS[shape])

    problem = f"D = {records[0].arms}, σ = {scale:g}"
    label = f"Share of the rewards read against δ, {problem}. {describe_reads(here)}"
    note = "" if linear else ", log scale"
    return Panel(f"σ = {sigma(scale)}{note}", inline_svg(draw, label, PANEL))


def delta_axis(axes: Any, deltas: Sequence[float]) -> None:
    log_axis(axes.xaxis, probability)
    axes.set_xlim(min(deltas) / 1.6, max(deltas) * 1.6)


def probabilities_panel(probabilities: Sequence[float]) -> Panel:

    def draw(figure: Any) -> None:
        axes = panel_axes(figure, "X", "p(X)")
        axes.bar(range(1, len(probabilities) + 1), probabilities, 0.72, color=LIGHT["quiet"])
        axes.grid(visible=False, axis="x")
        axes.locator_params(axis="y", nbins=4)
        if len(probabilities) <= 12:
            axes.set_xticks(range(1, len(probabilities) + 1))

    listed = ", ".join(probability(p) for p in probabilities)
    return Panel("p(X)", inline_svg(draw, f"The distribution of X. p is {listed}.", PANEL))


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
    methods = dict.fromkeys(one.method for one in records)
    most = {name: max(one.error for one in records if one.method == name) for name in methods}
    listed = [f"{name} {probability(error) if error else 'none'}" for name, error in most.items()]
    return f"Largest error: {', '.join(listed)}."


def describe_reads(records: Sequence[Record]) -> str:
    listed = []
    for name in dict.fromkeys(one.method for one in records):
        shares = [one.read for one in records if one.method == name]
        listed.append(f"{name} {percent(min(shares))} to {percent(max(shares))}")
    return f"{'; '.join(listed)}."


def level_figure(levels: Sequence[Level]) -> Panels:
    tracks = by_fraction(levels)
    drawn = {
        "B": (draw_levels, describe_levels),
        "Differences from the two-sided reading": (draw_differences, describe_differences),
    }
    panels = [
        Panel(title, inline_svg(partial(draw, tracks=tracks), describe(levels), LEVEL_PANEL))
        for title, (draw, describe) in drawn.items()
    ]
    steps = [
        Key(f"first look at {percent(fraction)} of the rows", step(i), ())
        for i, fraction in enumerate(tracks)
    ]
    readings = [
        Key("ours, two-sided", dashes=()),
        Key("ours, one-sided", dashes=DASHES),
        Key("printed", marker="."),
    ]
    return Panels(panels, 2, LEVELS, [*readings, *steps])


def by_fraction(levels: Sequence[Level]) -> dict[float, list[Level]]:
    fractions = sorted({level.first_fraction for level in levels})
    return {f: sorted(level for level in levels if level.first_fraction == f) for f in fractions}


def step(number: int) -> str:
    return f"step-{number + 1}"


def draw_levels(figure: Any, tracks: dict[float, list[Level]]) -> None:
    axes = panel_axes(figure, "δ", "B")
    log_axis(axes.xaxis, power_of_ten)
    for number, track in enumerate(tracks.values()):
        at, two_sided = [level.delta for level in track], [level.two_sided for level in track]
        axes.plot(at, two_sided, color=LIGHT[step(number)], linewidth=1.2)
    draw_others(axes, tracks, lambda level: 0.0)


def draw_differences(figure: Any, tracks: dict[float, list[Level]]) -> None:
    axes = panel_axes(figure, "δ", "B less the two-sided B")
    axes.axhline(0.0, color=LIGHT["quiet"], linewidth=1)
    draw_others(axes, tracks, lambda level: level.two_sided)


def draw_others(axes: Any, tracks: dict[float, list[Level]], less: Callable[[Level], float]) -> None:
    """Draw the printed and the one-sided B, less something."""
    for number, track in enumerate(tracks.values()):
        at, colour = [level.delta for level in track], LIGHT[step(number)]
        one_sided, printed = zip(
            *((x.one_sided - less(x), x.printed - less(x)) for x in track), strict=True
        )
        axes.plot(at, one_sided, color=colour, linewidth=1.2, dashes=DASHES)
        axes.plot(at, printed, ".", color=colour, markersize=5)


def describe_levels(levels: Sequence[Level]) -> str:
    low, high = min(levels, key=lambda one: one.two_sided), max(levels, key=lambda one: one.two_sided)
    return (
        f"B against δ, logarithmic in δ. It falls from {high.two_sided:.2f} at δ = {high.delta:g} to "
        f"{low.two_sided:.2f} at δ = {low.delta:g}; the printed dots lie on the two-sided lines."
    )


def describe_differences(levels: Sequence[Level]) -> str:
    printed = max(abs(one.printed - one.two_sided) for one in levels)
    one_sided = max(one.one_sided - one.two_sided for one in levels)
    return (
        "Differences from the two-sided B against δ. The printed values differ by at most "
        f"{printed:.3f}, the one-sided ones by at most {one_sided:.2f}."
    )


def broken_figure(broken: Sequence[Broken]) -> Panels:
    """Give the figure of the breaking cases for a page, a panel for each."""
    cases = list(dict.fromkeys(one.case for one in broken))
    methods = list(dict.fromkeys(one.method for one in broken))
    panels = [case_panel(case, [one for one in broken if one.case == case]) for case in cases]
    legend = [*method_keys(methods), ON_THE_LINE, Key("no error: upper end of the interval", marker="v")]
    return Panels(panels, 2, BROKEN, legend)


def case_panel(case: str, broken: Sequence[Broken]) -> Panel:
    methods = list(dict.fromkeys(one.method for one in broken))

    def draw(figure: Any) -> None:
        axes = error_axes(figure, broken, 2.0)
        for number, method in enumerate(methods):
            shift = FURTHER_APART ** (number - (len(methods) - 1) / 2)
            draw_method(axes, [one for one in broken if one.method == method], shift)

    label = f"Error against δ, both logarithmic, for the case {case}. {largest(broken)}"
    return Panel(case.capitalize(), inline_svg(draw, label, BROKEN_PANEL))


def draw_method(axes: Any, track: Sequence[Broken], shift: float) -> None:
    """Draw one method's errors, or bounds on them."""
    draw_errors(axes, track, "o", shift)
    none = [one for one in track if not one.errors]
    ends, ink = [one.interval[1] for one in none], look_of(track[0].method).ink
    axes.plot([shift * one.delta for one in none], ends, "v", mfc="none", mec=ink, ms=6)


def largest(broken: Sequence[Broken]) -> str:
    worst: dict[str, Broken] = {}
    for one in sorted(broken, key=lambda one: one.error):
        worst[one.method] = one
    listed = [f"{name} {probability(one.error)} at δ = {one.delta:g}" for name, one in worst.items()]
    return f"Largest error: {', '.join(listed)}."


def broken_table(broken: Sequence[Broken], delta: float) -> Table:
    rows = [
        [
            one.case,
            one.method,
            f"{count(one.errors)} of {count(one.draws)}",
            probability(one.error),
            interval(one.interval),
            percent(one.read),
        ]
        for one in broken
        if one.delta == delta
    ]
    return Table(BROKEN_COLUMNS, rows, f"The same at δ = {delta:g}")
