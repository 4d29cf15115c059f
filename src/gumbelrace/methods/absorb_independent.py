"""Absorbing the error of arms that have rows of their own (`absorb` says how, where arms share rows).

The errors of the estimated sums of different arms are independent: their variances are

    v_i = N_i² σ̂_i² / T_i (1 - T_i/N_i),

and each arm is read until v_i is at most s², and what is known of the law of its error says that it is
close enough to a normal one. Then noise of variance s² - v_i is added. Arms that cannot win are not read
on, or not at all: with a known range those are read first that can reach most, and others wait.

An arm that is a group of small sums (a size below 0) has a value with all its noise when it is found.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import part
from gumbelrace.core.rows import rewind_first
from gumbelrace.methods import rules
from gumbelrace.methods.absorb_moments import FAR, LARGEST_DERIVATIVE, MARGIN, normal
from gumbelrace.methods.corrections import Correction, draw_correction
from gumbelrace.methods.independent import (
    NOT_NOW,
    IndependentWorkspace,
    all_read,
    ceiling,
    estimate_sum,
    is_unseen,
    lower_bar,
    rank_independent,
    read_more,
    waits,
)
from gumbelrace.methods.race_independent import ROUNDING
from gumbelrace.methods.rules import enter, implements
from gumbelrace.methods.state import ALIVE, ARMS, AT_ONCE, EXHAUSTED, LEADER, LOOKS, drop, line_up, reset
from gumbelrace.population.arrays import LARGEST_REWARD
from gumbelrace.population.base import CODE, FINE, IMPOSSIBLE, Floats

# Rows that a look has at least, of which third moments are taken.
LEAST = 32
# Of an arm of which a larger share is to be read, all is.
MOST_SHARE = 0.75


class AbsorbingOwn(NamedTuple):
    """Rule: read each arm until the error of its sum fits into the noise, and is close to normal."""

    first: int
    error: float  # of the law of the error
    of_many: Correction
    of_two: Correction
    at_once: bool  # rewards of some rows tell nothing of others
    patient: bool = True

    def working_memory(self, arms: int) -> "Errors":
        """Make room for what is known of the errors of all arms."""
        variance, skewed, hidden, third = np.zeros((4, arms))
        return Errors(np.zeros(arms, np.bool_), variance, skewed, hidden, third)


class Errors(NamedTuple):
    """For each arm: what is known of the error of its estimated sum."""

    drawn: NDArray[np.bool_]  # whether its value comes with all its noise
    variance: Floats
    skewed: Floats  # third cumulant of the error
    hidden: Floats  # what a row that was not seen can do to the estimate, as far as is known
    third: Floats  # central moment of the rewards


@implements(rules.run, AbsorbingOwn)
def _run(rule: AbsorbingOwn, workspace: IndependentWorkspace) -> None:
    state = workspace.state
    reset(state, workspace.source)
    deviation = add_corrections(rule, workspace)
    enter(workspace)
    everything = rule.at_once or state.tally[AT_ONCE] == 1 or deviation == 0.0
    while not everything and state.tally[ALIVE] > 1 and wants_more(rule, workspace, deviation):
        if not read_turns(workspace):
            return
        note_errors(workspace)
        if not all_read(state, workspace.readings):
            drop_beaten(rule, workspace, deviation)
            drop(state)
    if (everything and state.tally[ALIVE] > 1) or state.tally[ALIVE] == 0:
        read_everything(workspace)
    if workspace.source.fault[CODE] == FINE:
        choose(workspace, deviation)
        rewind_first(workspace.order, state.tally[ARMS])


@part
def add_corrections(rule: AbsorbingOwn, workspace: IndependentWorkspace) -> float:
    """Add to the offsets what normal noise lacks of the noise of a draw; give its standard deviation."""
    state, drawn, temperature = workspace.state, workspace.work.drawn, workspace.state.temperature[0]
    groups = 0
    for arm in range(state.tally[ARMS]):
        drawn[arm] = workspace.sizes[arm] < 0
        groups += drawn[arm]
    if state.tally[ARMS] == 2 and groups == 0:
        # The difference has one correction, and the noise of both arms.
        state.offset[0] += temperature * draw_correction(rule.of_two, workspace.noise)
        return temperature * rule.of_two.deviation / np.sqrt(2.0)
    for arm in range(state.tally[ARMS]):
        if not drawn[arm]:
            state.offset[arm] += temperature * draw_correction(rule.of_many, workspace.noise)
    return temperature * rule.of_many.deviation


@part
def wants_more(rule: AbsorbingOwn, workspace: IndependentWorkspace, deviation: float) -> bool:
    """Say how many rows each arm is to read, when it is its turn; False if none needs any."""
    state, readings, more = workspace.state, workspace.readings, False
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        if readings.taken[arm] == 0:
            readings.wanted[arm] = rule.first
        elif readings.taken[arm] == workspace.sizes[arm]:
            readings.wanted[arm] = NOT_NOW
        else:
            readings.wanted[arm] = rows_wanted(rule, workspace, arm, deviation)
        more |= readings.wanted[arm] != NOT_NOW and readings.taken[arm] != workspace.sizes[arm]
    return more


@part
def read_turns(workspace: IndependentWorkspace) -> bool:
    """Read what is wanted of the arms whose turn it is, and find the leader; False after a fault."""
    state, readings = workspace.state, workspace.readings
    lower_bar(state, readings)
    for a in range(state.tally[ALIVE]):
        if waits(readings, state.arms[a]):
            readings.wanted[state.arms[a]] = NOT_NOW
    if not read_more(workspace, False):
        return False
    state.tally[LOOKS] += 1
    rank_independent(state, readings)
    return True


@part
def rows_wanted(rule: AbsorbingOwn, workspace: IndependentWorkspace, arm: int, deviation: float) -> int:
    """Give how many more rows an arm needs, 0 for all that are left, or `NOT_NOW`."""
    taken, size, errors = workspace.readings.taken[arm], workspace.sizes[arm], workspace.work
    if is_unproved(workspace, arm):
        return taken
    law = law_error(workspace, arm)
    if errors.variance[arm] <= deviation * deviation and law <= rule.error:
        return NOT_NOW
    # Of rows that weigh less by half, skewness does a fourth at most.
    needed = max(
        MARGIN * errors.variance[arm] / (deviation * deviation), np.sqrt(MARGIN * law / rule.error)
    )
    left = 1.0 - taken / size
    target = 1.0 / (left / taken / needed + (1.0 - left) / taken)
    # Not at once: what is read of one arm may show that others cannot win.
    wanted = int(min(max(target - taken, LEAST), taken)) + 1
    if taken + wanted > MOST_SHARE * size:
        return 0
    # The third moment is that of the part read last, which is to be a long one.
    chunk = workspace.source.chunk
    return wanted if wanted < chunk else wanted // chunk * chunk


@part
def is_unproved(workspace: IndependentWorkspace, arm: int) -> bool:
    """Whether all rewards read were the same, which proves nothing of the others."""
    source, readings, taken = workspace.source, workspace.readings, workspace.readings.taken[arm]
    deviation = np.sqrt(readings.squares[arm] / taken)
    same = deviation <= ROUNDING * abs(workspace.state.sums[arm] / taken)
    return same and source.high[arm] > source.low[arm]


@part
def law_error(workspace: IndependentWorkspace, arm: int) -> float:
    """Bound how far the law is off by the error of an arm that is not normal, of arms that are alike.

    The third derivative of a chance p is at most p and at most 1/8: of all arms they add up to 1 at most.
    """
    state, errors, temperature = workspace.state, workspace.work, workspace.state.temperature[0]
    derivatives = min(1.0, state.tally[ALIVE] * LARGEST_DERIVATIVE)
    left = 1.0 - workspace.readings.taken[arm] / workspace.sizes[arm]
    seen = (1.0 + left) / 6.0 * abs(errors.skewed[arm]) * derivatives / temperature**3
    return seen + LARGEST_DERIVATIVE / 3.0 * (errors.hidden[arm] / temperature) ** 3


@part
def note_errors(workspace: IndependentWorkspace) -> None:
    """Find what the rows read tell of the errors of the arms."""
    state, readings, errors = workspace.state, workspace.readings, workspace.work
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        taken, size = readings.taken[arm], workspace.sizes[arm]
        errors.variance[arm] = errors.skewed[arm] = errors.hidden[arm] = 0.0
        if 0 < taken < size:
            if readings.fresh[arm] > 0:
                errors.third[arm] = third_moment(workspace, arm)
            left, per_row = 1.0 - taken / size, size / taken
            errors.variance[arm] = readings.squares[arm] / (taken - 1) * per_row * size * left
            errors.skewed[arm] = errors.third[arm] * per_row * per_row * size * left
            errors.hidden[arm] = per_row * left * furthest(workspace, arm)


@part
def third_moment(workspace: IndependentWorkspace, arm: int) -> float:
    """Give the third central moment of the rewards in the part of an arm that was read last."""
    block, chunk, j = workspace.readings.block, workspace.source.chunk, np.uint64(arm)
    count = (workspace.readings.fresh[arm] - 1) % chunk + 1
    mean = third = 0.0
    for i in range(np.uint64(count)):
        mean += block[j, i] / count
    for i in range(np.uint64(count)):
        third += (block[j, i] - mean) ** 3 / count
    return third


@part
def furthest(workspace: IndependentWorkspace, arm: int) -> float:
    """Give how far from the mean a reward of an arm can be, if that is known; else 0."""
    source, mean = workspace.source, workspace.state.sums[arm] / workspace.readings.taken[arm]
    if source.high[arm] >= LARGEST_REWARD or source.low[arm] <= -LARGEST_REWARD:
        return 0.0
    return max(source.high[arm] - mean, mean - source.low[arm])


@part
def drop_beaten(rule: AbsorbingOwn, workspace: IndependentWorkspace, deviation: float) -> None:
    """Flag arms that trail by more than noise and errors can bring back."""
    state, leader = workspace.state, workspace.state.tally[LEADER]
    best, of_leader = (
        estimate_sum(state, workspace.readings, leader),
        noise_of(workspace, leader, deviation),
    )
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        value = (
            ceiling(workspace.source, state, workspace.readings, arm)
            if is_unseen(workspace.readings, arm)
            else estimate_sum(state, workspace.readings, arm)
        )
        noise = of_leader + noise_of(workspace, arm, deviation)
        # Rows of which so many are expected in a sample are missed with the probability of the error.
        hidden = -np.log(rule.error) * (workspace.work.hidden[leader] + workspace.work.hidden[arm])
        far = max(far_of(workspace, leader), far_of(workspace, arm))
        skewed = skew_of(workspace, leader, noise) + skew_of(workspace, arm, noise)
        unproved = is_partly_read(workspace, leader) and is_unproved(workspace, leader)
        unproved |= is_partly_read(workspace, arm) and is_unproved(workspace, arm)
        margin = np.inf if unproved else far * np.sqrt(noise) + skewed + hidden
        state.out[arm] = arm != leader and best - value > margin


@part
def is_partly_read(workspace: IndependentWorkspace, arm: int) -> bool:
    """Whether some rows of an arm were read, and not all."""
    return 0 < workspace.readings.taken[arm] < workspace.sizes[arm]


@part
def noise_of(workspace: IndependentWorkspace, arm: int, deviation: float) -> float:
    """Give the variance of the noise that an arm has or will be given, and of its error."""
    errors = workspace.work
    return 0.0 if errors.drawn[arm] else max(errors.variance[arm], deviation * deviation)


@part
def far_of(workspace: IndependentWorkspace, arm: int) -> float:
    """Give how many standard deviations are far, by Student's t where the variance is estimated."""
    taken = workspace.readings.taken[arm]
    return FAR * (1.0 + (FAR * FAR + 1.0) / (4.0 * taken)) if is_partly_read(workspace, arm) else FAR


