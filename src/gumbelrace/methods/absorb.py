"""Absorb: a draw that needs no winner, since the error of a subsample takes part in its randomness.

To draw an arm is to find the best of values plus Gumbel noise. A Gumbel variable is the sum of a normal
one, N(0, s²), and a correction C (`corrections`). Sums that are estimated from T rows come with an error
that is nearly normal, of known covariance Σ. Only differences of arms count: P = I - 11ᵀ/D. As soon as no
eigenvalue of PΣP is above s², normal noise of covariance s²I - PΣP is added, and all arms carry independent
N(0, s²), which with the corrections is Gumbel noise. Near ties cost nothing. Of two arms, the difference
carries logistic noise, which leaves room for a larger s.

A pilot tells the covariances, and so how many rows are needed; a last look of that many rows stands for
all that the pilot did not read. It is planned with room to spare, since a pilot that misses the tails of
rewards finds too little variance; and what noise is missing is decided by how much the last look varies.
How many rows it has must not depend on their mean: of skewed rewards, mean and variance of the same rows
go together, and reading on where the variance is large would bias the law. Arms that trail the leader of
the pilot by more than the noise left can bring back are dropped.
"""

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar, NamedTuple

import numpy as np

from gumbelrace.core.jit import part
from gumbelrace.core.orders import rewind
from gumbelrace.core.random import Bits
from gumbelrace.errors import InvalidArgument
from gumbelrace.methods import rules
from gumbelrace.methods.absorb_independent import AbsorbingOwn
from gumbelrace.methods.absorb_moments import (
    BY_VARIANCE,
    GROWTH,
    LARGEST_DERIVATIVE,
    LEAST,
    LITTLE,
    LONGEST,
    MARGIN,
    TOO_FAR,
    UNEXPECTED,
    Moments,
    add_derivatives,
    add_spread,
    bound_eigenvalues,
    compare_spread,
    count_rows,
    factorise,
    headroom,
    largest_eigenvalue,
    new_moments,
    normal,
    off_by,
    put_covariances,
    put_noise,
    rows_at_first,
    summed_derivatives,
    unsureness,
)
from gumbelrace.methods.absorb_pilot import (
    most_unseen,
    read_pilot,
    read_some,
)
from gumbelrace.methods.base import Method, Promise
from gumbelrace.methods.corrections import GUMBEL, PAIR, Correction, draw_correction, finest, widest
from gumbelrace.methods.race import DECLARED
from gumbelrace.methods.reading import HELD, THE_REST, fresh_rows
from gumbelrace.methods.rules import enter, implements
from gumbelrace.methods.shared import SharedWorkspace, by_weights, read_more
from gumbelrace.methods.state import (
    ALIVE,
    AT_ONCE,
    EXHAUSTED,
    LEADER,
    TAKEN,
    Question,
    RaceState,
    estimate,
    reset,
)
from gumbelrace.population.base import CODE, FINE, Population, SharedPopulation, checked_count

# Plans from fewer rows are not trusted to say that reading everything is cheaper.
SCAN_AFTER = 128


class Absorbing(NamedTuple):
    """Rule: read rows until the error of the sums fits into the noise, and its law is close to normal."""

    first: int
    error: float  # of the law, by that of the estimates
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
    clear(workspace.work)
    at_once = rule.at_once or state.tally[AT_ONCE] or deviation == 0.0
    wanted, last = size if at_once else rows_at_first(rule.first, size), 0
    while state.tally[ALIVE] > 1 and last == 0 and wanted < size:
        if not read_pilot(workspace, wanted, deviation, rule.error):
            return
        if state.tally[ALIVE] > 1:
            wanted, last = plan(rule, workspace, deviation)
        if last > 0 and not read_last(workspace, last):
            return
        if last > 0 and not is_as_expected(workspace, last, deviation):
            wanted, last = GROWTH * state.tally[TAKEN], 0
    if state.tally[ALIVE] > 1 and last > 0:
        put_missing_noise(workspace, deviation, last)
    elif state.tally[ALIVE] != 1:
        read_everything(workspace)
        last = 0
    if workspace.source.fault[CODE] == FINE:
        choose(workspace, deviation, last)
        state.law_error[0] += workspace.work.surprise[0]
        rewind(workspace.order)


