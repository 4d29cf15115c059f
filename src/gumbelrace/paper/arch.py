"""Section 5.2 of the paper: its statements held against the study of its setting, and the page."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from gumbelrace.applications.arch import log_normalised
from gumbelrace.applications.arch_chains import EXACT, RACED, Plan, correlations, spent
from gumbelrace.paper.arch_study import Audits, Checked, PaperStudy, TwinResult
from gumbelrace.paper.claims import Claim, claims_section
from gumbelrace.report.arch import arch_sections, cost_table, four_panels, what_it_took
from gumbelrace.report.page import Block, Files, Page, Section, Text, count, interval

TITLE = "ARCH order selection, reproduced"
LEAD = (
    "Section 5.2 of Chen and Ghahramani (2016): the order of an ARCH model by a chain that reads few rows "
    "of the data for each decision. First in the paper's own setting, beside its figures; then in ours."
)
SETTING = (
    "The paper's setting: softplus with τ = 1, Laplace pseudopriors, minibatch Langevin proposals "
    "accepted at 36%, bins of the data as control variates, a fifth of the rows read every time, first "
    "looks at 50 rows, and weights that start equal and adapt by 1 / (1 + t/100). The conditional of q has "
    "the ratio of prior to pseudoprior that the paper leaves out. A gradient of a row counts as a "
    "likelihood; exact sampling reads (K + 1) N a step."
)
CAPTION = (
    "The paper's setting. (a) Standardised returns. (b) Estimates of log p(q | r) by the first chain of "
    "each sampler while its weights adapt, less those of importance sampling, against the likelihoods "
    "evaluated. (c) Share of the visits in each run with fixed weights. (d) Autocorrelation of q."
)
# A chain has converged when all its estimates of log p(q | r) stay within this of the reference. Chains of
# this setting mix slowly: some thousand steps come no closer.
CLOSE = 3.0
# Means of five runs that differ by more standard errors than this show a bias: by chance, one in 250 would.
NOTICED = 4.0
# The paper's figures.
FASTER, EFFECTIVE, GIBBS_ERRORS, MOVE_ERRORS, REDUCTION = 3.0, 2.0, 4e-4, 2e-3, 100.0


def reproduced_page(
    studies: tuple[PaperStudy, TwinResult],
    found: Sequence[Claim],
    returns: Sequence[float],
    facts: Mapping[str, str],
    files: Mapping[str, str],
) -> Page:
    """Give the page of the paper's setting and of ours; facts and files are as in `arch_page`."""
    paper, ours = studies
    sections = [
        claims_section(found, SETTING),
        Section("The paper's setting", paper_blocks(paper, returns)),
        *arch_sections(ours, returns, beside_exact(ours)),
        Section("The data", [Files(files)]),
    ]
    return Page(TITLE, LEAD, facts, sections)


def paper_facts(plan: Plan) -> dict[str, str]:
    lengths = f"{plan.chains} chains of {plan.adapt:,} steps that adapt, {plan.steps:,} that do not"
    return {"The paper's setting": lengths}


def paper_blocks(study: PaperStudy, returns: Sequence[float]) -> list[Block]:
    """Give what the paper's setting took, and its panels."""
    setting, samplers = study.setting, (study.raced, study.exact)
    found = [one for sampler in samplers for one in correlations(sampler, setting)]
    final = {setting.orders[k]: float(study.reference.log_probability[k]) for k in study.reached}
    return [
        Text(wrong(study.audits)),
        cost_table(samplers),
        four_panels(returns, (study.tracks, final), samplers, found, CAPTION),
    ]


def beside_exact(result: TwinResult) -> str:
    """Say what ours took, also beside its exact twin."""
    gain = result.raced.cost.effective_a_second / result.exact.cost.effective_a_second
    return (
        f"{what_it_took(result)} The exact chain makes the same moves and reads everything; its time is "
        f"that of its likelihoods. The raced chain has {gain:.1f} times its effective draws of q in a "
        f"second, and differs from it by {result.apart_from_exact:.1f} standard errors at most."
    )


def wrong(audits: Audits) -> str:
    draws, moves = share_wrong("draws of the order", audits.gibbs), share_wrong("moves", audits.moves)
    return f"Made again exactly: {draws}, {moves}."


