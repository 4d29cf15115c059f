"""The pilot of a draw by `Absorb`: rows that tell how much rewards vary, and which arms cannot win."""

import numpy as np

from gumbelrace.core.jit import part
from gumbelrace.core.rows import pick_rows
from gumbelrace.methods.absorb_moments import (
    FAR,
    Moments,
    add_derivatives,
    count_rows,
    mean_of,
    pair_variance,
)
from gumbelrace.methods.race_independent import ROUNDING
from gumbelrace.methods.reading import HELD, Sample, fresh_rows, open_look, total
from gumbelrace.methods.shared import SharedWorkspace, read_more
from gumbelrace.methods.state import (
    ALIVE,
    EVALUATIONS,
    LEADER,
    LOOKS,
    TAKEN,
    RaceState,
    add,
    drop,
    drop_ruled_out,
    estimate,
    rank,
)
from gumbelrace.population.arrays import LARGEST_REWARD
from gumbelrace.population.base import read


@part
def by_weights(workspace: SharedWorkspace) -> bool:
    """Whether rows are drawn with replacement, by their weights."""
    return len(workspace.order.weights.keep) > 0 and len(workspace.source.direct) == 0


@part
def share_left(workspace: SharedWorkspace) -> float:
    """Give the share of the rows that were not read; all, if rows may be drawn again."""
    return 1.0 if by_weights(workspace) else 1.0 - workspace.state.tally[TAKEN] / workspace.sizes[0]


@part
def read_pilot(workspace: SharedWorkspace, wanted: int, deviation: float, error: float) -> bool:
    """Read rows until so many were read, and drop arms on the way; False after a fault."""
    state = workspace.state
    while state.tally[TAKEN] < wanted and state.tally[ALIVE] > 1:
        if not read_some(workspace, min(wanted - state.tally[TAKEN], HELD)):
            return False
        if state.tally[ALIVE] > 1:
            rank(state, state.tally[TAKEN], workspace.sizes[0])
            judge_look(workspace, deviation, error)
    return True


@part
def read_some(workspace: SharedWorkspace, count: int) -> bool:
    """Read so many rows, at random or by their weights; False after a fault."""
    open_look(workspace.sample, False)
    done = read_picked(workspace, count) if by_weights(workspace) else read_more(workspace, count)
    workspace.state.tally[TAKEN] += count
    workspace.state.tally[LOOKS] += 1
    return done


@part
def read_picked(workspace: SharedWorkspace, count: int) -> bool:
    """Draw rows by their weights, and divide their rewards by these (Horvitz and Thompson 1952)."""
    source, state, sample, rows = workspace.source, workspace.state, workspace.sample, workspace.rows
    chances, done = workspace.order.weights, 0
    while done < count:
        n = min(source.chunk, count - done)
        pick_rows(workspace.bits, chances, workspace.sizes[0], rows, n)
        got = read(source, rows, n, state.arms, state.tally[ALIVE], sample.rewards, done)
        if got == 0:
            return False
        state.tally[EVALUATIONS] += got
        for a in range(state.tally[ALIVE]):
            for i in range(n):
                sample.rewards[state.arms[a], done + i] /= chances.chance[rows[i]]
        done += n
    drop_ruled_out(state, source)
    add_up(state, sample, count)
    return True


@part
def add_up(state: RaceState, sample: Sample, count: int) -> None:
    """Make what was read the one run of the last look, and add it to the sums."""
    sample.first[0], sample.length[0], sample.runs[0] = 0, count, 1
    # What weights are divided into is not the same for all rows: no common part can be left out.
    state.shift[0] = 0.0
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        state.fresh[arm] = total(sample.rewards, arm, 0, count, 0.0)
        add(state, arm, state.fresh[arm])


@part
def judge_look(workspace: SharedWorkspace, deviation: float, error: float) -> None:
    """Drop arms, and count the rows of a look: of the first, for the arms that are left only."""
    moments, state, is_first = workspace.work, workspace.state, workspace.work.counted[0] == 0
    if not is_first:
        count_rows(moments, state, workspace.sample)
    compare(workspace, deviation, error)
    drop(state)
    if is_first:
        count_rows(moments, state, workspace.sample)
    add_derivatives(moments, state, fresh_rows(workspace.sample))


