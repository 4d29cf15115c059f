"""The page of the order of an ARCH model: the answer, the probabilities, what was read, the four panels."""

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
from gumbelrace.applications.arch_compared import Compared, ComparedResult
from gumbelrace.report.arch_picture import orders_picture
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
    probability,
    rate,
    table_of,
)

TITLE = "Which order has this ARCH model?"
METHOD = (
    "Bayesian choice of the order of an ARCH model with Student-t innovations (Chen and Ghahramani 2016, "
    "section 5.2): a chain over all orders whose every decision is a race on a few rows of the data."
)
READING = (
    "log p(q | r) comes from the visits of the raced chains, corrected for the weights that made them "
    "visit all orders; ± is the standard error, from batches of the chains. Laplace's approximation needs "
    "no chain."
)
BESIDE = (
    " The exact chain makes the same moves and reads everything. Importance sampling draws from Laplace's "
    "approximation."
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
# A probability beyond this is not told from 1.
ALMOST_SURE = 0.999


def arch_page(
    result: ArchResult, returns: Sequence[float], facts: Mapping[str, str], files: Mapping[str, str]
) -> Page:
    """Give the page of a result, with facts (label -> value) and files beside it (name -> contents)."""
    sections = [*arch_sections(result, returns), Section("The data", [Files(files)])]
    picture = orders_picture(result.orders, result.probability_errors)
    return Page(TITLE, answer(result), facts, sections, METHOD, picture)


def arch_sections(result: ArchResult, returns: Sequence[float]) -> list[Section]:
    """Give the sections on a result."""
    best = result.orders[result.best]
    final = {one.order: one.log_probability for one in result.orders if one.visits}
    figure = four_panels(returns, (result.tracks, final), result.samplers, result.correlations, CAPTION)
    return [
        Section("The order", [orders_table(result), Text(reading(result))]),
        Section("What it took", [Text(what_it_took(result)), cost_table(result.samplers), Text(TIMES)]),
        Section("Figures", [figure]),
        Section(f"Parameters of order {best.order}", [parameters_table(result)]),
    ]


def reading(result: ArchResult) -> str:
    beside = BESIDE * isinstance(result, ComparedResult)
    return READING + beside + (BIC if bics(result) else "")


def plan_facts(plan: Plan) -> dict[str, str]:
    return {
        "Chains": f"{plan.chains} of {plan.steps:,} steps",
        "δ of a decision": f"{plan.delta:g}",
        "Seed": str(plan.seed),
        **made_by(),
    }


def summary(result: ArchResult) -> list[tuple[str, str]]:
    """Say what was found in a few words: what each is about, and the words."""
    found = [("order", f"{result.orders[result.best].order}, {how_likely(result)}")]
    if edge := at_the_edge(result):
        found += [("note", edge)]
    if bics(result):
        found += [("BIC", f"{lowest_bic(result)} (package arch)")]
    share = percent(result.raced.cost.share)
    return [
        *found,
        ("read", f"{share} of the likelihoods that exact Gibbs sampling reads in as many steps"),
        ("audit", checked(result)),
    ]


def answer(result: ArchResult) -> str:
    """Say which order, how probable it is and how sure that is."""
    best, others = result.orders[result.best], [one.order for one in result.orders]
    text = (
        f"Order {best.order} is the most probable of {', '.join(map(str, others))}: {how_likely(result)}, "
        f"if all are equally likely before{next_best(result)}. The chains read "
        f"{percent(result.raced.cost.share)} of the likelihoods that exact ones would; {checked(result)}."
    )
    if edge := at_the_edge(result):
        text += f" {edge[0].upper()}{edge[1:]}."
    if not bics(result):
        return text
    return f"{text} The BIC of the package `arch` is lowest at order {lowest_bic(result)}."


def at_the_edge(result: ArchResult) -> str:
    """Say so if the answer may lie beyond the orders that were offered."""
    best, largest = result.orders[result.best].order, max(one.order for one in result.orders)
    if best < largest:
        return ""
    return f"{best} is the largest order that was offered; --orders takes larger ones, which may fit better"


def how_likely(result: ArchResult) -> str:
    """Give the probability of the best order, and the standard error that the chains leave."""
    value, error = result.probability
    if value > ALMOST_SURE:
        return f"probability over {ALMOST_SURE}"
    return f"probability {value:.3f} ± {max(error, 0.0005):.3f}"


def next_best(result: ArchResult) -> str:
    second = sorted(result.orders, key=lambda one: -one.log_probability)[1]
    value = math.exp(second.log_probability)
    return f"; order {second.order} comes next, with {value:.3f}" if value >= 0.0005 else ""


def checked(result: ArchResult) -> str:
    audit = result.audit
    return (
        f"{count(audit.errors)} of {count(audit.draws)} decisions that were made again exactly were wrong "
        f"(95%: up to {probability(audit.interval[1])})"
    )


def bics(result: ArchResult) -> list[float] | None:
    return result.bic if isinstance(result, ComparedResult) else None


def lowest_bic(result: ArchResult) -> int:
    return result.orders[int(np.argmin(bics(result) or [0.0]))].order


def orders_table(result: ArchResult) -> Table:
    return table_of([order_row(one) for one in result.orders])


def order_row(one: Any) -> dict[str, str]:
    row = {
        "order q": str(one.order),
        "probability": f"{math.exp(one.log_probability):.3g}",
        "log p(q | r)": estimate(one.log_probability, one.error),
    }
    if isinstance(one, Compared):
        row["exact chain"] = estimate(one.exact, one.exact_error)
        row["importance"] = estimate(one.importance, one.importance_error)
    row |= {"Laplace": plain(one.laplace), "visits": count(one.visits)}
    return row if getattr(one, "bic", None) is None else row | {"BIC": count(one.bic)}


def estimate(value: float, error: float) -> str:
    return f"{plain(value)} ± {error:.2f}" if math.isfinite(value) else "not visited"


def plain(value: float) -> str:
    """Write a number with two digits, and zero without a sign."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def what_it_took(result: ArchResult) -> str:
    """Say what was read and how often it was wrong; where there are others, whether all ways agree."""
    audit = result.audit
    text = (
        f"The raced chain reads {percent(result.raced.cost.share)} of what exact Gibbs sampling reads. "
        f"Made again exactly: {count(audit.errors)} of {count(audit.draws)} decisions were wrong (95% "
        f"interval {interval(audit.interval)})."
    )
    return f"{text} {beside_others(result)}" if isinstance(result, ComparedResult) else text


def beside_others(result: ComparedResult) -> str:
    gain = result.raced.cost.effective_a_second / result.exact.cost.effective_a_second
    return (
        f"Its estimates of log p(q | r) differ from those of importance sampling by {result.apart:.1f} "
        f"standard errors at most, from those of the exact chain by {result.apart_from_exact:.1f}. The "
        f"time of the exact chain is that of its likelihoods: the raced chain has {gain:.1f} times its "
        "effective draws of q in a second."
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
