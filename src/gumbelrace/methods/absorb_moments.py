"""What rows tell of the error of estimated sums: its covariance, and how far its law is from a normal one.

Rewards are those of the last look, in the runs of `Sample`; each look adds what its own rows say. Only
differences of arms count: what arms share of a row is taken away before anything is added up or squared,
since it may be so large that rounding would hide the rest. What is taken away, the reward of some arm, may
change from row to row.

The law of a draw is p = softmax(values). If the error of the estimated values has a third cumulant κ, and
its covariance is estimated with a variance of w, the law is off by κ/6 times the third and w/8 times the
fourth derivative of softmax along the error, and terms of higher order.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import part, routine
from gumbelrace.core.random import Bits, uniform
from gumbelrace.methods.reading import HELD, Sample, fresh_rows, new_block, reduced
from gumbelrace.methods.state import ALIVE, RaceState
from gumbelrace.population.base import Floats

# Most arms of which covariances are found; as long as there are more, they are compared with the leader.
MOST = 512
# Steps of the power iteration: it estimates from below, and a factorisation shows whether it was enough.
STEPS = 8
# If it was not, the estimate is raised so many times by so much, before the trace takes its place.
TRIES, RAISE = 8, 1.1
# Rows that a look has at least.
LEAST = 32
# A pilot begins with no more than one row in so many.
ONE_IN = 8
# What is read grows by so many times at most, so that arms are dropped on the way.
GROWTH = 4
# A variance above that of rewards that do not vary at all.
LITTLE = 1e-300
# Rows are read a little beyond what the covariances so far ask for.
MARGIN = 1.05
# The last look has at most so many times the rows of the pilot.
LONGEST = 5
# A variance of the noise that is off by some share moves the law by so much of it (s² p''/2, about). Of
# normal rewards it is known how unsure a pilot's variance is, and seen to; of others that is itself unsure.
BY_VARIANCE = 1.0 / 60.0
# A pilot may miss the tails of rewards whose kurtosis, less 1, is up to this: no fewer rows follow.
TAILS = 16.0
# Differences that vary so many times more in the last look than before show that the pilot missed rows.
UNEXPECTED = 4.0
# Such a look is used all the same, unless these rows move the values by more than so many temperatures: who
# puts it away shifts the mean of the others, which does more harm than a law that is less normal.
TOO_FAR = 3.0
# Of two arms: the largest first and second derivative of the logistic function.
LARGEST_SLOPE, LARGEST_CURVATURE = 1.0 / 4.0, 1.0 / 10.0
# Of two arms: the largest third and fourth derivative of the logistic function.
LARGEST_DERIVATIVE = 1.0 / 8.0


class OverArms(NamedTuple):
    """Scratch, for each row: the mean and the central moments of the reward of a random arm."""

    mean: Floats
    second: Floats
    third: Floats
    fourth: Floats


class Moments(NamedTuple):
    """What is known of the rows read, by slots: an arm has one as soon as there are few enough."""

    slot: NDArray[np.int64]  # of each arm
    counted: NDArray[np.int64]  # rows that were counted
    fresh: Floats  # of each arm, its rewards in the last look, less those of one arm
    total: Floats  # of each arm, the same for all rows read
    centre: Floats  # of each arm, the mean of the first rows
    sums: Floats  # of the rewards, less the centre
    mean: Floats  # of the last look, less the centre
    products: Floats  # of pairs, less the centres
    rewards: Floats  # scratch: [slot, row of the last look], less their mean
    factor: Floats  # scratch: covariances, and their factor
    vector: Floats  # scratch: [two vectors, slot]
    gap: Floats  # of each arm, to the leader
    jump: Floats  # of each arm, third over second moment of its difference from the leader, at most
    before: Floats  # of each arm, the sum before the last look
    spread: Floats  # of each arm, squares of its rewards in the last look, less what all share
    expected: Floats  # of each arm, the variance that is factorised
    chances: Floats  # of each arm, as far as known
    third: Floats  # of each arm: sum of third directional derivatives of its chance
    fourth: Floats
    scatter: Floats  # sums over rows: how much rewards of a random arm vary, and the squares of that
    unproved: NDArray[np.bool_]  # whether an arm had the rewards of the leader in all rows
    surprise: Floats  # what a last look unlike the pilot does to what is reported
    ratio: Floats  # of the variances of the last look and of the pilot, summed over arms
    extra: Floats  # of each arm, its variance in the last look beyond that ratio of what was expected
    bound: Floats  # above all eigenvalues of the covariances of which `factor` is made
    factorised: NDArray[np.int64]  # of how many arms
    over_arms: OverArms


def new_moments(arms: int) -> Moments:
    """Make room; what is never written to costs nothing."""
    slots = min(arms, MOST)
    return Moments(
        slot=np.zeros(arms, np.int64),
        counted=np.zeros(1, np.int64),
        fresh=np.zeros(arms),
        total=np.zeros(arms),
        centre=np.zeros(arms),
        sums=np.zeros(slots),
        mean=np.zeros(slots),
        products=np.empty((slots, slots)),
        rewards=new_block(slots, HELD),
        factor=np.empty((slots, slots)),
        vector=np.zeros((2, slots)),
        gap=np.zeros(arms),
        jump=np.zeros(arms),
        before=np.zeros(arms),
        spread=np.zeros(arms),
        expected=np.zeros(arms),
        chances=np.zeros(arms),
        third=np.zeros(arms),
        fourth=np.zeros(arms),
        scatter=np.zeros(2),
        unproved=np.zeros(1, np.bool_),
        surprise=np.zeros(1),
        ratio=np.ones(1),
        extra=np.zeros(arms),
        bound=np.zeros(1),
        factorised=np.zeros(1, np.int64),
        over_arms=OverArms(*(np.empty(HELD) for _ in range(4))),
    )


@routine
def count_rows(moments: Moments, state: RaceState, sample: Sample) -> None:
    """Add the rows of the last look to the products of the arms in the race, if they are few enough."""
    if state.tally[ALIVE] > len(moments.sums):
        return
    if moments.counted[0] == 0:
        begin_count(moments, state, sample)
    for a in range(state.tally[ALIVE]):
        copy_less_mean(moments, state, sample, state.arms[a])
    rows = fresh_rows(sample)
    for a in range(state.tally[ALIVE]):
        add_products(moments, state, a, rows)
    moments.counted[0] += rows


@part
def begin_count(moments: Moments, state: RaceState, sample: Sample) -> None:
    """Give the arms in the race a slot each, nothing counted yet."""
    moments.scatter[:] = 0.0
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        moments.slot[arm], moments.sums[a] = a, 0.0
        moments.centre[arm] = mean_apart(moments, sample, arm, state.arms[0])
        moments.third[arm] = moments.fourth[arm] = 0.0
        for b in range(state.tally[ALIVE]):
            moments.products[a, b] = 0.0


@part
def mean_apart(moments: Moments, sample: Sample, arm: int, other: int) -> float:
    """Give the mean difference of two arms' rewards in the last look."""
    return (moments.fresh[arm] - moments.fresh[other]) / fresh_rows(sample)


