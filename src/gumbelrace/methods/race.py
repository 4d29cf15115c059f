"""Racing, Algorithm 1 of the paper: mini-batches that double, and a bound that drops arms."""

from dataclasses import dataclass
from dataclasses import field as field_of
from functools import lru_cache
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import part, routine
from gumbelrace.errors import InvalidArgument
from gumbelrace.methods import rules
from gumbelrace.methods.base import Method, Promise, checked_delta
from gumbelrace.methods.bounds import Bound, Marginal, Normal, Paired
from gumbelrace.methods.estimates import deviations, knows_all_ranges
from gumbelrace.methods.exact import Scan
from gumbelrace.methods.race_independent import ROUNDING, IndependentLooks, independent_looks
from gumbelrace.methods.reading import HELD, Sample, fresh_rows
from gumbelrace.methods.rules import implements
from gumbelrace.methods.shared import SharedWorkspace
from gumbelrace.methods.state import ALIVE, ARMS, LEADER, LOOKS, NOBODY, TAKEN, RaceState
from gumbelrace.population.base import (
    Floats,
    Population,
    SharedPopulation,
    Source,
    checked_count,
)

# First look at an independent arm: clusters are often small (paper, appendix C.3).
FIRST_OF_INDEPENDENT = 3


# A look at more rows than any population has.
NEVER = np.iinfo(np.int64).max

# What no race over some of the rows can see.
DECLARED = "rows with a log factor of -inf are declared (impossible=, or a reward_range down to -inf)"


class Looks(NamedTuple):
    """Rule of the race: at `at[k, t]` rows, drop arms whose gap exceeds a_kt·σ̂ + c_kt·C.

    A population has the schedule k of the smallest of `sizes` that is not below its own.
    """

    sizes: NDArray[np.int64]  # ascending
    at: NDArray[np.int64]
    per_deviation: Floats
    per_range: Floats
    paired: bool
    keeps: bool = True

    def working_memory(self, arms: int) -> "Moments":
        """Make room for the deviations of all arms."""
        return Moments(np.empty(arms), np.empty(1, np.int64))


class Moments(NamedTuple):
    """For each arm: squared deviations of its rewards, or of its difference from the leader's."""

    squares: Floats
    leader: NDArray[np.int64]  # of the look before


@implements(rules.begin, Looks)
def _begin(rule: Looks, workspace: SharedWorkspace) -> None:
    workspace.work.leader[0] = NOBODY
    for arm in range(workspace.state.tally[ARMS]):
        workspace.state.need[arm] = 0.0  # nothing is expected before the first look


@implements(rules.next_look, Looks)
def _next_look(rule: Looks, workspace: SharedWorkspace, arm: int) -> int:
    taken, size = workspace.state.tally[TAKEN], workspace.sizes[0]
    at = rule.at[schedule_of(rule, size)]
    for t in range(len(at)):
        if at[t] > taken:
            return min(at[t] - taken, HELD) if at[t] < size else 0
    return 0


@part
def schedule_of(rule: Looks, size: int) -> int:
    """Find the schedule for a population of that size."""
    first, last = 0, len(rule.sizes) - 1
    while first < last:
        middle = (first + last) // 2
        first, last = (first, middle) if rule.sizes[middle] >= size else (middle + 1, last)
    return first


@implements(rules.judge, Looks)
def _judge(rule: Looks, workspace: SharedWorkspace) -> None:
    moments, source, state, sample = workspace.work, workspace.source, workspace.state, workspace.sample
    taken, size = state.tally[TAKEN], workspace.sizes[0]
    t, k = 0, schedule_of(rule, size)
    while rule.at[k, t] < taken:
        t += 1
    is_look = rule.at[k, t] == taken
    update_all(rule, moments, state, sample, pivot(moments, source, state, is_look), taken)
    if is_look:
        state.tally[LOOKS] += 1
        factors = rule.per_deviation[k, t], rule.per_range[k, t]
        judge_all(rule.paired, factors, moments, source, state, taken, size)


@part
def pivot(moments: Moments, source: Source, state: RaceState, is_look: bool) -> int:
    """Choose the arm to compare with: the leader; within a long look, the leader of the look before."""
    before = moments.leader[0]
    return state.tally[LEADER] if is_look or before == NOBODY or source.ruled_out[before] else before


@part
def update_all(
    rule: Looks, moments: Moments, state: RaceState, sample: Sample, leader: int, taken: int
) -> None:
    """Bring all squared deviations up to date with the rows just read."""
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        if arm != leader or not rule.paired:
            update(moments, state, sample, leader if rule.paired else arm, arm, taken)
    moments.leader[0] = leader


