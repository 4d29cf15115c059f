"""Adapted lil'UCB (paper, section 3.2): read one reward at a time of the arm that may be the best.

Three things differ from lil'UCB: every arm's rewards are read without replacement, in an order
independent of the other arms' (of a large population, an order of blocks of rows that were shuffled
once); an arm read to its end has an exact mean and no radius; and the algorithm stops when such an
arm has the highest bound.

For rewards that are sub-Gaussian with scale σ, the upper confidence bound after T rewards is

    μ̂ + (1 + β)(1 + √ε) √(2 σ² (1 + ε) log(log((1 + ε) T)/δ) / T),

and an arm is returned once it has been read λ times as often as all others together (Jamieson, Malloy,
Nowak & Bubeck, COLT 2014). Arms may have different numbers of rewards: what is compared is N_i times the
mean, plus the offset. Beside an arm that has no more rewards, "as often" would say nothing: then the arm on
top is read to its end.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import part
from gumbelrace.core.orders import rewind_first, take_from
from gumbelrace.errors import InvalidArgument
from gumbelrace.methods import rules
from gumbelrace.methods.base import Method, Promise, checked_delta
from gumbelrace.methods.independent import IndependentWorkspace
from gumbelrace.methods.rules import implements
from gumbelrace.methods.state import (
    ARMS,
    AT_ONCE,
    EVALUATIONS,
    EXHAUSTED,
    LEADER,
    LOOKS,
    QUESTION,
    TIED,
    add_noise,
    is_possible,
    is_tie,
    reset,
)
from gumbelrace.population.base import CODE, IMPOSSIBLE, Floats, Population, read

# Rows of an arm are drawn so many at a time: the memory that one waits for is fetched for all.
AHEAD = 16
# Radii are computed once for all arms and draws, as long as so many hold them.
REMEMBERED = 2**17


class Lil(NamedTuple):
    """Parameters of lil'UCB; `confidence` is the δ inside the logarithm."""

    epsilon: float
    beta: float
    confidence: float
    ratio: float  # λ


def heuristic(delta: float, arms: int) -> Lil:
    """Give the parameters that work well in practice and that no theorem covers."""
    return Lil(0.0, 0.5, delta / 5.0, 1.0 + 10.0 / arms)


# ε and β of the guaranteed parameters, and the c of the theorem: (2+ε)/ε (1/log(1+ε))^(1+ε).
EPSILON, BETA = 0.01, 1.0
C = (2.0 + EPSILON) / EPSILON * (1.0 / np.log1p(EPSILON)) ** (1.0 + EPSILON)


def most_guaranteed() -> float:
    """Give the δ below which Theorem 2 of the lil'UCB paper holds, which asks that δ' < log(1+ε)/(e c)."""
    largest = np.log1p(EPSILON) / np.e  # of c δ'
    # Rounded down, so that the number as it is printed is the number that is compared.
    return float(np.floor(1e5 * (4.0 * np.sqrt(largest) + 4.0 * largest)) / 1e5)


def guaranteed(delta: float) -> Lil:
    """Give parameters for which the error is at most `delta` by Theorem 2 of the lil'UCB paper.

    The theorem's error is 4√(c δ') + 4 c δ'; it is solved for δ'.
    """
    epsilon, beta = EPSILON, BETA
    inner = (np.sqrt(1.0 + delta) - 1.0) ** 2 / (4.0 * C)
    weight, log_term = ((2.0 + beta) / beta) ** 2, np.log(1.0 / inner)
    ratio = weight * (1.0 + np.log(2.0 * np.log(weight / inner)) / log_term)
    ratio /= 1.0 - inner - np.sqrt(inner**0.25 * log_term)
    return Lil(epsilon, beta, float(inner), float(ratio))


