"""The state of a race: which arms are still in it, what was read of them, who leads; and its results.

It also holds what is asked, and to that belongs the noise with which whoever finds winners answers. Arms
have values v_i: their offset plus the sum of their rewards. To draw an arm with probability ∝ exp(v_i / T)
is to find the best of v_i + T·(Gumbel noise); to accept arm 1 in place of arm 0 with probability min(1,
exp(v_1 - v_0)) is to find the better of v_0 + log u and v_1.
"""

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import as_written, kernel, part
from gumbelrace.core.random import Bits, gumbel, uniform
from gumbelrace.population.base import Floats, Source

# Entries of RaceState.tally. Who asks sets the last four:
ALIVE, LEADER, RUNNER_UP, TAKEN, WANTED, EVALUATIONS, LOOKS, EXHAUSTED, TIED = range(9)
ARMS = 9  # how many there are, the first of those for which there is room
QUESTION = 10  # a `Question`
AT_ONCE = 11  # whether to read everything, whatever the rule says
FAVOURITE = 12  # an independent arm that is read at once

NOBODY = -1

# Sums that differ by less than this share of their size are equal but for rounding.
ROUNDING = 1e-13


class RaceState(NamedTuple):
    """The arms of one race and what is known of them (compiled code changes the arrays)."""

    tally: NDArray[np.int64]
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
    law_error: Floats  # of an answer that is right in law only: how far off it is, by what was read


def new_state(arms: int) -> RaceState:
    """Make room for a race of so many arms."""
    tally = np.zeros(13, np.int64)
    tally[ARMS], tally[FAVOURITE] = arms, NOBODY
    return RaceState(
        tally,
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
        np.zeros(1),
    )


@part
def reset(state: RaceState, source: Source) -> None:
    """Forget the draw before, but for the offsets."""
    state.tally[TAKEN] = state.tally[EVALUATIONS] = state.tally[LOOKS] = 0
    state.tally[TIED] = 0
    for arm in range(state.tally[ARMS]):
        source.ruled_out[arm] = 0
    state.shift[0] = np.nan
    state.law_error[0] = 0.0


@part
def admit(state: RaceState, source: Source) -> None:
    """Fill the race with the arms that nothing rules out, nothing read yet."""
    for arm in range(state.tally[ARMS]):
        state.sums[arm], state.lost[arm] = 0.0, 0.0
        state.rows[arm], state.out[arm] = 0, 0
    line_up(state, source)


@as_written
def add(state: RaceState, arm: int, term: float) -> None:
    """Add to the sum of an arm, and note what rounding takes from it (Knuth's two-sum)."""
    before = state.sums[arm]
    after = before + term
    of_term = after - before
    state.lost[arm] += (before - (after - of_term)) + (term - of_term)
    state.sums[arm] = after


@part
def line_up(state: RaceState, source: Source) -> None:
    """Put every possible arm into the race."""
    alive = 0
    for arm in range(state.tally[ARMS]):
        if is_possible(state, source, arm):
            state.arms[alive] = arm
            alive += 1
    state.tally[ALIVE] = alive


@part
def is_possible(state: RaceState, source: Source, arm: int) -> bool:
    """Whether nothing seen so far gives the arm probability zero."""
    # The exact range of a table that was checked beforehand shows which arms have a -inf.
    known = not source.verify and source.low[arm] == -np.inf
    return state.offset[arm] > -np.inf and not known and not source.ruled_out[arm]


@part
def drop(state: RaceState) -> None:
    """Take the flagged arms out of the race, keeping the others in order."""
    kept = 0
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        state.arms[kept] = arm
        kept += 1 - state.out[arm]
        state.out[arm] = 0
    state.tally[ALIVE] = kept


@part
def drop_ruled_out(state: RaceState, source: Source) -> None:
    """Take arms that have shown a -inf out of the race."""
    for a in range(state.tally[ALIVE]):
        state.out[state.arms[a]] = source.ruled_out[state.arms[a]]
    drop(state)


