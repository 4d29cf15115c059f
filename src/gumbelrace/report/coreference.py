"""The page of author coreference: the clusters, what was evaluated, and the paper's two panels."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gumbelrace.applications.coreference import Checked, Point, Resolved, Task
from gumbelrace.models.coreference.mentions import MISSING
from gumbelrace.report.figures import Look, log_axis, panel, panel_axes
from gumbelrace.report.page import (
    Files,
    Page,
    Panels,
    Section,
    Table,
    Text,
    count,
    interval,
    made_by,
    percent,
    power_of_ten,
    rate,
    table_of,
)

TITLE = "Who is who: author coreference"
LEAD = (
    "Mentions of authors put into clusters, one for each person, by annealed Gibbs sampling with pairwise "
    "factors (Chen and Ghahramani 2016, section 5.3). A mention's choice of its cluster is a race that "
    "compares it with a few members of each."
)
LOOKS = {
    "exact": Look("exact", "series-2", (5.0, 2.0)),
    "sums": Look("sums (exact)", "series-2", (1.2, 1.8)),
    "raced": Look("raced", "series-3", ()),
    "pairs": Look("pairs (raced)", "series-4", (7.0, 1.8, 1.2, 1.8)),
    "paper": Look("paper", "series-1", (3.0, 2.0)),
}
EXACT = ("exact", "sums")
CONVENTION = (
    "B³ averages over labelled mentions; mentions without a label are left out of clusters and persons "
    "before counting."
)
COMPLETE = (
    "B³ averages over labelled mentions; all mentions of labelled persons are taken to be labelled, so one "
    "without a label counts as someone else's in the cluster it is in."
)
CAPTION = (
    "(a) and (b) are the paper's panels; a line for each run. An exact sampler is shown in (a) as if it "
    "kept nothing: it evaluates n - 1 factors for each mention of a block of n in a sweep. (c) Evaluations "
    "of each sweep, as a share of an exact one's. (d) Clusters of each size, of the first run."
)


def coreference_page(resolved: Resolved, facts: Mapping[str, str], files: Mapping[str, str]) -> Page:
    """Give the page of a result, with facts (label -> value) and files beside it (name -> contents)."""
    sections = [*coreference_sections(resolved), Section("The data", [Files(files)])]
    return Page(TITLE, LEAD, facts, sections)


def task_facts(task: Task) -> dict[str, str]:
    sizes = [len(rows) for rows in task.rows]
    return {
        "Mentions": f"{sum(sizes):,} in {len(sizes):,} blocks, the largest of {max(sizes):,}",
        "Labelled": f"{np.sum(task.mentions.label != MISSING):,}",
        "Sweeps": f"{task.search.sweeps}, the last {task.search.cold} at temperature 0",
        "Starts": f"{task.search.starts}, of which the most probable clusters are kept",
        "Runs": str(task.runs),
        "δ of a choice": f"{task.search.delta:g}",
        "Seed": str(task.seed),
        **made_by(),
    }


def summary(resolved: Resolved) -> list[tuple[str, str]]:
    """Say what was found in a few words: what each is about, and the words."""
    name = resolved.task.samplers[0]
    last, searched = resolved.last(name)[0], sum(map(len, resolved.task.rows))
    parts = [("clusters", f"{last.clusters:,} of {searched:,} mentions ({name})")]
    if last.f1 is not None:
        parts.append(("B³", f"F1 {last.f1:.4f}, precision {last.precision:.4f}, recall {last.recall:.4f}"))
    parts.append(("evaluated", f"{100 * last.evaluations / max(last.exact, 1):.3g}% of exact sweeps"))
    for audit in resolved.audits:
        parts.append(("audit", f"{audit.errors} of {audit.choices:,} choices were wrong ({audit.sampler})"))
    return parts


def coreference_sections(resolved: Resolved) -> list[Section]:
    convention = Text(COMPLETE if resolved.task.complete else CONVENTION)
    judged = [convention] if has_labels(resolved) else []
    return [
        Section("The clusters", [Text(answer(resolved)), samplers_table(resolved), *judged]),
        Section("Figures", [panels(resolved)]),
    ]


def has_labels(resolved: Resolved) -> bool:
    """Whether clusters could be judged."""
    return resolved.points[0].f1 is not None


def answer(resolved: Resolved) -> str:
    name = resolved.task.samplers[0]
    last = resolved.last(name)
    clusters, mentions = count(last[0].clusters), count(sum(map(len, resolved.task.rows)))
    text = f"{mentions} mentions are of {clusters} persons"
    if has_labels(resolved):
        text += f", with a B³ F1 of {mean(last, 'f1'):.3f}"
    share = sum(point.evaluations for point in last) / max(sum(point.exact for point in last), 1)
    text += f" ({LOOKS[name].label}; {percent(share)} of the factors of exact sweeps evaluated)."
    return " ".join([text, *map(audit_sentence, resolved.audits)])


def audit_sentence(audit: Checked) -> str:
    return (
        f"Of {count(audit.choices)} choices of {LOOKS[audit.sampler].label!r} made again exactly, "
        f"{count(audit.errors)} were wrong (95% interval {interval(audit.interval)})."
    )


def mean(points: Sequence[Point], field: str) -> float:
    return float(np.mean([getattr(point, field) for point in points]))


def samplers_table(resolved: Resolved) -> Table:
    return table_of([sampler_row(resolved, name) for name in resolved.task.samplers], words=("sampler",))


def sampler_row(resolved: Resolved, name: str) -> dict[str, str]:
    last = resolved.last(name)
    row = {"sampler": LOOKS[name].label, "clusters": count(mean(last, "clusters"))}
    if has_labels(resolved):
        row["F1"] = f"{mean(last, 'f1'):.4f}"
        if len(last) > 1:
            row["± over runs"] = f"{np.std([point.f1 or 0.0 for point in last], ddof=1):.4f}"
        row |= {"precision": f"{mean(last, 'precision'):.4f}", "recall": f"{mean(last, 'recall'):.4f}"}
    return row | {
        "evaluations": count(mean(last, "evaluations")),
        "of exact": percent(mean(last, "evaluations") / max(mean(last, "exact"), 1.0)),
        "last sweep": percent(mean(last, "share")),
        "seconds a run": rate(mean(last, "seconds")),
    }


def panels(resolved: Resolved) -> Panels:
    drawn: list[tuple[str, Any, str]] = []
    if has_labels(resolved):
        drawn = [
            ("(a) F1 against evaluations", draw_by_evaluations, "B³ F1 against factor evaluations."),
            ("(b) F1 against sweeps", draw_by_sweeps, "B³ F1 against sweeps."),
        ]
    drawn += [
        ("(c) evaluations of a sweep", draw_shares, "Share of an exact sweep's evaluations."),
        ("(d) sizes of clusters", draw_sizes, "Number of clusters of each size."),
    ]
    figures = [panel(title, partial(draw, resolved=resolved), label) for title, draw, label in drawn]
    return Panels(figures, 2, CAPTION, [LOOKS[name].key for name in resolved.task.samplers])


def runs(resolved: Resolved) -> list[tuple[Look, list[Point]]]:
    """Give the points of each run, and how they are drawn."""
    task = resolved.task
    return [
        (LOOKS[name], [p for p in resolved.points if p.sampler == name and p.run == run])
        for name in task.samplers
        for run in range(task.runs)
    ]


def draw_by_evaluations(figure: Any, resolved: Resolved) -> None:
    """Draw the paper's first panel."""
    axes = panel_axes(figure, "factors evaluated", "B³ F1")
    log_axis(axes.xaxis, power_of_ten)
    for look, points in runs(resolved):
        look.line(axes, [evaluated(p) for p in points], [p.f1 for p in points])