@part
def radius(lil: Lil, scale: float, taken: int) -> float:
    """Half-width of the confidence bound of a mean of `taken` rewards of scale σ."""
    growth = np.log((1.0 + lil.epsilon) * taken) / lil.confidence
    if growth <= 1.0:
        return np.inf
    # The scale is not squared: of small rewards nothing would be left.
    inner = 2.0 * (1.0 + lil.epsilon) * np.log(growth) / taken
    return scale * (1.0 + lil.beta) * (1.0 + np.sqrt(lil.epsilon)) * np.sqrt(inner)


class Pulling(NamedTuple):
    """Rule: read one reward at a time, of the arm with the highest upper bound."""

    lil: Lil
    most: int  # rewards of an arm
    patient: bool = False

    def working_memory(self, arms: int) -> "Pulls":
        """Make room for what is known of the arms."""
        heap, taken = np.empty((2, arms), np.int64)
        highest, sums = np.empty((2, arms))
        ahead, radii = np.empty((arms, AHEAD), np.int64), np.zeros(min(self.most + 1, REMEMBERED))
        return Pulls(heap, highest, sums, taken, ahead, radii, np.empty(AHEAD, np.int64), np.zeros(1))


class Pulls(NamedTuple):
    """Arms as a heap with the highest bound on top, and what was read of each."""

    heap: NDArray[np.int64]
    highest: Floats  # upper confidence bound of each arm's sum
    sums: Floats
    taken: NDArray[np.int64]  # rewards read
    ahead: NDArray[np.int64]  # the next rows of each arm
    radii: Floats  # after so many rewards of scale 1; 0 where not computed yet
    rows: NDArray[np.int64]
    scale: Floats  # σ of the sums that are compared; 0: all rewards of an arm are the same


@implements(rules.next_look, Pulling)
def _next_look(rule: Pulling, workspace: IndependentWorkspace, arm: int) -> int:
    return 0  # asked for only where everything is read


@implements(rules.run, Pulling)
def _run(rule: Pulling, workspace: IndependentWorkspace) -> None:
    state, pulls, sizes = workspace.state, workspace.work, workspace.sizes
    add_noise(state.tally[QUESTION], state.temperature[0], state.offset, workspace.noise)
    reset(state, workspace.source)
    if state.tally[AT_ONCE]:
        rules.enter(workspace)
        rules.finish(workspace)
        return
    arms, total, pulled = enter(workspace), 0, 0
    while arms > 1:
        arm = pulls.heap[0]
        taken = pulls.taken[arm]
        if pulled == arms and (is_constant(pulls) or decided(workspace, arms, total)):
            break
        if taken < sizes[arm] and not pull(workspace, arm):
            return
        pulled += taken == 0
        total += pulls.taken[arm] - taken
        update(pulls, rule, sizes[arm], state.offset[arm], arm)
        sift_down(pulls, arms)
    state.tally[LEADER], state.tally[EVALUATIONS], state.tally[LOOKS] = pulls.heap[0], total, total
    if arms == 0 or pulls.highest[pulls.heap[0]] == -np.inf:
        workspace.source.fault[CODE] = IMPOSSIBLE
        return
    exhausted = arms > 1 and pulls.taken[pulls.heap[0]] == sizes[pulls.heap[0]]
    known = exhausted or is_constant(pulls)
    state.tally[EXHAUSTED] = exhausted
    state.tally[TIED] = known and has_equal(pulls, sizes, arms, is_constant(pulls))
    rewind_first(workspace.order, state.tally[ARMS])


@part
def is_constant(pulls: Pulls) -> bool:
    """Whether one reward of an arm tells its sum."""
    return pulls.scale[0] == 0.0


@part
def has_equal(pulls: Pulls, sizes: NDArray[np.int64], arms: int, constant: bool) -> bool:
    """Whether the sum of an arm just below the top of the heap is known, and is the same."""
    for at in range(1, min(3, arms)):
        arm = pulls.heap[at]
        equal = is_tie(pulls.highest[pulls.heap[0]], pulls.highest[arm])
        if equal and (constant or pulls.taken[arm] == sizes[arm]):
            return True
    return False


