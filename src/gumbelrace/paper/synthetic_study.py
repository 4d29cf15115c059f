"""The synthetic study: every method on every problem at every δ, in threads, one point after the other.

A point is the same whatever ran before it, so a study that goes on from its store ends as one that
was never stopped (but for the times it measured).
"""

import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import NamedTuple

import numpy as np

from gumbelrace.applications.store import Stopped, Store, done_in_threads
from gumbelrace.methods.base import Method
from gumbelrace.methods.exact import Exact, Totals
from gumbelrace.paper.records import Problem, Record
from gumbelrace.paper.synthetic_problem import (
    ARMS,
    DELTAS,
    METHODS,
    SCALES,
    SHAPES,
    SIZE,
    PaperTable,
    Prepared,
    Problems,
)
from gumbelrace.population.base import Floats
from gumbelrace.sampling import batches
from gumbelrace.verdict import wrong

# Draws of one order of the rows share it; so many are made before the rows are shuffled anew.
RESHUFFLE = 2500
# When this many draws have read all there is, they are exact scans, and so will be the others.
ENOUGH_SCANS = 300
# A point ends when it has read so many times the draws wanted: half of them, if all read 1e7 rewards.
# lil'UCB reads one reward at a time, some fifty times slower than a scan, and its batches are short.
READS_A_DRAW, PULLS_A_DRAW = 5_000_000, 15_000
SLOW, SLOW_BATCH = "lil'UCB", 5
SCAN_REWARDS, SCANS = 2_000_000, 5


class Point(NamedTuple):
    """One mark of a figure."""

    problem: Problem
    method: str
    delta: float

    @property
    def key(self) -> str:
        """Name in the store."""
        arms, shape, scale = self.problem
        return f"{arms} {shape} {scale:g} {self.method} {self.delta:g}"


@dataclass(frozen=True)
class Settings:
    """What is run.

    Attributes
    ----------
    draws : int
        Draws a point.
    seed : int
        Seed of the rewards and of all draws.
    size : int
        Number of rewards of each arm, N.
    arms : tuple of int
        Numbers of arms, D.
    """

    draws: int
    seed: int = 0
    size: int = SIZE
    arms: tuple[int, ...] = ARMS

    @property
    def identity(self) -> dict[str, int]:
        """What two studies must have in common to share points."""
        limits = {"shuffle after": RESHUFFLE, "reads a draw": READS_A_DRAW, "pulls a draw": PULLS_A_DRAW}
        return {"draws": self.draws, "seed": self.seed, "size": self.size, **limits}

    @property
    def points(self) -> list[Point]:
        """Every point of the paper's figures; those of a problem follow each other."""
        return [
            Point(Problem(arms, shape, scale), method, delta)
            for arms in reversed(self.arms)
            for scale in SCALES
            for shape in SHAPES
            for method in METHODS
            for delta in DELTAS[arms]
        ]


def expected_cost(point: Point) -> float:
    """Give a rough cost of a point, for the time left: only ratios count."""
    if point.method == SLOW:
        return 20.0
    most_read = 4.0 if point.method.startswith("Racing-EBS") else 1.0
    share = {0.1: 1.0, 1e-4: 0.1 * most_read, 1e-5: 0.02 * most_read}[point.problem.scale]
    return 0.1 + point.problem.arms * share


def run(
    settings: Settings,
    store: Store,
    jobs: int,
    finished: Callable[[Point], None] = lambda point: None,
) -> list[Record]:
    """Run what the store does not hold yet; return the records of all points, in their order.

    Parameters
    ----------
    settings : Settings
        What to run.
    store : Store
        Holds finished points.
    jobs : int
        Threads.
    finished : callable
        Called with each point that is done, or was before.
    """
    problems, points = (
        Problems(settings.seed, settings.size, kept=jobs),
        {p.key: p for p in settings.points},
    )
    work = {key: partial(measured, point, problems, settings) for key, point in points.items()}
    done_in_threads(work, store, jobs, lambda key: finished(points[key]))
    return [Record(*store.rows[key]) for key in points]


def measured(point: Point, problems: Problems, settings: Settings, stop: threading.Event) -> Record:
    """Make the draws of a point and compare them with exact ones."""
    prepared, method = problems(point.problem), METHODS[point.method](point.delta)
    rng = np.random.default_rng([settings.seed, zlib.crc32(point.key.encode())])
    # The same Gumbel variables at every point with so many arms: what differs is the method's doing.
    noise = np.random.default_rng([settings.seed, point.problem.arms])
    tally = Tally()
    most = settings.draws * (PULLS_A_DRAW if point.method == SLOW else READS_A_DRAW)
    batch = SLOW_BATCH if point.method == SLOW else max(10, 1000 // point.problem.arms)
    for population, count in _batches(prepared, settings.draws, batch, rng):
        if stop.is_set():
            raise Stopped
        if tally.draws == 0:
            method.best(population, None, rng)  # compiles
        offsets = noise.gumbel(size=(count, population.arms))
        tally.add(population, method, prepared.sums, offsets, rng)
        if tally.read >= most or tally.is_exact(population.rewards):
            break
    return tally.record(point, population.rewards)


class Tally:
    """Counts what draws did."""

    def __init__(self) -> None:
        self.draws = self.errors = self.read = 0
        self.seconds, self.scans = 0.0, list[float]()

    def add(
        self,
        population: PaperTable,
        method: Method,
        sums: Totals,
        offsets: Floats,
        rng: np.random.Generator,
    ) -> None:
        """Make draws and check them; time some exact scans between them."""
        if len(self.scans) < SCANS:
            self.scans.append(_scan_seconds(population))
        started = time.thread_time()
        found = method.best_each(population, offsets, rng)
        self.seconds += time.thread_time() - started
        self.draws += len(offsets)
        self.errors += wrong(found.arms, sums.plus(offsets))
        self.read += int(found.evaluations.sum())

    def is_exact(self, rewards: int) -> bool:
        """Whether the draws are exact scans, so that more would say nothing new."""
        return self.draws >= ENOUGH_SCANS and self.read == self.draws * rewards

    def record(self, point: Point, rewards: int) -> Record:
        """Sum up."""
        return Record(
            *point.problem,
            point.method,
            point.delta,
            self.draws,
            self.errors,
            self.read / (self.draws * rewards),
            self.seconds / self.draws,
            median(self.scans),
        )


def _batches(
    prepared: Prepared, draws: int, most: int, rng: np.random.Generator
) -> Iterator[tuple[PaperTable, int]]:
    """Cut the draws into pieces short enough to stop between them."""
    for population, part in batches(prepared.population, draws, RESHUFFLE, rng):
        for done in range(0, part, most):
            yield population, min(most, part - done)


def _scan_seconds(population: PaperTable) -> float:
    """Time an exact draw."""
    draws = max(1, SCAN_REWARDS // population.rewards)
    offsets, rng = np.zeros((draws, population.arms)), np.random.default_rng(0)
    started = time.thread_time()
    Exact().best_each(population, offsets, rng)
    return (time.thread_time() - started) / draws