@part
def judge_all(
    paired: bool,
    factors: tuple[float, float],
    moments: Moments,
    source: Source,
    state: RaceState,
    taken: int,
    size: int,
) -> None:
    """Compare every arm with the leader."""
    leader, bound_of_leader = state.tally[LEADER], 0.0
    if not paired:
        bound_of_leader = bound(factors, moments, source, state, leader, leader, taken)
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        if arm != leader:
            partner = leader if paired else arm
            margin = bound_of_leader + bound(factors, moments, source, state, partner, arm, taken)
            judge_gap(moments, state, leader, arm, margin, taken, size)


@part
def judge_gap(
    moments: Moments, state: RaceState, leader: int, arm: int, margin: float, taken: int, size: int
) -> None:
    """Drop the arm if it trails by more than the margin; else tell when it is expected to."""
    gap = (state.sums[leader] - state.sums[arm]) / taken
    gap += (state.offset[leader] - state.offset[arm]) / size
    state.out[arm] = gap > margin
    # The margin shrinks as √(1/T - 1/N). The true gap is as likely above the estimate as below: its
    # square is larger by the error's.
    left = 1.0 / taken - 1.0 / size
    squared = gap * gap + moments.squares[arm] / taken * left
    need = 1.0 / (left * squared / (margin * margin) + 1.0 / size)
    state.need[arm] = 2.0 * taken
    while state.need[arm] < need:
        state.need[arm] *= 2.0


@part
def bound(
    factors: tuple[float, float],
    moments: Moments,
    source: Source,
    state: RaceState,
    partner: int,
    arm: int,
    taken: int,
) -> float:
    """G for an arm's mean, or for its difference from its partner's."""
    per_deviation, per_range = factors
    width = source.high[arm] - source.low[arm]
    size_of_rewards = abs(state.sums[arm] / taken + state.shift[0])
    if partner != arm:
        width += source.high[partner] - source.low[partner]
        size_of_rewards += abs(state.sums[partner] / taken + state.shift[0])
    deviation = np.sqrt(moments.squares[arm] / taken)
    if per_range > 0.0:
        return per_deviation * deviation + per_range * width
    # Equal rewards in the rows read prove nothing of the others, unless the range says they are equal.
    if deviation <= ROUNDING * size_of_rewards and width > 0.0:
        return np.inf
    return per_deviation * deviation


@part
def update(moments: Moments, state: RaceState, sample: Sample, partner: int, arm: int, taken: int) -> None:
    """Bring an arm's squared deviations up to date with the rows of the last look."""
    fresh = fresh_rows(sample)
    before = taken - fresh
    mean = difference(state.fresh, partner, arm) / fresh
    result = squares(sample, sample.runs[1], sample.runs[0], state, partner, arm, mean)
    if before > 0:
        earlier = (difference(state.sums, partner, arm) - mean * fresh) / before
        result += earlier_squares(moments, state, sample, partner, arm, earlier)
        result += (mean - earlier) ** 2 * (before * fresh / taken)
    moments.squares[arm] = result


@routine
def earlier_squares(
    moments: Moments,
    state: RaceState,
    sample: Sample,
    partner: int,
    arm: int,
    mean: float,
) -> float:
    """Squared deviations over the rows before the last look; after a change of leader, of a new pair."""
    leader = moments.leader[0]
    if partner in (arm, leader):
        return moments.squares[arm]
    if arm == leader:
        return moments.squares[partner]
    if sample.runs[1] > 0:
        return squares(sample, 0, sample.runs[1], state, partner, arm, mean)
    # The rows are no longer kept. Both arms were compared with the leader before: the deviations of their
    # difference are at most the sum of the two.
    return (np.sqrt(moments.squares[partner]) + np.sqrt(moments.squares[arm])) ** 2


@part
def difference(sums: Floats, partner: int, arm: int) -> float:
    """Sum of an arm, or of its difference from its partner."""
    return sums[arm] if partner == arm else sums[partner] - sums[arm]


@part
def squares(
    sample: Sample, start: int, stop: int, state: RaceState, partner: int, arm: int, mean: float
) -> float:
    """Squared deviations from `mean` of an arm, or of its difference from its partner, in some runs."""
    rewards, j, i_own = sample.rewards, np.uint64(arm), np.uint64(partner)
    result = 0.0
    for run in range(start, stop):
        first = np.uint64(sample.first[run])
        last = np.uint64(sample.first[run] + sample.length[run])
        if partner == arm:
            centre = mean + state.shift[0]
            for i in range(first, last):
                result += (rewards[j, i] - centre) * (rewards[j, i] - centre)
        else:
            for i in range(first, last):
                z = rewards[i_own, i] - rewards[j, i] - mean
                result += z * z
    return result


