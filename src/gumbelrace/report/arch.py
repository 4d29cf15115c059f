"""The page of the order of an ARCH model: the probabilities, what was read, and the paper's four panels."""

import math
from collections.abc import Mapping, Sequence
from datetime import date
from importlib.metadata import version
from typing import Any

from gumbelrace.applications.arch_chains import ArchResult, Plan, Sampled
from gumbelrace.report.arch_figures import four_panels
from gumbelrace.report.numbers import count, interval, microseconds, percent, rate
from gumbelrace.report.page import Column, Files, Page, Section, Table, Text

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


def arch_page(
    result: ArchResult, returns: Sequence[float], facts: Mapping[str, str], files: Mapping[str, str]
) -> Page:
    """Give the page of a result.

    Parameters
    ----------
    result : ArchResult
        What was found.
    returns : sequence of float
        Standardised returns.
    facts : mapping
        What was run, in words: label -> value.
    files : mapping
        Files beside the page: name -> contents.
    """
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
    """Say how it was run."""
    return {
        "Chains": f"{plan.chains} of {plan.steps:,} steps",
        "δ of a decision": f"{plan.delta:g}",
        "Seed": str(plan.seed),
        "gumbelrace": f"{version('gumbelrace')}, {date.today().isoformat()}",
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
    """Say which order it is."""
    best = result.orders[result.best]
    probability = math.exp(best.log_probability)
    text = (
        f"Order {best.order} is the most probable, p = {probability:.3g}, if all are equally likely before."
    )
    if result.bic is None:
        return text
    return f"{text} The BIC of the package `arch` is lowest at order {lowest_bic(result)}."


def lowest_bic(result: ArchResult) -> int:
    """Give the order that the BIC prefers."""
    return int(min(result.orders, key=lambda one: one.bic).order)


def orders_table(result: ArchResult) -> Table:
    """Lay out the orders."""
    rows = [order_row(one) for one in result.orders]
    return Table([Column(title) for title in rows[0]], [[*row.values()] for row in rows])


def order_row(one: Any) -> dict[str, str]:
    """Give the cells of an order, by the titles of their columns."""
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
    """Write a number with its standard error."""
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
    """Lay out what each sampler took."""
    names = (
        "sampler",
        "steps",
        "likelihoods a step",
        "of exact",
        "µs a step",
        "effective draws of q",
        "a second",
        "a million likelihoods",
    )
    columns = [Column(name, is_number=name != "sampler") for name in names]
    rows = []
    for sampler in samplers:
        cost = sampler.cost
        rows.append(
            [
                cost.sampler,
                count(cost.steps),
                count(cost.evaluations),
                percent(cost.share),
                microseconds(cost.seconds),
                count(cost.effective),
                rate(cost.effective_a_second),
                rate(1e6 * cost.effective_a_read),
            ]
        )
    return Table(columns, rows)


def parameters_table(result: ArchResult) -> Table:
    """Lay out the parameters of the most probable model."""
    columns = [Column("parameter", is_number=False), *map(Column, ("mean", "deviation", "2.5%", "97.5%"))]
    return Table(columns, [[p.name, *(f"{x:.4f}" for x in p[1:])] for p in result.parameters])
