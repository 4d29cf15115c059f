"""Penalty: Metropolis-Hastings from an estimated log ratio (Ceperley & Dewing 1999).

The log ratio Λ = v_1 - v_0 of two arms is estimated from T rows; v is the variance of the estimate. If the
error is normal and v is known, accepting with probability min(1, exp(Λ̂ - v / 2)) keeps detailed balance:
the error of a subsample becomes part of the randomness, and no winner has to be found. A variance that is
itself estimated from T rows costs a little more, by a series of which two further terms are taken.

Rows come by their weights, with replacement, where there are weights, and else in random order without.

*Guard.* Errors are not quite normal. By an Edgeworth expansion the third cumulant κ of Λ̂, which is also the
covariance of Λ̂ with v̂, puts the two sides of detailed balance apart by κ / 3 at most (theory.md): that is
estimated, and rows are read until it is small. How many rows are read depends on v̂ and |κ̂| alone, which do
not change when the arms are swapped, and never on Λ̂.
"""

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gumbelrace.core.jit import part
from gumbelrace.core.random import uniform
from gumbelrace.core.rows import pick_rows, rewind
from gumbelrace.errors import InvalidArgument
from gumbelrace.methods import rules
from gumbelrace.methods.base import Method, Promise
from gumbelrace.methods.race import DECLARED
from gumbelrace.methods.reading import HELD, THE_REST, open_look, reduced
from gumbelrace.methods.rules import implements
from gumbelrace.methods.shared import SharedWorkspace, read_more
from gumbelrace.methods.state import (
    ALIVE,
    AT_ONCE,
    CURRENT,
    EVALUATIONS,
    EXHAUSTED,
    LEADER,
    LOOKS,
    PROPOSED,
    ROUNDING,
    TAKEN,
    Question,
    admit,
    drop_ruled_out,
    reset,
)
from gumbelrace.population.base import (
    CODE,
    FINE,
    IMPOSSIBLE,
    Floats,
    Population,
    SharedPopulation,
    checked_count,
    read,
)

# Rows are read a little beyond what the spread so far asks for, and at least half as many again.
MARGIN, LEAST_GROWTH = 1.1, 1.5

# Entries of the working memory: rows so far, a typical difference of the arms' rewards, and sums of the
# first three powers of how far differences are from it.
COUNT, CENTRE, FIRST, SECOND, THIRD = range(5)


class Reading(NamedTuple):
    """Rule: read `first` rows, then until variance and error of the law are at most `most` and `error`."""

    first: int
    most: float
    error: float
    keeps: bool = False

    def working_memory(self, arms: int) -> Floats:
        """Make room for the sums of powers."""
        return np.empty(5)


class Spread(NamedTuple):
    """How far an estimated log ratio may be off."""

    variance: float
    skew: float  # what its third cumulant does to detailed balance


@implements(rules.run, Reading)
def _run(rule: Reading, workspace: SharedWorkspace) -> None:
    state, size = workspace.state, workspace.sizes[0]
    reset(state, workspace.source)
    admit(state, workspace.source)
    workspace.work[COUNT] = state.tally[EXHAUSTED] = 0
    wanted, spread = size if rule.most == 0.0 or state.tally[AT_ONCE] else rule.first, Spread(0.0, 0.0)
    while state.tally[ALIVE] == 2 and wanted > workspace.work[COUNT] and not state.tally[EXHAUSTED]:
        if not read_until(workspace, wanted):
            return
        spread = spread_of(workspace)
        wanted = rows_needed(rule, spread, workspace)
    state.law_error[0] = spread.skew
    name_answer(workspace, spread.variance)
    rewind(workspace.order)


@part
def read_until(workspace: SharedWorkspace, wanted: int) -> bool:
    """Read until so many rows were read, or all if that takes no longer; False after a fault."""
    state, source, size = workspace.state, workspace.source, workspace.sizes[0]
    if wanted * source.scan_speed >= size:
        state.tally[EXHAUSTED] = 1
        read_more(workspace, THE_REST)
        return source.fault[CODE] == FINE
    state.tally[LOOKS] += 1
    while workspace.work[COUNT] < wanted and state.tally[ALIVE] == 2:
        count = min(wanted - int(workspace.work[COUNT]), HELD)
        by_weights = len(workspace.order.weights.keep) > 0
        if not (read_by_weights(workspace, count) if by_weights else read_in_order(workspace, count)):
            return False
    return True


@part
def read_in_order(workspace: SharedWorkspace, count: int) -> bool:
    """Read the next rows of the random order."""
    state, sample = workspace.state, workspace.sample
    open_look(sample, False)
    if not read_more(workspace, count):
        return False
    state.tally[TAKEN] += count
    if state.tally[ALIVE] == 2:
        for run in range(sample.runs[1], sample.runs[0]):
            add_powers(workspace.work, sample.rewards, sample.first[run], sample.length[run])
    return True


@part
def read_by_weights(workspace: SharedWorkspace, count: int) -> bool:
    """Read rows drawn with replacement; what is seen more often counts less (Horvitz & Thompson 1952)."""
    state, source, weights = workspace.state, workspace.source, workspace.order.weights
    rows, block = workspace.rows, workspace.block
    count = min(count, source.chunk)
    pick_rows(workspace.bits, weights, len(weights.keep), rows, count)
    if read(source, rows, count, state.arms, 2, block, 0) == 0:
        return False
    state.tally[EVALUATIONS] += 2 * count
    if source.verify:
        drop_ruled_out(state, source)
    for i in range(np.uint64(count)):
        block[PROPOSED, i] = reduced(block[PROPOSED, i], block[CURRENT, i]) / weights.chance[rows[i]]
        block[CURRENT, i] = 0.0
    add_powers(workspace.work, block, 0, count)
    return True


