"""Adapted lil'UCB (paper, section 3.2): read one reward at a time of the arm that may be the best.

Three things differ from lil'UCB: every arm's rewards are read without replacement, in an order
independent of the other arms' (of a large population, an order of blocks of rows that were shuffled
once); an arm read to its end has an exact mean and no radius; and the algorithm stops when such an
arm has the highest bound.

Arms may have different numbers of rewards: what is compared is N_i times the mean, plus the offset.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import Bits, bits_of, kernel, part
from gumbelrace.core.shuffle import Streams, rewind_all, take_from
from gumbelrace.errors import InvalidArgument
from gumbelrace.methods.base import Asked, Method, Promise, checked_delta, parts
from gumbelrace.methods.lil import Lil, guaranteed, heuristic, most_guaranteed, radius
from gumbelrace.methods.results import Results, is_tie, part_of
from gumbelrace.population.base import (
    CODE,
    FINE,
    IMPOSSIBLE,
    Floats,
    Population,
    Source,
    read,
)

# Rows of an arm are drawn so many at a time: the memory that one waits for is fetched for all.
AHEAD = 16
# Radii are computed once for all arms and draws, as long as so many hold them.
REMEMBERED = 2**17


class Pulls(NamedTuple):
    """Arms as a heap with the highest bound on top, and what was read of each."""

    heap: NDArray[np.int64]
    highest: Floats  # upper confidence bound of each arm's sum
    sums: Floats
    taken: NDArray[np.int64]  # rewards read
    ahead: NDArray[np.int64]  # the next rows of each arm
    radii: Floats  # after so many rewards; 0 where not computed yet
    rows: NDArray[np.int64]
    arm: NDArray[np.int64]
    reward: Floats


@kernel
def solve_lil(
    lil: Lil,
    pulls: Pulls,
    scale: float,
    source: Source,
    streams: Streams,
    bits: Bits,
    sizes: NDArray[np.int64],
    offsets: Floats,
    results: Results,
) -> None:
    """Find the best arm once for each row of `offsets`."""
    constant = scale == 0.0  # one reward of an arm tells its sum
    for draw in range(len(offsets)):
        arms = enter(pulls, source, offsets[draw])
        total, pulled = 0, 0
        while arms > 1:
            arm = pulls.heap[0]
            taken = pulls.taken[arm]
            if pulled == arms and (constant or decided(pulls, lil, arm, taken, sizes[arm], total)):
                break
            if taken < sizes[arm] and not pull(pulls, source, streams, bits, arm, sizes[arm]):
                return
            pulled += taken == 0
            total += pulls.taken[arm] - taken
            update(pulls, lil, scale, sizes[arm], offsets[draw, arm], arm)
            sift_down(pulls, arms)
        arm = pulls.heap[0]
        if arms == 0 or pulls.highest[arm] == -np.inf:
            source.fault[CODE] = IMPOSSIBLE
            return
        results.arms[draw], results.evaluations[draw] = arm, total
        results.looks[draw] = total
        results.exhausted[draw] = arms > 1 and pulls.taken[arm] == sizes[arm]
        known = constant or results.exhausted[draw]
        results.tied[draw] = known and has_equal(pulls, sizes, arms, constant)
        rewind_all(streams)


@part
def has_equal(pulls: Pulls, sizes: NDArray[np.int64], arms: int, constant: bool) -> bool:
    """Whether the sum of an arm just below the top of the heap is known, and is the same."""
    for at in range(1, min(3, arms)):
        arm = pulls.heap[at]
        equal = is_tie(pulls.highest[pulls.heap[0]], pulls.highest[arm])
        if equal and (constant or pulls.taken[arm] == sizes[arm]):
            return True
    return False


def new_pulls(arms: int, radii: int) -> Pulls:
    """Make room for what is known of the arms."""
    return Pulls(
        np.empty(arms, np.int64),
        np.empty(arms),
        np.empty(arms),
        np.empty(arms, np.int64),
        np.empty((arms, AHEAD), np.int64),
        np.zeros(radii),
        np.empty(AHEAD, np.int64),
        np.empty(1, np.int64),
        np.empty((arms, 1)),
    )


@part
def enter(pulls: Pulls, source: Source, offset: Floats) -> int:
    """Put every possible arm on the heap, nothing read yet; return how many."""
    arms = 0
    for arm in range(source.arms):
        source.ruled_out[arm] = 0
        impossible = not source.verify and source.low[arm] == -np.inf
        if offset[arm] > -np.inf and not impossible:
            # Arms that were never read come first.
            pulls.heap[arms], pulls.sums[arm], pulls.highest[arm] = arm, 0.0, np.inf
            pulls.taken[arm] = 0
            arms += 1
    return arms


@part
def decided(pulls: Pulls, lil: Lil, arm: int, taken: int, size: int, total: int) -> bool:
    """Whether the arm on top was read to its end, or much more often than all others together."""
    often = taken >= 1 + lil.ratio * (total - taken)
    # An infinite bound is that of an arm of which too little is known, or of one that is impossible.
    return taken == size or pulls.highest[arm] == -np.inf or (often and pulls.highest[arm] < np.inf)


@part
def pull(pulls: Pulls, source: Source, streams: Streams, bits: Bits, arm: int, size: int) -> bool:
    """Read one more reward of an arm."""
    at = pulls.taken[arm] % AHEAD
    if at == 0:
        draw_ahead(pulls, streams, bits, arm, size)
    row = pulls.ahead[arm, at]
    if len(source.direct):
        pulls.sums[arm] += source.direct[arm, row]
    else:
        pulls.rows[0], pulls.arm[0] = row, arm
        if read(source, pulls.rows, 1, pulls.arm, 1, pulls.reward, 0) == 0:
            return False
        pulls.sums[arm] += pulls.reward[arm, 0]
    pulls.taken[arm] += 1
    return True


@part
def draw_ahead(pulls: Pulls, streams: Streams, bits: Bits, arm: int, size: int) -> None:
    """Draw the next rows of an arm."""
    count = min(AHEAD, size - pulls.taken[arm])
    take_from(streams, bits, arm, pulls.rows, count)
    for i in range(count):
        pulls.ahead[arm, i] = pulls.rows[i]


@part
def update(pulls: Pulls, lil: Lil, scale: float, size: int, offset: float, arm: int) -> None:
    """Bring the upper bound of an arm's sum up to date."""
    taken = pulls.taken[arm]
    if taken == size or pulls.sums[arm] == -np.inf:
        pulls.highest[arm] = pulls.sums[arm] + offset
    else:
        width = remembered(pulls.radii, lil, scale, taken) if scale > 0.0 else 0.0
        pulls.highest[arm] = size / taken * pulls.sums[arm] + offset + width