@dataclass(frozen=True)
class Race(Method):
    """Race with a bound on the gap of two means (Algorithm 1).

    Parameters
    ----------
    bound : Normal or Serfling
        `Normal` reads least and rests on the central limit theorem; `Serfling` is proved and needs a
        reward range.
    delta : float
        Bound on the probability that a returned arm is not the best one.
    first : int, optional
        Rows of the first look; each look doubles them. Default: the bound's own (50 or 2).
    variance : Paired or Marginal
        Variance of differences over shared rows, or of each arm.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> rng = np.random.default_rng(0)
    >>> population = gr.table(rng.normal(size=(100_000, 4)) + [0.0, 0.2, 0.0, 0.1])
    >>> gr.Race(gr.methods.Normal(), delta=0.01).best(population, None, rng)
    Outcome(arm=1, evaluations=8800, looks=7, exhausted=False, fraction=0.022, promise=0.01 assumed)
    """

    bound: Bound = field_of(default_factory=Normal)
    delta: float = 0.05
    first: int | None = None
    variance: Paired | Marginal = field_of(default_factory=Paired)

    def __post_init__(self) -> None:
        _check_parts(self.bound, self.variance)
        object.__setattr__(self, "delta", checked_delta(self.delta))
        if self.first is not None:
            checked_count(self.first, "first", least=2)

    @property
    def needs_range(self) -> bool:  # type: ignore[override]
        """Whether the bound needs a reward range."""
        return self.bound.needs_range

    @property
    def promise(self) -> Promise:
        """Error at most δ, if the bound's assumption holds."""
        unseen = None if self.needs_range else DECLARED
        return Promise(self.delta, self.bound.assumption).under(unseen)

    def rule(self, population: Population) -> Looks | IndependentLooks | Scan:
        """Give the looks T = first·2^t < N and the bound's coefficients at each.

        Where any row may be -inf, a mean tells nothing: everything is read.
        """
        if population.may_be_impossible:
            return Scan()
        if isinstance(population, SharedPopulation):
            return looks(self, (population.rows.tail_size,), population.arms)
        sizes = tuple(population.sizes.tolist())
        first, shrink = self.first_of_independent, self.variance.shrink
        return independent_looks(self.bound, self.delta, first, shrink, sizes)

    def margins(self, workspace: SharedWorkspace) -> Floats | None:
        """Give the bound on each arm's own mean at its last look, both ways, where no range is known."""
        rule, source = workspace.rule, workspace.source
        proved = self.needs_range or knows_all_ranges(source.low, source.high)
        if proved or len(source.direct) or not isinstance(rule, Looks):
            return None
        size, taken = int(workspace.sizes[0]), workspace.state.rows
        at = rule.at[0][rule.at[0] < size]
        factors, _ = self.bound.coefficients(self.delta / (2.0 * source.arms), at, size)
        factors = np.append(factors, np.inf)[np.searchsorted(at, taken)]
        found, means = deviations(workspace), np.abs(workspace.state.sums / np.maximum(taken, 1))
        # Equal rewards in the rows read prove nothing of the others.
        return np.where(found > ROUNDING * (means + abs(workspace.state.shift[0])), factors * found, np.inf)

    @property
    def first_of_independent(self) -> int:
        """Rows of the first look at an independent arm."""
        return min(self.bound.first, FIRST_OF_INDEPENDENT) if self.first is None else self.first


def _check_parts(bound: Any, variance: Any) -> None:
    """Refuse what is given in the place of a bound or a variance, and say what to write."""
    if isinstance(bound, Real):
        raise InvalidArgument(f"the first argument of Race is a bound; write Race(delta={bound})")
    if isinstance(bound, Method):
        raise InvalidArgument(f"{bound!r} is a method by itself; write it without Race")
    if not isinstance(bound, Bound):
        raise InvalidArgument(f"bound is {bound!r}; give methods.Normal() or methods.Serfling()")
    if not isinstance(variance, Paired | Marginal):
        raise InvalidArgument(f"variance is {variance!r}; give methods.Paired() or methods.Marginal()")


@lru_cache(maxsize=1024)
def looks(race: Race, sizes: tuple[int, ...], arms: int) -> Looks:
    """Give the rule for populations of the sizes given, in ascending order, and those between them."""
    first = race.bound.first if race.first is None else race.first
    doublings = [int(np.ceil(np.log2(size / first))) if first < size else 0 for size in sizes]
    shape = len(sizes), max(*doublings, 1)
    at, (deviation, width) = np.full(shape, NEVER), np.zeros((2, *shape))
    delta = race.delta / race.variance.errors(arms)
    for k, (size, m) in enumerate(zip(sizes, doublings, strict=True)):
        at[k, :m] = first * 2 ** np.arange(m, dtype=np.int64)
        deviation[k, :m], width[k, :m] = race.bound.coefficients(delta, at[k, :m], size)
    return Looks(np.array(sizes), at, deviation, width, race.variance.paired)
