"""The page of an ARCH order study: the probabilities, what was read, and the paper's four panels."""

import math
from collections.abc import Mapping, Sequence

from gumbelrace.applications.arch_chains import Sampled
from gumbelrace.applications.arch_study import Compared, OrderStudy
from gumbelrace.paper.arch_audit import Audits, Checked
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
    "visit all orders; ± is the standard error, from batches of the chains. The exact chain makes the "
    "same moves and reads everything. Importance sampling and Laplace's approximation need no chain."
)
BIC = " BIC is that of the package `arch`, which takes the returns as one series; the lowest is best."
TIMES = (
    "Exact Gibbs sampling is taken to keep the likelihoods of where it is, and reads K N a step for K "
    "orders; its time is that of as many. Times are processor times, of steps made one after the other."
)
CAPTION = (
    "The paper's panels. (a) Standardised returns. (b) Estimates of log p(q | r) by the first chain of "
    "each sampler, a line for each order, less the final estimate of all raced chains, against the "
    "likelihoods evaluated. (c) Share of the visits in each run, with weights that make all orders about "
    "equally likely. (d) Autocorrelation of q."
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
    sections = [*order_sections(study, returns), Section("The data", [Files(files)])]
    return Page(TITLE, LEAD, facts, sections)


def order_sections(study: OrderStudy, returns: Sequence[float]) -> list[Section]:
    """Give the sections on a study."""
    best = study.orders[study.best]
    reading = Text(READING + (BIC if study.bic else ""))
    final = {one.order: one.log_probability for one in study.orders if one.visits}
    figure = four_panels(
        returns, (study.tracks, final), (study.raced, study.exact), study.correlations, CAPTION
    )
    samplers = (study.raced, study.exact)
    return [
        Section("The order", [Text(answer(study)), orders_table(study), reading]),
        Section("What it took", [Text(taken(study)), cost_table(samplers), Text(TIMES)]),
        Section("Figures", [figure]),
        Section(f"Parameters of order {best.order}", [parameters_table(study)]),
    ]


def answer(study: OrderStudy) -> str:
    """Say which order it is."""
    best = study.orders[study.best]
    probability = math.exp(best.log_probability)
    text = (
        f"Order {best.order} is the most probable, p = {probability:.3g}, if all are equally likely before."
    )
    if study.bic is None:
        return text
    chosen = study.orders[study.bic.index(min(study.bic))].order
    return f"{text} The BIC of the package `arch` is lowest at order {chosen}."


def orders_table(study: OrderStudy) -> Table:
    """Lay out the orders."""
    titles = ["order q", "p(q | r)", "log p(q | r)", "exact chain", "importance", "Laplace", "visits"]
    columns = [Column(title) for title in titles + (["BIC"] if study.bic else [])]
    return Table(columns, [[*order_row(one)] for one in study.orders])


def order_row(one: Compared) -> list[str]:
    """Give the cells of an order."""
    cells = [
        str(one.order),
        f"{math.exp(one.log_probability):.3g}",
        estimate(one.log_probability, one.error),
        estimate(one.exact, one.exact_error),
        estimate(one.importance, one.importance_error),
        plain(one.laplace),
        count(one.visits),
    ]
    return cells if one.bic is None else [*cells, count(one.bic)]


def estimate(value: float, error: float) -> str:
    """Write a number with its standard error."""
    return f"{plain(value)} ± {error:.2f}" if math.isfinite(value) else "not visited"


def plain(value: float) -> str:
    """Write a number with two digits, and zero without a sign."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def taken(study: OrderStudy) -> str:
    """Say what was read, how often it was wrong, and whether all ways agree."""
    raced, exact, (from_exact, from_draws) = study.raced.cost, study.exact.cost, study.apart
    return (
        f"The raced chain reads {percent(raced.share)} of what exact Gibbs sampling reads, and has "
        f"{raced.effective_a_second / exact.effective_a_second:.1f} times its effective draws of q in a "
        f"second. {wrong(study.audits)} Its estimates of log p(q | r) differ from those of the exact chain "
        f"by {from_exact:.1f} standard errors at most, from those of importance sampling by "
        f"{from_draws:.1f}."
    )


def wrong(audits: Audits) -> str:
    """Say how many decisions were wrong."""
    draws, moves = share_wrong("draws of the order", audits.gibbs), share_wrong("moves", audits.moves)
    return f"Made again exactly: {draws}, {moves}."


def share_wrong(name: str, found: Checked) -> str:
    """Say how many decisions of a kind were wrong."""
    return (
        f"{count(found.errors)} of {count(found.decisions)} {name} were wrong (95% interval "
        f"{interval(found.interval)})"
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


def parameters_table(study: OrderStudy) -> Table:
    """Lay out the parameters of the most probable model."""
    columns = [Column("parameter", is_number=False), *map(Column, ("mean", "deviation", "2.5%", "97.5%"))]
    return Table(columns, [[p.name, *(f"{x:.4f}" for x in p[1:])] for p in study.parameters])