def evaluated(point: Point) -> int:
    """Count the factors evaluated so far; for an exact sampler, as if it kept nothing."""
    return point.exact if point.sampler in EXACT else point.evaluations


def draw_by_sweeps(figure: Any, resolved: Resolved) -> None:
    """Draw the paper's second panel."""
    axes = panel_axes(figure, "sweep", "B³ F1")
    for look, points in runs(resolved):
        look.line(axes, [p.sweep for p in points], [p.f1 for p in points])


def draw_shares(figure: Any, resolved: Resolved) -> None:
    """Draw what each sweep evaluates, next to an exact one."""
    axes = panel_axes(figure, "sweep", "of an exact sweep")
    for look, points in runs(resolved):
        look.line(axes, [p.sweep for p in points], [p.share for p in points])
    axes.set_ylim(0.0, None)


def draw_sizes(figure: Any, resolved: Resolved) -> None:
    axes = panel_axes(figure, "mentions in a cluster", "clusters")
    log_axis(axes.xaxis, power_of_ten)
    log_axis(axes.yaxis, power_of_ten)
    for name, clusters in resolved.clusters.items():
        sizes, number = np.unique(np.bincount(clusters[clusters >= 0]), return_counts=True)
        axes.plot(sizes, number, ".", color=LOOKS[name].ink, markersize=3.5)
