"""The paper's synthetic study (section 5.1): every method on every problem at every δ, and its records.

p(X) is fixed, and every state has N rewards of one of three shapes, shifted and scaled to a standard
deviation σ that says how hard the problem is. The paper shows its p(X) in a picture only; ours is a
linear ramp, p ∝ 1..D.

A point is the same whatever ran before it, so a study
that goes on from its store ends as one that was never stopped (but for the times it measured).
"""

import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import lru_cache, partial
from statistics import median
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from gumbelrace.applications.demo import WatchedRace, normalised
from gumbelrace.applications.store import Stop, Stopped, Store, do_pieces
from gumbelrace.core.pool import processors
from gumbelrace.methods.base import Method
from gumbelrace.methods.betting import Betting
from gumbelrace.methods.bounds import Marginal, Normal, Serfling
from gumbelrace.methods.exact import Exact, Totals, compared
from gumbelrace.methods.lilucb import LilUCB
from gumbelrace.methods.race import Race
from gumbelrace.paper.claims import Claim
from gumbelrace.population.base import Floats
from gumbelrace.population.table import Table
from gumbelrace.sampling import batches
from gumbelrace.verdict import clopper_pearson, wrong

SIZE = 100_000
ARMS = (2, 10, 100)
SCALES = (0.1, 1e-4, 1e-5)
Shape = Callable[[np.random.Generator, tuple[int, int]], Floats]
SHAPES: dict[str, Shape] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "uniform": lambda rng, shape: rng.uniform(size=shape),
    "lognormal": lambda rng, shape: rng.lognormal(0.0, 2.0, size=shape),
}
# From left to right in the paper's figures; two thirds of the time goes into 100 arms.
DELTAS = {2: (1e-3, 3e-3, 1e-2, 3e-2, 0.1), 10: (1e-3, 3e-3, 1e-2, 3e-2, 0.1), 100: (1e-3, 1e-2, 0.1)}
# The paper takes the estimated deviation for the true one.
PAPER_NORMAL = Normal(student=False)
METHODS: dict[str, Callable[[float], Method]] = {
    "lil'UCB": LilUCB,
    "Racing-EBS": lambda delta: Race(Serfling(), delta),
    "Racing-EBS, marginal": lambda delta: Race(Serfling(), delta, variance=Marginal()),
    "Racing-Normal": lambda delta: Race(PAPER_NORMAL, delta),
    "Racing-Normal, marginal": lambda delta: Race(PAPER_NORMAL, delta, variance=Marginal()),
    "Betting": Betting,
}
# Draws of one order of the rows share it; so many are made before the rows are shuffled anew.
RESHUFFLE = 2500
# When this many draws have read all there is, they are exact scans, and so will be the others.
ENOUGH_SCANS = 300
# A point ends when it has read so many times the draws wanted: half of them, if all read 1e7 rewards.
# lil'UCB reads one reward at a time, some fifty times slower than a scan, and its batches are short.
READS_A_DRAW, PULLS_A_DRAW = 5_000_000, 15_000
SLOW, SLOW_BATCH = "lil'UCB", 5
SCAN_REWARDS, SCANS = 2_000_000, 5


class Problem(NamedTuple):
    """A distribution of section 5.1: D arms, the shape of their rewards, and their deviation σ."""

    arms: int
    shape: str
    scale: float


class Record(NamedTuple):
    """What one method did on one problem at one δ."""

    arms: int
    shape: str
    scale: float
    method: str
    delta: float
    draws: int
    errors: int
    read: float  # share of the rewards
    seconds: float  # processor time a draw
    scan_seconds: float  # of an exact scan, measured in turns with it

    @property
    def problem(self) -> Problem:
        return Problem(self.arms, self.shape, self.scale)

    @property
    def error(self) -> float:
        return self.errors / self.draws

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper-Pearson interval of the error, 95%."""
        return clopper_pearson(self.errors, self.draws, 0.95)

    @property
    def speed_up(self) -> float:
        """Time of an exact scan over that of a draw."""
        return self.scan_seconds / self.seconds


class Broken(NamedTuple):
    """What one method did at one δ in a case made to break Racing-Normal."""

    case: str
    method: str
    delta: float
    draws: int
    errors: int
    read: float  # share of the rewards

    @property
    def error(self) -> float:
        return self.errors / self.draws

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper-Pearson interval of the error, 95%."""
        return clopper_pearson(self.errors, self.draws, 0.95)


