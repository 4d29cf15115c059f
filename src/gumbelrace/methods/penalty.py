"""Penalty: Metropolis-Hastings from an estimated log ratio (Ceperley & Dewing 1999).

The log ratio Λ = v_1 - v_0 of two arms is estimated from T rows; v is the variance of the estimate. If the
error is normal and v is known, accepting with probability min(1, exp(Λ̂ - v / 2)) keeps detailed balance:
the error of a subsample becomes part of the randomness, and no winner has to be found. A variance that is
itself estimated from T rows costs a little more, by a series of which two further terms are taken.

Rows come by their weights, with replacement, where there are weights, and else in random order without.

*Guard.* Errors are not quite normal. By an Edgeworth expansion the third cumulant κ of Λ̂, which is also the
covariance of Λ̂ with v̂, puts the two sides of detailed balance apart by κ / 3 (docs/penalty.md). T is such
that both v and κ / 3 are small enough.

*Pilot.* T is found from rows that are not those of the estimate. Who reads until the estimate itself looks
good stops early where rows that carry much are missing, and the estimate is then off to one side: this
biases a chain more than the skewness does for which more is read. Without replacement the pilot's rows are
not lost: they are a part of the sum that is known.

*Far moves.* A variance says nothing of how far a move is from being accepted, and of a move far away it is
large. Where a longer pilot leaves no doubt, as the chance of the other answer is about 1e-6 whatever is
read further, that is the answer.
"""

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gumbelrace.core.jit import part
from gumbelrace.core.orders import rewind
from gumbelrace.core.random import STOP, uniform
from gumbelrace.errors import InvalidArgument
from gumbelrace.methods import rules
from gumbelrace.methods.base import Method, Promise
from gumbelrace.methods.margins import margin
from gumbelrace.methods.race import DECLARED
from gumbelrace.methods.reading import HELD, THE_REST, open_look, reduced
from gumbelrace.methods.rules import implements
from gumbelrace.methods.shared import SharedWorkspace, by_weights, read_more
from gumbelrace.methods.state import (
    ALIVE,
    AT_ONCE,
    CURRENT,
    EXHAUSTED,
    LEADER,
    LOOKS,
    PROPOSED,
    ROUNDING,
    TAKEN,
    Question,
    admit,
    reset,
)
from gumbelrace.methods.weighted import draw_by_weights, weigh
from gumbelrace.population.base import (
    CODE,
    FINE,
    IMPOSSIBLE,
    Floats,
    Population,
    SharedPopulation,
    checked_count,
)

# Rows of the first pilot; one that asks for more than so many times its own rows is doubled first.
PILOT_ROWS, PILOT_REACH = 16, 4
# Rows are read a little beyond what the pilot asks for.
MARGIN = 1.1
# A pilot of so many rows or more may leave no doubt: the log ratio is farther from 0 than its margin, by as
# much as is accepted with a chance of 1e-6.
SURE_ROWS, NEVER = 64, 13.8
# An estimate whose variance is so many times what it should be is not used: everything is read. Not much
# earlier, and not where its law looks wrong: who makes estimates until one looks good biases them.
UNUSABLE = 4.0

# The rows of the working memory, and its columns: how many rows, a typical difference of the arms' rewards,
# and sums of the first three powers of how far differences are from it.
PILOT, ESTIMATE = 0, 1
COUNT, CENTRE, SUM, SQUARES, CUBES = range(5)


class Reading(NamedTuple):
    """Rule: read `first` rows, or more until the variance is at most `most` and the law within `error`."""

    first: int
    most: float
    error: float
    keeps: bool = False

    def working_memory(self, arms: int) -> Floats:
        """Make room for the sums of powers."""
        return np.empty((2, 5))


class Spread(NamedTuple):
    """Variance and size of the third cumulant of the differences of single rows."""

    variance: float
    third: float


@implements(rules.run, Reading)
def _run(rule: Reading, workspace: SharedWorkspace) -> None:
    state, work = workspace.state, workspace.work
    reset(state, workspace.source)
    admit(state, workspace.source)
    work[PILOT, COUNT] = work[ESTIMATE, COUNT] = state.tally[EXHAUSTED] = 0
    if state.tally[ALIVE] == 2 and not make_estimate(rule, workspace):
        return
    variance = 0.0
    if state.tally[ALIVE] == 2 and side_beyond_doubt(workspace) == 0.0 and not state.tally[EXHAUSTED]:
        variance, state.law_error[0] = errors_of_estimate(workspace)
        if variance > UNUSABLE * rule.most and can_scan(workspace):
            variance = state.law_error[0] = 0.0
            if not read_all(workspace):
                return
    name_answer(workspace, variance)
    rewind(workspace.order)


