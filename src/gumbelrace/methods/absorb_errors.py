"""What is known of the errors of the estimated sums of arms that have rows of their own.

As long as the pilot of an arm goes on, its sum is estimated by the pilot; after it by the last look, which
stands for the rows that the pilot did not read, and what the pilot has read counts as it is.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import part
from gumbelrace.methods.absorb_moments import LARGEST_DERIVATIVE, TOO_FAR, UNEXPECTED, off_by
from gumbelrace.methods.independent import IndependentWorkspace, is_unseen, sum_read
from gumbelrace.methods.race_independent import ROUNDING
from gumbelrace.methods.state import ALIVE, place
from gumbelrace.population.arrays import LARGEST_REWARD
from gumbelrace.population.base import Floats


class Errors(NamedTuple):
    """For each arm: what its pilot says of its rewards, and what is known of the error of its sum."""

    drawn: NDArray[np.bool_]  # whether its value comes with all its noise
    pilot: NDArray[np.int64]  # rows of the pilot; 0 as long as it goes on
    known: Floats  # sum of the pilot's rewards, after it
    row_variance: Floats  # of the rewards: of the pilot's, then of those of the last look
    row_third: Floats  # central moment of the rewards
    unsure: Floats  # relative variance of what the pilot says of the variance
    variance: Floats  # of the error
    skewed: Floats  # third cumulant of the error
    hidden: Floats  # what a row that was not seen can do to the estimate, as far as is known
    surprise: Floats  # what last looks unlike their pilots say of the law


def new_errors(arms: int) -> Errors:
    """Make room."""
    return Errors(
        drawn=np.zeros(arms, np.bool_),
        pilot=np.zeros(arms, np.int64),
        known=np.zeros(arms),
        row_variance=np.zeros(arms),
        row_third=np.zeros(arms),
        unsure=np.zeros(arms),
        variance=np.zeros(arms),
        skewed=np.zeros(arms),
        hidden=np.zeros(arms),
        surprise=np.zeros(1),
    )


@part
def go_on_with_pilot(workspace: IndependentWorkspace, arm: int) -> None:
    """Take all rows of an arm that were read for its pilot."""
    workspace.work.pilot[arm], workspace.work.known[arm] = 0, 0.0


@part
def is_partly_read(workspace: IndependentWorkspace, arm: int) -> bool:
    """Whether some rows of an arm were read, and not all."""
    return 0 < workspace.readings.taken[arm] < workspace.sizes[arm]


@part
def is_unproved(workspace: IndependentWorkspace, arm: int) -> bool:
    """Whether all rewards read were the same, which proves nothing of the others."""
    source, readings, taken = workspace.source, workspace.readings, workspace.readings.taken[arm]
    deviation = np.sqrt(readings.squares[arm] / taken)
    same = deviation <= ROUNDING * abs(workspace.state.sums[arm] / taken)
    return same and source.high[arm] > source.low[arm]


@part
def by_skewness(workspace: IndependentWorkspace, third: float) -> float:
    """Bound how far the law is off by a third cumulant of the errors of arms that are alike.

    It counts twice, since the noise that is added goes with the same rows. The third derivative of a
    chance p is at most p and at most 1/8: of all arms they add up to 1 at most.
    """
    derivatives = min(1.0, workspace.state.tally[ALIVE] * LARGEST_DERIVATIVE)
    return abs(third) / 3.0 * derivatives / workspace.state.temperature[0] ** 3


@part
def by_hidden(jump: float) -> float:
    """Bound how far the law is off by rows of two arms that were not seen, and would do so much."""
    return LARGEST_DERIVATIVE / 3.0 * jump**3


@part
def law_error(workspace: IndependentWorkspace, arm: int) -> float:
    """Bound how far the law is off by the error of an arm that is not normal, of arms that are alike."""
    errors = workspace.work
    hidden = by_hidden(errors.hidden[arm] / workspace.state.temperature[0])
    return by_skewness(workspace, errors.skewed[arm]) + hidden


@part
def note_errors(workspace: IndependentWorkspace, deviation: float) -> None:
    """Find what the rows read tell of the errors of the arms, and who leads."""
    state, readings, errors = workspace.state, workspace.readings, workspace.work
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        errors.variance[arm] = errors.skewed[arm] = errors.hidden[arm] = 0.0
        if is_partly_read(workspace, arm):
            if readings.fresh[arm] > 0 and errors.pilot[arm] > 0:
                check_last(workspace, arm, deviation)
            if readings.fresh[arm] > 0 and errors.pilot[arm] == 0:
                note_moments(workspace, arm)
            note_error(workspace, arm)
        place(state, a, estimated(workspace, arm))


@part
def note_error(workspace: IndependentWorkspace, arm: int) -> None:
    """Find what is known of the error of an arm's estimate: by its last look, or by the pilot."""
    errors, (count, rest) = workspace.work, sample_of(workspace, arm)
    per_row, left = rest / count, 1.0 - count / rest
    errors.variance[arm] = errors.row_variance[arm] * per_row * rest * left
    errors.skewed[arm] = errors.row_third[arm] * per_row * per_row * rest * left
    errors.hidden[arm] = per_row * left * furthest(workspace, arm)


