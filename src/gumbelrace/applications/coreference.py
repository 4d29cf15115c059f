"""Clusters of a file of mentions (paper, section 5.3): blocks are searched by samplers, in several runs.

Weights of the factor come from a regression; its shaping is chosen by the clusters that it leads to.
"""

import functools
import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.applications.certainty import (
    NOWHERE,
    Sure,
    Threshold,
    certainty,
    is_right,
    joined,
    thresholds,
)
from gumbelrace.applications.store import Stop, Stopped, Store, do_pieces, stored, write_tables
from gumbelrace.kernels.clusters.kernel import ClusterGibbs
from gumbelrace.kernels.clusters.worker import MOST_KEPT, Keep
from gumbelrace.kernels.gibbs import Labels
from gumbelrace.kernels.schedules import Geometric, Shuffled
from gumbelrace.methods.base import Method
from gumbelrace.methods.bounds import Marginal
from gumbelrace.methods.exact import Exact
from gumbelrace.methods.race import Race
from gumbelrace.models.coreference.factor import Factor
from gumbelrace.models.coreference.fit import BCubed, bcubed, fit, rank_shapings
from gumbelrace.models.coreference.mentions import MISSING, Block, Mentions, block_of, mentions
from gumbelrace.models.coreference.simulate import simulate
from gumbelrace.population.pairs import Pairs
from gumbelrace.tables.mentions import ReadMentions
from gumbelrace.tables.writing import Kind
from gumbelrace.verdict import clopper_pearson

# Rows at the first look at a cluster: the paper's.
FIRST = 3
Indices = NDArray[np.int64]
# Choices that are made again exactly, about so many.
AUDITED = 20_000
CONFIDENCE = 0.95
# Factors that are computed to know how long one takes.
TIMED = 20_000
DIGITS = 4  # of probabilities in tables
CLUSTERS = "the cluster of each mention"
SURE_CLUSTERS = (
    "the cluster of each mention, the probability that it belongs there, and the runner-up: the cluster it "
    "is in most often otherwise (-1: one of its own; nothing: it never left)"
)
THRESHOLDS_OF = "B³ if mentions below a probability are taken out of their clusters"


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


@dataclass(frozen=True, eq=False)
class Task:
    """What is searched, and how."""

    mentions: Mentions
    factor: Factor
    search: Search
    samplers: Sequence[str]  # names of `SAMPLERS`
    runs: int = 1  # how often each searches, with other random numbers
    seed: int = 0  # seed of everything
    complete: bool = False  # whether all mentions of labelled persons are labelled; see `bcubed`
    blocks: Sequence[int] | None = None  # numbers of the blocks to search; default: all

    @functools.cached_property
    def rows(self) -> list[Indices]:
        """Rows of each block that is searched."""
        found = self.mentions.rows_by_block()
        return found if self.blocks is None else [found[block] for block in self.blocks]

    @property
    def work(self) -> int:
        """Number of mentions that are searched, counted once for each sampler and run."""
        return sum(map(len, self.rows)) * self.runs * len(self.samplers)

    @property
    def identity(self) -> dict[str, Any]:
        """What another task would have to share to go on from the same store."""
        given = (sorted(self.factor.weights.items()), self.factor.shaping, self.blocks)
        data = mentions_digest(self.mentions) + hashlib.sha256(repr(given).encode()).hexdigest()
        return {"mentions": data, "search": asdict(self.search), "seed": self.seed}


def mentions_digest(mentions: Mentions) -> str:
    """Give a text that other mentions do not have."""
    digest = hashlib.sha256(repr(mentions.names).encode())
    for array in (mentions.name, mentions.block, mentions.year, mentions.country):
        digest.update(np.ascontiguousarray(array).tobytes())
    for one in mentions.sets:
        digest.update(one.starts.tobytes() + one.tokens.tobytes())
    return digest.hexdigest()


class Piece(NamedTuple):
    """A piece of the work: one search of a block."""

    block: int
    sampler: str
    run: int

    @property
    def key(self) -> str:
        return f"{self.sampler}/{self.run}/{self.block}"


class Point(NamedTuple):
    """All blocks after a sweep of one run."""

    sampler: str
    run: int
    sweep: int  # from 1 on
    evaluations: int  # so far
    exact: int  # those of an exact sampler so far
    share: float  # evaluations of this sweep, of those of an exact sweep
    seconds: float  # processor time so far
    clusters: int
    precision: float | None
    recall: float | None
    f1: float | None


class Checked(NamedTuple):
    """Choices of a sampler made again exactly."""

    sampler: str
    errors: int
    choices: int

    @property
    def interval(self) -> tuple[float, float]:
        """95% Clopper-Pearson interval for the probability of an error."""
        return clopper_pearson(self.errors, self.choices, CONFIDENCE)


