"""The page of `gumbelrace reproduce arch`: the paper's experiment as printed, and ours."""

from collections.abc import Mapping, Sequence

from gumbelrace.applications.arch_chains import correlations
from gumbelrace.applications.arch_study import OrderStudy
from gumbelrace.paper.arch_study import PaperStudy
from gumbelrace.paper.synthetic_page import claims_sentence, claims_table
from gumbelrace.report.arch import cost_table, order_sections, wrong
from gumbelrace.report.arch_figures import four_panels
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


def arch_page(
    studies: tuple[PaperStudy, OrderStudy],
    returns: Sequence[float],
    facts: Mapping[str, str],
    files: Mapping[str, str],
) -> Page:
    """Give the page.

    Parameters
    ----------
    studies : (PaperStudy, OrderStudy)
        The paper's setting, and ours.
    returns : sequence of float
        Standardised returns.
    facts, files
        As in `orders_page`.
    """
    printed, ours = studies
    sections = [
        Section(
            "Ours beside the paper's",
            [Text(SETTING), Text(claims_sentence(printed.claims)), claims_table(printed.claims)],
        ),
        Section("As printed", [*printed_blocks(printed, returns)]),
        *order_sections(ours, returns),
        Section("The data", [Files(files)]),
    ]
    return Page(TITLE, LEAD, facts, sections)


def printed_blocks(study: PaperStudy, returns: Sequence[float]) -> list[Block]:
    """Give what the paper's setting took, and its panels."""
    setting, samplers = study.printed, (study.raced, study.exact)
    found = [one for sampler in samplers for one in correlations(sampler, setting)]
    reached = study.reached
    final = {setting.orders[k]: float(study.reference.log_probability[k]) for k in reached}
    return [
        Text(wrong(study.audits)),
        cost_table(samplers),
        four_panels(returns, (study.tracks, final), samplers, found, CAPTION),
    ]
