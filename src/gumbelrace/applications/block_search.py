"""The search of a block of mentions for its most probable clusters, and the factor fitted by such searches.

Weights of the factor come from a regression; its shaping is chosen by the clusters that it leads to.
"""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.applications.store import Stopped
from gumbelrace.kernels.clusters.kernel import ClusterGibbs
from gumbelrace.kernels.clusters.worker import MOST_KEPT, Keep
from gumbelrace.kernels.gibbs import Labels
from gumbelrace.kernels.schedules import Geometric, Shuffled
from gumbelrace.methods.base import Method
from gumbelrace.methods.bounds import Marginal
from gumbelrace.methods.exact import Exact
from gumbelrace.methods.race import Race
from gumbelrace.models.coreference.factor import Factor
from gumbelrace.models.coreference.fit import BCubed, fit, rank_shapings
from gumbelrace.models.coreference.mentions import MISSING, Block
from gumbelrace.population.pairs import Pairs

# Rows at the first look at a cluster: the paper's.
FIRST = 3


class Sampler(NamedTuple):
    """How mentions choose their clusters: who decides, and what is kept of the factor's values."""

    method: Callable[[float], Method]
    keep: Keep
    ranged: bool = True  # whether the range of the factor is used


SAMPLERS = {
    "exact": Sampler(lambda delta: Exact(), Keep.NOTHING),
    "sums": Sampler(lambda delta: Exact(), Keep.SUMS),
    "raced": Sampler(lambda delta: Race(delta=delta, first=FIRST), Keep.NOTHING),
    "pairs": Sampler(lambda delta: Race(delta=delta, first=FIRST), Keep.PAIRS),
    "paper": Sampler(
        lambda delta: Race(variance=Marginal(shrink=0.0), delta=delta, first=FIRST), Keep.NOTHING, False
    ),
}


@dataclass(frozen=True)
class Search:
    """How a block is searched."""

    sweeps: int = 10  # of each start
    cold: int = 3  # of these, at the end, with temperature 0
    hottest: float = 1.0  # temperature of the first sweep; they fall geometrically
    coolest: float = 0.1  # of the last one that is not cold
    delta: float = 0.05  # how likely the error of a choice may be
    # Whether every mention starts in a cluster of its own, as in the paper; otherwise mentions enter one
    # by one in the first sweep, which lets races read less.
    placed: bool = False
    merges: bool = True  # whether to try to merge clusters after each sweep
    starts: int = 4  # searches of a block; the partition of highest probability is kept
    # Sweeps at temperature 1 after the search of a task's first sampler and run, which say how sure its
    # clusters are; 0: none.
    samples: int = 0

    def kernel(self, pairs: Pairs, sampler: Sampler) -> ClusterGibbs:
        """Make the kernel whose steps are the sweeps."""
        warm = max(self.sweeps - self.cold, 1)
        ratio = (self.coolest / self.hottest) ** (1.0 / max(warm - 1, 1))
        annealing = Geometric(self.hottest, ratio, zero_after=warm)
        method = sampler.method(self.delta)
        if not sampler.ranged:
            pairs = pairs.without_range()
        return ClusterGibbs(
            pairs,
            method=method,
            keep=sampler.keep,
            scan=Shuffled(),
            annealing=annealing,
            merges=self.merges,
        )


def picked(mentions: int) -> str:
    """Name the sampler that is likely to be fastest: exact with sums, as long as they fit into memory."""
    return "sums" if mentions <= MOST_KEPT else "raced"


class Searched(NamedTuple):
    """The search of one block; an entry for each sweep, of all starts together, but for the labels."""

    labels: list[list[int]]  # the cluster of each mention, of the best start
    evaluations: list[int]  # factors computed
    rewards: list[int]  # those of an exact sweep
    seconds: list[float]  # processor time
    weighing: int  # factors computed to compare the starts
    sure: list[Any] | None = None  # the fields of `Sure`, if that was asked for


def searched(
    kernel: ClusterGibbs, search: Search, rng: np.random.Generator, stop: threading.Event
) -> Searched:
    """Search a block from every start; keep the best, and count what all of them took."""
    starts = [one_start(kernel, search, rng, stop) for _ in range(search.starts)]
    best, weighing = 0, 0
    if search.starts > 1:
        states = [Labels(np.array(labels[-1], np.int32)) for labels, _ in starts]
        weights = [kernel.log_weight(state) for state in states]
        best = int(np.argmax([weight for weight, _ in weights]))
        weighing = sum(computed for _, computed in weights)
    evaluations, rewards, seconds = np.sum([counts for _, counts in starts], axis=0).tolist()
    return Searched(
        starts[best][0], [int(n) for n in evaluations], [int(n) for n in rewards], seconds, weighing
    )


def one_start(
    kernel: ClusterGibbs, search: Search, rng: np.random.Generator, stop: threading.Event
) -> tuple[list[list[int]], NDArray[np.float64]]:
    """Make the sweeps of one start: the labels after each; factors computed, rewards and seconds."""
    state, labels, counts = kernel.start(placed=search.placed), [], np.zeros((3, search.sweeps))
    for sweep in range(search.sweeps):
        if stop.is_set():
            raise Stopped
        started, before = time.thread_time(), kernel.computed
        state, info = kernel.step(rng, state)
        labels.append(state.labels.tolist())
        counts[:, sweep] = kernel.computed - before, info.rewards, time.thread_time() - started
    return labels, counts


# All shapings are tried on blocks up to a size, as larger ones would take most of the time; then the best
# few of them, more thoroughly, on blocks up to another.
QUICK, SMALL = Search(starts=2), 1000
THOROUGH, LARGE, FEW = Search(), 3000, 6


def fitted(
    blocks: Sequence[Block], rng: np.random.Generator, complete: bool = False, jobs: int = 1
) -> tuple[Factor, BCubed]:
    """Fit the weights, then choose the shaping; give the factor, and the B³ it has on these blocks.

    Blocks without labelled mentions are left out. `complete` is as in `bcubed`.
    """
    usable = [block for block in blocks if len(block) > 1 and (block.label != MISSING).any()]
    factor = fit(usable, rng, complete)
    small, large = ([b for b in usable if len(b) <= most] or usable for most in (SMALL, LARGE))
    with ThreadPoolExecutor(jobs) as pool:
        first = rank_shapings(factor, small, partial(clusters, QUICK), complete, apply=pool.map)
        few = [one.shaping for one, _ in first[:FEW]]
        return rank_shapings(factor, large, partial(clusters, THOROUGH), complete, few, pool.map)[0]


def clusters(search: Search, pairs: Pairs) -> NDArray[np.int64]:
    """Cluster a block exactly; always with the same random numbers."""
    kernel = search.kernel(pairs, SAMPLERS["sums"])
    found = searched(kernel, search, np.random.default_rng(0), threading.Event())
    return np.array(found.labels[-1], np.int64)
