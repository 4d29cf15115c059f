"""Absorb: a draw that needs no winner, since the error of a subsample takes part in its randomness.

To draw an arm is to find the best of values plus Gumbel noise. A Gumbel variable is the sum of a normal one,
N(0, s²), and a correction C (`corrections`). Sums that are estimated from T rows come with an error that is
nearly normal, of known covariance Σ. Only differences of arms count: P = I - 11ᵀ/D. As soon as no eigenvalue
of PΣP is above s², normal noise of covariance s²I - PΣP is added, and all arms carry independent N(0, s²),
which with the corrections is Gumbel noise. Near ties cost nothing. Of two arms, the difference carries
logistic noise, which leaves room for a larger s.

How many rows are read depends on covariances and on what is found of the law of the error, not on who leads;
but arms that trail by more than the noise that is left can bring back are dropped.
"""

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar, NamedTuple

import numpy as np

from gumbelrace.core.jit import part
from gumbelrace.core.random import Bits
from gumbelrace.core.rows import pick_rows, rewind
from gumbelrace.errors import InvalidArgument
from gumbelrace.methods import rules
from gumbelrace.methods.absorb_independent import AbsorbingOwn
from gumbelrace.methods.absorb_moments import (
    FAR,
    GROWTH,
    LARGEST_DERIVATIVE,
    LEAST,
    MARGIN,
    Moments,
    count_rows,
    factorise,
    largest_eigenvalue,
    mean_of,
    new_moments,
    normal,
    off_normal,
    put_covariances,
    put_noise,
)
from gumbelrace.methods.base import Method, Promise
from gumbelrace.methods.corrections import GUMBEL, PAIR, Correction, draw_correction, widest
from gumbelrace.methods.race import DECLARED
from gumbelrace.methods.race_independent import ROUNDING
from gumbelrace.methods.reading import HELD, THE_REST, Sample, fresh_rows, open_look, total
from gumbelrace.methods.rules import enter, implements
from gumbelrace.methods.shared import SharedWorkspace, read_more
from gumbelrace.methods.state import (
    ALIVE,
    AT_ONCE,
    EVALUATIONS,
    EXHAUSTED,
    LEADER,
    LOOKS,
    TAKEN,
    Question,
    RaceState,
    add,
    drop,
    drop_ruled_out,
    estimate,
    rank,
    reset,
)
from gumbelrace.population.arrays import LARGEST_REWARD
from gumbelrace.population.base import CODE, FINE, Population, SharedPopulation, checked_count, read

# Plans from fewer rows are not trusted to say that reading everything is cheaper.
TRUSTED = 128


class Absorbing(NamedTuple):
    """Rule: read rows until the error of the sums fits into the noise, and its law is close to normal."""

    first: int
    error: float  # of the law of the error
    of_many: Correction
    of_two: Correction
    at_once: bool  # rewards of some rows tell nothing of others
    keeps: bool = False

    def working_memory(self, arms: int) -> Moments:
        """Make room for the moments of all arms."""
        return new_moments(arms)


@implements(rules.run, Absorbing)
def _run(rule: Absorbing, workspace: SharedWorkspace) -> None:
    state, size = workspace.state, workspace.sizes[0]
    reset(state, workspace.source)
    enter(workspace)
    deviation = add_corrections(rule, state, workspace.noise)
    workspace.work.counted[0] = 0
    wanted = size if rule.at_once or state.tally[AT_ONCE] or deviation == 0.0 else rule.first
    while state.tally[ALIVE] > 1 and state.tally[TAKEN] < wanted < size:
        if not read_until(rule, workspace, wanted, deviation):
            return
        wanted = plan(rule, workspace, deviation) if state.tally[ALIVE] > 1 else 0
    if state.tally[ALIVE] != 1 and wanted >= size:
        read_everything(workspace)
    if workspace.source.fault[CODE] == FINE:
        choose(workspace, deviation, wanted >= size)
        rewind(workspace.order)