@part
def make_estimate(rule: Reading, workspace: SharedWorkspace) -> bool:
    """Read a pilot, and as many rows as it asks for; all if that takes no longer. False after a fault."""
    state, work = workspace.state, workspace.work
    at_once = can_scan(workspace) and (rule.most == 0.0 or state.tally[AT_ONCE] == 1)
    if at_once or takes_all(workspace, PILOT_ROWS + rule.first):
        return read_all(workspace)
    if not read_rows(workspace, PILOT_ROWS, rule.first):
        return False
    wanted = rows_needed(rule, workspace)
    while state.tally[ALIVE] == 2 and wanted > max(PILOT_REACH * work[PILOT, COUNT], 1.0 * rule.first):
        if takes_all(workspace, 2 * int(work[PILOT, COUNT])):
            return read_all(workspace)
        if not read_rows(workspace, int(work[PILOT, COUNT]), 0):
            return False
        wanted = rows_needed(rule, workspace)
        if side_beyond_doubt(workspace) != 0.0:
            return True
    if takes_all(workspace, wanted):
        return read_all(workspace)
    return read_rows(workspace, 0, max(wanted - rule.first, 0))


@part
def side_beyond_doubt(workspace: SharedWorkspace) -> float:
    """Give 1 or -1 if the pilot leaves no doubt that the move is accepted or rejected, else 0."""
    pilot, left = workspace.work[PILOT], rows_left(workspace)
    if pilot[COUNT] < SURE_ROWS:
        return 0.0
    spread, gap = spread_of(pilot), estimated(workspace, pilot)
    if are_alike(pilot, spread):
        return 0.0
    per_row = left / pilot[COUNT]
    beyond = margin(pilot[COUNT], per_row * left * spread.variance, per_row * per_row * left * spread.third)
    return np.sign(gap) if abs(gap) > beyond + NEVER else 0.0


@part
def are_alike(pilot: Floats, spread: Spread) -> bool:
    """Whether all differences read are the same, which proves nothing of the others."""
    alike = ROUNDING * abs(pilot[CENTRE])
    return spread.variance <= alike * alike


@part
def takes_all(workspace: SharedWorkspace, wanted: int) -> bool:
    """Whether reading all rows takes no longer than reading so many random ones."""
    return can_scan(workspace) and wanted * workspace.source.scan_speed >= workspace.sizes[0]


@part
def can_scan(workspace: SharedWorkspace) -> bool:
    """Whether all rows are at hand: those that were drawn ahead are but a sample."""
    return bool(workspace.order.weights.cursor[STOP] == 0)


@part
def read_all(workspace: SharedWorkspace) -> bool:
    """Read every row; False after a fault."""
    workspace.state.tally[EXHAUSTED] = 1
    read_more(workspace, THE_REST)
    return workspace.source.fault[CODE] == FINE


@part
def read_rows(workspace: SharedWorkspace, pilot: int, estimate: int) -> bool:
    """Read more rows for the pilot, and then for the estimate; False after a fault."""
    state, weighted = workspace.state, by_weights(workspace)
    state.tally[LOOKS] += pilot + estimate > 0
    while pilot + estimate > 0 and state.tally[ALIVE] == 2:
        count = min(pilot + estimate, HELD, workspace.source.chunk if weighted else HELD)
        of_pilot = min(pilot, count)
        if weighted:
            if not read_by_weights(workspace, of_pilot, count):
                return False
        elif not read_in_order(workspace, of_pilot, count):
            return False
        pilot, estimate = pilot - of_pilot, estimate - (count - of_pilot)
    return True


@part
def read_in_order(workspace: SharedWorkspace, of_pilot: int, count: int) -> bool:
    """Read the next rows of the random order."""
    state, sample, work = workspace.state, workspace.sample, workspace.work
    open_look(sample, False)
    if not read_more(workspace, count):
        return False
    state.tally[TAKEN] += count
    for run in range(sample.runs[1], sample.runs[0]):
        first, length = sample.first[run], sample.length[run]
        ours = min(of_pilot, length)
        add_powers(work[PILOT], sample.rewards, first, ours)
        add_powers(work[ESTIMATE], sample.rewards, first + ours, length - ours)
        of_pilot -= ours
    return True


