"""What racing saves in author coreference, against exact Gibbs sampling of two kinds.

    python benchmarks/coreference.py [--quick] [--data FILE [--complete] [--least N]] [--weights FILE]

The factor is fitted to about half of the blocks, which a hash of their names chooses. First table: the
other blocks, of 100 (or N) to 3,000 mentions, several seeds. Second: pairs of blocks above 2,000 mentions
that are ever computed, in one search and in all starts. Third: processor time of one block until B³ F1 is
98% of the final one, and of all sweeps, for the factor as it is and for the same values made slower by idle
arithmetic, as an edit distance or a model's score would be. Without --data, mentions are simulated.
"""

import tempfile
import threading
import time
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numba
import numpy as np
from shared import options

import gumbelrace as gr
from gumbelrace.applications.block_search import SAMPLERS, Search, fitted, searched
from gumbelrace.applications.coreference import Resolved, Task, resolve
from gumbelrace.models.coreference import Block, Factor, Mentions, bcubed, block_of, mentions
from gumbelrace.models.coreference.factor import log_factor
from gumbelrace.models.coreference.simulate import simulate
from gumbelrace.paper.coreference import baselines, held_out, training_blocks
from gumbelrace.tables.mentions import read_mentions

EXACT, RACED = ("exact", "sums"), ("raced", "pairs")
LEAST, MOST, LARGE = 100, 3000, 2000
CONVERGED = 0.98
# Microseconds of a factor, and the largest block it is timed on.
COSTS = {0.0: 2500, 4.0: 2500, 100.0: 450}


@numba.njit
def slow_factor(i, j, loops, *data):
    """Compute the factor after idle arithmetic."""
    idle = 1.0
    for k in range(loops):
        idle = np.sqrt(idle + k)
    return log_factor(i, j, *data) + 0.0 * idle


def slowed(factor: Factor, block: Block, loops: int) -> gr.population.Pairs:
    if loops == 0:
        return factor.pairs(block)
    data = (loops, *factor.data(block))
    return gr.pairs(slow_factor, data, len(block), reward_range=factor.shaping.reward_range)


def nanoseconds(pairs: gr.population.Pairs, count: int) -> float:
    """Time one value of the factor."""
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, pairs.size, (2, count))
    i, j = i[i != j], j[i != j]
    pairs.values(i[:10], j[:10])  # compiles
    started = time.thread_time()
    pairs.values(i, j)
    return 1e9 * (time.thread_time() - started) / len(i)


def loops_for(factor: Factor, block: Block, microseconds: float) -> int:
    if microseconds == 0.0:
        return 0
    each = (nanoseconds(slowed(factor, block, 2000), 500) - nanoseconds(factor.pairs(block), 5000)) / 2000
    return int(1000 * microseconds / each)


def table_of_samplers(resolved: Resolved) -> None:
    print(f"{'sampler':<14}{'F1':>8}{'± seeds':>9}{'all sweeps':>12}{'last sweep':>12}{'s a run':>9}")
    for name in resolved.task.samplers:
        last = resolved.last(name)
        f1 = np.array([point.f1 for point in last])
        share = np.mean([point.evaluations / point.exact for point in last])
        late, seconds = np.mean([p.share for p in last]), np.mean([p.seconds for p in last])
        print(
            f"{name:<14}{f1.mean():>8.4f}{f1.std(ddof=1):>9.4f}{share:>12.3f}{late:>12.3f}{seconds:>9.1f}"
        )
    for audit in resolved.audits:
        low, high = audit.interval
        wrong = f"{audit.errors} of {audit.choices:,} wrong"
        print(f"audit, {audit.sampler}: {wrong} (95% {low:.4f} to {high:.4f})")


def distinct_pairs(task: Task) -> None:
    """Print the pairs that are computed in large blocks: by sums kept, and by races that keep values."""
    print(f"{'mentions':>9}{'starts':>8}{'n(n-1)/2':>12}{'sums':>13}{'pairs':>10}{'ratio':>7}")
    large = [rows for rows in task.rows if len(rows) > LARGE]
    for rows, starts in product(large, (1, task.search.starts)):
        search = replace(task.search, starts=starts)
        pairs = task.factor.pairs(block_of(task.mentions, rows))
        kept, raced = (pairs_computed(pairs, search, name) for name in ("sums", "pairs"))
        n = len(rows)
        counts = f"{n:>9,}{starts:>8}{n * (n - 1) // 2:>12,}{kept:>13,}{raced:>10,}"
        print(f"{counts}{raced / kept:>7.2f}")


