"""Thinning: decisions that are exactly right in law, where bounds of the rows' rewards are known.

A row of bound b loses at most b · width as an arm takes the place of another, width following from the
ranges of the two. Rows *ring* as a Poisson process, each at the rate of its bound. A ring reads its row and
rejects with probability loss / bound. No ring rejects with probability ∏ exp(-max(0, loss_n)), which is the
product of min(1, ratio_n) over the rows: a Metropolis-Hastings test in factors, and exact, though most rows
are never read (docs/thinning.md has the proofs).

Where as many rings are expected as there are rows, everything is read instead, and the answer is that of an
exact scan. That follows from the ranges alone, in a way that does not change when the arms are swapped:
otherwise the two tests together would not keep detailed balance.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from gumbelrace.core.jit import part
from gumbelrace.core.orders import pick_rows
from gumbelrace.core.random import gumbel, uniform
from gumbelrace.errors import InvalidArgument
from gumbelrace.methods import rules
from gumbelrace.methods.base import Asked, Method, Promise
from gumbelrace.methods.rules import enter, finish, implements
from gumbelrace.methods.shared import SharedWorkspace
from gumbelrace.methods.state import (
    ACCEPTED,
    ALIVE,
    AT_ONCE,
    CURRENT,
    EVALUATIONS,
    EXHAUSTED,
    LEADER,
    LOOKS,
    PROPOSED,
    QUESTION,
    Question,
    add_noise,
    admit,
    reset,
)
from gumbelrace.population.base import (
    BEYOND_BOUND,
    CODE,
    FINE,
    ROW,
    Population,
    SharedPopulation,
    Source,
    read,
)

# Rings that are read at a time: at first, and later. What is read after a rejection is read in vain.
FIRST_RINGS, MOST_RINGS = 4, 64
# How often each of some typical moves is tried out.
TRIES = 64
# A loss may exceed its bound by this share, by rounding.
BOUND_ROUNDING = 1e-9


class Rings(NamedTuple):
    """Rule: let rows ring at the rate of their bounds."""

    mean: float  # of the bounds, relative to the largest
    uneven: bool  # whether rows differ in their bounds, which are then of sizes
    keeps: bool = False

    def working_memory(self, arms: int) -> int:
        """Nothing is needed."""
        return 0


class Trial(NamedTuple):
    """What rings may reject: an arm, in place of another or of the most that it could be."""

    arm: int
    arms_read: int  # by a ring: the first of those in the race
    width: float  # what a row of the largest bound loses at most
    top: float  # what it gives at most; NaN: the arm takes the place of CURRENT


@implements(rules.run, Rings)
def _run(rule: Rings, workspace: SharedWorkspace) -> None:
    state = workspace.state
    reset(state, workspace.source)
    admit(state, workspace.source)
    state.tally[EXHAUSTED] = 0
    if state.tally[ALIVE] < 2:
        finish(workspace)
    elif state.tally[AT_ONCE] or expected(rule, workspace) > workspace.sizes[0]:
        answer_exactly(workspace)
    elif state.tally[QUESTION] == ACCEPTED:
        decide(rule, workspace)
    else:
        draw(rule, workspace)


@part
def answer_exactly(workspace: SharedWorkspace) -> None:
    """Read everything, and answer as an exact scan does."""
    state = workspace.state
    add_noise(state.tally[QUESTION], state.temperature[0], state.offset, workspace.noise)
    enter(workspace)
    finish(workspace)


@part
def expected(rule: Rings, workspace: SharedWorkspace) -> float:
    """Bound how many rows an answer reads on average of all arms, from what is known beforehand."""
    state, source, widest = workspace.state, workspace.source, 0.0
    if state.tally[QUESTION] == ACCEPTED:
        widest = max(width(rule, source, CURRENT, PROPOSED), width(rule, source, PROPOSED, CURRENT))
        return total(rule, workspace) * widest
    for a in range(state.tally[ALIVE]):
        widest = max(widest, width(rule, source, state.arms[a], state.arms[a]))
    if state.temperature[0] == 0.0:
        return np.inf
    # If a share f of R rings rejects, trials read (exp(R f) - 1) / f rows of one arm: most for f = 1.
    return np.expm1(total(rule, workspace) * widest / state.temperature[0]) / state.tally[ALIVE]


@part
def total(rule: Rings, workspace: SharedWorkspace) -> float:
    """Add up the bounds of all rows."""
    return rule.mean * workspace.sizes[0]


@part
def top(rule: Rings, source: Source, arm: int) -> float:
    """Give the most that a row of the largest bound can give an arm."""
    return max(-source.low[arm], source.high[arm]) if rule.uneven else source.high[arm]


@part
def width(rule: Rings, source: Source, arm: int, other: int) -> float:
    """Give the most that a row of the largest bound can lose from one arm to another."""
    least = -top(rule, source, other) if rule.uneven else source.low[other]
    return max(top(rule, source, arm) - least, 0.0)


@part
def decide(rule: Rings, workspace: SharedWorkspace) -> None:
    """Accept a move with the product of min(1, ratio) over the rows and what is known."""
    state = workspace.state
    known = state.offset[PROPOSED] - state.offset[CURRENT]
    trial = Trial(PROPOSED, 2, width(rule, workspace.source, CURRENT, PROPOSED), np.nan)
    accepts = np.log(uniform(workspace.noise)) < known and outlasts(rule, workspace, trial, 1.0)
    state.tally[LEADER] = PROPOSED if accepts else CURRENT


@part
def draw(rule: Rings, workspace: SharedWorkspace) -> None:
    """Draw an arm as if every row gave the most it can, until one outlasts what rows give less."""
    state, source = workspace.state, workspace.source
    while source.fault[CODE] == FINE:
        propose(rule, workspace)
        arm = state.arms[0]
        state.tally[LEADER] = arm
        trial = Trial(arm, 1, width(rule, source, arm, arm), top(rule, source, arm))
        if outlasts(rule, workspace, trial, state.temperature[0]):
            return


@part
def propose(rule: Rings, workspace: SharedWorkspace) -> None:
    """Draw one of the arms by the most it can be, and put it first."""
    state, temperature, best, place = workspace.state, workspace.state.temperature[0], -np.inf, 0
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        most = state.offset[arm] + total(rule, workspace) * top(rule, workspace.source, arm)
        value = most / temperature + gumbel(workspace.noise)
        if value > best:
            best, place = value, a
    state.arms[0], state.arms[place] = state.arms[place], state.arms[0]


@part
def outlasts(rule: Rings, workspace: SharedWorkspace, trial: Trial, temperature: float) -> bool:
    """Whether no ring rejects; False after a fault as well."""
    left, batch = total(rule, workspace) * trial.width / temperature, FIRST_RINGS
    while True:
        count = 0
        while count < min(batch, workspace.source.chunk):
            left += np.log(uniform(workspace.noise))  # until the next ring
            if left <= 0.0:
                break
            count += 1
        if count > 0 and not passes(rule, workspace, trial, count):
            return False
        if left <= 0.0:
            return True
        batch = min(2 * batch, MOST_RINGS)


@part
def passes(rule: Rings, workspace: SharedWorkspace, trial: Trial, count: int) -> bool:
    """Whether none of `count` rings rejects; False after a fault as well."""
    state, source, rows, rewards = workspace.state, workspace.source, workspace.rows, workspace.block
    chance = workspace.order.bounds.chance
    pick_rows(workspace.bits, workspace.order.bounds, workspace.sizes[0], rows, count)
    state.tally[EVALUATIONS] += read(source, rows, count, state.arms, trial.arms_read, rewards, 0)
    state.tally[LOOKS] += 1
    if source.fault[CODE] != FINE:
        return False
    for i in range(count):
        bound = chance[rows[i]] * rule.mean if rule.uneven else 1.0
        most = rewards[CURRENT, i] if np.isnan(trial.top) else bound * trial.top
        loss, limit = most - rewards[trial.arm, i], bound * trial.width
        if is_beyond(rule, trial, loss, limit):
            source.fault[CODE], source.fault[ROW] = BEYOND_BOUND, rows[i]
            return False
        if uniform(workspace.noise) * limit < loss:
            return False
    return True


@part
def is_beyond(rule: Rings, trial: Trial, loss: float, limit: float) -> bool:
    """Whether a loss, or what would be one if the arms were swapped, is not what the row's bound allows."""
    least = -limit if np.isnan(trial.top) else 0.0
    # Where all rows have the same bound, the reader checks what an arm gains.
    return loss > limit * (1.0 + BOUND_ROUNDING) or (rule.uneven and loss < least - BOUND_ROUNDING * limit)


