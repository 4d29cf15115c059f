"""The arms of one draw: which are still in the race, what was read of them, and who leads."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import as_written, part
from gumbelrace.population.base import Floats, Source

# Entries of Field.tally
ALIVE, LEADER, RUNNER_UP, TAKEN, EVALUATIONS, LOOKS, EXHAUSTED, AT_ONCE, QUESTION = range(9)


class Field(NamedTuple):
    """The arms of one draw and what is known of them (compiled code changes the arrays)."""

    tally: NDArray[np.int64]  # QUESTION is a `Question`; AT_ONCE: read everything, whatever the rule says
    temperature: Floats  # of a draw
    arms: NDArray[np.int64]  # the first tally[ALIVE] are still in the race
    rows: NDArray[np.int64]  # how many rows of each arm were read
    out: NDArray[np.uint8]  # arms to drop
    offset: Floats  # on the scale of the sum; put there before each draw
    sums: Floats  # of the rewards read, shifted
    lost: Floats  # what rounding has taken from them, as far as it is known
    fresh: Floats  # the part of it that the last look added
    need: Floats  # rows expected until an arm is dropped
    shift: Floats  # what all rewards are reduced by; NaN before the first are read
    podium: Floats  # values of the leader and the runner-up


def new_field(arms: int) -> Field:
    """Make room for the arms of a draw."""
    return Field(
        np.zeros(9, np.int64),
        np.ones(1),
        np.empty(arms, np.int64),
        np.empty(arms, np.int64),
        np.zeros(arms, np.uint8),
        np.zeros(arms),
        np.empty(arms),
        np.empty(arms),
        np.empty(arms),
        np.empty(arms),
        np.zeros(1),
        np.zeros(2),
    )


@part
def reset(field: Field, source: Source) -> None:
    """Forget the draw before, but for the offsets."""
    field.tally[TAKEN] = field.tally[EVALUATIONS] = field.tally[LOOKS] = 0
    for arm in range(source.arms):
        source.ruled_out[arm] = 0
    field.shift[0] = np.nan


@part
def admit(field: Field, source: Source) -> None:
    """Fill the race with the arms that nothing rules out, nothing read yet."""
    for arm in range(source.arms):
        field.sums[arm], field.lost[arm] = 0.0, 0.0
        field.rows[arm], field.out[arm] = 0, 0
    line_up(field, source)


@as_written
def add(field: Field, arm: int, term: float) -> None:
    """Add to the sum of an arm, and note what rounding takes from it (Knuth's two-sum)."""
    before = field.sums[arm]
    after = before + term
    of_term = after - before
    field.lost[arm] += (before - (after - of_term)) + (term - of_term)
    field.sums[arm] = after


@part
def line_up(field: Field, source: Source) -> None:
    """Put every possible arm into the race."""
    alive = 0
    for arm in range(source.arms):
        if is_possible(field, source, arm):
            field.arms[alive] = arm
            alive += 1
    field.tally[ALIVE] = alive


@part
def is_possible(field: Field, source: Source, arm: int) -> bool:
    """Whether nothing seen so far gives the arm probability zero."""
    # The exact range of a table that was checked beforehand shows which arms have a -inf.
    known = not source.verify and source.low[arm] == -np.inf
    return field.offset[arm] > -np.inf and not known and not source.ruled_out[arm]


@part
def drop(field: Field) -> None:
    """Take the flagged arms out of the race, keeping the others in order."""
    kept = 0
    for a in range(field.tally[ALIVE]):
        arm = field.arms[a]
        field.arms[kept] = arm
        kept += 1 - field.out[arm]
        field.out[arm] = 0
    field.tally[ALIVE] = kept


@part
def drop_ruled_out(field: Field, source: Source) -> None:
    """Take arms that have shown a -inf out of the race."""
    for a in range(field.tally[ALIVE]):
        field.out[field.arms[a]] = source.ruled_out[field.arms[a]]
    drop(field)


@part
def estimate(field: Field, arm: int, taken: int, size: int) -> float:
    """Estimate the sum of an arm over all rows, offset included (shifted)."""
    return field.sums[arm] * (size / taken) + field.offset[arm]


@part
def rank(field: Field, taken: int, size: int) -> None:
    """Find the leader and the runner-up; of equals, the arm with the lower number leads."""
    for a in range(field.tally[ALIVE]):
        place(field, a, estimate(field, field.arms[a], taken, size))


@part
def place(field: Field, a: int, value: float) -> None:
    """Compare the a-th arm with the first two among those before it."""
    arm = field.arms[a]
    if a == 0 or value > field.podium[0]:
        field.tally[RUNNER_UP], field.podium[1] = field.tally[LEADER], field.podium[0]
        field.tally[LEADER], field.podium[0] = arm, value
    elif a == 1 or value > field.podium[1]:
        field.tally[RUNNER_UP], field.podium[1] = arm, value
