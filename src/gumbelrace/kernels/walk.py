"""The compiled step of Metropolis-Hastings, and many of them in one call.

Slot CURRENT holds where the chain is. A step writes a proposal into the other slot, brings that one up to
date, has a method decide between the two, and copies the winner. What proposes, evaluates the prior or
decides may be Python: compiled code calls it by its address, like everything else.
"""

from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from gumbelrace.core.jit import call, kernel, part
from gumbelrace.core.random import AT, is_used_up
from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.kernels.base import Block, Info
from gumbelrace.kernels.normal_laws import (
    Laws,
    check_positive,
    draw,
    height,
    law_of_steps,
    put_at,
    standardise,
)
from gumbelrace.kernels.target import Position, checked_point, refuse_start
from gumbelrace.kernels.workspace import Contest, Indices, Target, Workspace, ask, copy_slot, decide, put
from gumbelrace.methods.base import Asked
from gumbelrace.methods.state import CURRENT, LEADER, PROPOSED, Question
from gumbelrace.population.base import Floats
from gumbelrace.population.callback import Hooks
from gumbelrace.population.likelihood import PRIOR

MOVE = Asked(Question.ACCEPT)
FAILED = -1
# Entries of Proposing.numbers: log q(x | x') - log q(x' | x), and whether a point lies beyond the limits.
RATIO, FAR = 0, 1


class Proposing(NamedTuple):
    """How a proposal is drawn: by normal laws, one for each model, or by Python."""

    laws: Laws
    correlation: float  # with the current point; 1: the law is that of the step
    freedom: float  # degrees of freedom of Student's t law, in place of the normal one; infinite: normal
    of_logarithms: bool  # whether a step is one of the logarithms
    small: tuple[float, float]  # share of proposals that are small steps, and the correlation of those
    z: Floats
    numbers: Floats
    hooks: tuple[int, int]  # addresses: to propose, and to find the ratio; 0: by normal laws


class History(NamedTuple):
    """What the steps gave: an entry for each."""

    positions: Floats
    counts: Indices  # evaluations, rewards, looks
    accepted: Floats
    law_errors: Floats
    places: Indices  # where the cursor stands of rows that were drawn ahead


def by_laws(
    laws: Laws,
    correlation: float,
    freedom: float = np.inf,
    of_logarithms: bool = False,
    small: tuple[float, float] = (0.0, 0.0),
) -> Proposing:
    room = np.empty(laws.means.shape[1]), np.zeros(2)
    return Proposing(laws, correlation, freedom, of_logarithms, small, *room, (0, 0))


class Walk:
    """A chain by Metropolis-Hastings: its slots, and all that compiled code needs to move it.

    A proposal that has `laws(dimension)`, which gives what `by_laws` takes, is compiled.
    """

    def __init__(self, target: Target, proposal: Any, example: Floats) -> None:
        self._proposal, self._hooks = proposal, Hooks()
        self._workspace = Workspace(MOVE, target, 2, [example], self._hooks)
        self._slots, self._numbers = self._workspace.slots, np.zeros(2)
        self._proposing = self._proposing_of(len(example))

    def steps(self, rng: np.random.Generator, position: Floats, count: int) -> Block[Position]:
        """Make steps from `position`, fewer if rows that were drawn ahead are used up."""
        history = new_history(count, len(position))
        self._slots.parameters[CURRENT], self._rng = position, rng
        if self._proposing.of_logarithms:
            check_positive(position)
        with self._workspace.contest(rng) as contest, self._hooks.locked(rng.bit_generator.lock):
            made = walk(contest, self._proposing, rng, history)
            at, stop, reserve = contest.ahead
            used_up = at + reserve > stop
        if made < count and not used_up:
            refuse_start(self._slots.numbers[CURRENT, PRIOR], self._slots.parameter(CURRENT))
            raise InvalidArgument(
                "log_prior, the control variate or a row that is read every time gave NaN or +inf, or "
                f"raised an exception, at {self._slots.parameters}"
            )
        done: Any = History(*(part[:made] for part in history))  # type: ignore[arg-type]
        self.places = done.places
        counts: Any = (*done.counts.T, done.accepted, done.law_errors)
        return Block(Position(done.positions), Info(*counts))

    def _proposing_of(self, dimension: int) -> Proposing:
        if hasattr(self._proposal, "laws"):
            return by_laws(*self._proposal.laws(dimension))
        hooks = self._hooks.of_slot(self._propose), self._hooks.of_slot(self._put_ratio)
        return by_laws(law_of_steps(np.ones(dimension)), 1.0)._replace(numbers=self._numbers, hooks=hooks)

    def _propose(self, slot: int) -> None:
        x = self._slots.parameter(CURRENT)
        proposed = checked_point(self._proposal.propose(self._rng, x))
        if proposed.shape != x.shape:
            raise ShapeMismatch(f"the proposal has shape {proposed.shape}, and the position {x.shape}")
        self._slots.parameters[slot] = proposed

    def _put_ratio(self, slot: int) -> None:
        pair = self._slots.parameter(CURRENT), self._slots.parameter(slot)
        ratio = self._proposal.log_ratio(*pair)
        if not isinstance(ratio, Real) or not float(ratio) < np.inf:
            raise InvalidArgument(f"log_ratio gave {ratio!r}; it must give a number, or -inf")
        self._numbers[RATIO] = ratio


