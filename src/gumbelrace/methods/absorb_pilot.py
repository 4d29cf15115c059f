"""The pilot of a draw by `Absorb`: rows that tell how much rewards vary, and which arms cannot win."""

import numpy as np

from gumbelrace.core.jit import part
from gumbelrace.methods.absorb_moments import (
    Moments,
    add_derivatives,
    count_rows,
    mean_apart,
    pair_variance,
)
from gumbelrace.methods.margins import margin
from gumbelrace.methods.race_independent import ROUNDING
from gumbelrace.methods.reading import HELD, Sample, fresh_rows, open_look, reduced, total
from gumbelrace.methods.shared import SharedWorkspace, by_weights, read_more
from gumbelrace.methods.state import (
    ALIVE,
    LEADER,
    LOOKS,
    TAKEN,
    RaceState,
    drop,
    place,
)
from gumbelrace.methods.weighted import draw_by_weights, weigh
from gumbelrace.population.arrays import LARGEST_REWARD


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
            for a in range(state.tally[ALIVE]):
                place(state, a, extrapolate(workspace, state.arms[a]))
            judge_look(workspace, deviation, error)
    return True


@part
def read_some(workspace: SharedWorkspace, count: int) -> bool:
    """Read so many rows, at random or by their weights; False after a fault."""
    open_look(workspace.sample, False)
    done = read_by_weights(workspace, count) if by_weights(workspace) else read_more(workspace, count)
    workspace.state.tally[TAKEN] += count
    workspace.state.tally[LOOKS] += 1
    add_differences(workspace.work, workspace.state, workspace.sample)
    return done


@part
def add_differences(moments: Moments, state: RaceState, sample: Sample) -> None:
    """Add up the rewards of the last look, less those of the first arm in the race."""
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        moments.fresh[arm] = total_apart(sample, arm, state.arms[0])
        moments.total[arm] += moments.fresh[arm]


@part
def total_apart(sample: Sample, arm: int, other: int) -> float:
    """Sum the differences of two arms' rewards in the last look."""
    j, k, rewards, result = np.uint64(arm), np.uint64(other), sample.rewards, 0.0
    for run in range(sample.runs[1], sample.runs[0]):
        first = np.uint64(sample.first[run])
        for i in range(first, first + np.uint64(sample.length[run])):
            result += reduced(rewards[j, i], rewards[k, i])
    return result


@part
def extrapolate(workspace: SharedWorkspace, arm: int) -> float:
    """Estimate an arm's value from the rows read, less what all arms share."""
    state = workspace.state
    return workspace.work.total[arm] * (workspace.sizes[0] / state.tally[TAKEN]) + state.offset[arm]


@part
def read_by_weights(workspace: SharedWorkspace, count: int) -> bool:
    """Draw rows by their weights, into the one run of a look; False after a fault."""
    state, sample, done = workspace.state, workspace.sample, 0
    state.shift[0] = 0.0
    for a in range(state.tally[ALIVE]):
        state.fresh[state.arms[a]] = 0.0
    while done < count and state.tally[ALIVE] > 0:
        n = min(workspace.source.chunk, count - done)
        if not draw_by_weights(workspace, sample.rewards, done, n):
            return False
        for a in range(state.tally[ALIVE]):
            state.fresh[state.arms[a]] += total(sample.rewards, state.arms[a], done, n, 0.0)
        weigh(workspace, sample.rewards, done, n)
        done += n
    sample.first[0], sample.length[0], sample.runs[0] = 0, count, 1
    return True


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
        moments.gap[arm] = state.podium[0] - extrapolate(workspace, arm)
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
    second, third = deviations(moments, workspace.sample, leader, arm)
    jump = abs(third) / second if second > 0.0 else 0.0
    moments.jump[arm] = jump if is_first else max(moments.jump[arm], jump)
    return second if is_first else pair_variance(moments, leader, arm)


@part
def margin_of(
    workspace: SharedWorkspace, arm: int, variance: float, of_noise: float, error: float
) -> float:
    """Give how far behind the leader an arm may still win."""
    state, rows = workspace.state, workspace.state.tally[TAKEN]
    per_row = workspace.sizes[0] / rows
    # Rows of which so many are expected in the sample are missed with the probability of the error.
    hidden = -np.log(error) * share_left(workspace) * unseen(workspace, arm, state.tally[LEADER])
    third = per_row * workspace.work.jump[arm] * variance
    return margin(float(rows), variance + of_noise, third) + per_row * hidden


@part
def deviations(moments: Moments, sample: Sample, leader: int, arm: int) -> tuple[float, float]:
    """Give the second and third central moments of the differences from the leader in the last look."""
    centre, second, third = mean_apart(moments, sample, leader, arm), 0.0, 0.0
    j, k, rewards, rows = np.uint64(leader), np.uint64(arm), sample.rewards, fresh_rows(sample)
    for run in range(sample.runs[1], sample.runs[0]):
        first = np.uint64(sample.first[run])
        for i in range(first, first + np.uint64(sample.length[run])):
            difference = reduced(rewards[j, i], rewards[k, i]) - centre
            second += difference * difference
            third += difference * difference * difference
    return second / max(rows - 1, 1), third / rows


@part
def are_equal(workspace: SharedWorkspace, leader: int, arm: int, second: float) -> bool:
    """Whether all differences read were the same, which proves nothing where no range is known."""
    state, rows = workspace.state, fresh_rows(workspace.sample)
    sizes = abs(state.fresh[leader] / rows + state.shift[0]) + abs(state.fresh[arm] / rows + state.shift[0])
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
    source, totals, taken = workspace.source, workspace.work.total, workspace.state.tally[TAKEN]
    if not has_range(workspace, arm, other):
        return 0.0
    return source.high[arm] - source.low[other] - (totals[arm] - totals[other]) / taken


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