@dataclass(frozen=True)
class Thinning(Method):
    """Decide exactly from the few rows that ring, where a bound of the rewards is known.

    A move is accepted with the product of min(1, ratio) over the rows and what is known without reading:
    less often than by Metropolis and Hastings, but with the same stationary law. Draws of a state are
    exact and independent. Where ranges are so wide that rings would outnumber the rows, everything is read.

    Best with an expansion that knows its remainder for each row (``remainder=`` of `parameter_taylor`).

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> from gumbelrace.models import logistic
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(50_000, 2))
    >>> y = (rng.uniform(size=len(x)) < 1 / (1 + np.exp(-x.sum(axis=1)))).astype(float)
    >>> mode, hessian = logistic.mode(x, y)
    >>> law = gr.kernels.NormalPseudoprior(mode, np.linalg.inv(-hessian))
    >>> metric = np.linalg.inv(law.root)
    >>> M = logistic.remainder(x, metric)
    >>> taylor = gr.parameter_taylor(logistic.terms, (x, y), len(x), mode, remainder=M, metric=metric)
    >>> likelihood = gr.likelihood(logistic.log_factor, (x, y), size=len(x)).minus(taylor)
    >>> proposal = gr.kernels.Autoregressive(law, correlation=0.0)
    >>> kernel = gr.Metropolis(likelihood, proposal, method=gr.Thinning())
    >>> trace = gr.run(kernel, steps=1000, rng=1, progress=False)
    >>> trace.fraction < 0.01
    True
    """

    needs_range = True
    without_range: ClassVar[str] = (
        "give reward_range=(low, high), or with an expansion remainder= of parameter_taylor, or use "
        "Penalty() for moves or Absorb() for draws, which do not need it"
    )
    answers: ClassVar[frozenset[Question]] = frozenset({Question.ACCEPT, Question.DRAW})
    picks_rows: ClassVar[bool] = True

    @property
    def promise(self) -> Promise:
        """The law is exact, proved for all rewards within their bounds."""
        return Promise(0.0, about="law")

    def promised(self, population: Population) -> Promise:
        """Give the same: rows are picked anew for every ring, in whatever order they lie."""
        return self.promise

    def check_range(self, population: Population) -> None:
        """Refuse arms that share no rows, of which no range would be enough, and arms without a range."""
        if not isinstance(population, SharedPopulation):
            raise InvalidArgument(
                "Thinning reads rows that all arms share, and independent arms have none; use Absorb(), "
                "Betting(), Race() or Exact()"
            )
        super().check_range(population)

    def rule(self, population: Population) -> Rings:
        """Give the rule by which rows ring."""
        assert isinstance(population, SharedPopulation)
        return Rings(population.rows.mean_bound, population.rows.bounds is not None)

    answer_each = Method._answer_each

    def rows_a_move(self, moves: Sequence[SharedPopulation], most: float) -> float:
        """Try moves out: give how many rows are read for one that rings let pass; infinite beyond `most`.

        Only rings reject here: what is known without reading is as it would be for an ideal proposal.
        """
        if not moves or not np.mean([rings_of(move) for move in moves]) < most:
            return np.inf
        read, passed = 0, 0
        for move in moves:
            known = np.zeros(2) if move.known is None else move.known.sums
            offsets, rng = np.tile(-known, (TRIES, 1)), np.random.default_rng(0)
            found = self.answer_each(Asked(Question.ACCEPT), move, offsets, rng)
            read += int(found.evaluations.sum())
            passed += int((found.arms == PROPOSED).sum())
        return 0.5 * read / passed if passed else np.inf


def rings_of(move: SharedPopulation) -> float:
    """Give the rings that are expected for a move between the two arms; infinite without a range."""
    if move.reward_range is None:
        return np.inf
    low, high = move.reward_range
    width = float(high.sum()) if move.rows.bounds is not None else float((high - low[::-1]).max())
    return move.rows.mean_bound * move.rows.tail_size * width