def new_history(count: int, dimension: int) -> History:
    accepted, law_errors = np.zeros((2, count))
    positions, counts = np.empty((count, dimension)), np.zeros((count, 3), np.int64)
    return History(positions, counts, accepted, law_errors, np.zeros(count, np.int64))


@kernel
def walk(contest: Contest, proposing: Proposing, rng: np.random.Generator, history: History) -> int:
    """Make steps from slot CURRENT; return how many: fewer after a fault, or if rows are used up."""
    if not put(contest, CURRENT) or contest.numbers[CURRENT, PRIOR] == -np.inf:
        return 0
    for t in range(len(history.positions)):
        if is_used_up(contest.ahead):
            return t
        contest.law_error[0] = 0.0
        winner = step(contest, proposing, rng, history.counts[t])
        if winner == FAILED:
            return t
        history.accepted[t] = winner == PROPOSED
        history.law_errors[t] = contest.law_error[0]
        history.places[t] = contest.ahead[AT]
        for i in range(history.positions.shape[1]):
            history.positions[t, i] = contest.rooms[0, CURRENT, i]
    return len(history.positions)


@part
def step(contest: Contest, proposing: Proposing, rng: np.random.Generator, counts: Indices) -> int:
    """Go from slot CURRENT to a proposal, or stay; return the winner, or FAILED."""
    if not propose(contest, proposing, rng) or not put(contest, PROPOSED):
        return FAILED
    if contest.numbers[PROPOSED, PRIOR] == -np.inf:
        return CURRENT  # and nothing is read
    # What is impossible may have no proposal density either.
    if proposing.hooks[1] != 0 and call(proposing.hooks[1], (0, PROPOSED)) != 0:
        return FAILED
    ask(contest)
    contest.offset[PROPOSED] += proposing.numbers[RATIO]
    if not decide(contest, proposing.numbers[FAR] != 0.0, counts):
        return FAILED
    winner = int(contest.tally[LEADER])
    if winner == PROPOSED:
        copy_slot(contest, PROPOSED, contest, CURRENT)
    return winner


@part
def propose(contest: Contest, proposing: Proposing, rng: np.random.Generator) -> bool:
    """Put a proposal into slot PROPOSED; False after a fault."""
    contest.models[PROPOSED] = contest.models[CURRENT]
    if proposing.hooks[0] != 0:
        return bool(call(proposing.hooks[0], (0, PROPOSED)) == 0)
    if proposing.of_logarithms:
        return stretch(contest, proposing, rng)
    if proposing.correlation == 1.0:
        laws, model, z = proposing.laws, contest.models[CURRENT], proposing.z
        draw(laws, model, rng, z)
        put_at(laws, model, contest.rooms[0, CURRENT], z, contest.rooms[0, PROPOSED])
    else:
        draw_around(contest, proposing, rng)
    return True


@part
def stretch(contest: Contest, proposing: Proposing, rng: np.random.Generator) -> bool:
    """Multiply every parameter by a random number; False if one of them is not positive."""
    laws, model, z = proposing.laws, contest.models[CURRENT], proposing.z
    x, proposed, ratio = contest.rooms[0, CURRENT], contest.rooms[0, PROPOSED], 0.0
    draw(laws, model, rng, z)
    put_at(laws, model, laws.means[model], z, proposed)
    for i in range(laws.dimensions[model]):
        if not x[i] > 0.0:
            return False
        ratio += proposed[i]
        proposed[i] = x[i] * np.exp(proposed[i])
    proposing.numbers[RATIO] = ratio
    return True


@part
def draw_around(contest: Contest, proposing: Proposing, rng: np.random.Generator) -> None:
    """Draw a point by its law around the mean, and find the ratio of the densities."""
    laws, model, z, rho = proposing.laws, contest.models[CURRENT], proposing.z, proposing.correlation
    freedom, d = proposing.freedom, laws.dimensions[model]
    if proposing.small[0] > 0.0 and rng.random() < proposing.small[0]:
        rho, freedom = proposing.small[1], np.inf
    before, after = standardise(laws, model, contest.rooms[0, CURRENT], z), 0.0
    spread = np.sqrt(1.0 - rho * rho)
    if freedom < np.inf:
        spread *= np.sqrt(0.5 * freedom / rng.standard_gamma(0.5 * freedom))
    for i in range(d):
        z[i] = rho * z[i] + spread * rng.standard_normal()
        after += z[i] * z[i]
    put_at(laws, model, laws.means[model], z, contest.rooms[0, PROPOSED])
    proposing.numbers[RATIO] = height(before, freedom, d) - height(after, freedom, d)
    proposing.numbers[FAR] = max(before, after) > laws.limits[model]