@part
def copy_less_mean(moments: Moments, state: RaceState, sample: Sample, arm: int) -> None:
    """Copy rewards of the last look, less those of the first arm and less their mean; note the mean."""
    j, k, to, other = np.uint64(arm), np.uint64(moments.slot[arm]), np.uint64(0), np.uint64(state.arms[0])
    mean, rewards = mean_apart(moments, sample, arm, state.arms[0]), sample.rewards
    for run in range(sample.runs[1], sample.runs[0]):
        first, count = np.uint64(sample.first[run]), np.uint64(sample.length[run])
        for i in range(count):
            moments.rewards[k, to + i] = reduced(rewards[j, first + i], rewards[other, first + i]) - mean
        to += count
    moments.mean[k] = mean - moments.centre[arm]


@routine
def add_spread(moments: Moments, state: RaceState, sample: Sample) -> None:
    """Add the squares of the rewards of the last look, less their means and less what all arms share."""
    rows, shared, rewards = fresh_rows(sample), moments.over_arms.mean, moments.rewards
    for i in range(np.uint64(rows)):
        shared[i] = 0.0
    for a in range(state.tally[ALIVE]):
        copy_less_mean(moments, state, sample, state.arms[a])
        j = np.uint64(moments.slot[state.arms[a]])
        for i in range(np.uint64(rows)):
            shared[i] += rewards[j, i] / state.tally[ALIVE]
    for a in range(state.tally[ALIVE]):
        j, squares = np.uint64(moments.slot[state.arms[a]]), 0.0
        for i in range(np.uint64(rows)):
            squares += (rewards[j, i] - shared[i]) ** 2
        moments.spread[state.arms[a]] += squares * (rows / max(rows - 1, 1))