@part
def clear(moments: Moments) -> None:
    """Forget the rows of the draw before."""
    moments.counted[0], moments.surprise[0] = 0, 0.0
    for arm in range(len(moments.total)):
        moments.total[arm] = 0.0


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
def plan(rule: Absorbing, workspace: SharedWorkspace, deviation: float) -> tuple[int, int]:
    """Give how many rows the pilot shall have, and how many the last look, or 0 if the pilot goes on."""
    moments, taken, size = workspace.work, workspace.state.tally[TAKEN], workspace.sizes[0]
    if moments.counted[0] == 0 or moments.unproved[0]:
        return GROWTH * taken, 0
    last = rows_of_last(rule, workspace, deviation, expected_eigenvalue(workspace))
    enough = rows_of_pilot(rule, workspace, last)
    if is_scan_cheaper(workspace, last + max(enough - taken, 0.0)):
        return size, 0
    if enough > taken:
        return int(min(max(enough, taken + LEAST), GROWTH * taken)) + 1, 0
    moments.bound[0] = bound_eigenvalues(moments, workspace.state, error_of_one(workspace, taken))
    last = np.ceil(rows_of_last(rule, workspace, deviation, moments.bound[0]))
    skewed, unsure, hidden = law_errors(workspace, last)
    workspace.state.law_error[0] = skewed + unsure + hidden
    return taken, int(last)


@part
def rows_of_pilot(rule: Absorbing, workspace: SharedWorkspace, last: float) -> float:
    """Give how many rows the pilot needs, before a last look of so many."""
    moments, state = workspace.work, workspace.state
    _, unsure, _ = law_errors(workspace, last)
    of_normal = 2.0 / (state.tally[ALIVE] - 1.0) / moments.counted[0]
    doubtful = max(2.0 * unsure, BY_VARIANCE * (unsureness(moments) - of_normal))
    return max(state.tally[TAKEN] * doubtful / rule.error, last / LONGEST)


@part
def rows_to_stand_for(workspace: SharedWorkspace, since: int) -> tuple[float, float]:
    """Give how many rows a look after `since` rows stands for, and 1 over these if none is repeated."""
    if by_weights(workspace):
        return float(workspace.sizes[0]), 0.0
    rest = float(workspace.sizes[0] - since)
    return rest, 1.0 / rest


@part
def rows_of_last(rule: Absorbing, workspace: SharedWorkspace, deviation: float, largest: float) -> float:
    """Give how many rows the last look needs, for the noise and for its law."""
    moments = workspace.work
    largest *= headroom(unsureness(moments), 1.0 * moments.counted[0])
    _, again = rows_to_stand_for(workspace, workspace.state.tally[TAKEN])
    last = max(1.0 / (again + deviation * deviation / max(largest, LITTLE)), float(LEAST))
    skewed, _, hidden = law_errors(workspace, last)
    # Of rows that weigh less by half, skewness does a fourth, and a hidden one an eighth.
    return last * max(1.0, np.sqrt(4.0 * skewed / rule.error), np.cbrt(4.0 * hidden / rule.error))


@part
def error_of_one(workspace: SharedWorkspace, since: int) -> float:
    """Give the variance of a sum estimated from one row after `since`, over that of its rewards."""
    rest, _ = rows_to_stand_for(workspace, since)
    return rest * rest


@part
def expected_eigenvalue(workspace: SharedWorkspace) -> float:
    """Estimate the largest eigenvalue of the covariances of sums estimated from one row, with a margin."""
    moments, state = workspace.work, workspace.state
    put_covariances(moments, state, error_of_one(workspace, state.tally[TAKEN]))
    return MARGIN * largest_eigenvalue(moments, state.tally[ALIVE])