@part
def enter(workspace: IndependentWorkspace) -> int:
    """Put every possible arm on the heap, nothing read yet; return how many."""
    state, source, pulls, arms = workspace.state, workspace.source, workspace.work, 0
    pulls.scale[0] = 0.0
    for arm in range(state.tally[ARMS]):
        if is_possible(state, source, arm):
            # Arms that were never read come first.
            pulls.heap[arms], pulls.sums[arm], pulls.highest[arm] = arm, 0.0, np.inf
            pulls.taken[arm] = 0
            arms += 1
            if workspace.sizes[arm] > 0:
                # Half the widest range of N_i rewards is the σ of the sums that are compared.
                width = workspace.sizes[arm] * (source.high[arm] - source.low[arm])
                pulls.scale[0] = max(pulls.scale[0], 0.5 * width)
    return arms


@part
def decided(workspace: IndependentWorkspace, arms: int, total: int) -> bool:
    """Whether the arm on top was read to its end, or much more often than all others together."""
    pulls, ratio = workspace.work, workspace.rule.lil.ratio
    top = pulls.heap[0]
    taken, highest = pulls.taken[top], pulls.highest[top]
    if taken == workspace.sizes[top] or highest == -np.inf:
        return True
    # An infinite bound is that of an arm of which too little is known.
    if not highest < np.inf or taken < 1 + ratio * (total - taken):
        return False
    # An arm that has no more rewards cannot be read as often as it should be: that proves nothing.
    for a in range(1, arms):
        if pulls.taken[pulls.heap[a]] == workspace.sizes[pulls.heap[a]]:
            return False
    return True


@part
def pull(workspace: IndependentWorkspace, arm: int) -> bool:
    """Read one more reward of an arm."""
    source, pulls = workspace.source, workspace.work
    at = pulls.taken[arm] % AHEAD
    if at == 0:
        draw_ahead(workspace, arm)
    row = pulls.ahead[arm, at]
    if len(source.direct):
        pulls.sums[arm] += source.direct[arm, row]
    else:
        pulls.rows[0], workspace.one[0] = row, arm
        if read(source, pulls.rows, 1, workspace.one, 1, workspace.readings.block, 0) == 0:
            return False
        pulls.sums[arm] += workspace.readings.block[arm, 0]
    pulls.taken[arm] += 1
    return True


@part
def draw_ahead(workspace: IndependentWorkspace, arm: int) -> None:
    """Draw the next rows of an arm."""
    pulls = workspace.work
    count = min(AHEAD, workspace.sizes[arm] - pulls.taken[arm])
    take_from(workspace.order, workspace.bits, arm, pulls.rows, count)
    for i in range(count):
        pulls.ahead[arm, i] = pulls.rows[i]


@part
def update(pulls: Pulls, rule: Pulling, size: int, offset: float, arm: int) -> None:
    """Bring the upper bound of an arm's sum up to date."""
    taken = pulls.taken[arm]
    if taken == size or pulls.sums[arm] == -np.inf:
        pulls.highest[arm] = pulls.sums[arm] + offset
    else:
        width = 0.0 if is_constant(pulls) else pulls.scale[0] * unit_radius(pulls.radii, rule.lil, taken)
        pulls.highest[arm] = size / taken * pulls.sums[arm] + offset + width


@part
def unit_radius(radii: Floats, lil: Lil, taken: int) -> float:
    """Give the radius after `taken` rewards of scale 1; its logarithms cost more than a pull."""
    if taken >= len(radii):
        return radius(lil, 1.0, taken)
    if radii[taken] == 0.0:
        radii[taken] = radius(lil, 1.0, taken)
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
    shares_rows = False

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

    def rule(self, population: Population) -> Pulling:
        """Give the parameters."""
        lil = guaranteed(self.delta) if self.proved else heuristic(self.delta, population.arms)
        return Pulling(lil, int(population.sizes.max()))