@part
def estimate(state: RaceState, arm: int, taken: int, size: int) -> float:
    """Estimate the sum of an arm over all rows, offset included (shifted)."""
    return state.sums[arm] * (size / taken) + state.offset[arm]


@part
def rank(state: RaceState, taken: int, size: int) -> None:
    """Find the leader and the runner-up; of equals, the arm with the lower number leads."""
    for a in range(state.tally[ALIVE]):
        place(state, a, estimate(state, state.arms[a], taken, size))


@part
def place(state: RaceState, a: int, value: float) -> None:
    """Compare the a-th arm with the first two among those before it."""
    arm = state.arms[a]
    if a == 0 or value > state.podium[0]:
        state.tally[RUNNER_UP], state.podium[1] = state.tally[LEADER], state.podium[0]
        state.tally[LEADER], state.podium[0] = arm, value
    elif a == 1 or value > state.podium[1]:
        state.tally[RUNNER_UP], state.podium[1] = arm, value


@part
def name_leader(state: RaceState, exhausted: bool) -> None:
    """Name the winner, once arms are ranked: exact if every row of those left was read."""
    state.tally[EXHAUSTED] = exhausted
    if state.tally[ALIVE] == 1:
        state.tally[LEADER] = state.arms[0]
    elif exhausted:
        state.tally[TIED] = is_tie(state.podium[0], state.podium[1])


class Results(NamedTuple):
    """What a batch of draws gives (arrays with one entry for each draw)."""

    arms: NDArray[np.int64]
    evaluations: NDArray[np.int64]
    looks: NDArray[np.int64]
    exhausted: NDArray[np.bool_]
    tied: NDArray[np.bool_]
    law_error: Floats


def new_results(draws: int) -> Results:
    """Make room for the results of `draws` draws."""
    arms, evaluations, looks = np.zeros((3, draws), np.int64)
    exhausted, tied = np.zeros((2, draws), np.bool_)
    return Results(arms, evaluations, looks, exhausted, tied, np.zeros(draws))


def part_of(results: Results, part: slice) -> Results:
    """Give a view of the results of some of the draws."""
    parts: Any = [values[part] for values in results]
    return Results(*parts)


@part
def record(state: RaceState, results: Results, draw: int) -> None:
    """Note the outcome of a draw."""
    results.arms[draw] = state.tally[LEADER]
    results.evaluations[draw] = state.tally[EVALUATIONS]
    results.looks[draw] = state.tally[LOOKS]
    results.exhausted[draw] = state.tally[EXHAUSTED] == 1
    results.tied[draw] = state.tally[TIED] == 1
    results.law_error[draw] = state.law_error[0]


@part
def is_tie(best: float, next_best: float) -> bool:
    """Whether two sums differ by no more than rounding."""
    return best - next_best <= ROUNDING * (abs(best) + abs(next_best))


class Question(IntEnum):
    """What is asked of the arms.

    Attributes
    ----------
    WINNER
        Which is the best?
    DRAW
        Which, with probability ∝ exp(value / temperature)?
    ACCEPT
        The second in place of the first, with the probability of Metropolis and Hastings?
    """

    WINNER = 0
    DRAW = 1
    ACCEPT = 2


CURRENT, PROPOSED = 0, 1  # the arms of ACCEPT
DRAWN, ACCEPTED = int(Question.DRAW), int(Question.ACCEPT)


@part
def add_noise(question: int, temperature: float, offset: Floats, bits: Bits) -> None:
    """Add the noise with which finding the best arm answers a question."""
    if question == DRAWN and temperature > 0.0:
        for arm in range(len(offset)):
            offset[arm] += temperature * gumbel(bits)
    elif question == ACCEPTED:
        offset[CURRENT] += np.log(uniform(bits))


@kernel
def put_noise(question: int, temperature: float, offsets: Floats, bits: Bits) -> None:
    """Add noise to each row of offsets: what is left to do is to find the best arm."""
    for draw in range(len(offsets)):
        add_noise(question, temperature, offsets[draw], bits)