@part
def add_corrections(rule: Absorbing, state: RaceState, bits: Bits) -> float:
    """Add to the offsets what normal noise lacks of the noise of a draw; give its standard deviation."""
    temperature = state.temperature[0]
    if state.tally[ALIVE] == 2:
        # The difference has one correction, and the noise of both arms.
        state.offset[state.arms[0]] += temperature * draw_correction(rule.of_two, bits)
        return temperature * rule.of_two.deviation / np.sqrt(2.0)
    for a in range(state.tally[ALIVE]):
        state.offset[state.arms[a]] += temperature * draw_correction(rule.of_many, bits)
    return temperature * rule.of_many.deviation


@part
def by_weights(workspace: SharedWorkspace) -> bool:
    """Whether rows are drawn with replacement, by their weights."""
    return len(workspace.order.weights.keep) > 0 and len(workspace.source.direct) == 0


@part
def share_left(workspace: SharedWorkspace) -> float:
    """Give the share of the rows that were not read; all, if rows may be drawn again."""
    return 1.0 if by_weights(workspace) else 1.0 - workspace.state.tally[TAKEN] / workspace.sizes[0]


@part
def read_until(rule: Absorbing, workspace: SharedWorkspace, wanted: int, deviation: float) -> bool:
    """Read rows until so many were read, and drop arms on the way; False after a fault."""
    state = workspace.state
    while state.tally[TAKEN] < wanted and state.tally[ALIVE] > 1:
        count = min(wanted - state.tally[TAKEN], HELD)
        open_look(workspace.sample, False)
        done = read_picked(workspace, count) if by_weights(workspace) else read_more(workspace, count)
        if not done:
            return False
        state.tally[TAKEN] += count
        state.tally[LOOKS] += 1
        if state.tally[ALIVE] > 1:
            rank(state, state.tally[TAKEN], workspace.sizes[0])
            compare(rule, workspace, deviation)
            drop(state)
            count_rows(workspace.work, state, workspace.sample)
    return True


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
    if np.isnan(state.shift[0]):
        state.shift[0] = 0.0
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        state.fresh[arm] = total(sample.rewards, arm, 0, count, state.shift[0])
        add(state, arm, state.fresh[arm])


@part
def compare(rule: Absorbing, workspace: SharedWorkspace, deviation: float) -> None:
    """Flag arms that trail by more than noise can bring back; note the chances of the others."""
    state, moments, leader = workspace.state, workspace.work, workspace.state.tally[LEADER]
    widest, moments.unproved[0] = 0.0, False
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        moments.gap[arm] = state.podium[0] - estimate(state, arm, state.tally[TAKEN], workspace.sizes[0])
        second, third = deviations(state, workspace.sample, leader, arm)
        equal = arm != leader and are_equal(workspace, leader, arm, second)
        margin, variance = margin_of(rule, workspace, arm, second, third, deviation)
        state.out[arm] = moments.gap[arm] > margin and not equal
        if not state.out[arm]:
            widest, moments.unproved[0] = max(widest, variance), moments.unproved[0] or equal
    put_chances(moments, state, np.sqrt(state.temperature[0] ** 2 + widest / 2.0))


@part
def margin_of(
    rule: Absorbing, workspace: SharedWorkspace, arm: int, second: float, third: float, deviation: float
) -> tuple[float, float]:
    """Give how far behind the leader an arm may still win, and the variance of the estimated gap."""
    rows, per_row = fresh_rows(workspace.sample), workspace.sizes[0] / workspace.state.tally[TAKEN]
    left = share_left(workspace)
    variance = second * per_row * workspace.sizes[0] * left
    noise = variance + 2.0 * deviation * deviation
    far = FAR * (1.0 + (FAR * FAR + 1.0) / (4.0 * rows))  # of Student's t
    skewed = per_row * abs(third) / second * variance / noise if second > 0.0 else 0.0
    hidden = per_row * left * unseen(workspace, arm, workspace.state.tally[LEADER])
    # Rows of which so many are expected in the sample are missed with the probability of the error.
    missed = -np.log(rule.error)
    return far * np.sqrt(noise) + (2.0 * FAR * FAR + 1.0) / 6.0 * skewed + missed * hidden, variance


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
    return second / (rows - 1), third / rows


