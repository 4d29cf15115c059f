"""The page of `gumbelrace reproduce arch`: the experiment in the paper's setting, and in ours."""

from collections.abc import Mapping, Sequence

from gumbelrace.applications.arch_chains import Plan, correlations
from gumbelrace.experiments.records import Claim
from gumbelrace.paper.arch_exact import Audits, Checked, TwinStudy
from gumbelrace.paper.arch_study import PaperStudy
from gumbelrace.paper.claims import claims_sentence, claims_table
from gumbelrace.report.arch import arch_sections, cost_table, taken
from gumbelrace.report.arch_figures import four_panels
from gumbelrace.report.numbers import count, interval
from gumbelrace.report.page import Block, Files, Page, Section, Text

TITLE = "ARCH order selection, reproduced"
LEAD = (
    "Section 5.2 of Chen and Ghahramani (2016): the order of an ARCH model by a chain that reads few rows "
    "of the data for each decision. First in the paper's own setting, beside its figures; then in ours."
)
SETTING = (
    "As printed: softplus with τ = 1, Laplace pseudopriors, minibatch Langevin proposals accepted at 36%, "
    "bins of the data as control variates, a fifth of the rows always read, first looks at 50 rows, and "
    "weights that start equal and adapt by 1 / (1 + t/100). The conditional of q has the ratio of prior to "
    "pseudoprior that the paper leaves out. A gradient of a row counts as a likelihood; exact sampling "
    "reads (K + 1) N a step."
)
CAPTION = (
    "The paper's setting. (a) Standardised returns. (b) Estimates of log p(q | r) by the first chain of "
    "each sampler while its weights adapt, less those of importance sampling, against the likelihoods "
    "evaluated. (c) Share of the visits in each run with fixed weights. (d) Autocorrelation of q."
)


def reproduced_page(
    studies: tuple[PaperStudy, TwinStudy],
    stated: Sequence[Claim],
    returns: Sequence[float],
    facts: Mapping[str, str],
    files: Mapping[str, str],
) -> Page:
    """Give the page.

    Parameters
    ----------
    studies : (PaperStudy, TwinStudy)
        The paper's setting, and ours.
    stated : sequence of Claim
        The paper's statements, and what was found.
    returns : sequence of float
        Standardised returns.
    facts, files
        As in `arch_page` of the report.
    """
    paper, ours = studies
    sections = [
        Section(
            "Ours beside the paper's",
            [Text(SETTING), Text(claims_sentence(stated)), claims_table(stated)],
        ),
        Section("As printed", [*paper_blocks(paper, returns)]),
        *arch_sections(ours, returns, beside_exact(ours)),
        Section("The data", [Files(files)]),
    ]
    return Page(TITLE, LEAD, facts, sections)


def paper_facts(plan: Plan) -> dict[str, str]:
    """Say how the paper's setting was run."""
    return {
        "As printed": f"{plan.chains} chains of {plan.adapt:,} steps that adapt, {plan.steps:,} that do not"
    }


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


def beside_exact(study: TwinStudy) -> str:
    """Say what ours took, also beside its exact twin."""
    raced, exact = study.raced.cost, study.exact.cost
    return (
        f"{taken(study)} The exact chain makes the same moves and reads everything; its time is that of "
        f"its likelihoods. The raced chain has {raced.effective_a_second / exact.effective_a_second:.1f} "
        "times its effective draws of q in a second, and differs from it by "
        f"{study.apart_from_exact:.1f} standard errors at most."
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
