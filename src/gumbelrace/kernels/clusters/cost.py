"""Which way of sampling clusters is likely to be fastest for a factor, from what one value of it costs."""

import math
import time
from typing import NamedTuple

import numpy as np

from gumbelrace.errors import InvalidArgument
from gumbelrace.jit import check_generator
from gumbelrace.kernels.checks import check_pairs
from gumbelrace.population.base import checked_count
from gumbelrace.population.pairs import Pairs
from gumbelrace.solvers.base import Solver
from gumbelrace.solvers.betting import Betting
from gumbelrace.solvers.exact import Exact
from gumbelrace.solvers.race import Race

# Pairs that are timed, at most so many seconds of them.
TIMED, LONGEST = 4096, 1.0
NANO = 1e-9


class Way(NamedTuple):
    """What a way of sampling costs: H = n(n-1)/2 pairs, `sweeps` sweeps over 2H rewards each.

    Nanoseconds were measured on planted partitions with clusters of a power law; the pairs that a race
    which keeps them computes, on a simulated block of 2,220 mentions: 0.76 in 10 sweeps, 0.98 in 40.
    """

    solver: str
    keep: str
    computed: float  # share of the H pairs that are computed sooner or later
    computed_a_sweep: float  # share of the 2H rewards that are computed, in each sweep
    overhead: float  # nanoseconds for each of the 2H rewards of a sweep, the factor not counted
    memory: float  # bytes for each pair
    first: float = 1.0  # share of them that is computed at once
    rate: float = 0.0  # at which the others follow, a sweep

    def computed_in(self, sweeps: int) -> float:
        """Give the share of the H pairs that are computed in so many sweeps."""
        return self.computed * (1.0 - (1.0 - self.first) * math.exp(-self.rate * sweeps))


WAYS = (
    Way("exact", "nothing", 0.0, 1.0, 7.0, 0.0),
    Way("exact", "sums", 1.0, 0.0, 3.0, 5.0),
    Way("exact", "matrix", 1.0, 0.0, 8.0, 8.0),
    Way("raced", "nothing", 0.0, 0.2, 8.0, 0.0),
    Way("raced", "pairs", 1.0, 0.0, 20.0, 4.0, first=0.5, rate=0.08),
)
# Clusters of a few mentions are read whole: below this number of mentions races save little.
FEW_MENTIONS = 300


class Choice(NamedTuple):
    """A way of sampling clusters, and why.

    Attributes
    ----------
    solver, keep
        Arguments of `ClusterGibbs`.
    factor_seconds : float
        What a value of the factor costs.
    seconds : dict
        What each way is expected to take that fits into the memory.
    """

    solver: Solver
    keep: str
    factor_seconds: float
    seconds: dict[str, float]

    def __str__(self) -> str:
        """Say what was picked."""
        others = ", ".join(f"{name} {taken:.2g} s" for name, taken in self.seconds.items())
        cost = f"{self.factor_seconds / NANO:.0f} ns"
        return (
            f"{type(self.solver).__name__}, keep={self.keep!r}: a factor takes {cost} (expected: {others})"
        )


def cheapest(
    pairs: Pairs,
    rng: np.random.Generator,
    sweeps: int = 20,
    solver: Solver | None = None,
    memory: float = 2.0**30,
) -> Choice:
    """Pick a way of sampling clusters by what the factor costs.

    Parameters
    ----------
    pairs : Pairs
        The factor.
    rng : numpy.random.Generator
        Chooses the pairs that are timed.
    sweeps : int
        Sweeps that will be made.
    solver : Race or Betting, optional
        What to race with. Default: as in `ClusterGibbs`.
    memory : float
        Bytes that may be kept.

    Notes
    -----
    The exact ways make the same draws, the raced ones others: where a run must be the same again, write
    down what was picked.

    Examples
    --------
    >>> import numba, numpy as np, gumbelrace as gr
    >>> @numba.njit
    ... def log_factor(i, j, x):
    ...     return 1.0 - abs(x[i] - x[j])
    >>> factor = gr.pairs(log_factor, (np.arange(1000.0),), size=1000)
    >>> gr.cheapest(factor, np.random.default_rng(0)).keep
    'sums'
    """
    check_pairs(pairs)
    checked_count(sweeps, "sweeps")
    if isinstance(solver, Exact):
        raise InvalidArgument("the solver is what to race with; give Race() or Betting(), or none")
    cost, size = factor_seconds(pairs, check_generator(rng)), pairs.size
    fitting = [way for way in WAYS if way.memory * size * size / 2 <= memory]
    seconds = {way: expected(way, cost, size, sweeps) for way in fitting}
    best = min(seconds, key=lambda way: seconds[way])
    raced = solver or (Race() if pairs.reward_range is None else Betting())
    named = {f"{way.solver} {way.keep}": taken for way, taken in seconds.items()}
    return Choice(Exact() if best.solver == "exact" else raced, best.keep, cost, named)


def factor_seconds(pairs: Pairs, rng: np.random.Generator) -> float:
    """Time some random pairs."""
    if pairs.size < 2:
        return 0.0
    first = rng.integers(pairs.size, size=TIMED)
    second = (first + rng.integers(1, pairs.size, size=TIMED)) % pairs.size
    pairs.values(first[:1], second[:1])  # compiles
    begun, done, least = time.perf_counter(), 0, np.inf
    while done < TIMED and time.perf_counter() - begun < LONGEST:
        # Ever more: a dear factor is not asked for all, and of a cheap one the call does not count.
        some = slice(done, min(2 * done + 1, TIMED))
        started = time.perf_counter()
        pairs.values(first[some], second[some])
        least = min(least, (time.perf_counter() - started) / (some.stop - done))
        done = some.stop
    return least


def expected(way: Way, cost: float, size: int, sweeps: int) -> float:
    """Give the seconds that a way is expected to take."""
    half = size * (size - 1) / 2
    raced = way.solver == "raced"
    # Of few mentions, races read as much as an exact sampler does.
    least = min(1.0, FEW_MENTIONS / size) if raced else 0.0
    computed = max(way.computed_in(sweeps), least) if way.computed else 0.0
    each = max(way.computed_a_sweep, least) if way.computed_a_sweep else 0.0
    return half * computed * cost + 2 * half * sweeps * (each * cost + way.overhead * NANO)