@part
def add_powers(powers: Floats, rewards: Floats, first: int, count: int) -> None:
    """Add powers of the differences of the arms' rewards in some columns."""
    begin, end = np.uint64(first), np.uint64(first + count)
    one, two = np.uint64(CURRENT), np.uint64(PROPOSED)
    if powers[COUNT] == 0.0:
        total = 0.0
        for i in range(begin, end):
            total += reduced(rewards[two, i], rewards[one, i])
        powers[CENTRE] = total / count
        powers[FIRST] = powers[SECOND] = powers[THIRD] = 0.0
    centre, sum_1, sum_2, sum_3 = powers[CENTRE], 0.0, 0.0, 0.0
    for i in range(begin, end):
        z = reduced(reduced(rewards[two, i], rewards[one, i]), centre)
        sum_1 += z
        sum_2 += z * z
        sum_3 += z * z * z
    powers[COUNT] += count
    powers[FIRST] += sum_1
    powers[SECOND] += sum_2
    powers[THIRD] += sum_3


@part
def rows_in_all(workspace: SharedWorkspace) -> int:
    """Count the rows whose mean was estimated."""
    by_weights = len(workspace.order.weights.keep)
    return by_weights if by_weights > 0 else workspace.sizes[0]


@part
def spread_of(workspace: SharedWorkspace) -> Spread:
    """Tell how far the estimated log ratio may be off; not at all once all rows were read."""
    state, powers, size = workspace.state, workspace.work, rows_in_all(workspace)
    if state.tally[EXHAUSTED] or state.tally[ALIVE] < 2:
        return Spread(0.0, 0.0)
    taken, mean = powers[COUNT], powers[FIRST] / powers[COUNT]
    squares = powers[SECOND] - mean * powers[FIRST]
    cubes = powers[THIRD] - 3.0 * mean * powers[SECOND] + 2.0 * mean * mean * powers[FIRST]
    share = state.tally[TAKEN] / size  # read without replacement
    of_rows = max(squares, 0.0) / (taken - 1.0)
    third = abs(cubes) * taken / ((taken - 1.0) * (taken - 2.0))
    factor = size / taken
    cumulant = third * factor * factor * size * (1.0 - share)
    return Spread(of_rows * factor * size * (1.0 - share), cumulant * (2.0 - share) / 6.0)


@part
def rows_needed(rule: Reading, spread: Spread, workspace: SharedWorkspace) -> int:
    """Give the number of rows after which the estimate is expected to be good enough; 0 if it is."""
    taken, share = workspace.work[COUNT], workspace.state.tally[TAKEN] / workspace.sizes[0]
    if is_good_enough(rule, spread, workspace):
        return 0
    excess = max(spread.variance / rule.most, np.sqrt(spread.skew / rule.error))
    # The variance falls as 1/T - 1/N; with replacement, the share of rows that need not be read again is 0.
    wanted = MARGIN * taken * excess / (1.0 - share + share * excess)
    return int(min(max(wanted, LEAST_GROWTH * taken), 1.0 * workspace.sizes[0]))


@part
def is_good_enough(rule: Reading, spread: Spread, workspace: SharedWorkspace) -> bool:
    """Whether no more rows are needed. Equal differences in the rows read prove nothing of the others."""
    if workspace.state.tally[EXHAUSTED]:
        return True
    alike = ROUNDING * abs(workspace.work[CENTRE]) * rows_in_all(workspace)
    seen = spread.variance > alike * alike
    return seen and spread.variance <= rule.most and spread.skew <= rule.error


@part
def name_answer(workspace: SharedWorkspace, variance: float) -> None:
    """Accept or reject by the estimated log ratio, less the penalty for its variance."""
    state = workspace.state
    if state.tally[ALIVE] == 0:
        workspace.source.fault[CODE] = IMPOSSIBLE
        return
    state.tally[LEADER] = state.arms[0]
    if state.tally[ALIVE] == 2:
        accepts = np.log(uniform(workspace.noise)) < log_ratio(workspace) - penalty(variance, workspace)
        state.tally[LEADER] = PROPOSED if accepts else CURRENT


@part
def penalty(variance: float, workspace: SharedWorkspace) -> float:
    """Give the first terms of Ceperley & Dewing's series for a variance estimated from T rows."""
    taken, squared = workspace.work[COUNT], variance * variance
    cubic = squared * variance / (3.0 * (taken + 1.0) * (taken + 3.0))
    return variance / 2.0 + squared / (4.0 * (taken + 1.0)) + cubic


@part
def log_ratio(workspace: SharedWorkspace) -> float:
    """Estimate the difference of the arms' values."""
    state, powers = workspace.state, workspace.work
    if state.tally[EXHAUSTED]:
        gap = state.sums[PROPOSED] - state.sums[CURRENT]
    else:
        gap = (powers[CENTRE] + powers[FIRST] / powers[COUNT]) * rows_in_all(workspace)
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
    #: It draws rows with replacement by their weights, and needs no head.
    picks_rows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checked_count(self.first, "first", least=3)
        _check_positive(self.most_variance, "most_variance")
        if self.error != np.inf:
            _check_positive(self.error, "error")

    @property
    def promise(self) -> Promise:
        """How far the law of a decision may be off, if the sample tells how normal estimates are."""
        ground = f"means of {self.first} rows are normal but for the skewness that the rows read show"
        return Promise(min(float(self.error), 1.0), ground).under(DECLARED)

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
