"""Checking answers where they are given: every race is followed by an exact one with the same noise."""

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import OPTIONS, part
from gumbelrace.core.structs import ENTRY, Entries, read_stored
from gumbelrace.methods.differences import Differences, add_up_differences, new_differences
from gumbelrace.methods.engine import Plan, Prepared, answer
from gumbelrace.methods.field import ALIVE, Field, admit, new_field, reset
from gumbelrace.methods.reading import FEW_ADDITIONS, ROUNDING
from gumbelrace.population.base import CODE, FINE

# Entries of Check.counts
ERRORS, RULED_OUT, DECISIONS = range(3)


class Check(NamedTuple):
    """A plan whose answers are checked, the exact sums of its arms, and what was found."""

    plan: Plan
    field: Field
    differences: Differences
    counts: NDArray[np.int64]


def checking(plan: Plan) -> tuple[Prepared, NDArray[np.int64]]:
    """Give a plan with the same answers, and where their errors will be counted."""
    source = plan.source
    check = Check(plan, new_field(source.arms), new_differences(source), np.zeros(3, np.int64))
    kept = ENTRIES.stored(check, source.direct.flags.c_contiguous)
    return Prepared(plan._replace(address=kept.entry, words=kept.address), kept), check.counts


def _entry(name: str) -> Any:
    @numba.cfunc(ENTRY, cache=True, **OPTIONS)
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
    field, source = check.field, check.plan.source
    for arm in range(source.arms):
        field.offset[arm] = check.plan.field.offset[arm]  # with the noise
        check.differences.sizes[arm] = 0.0
    check.differences.shared[0] = 0.0
    reset(field, source)
    admit(field, source)
    add_up_differences(check.differences, field, source, check.plan.size[0])


@part
def count(check: Check, winner: int) -> None:
    """Count an error if rounding cannot explain that the winner is not the best."""
    field, counts, is_possible, best = check.field, check.counts, False, -np.inf
    for a in range(field.tally[ALIVE]):
        arm = field.arms[a]
        is_possible |= arm == winner
        best = max(best, value(check, arm) - rounding(check, arm))
    counts[DECISIONS] += 1
    counts[RULED_OUT] += not is_possible
    counts[ERRORS] += not is_possible or value(check, winner) + rounding(check, winner) < best


@part
def value(check: Check, arm: int) -> float:
    """Give an arm's offset and sum, less a part that all arms share."""
    return check.field.sums[arm] + check.field.lost[arm] + check.field.offset[arm]


@part
def rounding(check: Check, arm: int) -> float:
    """Give how far the value of an arm may be off."""
    sizes = abs(check.field.offset[arm]) + abs(check.field.sums[arm]) + abs(value(check, arm))
    return ROUNDING * check.differences.sizes[arm] + FEW_ADDITIONS * sizes