@part
def skew_of(workspace: IndependentWorkspace, arm: int, noise: float) -> float:
    """Give by how much further the skewness of an error reaches."""
    skewed = abs(workspace.work.skewed[arm])
    return (2.0 * FAR * FAR + 1.0) / 6.0 * skewed / noise if skewed > 0.0 else 0.0


@part
def read_everything(workspace: IndependentWorkspace) -> None:
    """Read all that is left; if all arms have shown a -inf, of those that were dropped before."""
    state, source = workspace.state, workspace.source
    if state.tally[ALIVE] == 0:
        line_up(state, source)
    read_more(workspace, True)
    note_errors(workspace)
    if state.tally[ALIVE] == 0 and source.fault[CODE] == FINE:
        source.fault[CODE] = IMPOSSIBLE


@part
def choose(workspace: IndependentWorkspace, deviation: float) -> None:
    """Add the noise that is missing, and name the best."""
    state, errors, best = workspace.state, workspace.work, -np.inf
    state.tally[EXHAUSTED], state.tally[LEADER] = all_read(state, workspace.readings), state.arms[0]
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        missing = 0.0 if errors.drawn[arm] else max(deviation * deviation - errors.variance[arm], 0.0)
        value = estimate_sum(state, workspace.readings, arm) + np.sqrt(missing) * normal(workspace.noise)
        if state.tally[ALIVE] > 1 and is_partly_read(workspace, arm):
            state.law_error[0] = max(state.law_error[0], law_error(workspace, arm))
        if value > best:
            best, state.tally[LEADER] = value, arm