@part
def law_errors(workspace: SharedWorkspace, last: float) -> tuple[float, float, float]:
    """Estimate how far the law is off: by skewness, by unsure covariances, by what rows may hide."""
    state, counted = workspace.state, workspace.work.counted[0]
    rest, again = rows_to_stand_for(workspace, state.tally[TAKEN])
    per_row, left = rest / (last * state.temperature[0]), max(1.0 - last * again, 0.0)
    third, fourth = summed_derivatives(workspace.work, state)
    # Twice what the third cumulant does: the noise that is added goes with the same rows.
    skewed = per_row**3 * last * left / 3.0 * third
    unsure = per_row**4 * last * last * left * left / (8.0 * counted) * fourth
    jump = per_row * left * most_unseen(workspace)
    return skewed, unsure, LARGEST_DERIVATIVE / 6.0 * jump**3


@part
def is_scan_cheaper(workspace: SharedWorkspace, more: float) -> bool:
    """Whether to read all rows in order takes less than so many more at random, or these are all."""
    taken, size, source = workspace.state.tally[TAKEN], workspace.sizes[0], workspace.source
    unread = size if len(source.direct) or by_weights(workspace) else size - taken
    speed = source.scan_speed if taken >= SCAN_AFTER else 1.0
    return speed * more >= unread


@part
def read_last(workspace: SharedWorkspace, count: int) -> bool:
    """Read the last look; False after a fault."""
    state, moments = workspace.state, workspace.work
    for a in range(state.tally[ALIVE]):
        moments.before[state.arms[a]] = moments.total[state.arms[a]]
        moments.spread[state.arms[a]] = 0.0
    until = state.tally[TAKEN] + count
    while state.tally[TAKEN] < until and state.tally[ALIVE] > 1:
        if not read_some(workspace, min(until - state.tally[TAKEN], HELD)):
            return False
        add_spread(moments, state, workspace.sample)
    return True


@part
def is_as_expected(workspace: SharedWorkspace, count: int, deviation: float) -> bool:
    """Whether rewards vary about as before; if not by far, the last look belongs to the pilot."""
    state, moments, excess = workspace.state, workspace.work, 0.0
    rest, again = rows_to_stand_for(workspace, state.tally[TAKEN] - count)
    # The variance of an arm's error apart from the mean of the others' is so many times that noted.
    others = max(state.tally[ALIVE] - 1.0, 1.0)
    apart = ((others + 1.0) / others) ** 2 * (1.0 / count - again)
    compare_spread(moments, state, count, rest * rest)
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        expected, found = moments.expected[arm], rest * rest * moments.spread[arm] / count
        if apart * found > max(UNEXPECTED * apart * expected, 2.0 * deviation * deviation):
            excess = max(excess, apart * (found - expected))
    jump = np.sqrt(excess) / state.temperature[0]
    moments.surprise[0] = max(moments.surprise[0], off_by(jump))
    if jump <= TOO_FAR:
        return True
    count_rows(moments, state, workspace.sample)
    add_derivatives(moments, state, fresh_rows(workspace.sample))
    return False


@part
def read_everything(workspace: SharedWorkspace) -> None:
    """Read all rows that are left; rows drawn by weights count for nothing."""
    state = workspace.state
    if by_weights(workspace):
        state.tally[TAKEN], state.shift[0] = 0, np.nan
    read_more(workspace, THE_REST)
    state.law_error[0] = 0.0


@part
def choose(workspace: SharedWorkspace, deviation: float, last: int) -> None:
    """Name the best, with all its noise, after a last look of so many rows (0: all were read)."""
    state, moments, size, best = workspace.state, workspace.work, workspace.sizes[0], -np.inf
    state.tally[EXHAUSTED], state.tally[LEADER] = last == 0 and state.tally[ALIVE] > 1, state.arms[0]
    for a in range(state.tally[ALIVE] if state.tally[ALIVE] > 1 else 0):
        arm = state.arms[a]
        if last > 0:
            value = estimate_by_last(workspace, arm, last) + moments.vector[0, a]
        else:
            value = estimate(state, arm, size, size) + deviation * normal(workspace.noise)
        if value > best:
            best, state.tally[LEADER] = value, arm