@part
def sample_of(workspace: IndependentWorkspace, arm: int) -> tuple[float, float]:
    """Give how many rows of an arm stand for how many: the last look, or a pilot that goes on."""
    pilot = workspace.work.pilot[arm]
    return float(workspace.readings.taken[arm] - pilot), float(workspace.sizes[arm] - pilot)


@part
def estimated(workspace: IndependentWorkspace, arm: int) -> float:
    """Estimate an arm's sum over all its rows, offset included; -inf before the first look."""
    state, known = workspace.state, workspace.work.known[arm]
    if not is_partly_read(workspace, arm):
        return -np.inf if is_unseen(workspace.readings, arm) else sum_read(state, arm)
    count, rest = sample_of(workspace, arm)
    return known + (state.sums[arm] - known) * (rest / count) + state.offset[arm]


@part
def note_moments(workspace: IndependentWorkspace, arm: int) -> None:
    """Note the variance of an arm's rewards, and further moments of the part that was read last."""
    readings, errors, j = workspace.readings, workspace.work, np.uint64(arm)
    block, chunk = readings.block, workspace.source.chunk
    count, mean, second, third, fourth = (readings.fresh[arm] - 1) % chunk + 1, 0.0, 0.0, 0.0, 0.0
    for i in range(np.uint64(count)):
        mean += block[j, i] / count
    for i in range(np.uint64(count)):
        z = block[j, i] - mean
        second += z * z / count
        third += z * z * z / count
        fourth += z * z * z * z / count
    errors.row_variance[arm] = readings.squares[arm] / max(readings.taken[arm] - 1, 1)
    errors.row_third[arm] = third
    kurtosis = fourth / (second * second) if second > 0.0 else 1.0
    errors.unsure[arm] = (kurtosis - 1.0) / readings.taken[arm]


@part
def check_last(workspace: IndependentWorkspace, arm: int, deviation: float) -> None:
    """Report a last look in which rewards vary too much; one that is far off goes to the pilot.

    The more a pilot finds rewards to vary, the more rows follow; so its variance is too small on average
    where few follow. That of the last look is not, and takes its place.
    """
    state, readings, errors = workspace.state, workspace.readings, workspace.work
    (count, rest), pilot = sample_of(workspace, arm), errors.pilot[arm]
    apart = (state.sums[arm] - errors.known[arm]) / count - errors.known[arm] / pilot
    squares = readings.squares[arm] - errors.row_variance[arm] * (pilot - 1)
    squares -= apart * apart * (pilot * count / (pilot + count))
    scale = rest * (rest / count) * (1.0 - count / rest)
    of_last = max(squares, 0.0) / max(count - 1.0, 1.0)
    found, expected = scale * of_last, scale * errors.row_variance[arm]
    errors.row_variance[arm] = of_last
    if found > max(UNEXPECTED * expected, deviation * deviation):
        jump = np.sqrt(found - expected) / state.temperature[0]
        errors.surprise[0] = max(errors.surprise[0], off_by(jump))
        if jump > TOO_FAR:
            go_on_with_pilot(workspace, arm)


@part
def furthest(workspace: IndependentWorkspace, arm: int) -> float:
    """Give how far from the mean a reward of an arm can be, if that is known; else 0."""
    source, mean = workspace.source, workspace.state.sums[arm] / workspace.readings.taken[arm]
    if source.high[arm] >= LARGEST_REWARD or source.low[arm] <= -LARGEST_REWARD:
        return 0.0
    return max(source.high[arm] - mean, mean - source.low[arm])
