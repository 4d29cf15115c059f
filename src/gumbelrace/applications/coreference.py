"""Clusters of a file of mentions (paper, section 5.3): blocks are searched by samplers, in several runs."""

import functools
import hashlib
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

from gumbelrace.applications.block_search import SAMPLERS, Search, Searched, searched
from gumbelrace.applications.certainty import (
    NOWHERE,
    Sure,
    Threshold,
    certainty,
    is_right,
    joined,
    thresholds,
)
from gumbelrace.applications.store import Stop, Store, do_pieces, stored
from gumbelrace.kernels.gibbs import Labels
from gumbelrace.methods.exact import Exact
from gumbelrace.models.coreference.factor import Factor
from gumbelrace.models.coreference.fit import BCubed, bcubed
from gumbelrace.models.coreference.mentions import MISSING, Block, Mentions, block_of, mentions
from gumbelrace.models.coreference.simulate import simulate
from gumbelrace.tables.mentions import ReadMentions
from gumbelrace.verdict import clopper_pearson

Indices = NDArray[np.int64]
# Choices that are made again exactly, about so many.
AUDITED = 20_000
CONFIDENCE = 0.95
# Factors that are computed to know how long one takes.
TIMED = 20_000


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
        """Pairs of mentions in blocks, once for each sampler and run: time goes by them."""
        return sum(map(pairs_of, self.rows)) * self.runs * len(self.samplers)

    @property
    def identity(self) -> dict[str, Any]:
        """What another task would have to share to go on from the same store."""
        given = (sorted(self.factor.weights.items()), self.factor.shaping, self.blocks)
        data = mentions_digest(self.mentions) + hashlib.sha256(repr(given).encode()).hexdigest()
        return {"mentions": data, "search": asdict(self.search), "seed": self.seed}


def pairs_of(rows: Indices) -> int:
    """Count the ordered pairs of a block."""
    return len(rows) ** 2


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


class Calibration(NamedTuple):
    """Mentions of which it is known whether they are with their person."""

    mentions: int
    said: float  # their mean probability
    right: float  # share of those that are


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

    @functools.cached_property
    def calibration(self) -> Calibration | None:
        """What was said of mentions whose person is known, and what is so; None if there are none."""
        known = np.isfinite(self.right)
        if self.sure is None or not known.any():
            return None
        said = float(np.array(self.sure.probability)[known].mean())
        return Calibration(int(known.sum()), said, float(self.right[known].mean()))

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
    finished: Callable[[int], None] = lambda pairs: None,
) -> Resolved:
    """Search every block by every sampler, by workers; by default in a thread.

    What was stopped goes on where it was: finished blocks lie in `folder`. `finished` is called with the
    pairs of each block that is done.
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
            lambda key: finished(pairs_of(task.rows[keys[key].block])),
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
        joined([part.by_chance for part in parts], task.rows, size, np.nan).tolist(),
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