@part
def put_missing_noise(workspace: SharedWorkspace, deviation: float, last: int) -> None:
    """Draw the noise that makes the errors of all arms independent.

    The more a pilot finds rewards to vary, the more rows follow; so its variance is too small on average
    where few follow. That of the last look is not: the pilot's covariances are scaled to it, and what an
    arm varies beyond that is taken off its own noise.
    """
    state, moments, since = workspace.state, workspace.work, workspace.state.tally[TAKEN] - last
    if state.tally[ALIVE] != moments.factorised[0]:  # an arm has shown a -inf
        put_covariances(moments, state, error_of_one(workspace, since))
        factorise(moments, state.tally[ALIVE], moments.bound[0])
    _, again = rows_to_stand_for(workspace, since)
    off = put_noise(moments, state, 1.0 / last - again, deviation * deviation, workspace.noise)
    moments.surprise[0] += off / state.temperature[0] ** 2


@part
def estimate_by_last(workspace: SharedWorkspace, arm: int, last: int) -> float:
    """Estimate a value, less what arms share: the last look stands for what the pilot did not read."""
    state, before, total = workspace.state, workspace.work.before[arm], workspace.work.total[arm]
    rest, _ = rows_to_stand_for(workspace, state.tally[TAKEN] - last)
    known = 0.0 if by_weights(workspace) else before
    return known + (total - before) * (rest / last) + state.offset[arm]


@dataclass(frozen=True)
class Absorb(Method):
    """Draw from few rows, without finding out which arm is the best: near ties cost nothing.

    The error of sums that are estimated from a random sample of rows becomes part of the Gumbel noise of
    the draw. The law of a draw is right up to `error` as far as means of rows are normally distributed; how
    far they are from it is estimated from the rows, and more are read where it matters. Rows so rare that
    the rows read have none of them (1 in 1,000, say) and that carry much of the sums are not seen: give a
    range or weights where there may be any.

    Parameters
    ----------
    error : float
        How far the law of a draw may be off, in total variation. Half of it is for what the corrections
        lack, half for how far estimates are from normal.
    first : int
        Rows that are read at first, to see how much rewards vary; of few rows, only an eighth.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> rng = np.random.default_rng(0)
    >>> population = gr.table(1e-4 * rng.normal(size=(100_000, 4)) + [0.0, 1e-5, 0.0, 0.0])
    >>> draws = gr.sample(population, size=1000, method=gr.Absorb(), rng=rng)
    >>> draws.fraction < 0.01
    True
    >>> print(draws.promise)
    law within 0.001 if means of 32 rows and more are normal
    """

    error: float = 1e-3
    first: int = 64
    answers: ClassVar[frozenset[Question]] = frozenset({Question.DRAW})
    picks_rows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checked_count(self.first, "first", least=3)
        least = 2.0 * finest(GUMBEL)
        if not (isinstance(self.error, Real) and least <= float(self.error) < 1.0):
            raise InvalidArgument(f"error is {self.error!r}; it must lie between {least:.2g} and 1")

    def corrections(self) -> tuple[Correction, Correction]:
        """Give what normal noise lacks of the noise of many arms, and of two."""
        # Errors are relative to p (1 - p): at most 1/4 for two arms, and of many they add up to 1 at most.
        return widest(GUMBEL, self.error / 2.0), widest(PAIR, 2.0 * self.error)

    @property
    def promise(self) -> Promise:
        """The law of a draw is right, if means of rows are normal."""
        return Promise(float(self.error), f"means of {LEAST} rows and more are normal", "law")

    def promised(self, population: Population) -> Promise:
        """Give how wrong the law may be, which rests on more where no range is known."""
        known, control = population.knows_range, population.known
        finite = known or (control is not None and control.finite)
        unseen = None if known else "no few rows carry the sums"
        return self.promise.under(unseen).under(None if finite else DECLARED).on(population)

    def rule(self, population: Population) -> Absorbing | AbsorbingOwn:
        """Give the rule by which rows are read."""
        # Where any row may be -inf, an estimate tells nothing: everything is read.
        at_once = population.may_be_impossible
        if not isinstance(population, SharedPopulation):
            return self.rule_of_own(at_once)
        return Absorbing(int(self.first), float(self.error) / 2.0, *self.corrections(), at_once)

    def rule_of_own(self, at_once: bool) -> AbsorbingOwn:
        """Give the rule by which arms are read that have rows of their own."""
        return AbsorbingOwn(int(self.first), float(self.error) / 2.0, *self.corrections(), at_once)

    answer_each = Method._answer_each
