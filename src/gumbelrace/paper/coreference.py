"""Section 5.3 on our data: the paper's statements held against its setting, simpler ways, and the page."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.applications.block_search import FIRST, Search
from gumbelrace.applications.coreference import Point, Resolved, Task, judged, together
from gumbelrace.models.coreference.fit import METHODS, in_training, linkage
from gumbelrace.models.coreference.mentions import Block, Mentions, block_of
from gumbelrace.paper.claims import Claim, claims_section, claims_sentence, unsure
from gumbelrace.report.coreference import answer, coreference_sections, panels, samplers_table
from gumbelrace.report.page import Column, Files, Page, Section, Table, Text

PAPER, EXACT = "paper", "sums"
PAPER_SETTING = Search(sweeps=20, cold=5, placed=True, merges=False, starts=1)
# The paper's figures, and the share of the final F1 at which a run has converged.
FASTER, NEAR_CONVERGENCE, ERROR, CONVERGED = 3.0, 5.0, 0.05, 0.98
TITLE = "Author coreference, reproduced"
LEAD = (
    "Section 5.3 of Chen and Ghahramani (2016): clusters of author mentions by annealed Gibbs sampling "
    "that evaluates few of the pairwise factors. First in the paper's own setting, beside its figures; "
    "then in ours."
)
SETTING = (
    "The paper's setting: every mention starts in a cluster of its own; first looks at 3 members of every"
    " cluster, then a tenth of the others, doubling; variances as they come, without shrinkage; δ = 0.05;"
    " one start of 20 sweeps. The bound is the corrected one: the printed formula leaves out the sizes of"
    " clusters. Ours: mentions enter one by one, variances are shrunk towards that of all clusters, "
    "clusters that cannot win by the range of the factor are not read, merges of clusters are tried after"
    " each sweep, and of several starts the most probable clusters are kept. Evaluations are those of all"
    " starts."
)
SIMPLER = "The same blocks and the same factor; linkage merges clusters while their factor is positive."


def training_blocks(mentions: Mentions) -> list[Block]:
    """Give the blocks for training, about half of all; see `held_out` for others."""
    parts = zip(mentions.block_names, mentions.rows_by_block(), strict=True)
    return [block_of(mentions, rows) for name, rows in parts if in_training(name)]


def held_out(mentions: Mentions, least: int, most: int) -> list[int]:
    """Give the blocks of `least` to `most` mentions that are not for training."""
    sizes, names = map(len, mentions.rows_by_block()), mentions.block_names
    return [b for b, size in enumerate(sizes) if least <= size <= most and not in_training(names[b])]


def claims(resolved: Resolved) -> Iterator[Claim]:
    """Hold the paper's statements against the samplers `paper` and `sums` of one study."""
    if resolved.points[0].f1 is not None:
        yield converges_faster(resolved)
        yield same_by_sweeps(resolved)
    yield near_convergence(resolved)
    first = float(np.mean([p.share for p in points_of(resolved, PAPER) if p.sweep == 1]))
    yield Claim(
        "At first little is saved, as every cluster starts with one mention.",
        f"The first sweep evaluates {first:.0%} of an exact one's factors.",
        first > 0.5,
    )
    for audit in resolved.audits:
        rate, (low, high) = audit.errors / audit.choices, audit.interval
        yield Claim(
            "The empirical error is about 0.046, below δ = 0.05.",
            f"{audit.errors:,} of {audit.choices:,} choices wrong: {rate:.4f} ({low:.4f} to {high:.4f}).",
            None if low <= ERROR < high else high <= ERROR,
            f"It is {unsure(audit.errors, audit.choices, high)}." if low <= ERROR < high else "",
        )
    yield sizes(resolved)


def points_of(resolved: Resolved, sampler: str) -> list[Point]:
    return [point for point in resolved.points if point.sampler == sampler]


def evaluations_to_converge(points: Sequence[Point], counted: str, final: float) -> float:
    """Give the evaluations, or what else is counted, until F1 reaches its share of the final one."""
    reached = [getattr(p, counted) for p in points if p.f1 is not None and p.f1 >= CONVERGED * final]
    return float(min(reached, default=np.inf))


def converges_faster(resolved: Resolved) -> Claim:
    """Compare the evaluations that both samplers need, medians over runs."""
    final = float(np.mean([point.f1 or 0.0 for point in resolved.last(EXACT)]))
    counts = {}
    for sampler, counted in ((PAPER, "evaluations"), (EXACT, "exact")):
        runs = [[p for p in points_of(resolved, sampler) if p.run == r] for r in range(resolved.task.runs)]
        counts[sampler] = np.median([evaluations_to_converge(run, counted, final) for run in runs])
    statement = "Sub Gibbs converges about three times faster than exact Gibbs."
    if not np.isfinite(counts[PAPER]):
        reached = float(np.mean([point.f1 or 0.0 for point in resolved.last(PAPER)]))
        ours = f"It does not come to {CONVERGED:.0%} of the exact F1, {final:.3f}: it ends at {reached:.3f}"
        return Claim(statement, f"{ours}.", False)
    ratio = counts[EXACT] / counts[PAPER]
    return Claim(
        statement,
        f"{ratio:.1f} times fewer factors until F1 is {CONVERGED:.0%} of the final one.",
        bool(ratio >= FASTER),
        "Most factors are evaluated in the first sweeps, where clusters are small and little is saved.",
    )