@part
def compare(workspace: SharedWorkspace, deviation: float, error: float) -> None:
    """Flag arms that trail by more than noise can bring back; note the chances of the others."""
    state, moments, leader = workspace.state, workspace.work, workspace.state.tally[LEADER]
    taken, size, widest, moments.unproved[0] = state.tally[TAKEN], workspace.sizes[0], 0.0, False
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        moments.gap[arm] = state.podium[0] - estimate(state, arm, taken, size)
        second = spread_of(workspace, leader, arm)
        equal = arm != leader and are_equal(workspace, leader, arm, second)
        variance = second * size * (size / taken) * share_left(workspace)
        margin = margin_of(workspace, arm, variance, 2.0 * deviation * deviation, error)
        state.out[arm] = moments.gap[arm] > margin and not equal
        if not state.out[arm]:
            widest, moments.unproved[0] = max(widest, variance), moments.unproved[0] or equal
    put_chances(moments, state, np.sqrt(state.temperature[0] ** 2 + widest / 2.0))


@part
def spread_of(workspace: SharedWorkspace, leader: int, arm: int) -> float:
    """Give the variance of the differences from the leader; note how skewed they are."""
    moments, is_first = workspace.work, workspace.work.counted[0] == 0
    second, third = deviations(workspace.state, workspace.sample, leader, arm)
    jump = abs(third) / second if second > 0.0 else 0.0
    moments.jump[arm] = jump if is_first else max(moments.jump[arm], jump)
    return second if is_first else pair_variance(moments, leader, arm)


@part
def margin_of(
    workspace: SharedWorkspace, arm: int, variance: float, of_noise: float, error: float
) -> float:
    """Give how far behind the leader an arm may still win."""
    state, rows = workspace.state, workspace.state.tally[TAKEN]
    noise = variance + of_noise
    far = FAR * (1.0 + (FAR * FAR + 1.0) / (4.0 * rows))  # of Student's t
    skewed = (2.0 * FAR * FAR + 1.0) / 6.0 * workspace.work.jump[arm] * variance / noise
    # Rows of which so many are expected in the sample are missed with the probability of the error.
    hidden = -np.log(error) * share_left(workspace) * unseen(workspace, arm, state.tally[LEADER])
    return far * np.sqrt(noise) + workspace.sizes[0] / rows * (skewed + hidden)


@part
def deviations(state: RaceState, sample: Sample, leader: int, arm: int) -> tuple[float, float]:
    """Give the second and third central moments of the differences from the leader in the last look."""
    centre, second, third = mean_of(state, sample, leader) - mean_of(state, sample, arm), 0.0, 0.0
    j, k, rewards, rows = np.uint64(leader), np.uint64(arm), sample.rewards, fresh_rows(sample)
    for run in range(sample.runs[1], sample.runs[0]):
        first = np.uint64(sample.first[run])
        for i in range(first, first + np.uint64(sample.length[run])):
            difference = rewards[j, i] - rewards[k, i] - centre
            second += difference * difference
            third += difference * difference * difference
    return second / max(rows - 1, 1), third / rows


@part
def are_equal(workspace: SharedWorkspace, leader: int, arm: int, second: float) -> bool:
    """Whether all differences read were the same, which proves nothing where no range is known."""
    state, sample = workspace.state, workspace.sample
    sizes = abs(mean_of(state, sample, leader)) + abs(mean_of(state, sample, arm))
    return not has_range(workspace, arm, leader) and np.sqrt(second) <= ROUNDING * sizes


@part
def has_range(workspace: SharedWorkspace, arm: int, other: int) -> bool:
    """Whether it is known how large the rewards of an arm can be, and how small those of another."""
    source = workspace.source
    known = source.high[arm] < LARGEST_REWARD and source.low[other] > -LARGEST_REWARD
    return known and not by_weights(workspace)


@part
def unseen(workspace: SharedWorkspace, arm: int, other: int) -> float:
    """Give by how much a row may favour one arm over another more than rows do on average, if known."""
    source, state, taken = workspace.source, workspace.state, workspace.state.tally[TAKEN]
    if not has_range(workspace, arm, other):
        return 0.0
    return source.high[arm] - source.low[other] - (state.sums[arm] - state.sums[other]) / taken


@part
def most_unseen(workspace: SharedWorkspace) -> float:
    """Give by how much a row may favour any arm over any other more than rows do on average, if known."""
    state = workspace.state
    highest = lowest = state.arms[0]
    for a in range(1, state.tally[ALIVE]):
        arm = state.arms[a]
        highest = arm if unseen(workspace, arm, lowest) > unseen(workspace, highest, lowest) else highest
        lowest = arm if unseen(workspace, highest, arm) > unseen(workspace, highest, lowest) else lowest
    return unseen(workspace, highest, lowest)


@part
def put_chances(moments: Moments, state: RaceState, scale: float) -> None:
    """Note the chances of the arms in the race, less sure the larger the error of their values."""
    sum_of_all = 0.0
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        moments.chances[arm] = 0.0 if state.out[arm] else np.exp(-moments.gap[arm] / scale)
        sum_of_all += moments.chances[arm]
    for a in range(state.tally[ALIVE]):
        moments.chances[state.arms[a]] /= sum_of_all