@part
def add_products(moments: Moments, state: RaceState, a: int, rows: int) -> None:
    """Add the products of the rewards of an arm with those of the arms before it and its own."""
    j, rewards = np.uint64(moments.slot[state.arms[a]]), moments.rewards
    moments.sums[j] += rows * moments.mean[j]
    for b in range(a + 1):
        k, result = np.uint64(moments.slot[state.arms[b]]), 0.0
        for i in range(np.uint64(rows)):
            result += rewards[j, i] * rewards[k, i]
        # Within the look, and between looks.
        moments.products[j, k] += result + rows * moments.mean[j] * moments.mean[k]
        moments.products[k, j] = moments.products[j, k]


@routine
def add_derivatives(moments: Moments, state: RaceState, rows: int) -> None:
    """Add the third and fourth derivatives of the arms' chances along each of the rows counted last."""
    if state.tally[ALIVE] > len(moments.sums):
        return
    find_over_arms(moments, state, rows)
    for i in range(np.uint64(rows)):
        moments.scatter[0] += moments.over_arms.second[i]
        moments.scatter[1] += moments.over_arms.second[i] ** 2
    if state.tally[ALIVE] == 2:
        add_of_two(moments, state, rows)
        return
    for a in range(state.tally[ALIVE]):
        add_of_arm(moments, state.arms[a], rows)


@part
def add_of_two(moments: Moments, state: RaceState, rows: int) -> None:
    """Add what rows can do at most to the chances of two arms."""
    arm, other, third, fourth = state.arms[0], state.arms[1], 0.0, 0.0
    j, k, rewards = np.uint64(moments.slot[arm]), np.uint64(moments.slot[other]), moments.rewards
    for i in range(np.uint64(rows)):
        difference = rewards[j, i] - rewards[k, i]
        third += difference * difference * difference
        fourth += difference * difference * difference * difference
    moments.third[arm] += third * LARGEST_DERIVATIVE
    moments.third[other] -= third * LARGEST_DERIVATIVE
    moments.fourth[arm] += fourth * LARGEST_DERIVATIVE
    moments.fourth[other] -= fourth * LARGEST_DERIVATIVE


@part
def find_over_arms(moments: Moments, state: RaceState, rows: int) -> None:
    """Find, for each row, the mean and the central moments of the reward of a random arm."""
    (mean, second, third, fourth), count = moments.over_arms, np.uint64(rows)
    for i in range(count):
        mean[i] = second[i] = third[i] = fourth[i] = 0.0
    for a in range(state.tally[ALIVE]):
        chance, j = moments.chances[state.arms[a]], np.uint64(moments.slot[state.arms[a]])
        for i in range(count):
            mean[i] += chance * moments.rewards[j, i]
    for a in range(state.tally[ALIVE]):
        chance, j = moments.chances[state.arms[a]], np.uint64(moments.slot[state.arms[a]])
        for i in range(count):
            y = moments.rewards[j, i] - mean[i]
            square = chance * y * y
            second[i] += square
            third[i] += square * y
            fourth[i] += square * y * y


