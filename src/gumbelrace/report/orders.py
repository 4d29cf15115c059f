"""The page of an ARCH order study: the paper's four panels, the probabilities, and what was read."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gumbelrace.experiments.order_study import EXACT, RACED, OrderStudy, Sampled, differences
from gumbelrace.experiments.orders import Order
from gumbelrace.report.charts import PANEL, log_axis, panel_axes
from gumbelrace.report.colours import STAND_IN
from gumbelrace.report.page import Column, Files, Key, Page, Panel, Panels, Section, Table, Text
from gumbelrace.report.svg import Size, inline_svg
from gumbelrace.report.words import count, interval, microseconds, percent, power_of_ten

TITLE = "Which order has this ARCH model?"
LEAD = (
    "Bayesian choice of the order of an ARCH model with Student-t innovations (Chen and Ghahramani 2016, "
    "section 5.2): a chain over all orders whose every decision is a race on a few rows of the data."
)
WIDE = Size(620, 232)
COLOUR = {RACED: "series-3", EXACT: "series-2"}
DASHES: dict[str, tuple[float, ...]] = {RACED: (), EXACT: (5.0, 2.0)}
READING = (
    "log p(q | r) comes from the visits of the chains, corrected for the weights that made them visit all "
    "orders; its standard error from batches of the chains. Laplace's approximation needs no chain."
)
CAPTION = (
    "The paper's panels. (a) Standardised returns. (b) Estimates of log p(q | r) by the first chain of "
    "each sampler, a line for each order, less the final estimate of all raced chains, against the "
    "likelihoods evaluated; exact Gibbs is taken to keep the likelihoods of where it is. (c) log p(q | r) "
    "by each chain, less its mean over all raced chains. (d) Autocorrelation of q."
)


def orders_page(
    study: OrderStudy, returns: Sequence[float], facts: Mapping[str, str], files: Mapping[str, str]
) -> Page:
    """Give the page of a study.

    Parameters
    ----------
    study : OrderStudy
        What was found.
    returns : sequence of float
        Standardised returns.
    facts : mapping
        What was run, in words: label -> value.
    files : mapping
        Files beside the page: name -> contents.
    """
    best = study.raced.orders[study.best]
    return Page(
        TITLE,
        LEAD,
        facts,
        [
            Section("The order", [Text(answer(best)), orders_table(study), Text(READING)]),
            Section("What it took", [Text(taken(study)), cost_table(study)]),
            Section("Figures", [panels(study, returns)]),
            Section(f"Parameters of order {best.order}", [parameters_table(study)]),
            Section("The data", [Files(files)]),
        ],
    )


def answer(best: Order) -> str:
    """Say which order it is."""
    probability = math.exp(best.log_probability)
    return (
        f"Order {best.order} is the most probable, p = {probability:.3g}, if all are equally likely before."
    )


def orders_table(study: OrderStudy) -> Table:
    """Lay out the orders."""
    columns = [
        Column(t)
        for t in (
            "order q",
            "p(q | r)",
            "log p(q | r)",
            "error",
            "exact chain",
            "error",
            "Laplace",
            "visits",
        )
    ]
    rows = [
        [
            str(one.order),
            f"{math.exp(one.log_probability):.3g}",
            *(
                f"{x:.2f}"
                for x in (one.log_probability, one.error, other.log_probability, other.error, one.laplace)
            ),
            count(one.visits),
        ]
        for one, other in zip(study.raced.orders, study.exact.orders, strict=True)
    ]
    return Table(columns, rows)


def plain(value: float) -> str:
    """Write a number with two digits, and zero without a sign."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def taken(study: OrderStudy) -> str:
    """Say what was read, how often it was wrong, and whether both samplers agree."""
    cost, audit = study.raced.cost, study.audit
    apart = max(map(abs, differences(study)), default=0.0)
    return (
        f"The raced chain reads {percent(cost.share)} of what exact Gibbs sampling reads. Of "
        f"{count(audit.draws)} decisions made again exactly, {count(audit.errors)} were wrong (95% "
        f"interval {interval(audit.interval)}). Its estimates of log p(q | r) differ from those of the "
        f"exact chain by {apart:.1f} standard errors at most."
    )


def cost_table(study: OrderStudy) -> Table:
    """Lay out what each sampler took."""
    names = (
        "sampler",
        "steps",
        "likelihoods a step",
        "of exact",
        "µs a step",
        "effective draws of q",
        "a second",
    )
    columns = [Column(name, is_number=name != "sampler") for name in names]
    rows = []
    for sampler in (study.raced, study.exact):
        cost = sampler.cost
        rows.append(
            [
                cost.sampler,
                count(cost.steps),
                count(cost.evaluations),
                percent(cost.share),
                microseconds(cost.seconds),
                count(cost.effective),
                count(cost.effective / (cost.steps * cost.seconds)),
            ]
        )
    return Table(columns, rows)


