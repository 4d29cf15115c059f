"""The page of the order of an ARCH model: the probabilities, what was read, and the paper's four panels."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gumbelrace.applications.arch_chains import (
    EXACT,
    RACED,
    ArchResult,
    Correlation,
    Cost,
    Plan,
    Sampled,
    Track,
)
from gumbelrace.report.figures import Look, log_axis, panel, panel_axes
from gumbelrace.report.page import (
    LIGHT,
    Files,
    Page,
    Panels,
    Section,
    Table,
    Text,
    count,
    interval,
    made_by,
    microseconds,
    percent,
    power_of_ten,
    rate,
    table_of,
)

TITLE = "Which order has this ARCH model?"
LEAD = (
    "Bayesian choice of the order of an ARCH model with Student-t innovations (Chen and Ghahramani 2016, "
    "section 5.2): a chain over all orders whose every decision is a race on a few rows of the data."
)
READING = (
    "log p(q | r) comes from the visits of the raced chains, corrected for the weights that made them "
    "visit all orders; ± is the standard error, from batches of the chains. Importance sampling and "
    "Laplace's approximation need no chain."
)
BIC = " BIC is that of the package `arch`, which takes the returns as one series; the lowest is best."
TIMES = (
    "Exact Gibbs sampling is taken to keep the likelihoods of where it is, and reads K N a step for K "
    "orders. Times are processor times, of steps made one after the other."
)
CAPTION = (
    "The paper's panels. (a) Standardised returns. (b) Estimates of log p(q | r) by the first chain of "
    "each sampler, a line for each order, less the final estimate of all raced chains, against the "
    "likelihoods evaluated. (c) Share of the visits in each run, with weights that make all orders about "
    "equally likely. (d) Autocorrelation of q."
)
LOOKS = {RACED: Look(RACED, "series-3", (), "o"), EXACT: Look(EXACT, "series-2", (5.0, 2.0), "x")}
# How far to either side the marks of samplers are from the place of their order.
APART = 0.12
# Intervals into which a series is cut: a panel has no room for more.
PIECES = 220
# Estimates further off than this would hide the others.
FARTHEST = 6.0


def arch_page(
    result: ArchResult, returns: Sequence[float], facts: Mapping[str, str], files: Mapping[str, str]
) -> Page:
    """Give the page of a result, with facts (label -> value) and files beside it (name -> contents)."""
    sections = [*arch_sections(result, returns, what_it_took(result)), Section("The data", [Files(files)])]
    return Page(TITLE, LEAD, facts, sections)


def arch_sections(result: ArchResult, returns: Sequence[float], took: str) -> list[Section]:
    """Give the sections on a result, of which `took` says what it took."""
    best = result.orders[result.best]
    reading = Text(READING + (BIC if result.bic else ""))
    final = {one.order: one.log_probability for one in result.orders if one.visits}
    figure = four_panels(returns, (result.tracks, final), result.samplers, result.correlations, CAPTION)
    return [
        Section("The order", [Text(answer(result)), orders_table(result), reading]),
        Section("What it took", [Text(took), cost_table(result.samplers), Text(TIMES)]),
        Section("Figures", [figure]),
        Section(f"Parameters of order {best.order}", [parameters_table(result)]),
    ]


def plan_facts(plan: Plan) -> dict[str, str]:
    return {
        "Chains": f"{plan.chains} of {plan.steps:,} steps",
        "δ of a decision": f"{plan.delta:g}",
        "Seed": str(plan.seed),
        **made_by(),
    }


def summary(result: ArchResult) -> list[tuple[str, str]]:
    """Say what was found in a few words: what each is about, and the words."""
    best = result.orders[result.best]
    found = [("order", f"{best.order}, p = {math.exp(best.log_probability):.3g}")]
    if result.bic is not None:
        found += [("BIC", f"{lowest_bic(result)} (package arch)")]
    return [
        *found,
        ("read", f"{100 * result.raced.cost.share:.3g}% of what exact Gibbs sampling reads"),
        ("audit", f"{result.audit.errors} of {result.audit.draws:,} decisions were wrong"),
    ]


def answer(result: ArchResult) -> str:
    best = result.orders[result.best]
    probability = math.exp(best.log_probability)
    text = (
        f"Order {best.order} is the most probable, p = {probability:.3g}, if all are equally likely before."
    )
    if result.bic is None:
        return text
    return f"{text} The BIC of the package `arch` is lowest at order {lowest_bic(result)}."


def lowest_bic(result: ArchResult) -> int:
    return int(min(result.orders, key=lambda one: one.bic).order)


def orders_table(result: ArchResult) -> Table:
    return table_of([order_row(one) for one in result.orders])


def order_row(one: Any) -> dict[str, str]:
    row = {
        "order q": str(one.order),
        "p(q | r)": f"{math.exp(one.log_probability):.3g}",
        "log p(q | r)": estimate(one.log_probability, one.error),
    }
    if hasattr(one, "exact"):
        row["exact chain"] = estimate(one.exact, one.exact_error)
    row |= {
        "importance": estimate(one.importance, one.importance_error),
        "Laplace": plain(one.laplace),
        "visits": count(one.visits),
    }
    return row if one.bic is None else row | {"BIC": count(one.bic)}


def estimate(value: float, error: float) -> str:
    return f"{plain(value)} ± {error:.2f}" if math.isfinite(value) else "not visited"


def plain(value: float) -> str:
    """Write a number with two digits, and zero without a sign."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def what_it_took(result: ArchResult) -> str:
    """Say what was read, how often it was wrong, and whether all ways agree."""
    audit = result.audit
    return (
        f"The raced chain reads {percent(result.raced.cost.share)} of what exact Gibbs sampling reads. "
        f"Made again exactly: {count(audit.errors)} of {count(audit.draws)} decisions were wrong (95% "
        f"interval {interval(audit.interval)}). Its estimates of log p(q | r) differ from those of "
        f"importance sampling by {result.apart:.1f} standard errors at most."
    )


