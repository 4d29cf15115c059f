"""Absorbing the error of arms that have rows of their own (`absorb` says how, where arms share rows).

The errors of the estimated sums of different arms are independent. Each arm has a pilot, which tells how
much its rewards vary, and then a last look of T rows, which stands for the M rows that the pilot did not
read: the variance of its error is

    v_i = M_i² σ̂_i² / T_i (1 - T_i/M_i),

and T_i is such that v_i is well below s² by the pilot, and what is known of the law of the error says
that it is close enough to a normal one. Then noise of variance s² - v_i is added, by the variance of the
last look. Who went on to read one sample until its own variance is small enough would bias sums of skewed
rewards. Arms that cannot win are not read on, or not at all: with a known range those are read first that
can reach most, and others wait.

An arm that is a group of small sums (a size below 0) has a value with all its noise when it is found.
"""

from typing import NamedTuple

import numpy as np

from gumbelrace.core.jit import part
from gumbelrace.core.orders import rewind_first
from gumbelrace.methods import rules
from gumbelrace.methods.absorb_errors import (
    Errors,
    by_hidden,
    by_skewness,
    estimated,
    furthest,
    go_on_with_pilot,
    is_partly_read,
    is_unproved,
    law_error,
    new_errors,
    note_errors,
)
from gumbelrace.methods.absorb_moments import (
    BY_VARIANCE,
    GROWTH,
    LEAST,
    LONGEST,
    by_excess,
    headroom,
    normal,
    rows_at_first,
)
from gumbelrace.methods.corrections import Correction, draw_correction
from gumbelrace.methods.independent import (
    NOT_NOW,
    IndependentWorkspace,
    all_read,
    ceiling,
    is_unseen,
    lower_bar,
    read_more,
    waits,
)
from gumbelrace.methods.margins import FAR, far_after, reach_of_skewness
from gumbelrace.methods.rules import enter, implements
from gumbelrace.methods.state import (
    ALIVE,
    ARMS,
    AT_ONCE,
    EXHAUSTED,
    LEADER,
    LOOKS,
    drop,
    line_up,
    reset,
)
from gumbelrace.population.base import CODE, FINE, IMPOSSIBLE

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

    def working_memory(self, arms: int) -> Errors:
        """Make room for what is known of the errors of all arms."""
        return new_errors(arms)


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
        note_errors(workspace, deviation)
        if not all_read(state, workspace.readings):
            drop_beaten(rule, workspace, deviation)
            drop(state)
    if (everything and state.tally[ALIVE] > 1) or state.tally[ALIVE] == 0:
        read_everything(workspace, deviation)
    if workspace.source.fault[CODE] == FINE:
        choose(workspace, deviation)
        rewind_first(workspace.order, state.tally[ARMS])


@part
def add_corrections(rule: AbsorbingOwn, workspace: IndependentWorkspace) -> float:
    """Add to the offsets what normal noise lacks of the noise of a draw; give its standard deviation."""
    state, drawn, temperature = workspace.state, workspace.work.drawn, workspace.state.temperature[0]
    groups, workspace.work.surprise[0] = 0, 0.0
    for arm in range(state.tally[ARMS]):
        drawn[arm] = workspace.sizes[arm] < 0
        groups += drawn[arm]
        go_on_with_pilot(workspace, arm)
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
            readings.wanted[arm] = rows_at_first(rule.first, workspace.sizes[arm])
        elif readings.taken[arm] == workspace.sizes[arm] or workspace.work.pilot[arm] > 0:
            readings.wanted[arm] = NOT_NOW
        else:
            readings.wanted[arm] = rows_wanted(rule, workspace, arm, deviation)
        more |= readings.wanted[arm] != NOT_NOW and readings.taken[arm] != workspace.sizes[arm]
    return more


@part
def read_turns(workspace: IndependentWorkspace) -> bool:
    """Read what is wanted of the arms whose turn it is; False after a fault."""
    state, readings = workspace.state, workspace.readings
    lower_bar(state, readings)
    for a in range(state.tally[ALIVE]):
        if waits(readings, state.arms[a]):
            readings.wanted[state.arms[a]] = NOT_NOW
    state.tally[LOOKS] += 1
    return read_more(workspace, False)


@part
def rows_wanted(rule: AbsorbingOwn, workspace: IndependentWorkspace, arm: int, deviation: float) -> int:
    """Give how many more rows an arm needs, for its pilot or its last look; 0 for all that are left."""
    errors, taken, size = workspace.work, workspace.readings.taken[arm], workspace.sizes[arm]
    if is_unproved(workspace, arm):
        return taken
    last = rows_of_last(rule, workspace, arm, deviation)
    enough = max((taken * errors.unsure[arm] - 2.0) * BY_VARIANCE / rule.error, last / LONGEST)
    if max(enough, 1.0 * taken) + last > MOST_SHARE * size:
        return 0
    if enough <= taken:
        errors.pilot[arm], errors.known[arm] = taken, workspace.state.sums[arm]
        return int(np.ceil(last))
    # Not at once: what is read of one arm may show that others cannot win.
    wanted = int(min(max(enough - taken, LEAST), (GROWTH - 1.0) * taken)) + 1
    # Moments are those of the part read last, which is to be a long one.
    chunk = workspace.source.chunk
    return wanted if wanted < chunk else wanted // chunk * chunk


