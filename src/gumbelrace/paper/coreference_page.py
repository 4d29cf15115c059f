"""The page of `gumbelrace reproduce coreference`: the paper's experiment as printed, and ours."""

from collections.abc import Mapping, Sequence

from gumbelrace.applications.coreference import Resolved
from gumbelrace.experiments.records import Claim
from gumbelrace.paper.coreference_baselines import Baseline
from gumbelrace.paper.synthetic_tables import claims_sentence, claims_table
from gumbelrace.report.coreference import answer, coreference_sections, panels, samplers_table
from gumbelrace.report.page import Column, Files, Page, Section, Table, Text

TITLE = "Author coreference, reproduced"
LEAD = (
    "Section 5.3 of Chen and Ghahramani (2016): clusters of author mentions by annealed Gibbs sampling "
    "that evaluates few of the pairwise factors. First in the paper's own setting, beside its figures; "
    "then in ours."
)
SETTING = (
    "As printed: every mention starts in a cluster of its own; first looks at 3 members of every cluster, "
    "then a tenth of the others, doubling; variances as they come, without shrinkage; δ = 0.05; one start "
    "of 20 sweeps. The bound is the corrected one: the printed formula leaves out the sizes of clusters. "
    "Ours: mentions enter one by one, variances are shrunk towards that of all clusters, clusters that "
    "cannot win by the range of the factor are not read, merges of clusters are tried after each sweep, "
    "and of several starts the most probable clusters are kept. Evaluations are those of all starts."
)
SIMPLER = "The same blocks and the same factor; linkage merges clusters while their factor is positive."


def reproduced_page(
    studies: tuple[Resolved, Resolved],
    beside: tuple[Sequence[Claim], Sequence[Baseline]],
    facts: Mapping[str, str],
    files: Mapping[str, str],
) -> Page:
    """Give the page.

    Parameters
    ----------
    studies : (Resolved, Resolved)
        The paper's setting, and ours.
    beside : (claims, baselines)
        The paper's statements, and what simpler ways reach; the latter may be empty.
    facts, files
        As in `coreference_page`.
    """
    (printed, ours), (claims, baselines) = studies, beside
    sections = [
        Section(
            "Ours beside the paper's", [Text(SETTING), Text(claims_sentence(claims)), claims_table(claims)]
        ),
        Section("As printed", [Text(answer(printed)), samplers_table(printed), panels(printed)]),
        *coreference_sections(ours),
        *([Section("Simpler ways", [Text(SIMPLER), baselines_table(baselines)])] if baselines else []),
        Section("The data", [Files(files)]),
    ]
    return Page(TITLE, LEAD, facts, sections)


def baselines_table(baselines: Sequence[Baseline]) -> Table:
    """Lay out what simpler ways reach."""
    columns = [Column("way", is_number=False), *map(Column, ("F1", "precision", "recall"))]
    rows = [[b.way, *(f"{x:.4f}" for x in (b.f1, b.precision, b.recall))] for b in baselines]
    return Table(columns, rows)