def share_wrong(name: str, found: Checked) -> str:
    return (
        f"{count(found.errors)} of {count(found.decisions)} {name} were wrong (95% interval "
        f"{interval(found.interval)})"
    )


def claims(study: PaperStudy) -> Iterator[Claim]:
    alone, between = study.reductions
    yield Claim(
        "Control variates reduce the reward variance by 2 to 3 orders of magnitude.",
        f"Of the other rows: {alone:,.0f} times; that of differences {between:,.0f} times.",
        alone >= REDUCTION,
        "Differences between parameters decide; they vary less in the first place.",
    )
    yield converges_faster(study)
    yield all_orders_are_visited(study)
    audited = (
        ("Racing-Normal Gibbs", GIBBS_ERRORS, study.audits.gibbs),
        ("Racing-Normal MH", MOVE_ERRORS, study.audits.moves),
    )
    for name, paper, found in audited:
        low, high = found.interval
        yield Claim(
            f"The error rate of {name} is about {paper:g}.",
            f"{found.errors} of {found.decisions:,} wrong: {found.rate:.2g} (95% {low:.2g} to {high:.2g}).",
            low <= paper,
        )
    gain = study.raced.cost.effective_a_read / study.exact.cost.effective_a_read
    yield Claim(
        "Over twice the effective sample size of q in the same time (likelihoods evaluated).",
        f"{gain:.2f} times, with {study.raced.cost.share:.0%} of the likelihoods of an exact step.",
        gain > EFFECTIVE,
    )
    yield is_unbiased(study)


def is_unbiased(study: PaperStudy) -> Claim:
    """Compare what the runs of both samplers say, and how often they are at the order that differs most."""
    most, furthest = float(study.apart.max()), int(study.apart.argmax())
    raced, exact = (
        sampler.orders[furthest].visits / sum(one.visits for one in sampler.orders)
        for sampler in (study.raced, study.exact)
    )
    why = (
        f"Most at order {study.setting.orders[furthest]}, where {raced:.2%} of the raced steps are and "
        f"{exact:.2%} of the exact ones."
    )
    return Claim(
        "No noticeable bias in the adjusted posterior over 5 runs.",
        f"Means over runs of both samplers differ by {most:.1f} standard errors at most.",
        most < NOTICED,
        "" if most < NOTICED else why,
    )


def converges_faster(study: PaperStudy) -> Claim:
    raced, exact = (reads_to_converge(name, study) for name in (RACED, EXACT))
    statement = "The subsampled chain converges about three times faster."
    if not np.isfinite(raced):
        return Claim(statement, "Not all chains came close enough; make them longer.", None)
    all_reads = float(spent(study.adapting[EXACT], study.setting)[-1])
    ratio, least = min(exact, all_reads) / raced, "" if np.isfinite(exact) else "at least "
    return Claim(
        statement,
        f"{least}{ratio:.1f} times fewer likelihoods until all estimates stay within {CLOSE:g}.",
        bool(ratio >= FASTER) if not least or ratio >= FASTER else None,
    )


def all_orders_are_visited(study: PaperStudy) -> Claim:
    orders, reached = study.setting.orders, study.reached
    missed = [str(order) for k, order in enumerate(orders) if k not in reached]
    return Claim(
        "Adapted weights make the chain visit every order sufficiently often.",
        f"Not visited by every chain: {', '.join(missed)}." if missed else "All are visited.",
        not missed,
        "Gains of 1 / (1 + t/100) move weights too slowly for an order that is hundreds of nats worse."
        if missed
        else "",
    )


def reads_to_converge(name: str, study: PaperStudy) -> float:
    """Give the likelihoods evaluated until a chain has converged, the median over chains.

    Orders that are never reached are left out of it.
    """
    trace, reached = study.adapting[name], study.reached
    reference = study.reference.log_probability[reached]
    reads = spent(trace, study.setting)
    counts = []
    for weights in np.asarray(trace["log_weights"])[:, :, reached]:
        apart = np.abs(log_normalised(-weights) - log_normalised(reference)).max(axis=1)
        late = np.flatnonzero(apart > CLOSE)
        step = late[-1] + 1 if len(late) else 0
        counts.append(reads[step] if step < len(reads) else np.inf)
    return float(np.median(counts))