@part
def remembered(radii: Floats, lil: Lil, scale: float, taken: int) -> float:
    """Give the radius after `taken` rewards; its logarithms cost more than the rest of a pull."""
    if taken >= len(radii):
        return radius(lil, scale, taken)
    if radii[taken] == 0.0:
        radii[taken] = radius(lil, scale, taken)
    return radii[taken]


@part
def sift_down(pulls: Pulls, arms: int) -> None:
    """Move the arm on top, whose bound has changed, to its place in the heap."""
    heap, highest, at = pulls.heap, pulls.highest, 0
    moved = heap[0]
    while 2 * at + 1 < arms:
        child = 2 * at + 1
        if child + 1 < arms and highest[heap[child + 1]] > highest[heap[child]]:
            child += 1
        if highest[heap[child]] <= highest[moved]:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = moved


@dataclass(frozen=True)
class LilUCB(Method):
    """Adapted lil'UCB; needs a reward range, half of which is the scale σ.

    ``LilUCB(delta)`` has the heuristic parameters of the lil'UCB paper, which no theorem covers;
    ``LilUCB.guaranteed(delta)`` has parameters that satisfy its Theorem 2, and reads far more.

    Parameters
    ----------
    delta : float
        Bound on the probability that a returned arm is not the best one.
    proved : bool
        Whether to take the parameters of the theorem.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> rng = np.random.default_rng(0)
    >>> population = gr.table(rng.uniform(size=(10_000, 3)) + [0.0, 0.0, 0.5])
    >>> gr.LilUCB(delta=0.05).best(population, None, rng).arm
    2
    """

    delta: float = 0.05
    proved: bool = False
    needs_range = True
    is_a_race = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", checked_delta(self.delta))
        if self.proved and self.delta >= (most := most_guaranteed()):
            raise InvalidArgument(
                f"delta is {self.delta:g}; the theorem of lil'UCB holds below {most:g}: give a smaller "
                "one, or take LilUCB(delta), which is not proved"
            )

    @classmethod
    def guaranteed(cls, delta: float = 0.05) -> "LilUCB":
        """Give lil'UCB with the parameters of its theorem, which holds for δ < 0.25665."""
        return cls(delta, proved=True)

    @property
    def promise(self) -> Promise:
        """Error at most δ; for the heuristic parameters, by experience only."""
        experience = "lil'UCB's heuristic parameters do as well here as in its authors' experiments"
        return Promise(self.delta, None if self.proved else experience)

    def rule(self, population: Population) -> Lil:
        """Give the parameters."""
        return guaranteed(self.delta) if self.proved else heuristic(self.delta, population.arms)

    def _solve(
        self,
        asked: Asked,
        population: Population,
        offsets: Floats,
        rng: np.random.Generator,
        results: Results,
    ) -> None:
        lil, bits = self.rule(population), bits_of(rng)
        scale = _scale(population)
        with population.streams() as streams, population.source(need_range=True) as source:
            pulls = new_pulls(source.arms, min(int(population.sizes.max()) + 1, REMEMBERED))
            for some in parts(len(offsets)):
                batch = part_of(results, some)
                solve_lil(lil, pulls, scale, source, streams, bits, population.sizes, offsets[some], batch)
                if source.fault[CODE] != FINE:
                    break


def _scale(population: Population) -> float:
    """Give half the widest range of N_i rewards: the σ of the sums that are compared."""
    low, high = population.reward_range or (np.zeros(1), np.zeros(1))
    # An arm that a table shows to be impossible is never read.
    possible = population.verify | (low > -np.inf)
    return float(np.max(population.sizes * (high - low), where=possible, initial=0.0)) / 2.0
