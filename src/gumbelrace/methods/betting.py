"""Betting: a race whose error bound is proved, and that reads no more than Racing-Normal.

For each arm j one wealth is kept against the claim "j is the best arm". Before a block of rows, a rival
r of j is chosen (the leader; for the leader, the runner-up) and a bet λ on Z = l_r - l_j:

    W_j <- W_j ∏ (1 + λ (Z_n - η)),    η = -Σ_seen Z / (N - T).

If j is the best, the unseen Z have mean at most η, the product of a block drawn without replacement has
expectation at most 1 (Maclaurin), W_j is a nonnegative supermartingale, and it ever reaches 1/δ with
probability at most δ (Ville). Only the true best arm can be dropped wrongly: δ is not divided by the
number of arms or looks. λ may be anything that depends on the past alone and keeps every factor
nonnegative; how it is chosen decides how much is read, never whether the bound holds.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import part
from gumbelrace.methods import rules
from gumbelrace.methods.base import Method, Promise, checked_delta
from gumbelrace.methods.betting_independent import MOST_AT_STAKE, IndependentWagers
from gumbelrace.methods.reading import HELD, Sample, fresh_rows
from gumbelrace.methods.rules import implements
from gumbelrace.methods.shared import TRUSTED_SHARE, SharedWorkspace
from gumbelrace.methods.state import ALIVE, LEADER, LOOKS, NOBODY, RUNNER_UP, TAKEN, RaceState, drop, rank
from gumbelrace.population.base import Floats, Population, SharedPopulation, Source

SHORTEST_LOOK, GROWTH = 16, 7
# Longer looks end where a block of rows ends, or where several do: a power of two.
BLOCK = 128
CAUTION = 2.0


class Wagers(NamedTuple):
    """Rule of the race: drop arm j when the wealth won against it reaches `target` = 1/δ."""

    target: float
    keeps: bool = False

    def working_memory(self, arms: int) -> "Ledger":
        """Make room for bets on all arms."""
        wealth, stake, base, squares = np.empty((4, arms))
        return Ledger(wealth, np.empty(arms, np.int64), stake, base, squares)


class Ledger(NamedTuple):
    """For each arm: the wealth won against it, its rival, and the bet on the next block."""

    wealth: Floats
    rival: NDArray[np.int64]
    stake: Floats  # λ
    base: Floats  # 1 + λ (d - η) with d the offsets' share of Z: the factor of a block is base + λ z
    squares: Floats  # squared deviations of Z from its mean in each look, whoever was the rival


@implements(rules.begin, Wagers)
def _begin(rule: Wagers, workspace: SharedWorkspace) -> None:
    """Start with nothing won, and drop arms that the range alone shows to be beaten."""
    ledger, source, state, size = workspace.work, workspace.source, workspace.state, workspace.sizes[0]
    surely = -np.inf
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        ledger.wealth[arm], ledger.rival[arm] = 1.0, NOBODY
        surely = max(surely, source.low[arm] + state.offset[arm] / size)
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        state.out[arm] = source.high[arm] + state.offset[arm] / size < surely


@implements(rules.next_look, Wagers)
def _next_look(rule: Wagers, workspace: SharedWorkspace, arm: int) -> int:
    """Read a few rows first, later a share of what was read, up to the end of a block."""
    taken, size = workspace.state.tally[TAKEN], workspace.sizes[0]
    count = min(max(SHORTEST_LOOK, taken // GROWTH), HELD)
    if count > BLOCK // 4:
        count = (taken + count + BLOCK - 1) // BLOCK * BLOCK - taken
    return count if taken + count < size else 0


@implements(rules.judge, Wagers)
def _judge(rule: Wagers, workspace: SharedWorkspace) -> None:
    ledger, source, state, sample = workspace.work, workspace.source, workspace.state, workspace.sample
    taken, size = state.tally[TAKEN], workspace.sizes[0]
    state.tally[LOOKS] += 1
    settle_all(rule, ledger, source, state, sample)
    drop(state)
    while state.tally[ALIVE] > 1:
        rank(state, taken, size)
        if not bet_on_all(rule, ledger, source, state, sample, taken, size):
            break
        drop(state)


@part
def settle_all(rule: Wagers, ledger: Ledger, source: Source, state: RaceState, sample: Sample) -> None:
    """Pay out the bets on the block just read; flag the arms against which enough was won."""
    left = state.tally[ALIVE]
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        rival = ledger.rival[arm]
        if rival != NOBODY and not source.ruled_out[rival]:
            base, stake = ledger.base[arm], ledger.stake[arm]
            factor, squares = settle(sample, state, rival, arm, base, stake)
            ledger.wealth[arm] *= factor
            ledger.squares[arm] += squares
        if ledger.wealth[arm] >= rule.target:
            state.out[arm] = 1
            left -= 1
    if left == 0:
        state.out[state.tally[LEADER]] = 0


@part
def settle(
    sample: Sample, state: RaceState, rival: int, arm: int, base: float, stake: float
) -> tuple[float, float]:
    """Give the factor of the wealth, and the squared deviations of Z, over the last look."""
    rewards, r, j = sample.rewards, np.uint64(rival), np.uint64(arm)
    mean = (state.fresh[rival] - state.fresh[arm]) / fresh_rows(sample)
    factor, squares = 1.0, 0.0
    for run in range(sample.runs[1], sample.runs[0]):
        first = sample.first[run]
        for i in range(np.uint64(first), np.uint64(first + sample.length[run])):
            z = rewards[r, i] - rewards[j, i]
            factor *= base + stake * z
            squares += (z - mean) * (z - mean)
    return factor, squares


@part
def bet_on_all(
    rule: Wagers,
    ledger: Ledger,
    source: Source,
    state: RaceState,
    sample: Sample,
    taken: int,
    size: int,
) -> bool:
    """Choose every arm's rival and bet; flag arms that cannot be the best, whatever comes."""
    leader, flagged = state.tally[LEADER], False
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        rival = state.tally[RUNNER_UP] if arm == leader else leader
        if ledger.rival[arm] == NOBODY:
            ledger.squares[arm] = settle(sample, state, rival, arm, 1.0, 0.0)[1]
        ledger.rival[arm] = rival
        if not bet(rule, ledger, source, state, arm, taken, size):
            state.out[arm] = 1
            flagged = True
    return flagged


