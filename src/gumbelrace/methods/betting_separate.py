"""Betting on arms that have rows of their own: one unseen reward of each of a pair at a time.

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
from gumbelrace.methods import separate
from gumbelrace.methods.field import ALIVE, LEADER, LOOKS, RUNNER_UP, Field, drop
from gumbelrace.methods.own import NOBODY, Own, is_unseen, rank_own
from gumbelrace.methods.rules import implements
from gumbelrace.population.base import Floats, Source

# One reward may cost at most this share of the wealth.
MOST_AT_STAKE = 0.95
FIRST_LOOK, GROWTH, LONGEST_LOOK = 4, 4, 256


class OwnWagers(NamedTuple):
    """Rule of the race: drop arm j when the wealth won against it reaches `target` = 1/δ."""

    target: float

    def working_memory(self, arms: int) -> "OwnLedger":
        """Make room for bets on all arms."""
        wealth, stake, before = np.empty((3, arms))
        return OwnLedger(wealth, np.empty(arms, np.int64), stake, before)


class OwnLedger(NamedTuple):
    """For each arm: the wealth won against it, its rival, the bet λ, and its sum before the look."""

    wealth: Floats
    rival: NDArray[np.int64]
    stake: Floats
    before: Floats


@implements(separate.is_patient, OwnWagers)
def _is_patient(rule: OwnWagers) -> bool:
    return True


@implements(separate.look_size, OwnWagers)
def _look_size(rule: OwnWagers, look: int, looks: int, size: int) -> int:
    # Bets are on pairs of rewards: all arms whose turn it is read equally many, as long as they last.
    count = FIRST_LOOK
    for _ in range(look):
        count = min(count + max(count // GROWTH, 1), LONGEST_LOOK)
    return count


@implements(separate.judge_own, OwnWagers)
def _judge(
    rule: OwnWagers,
    ledger: OwnLedger,
    source: Source,
    field: Field,
    own: Own,
    sizes: NDArray[np.int64],
) -> None:
    if field.tally[LOOKS] == 1:
        for arm in range(source.arms):
            ledger.wealth[arm], ledger.rival[arm] = 1.0, NOBODY
    settle_all(rule, ledger, source, field, own, sizes)
    drop(field)
    while field.tally[ALIVE] > 1:
        rank_own(field, own, sizes)
        if not bet_on_all(ledger, source, field, own, sizes):
            break
        drop(field)


@part
def settle_all(
    rule: OwnWagers,
    ledger: OwnLedger,
    source: Source,
    field: Field,
    own: Own,
    sizes: NDArray[np.int64],
) -> None:
    """Pay out the bets on the look just read; flag the arms against which enough was won."""
    left = field.tally[ALIVE]
    for a in range(field.tally[ALIVE]):
        arm = field.arms[a]
        rival = ledger.rival[arm]
        if rival != NOBODY and not source.ruled_out[rival]:
            settle(ledger, source, field, own, sizes, rival, arm)
        if ledger.wealth[arm] >= rule.target:
            field.out[arm] = 1
            left -= 1
    if left == 0:
        field.out[field.tally[LEADER]] = 0


@part
def bet_on_all(ledger: OwnLedger, source: Source, field: Field, own: Own, sizes: NDArray[np.int64]) -> bool:
    """Choose every arm's rival and bet; flag arms that cannot be the best, whatever comes."""
    flagged = False
    for a in range(field.tally[ALIVE]):
        arm = field.arms[a]
        rival = field.tally[RUNNER_UP] if arm == field.tally[LEADER] else field.tally[LEADER]
        ledger.rival[arm] = NOBODY if is_unseen(own, sizes, rival) else rival
        ledger.before[arm] = field.sums[arm]
        if ledger.rival[arm] != NOBODY and not bet(ledger, source, field, own, sizes, rival, arm):
            field.out[arm] = 1
            flagged = True
    return flagged


@part
def settle(
    ledger: OwnLedger,
    source: Source,
    field: Field,
    own: Own,
    sizes: NDArray[np.int64],
    rival: int,
    arm: int,
) -> None:
    """Pay out the bets on the rewards just read, one of each arm after the other."""
    seen = ledger.before[rival] + field.offset[rival]
    left_r = sizes[rival] - own.taken[rival] + own.fresh[rival]
    if is_unseen(own, sizes, arm):
        seen, left_j = seen - own.reach[arm], 0
    else:
        seen -= ledger.before[arm] + field.offset[arm]
        left_j = sizes[arm] - own.taken[arm] + own.fresh[arm]
    for i in range(max(own.fresh[rival], own.fresh[arm])):
        x_r = own.block[rival, i] if i < own.fresh[rival] else 0.0
        x_j = own.block[arm, i] if i < own.fresh[arm] else 0.0
        slack = -seen - lowest(source, rival, arm, left_r, left_j)  # η - a
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
def bet(
    ledger: OwnLedger,
    source: Source,
    field: Field,
    own: Own,
    sizes: NDArray[np.int64],
    rival: int,
    arm: int,
) -> bool:
    """Choose λ for the next look; False if no unseen rows could make the arm the best."""
    unseen = is_unseen(own, sizes, arm)
    left_r, left_j = sizes[rival] - own.taken[rival], 0 if unseen else sizes[arm] - own.taken[arm]
    known = own.reach[arm] if unseen else field.sums[arm] + field.offset[arm]
    seen = field.sums[rival] + field.offset[rival] - known
    if -seen < lowest(source, rival, arm, left_r, left_j):
        return False
    mean_r, variance_r = rest(field, own, rival, left_r)
    mean_j, variance_j = rest(field, own, arm, left_j)
    gain = mean_r - mean_j + seen
    spread = variance_r + variance_j + gain * gain
    ledger.stake[arm] = gain / spread if gain > 0.0 else 0.0
    return True


@part
def rest(field: Field, own: Own, arm: int, left: int) -> tuple[float, float]:
    """Estimate mean and variance of `left` times an unseen reward of an arm."""
    if left == 0:
        return 0.0, 0.0
    taken = own.taken[arm]
    return left * (field.sums[arm] / taken), left * (left * (own.squares[arm] / taken))