@part
def read_by_weights(workspace: SharedWorkspace, of_pilot: int, count: int) -> bool:
    """Read rows drawn with replacement."""
    block, work = workspace.block, workspace.work
    if not draw_by_weights(workspace, block, 0, count):
        return False
    weigh(workspace, block, 0, count)
    add_powers(work[PILOT], block, 0, of_pilot)
    add_powers(work[ESTIMATE], block, of_pilot, count - of_pilot)
    return True


@part
def add_powers(powers: Floats, rewards: Floats, first: int, count: int) -> None:
    """Add powers of the differences of the arms' rewards in some columns."""
    begin, end = np.uint64(first), np.uint64(first + count)
    one, two = np.uint64(CURRENT), np.uint64(PROPOSED)
    if powers[COUNT] == 0.0 and count > 0:
        total = 0.0
        for i in range(begin, end):
            total += reduced(rewards[two, i], rewards[one, i])
        powers[CENTRE] = total / count
        powers[SUM] = powers[SQUARES] = powers[CUBES] = 0.0
    centre, sum_1, sum_2, sum_3 = powers[CENTRE], 0.0, 0.0, 0.0
    for i in range(begin, end):
        z = reduced(reduced(rewards[two, i], rewards[one, i]), centre)
        sum_1 += z
        sum_2 += z * z
        sum_3 += z * z * z
    powers[COUNT] += count
    powers[SUM] += sum_1
    powers[SQUARES] += sum_2
    powers[CUBES] += sum_3


@part
def spread_of(powers: Floats) -> Spread:
    """Estimate the spread of the differences of single rows, which does not change if arms are swapped."""
    count, mean = powers[COUNT], powers[SUM] / powers[COUNT]
    squares = powers[SQUARES] - mean * powers[SUM]
    cubes = powers[CUBES] - 3.0 * mean * powers[SQUARES] + 2.0 * mean * mean * powers[SUM]
    third = abs(cubes) * count / ((count - 1.0) * (count - 2.0))
    return Spread(max(squares, 0.0) / (count - 1.0), third)


@part
def rows_left(workspace: SharedWorkspace) -> float:
    """Count the rows whose sum is estimated: without replacement, all but the pilot's."""
    in_order = not by_weights(workspace)
    return workspace.sizes[0] - (workspace.work[PILOT, COUNT] if in_order else 0.0)


@part
def rows_needed(rule: Reading, workspace: SharedWorkspace) -> int:
    """Give the number of rows after which the pilot expects the estimate to be good enough."""
    pilot, left = workspace.work[PILOT], rows_left(workspace)
    spread = spread_of(pilot)
    if are_alike(pilot, spread):
        return workspace.sizes[0]
    for_variance = left * left * spread.variance / rule.most
    for_law = left * np.sqrt(left * spread.third / (3.0 * rule.error))
    wanted = MARGIN * max(for_variance, for_law)
    if not by_weights(workspace):
        wanted /= 1.0 + wanted / left
    return int(min(wanted, 1.0 * workspace.sizes[0]))


@part
def errors_of_estimate(workspace: SharedWorkspace) -> tuple[float, float]:
    """Give the variance of the estimated log ratio, and what its skewness does to detailed balance."""
    powers, left = workspace.work[ESTIMATE], rows_left(workspace)
    spread, factor = spread_of(powers), left / powers[COUNT]
    in_order = not by_weights(workspace)
    share = powers[COUNT] / left if in_order else 0.0
    cumulant = spread.third * factor * factor * left * (1.0 - share)
    return spread.variance * factor * left * (1.0 - share), cumulant * (2.0 - share) / 6.0


@part
def name_answer(workspace: SharedWorkspace, variance: float) -> None:
    """Accept or reject by the estimated log ratio, less the penalty for its variance."""
    state = workspace.state
    if state.tally[ALIVE] == 0:
        workspace.source.fault[CODE] = IMPOSSIBLE
        return
    state.tally[LEADER] = state.arms[0]
    if state.tally[ALIVE] == 2:
        side = 0.0 if state.tally[EXHAUSTED] else side_beyond_doubt(workspace)
        least = np.log(uniform(workspace.noise))
        accepts = side > 0.0 or (
            side == 0.0 and least < log_ratio(workspace) - penalty(variance, workspace)
        )
        state.tally[LEADER] = PROPOSED if accepts else CURRENT