def parameters_table(study: OrderStudy) -> Table:
    """Lay out the parameters of the most probable model."""
    columns = [Column("parameter", is_number=False), *map(Column, ("mean", "deviation", "2.5%", "97.5%"))]
    return Table(columns, [[p.name, *(f"{x:.4f}" for x in p[1:])] for p in study.parameters])


def panels(study: OrderStudy, returns: Sequence[float]) -> Panels:
    """Draw the paper's four panels."""
    drawn = [
        ("(a) returns", lambda figure: draw_returns(figure, returns), "Standardised returns."),
        (
            "(b) estimates",
            lambda figure: draw_tracks(figure, study),
            "Estimates of log p(q | r) over time.",
        ),
        ("(c) log p(q | r), by chain", lambda figure: draw_chains(figure, study), "Estimates by chain."),
        (
            "(d) autocorrelation of q",
            lambda figure: draw_correlations(figure, study),
            "Autocorrelation of q.",
        ),
    ]
    legend = [Key(name, COLOUR[name], DASHES[name]) for name in (RACED, EXACT)]
    return Panels(
        [Panel(t, inline_svg(draw, label, PANEL)) for t, draw, label in drawn], 2, CAPTION, legend
    )


def draw_returns(figure: Any, returns: Sequence[float]) -> None:
    """Draw the series, thinned to what a panel can show."""
    axes = panel_axes(figure, "row", "return")
    values = np.asarray(returns)
    parts = np.array_split(np.arange(len(values)), min(len(values), 220))
    low, high = (np.array([f(values[part]) for part in parts]) for f in (np.min, np.max))
    axes.fill_between(
        [part[0] for part in parts], low, high, color=STAND_IN["ink"], linewidth=0.0, alpha=0.7
    )


def draw_tracks(figure: Any, study: OrderStudy) -> None:
    """Draw estimates against evaluations."""
    axes = panel_axes(figure, "likelihoods evaluated", "log p(q | r), less the final")
    log_axis(axes.xaxis, power_of_ten)
    axes.axhline(0.0, color=STAND_IN["grid"], linewidth=0.8)
    final, tracks = {one.order: one.log_probability for one in study.raced.orders}, study.tracks
    for name in (EXACT, RACED):
        for order in final:
            track = [t for t in tracks if t.sampler == name and t.order == order]
            values = [t.log_probability - final[order] for t in track]
            line(axes, name, [t.evaluations for t in track], values)


def draw_chains(figure: Any, study: OrderStudy) -> None:
    """Draw what each chain says."""
    axes = panel_axes(figure, "order q", "log p(q | r), less the mean")
    final = {one.order: one.log_probability for one in study.raced.orders}
    axes.axhline(0.0, color=STAND_IN["grid"], linewidth=0.8)
    for sampler, shift in ((study.raced, -0.12), (study.exact, 0.12)):
        draw_sampler(axes, sampler, final, shift)
    axes.set_xticks(range(len(final)), [str(order) for order in final])


def draw_sampler(axes: Any, sampler: Sampled, final: Mapping[int, float], shift: float) -> None:
    """Draw a dot for each chain and order."""
    marker = {RACED: "o", EXACT: "x"}[sampler.name]
    for chain in sampler.by_chain:
        seen = [(k + shift, one) for k, one in enumerate(chain) if one.visits]
        axes.plot(
            [place for place, _ in seen],
            [one.log_probability - final[one.order] for _, one in seen],
            marker,
            color=STAND_IN[COLOUR[sampler.name]],
            markersize=3.5,
        )


def draw_correlations(figure: Any, study: OrderStudy) -> None:
    """Draw autocorrelations."""
    axes = panel_axes(figure, "lag", "correlation")
    axes.axhline(0.0, color=STAND_IN["grid"], linewidth=0.8)
    for name in (RACED, EXACT):
        found = [c for c in study.correlations if c.sampler == name]
        line(axes, name, [c.lag for c in found], [c.correlation for c in found])


def line(axes: Any, name: str, x: Sequence[float], y: Sequence[float]) -> None:
    """Draw a line in the manner of a sampler."""
    style: Any = (0, DASHES[name]) if DASHES[name] else "solid"
    axes.plot(x, y, color=STAND_IN[COLOUR[name]], linestyle=style, linewidth=1.1)