@part
def bet(
    rule: Wagers,
    ledger: Ledger,
    source: Source,
    state: RaceState,
    arm: int,
    taken: int,
    size: int,
) -> bool:
    """Choose λ for the next block; False if no unseen rows could make the arm the best."""
    rival, rest = ledger.rival[arm], size - taken
    d = (state.offset[rival] - state.offset[arm]) / size
    seen = state.sums[rival] - state.sums[arm] + taken * d  # Σ_seen Z
    ceiling = -seen / rest  # η
    lowest = source.low[rival] - source.high[arm] + d  # a
    if ceiling < lowest:
        return False
    gain = max(seen / taken - ceiling, 0.0)  # g
    spread = ledger.squares[arm] / taken + gain * gain
    error = spread * size / (float(taken) * rest)  # squared error of g
    # Kelly's bet, the smaller the less the gain stands out from its error.
    stake = gain * gain * gain / (spread * (gain * gain + CAUTION * error)) if gain > 0.0 else 0.0
    most = MOST_AT_STAKE / (ceiling - lowest)
    ledger.stake[arm] = min(stake, most)
    ledger.base[arm] = 1.0 + ledger.stake[arm] * (d - ceiling)
    if taken >= TRUSTED_SHARE * size:
        # The true gain is as likely above the estimate as below: its square is larger by the error's.
        likely = np.sqrt(gain * gain + error)
        growth = likely * min(0.5 * likely / spread, most)  # of log W, a row
        missing = np.log(rule.target / ledger.wealth[arm])
        state.need[arm] = size - rest / (1.0 + missing / (growth * rest))
    return True


@dataclass(frozen=True)
class Betting(Method):
    """Race by betting against each arm; the error bound is proved for any rewards.

    Needs a reward range: tables know theirs, other populations are given one.

    Parameters
    ----------
    delta : float
        Bound on the probability that a returned arm is not the best one.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> rng = np.random.default_rng(0)
    >>> population = gr.table(rng.uniform(size=(100_000, 4)) + [0.0, 0.1, 0.0, 0.05])
    >>> outcome = gr.Betting(delta=0.01).best(population, None, rng)
    >>> outcome.arm, outcome.exhausted
    (1, False)
    """

    delta: float = 0.05
    needs_range = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", checked_delta(self.delta))

    @property
    def promise(self) -> Promise:
        """Error at most δ, proved."""
        return Promise(self.delta)

    def rule(self, population: Population) -> Wagers | IndependentWagers:
        """Give the rule of the race."""
        shared = isinstance(population, SharedPopulation)
        return Wagers(1.0 / self.delta) if shared else IndependentWagers(1.0 / self.delta)
