"""Clusters of a file of mentions: all blocks, several samplers and runs, and how good the clusters are."""

import functools
import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.applications.coreference_search import SAMPLERS, Search, Searched, searched
from gumbelrace.applications.store import Store, done_in_threads, stored
from gumbelrace.kernels.gibbs import Labels
from gumbelrace.methods.exact import Exact
from gumbelrace.models.coreference.factor import Factor
from gumbelrace.models.coreference.fit import BCubed, bcubed
from gumbelrace.models.coreference.mentions import MISSING, Block, Mentions, block_of, mentions
from gumbelrace.models.coreference.simulate import simulate
from gumbelrace.tables.mentions import ReadMentions
from gumbelrace.tables.writing import write_rows
from gumbelrace.verdict import clopper_pearson

Indices = NDArray[np.int64]
# Choices that are made again exactly, about so many.
AUDITED = 20_000
CONFIDENCE = 0.95
CONTENTS = {"clusters": "the cluster of each mention", "sweeps": "what each sweep reached and took"}


@dataclass(frozen=True, eq=False)
class Task:
    """What is searched, and how.

    Attributes
    ----------
    mentions : Mentions
        All mentions.
    factor : Factor
        The pairwise factor.
    search : Search
        How a block is searched.
    samplers : sequence of str
        Names of `SAMPLERS`.
    runs : int
        How often each searches, with other random numbers.
    seed : int
        Seed of everything.
    complete : bool
        Whether all mentions of labelled persons are labelled; see `bcubed`.
    blocks : sequence of int, optional
        Numbers of the blocks to search. Default: all of them.
    """

    mentions: Mentions
    factor: Factor
    search: Search
    samplers: Sequence[str]
    runs: int = 1
    seed: int = 0
    complete: bool = False
    blocks: Sequence[int] | None = None

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
        digest = hashlib.sha256()
        for array in (self.mentions.name, self.mentions.block, self.mentions.year, self.mentions.country):
            digest.update(np.ascontiguousarray(array).tobytes())
        for one in self.mentions.sets:
            digest.update(one.starts.tobytes() + one.tokens.tobytes())
        digest.update(repr(self.mentions.names).encode())
        digest.update(repr((sorted(self.factor.weights.items()), self.factor.shaping)).encode())
        digest.update(repr(self.blocks).encode())
        return {"mentions": digest.hexdigest(), "search": asdict(self.search), "seed": self.seed}


class Piece(NamedTuple):
    """A piece of the work: one search of a block."""

    block: int
    sampler: str
    run: int

    @property
    def key(self) -> str:
        """Name in the store."""
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
    """What a task gave.

    Attributes
    ----------
    task : Task
        What was searched.
    points : list of Point
        How good clusters were after each sweep.
    clusters : dict
        For each sampler, the clusters of its first run: a number for each mention, from 0 on; -1 for those
        that were not searched.
    audits : list of Checked
        For each sampler that races.
    """

    task: Task
    points: list[Point]
    clusters: dict[str, Indices]
    audits: list[Checked]

    def last(self, sampler: str) -> list[Point]:
        """Give the last point of each run of a sampler."""
        return [p for p in self.points if p.sampler == sampler and p.sweep == self.task.search.sweeps]


def simulated_mentions(count: int, seed: int) -> ReadMentions:
    """Simulate mentions, whose identifiers are their numbers."""
    columns = simulate(count, np.random.default_rng([seed, 20]))
    return ReadMentions([str(row) for row in range(len(columns["author"]))], mentions(columns))


def resolve(
    task: Task, folder: Path, jobs: int = 1, finished: Callable[[int], None] = lambda mentions: None
) -> Resolved:
    """Search every block by every sampler.

    What was stopped goes on where it was: finished blocks lie in `folder`.

    Parameters
    ----------
    task : Task
        What to search.
    folder : Path
        Where finished blocks are kept.
    jobs : int
        Threads.
    finished : callable
        Called with the number of mentions of each block that is done.
    """
    largest_first = sorted(range(len(task.rows)), key=lambda b: -len(task.rows[b]))
    pieces = [Piece(*one) for one in product(largest_first, task.samplers, range(task.runs))]
    # A few blocks are kept, as several samplers and runs need them one after the other.
    block = functools.lru_cache(maxsize=jobs + 1)(lambda b: block_of(task.mentions, task.rows[b]))
    work = {piece.key: partial(one_block, task, block, piece) for piece in pieces}
    sizes = {piece.key: len(task.rows[piece.block]) for piece in pieces}
    with stored(folder, task.identity) as store:
        done_in_threads(work, store, jobs, lambda key: finished(sizes[key]))
        return summed_up(task, store)


def one_block(
    task: Task, prepared: Callable[[int], Block], piece: Piece, stop: threading.Event
) -> Searched:
    """Search a block; the same random numbers for every sampler."""
    kernel = task.search.kernel(task.factor.pairs(prepared(piece.block)), SAMPLERS[piece.sampler])
    rng = np.random.default_rng([task.seed, piece.run, piece.block])
    return searched(kernel, task.search, rng, stop)


def summed_up(task: Task, store: Store) -> Resolved:
    """Put the blocks of each run together."""
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
    return Resolved(task, points, clusters, [audited(task, store, name) for name in races])


def run_points(task: Task, sampler: str, run: int, blocks: Sequence[Searched]) -> Iterator[Point]:
    """Give the points of a run."""
    made, exact = (np.sum([found[k] for found in blocks], axis=0) for k in (1, 2))
    seconds = np.cumsum(np.sum([found.seconds for found in blocks], axis=0))
    so_far, exact_so_far = np.cumsum(made), np.cumsum(exact)
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
            float(made[sweep] / max(exact[sweep], 1)),
            float(seconds[sweep]),
            int(clusters.max()) + 1,
            *(score or (None, None, None)),
        )


def together(task: Task, labels: Sequence[Sequence[int]]) -> Indices:
    """Give each mention of the file a number for its cluster, from 0 on; -1 if it was not searched."""
    clusters, used = np.full(len(task.mentions), -1), 0
    for rows, of_block in zip(task.rows, labels, strict=True):
        own = np.unique(np.asarray(of_block), return_inverse=True)[1]
        clusters[rows] = used + own
        used += int(own.max()) + 1
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
            wrong, made, *_ = kernel.audit(rng, state)
            errors, choices = errors + wrong, choices + made
    return Checked(sampler, errors, choices)


class Assigned(NamedTuple):
    """A row of clusters.csv."""

    mention_id: str
    block: str
    cluster: int


def write_resolved(folder: Path, resolved: Resolved, ids: Sequence[str]) -> dict[str, str]:
    """Write the clusters and what a page shows; return the files and what is in them."""
    found = resolved.task.mentions
    clusters = resolved.clusters[resolved.task.samplers[0]].tolist()
    names = [found.block_names[number] for number in found.block.tolist()]
    rows = [Assigned(*row) for row in zip(ids, names, clusters, strict=True)]
    tables: dict[str, Sequence[Any]] = {"clusters": rows, "sweeps": resolved.points}
    return {
        name: CONTENTS[table] for table, kept in tables.items() for name in write_rows(folder, table, kept)
    }
