"""What section 5.3 of the paper states, held against the paper's own setting on our data."""

from collections.abc import Iterator, Sequence

import numpy as np

from gumbelrace.experiments.coreference import FIRST
from gumbelrace.experiments.coreference_study import Point, Resolved
from gumbelrace.experiments.records import Claim

PRINTED, EXACT = "as printed", "sums"
# The paper's figures, and the share of the final F1 at which a run has converged.
FASTER, NEAR_CONVERGENCE, ERROR, CONVERGED = 3.0, 5.0, 0.05, 0.98


def claims(resolved: Resolved) -> Iterator[Claim]:
    """Hold the paper's statements against the samplers `as printed` and `sums` of one study."""
    if resolved.points[0].f1 is not None:
        yield converges_faster(resolved)
        yield same_by_sweeps(resolved)
    yield near_convergence(resolved)
    first = float(np.mean([p.share for p in points_of(resolved, PRINTED) if p.sweep == 1]))
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
            rate <= ERROR,
        )
    yield sizes(resolved)


def points_of(resolved: Resolved, sampler: str) -> list[Point]:
    """Give the points of a sampler."""
    return [point for point in resolved.points if point.sampler == sampler]


def evaluations_to_converge(points: Sequence[Point], counted: str, final: float) -> float:
    """Give the evaluations, or what else is counted, until F1 reaches its share of the final one."""
    reached = [getattr(p, counted) for p in points if p.f1 is not None and p.f1 >= CONVERGED * final]
    return float(min(reached, default=np.inf))


def converges_faster(resolved: Resolved) -> Claim:
    """Compare the evaluations that both samplers need, medians over runs."""
    final = float(np.mean([point.f1 or 0.0 for point in resolved.last(EXACT)]))
    counts = {}
    for sampler, counted in ((PRINTED, "evaluations"), (EXACT, "exact")):
        runs = [[p for p in points_of(resolved, sampler) if p.run == r] for r in range(resolved.task.runs)]
        counts[sampler] = np.median([evaluations_to_converge(run, counted, final) for run in runs])
    ratio = counts[EXACT] / counts[PRINTED]
    return Claim(
        "Sub Gibbs converges about three times faster than exact Gibbs.",
        f"{ratio:.1f} times fewer factors until F1 is {CONVERGED:.0%} of the final one.",
        bool(ratio >= FASTER),
        "Most factors are evaluated in the first sweeps, where clusters are small and little is saved.",
    )


def same_by_sweeps(resolved: Resolved) -> Claim:
    """Compare the F1 of both samplers sweep by sweep, with the noise of the runs."""
    tables = [f1_table(resolved, sampler) for sampler in (PRINTED, EXACT)]
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
    """Give F1 by run and sweep."""
    found = [point.f1 or 0.0 for point in points_of(resolved, sampler)]
    return np.array(found).reshape(resolved.task.runs, resolved.task.search.sweeps)


def near_convergence(resolved: Resolved) -> Claim:
    """Give the share of the last sweep, and what it is at least."""
    last = float(np.mean([point.share for point in resolved.last(PRINTED)]))
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
    clusters = resolved.clusters[PRINTED]
    searched = clusters >= 0
    members = np.bincount(clusters[searched])
    block = np.empty(len(members), np.int64)
    block[clusters[searched]] = resolved.task.mentions.block[searched]
    return block, members


def sizes(resolved: Resolved) -> Claim:
    """Say how many candidates there are, and how large clusters are."""
    block, members = blocks_and_members(resolved)
    candidates = np.unique(block, return_counts=True)[1] + 1  # and an empty cluster
    return Claim(
        "There are 2 to 215 candidate clusters of 1 to 1,829 mentions.",
        f"{candidates.min():,} to {candidates.max():,} of {members.min():,} to {members.max():,}.",
        None,
        "Other data.",
    )
