"""Betting on arms that have rows of their readings: one unseen reward of each of a pair at a time.

With M the number of unseen rewards of an arm, bet on Z = M_r x_r - M_j x_j against
η = -(seen sum of r - seen sum of j): if j is the best arm, Z has mean at most η. The factor is
nonnegative as long as λ ≤ 1/(η - a) with a = M_r low_r - M_j high_j, and the proof is that of `betting`.

Of an arm j that was not looked at yet, all rewards count as the highest: if j is the best arm, the sum of r
is at most that, and wealth won so stays won when j is read later. Such an arm is nobody's rival.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import part
from gumbelrace.methods import rules
from gumbelrace.methods.independent import (
    IndependentWorkspace,
    Readings,
    is_unseen,
    rank_independent,
    rows_left,
    sum_read,
)
from gumbelrace.methods.rules import implements
from gumbelrace.methods.state import ALIVE, ARMS, LEADER, LOOKS, NOBODY, RUNNER_UP, RaceState, drop
from gumbelrace.population.base import Floats, Source

# One reward may cost at most this share of the wealth.
MOST_AT_STAKE = 0.95
FIRST_LOOK, GROWTH, LONGEST_LOOK = 4, 4, 256


class IndependentWagers(NamedTuple):
    """Rule of the race: drop arm j when the wealth won against it reaches `target` = 1/δ."""

    target: float
    patient: bool = True

    def working_memory(self, arms: int) -> "IndependentLedger":
        """Make room for bets on all arms."""
        wealth, stake, before = np.empty((3, arms))
        return IndependentLedger(wealth, np.empty(arms, np.int64), stake, before)


class IndependentLedger(NamedTuple):
    """For each arm: the wealth won against it, its rival, the bet λ, and its sum before the look."""

    wealth: Floats
    rival: NDArray[np.int64]
    stake: Floats
    before: Floats


@implements(rules.begin, IndependentWagers)
def _begin(rule: IndependentWagers, workspace: IndependentWorkspace) -> None:
    for arm in range(workspace.state.tally[ARMS]):
        workspace.work.wealth[arm], workspace.work.rival[arm] = 1.0, NOBODY


@implements(rules.next_look, IndependentWagers)
def _next_look(rule: IndependentWagers, workspace: IndependentWorkspace, arm: int) -> int:
    # Bets are on pairs of rewards: all arms whose turn it is read equally many, as long as they last.
    count = FIRST_LOOK
    for _ in range(workspace.state.tally[LOOKS]):
        count = min(count + max(count // GROWTH, 1), LONGEST_LOOK)
    return count


@implements(rules.judge, IndependentWagers)
def _judge(rule: IndependentWagers, workspace: IndependentWorkspace) -> None:
    settle_all(rule, workspace)
    drop(workspace.state)
    while workspace.state.tally[ALIVE] > 1:
        rank_independent(workspace.state, workspace.readings)
        if not bet_on_all(workspace):
            break
        drop(workspace.state)


@part
def settle_all(rule: IndependentWagers, workspace: IndependentWorkspace) -> None:
    """Pay out the bets on the look just read; flag the arms against which enough was won."""
    state, ledger = workspace.state, workspace.work
    left = state.tally[ALIVE]
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        rival = ledger.rival[arm]
        if rival != NOBODY and not workspace.source.ruled_out[rival]:
            settle(workspace, rival, arm)
        if ledger.wealth[arm] >= rule.target:
            state.out[arm] = 1
            left -= 1
    if left == 0:
        state.out[state.tally[LEADER]] = 0


@part
def bet_on_all(workspace: IndependentWorkspace) -> bool:
    """Choose every arm's rival and bet; flag arms that cannot be the best, whatever comes."""
    state, ledger, flagged = workspace.state, workspace.work, False
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        rival = state.tally[RUNNER_UP] if arm == state.tally[LEADER] else state.tally[LEADER]
        ledger.rival[arm] = NOBODY if is_unseen(workspace.readings, rival) else rival
        ledger.before[arm] = state.sums[arm]
        if ledger.rival[arm] != NOBODY and not bet(workspace, rival, arm):
            state.out[arm] = 1
            flagged = True
    return flagged


@part
def settle(workspace: IndependentWorkspace, rival: int, arm: int) -> None:
    """Pay out the bets on the rewards just read, one of each arm after the other."""
    ledger, readings, offset = workspace.work, workspace.readings, workspace.state.offset
    seen = ledger.before[rival] + offset[rival]
    left_r = rows_left(readings, rival) + readings.fresh[rival]
    if is_unseen(readings, arm):
        seen, left_j = seen - readings.reach[arm], 0
    else:
        seen -= ledger.before[arm] + offset[arm]
        left_j = rows_left(readings, arm) + readings.fresh[arm]
    for i in range(max(readings.fresh[rival], readings.fresh[arm])):
        x_r = readings.block[rival, i] if i < readings.fresh[rival] else 0.0
        x_j = readings.block[arm, i] if i < readings.fresh[arm] else 0.0
        slack = -seen - lowest(workspace.source, rival, arm, left_r, left_j)  # η - a
        if slack < 0.0:
            ledger.wealth[arm] = np.inf
            return
        stake = min(ledger.stake[arm], MOST_AT_STAKE / slack)
        ledger.wealth[arm] *= 1.0 + stake * (left_r * x_r - left_j * x_j + seen)
        seen += x_r - x_j
        left_r, left_j = max(left_r - 1, 0), max(left_j - 1, 0)


@part
def lowest(source: Source, rival: int, arm: int, left_r: int, left_j: int) -> float:
    """Give a, the lowest value of Z (no rewards left count as nothing, whatever the range)."""
    result = left_r * source.low[rival] if left_r > 0 else 0.0
    return result - left_j * source.high[arm] if left_j > 0 else result


@part
def bet(workspace: IndependentWorkspace, rival: int, arm: int) -> bool:
    """Choose λ for the next look; False if no unseen rows could make the arm the best."""
    source, state, readings = workspace.source, workspace.state, workspace.readings
    unseen = is_unseen(readings, arm)
    left_r, left_j = rows_left(readings, rival), 0 if unseen else rows_left(readings, arm)
    known = readings.reach[arm] if unseen else sum_read(state, arm)
    seen = sum_read(state, rival) - known
    if -seen < lowest(source, rival, arm, left_r, left_j):
        return False
    mean_r, variance_r = rest(state, readings, rival, left_r)
    mean_j, variance_j = rest(state, readings, arm, left_j)
    gain = mean_r - mean_j + seen
    spread = variance_r + variance_j + gain * gain
    workspace.work.stake[arm] = gain / spread if gain > 0.0 else 0.0
    return True


@part
def rest(state: RaceState, readings: Readings, arm: int, left: int) -> tuple[float, float]:
    """Estimate mean and variance of `left` times an unseen reward of an arm."""
    if left == 0:
        return 0.0, 0.0
    taken, squares = readings.taken[arm], readings.squares[arm]
    return left * (state.sums[arm] / taken), left * (left * (squares / taken))
