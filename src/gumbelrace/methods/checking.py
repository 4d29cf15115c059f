"""Checking answers where they are given: every race is followed by an exact one with the same noise."""

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import OPTIONS, part
from gumbelrace.core.packed import ENTRY, Entries, read_stored
from gumbelrace.methods.exact import Differences, add_up_differences, new_differences
from gumbelrace.methods.loop import Plan, Prepared, answer
from gumbelrace.methods.reading import FEW_ADDITIONS, ROUNDING
from gumbelrace.methods.state import ALIVE, RaceState, admit, new_state, reset
from gumbelrace.population.base import CODE, FINE

# Entries of Check.counts
ERRORS, RULED_OUT, DECISIONS = range(3)


class Check(NamedTuple):
    """A plan whose answers are checked, the exact sums of its arms, and what was found."""

    plan: Plan
    state: RaceState
    differences: Differences
    counts: NDArray[np.int64]


def checking(plan: Plan) -> tuple[Prepared, NDArray[np.int64]]:
    """Give a plan with the same answers, and where their errors will be counted."""
    source = plan.source
    check = Check(plan, new_state(source.arms), new_differences(source), np.zeros(3, np.int64))
    kept = ENTRIES.stored(check, source.direct.flags.c_contiguous)
    return Prepared(plan._replace(address=kept.entry, words=kept.address), kept), check.counts


def _entry(name: str, cache: bool) -> Any:
    @numba.cfunc(ENTRY, cache=cache, **OPTIONS)
    def answer_and_check(words):  # type: ignore[no-untyped-def]
        check = read_stored(words, name)
        winner = answer(check.plan)
        if check.plan.source.fault[CODE] == FINE:
            add_up(check)
            count(check, winner)
        return 0

    return answer_and_check


ENTRIES = Entries(_entry)


@part
def add_up(check: Check) -> None:
    """Add up all rewards, as far as arms differ in them."""
    state, source = check.state, check.plan.source
    for arm in range(source.arms):
        state.offset[arm] = check.plan.state.offset[arm]  # with the noise
        check.differences.sizes[arm] = 0.0
    check.differences.shared[0] = 0.0
    reset(state, source)
    admit(state, source)
    add_up_differences(check.differences, state, source, check.plan.sizes[0])


@part
def count(check: Check, winner: int) -> None:
    """Count an error if rounding cannot explain that the winner is not the best."""
    state, counts, is_possible, best = check.state, check.counts, False, -np.inf
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        is_possible |= arm == winner
        best = max(best, value(check, arm) - rounding(check, arm))
    counts[DECISIONS] += 1
    counts[RULED_OUT] += not is_possible
    counts[ERRORS] += not is_possible or value(check, winner) + rounding(check, winner) < best


@part
def value(check: Check, arm: int) -> float:
    """Give an arm's offset and sum, less a part that all arms share."""
    return check.state.sums[arm] + check.state.lost[arm] + check.state.offset[arm]


@part
def rounding(check: Check, arm: int) -> float:
    """Give how far the value of an arm may be off."""
    sizes = abs(check.state.offset[arm]) + abs(check.state.sums[arm]) + abs(value(check, arm))
    return ROUNDING * check.differences.sizes[arm] + FEW_ADDITIONS * sizes
