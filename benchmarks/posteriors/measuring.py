"""What a run is measured by: seconds of the clock and of the processor, effective draws, rows."""

import resource
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from problems import Problem

ENOUGH = 1_000  # effective draws
FEWEST = 60  # draws, of which effective sizes can be told
# Entries of draws that are kept at most: effective sizes of more take longer than the chains do.
MOST_ENTRIES = 10_000_000


class Seconds(NamedTuple):
    wall: float
    processor: float

    def __add__(self, other: Any) -> "Seconds":
        return Seconds(*(a + b for a, b in zip(self, other, strict=True)))

    def __sub__(self, other: "Seconds") -> "Seconds":
        return Seconds(*(a - b for a, b in zip(self, other, strict=True)))

    def times(self, factor: float) -> "Seconds":
        return Seconds(*(factor * part for part in self))


def now() -> Seconds:
    """Read the clocks; the difference of two readings is what was spent between them.

    What processes took that this one began, and that have ended, is counted: PyTensor calls a compiler.
    """
    begun = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Seconds(time.perf_counter(), time.process_time() + begun.ru_utime + begun.ru_stime)


class Law(NamedTuple):
    """Laplace's law, and what it took to find it."""

    mode: Any
    covariance: Any
    seconds: Seconds

    @property
    def root(self) -> Any:
        return np.linalg.cholesky(self.covariance)


class Task(NamedTuple):
    """What a contender is asked."""

    problem: Problem
    law: Law | None
    seconds: float  # to draw for, about
    environments: Path  # folder of environments that a contender may need beside its own


class Chain(NamedTuple):
    """What a contender gives."""

    draws: Any  # of shape (chains, draws, d), as users know them
    spent: Seconds  # on these draws
    setup: Seconds  # from the call until they could begin
    rows: float  # read for a draw
    first: tuple[Seconds, int] | None = None  # from the call to so many draws, if that was measured


def sizes_of(draws: Any) -> Any:
    """Effective sample size of each coordinate."""
    from arviz_stats.base import array_stats

    return array_stats.ess(np.asarray(draws), chain_axis=0, draw_axis=1, method="bulk")


def errors_of_sd(draws: Any) -> Any:
    """Monte Carlo error of each coordinate's standard deviation, by its squares' own effective size.

    Squares are those of differences from the mean: of coordinates far from zero, squares themselves go up
    and down as the coordinates do, and NUTS, whose draws alternate, would seem surer than it is.
    """
    from arviz_stats.base import array_stats

    squares = np.square(np.asarray(draws) - np.mean(draws, axis=(0, 1)))
    sizes = array_stats.ess(squares, chain_axis=0, draw_axis=1, method="mean")
    sd = np.sqrt(squares.mean(axis=(0, 1)))
    return 0.5 * squares.std(axis=(0, 1)) / np.sqrt(np.minimum(sizes, squares[..., 0].size)) / sd


def report(chain: Chain) -> dict[str, Any]:
    """Give what is shown of a chain, and what it is compared by."""
    sizes = sizes_of(chain.draws)
    least, count = float(np.nanmin(sizes)), int(np.prod(chain.draws.shape[:2]))
    spent, made = chain.first or (chain.setup, 0)
    missing = max(ENOUGH - made * least / count, 0.0)
    return {
        "setup": chain.setup,
        "rate": [least / part for part in chain.spent],
        "rows": chain.rows,
        "cold": spent + chain.spent.times(missing / least),
        "extrapolated": least < ENOUGH,
        "draws": count,
        "sizes": sizes.tolist(),
        "mean": chain.draws.mean(axis=(0, 1)).tolist(),
        "sd": chain.draws.std(axis=(0, 1)).tolist(),
        "errors_of_sd": errors_of_sd(chain.draws).tolist(),
    }


def tuning(task: Task) -> int:
    """Give the steps of tuning: fewer, where the data are many and each takes long."""
    entries = sum(np.size(part) for part in task.problem.data)
    return int(np.clip(1e9 / entries, 100, 500))