def same_by_sweeps(resolved: Resolved) -> Claim:
    """Compare the F1 of both samplers sweep by sweep, with the noise of the runs."""
    tables = [f1_table(resolved, sampler) for sampler in (PAPER, EXACT)]
    apart = abs(tables[0].mean(axis=0) - tables[1].mean(axis=0))
    noise = np.hypot(*(table.std(axis=0, ddof=1) / np.sqrt(len(table)) for table in tables))
    worst = int(np.argmax(apart))
    return Claim(
        "As a function of iterations F1 is almost identical.",
        f"Means over runs differ by {apart.max():.4f} at most (standard error {noise[worst]:.4f}), "
        f"by {apart[-1]:.4f} at the end.",
        bool(apart[-1] < max(3.0 * noise[-1], 0.01)),
    )


def f1_table(resolved: Resolved, sampler: str) -> np.ndarray:
    found = [point.f1 or 0.0 for point in points_of(resolved, sampler)]
    return np.array(found).reshape(resolved.task.runs, resolved.task.search.sweeps)


def near_convergence(resolved: Resolved) -> Claim:
    last = float(np.mean([point.share for point in resolved.last(PAPER)]))
    block, members = blocks_and_members(resolved)
    mentions = np.bincount(block, members)
    looked_at = np.bincount(block, np.minimum(members, FIRST))
    least = float(mentions @ looked_at / (mentions @ (mentions - 1.0)))
    return Claim(
        "Near convergence a sweep evaluates five times fewer factors.",
        f"{1.0 / last:.1f} times fewer in the last sweep.",
        1.0 / last >= NEAR_CONVERGENCE,
        f"A first look at {FIRST} of every cluster takes {least:.0%} of an exact sweep: at best "
        f"{1.0 / least:.1f} times fewer.",
    )


def blocks_and_members(resolved: Resolved) -> tuple[np.ndarray, np.ndarray]:
    """Give the block of each cluster of the first run, and how many mentions are in it."""
    clusters = resolved.clusters[PAPER]
    searched = clusters >= 0
    members = np.bincount(clusters[searched])
    block = np.empty(len(members), np.int64)
    block[clusters[searched]] = resolved.task.mentions.block[searched]
    return block, members


def sizes(resolved: Resolved) -> Claim:
    block, members = blocks_and_members(resolved)
    candidates = np.unique(block, return_counts=True)[1] + 1  # and an empty cluster
    return Claim(
        "There are 2 to 215 candidate clusters of 1 to 1,829 mentions.",
        f"{candidates.min():,} to {candidates.max():,} of {members.min():,} to {members.max():,}.",
        None,
        "Other data.",
    )


Clusters = Callable[[Block], NDArray[np.int64]]


class Baseline(NamedTuple):
    """B³ of a simpler way."""

    way: str
    precision: float
    recall: float
    f1: float


def baselines(task: Task) -> Iterator[Baseline]:
    """Judge linkage at the threshold 0, whole blocks as clusters, and every mention alone."""
    ways: dict[str, Clusters] = {f"{method} linkage": partial(linked, task, method) for method in METHODS}
    ways |= {
        "whole blocks": lambda block: np.zeros(len(block), np.int64),
        "each mention alone": lambda block: np.arange(len(block)),
    }
    for way, clusters in ways.items():
        labels = [clusters(block_of(task.mentions, rows)).tolist() for rows in task.rows]
        score = judged(task, together(task, labels))
        if score is not None:
            yield Baseline(way, *score)


def linked(task: Task, method: str, block: Block) -> NDArray[np.int64]:
    return linkage(task.factor.pairs(block), 0.0, method)


def reproduced_page(
    studies: tuple[Resolved, Resolved],
    beside: tuple[Sequence[Claim], Sequence[Baseline]],
    facts: Mapping[str, str],
    files: Mapping[str, str],
) -> Page:
    """Give the page of the paper's setting and of ours; facts and files are as in `coreference_page`."""
    (paper, ours), (claims, baselines) = studies, beside
    sections = [
        claims_section(claims, SETTING),
        Section("The paper's setting", [Text(answer(paper)), samplers_table(paper)]),
        *coreference_sections(ours),
        *([Section("Simpler ways", [Text(SIMPLER), baselines_table(baselines)])] if baselines else []),
        Section("The data", [Files(files)]),
    ]
    found = f"{claims_sentence(claims)} In our setting, {answer(ours)}"
    return Page(TITLE, found, facts, sections, LEAD, panels(paper))


def baselines_table(baselines: Sequence[Baseline]) -> Table:
    columns = [Column("way", is_number=False), *map(Column, ("F1", "precision", "recall"))]
    rows = [[b.way, *(f"{x:.4f}" for x in (b.f1, b.precision, b.recall))] for b in baselines]
    return Table(columns, rows)
