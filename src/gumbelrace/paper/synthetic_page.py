"""The page of the synthetic study: section 5.1 of the paper, done again, and what lies beyond it."""

from collections.abc import Iterator

from gumbelrace.experiments.records import SyntheticStudy
from gumbelrace.paper.bounds_figure import level_figure
from gumbelrace.paper.failures_figure import broken_figure, broken_table
from gumbelrace.paper.synthetic_figures import (
    FIGURES,
    Figure,
    bounds_panel,
    figure_panels,
    probabilities_panel,
)
from gumbelrace.paper.synthetic_tables import (
    claims_sentence,
    claims_table,
    key_records,
    key_sentence,
    key_table,
    middle,
)
from gumbelrace.report.page import Block, Files, Page, Section, Text
from gumbelrace.report.race import race_figure, story

TITLE = "Drawing from a discrete distribution without reading all of it"
LEAD = (
    "The synthetic study of Chen and Ghahramani, “Scalable Discrete Sampling as a Multi-Armed Bandit "
    "Problem” (ICML 2016, section 5.1), run again by gumbelrace, with a solver that the paper does not "
    "have."
)
WHAT = (
    "A state X has D possible values, the probability of each a product of N factors. A draw adds a "
    "Gumbel variable to each value's sum of log factors and returns the value with the largest total; a"
    " solver has to find it from as few log factors (rewards) as it can, with an error of at most δ. "
    "The rewards are normal, uniform or lognormal(0, 2), shifted and scaled so that p(X) is fixed "
    "(Figure 1a) and every reward has the standard deviation σ. Every draw was done again exactly with "
    "the same Gumbel variables: a draw that differs is an error."
)
WHO = (
    "Adapted lil'UCB, Racing-EBS (empirical Bernstein-Serfling bounds) and Racing-Normal are the "
    "paper's. Betting is ours: like Racing-EBS it is proved for any rewards within a known range. "
    "Racing-Normal assumes that means of rewards are normal; lil'UCB has its heuristic parameters, "
    "which rest on experience."
)
READING = (
    "Time is processor time a draw, and the speed-up is over an exact scan by compiled code, measured "
    "in turns with it."
)
LEVELS = (
    "The bound of Racing-Normal is a standard error times a constant, B, that depends on δ and on the "
    "share of the rows read at the first look. The paper prints it for 39 values of δ and six shares."
)
BREAKING = (
    "Racing-Normal trusts that means of the rewards read are normal. Here are cases made so that they "
    "are not, where the rows that decide are few. Betting, which assumes nothing of the kind, beside "
    "it."
)


def synthetic_page(study: SyntheticStudy) -> Page:
    """Give the page of a study; parts for which the study has nothing are left out.

    Parameters
    ----------
    study : SyntheticStudy
        Records, claims, curves and one race.
    """
    return Page(TITLE, LEAD, study.facts, list(sections(study)))


def sections(study: SyntheticStudy) -> Iterator[Section]:
    """Give the sections in order."""
    yield Section("What was run", [Text(WHAT), Text(WHO), *map(Text, study.notes)])
    if chosen := key_records(study.records):
        yield Section("The key numbers", [Text(key_sentence(chosen)), key_table(chosen), Text(READING)])
    yield Section("Watch one race", [Text(story(study.race)), race_figure(study.race)])
    for figure in FIGURES:
        if figure.chosen(study.records):
            yield Section(f"Figure {figure.number}: {figure.about}", paper_figure(figure, study))
    if study.levels:
        yield Section("The constant B of Racing-Normal", [Text(LEVELS), level_figure(study.levels)])
    if study.broken:
        delta = middle([one.delta for one in study.broken])
        table = broken_table(study.broken, delta)
        yield Section("Where Racing-Normal breaks", [Text(BREAKING), broken_figure(study.broken), table])
    if study.claims:
        summary = Text(claims_sentence(study.claims))
        yield Section("Ours beside the paper's", [summary, claims_table(study.claims)])
    if study.files:
        yield Section("The data", [Files({file.name: file.contents for file in study.files})])


def paper_figure(figure: Figure, study: SyntheticStudy) -> list[Block]:
    """Give a figure of the paper; Figure 1 has p(X) and the bounds before its rows."""
    if figure.number != 1:
        return [figure_panels(figure, study.records)]
    before = [probabilities_panel(study.probabilities), bounds_panel(study.bounds)]
    return [figure_panels(figure, study.records, before)]