@dataclass(frozen=True, eq=False)
class Resolved:
    """What a task gave."""

    task: Task
    points: list[Point]  # how good clusters were after each sweep
    # By sampler, the clusters of its first run: a number for each mention, -1 for those not searched.
    clusters: dict[str, Indices]
    audits: list[Checked]  # of each sampler that races
    sure: Sure | None = None  # how sure the clusters of the first sampler are, if that was asked for
    pair_seconds: float | None = None  # processor time of computing one factor, if a sampler races

    @functools.cached_property
    def thresholds(self) -> list[Threshold]:
        """B³ against the probability below which mentions are taken out; none without labels."""
        found = self.clusters[self.task.samplers[0]]
        if self.sure is None or judged(self.task, found) is None:
            return []
        rows = np.flatnonzero(found >= 0)
        probability = np.array(self.sure.probability)[rows]
        return thresholds(self.task.mentions.label[rows], found[rows], probability, self.task.complete)

    @functools.cached_property
    def right(self) -> NDArray[np.float64]:
        """Whether each mention is with its person, where that is known; see `is_right`."""
        return is_right(self.task.mentions.label, self.clusters[self.task.samplers[0]])

    def last(self, sampler: str) -> list[Point]:
        """Give the last point of each run of a sampler."""
        return [p for p in self.points if p.sampler == sampler and p.sweep == self.task.search.sweeps]


def simulated_mentions(count: int, seed: int) -> ReadMentions:
    """Simulate mentions, whose identifiers are their numbers."""
    columns = simulate(count, np.random.default_rng([seed, 20]))
    ids = [str(row) for row in range(len(columns["author"]))]
    return ReadMentions(ids, mentions(columns), texts=columns)


def resolve(
    task: Task,
    folder: Path,
    workers: Executor | None = None,
    finished: Callable[[int], None] = lambda mentions: None,
) -> Resolved:
    """Search every block by every sampler, by workers; by default in a thread.

    What was stopped goes on where it was: finished blocks lie in `folder`. `finished` is called with the
    number of mentions of each block that is done.
    """
    largest_first = sorted(range(len(task.rows)), key=lambda b: -len(task.rows[b]))
    pieces = [Piece(*one) for one in product(largest_first, task.samplers, range(task.runs))]
    keys = {piece.key: piece for piece in pieces}
    given = nullcontext(workers) if workers else ThreadPoolExecutor(1)
    with stored(folder, task.identity) as store, given as pool:
        do_pieces(
            partial(one_block, task, Blocks(task)),
            keys,
            store,
            pool,
            lambda key: finished(len(task.rows[keys[key].block])),
        )
        return summed_up(task, store)


class Blocks:
    """Blocks of a task: a few are kept, as several samplers and runs need them one after the other."""

    KEPT = 16

    def __init__(self, task: Task) -> None:
        self._task = task
        self._made = functools.lru_cache(self.KEPT)(lambda b: block_of(task.mentions, task.rows[b]))

    def __reduce__(self) -> Any:
        """Leave to pickle what blocks are made of."""
        return Blocks, (self._task,)

    def __call__(self, number: int) -> Block:
        """Give a block."""
        return self._made(number)


def one_block(task: Task, prepared: Callable[[int], Block], piece: Piece, stop: Stop) -> Searched:
    """Search a block; the same random numbers for every sampler."""
    kernel = task.search.kernel(task.factor.pairs(prepared(piece.block)), SAMPLERS[piece.sampler])
    rng = np.random.default_rng([task.seed, piece.run, piece.block])
    found = searched(kernel, task.search, rng, stop)
    if not task.search.samples or (piece.sampler, piece.run) != (task.samplers[0], 0):
        return found
    sure = certainty(kernel, found.labels[-1], task.search.samples, rng, stop)
    return found._replace(sure=[*sure])


def summed_up(task: Task, store: Store) -> Resolved:
    points: list[Point] = []
    clusters = {}
    for sampler in task.samplers:
        for run in range(task.runs):
            blocks = [Searched(*store.rows[Piece(b, sampler, run).key]) for b in range(len(task.rows))]
            points += run_points(task, sampler, run, blocks)
            if run == 0:
                clusters[sampler] = together(task, [found.labels[-1] for found in blocks])
    delta = task.search.delta
    races = [name for name in task.samplers if not isinstance(SAMPLERS[name].method(delta), Exact)]
    audits = [audited(task, store, name) for name in races]
    return Resolved(task, points, clusters, audits, sure_of(task, store), timed(task) if races else None)


def sure_of(task: Task, store: Store) -> Sure | None:
    """Put together how sure the clusters of all blocks are, runners-up by the numbers of `together`."""
    if not task.search.samples:
        return None
    found = [Searched(*store.rows[Piece(b, task.samplers[0], 0).key]) for b in range(len(task.rows))]
    parts, used = [Sure(*(one.sure or ())) for one in found], 0
    runners = []
    for one, part in zip(found, parts, strict=True):
        clusters, chosen = np.unique(one.labels[-1]), np.array(part.runner_up)
        runners.append(np.where(chosen < 0, chosen, used + np.searchsorted(clusters, chosen)))
        used += len(clusters)
    size = len(task.mentions)
    return Sure(
        joined([part.probability for part in parts], task.rows, size, np.nan).tolist(),
        joined(runners, task.rows, size, NOWHERE).astype(np.int64).tolist(),
        joined([part.runner_up_probability for part in parts], task.rows, size, np.nan).tolist(),
    )


