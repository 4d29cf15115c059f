"""The page of author coreference: who is who, how sure that is, and what it took."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbelrace.applications.certainty import DOUBTFUL
from gumbelrace.applications.coreference import Calibration, Checked, Point, Resolved, Task
from gumbelrace.models.coreference.mentions import MISSING
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
    percent,
    power_of_ten,
    rate,
    table_of,
)
from gumbelrace.report.persons import Register, persons_section

TITLE = "Who is who: author coreference"
LEAD = (
    "Mentions of authors put into clusters, one for each person, by annealed Gibbs sampling with pairwise "
    "factors (Chen and Ghahramani 2016, section 5.3)."
)
LOOKS = {
    "exact": Look("exact", "series-2", (5.0, 2.0)),
    "sums": Look("sums (exact)", "series-2", (1.2, 1.8)),
    "raced": Look("raced", "series-3", ()),
    "pairs": Look("pairs (raced)", "series-4", (7.0, 1.8, 1.2, 1.8)),
    "paper": Look("paper", "series-1", (3.0, 2.0)),
}
EXACT = ("exact", "sums")
PRECISION, RECALL = Look("precision", "series-2", ()), Look("recall", "series-3", (5.0, 2.0))
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
    "kept nothing: it evaluates n - 1 factors for each mention of a block of n in a sweep. (c) Pairs whose "
    "factor is evaluated in each sweep, of all starts. (d) Clusters of each size, of the first run."
)
SURE_CAPTION = "Mentions by the probability that they belong to the person they were put with."
CURVE_CAPTION = (
    " Beside it, B³ by the labels, if mentions below a probability are taken out of their clusters, each "
    "by itself: what is left is surer, and less complete."
)
SIZES_CAPTION = " Beside it, persons by the number of their mentions."
ONLY_SIZES = "Persons by the number of their mentions."
BARS = 10  # of the histogram of probabilities
CERTAIN = 0.95


def coreference_page(
    resolved: Resolved, register: Register, facts: Mapping[str, str], files: Mapping[str, str]
) -> Page:
    """Give the page of a result, with facts (label -> value) and files beside it (name -> contents)."""
    sections = [
        persons_section(register, resolved.task.search.samples),
        *coreference_sections(resolved),
        Section("The data", [Files(files)]),
    ]
    return Page(TITLE, answer(resolved), facts, sections, LEAD, picture(resolved))


def task_facts(task: Task) -> dict[str, str]:
    sizes = [len(rows) for rows in task.rows]
    return {
        "Mentions": f"{sum(sizes):,} in {len(sizes):,} blocks, the largest of {max(sizes):,}",
        "Labelled": f"{np.sum(task.mentions.label != MISSING):,}",
        "Sweeps": f"{task.search.sweeps}, the last {task.search.cold} at temperature 0",
        "Starts": f"{task.search.starts}, of which the most probable clusters are kept",
        **({"Sampled": f"{task.search.samples} sweeps at temperature 1"} if task.search.samples else {}),
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
    if resolved.sure is not None:
        error = resolved.sure.error
        by_chance = f"; chance moves one in between by about {error:.2f}" if error > 0.0 else ""
        parts.append(("sure", sureness(resolved) + by_chance))
    if resolved.calibration is not None:
        parts.append(("by labels", calibrated(resolved.calibration)))
    if last.f1 is not None:
        parts.append(("B³", f"F1 {last.f1:.4f}, precision {last.precision:.4f}, recall {last.recall:.4f}"))
    parts += [("saved", saved(resolved, audit.sampler)) for audit in resolved.audits]
    for audit in resolved.audits:
        parts.append(("audit", f"{audit.errors} of {audit.choices:,} choices were wrong ({audit.sampler})"))
    return parts


def coreference_sections(resolved: Resolved) -> list[Section]:
    convention = Text(COMPLETE if resolved.task.complete else CONVENTION)
    judged = [convention] if has_labels(resolved) else []
    if resolved.calibration is not None:
        judged.append(Text(f"By the labels, {calibrated(resolved.calibration)} by their probabilities."))
    races = [Text(f"{saved(resolved, audit.sampler)} {audit_sentence(audit)}") for audit in resolved.audits]
    return [
        Section("What it took", [*races, samplers_table(resolved), *judged]),
        Section("Figures", [panels(resolved)]),
    ]


def has_labels(resolved: Resolved) -> bool:
    """Whether clusters could be judged."""
    return resolved.points[0].f1 is not None


def answer(resolved: Resolved) -> str:
    """Say how many persons there are, and how sure that is."""
    last = resolved.last(resolved.task.samplers[0])
    clusters, mentions = count(last[0].clusters), count(sum(map(len, resolved.task.rows)))
    text = f"{mentions} mentions are of {clusters} persons"
    if resolved.sure is not None:
        text += f": {sureness(resolved)}"
    if has_labels(resolved):
        text += f"; by the labels, the B³ F1 is {mean(last, 'f1'):.3f}"
    return f"{text}."


def sureness(resolved: Resolved) -> str:
    """Say how likely mentions belong where they were put."""
    probability = known_probabilities(resolved)
    certain, doubtful = np.mean(probability >= CERTAIN), int(np.count_nonzero(probability < DOUBTFUL))
    return (
        f"a mention is with its person with a probability of {probability.mean():.2f} on average; "
        f"{percent(float(certain))} are sure (at least {CERTAIN:g}), {count(doubtful)} doubtful (below "
        f"{DOUBTFUL:g})"
    )


def calibrated(found: Calibration) -> str:
    """Say whether probabilities were right, on average."""
    return (
        f"{found.right:.2f} of {count(found.mentions)} mentions whose person is known are with it, "
        f"{found.said:.2f} were said to be"
    )


def known_probabilities(resolved: Resolved) -> NDArray[np.float64]:
    """Give the probabilities of the mentions that were searched."""
    assert resolved.sure is not None
    found = np.array(resolved.sure.probability, np.float64)
    return found[np.isfinite(found)]


def saved(resolved: Resolved, name: str) -> str:
    """Say what races saved: pairs, and the time that these would have taken."""
    last = resolved.last(name)
    made, all_pairs, seconds = (mean(last, field) for field in ("evaluations", "exact", "seconds"))
    scan = all_pairs * (resolved.pair_seconds or 0.0)
    text = (
        f"{LOOKS[name].label}: {count(made)} of the {count(all_pairs)} pairs of exact sweeps were "
        f"evaluated, in {rate(seconds)} s; all of them would take about {rate(scan)} s"
    )
    others = [other for other in resolved.task.samplers if other in EXACT]
    beside = [
        f"{LOOKS[other].label} took {rate(mean(resolved.last(other), 'seconds'))} s" for other in others
    ]
    return "; ".join([text, *beside]) + "."


def picture(resolved: Resolved) -> Panels:
    """Show how sure clusters are, and beside it how good they are, or how large."""
    sizes = panel("persons by size", partial(draw_sizes, resolved=resolved), "Clusters of each size.")
    if resolved.sure is None:
        return Panels([sizes], 2, ONLY_SIZES)
    shares = partial(draw_probabilities, probability=known_probabilities(resolved))
    first = panel("how sure", shares, "Histogram of the probabilities: " + sureness(resolved))
    if not resolved.thresholds:
        return Panels([first, sizes], 2, SURE_CAPTION + SIZES_CAPTION)
    curve = panel("if doubtful ones are taken out", partial(draw_curve, resolved=resolved), told(resolved))
    keys = [look.key for look in (PRECISION, RECALL)]
    return Panels([first, curve], 2, SURE_CAPTION + CURVE_CAPTION, keys)


def told(resolved: Resolved) -> str:
    """Tell the curve in words."""
    first, last = resolved.thresholds[0], resolved.thresholds[-1]
    return (
        f"Precision {first.precision:.2f} and recall {first.recall:.2f} with all mentions, "
        f"{last.precision:.2f} and {last.recall:.2f} with the surest."
    )


def draw_probabilities(figure: Any, probability: NDArray[np.float64]) -> None:
    """Draw how many mentions there are of each probability."""
    axes = panel_axes(figure, "probability", "share of the mentions")
    number, edges = np.histogram(probability, BARS, (0.0, 1.0))
    colours = [LIGHT["accent" if edge >= DOUBTFUL else "series-3"] for edge in edges[:-1]]
    axes.bar(edges[:-1], number / len(probability), 0.9 / BARS, align="edge", color=colours)
    axes.set_xlim(0.0, 1.0)


def draw_curve(figure: Any, resolved: Resolved) -> None:
    """Draw B³ over the probability below which mentions are taken out."""
    axes = panel_axes(figure, "taken out below this probability", "B³")
    at = [one.threshold for one in resolved.thresholds]
    PRECISION.line(axes, at, [one.precision for one in resolved.thresholds])
    RECALL.line(axes, at, [one.recall for one in resolved.thresholds])
    axes.set_xlim(0.0, 1.0)


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
    races = name not in EXACT
    spared = mean(last, "exact") - mean(last, "evaluations")
    return row | {
        "pairs evaluated": count(mean(last, "evaluations")),
        "pairs saved": count(spared) if races else "",
        "last sweep, of exact": percent(mean(last, "share")) if races else "",
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
        ("(c) pairs evaluated in a sweep", draw_costs, "Pairs evaluated in each sweep."),
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
        counts = [max(evaluated(p), 1) for p in points]  # one mention has no pairs
        look.line(axes, counts, [p.f1 for p in points])


def evaluated(point: Point) -> int:
    """Count the factors evaluated so far; for an exact sampler, as if it kept nothing."""
    return point.exact if point.sampler in EXACT else point.evaluations


def draw_by_sweeps(figure: Any, resolved: Resolved) -> None:
    """Draw the paper's second panel."""
    axes = panel_axes(figure, "sweep", "B³ F1")
    for look, points in runs(resolved):
        look.line(axes, [p.sweep for p in points], [p.f1 for p in points])


def draw_costs(figure: Any, resolved: Resolved) -> None:
    """Draw what each sweep evaluates."""
    drawn = [
        (look, points, np.diff([p.evaluations for p in points], prepend=0))
        for look, points in runs(resolved)
    ]
    most = max(made.max() for _, _, made in drawn)
    unit, name = (1e6, "million pairs") if most >= 1e6 else (1e3, "thousand pairs")
    axes = panel_axes(figure, "sweep", name)
    for look, points, made in drawn:
        look.line(axes, [p.sweep for p in points], (made / unit).tolist())
    axes.set_ylim(0.0, None)


def draw_sizes(figure: Any, resolved: Resolved) -> None:
    axes = panel_axes(figure, "mentions in a cluster", "clusters")
    log_axis(axes.xaxis, power_of_ten)
    log_axis(axes.yaxis, power_of_ten)
    for name, clusters in resolved.clusters.items():
        sizes, number = np.unique(np.bincount(clusters[clusters >= 0]), return_counts=True)
        axes.plot(sizes, number, ".", color=LOOKS[name].ink, markersize=3.5)