@part
def add_of_arm(moments: Moments, arm: int, rows: int) -> None:
    """Add the derivatives of one arm's chance: those of softmax, by the moments over arms."""
    (mean, second, third, fourth), of_third, of_fourth = moments.over_arms, 0.0, 0.0
    j = np.uint64(moments.slot[arm])
    for i in range(np.uint64(rows)):
        y, v = moments.rewards[j, i] - mean[i], second[i]
        of_third += y * y * y - 3.0 * y * v - third[i]
        of_fourth += (y * y - 6.0 * v) * y * y - 4.0 * y * third[i] + 6.0 * v * v - fourth[i]
    moments.third[arm] += moments.chances[arm] * of_third
    moments.fourth[arm] += moments.chances[arm] * of_fourth


@part
def summed_derivatives(moments: Moments, state: RaceState) -> tuple[float, float]:
    """Give the mean third and fourth derivative of the law along a row, in total variation."""
    third, fourth = 0.0, 0.0
    for a in range(state.tally[ALIVE]):
        third += abs(moments.third[state.arms[a]])
        fourth += abs(moments.fourth[state.arms[a]])
    return 0.5 * third / moments.counted[0], 0.5 * fourth / moments.counted[0]


@part
def pair_variance(moments: Moments, arm: int, other: int) -> float:
    """Give the variance of the difference of two arms' rewards in the rows that were counted."""
    j, k = moments.slot[arm], moments.slot[other]
    squares = moments.products[j, j] + moments.products[k, k] - 2.0 * moments.products[j, k]
    apart = moments.sums[j] - moments.sums[k]
    return max(squares - apart * apart / moments.counted[0], 0.0) / (moments.counted[0] - 1)


@part
def unsureness(moments: Moments) -> float:
    """Give the relative variance of what the pilot says of variances: of normal rewards 2 / (D - 1) / T."""
    first, second = moments.scatter
    return max(second / (first * first) - 1.0 / moments.counted[0], 0.0) if first > 0.0 else 0.0