@part
def penalty(variance: float, workspace: SharedWorkspace) -> float:
    """Give the first terms of Ceperley & Dewing's series for a variance estimated from T rows."""
    count, squared = workspace.work[ESTIMATE, COUNT], variance * variance
    cubic = squared * variance / (3.0 * (count + 1.0) * (count + 3.0))
    return variance / 2.0 + squared / (4.0 * (count + 1.0)) + cubic


@part
def log_ratio(workspace: SharedWorkspace) -> float:
    """Give the difference of the arms' values, or an estimate of it."""
    state = workspace.state
    if not state.tally[EXHAUSTED]:
        return estimated(workspace, workspace.work[ESTIMATE])
    return state.sums[PROPOSED] - state.sums[CURRENT] + (state.offset[PROPOSED] - state.offset[CURRENT])


@part
def estimated(workspace: SharedWorkspace, powers: Floats) -> float:
    """Estimate the difference of the arms' values from the rows of which the powers were added up."""
    state, pilot = workspace.state, workspace.work[PILOT]
    gap = (powers[CENTRE] + powers[SUM] / powers[COUNT]) * rows_left(workspace)
    if not by_weights(workspace):
        gap += pilot[CENTRE] * pilot[COUNT] + pilot[SUM]
    return gap + (state.offset[PROPOSED] - state.offset[CURRENT])


@dataclass(frozen=True)
class Penalty(Method):
    """Accept or reject a move from few rows, without finding out which point is the better one.

    Parameters
    ----------
    error : float
        How far the two sides of detailed balance may be apart because estimates are not quite normal: rows
        are read until what the sample says of it is less. ``math.inf``: that is not looked at.
    most_variance : float
        Rows are read until the estimated log ratio has at most this variance.
    first : int
        Rows that are read at least.

    Notes
    -----
    It is for kernels that accept or reject moves: `Metropolis`, `Langevin`, and the moves of the models of
    `CarlinChib`. Rows of which few carry the sum must come by weights, or estimates are blind to them.

    Examples
    --------
    >>> import numba, numpy as np, gumbelrace as gr
    >>> @numba.njit
    ... def log_factor(n, theta, y):
    ...     return -0.5 * (y[n] - theta[0]) ** 2
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(1.0, 1.0, 10_000)
    >>> likelihood = gr.likelihood(log_factor, (y,), len(y))
    >>> kernel = gr.Metropolis(likelihood, gr.kernels.RandomWalk(0.02), method=gr.Penalty())
    >>> state, info = kernel.step(rng, gr.kernels.Position(np.array([1.0])))
    >>> info.evaluations < info.rewards
    True
    """

    error: float = 1e-3
    most_variance: float = 1.0
    first: int = 32
    answers: ClassVar[frozenset[Question]] = frozenset({Question.ACCEPT})
    picks_rows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checked_count(self.first, "first", least=3)
        _check_positive(self.most_variance, "most_variance")
        if self.error != np.inf:
            _check_positive(self.error, "error")

    @property
    def least_rows(self) -> int:
        """Rows that are read at least for a decision, unless there are fewer."""
        return PILOT_ROWS + self.first

    @property
    def promise(self) -> Promise:
        """How far the law of a decision may be off, if the sample tells how normal estimates are."""
        ground = f"means of {self.first} rows are normal but for the skewness that the rows read show"
        return Promise(min(float(self.error), 1.0), ground, "law").under(DECLARED)

    def promised(self, population: Population) -> Promise:
        """Give how wrong the law may be, which rests on more where rows have no weights."""
        weighted = isinstance(population, SharedPopulation) and population.rows.weights is not None
        unseen = None if weighted else "no few rows carry the sums"
        return self.promise.under(unseen).on(population)

    def rule(self, population: Population) -> Reading:
        """Give the rule by which rows are read."""
        if not isinstance(population, SharedPopulation):
            raise InvalidArgument("Penalty reads rows that both arms share; independent arms have none")
        # Where any row may be -inf, an estimate tells nothing: everything is read.
        most = 0.0 if population.may_be_impossible else float(self.most_variance)
        return Reading(self.first, most, float(self.error))

    answer_each = Method._answer_each


def _check_positive(value: Any, name: str) -> None:
    if not (isinstance(value, Real) and 0.0 < float(value) < np.inf):
        raise InvalidArgument(f"{name} is {value!r}; it must be a positive number")
