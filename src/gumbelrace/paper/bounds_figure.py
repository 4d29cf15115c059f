"""The constant B_Normal (appendix B): ours in both readings beside the paper's printed table."""

from collections.abc import Sequence
from typing import Any

from gumbelrace.experiments.records import Level
from gumbelrace.report.charts import log_axis, panel_axes
from gumbelrace.report.colours import STAND_IN
from gumbelrace.report.numbers import percent, power_of_ten
from gumbelrace.report.page import Key, Panel, Panels
from gumbelrace.report.svg import Size, inline_svg

SIZE = Size(400, 300)
DASHES = (4.0, 2.0)
CAPTION = (
    "B against δ, for first looks at six shares of the rows (the second panel has a linear δ axis). The"
    " printed numbers are those of the two-sided reading; Eq. 5 as written asks for the one-sided one, "
    "which the library uses. The readings agree where δ is small."
)


def level_figure(levels: Sequence[Level]) -> Panels:
    """Give the figure of B_Normal for a page."""
    tracks = by_fraction(levels)
    panels = [
        Panel("B", inline_svg(lambda figure: draw_levels(figure, tracks), told(levels), SIZE)),
        Panel(
            "Differences from the two-sided reading",
            inline_svg(lambda figure: draw_differences(figure, tracks), told_differences(levels), SIZE),
        ),
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
    return Panels(panels, 2, CAPTION, [*readings, *steps])


def by_fraction(levels: Sequence[Level]) -> dict[float, list[Level]]:
    """Give the levels of each first look, by δ."""
    fractions = sorted({level.first_fraction for level in levels})
    return {f: sorted(level for level in levels if level.first_fraction == f) for f in fractions}


def step(number: int) -> str:
    """Name the colour of the first look of that number."""
    return f"step-{number + 1}"


def draw_levels(figure: Any, tracks: dict[float, list[Level]]) -> None:
    """Draw B against δ."""
    axes = panel_axes(figure, "δ", "B")
    log_axis(axes.xaxis, power_of_ten)
    for number, track in enumerate(tracks.values()):
        at, colour = [level.delta for level in track], STAND_IN[step(number)]
        axes.plot(at, [level.two_sided for level in track], color=colour, linewidth=1.2)
        axes.plot(at, [level.one_sided for level in track], color=colour, linewidth=1.2, dashes=DASHES)
        axes.plot(at, [level.printed for level in track], ".", color=colour, markersize=5)


def draw_differences(figure: Any, tracks: dict[float, list[Level]]) -> None:
    """Draw how far the printed and the one-sided B are from the two-sided one."""
    axes = panel_axes(figure, "δ", "B less the two-sided B")
    axes.axhline(0.0, color=STAND_IN["quiet"], linewidth=1)
    for number, track in enumerate(tracks.values()):
        at, colour = [level.delta for level in track], STAND_IN[step(number)]
        apart = [level.one_sided - level.two_sided for level in track]
        axes.plot(at, apart, color=colour, linewidth=1.2, dashes=DASHES)
        axes.plot(at, [level.printed - level.two_sided for level in track], ".", color=colour, markersize=5)


def told(levels: Sequence[Level]) -> str:
    """Describe the first panel."""
    low, high = min(levels, key=lambda one: one.two_sided), max(levels, key=lambda one: one.two_sided)
    return (
        f"B against δ, logarithmic in δ. It falls from {high.two_sided:.2f} at δ = {high.delta:g} to "
        f"{low.two_sided:.2f} at δ = {low.delta:g}; the printed dots lie on the two-sided lines."
    )


def told_differences(levels: Sequence[Level]) -> str:
    """Describe the second panel."""
    printed = max(abs(one.printed - one.two_sided) for one in levels)
    one_sided = max(one.one_sided - one.two_sided for one in levels)
    return (
        "Differences from the two-sided B against δ. The printed values differ by at most "
        f"{printed:.3f}, the one-sided ones by at most {one_sided:.2f}."
    )
