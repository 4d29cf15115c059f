"""Penalty: Metropolis-Hastings from an estimated log ratio (Ceperley & Dewing 1999).

The log ratio Λ = v_1 - v_0 of two arms is estimated from T rows; v is the variance of the estimate. If the
error is normal and v is known, accepting with probability min(1, exp(Λ̂ - v / 2)) keeps detailed balance:
the error of a subsample becomes part of the randomness, and no winner has to be found. For a variance that
is itself estimated from T rows, v² / (4 (T + 1)) more is subtracted, the first term of a series. How many
rows are read may depend on the variance alone, which does not change when the arms are swapped, and never
on Λ̂.
"""

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar, NamedTuple

import numpy as np

from gumbelrace.core.jit import part
from gumbelrace.core.random import uniform
from gumbelrace.core.rows import rewind
from gumbelrace.errors import InvalidArgument
from gumbelrace.methods import rules
from gumbelrace.methods.base import Method, Promise
from gumbelrace.methods.race import DECLARED, Moments, update
from gumbelrace.methods.reading import HELD, open_look
from gumbelrace.methods.rules import implements
from gumbelrace.methods.shared import SharedWorkspace, read_more
from gumbelrace.methods.state import (
    ALIVE,
    AT_ONCE,
    CURRENT,
    EXHAUSTED,
    LEADER,
    LOOKS,
    PROPOSED,
    TAKEN,
    Question,
    admit,
    reset,
)
from gumbelrace.population.base import Population, SharedPopulation, checked_count

# Rows are read a little beyond what the variance so far asks for.
MARGIN = 1.1


class Reading(NamedTuple):
    """Rule: read `first` rows, and then until the variance of the estimate is at most `most`."""

    first: int
    most: float
    keeps: bool = False

    def working_memory(self, arms: int) -> Moments:
        """Make room for the deviations of the differences."""
        return Moments(np.empty(arms), np.empty(1, np.int64))


@implements(rules.run, Reading)
def _run(rule: Reading, workspace: SharedWorkspace) -> None:
    state, source, size = workspace.state, workspace.source, workspace.sizes[0]
    reset(state, source)
    admit(state, source)
    most = 0.0 if state.tally[AT_ONCE] else rule.most
    variance, wanted = np.inf, size if most == 0.0 else min(rule.first, size)
    while state.tally[ALIVE] == 2 and variance > most:
        if not read_until(workspace, wanted):
            return
        variance = variance_of(workspace)
        wanted = min(size, max(2 * wanted, int(MARGIN * wanted * variance / most)))
    state.tally[EXHAUSTED] = state.tally[TAKEN] == size
    state.tally[LEADER] = state.arms[0]
    if state.tally[ALIVE] == 2:
        taken = state.tally[TAKEN]
        penalty = variance / 2.0 + variance * variance / (4.0 * (taken + 1.0))
        accepts = np.log(uniform(workspace.noise)) < log_ratio(workspace) - penalty
        state.tally[LEADER] = PROPOSED if accepts else CURRENT
    rewind(workspace.order)


@part
def read_until(workspace: SharedWorkspace, wanted: int) -> bool:
    """Read rows until so many were read; False after a fault."""
    state, sample = workspace.state, workspace.sample
    while state.tally[TAKEN] < wanted and state.tally[ALIVE] == 2:
        count = min(wanted - state.tally[TAKEN], HELD)
        open_look(sample, False)
        if not read_more(workspace, count):
            return False
        state.tally[TAKEN] += count
        state.tally[LOOKS] += 1
        if state.tally[ALIVE] == 2:
            workspace.work.leader[0] = CURRENT
            update(workspace.work, state, sample, CURRENT, PROPOSED, state.tally[TAKEN])
    return True


@part
def variance_of(workspace: SharedWorkspace) -> float:
    """Give the variance of the estimated log ratio; 0 once all rows were read."""
    taken, size = workspace.state.tally[TAKEN], workspace.sizes[0]
    if taken == size:
        return 0.0
    of_rows = workspace.work.squares[PROPOSED] / (taken - 1)
    return of_rows * size * (size - taken) / taken


@part
def log_ratio(workspace: SharedWorkspace) -> float:
    """Estimate the difference of the arms' values."""
    state = workspace.state
    gap = state.sums[PROPOSED] - state.sums[CURRENT]
    return gap * (workspace.sizes[0] / state.tally[TAKEN]) + state.offset[PROPOSED] - state.offset[CURRENT]


@dataclass(frozen=True)
class Penalty(Method):
    """Accept or reject a move from few rows, without finding out which point is the better one.

    Parameters
    ----------
    most_variance : float
        Rows are read until the estimated log ratio has at most this variance.
    first : int
        Rows that are read at least.

    Examples
    --------
    >>> import numba, numpy as np, gumbelrace as gr
    >>> from gumbelrace.methods.penalty import Penalty
    >>> @numba.njit
    ... def log_factor(n, theta, y):
    ...     return -0.5 * (y[n] - theta[0]) ** 2
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(1.0, 1.0, 10_000)
    >>> likelihood = gr.likelihood(log_factor, (y,), len(y))
    >>> kernel = gr.Metropolis(likelihood, gr.kernels.RandomWalk(0.02), method=Penalty())
    >>> state, info = kernel.step(rng, gr.kernels.Position(np.array([1.0])))
    >>> info.evaluations < info.rewards
    True
    """

    most_variance: float = 1.0
    first: int = 32
    answers: ClassVar[frozenset[Question]] = frozenset({Question.ACCEPT})

    def __post_init__(self) -> None:
        checked_count(self.first, "first", least=2)
        if not (isinstance(self.most_variance, Real) and 0.0 < float(self.most_variance) < np.inf):
            raise InvalidArgument(f"most_variance is {self.most_variance!r}; it must be a positive number")

    @property
    def promise(self) -> Promise:
        """The law of a decision is right, if estimates of log ratios are normal."""
        return Promise(0.0, "estimated log ratios are normally distributed").under(DECLARED)

    def rule(self, population: Population) -> Reading:
        """Give the rule by which rows are read."""
        if not isinstance(population, SharedPopulation):
            raise InvalidArgument("Penalty reads rows that both arms share; independent arms have none")
        # Where any row may be -inf, an estimate tells nothing: everything is read.
        most = 0.0 if population.may_be_impossible else float(self.most_variance)
        return Reading(self.first, most)

    answer_each = Method._answer_each