@part
def are_equal(workspace: SharedWorkspace, leader: int, arm: int, second: float) -> bool:
    """Whether all differences read were the same, which proves nothing of the others."""
    state, sample, source = workspace.state, workspace.sample, workspace.source
    sizes = abs(mean_of(state, sample, leader)) + abs(mean_of(state, sample, arm))
    width = source.high[arm] - source.low[arm] + source.high[leader] - source.low[leader]
    return width > 0.0 and np.sqrt(second) <= ROUNDING * sizes


@part
def unseen(workspace: SharedWorkspace, arm: int, other: int) -> float:
    """Give by how much a row may favour one arm over another more than rows do on average, if known."""
    source, state, taken = workspace.source, workspace.state, workspace.state.tally[TAKEN]
    known = source.high[arm] < LARGEST_REWARD and source.low[other] > -LARGEST_REWARD
    if not known or by_weights(workspace):
        return 0.0
    return source.high[arm] - source.low[other] - (state.sums[arm] - state.sums[other]) / taken


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


@part
def plan(rule: Absorbing, workspace: SharedWorkspace, deviation: float) -> int:
    """Give how many rows to read in all: not more than were read, if the noise can be added."""
    state, moments, taken = workspace.state, workspace.work, workspace.state.tally[TAKEN]
    if moments.counted[0] == 0 or moments.unproved[0]:
        return GROWTH * taken
    alive, variance, size = state.tally[ALIVE], deviation * deviation, workspace.sizes[0]
    skewed, hidden = law_errors(workspace)
    state.law_error[0] = skewed + hidden
    scale = size * size / taken * share_left(workspace)
    put_covariances(moments, state, scale)
    if state.law_error[0] <= rule.error and factorise(moments, alive, variance):
        return taken
    put_covariances(moments, state, scale)
    needed = MARGIN * largest_eigenvalue(moments, alive) / variance
    # Of rows that weigh less by half, skewness does a fourth, and a hidden one an eighth.
    needed = max(needed, np.sqrt(2.0 * skewed / rule.error), np.cbrt(2.0 * hidden / rule.error))
    return next_target(workspace, needed)


@part
def law_errors(workspace: SharedWorkspace) -> tuple[float, float]:
    """Estimate how far the law of a draw is off: by what was seen, and by what a range allows unseen."""
    state, source, temperature = workspace.state, workspace.source, workspace.state.temperature[0]
    per_row, left = workspace.sizes[0] / state.tally[TAKEN], share_left(workspace)
    highest = lowest = state.arms[0]
    for a in range(1, state.tally[ALIVE]):
        arm = state.arms[a]
        highest = arm if unseen(workspace, arm, highest) > unseen(workspace, highest, arm) else highest
        lowest = arm if unseen(workspace, lowest, arm) > unseen(workspace, arm, lowest) else lowest
    jump = per_row * left * unseen(workspace, highest, lowest) / temperature
    skewed = off_normal(workspace.work, state, per_row / temperature, left)
    return skewed, LARGEST_DERIVATIVE / 3.0 * jump**3


@part
def next_target(workspace: SharedWorkspace, needed: float) -> int:
    """Give how many rows make one weigh `needed` times less; all, if it takes less to read them in order."""
    taken, size, source = workspace.state.tally[TAKEN], workspace.sizes[0], workspace.source
    left = share_left(workspace)
    target = 1.0 / (left / taken / max(needed, 1.0) + (1.0 - left) / taken)
    unread = size if len(source.direct) or by_weights(workspace) else size - taken
    if taken >= TRUSTED and source.scan_speed * (target - taken) > unread:
        return size
    return int(min(max(target, taken + LEAST), GROWTH * taken)) + 1