@part
def rows_of_last(rule: AbsorbingOwn, workspace: IndependentWorkspace, arm: int, deviation: float) -> float:
    """Give how many rows the last look of an arm needs, for the noise and for its law."""
    errors, temperature = workspace.work, workspace.state.temperature[0]
    rest = float(workspace.sizes[arm] - workspace.readings.taken[arm])
    spare = headroom(errors.unsure[arm], 1.0 * workspace.readings.taken[arm])
    of_one = rest * rest * errors.row_variance[arm] * spare
    last = max(1.0 / (1.0 / rest + deviation * deviation / max(of_one, 1e-300)), 1.0 * LEAST)
    per_row, left = rest / last, max(1.0 - last / rest, 0.0)
    skewed = by_skewness(workspace, per_row * per_row * rest * left * errors.row_third[arm])
    hidden = by_hidden(per_row * left * furthest(workspace, arm) / temperature)
    # Of rows that weigh less by half, skewness does a fourth at most.
    return last * max(1.0, np.sqrt((skewed + hidden) / rule.error))


@part
def drop_beaten(rule: AbsorbingOwn, workspace: IndependentWorkspace, deviation: float) -> None:
    """Flag arms that trail by more than noise and errors can bring back."""
    state, leader = workspace.state, workspace.state.tally[LEADER]
    best = estimated(workspace, leader)
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        value = estimated(workspace, arm)
        if is_unseen(workspace.readings, arm):
            value = ceiling(workspace.source, state, workspace.readings, arm)
        state.out[arm] = arm != leader and best - value > margin_of(rule, workspace, arm, deviation)


@part
def margin_of(rule: AbsorbingOwn, workspace: IndependentWorkspace, arm: int, deviation: float) -> float:
    """Give how far behind the leader an arm may still win."""
    errors, leader = workspace.work, workspace.state.tally[LEADER]
    noise = noise_of(workspace, leader, deviation) + noise_of(workspace, arm, deviation)
    # Rows of which so many are expected in a sample are missed with the probability of the error.
    hidden = -np.log(rule.error) * (errors.hidden[leader] + errors.hidden[arm])
    far = max(far_of(workspace, leader), far_of(workspace, arm))
    skewed = reach_of_skewness(abs(errors.skewed[leader]) + abs(errors.skewed[arm]), noise)
    unproved = is_partly_read(workspace, leader) and is_unproved(workspace, leader)
    unproved |= is_partly_read(workspace, arm) and is_unproved(workspace, arm)
    return np.inf if unproved else far * np.sqrt(noise) + skewed + hidden


@part
def noise_of(workspace: IndependentWorkspace, arm: int, deviation: float) -> float:
    """Give the variance of the noise that an arm has or will be given, and of its error."""
    errors = workspace.work
    return 0.0 if errors.drawn[arm] else max(errors.variance[arm], deviation * deviation)


@part
def far_of(workspace: IndependentWorkspace, arm: int) -> float:
    """Give how many standard deviations are far, by Student's t where the variance is estimated."""
    return far_after(1.0 * workspace.readings.taken[arm]) if is_partly_read(workspace, arm) else FAR


@part
def read_everything(workspace: IndependentWorkspace, deviation: float) -> None:
    """Read all that is left; if all arms have shown a -inf, of those that were dropped before."""
    state, source = workspace.state, workspace.source
    if state.tally[ALIVE] == 0:
        line_up(state, source)
    read_more(workspace, True)
    note_errors(workspace, deviation)
    if state.tally[ALIVE] == 0 and source.fault[CODE] == FINE:
        source.fault[CODE] = IMPOSSIBLE


@part
def choose(workspace: IndependentWorkspace, deviation: float) -> None:
    """Add the noise that is missing, and name the best."""
    state, errors, best = workspace.state, workspace.work, -np.inf
    state.tally[EXHAUSTED], state.tally[LEADER] = all_read(state, workspace.readings), state.arms[0]
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        missing = 0.0 if errors.drawn[arm] else deviation * deviation - errors.variance[arm]
        value = estimated(workspace, arm) + np.sqrt(max(missing, 0.0)) * normal(workspace.noise)
        errors.surprise[0] += by_excess(-missing, state.temperature[0])
        if state.tally[ALIVE] > 1 and is_partly_read(workspace, arm):
            state.law_error[0] = max(state.law_error[0], law_error(workspace, arm))
        if value > best:
            best, state.tally[LEADER] = value, arm
    state.law_error[0] += errors.surprise[0]
