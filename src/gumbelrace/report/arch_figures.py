"""The paper's four panels of the ARCH experiment, for the samplers of any setting."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gumbelrace.applications.arch_chains import EXACT, RACED, Correlation, Sampled, Track
from gumbelrace.report.figures import PANEL, inline_svg, log_axis, panel_axes
from gumbelrace.report.numbers import power_of_ten
from gumbelrace.report.page import LIGHT, Key, Panel, Panels

COLOUR = {RACED: "series-3", EXACT: "series-2"}
DASHES: dict[str, tuple[float, ...]] = {RACED: (), EXACT: (5.0, 2.0)}
MARKER = {RACED: "o", EXACT: "x"}
# How far to either side the marks of samplers are from the place of their order.
APART = 0.12
# Intervals into which a series is cut: a panel has no room for more.
PIECES = 220
# Estimates further off than this would hide the others.
FARTHEST = 6.0


def four_panels(
    returns: Sequence[float],
    estimates: tuple[Sequence[Track], Mapping[int, float]],
    samplers: Sequence[Sampled],
    correlations: Sequence[Correlation],
    caption: str,
) -> Panels:
    """Draw the panels.

    Parameters
    ----------
    returns : sequence of float
        Standardised returns.
    estimates : (tracks, final)
        Estimates of log p(q | r) over time, and for each order the value that they are compared with.
    samplers : sequence of Sampled
        Chains with fixed weights: raced, and perhaps exact.
    correlations : sequence of Correlation
        Autocorrelations of q.
    caption : str
        What is shown.
    """
    drawn = [
        ("(a) returns", lambda figure: draw_returns(figure, returns), "Standardised returns."),
        (
            "(b) estimates",
            lambda figure: draw_tracks(figure, *estimates),
            "Estimates of log p(q | r) over time.",
        ),
        (
            "(c) adjusted posterior, by run",
            lambda figure: draw_runs(figure, samplers),
            "Share of the visits of each order, by run.",
        ),
        (
            "(d) autocorrelation of q",
            lambda figure: draw_correlations(figure, correlations),
            "Autocorrelation of q.",
        ),
    ]
    panels = [Panel(title, inline_svg(draw, label, PANEL)) for title, draw, label in drawn]
    names = [sampler.name for sampler in samplers]
    legend = [Key(name, COLOUR[name], DASHES[name], MARKER[name]) for name in names]
    return Panels(panels, 2, caption, legend)


def draw_returns(figure: Any, returns: Sequence[float]) -> None:
    """Draw the series, thinned to what a panel can show."""
    axes = panel_axes(figure, "row", "return")
    values = np.asarray(returns)
    parts = np.array_split(np.arange(len(values)), min(len(values), PIECES))
    low, high = (np.array([f(values[part]) for part in parts]) for f in (np.min, np.max))
    axes.fill_between([part[0] for part in parts], low, high, color=LIGHT["ink"], linewidth=0.0, alpha=0.7)


def draw_tracks(figure: Any, tracks: Sequence[Track], final: Mapping[int, float]) -> None:
    """Draw estimates against evaluations."""
    axes = panel_axes(figure, "likelihoods evaluated", "log p(q | r), difference")
    log_axis(axes.xaxis, power_of_ten)
    axes.axhline(0.0, color=LIGHT["grid"], linewidth=0.8)
    highest = 0.0
    for name in (EXACT, RACED):
        for order, value in final.items():
            track = [t for t in tracks if t.sampler == name and t.order == order]
            apart = [t.log_probability - value for t in track]
            highest = max([highest, *map(abs, apart)])
            line(axes, name, [t.evaluations for t in track], apart)
    if highest > FARTHEST:
        axes.set_ylim(-FARTHEST, FARTHEST)


def draw_runs(figure: Any, samplers: Sequence[Sampled]) -> None:
    """Draw the share of the visits, a mark for each chain and order."""
    axes = panel_axes(figure, "order q", "share of the visits")
    orders = [one.order for one in samplers[0].orders]
    axes.axhline(1.0 / len(orders), color=LIGHT["grid"], linewidth=0.8)
    for sampler, shift in zip(samplers, np.linspace(-APART, APART, len(samplers)), strict=True):
        for chain in sampler.by_chain:
            total = sum(one.visits for one in chain)
            axes.plot(
                np.arange(len(orders)) + shift,
                [one.visits / total for one in chain],
                MARKER[sampler.name],
                color=LIGHT[COLOUR[sampler.name]],
                markersize=3.5,
            )
    axes.set_xticks(range(len(orders)), [str(order) for order in orders])
    axes.set_ylim(0.0, None)


def draw_correlations(figure: Any, correlations: Sequence[Correlation]) -> None:
    """Draw autocorrelations."""
    axes = panel_axes(figure, "lag", "correlation")
    axes.axhline(0.0, color=LIGHT["grid"], linewidth=0.8)
    for name in (RACED, EXACT):
        found = [c for c in correlations if c.sampler == name]
        line(axes, name, [c.lag for c in found], [c.correlation for c in found])


def line(axes: Any, name: str, x: Sequence[float], y: Sequence[float]) -> None:
    """Draw a line in the manner of a sampler."""
    style: Any = (0, DASHES[name]) if DASHES[name] else "solid"
    axes.plot(x, y, color=LIGHT[COLOUR[name]], linestyle=style, linewidth=1.1)