def pairs_computed(pairs: gr.population.Pairs, search: Search, name: str) -> int:
    kernel = search.kernel(pairs, SAMPLERS[name])
    run = searched(kernel, search, np.random.default_rng(0), threading.Event())
    return sum(run.evaluations) + run.weighing


def seconds_of(
    pairs: gr.population.Pairs, name: str, block: Block, options: Any
) -> tuple[float, int, float]:
    """Time sweeps, start after start, until F1 is high enough; and all of them (not of `exact`)."""
    search, complete, target = options
    kernel, rng = search.kernel(pairs, SAMPLERS[name]), np.random.default_rng(1)
    seconds, done, reached = 0.0, 0, (np.inf, 0)
    for _ in range(search.starts):
        state = kernel.start(placed=search.placed)
        for _ in range(search.sweeps):
            started = time.thread_time()
            state, _ = kernel.step(rng, state)
            seconds, done = seconds + time.thread_time() - started, done + 1
            if reached[0] == np.inf and bcubed(block.label, state.labels, complete).f1 >= target:
                reached = seconds, done
                if name == "exact":
                    return *reached, np.nan
    return *reached, seconds


def timed(task: Task, microseconds: float, most: int) -> None:
    block = block_of(task.mentions, largest(task, most))
    pairs = slowed(task.factor, block, loops_for(task.factor, block, microseconds))
    final = searched(
        task.search.kernel(task.factor.pairs(block), SAMPLERS["sums"]),
        task.search,
        np.random.default_rng(1),
        threading.Event(),
    ).labels[-1]
    target = CONVERGED * bcubed(block.label, np.array(final), task.complete).f1
    print(
        f"{len(block):,} mentions, {nanoseconds(pairs, 2000) / 1000:.2f} µs a factor, to F1 {target:.3f}:"
    )
    for name in (*EXACT, *RACED):
        kernel = task.search.kernel(pairs, SAMPLERS[name])
        kernel.step(np.random.default_rng(0), kernel.start(rng=np.random.default_rng(0)))  # compiles
        seconds, sweeps, all_of_them = seconds_of(pairs, name, block, (task.search, task.complete, target))
        print(f"  {name:<14}{seconds:>9.2f} s, {sweeps} sweeps; all sweeps {all_of_them:>9.2f} s")


def largest(task: Task, most: int) -> Any:
    """Give the rows of the largest labelled block that is not too large."""
    labelled = [rows for rows in task.rows if (task.mentions.label[rows] >= 0).sum() > 20]
    return max((rows for rows in labelled if len(rows) <= most), key=len)


def given(data: Path | None) -> Mentions:
    if data is None:
        return mentions(simulate(20_000, np.random.default_rng(20)))
    return read_mentions(data).mentions


def own_factor(found: Mentions, complete: bool) -> Factor:
    """Fit the factor to the blocks for training."""
    factor, score = fitted(training_blocks(found), np.random.default_rng(0), complete, jobs=2)
    print(f"fitted to training blocks, {factor.shaping}; there: {score}")
    return factor


def main() -> None:
    parser = options(__doc__, "two seeds, not five")
    parser.add_argument("--data", type=Path, help="mentions; see gumbelrace coreference --help")
    parser.add_argument("--complete", action="store_true", help="labelled persons have no other mentions")
    parser.add_argument("--least", type=int, default=LEAST, help="mentions in the smallest block")
    parser.add_argument(
        "--weights", type=Path, help="weights of the factor; default: fitted to training blocks"
    )
    chosen = parser.parse_args()
    found = given(chosen.data)
    factor = Factor.load(chosen.weights) if chosen.weights else own_factor(found, chosen.complete)
    blocks, runs = held_out(found, chosen.least, MOST), 2 if chosen.quick else 5
    task = Task(found, factor, Search(), ("sums", *RACED), runs, 0, chosen.complete, blocks)
    print(f"{sum(map(len, task.rows)):,} mentions in {len(blocks)} blocks, {runs} seeds")
    with tempfile.TemporaryDirectory() as folder:
        table_of_samplers(resolve(task, Path(folder) / "blocks", jobs=2))
    for one in baselines(task):
        print(f"{one.way:<20}F1 {one.f1:.4f}, precision {one.precision:.4f}, recall {one.recall:.4f}")
    distinct_pairs(task)
    for microseconds, most in COSTS.items():
        timed(task, microseconds, most)


if __name__ == "__main__":
    main()