class BoundPoint(NamedTuple):
    """G(T): how far apart two means must be for a method to tell them apart after T rows."""

    method: str
    rows: int
    width: float  # in standard deviations of a reward


class Level(NamedTuple):
    """B_Normal at one δ and share of the first look: the paper's number and ours in both readings."""

    delta: float
    first_fraction: float
    printed: float
    two_sided: float
    one_sided: float


class SyntheticStudy(NamedTuple):
    """All that the page of section 5.1 shows."""

    facts: Mapping[str, str]  # what was run, in words: label -> value
    notes: Sequence[str]  # where it departs from the paper
    probabilities: Sequence[float]  # p(X) of Figure 1a
    records: Sequence[Record]
    claims: Sequence[Claim]
    broken: Sequence[Broken]
    bounds: Sequence[BoundPoint]
    levels: Sequence[Level]
    race: WatchedRace
    files: Mapping[str, str] = MappingProxyType({})  # beside the page: name -> what is in it


class PaperTable(Table):
    """A table on which a race goes on to its end, as in the paper: none turns to a scan before."""

    scan_speed = 1.0


class Prepared(NamedTuple):
    """A problem's rewards, and their exact sums."""

    population: PaperTable
    sums: Totals


def probabilities(arms: int) -> Floats:
    """Give p(X), a linear ramp."""
    ramp: Floats = np.arange(1.0, arms + 1.0)
    return ramp / float(ramp.sum())


def rewards(problem: Problem, seed: int, size: int = SIZE) -> Floats:
    """Draw the rewards of a problem; those of another scale are the same, scaled."""
    rng = np.random.default_rng([seed, problem.arms, list(SHAPES).index(problem.shape)])
    drawn = SHAPES[problem.shape](rng, (size, problem.arms))
    return normalised(drawn, np.log(probabilities(problem.arms)), problem.scale)


class Problems:
    """The problems of a study, made when first asked for; the last ones asked for are kept."""

    def __init__(self, seed: int, size: int, kept: int | None = None) -> None:
        self._given, self._lock = (seed, size, kept), threading.Lock()
        self._make = lru_cache(kept or processors())(partial(_prepared, seed=seed, size=size))

    def __reduce__(self) -> Any:
        """Leave to pickle what problems are made of."""
        return Problems, self._given

    def __call__(self, problem: Problem) -> Prepared:
        """Give a problem; several threads may ask at once."""
        with self._lock:
            return self._make(problem)


def _prepared(problem: Problem, seed: int, size: int) -> Prepared:
    population = PaperTable(rewards(problem, seed, size))
    return Prepared(population, compared(population))


class Point(NamedTuple):
    """One mark of a figure."""

    problem: Problem
    method: str
    delta: float

    @property
    def key(self) -> str:
        arms, shape, scale = self.problem
        return f"{arms} {shape} {scale:g} {self.method} {self.delta:g}"


@dataclass(frozen=True)
class Settings:
    """What is run."""

    draws: int  # a point
    seed: int = 0  # of the rewards and of all draws
    size: int = SIZE  # rewards of each arm, N
    arms: tuple[int, ...] = ARMS  # numbers of arms, D

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
    workers: Executor,
    finished: Callable[[Point], None] = lambda point: None,
) -> list[Record]:
    """Run what the store does not hold yet; return the records of all points, in their order.

    `finished` is called with each point that is done, or was before.
    """
    problems = Problems(settings.seed, settings.size)
    points = {point.key: point for point in settings.points}
    work = partial(measured, problems, settings)
    do_pieces(work, points, store, workers, lambda key: finished(points[key]))
    return [Record(*store.rows[key]) for key in points]


def measured(problems: Problems, settings: Settings, point: Point, stop: Stop) -> Record:
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
    """What draws of a point did, counted."""

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
    draws = max(1, SCAN_REWARDS // population.rewards)
    offsets, rng = np.zeros((draws, population.arms)), np.random.default_rng(0)
    started = time.thread_time()
    Exact().best_each(population, offsets, rng)
    return (time.thread_time() - started) / draws