@part
def read_everything(workspace: SharedWorkspace) -> None:
    """Read all rows that are left; rows drawn by weights count for nothing."""
    state = workspace.state
    if by_weights(workspace):
        state.tally[TAKEN], state.shift[0] = 0, np.nan
        for arm in range(len(state.sums)):
            state.sums[arm], state.lost[arm], state.rows[arm] = 0.0, 0.0, 0
    read_more(workspace, THE_REST)
    state.law_error[0] = 0.0


@part
def choose(workspace: SharedWorkspace, deviation: float, exhausted: bool) -> None:
    """Add the noise that is missing, and name the best."""
    state, moments, size = workspace.state, workspace.work, workspace.sizes[0]
    alive, taken, best = state.tally[ALIVE], size if exhausted else state.tally[TAKEN], -np.inf
    state.tally[EXHAUSTED], state.tally[LEADER] = exhausted and alive > 1, state.arms[0]
    if alive > 1 and not exhausted:
        put_noise(moments, alive, workspace.noise)
    for a in range(alive if alive > 1 else 0):
        noise = deviation * normal(workspace.noise) if exhausted else moments.vector[0, a]
        value = estimate(state, state.arms[a], taken, size) + noise
        if value > best:
            best, state.tally[LEADER] = value, state.arms[a]


@dataclass(frozen=True)
class Absorb(Method):
    """Draw from few rows, without finding out which arm is the best: near ties cost nothing.

    The error of sums that are estimated from a random sample of rows becomes part of the Gumbel noise of the
    draw. The law of a draw is right up to `error` as far as means of rows are normally distributed; how far
    they are from it is estimated from the rows, and more are read where it matters.

    Parameters
    ----------
    error : float
        How far the law of a draw may be off, in total variation. Half of it is for what normal noise can do,
        half for how far estimates are from normal.
    first : int
        Rows that are read at least.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> rng = np.random.default_rng(0)
    >>> y, centers = rng.normal(0.3, 1.0, 50_000), np.array([0.29, 0.3, 0.31])
    >>> population = gr.table(-0.5 * (y[:, None] - centers) ** 2)
    >>> draws = gr.sample(population, size=1000, method=gr.Absorb(), rng=rng)
    >>> np.bincount(draws.arms, minlength=3).argmax()
    np.int64(1)
    """

    error: float = 1e-3
    first: int = 32
    answers: ClassVar[frozenset[Question]] = frozenset({Question.DRAW})
    #: It draws rows with replacement by their weights, where they have weights.
    picks_rows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checked_count(self.first, "first", least=3)
        if not (isinstance(self.error, Real) and 0.0 < float(self.error) < 1.0):
            raise InvalidArgument(f"error is {self.error!r}; it must lie strictly between 0 and 1")
        self._corrections  # noqa: B018: an error that is too small is refused at once

    @property
    def _corrections(self) -> tuple[Correction, Correction]:
        # Errors are relative to p (1 - p): at most 1/4 for two arms, and of many they add up to 1 at most.
        return widest(GUMBEL, self.error / 2.0), widest(PAIR, 2.0 * self.error)

    @property
    def promise(self) -> Promise:
        """The law of a draw is right, if means of rows are normal."""
        return Promise(self.error, f"means of {self.first} rows and more are normal").under(DECLARED)

    def rule(self, population: Population) -> Absorbing | AbsorbingOwn:
        """Give the rule by which rows are read."""
        # Where any row may be -inf, an estimate tells nothing: everything is read.
        at_once = population.may_be_impossible
        if not isinstance(population, SharedPopulation):
            return self.rule_of_own(at_once)
        return Absorbing(self.first, self.error / 2.0, *self._corrections, at_once)

    def rule_of_own(self, at_once: bool) -> AbsorbingOwn:
        """Give the rule by which arms are read that have rows of their own."""
        return AbsorbingOwn(self.first, self.error / 2.0, *self._corrections, at_once)

    answer_each = Method._answer_each