@part
def rows_at_first(first: int, size: int) -> int:
    """Give with how many rows a pilot begins: a long one does not pay where there are few rows."""
    return min(first, max(LEAST, size // ONE_IN))


@part
def headroom(unsure: float, rows: float) -> float:
    """Give how many times the variance that a pilot has found is planned for, by how unsure it is.

    What is missing of the noise is found from the last look itself; but none can be taken away.
    """
    return 1.0 + 2.0 * np.sqrt(max(unsure, TAILS / rows))


@part
def by_excess(variance: float, temperature: float) -> float:
    """Bound how far the law is off by so much variance of a difference beyond that of the noise."""
    return 0.5 * LARGEST_CURVATURE * max(variance, 0.0) / temperature**2


@routine
def put_covariances(moments: Moments, state: RaceState, scale: float) -> None:
    """Put `scale` times the covariances of the arms' rewards, less what all share, into the scratch."""
    alive, counted, means = state.tally[ALIVE], moments.counted[0], moments.vector[0]
    scale, overall, factor = scale / (counted - 1), 0.0, moments.factor
    for a in range(alive):
        row = moments.products[moments.slot[state.arms[a]]]
        centre, mean = moments.sums[moments.slot[state.arms[a]]] / counted, 0.0
        for b in range(alive):
            k = np.uint64(moments.slot[state.arms[b]])
            factor[a, b] = scale * (row[k] - centre * moments.sums[k])
            mean += factor[a, b]
        means[a] = mean / alive
        overall += means[a] / alive
    for a in range(alive):
        less = means[a] - overall
        for b in range(np.uint64(alive)):
            factor[a, b] -= less + means[b]


@routine
def bound_eigenvalues(moments: Moments, state: RaceState, scale: float) -> float:
    """Factorise b·I less `scale` times the covariances, for some b above their eigenvalues; give b."""
    alive, trace = state.tally[ALIVE], 0.0
    put_covariances(moments, state, scale)
    note_expected(moments, state)
    for a in range(alive):
        trace += moments.factor[a, a]
    bound, highest = max(MARGIN * largest_eigenvalue(moments, alive), LITTLE), max(MARGIN * trace, LITTLE)
    for attempt in range(TRIES + 1):
        bound = min(bound, highest) if attempt < TRIES else highest
        if factorise(moments, alive, bound):
            break
        bound *= RAISE
        put_covariances(moments, state, scale)
    return bound


@part
def compare_spread(moments: Moments, state: RaceState, count: int, scale: float) -> None:
    """Note how the variances of a last look of so many rows differ from those expected."""
    all_found, all_expected = 0.0, 0.0
    for a in range(state.tally[ALIVE]):
        all_found += scale * moments.spread[state.arms[a]] / count
        all_expected += moments.expected[state.arms[a]]
    moments.ratio[0] = all_found / all_expected if all_expected > 0.0 else 1.0
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        found = scale * moments.spread[arm] / count
        moments.extra[arm] = found - moments.ratio[0] * moments.expected[arm]


@part
def note_expected(moments: Moments, state: RaceState) -> None:
    """Note the variances that are about to be factorised."""
    for a in range(state.tally[ALIVE]):
        moments.expected[state.arms[a]] = moments.factor[a, a]


@routine
def largest_eigenvalue(moments: Moments, alive: int) -> float:
    """Estimate the largest eigenvalue of the covariances by a few power iterations, from below."""
    now, then, size, widest = moments.vector[0], moments.vector[1], 0.0, 0
    for a in range(alive):
        widest = a if moments.factor[a, a] > moments.factor[widest, widest] else widest
    for a in range(alive):
        now[a] = moments.factor[widest, a]
    for _ in range(STEPS):
        before = np.sqrt(inner(now, now, alive))
        if before == 0.0:
            return 0.0
        for a in range(alive):
            then[a] = inner(moments.factor[a], now, alive) / before
        size = np.sqrt(inner(then, then, alive))
        for a in range(alive):
            now[a] = then[a]
    return size


@part
def inner(one: Floats, other: Floats, count: int) -> float:
    """Give the inner product of the first entries."""
    result = 0.0
    for i in range(np.uint64(count)):
        result += one[i] * other[i]
    return result


@routine
def factorise(moments: Moments, alive: int, variance: float) -> bool:
    """Replace the covariances Σ by the Cholesky factor of variance·I - Σ; False if there is none."""
    factor, moments.factorised[0] = moments.factor, alive
    for a in range(alive):
        for b in range(a):
            factor[a, b] = -(factor[a, b] + inner(factor[a], factor[b], b)) / factor[b, b]
        rest = variance - factor[a, a] - inner(factor[a], factor[a], a)
        if rest <= 0.0:
            return False
        factor[a, a] = np.sqrt(rest)
    return True


@part
def put_noise(moments: Moments, state: RaceState, share: float, variance: float, bits: Bits) -> float:
    """Put normal noise into the first vector, that makes the error of each arm of the given variance.

    With b I - Σ what was factorised, r the ratio and E the extra variances, the covariance of the error is
    share · (r Σ + E), and that of the noise share · r (b I - Σ) and variance · I - share · (r b I + E).
    Where the second is below 0, it is left out; give how far that puts the law off at a temperature of 1:
    the second derivative of p is at most p and 1/10.
    """
    noise, plain, off = moments.vector[0], moments.vector[1], 0.0
    for a in range(state.tally[ALIVE]):
        plain[a] = normal(bits)
        beyond = variance - share * (moments.ratio[0] * moments.bound[0] + moments.extra[state.arms[a]])
        noise[a] = np.sqrt(share * moments.ratio[0]) * inner(moments.factor[a], plain, a + 1)
        noise[a] += np.sqrt(max(beyond, 0.0)) * normal(bits)
        off += 0.5 * min(moments.chances[state.arms[a]], LARGEST_CURVATURE) * max(-beyond, 0.0)
    return off


@part
def off_by(jump: float) -> float:
    """Give how far the law is off, as often as unexpected rows move values by so many temperatures.

    Others have missed these rows, and on average lack as much. A look that is used all the same makes up
    for it, but for terms of third order.
    """
    return LARGEST_DERIVATIVE / 6.0 * jump**3 if jump <= TOO_FAR else LARGEST_SLOPE * jump


@part
def normal(bits: Bits) -> float:
    """Draw a standard normal variable (Box and Muller 1958)."""
    return np.sqrt(-2.0 * np.log(uniform(bits))) * np.cos(2.0 * np.pi * uniform(bits))