def timed(task: Task) -> float:
    """Measure how long a factor takes, in the largest block."""
    rows = max(task.rows, key=len)
    pairs = task.factor.pairs(block_of(task.mentions, rows))
    i, j = np.random.default_rng(task.seed).integers(len(rows), size=(2, TIMED))
    i, j = i[i != j], j[i != j]
    if len(i) == 0:
        return 0.0
    pairs.values(i, j)  # compiled, and in the caches
    started = time.thread_time()
    pairs.values(i, j)
    return (time.thread_time() - started) / len(i)


def run_points(task: Task, sampler: str, run: int, blocks: Sequence[Searched]) -> Iterator[Point]:
    evaluations, exact = (
        np.sum([getattr(found, name) for found in blocks], axis=0) for name in ("evaluations", "rewards")
    )
    seconds = np.cumsum(np.sum([found.seconds for found in blocks], axis=0))
    so_far, exact_so_far = np.cumsum(evaluations), np.cumsum(exact)
    so_far[-1] += sum(found.weighing for found in blocks)
    for sweep in range(task.search.sweeps):
        clusters = together(task, [found.labels[sweep] for found in blocks])
        score = judged(task, clusters)
        yield Point(
            sampler,
            run,
            sweep + 1,
            int(so_far[sweep]),
            int(exact_so_far[sweep]),
            float(evaluations[sweep] / max(exact[sweep], 1)),
            float(seconds[sweep]),
            int(clusters.max()) + 1,
            *(score or (None, None, None)),
        )


def together(task: Task, labels: Sequence[Sequence[int]]) -> Indices:
    """Give each mention of the file a number for its cluster, from 0 on; -1 if it was not searched."""
    clusters, used = np.full(len(task.mentions), -1), 0
    for rows, of_block in zip(task.rows, labels, strict=True):
        numbers = np.unique(np.asarray(of_block), return_inverse=True)[1]
        clusters[rows] = used + numbers
        used += int(numbers.max()) + 1
    return clusters


def judged(task: Task, clusters: Indices) -> BCubed | None:
    """Compare clusters with the labels, if there are any."""
    searched = clusters >= 0
    if not (task.mentions.label[searched] != MISSING).any():
        return None
    return bcubed(task.mentions.label[searched], clusters[searched], task.complete)


def audited(task: Task, store: Store, sampler: str) -> Checked:
    """Make sweeps of some blocks again, each choice also exactly: the second and the last of a run."""
    errors = choices = 0
    rng = np.random.default_rng([task.seed, 1])
    search = replace(task.search, merges=False)
    for b in rng.permutation(len(task.rows)).tolist():
        if choices >= AUDITED:
            break
        found = Searched(*store.rows[Piece(b, sampler, 0).key])
        kernel = search.kernel(task.factor.pairs(block_of(task.mentions, task.rows[b])), SAMPLERS[sampler])
        for sweep in {0, task.search.sweeps - 1}:
            state = Labels(np.array(found.labels[sweep], np.int32), sweep)
            wrong, checked, *_ = kernel.audit(rng, state)
            errors, choices = errors + wrong, choices + checked
    return Checked(sampler, errors, choices)


class Assigned(NamedTuple):
    """A row of the table of clusters."""

    mention_id: str
    block: str
    cluster: int


class SurelyAssigned(NamedTuple):
    """A row of the table of clusters that says how sure it is."""

    mention_id: str
    block: str
    cluster: int
    probability: float | None  # that the mention sits with the core of its cluster
    # The cluster it sits with most often otherwise; -1: by itself; None: it never left.
    runner_up: int | None
    runner_up_probability: float | None


def assigned(resolved: Resolved, ids: Sequence[str]) -> list[Any]:
    """Give the cluster of each mention, and how sure it is where that is known."""
    found = resolved.task.mentions
    clusters = resolved.clusters[resolved.task.samplers[0]].tolist()
    names = [found.block_names[number] for number in found.block.tolist()]
    rows = zip(ids, names, clusters, strict=True)
    if resolved.sure is None:
        return [Assigned(*row) for row in rows]
    return [
        SurelyAssigned(*row, round(p, DIGITS), None if other == NOWHERE else other, round(q, DIGITS))
        for row, p, other, q in zip(rows, *resolved.sure, strict=True)
    ]


def write_resolved(
    folder: Path, resolved: Resolved, ids: Sequence[str], kind: Kind = Kind.CSV
) -> dict[str, str]:
    """Write the clusters and what a page shows; return the files and what is in them."""
    tables: dict[str, tuple[str, Sequence[Any]]] = {
        "clusters": (CLUSTERS if resolved.sure is None else SURE_CLUSTERS, assigned(resolved, ids)),
        "sweeps": ("what each sweep reached and took", resolved.points),
    }
    if resolved.thresholds:
        tables["thresholds"] = (THRESHOLDS_OF, resolved.thresholds)
    return write_tables(folder, tables, kind)