def cost_table(samplers: Sequence[Sampled]) -> Table:
    return table_of([cost_row(sampler.cost) for sampler in samplers], words=("sampler",))


def cost_row(cost: Cost) -> dict[str, str]:
    return {
        "sampler": cost.sampler,
        "steps": count(cost.steps),
        "likelihoods a step": count(cost.evaluations),
        "of exact": percent(cost.share),
        "µs a step": microseconds(cost.seconds),
        "effective draws of q": count(cost.effective),
        "a second": rate(cost.effective_a_second),
        "a million likelihoods": rate(1e6 * cost.effective_a_read),
    }


def parameters_table(result: ArchResult) -> Table:
    titles = ("mean", "deviation", "2.5%", "97.5%")
    rows = [
        {"parameter": one.name, **{title: f"{x:.4f}" for title, x in zip(titles, one[1:], strict=True)}}
        for one in result.parameters
    ]
    return table_of(rows, words=("parameter",))


def four_panels(
    returns: Sequence[float],
    estimates: tuple[Sequence[Track], Mapping[int, float]],
    samplers: Sequence[Sampled],
    correlations: Sequence[Correlation],
    caption: str,
) -> Panels:
    """Draw the paper's panels, for the samplers of any setting.

    `estimates` are those of log p(q | r) over time, and for each order the value that they are compared
    with; `samplers` are chains with fixed weights: raced, and perhaps exact.
    """
    panels = [
        panel("(a) returns", partial(draw_returns, returns=returns), "Standardised returns."),
        panel(
            "(b) estimates",
            partial(draw_tracks, tracks=estimates[0], final=estimates[1]),
            "Estimates of log p(q | r) over time.",
        ),
        panel(
            "(c) adjusted posterior, by run",
            partial(draw_runs, samplers=samplers),
            "Share of the visits of each order, by run.",
        ),
        panel(
            "(d) autocorrelation of q",
            partial(draw_correlations, correlations=correlations),
            "Autocorrelation of q.",
        ),
    ]
    return Panels(panels, 2, caption, [LOOKS[sampler.name].key for sampler in samplers])


def draw_returns(figure: Any, returns: Sequence[float]) -> None:
    """Draw the series, thinned to what a panel can show."""
    axes = panel_axes(figure, "row", "return")
    values = np.asarray(returns)
    parts = np.array_split(np.arange(len(values)), min(len(values), PIECES))
    low, high = (np.array([f(values[part]) for part in parts]) for f in (np.min, np.max))
    axes.fill_between([part[0] for part in parts], low, high, color=LIGHT["ink"], linewidth=0.0, alpha=0.7)


def draw_tracks(figure: Any, tracks: Sequence[Track], final: Mapping[int, float]) -> None:
    axes = panel_axes(figure, "likelihoods evaluated", "log p(q | r), difference")
    log_axis(axes.xaxis, power_of_ten)
    axes.axhline(0.0, color=LIGHT["grid"], linewidth=0.8)
    highest = 0.0
    for name in (EXACT, RACED):
        for order, value in final.items():
            track = [t for t in tracks if t.sampler == name and t.order == order]
            apart = [t.log_probability - value for t in track]
            highest = max([highest, *map(abs, apart)])
            LOOKS[name].line(axes, [t.evaluations for t in track], apart)
    if highest > FARTHEST:
        axes.set_ylim(-FARTHEST, FARTHEST)


def draw_runs(figure: Any, samplers: Sequence[Sampled]) -> None:
    """Draw the share of the visits, a mark for each chain and order."""
    axes = panel_axes(figure, "order q", "share of the visits")
    orders = [one.order for one in samplers[0].orders]
    axes.axhline(1.0 / len(orders), color=LIGHT["grid"], linewidth=0.8)
    shifts = APART * np.arange(1 - len(samplers), len(samplers), 2)
    for sampler, shift in zip(samplers, shifts, strict=True):
        for chain in sampler.by_chain:
            total = sum(one.visits for one in chain)
            axes.plot(
                np.arange(len(orders)) + shift,
                [one.visits / total for one in chain],
                LOOKS[sampler.name].marker,
                color=LOOKS[sampler.name].ink,
                markersize=3.5,
            )
    axes.set_xticks(range(len(orders)), [str(order) for order in orders])
    axes.set_xlim(-0.5, len(orders) - 0.5)
    axes.set_ylim(0.0, None)


def draw_correlations(figure: Any, correlations: Sequence[Correlation]) -> None:
    axes = panel_axes(figure, "lag", "correlation")
    axes.axhline(0.0, color=LIGHT["grid"], linewidth=0.8)
    for name in (RACED, EXACT):
        found = [c for c in correlations if c.sampler == name]
        LOOKS[name].line(axes, [c.lag for c in found], [c.correlation for c in found])
