"""Section 5.1 of the paper and its appendices: the record of the study, its tables and its page."""

from collections.abc import Iterator, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from statistics import median

from gumbelrace.applications.demo import example_race
from gumbelrace.applications.store import write_tables
from gumbelrace.paper.bounds import bound_curves, broken, compared_levels, unit_rewards
from gumbelrace.paper.claims import claims_section, claims_sentence, unsure
from gumbelrace.paper.synthetic_claims import claims
from gumbelrace.paper.synthetic_figures import (
    FIGURES,
    Figure,
    bounds_panel,
    broken_figure,
    broken_table,
    figure_panels,
    level_figure,
    probabilities_panel,
)
from gumbelrace.paper.synthetic_study import (
    ENOUGH_SCANS,
    PULLS_A_DRAW,
    READS_A_DRAW,
    Problem,
    Record,
    Settings,
    SyntheticStudy,
    probabilities,
)
from gumbelrace.report.demo import race_figure, race_section, story
from gumbelrace.report.page import (
    Block,
    Column,
    Files,
    Page,
    Section,
    Table,
    Text,
    count,
    interval,
    microseconds,
    percent,
    probability,
    times,
)
from gumbelrace.tables.writing import Kind

TITLE = "Drawing from a discrete distribution without reading all of it"
LEAD = (
    "The synthetic study of Chen and Ghahramani, “Scalable Discrete Sampling as a Multi-Armed Bandit "
    "Problem” (ICML 2016, section 5.1), run again by gumbelrace, with a method that the paper does not "
    "have."
)
WHAT = (
    "A state X has D possible values, the probability of each a product of N factors. A draw adds a "
    "Gumbel variable to each value's sum of log factors and returns the value with the largest total; a"
    " method has to find it from as few log factors (rewards) as it can, with an error of at most δ. "
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
BROKEN = (
    "Racing-Normal trusts that means of the rewards read are normal. Here are cases made so that they "
    "are not, where the rows that decide are few. Betting, which assumes nothing of the kind, beside "
    "it."
)
KEY_PROBLEM = Problem(10, "normal", 1e-4)
KEY_COLUMNS = [
    Column("method", is_number=False),
    Column("share read"),
    Column("wrong draws"),
    Column("error"),
    Column("95% interval"),
    Column("µs a draw"),
    Column("speed-up"),
]


def study_record(settings: Settings, records: Sequence[Record]) -> SyntheticStudy:
    """Add to the records of a study what is computed from them, and what needs none."""
    failures = list(broken(settings.draws, settings.seed))
    return SyntheticStudy(
        facts(settings, records),
        notes(settings),
        probabilities(10).tolist(),
        records,
        claims(records, failures, settings.seed),
        failures,
        bound_curves(unit_rewards()),
        compared_levels(),
        example_race(),
    )


def facts(settings: Settings, records: Sequence[Record]) -> dict[str, str]:
    return {
        "Rewards of each state": f"{settings.size:,}",
        "Draws a point": f"{settings.draws:,}",
        "Points": f"{len(records):,}",
        "Draws in all": f"{sum(r.draws for r in records):,}",
        "Processor time": f"{sum(r.seconds * r.draws for r in records) / 60:.1f} min",
        "Seed": str(settings.seed),
        "gumbelrace": version("gumbelrace"),
        "Date": date.today().isoformat(),
    }


def notes(settings: Settings) -> list[str]:
    """Say where the study departs from the paper, and why."""
    return [
        "The paper shows its p(X) in a picture only; ours is a linear ramp. Races go on to their end, as "
        "in the paper, and do not turn to an exact scan when that is faster, as the library's do.",
        f"Not every point has all its draws. Where each of the first {ENOUGH_SCANS} draws read everything, "
        "all are exact scans and there are no more. A point ends after "
        f"{settings.draws * READS_A_DRAW:,} rewards: with 100 states and σ = 0.1, at half of its draws. "
        "lil'UCB reads one reward at a time, some fifty times slower than a scan, and its points end after "
        f"{settings.draws * PULLS_A_DRAW:,}.",
    ]


def write_data(folder: Path, study: SyntheticStudy, kind: Kind = Kind.CSV) -> SyntheticStudy:
    """Write everything that the page shows as tables; return the study with the list of these files."""
    tables = {
        "records": ("what every method did at every point of the figures", study.records),
        "claims": ("the paper's statements, what was found, and whether they held", study.claims),
        "broken": ("races in the cases made to break Racing-Normal", study.broken),
        "bounds": ("the curves of Figure 1e", study.bounds),
        "b_normal": ("B_Normal as printed, and ours in both readings", study.levels),
    }
    return study._replace(files=write_tables(folder, tables, kind))


def synthetic_page(study: SyntheticStudy) -> Page:
    """Give the page of a study; parts for which the study has nothing are left out."""
    chosen = key_records(study.records)
    parts = [claims_sentence(study.claims)] if study.claims else []
    parts += [key_sentence(chosen)] if chosen else []
    answer = " ".join(parts) or story(study.race)
    return Page(TITLE, answer, study.facts, list(sections(study)), LEAD, race_figure(study.race))


def sections(study: SyntheticStudy) -> Iterator[Section]:
    yield Section("What was run", [Text(WHAT), Text(WHO), *map(Text, study.notes)])
    if chosen := key_records(study.records):
        yield Section("The key numbers", [key_table(chosen), Text(READING)])
    yield race_section(study.race)
    for figure in FIGURES:
        if figure.chosen(study.records):
            yield Section(f"Figure {figure.number}: {figure.about}", paper_figure(figure, study))
    if study.levels:
        yield Section("The constant B of Racing-Normal", [Text(LEVELS), level_figure(study.levels)])
    if study.broken:
        delta = middle([one.delta for one in study.broken])
        table = broken_table(study.broken, delta)
        yield Section("Where Racing-Normal breaks", [Text(BROKEN), broken_figure(study.broken), table])
    if study.claims:
        yield claims_section(study.claims)
    if study.files:
        yield Section("The data", [Files(study.files)])


def paper_figure(figure: Figure, study: SyntheticStudy) -> list[Block]:
    """Give a figure of the paper; Figure 1 has p(X) and the bounds before its rows."""
    if figure.number != 1:
        return [figure_panels(figure, study.records)]
    before = [probabilities_panel(study.probabilities), bounds_panel(study.bounds)]
    return [figure_panels(figure, study.records, before)]


def key_records(records: Sequence[Record]) -> list[Record]:
    """Choose the records of the key problem at the middle δ."""
    here = [one for one in records if one.problem == KEY_PROBLEM]
    delta = middle([one.delta for one in here])
    return [one for one in here if one.delta == delta]


def middle(deltas: Sequence[float]) -> float:
    grid = sorted(set(deltas))
    return grid[len(grid) // 2] if grid else 0.0


def key_table(records: Sequence[Record]) -> Table:
    scan = median(one.scan_seconds for one in records)
    exact = ["exact scan", "100%", "none", "0", "", microseconds(scan), times(1.0)]
    problem, delta = records[0].problem, records[0].delta
    caption = f"D = {problem.arms}, σ = {problem.scale:g}, {problem.shape} rewards, δ = {delta:g}"
    return Table(KEY_COLUMNS, [exact, *map(key_row, records)], caption)


def key_row(one: Record) -> list[str]:
    return [
        one.method,
        percent(one.read),
        f"{count(one.errors)} of {count(one.draws)}",
        probability(one.error),
        interval(one.interval),
        microseconds(one.seconds),
        times(one.speed_up),
    ]


def key_sentence(records: Sequence[Record]) -> str:
    fastest = max(records, key=lambda one: one.speed_up)
    least = min(records, key=lambda one: one.read)
    if fastest.speed_up > 1.0:
        gain = f"{fastest.method} is the fastest: {times(fastest.speed_up)} as fast as an exact scan"
    else:
        gain = "No method is faster than an exact scan here"
    read = f"{least.method} reads least, {percent(least.read)} of the rewards"
    if least is fastest:
        read = f"it reads {percent(least.read)} of the rewards, the least of all"
    return f"{gain}; {read}. {kept(records)}"


def kept(records: Sequence[Record]) -> str:
    """Say who erred more often than δ allows, for sure."""
    delta = records[0].delta
    broken = [one.method for one in records if one.interval[0] > one.delta]
    if broken:
        return f"More errors than δ = {delta:g} allows were made by {', '.join(broken)}."
    open_yet = max(records, key=lambda one: one.interval[1])
    if open_yet.interval[1] > delta:
        found = unsure(open_yet.errors, open_yet.draws, open_yet.interval[1])
        return f"That no method errs more often than δ = {delta:g} allows is {found}."
    return f"No method errs more often than δ = {delta:g} allows."
