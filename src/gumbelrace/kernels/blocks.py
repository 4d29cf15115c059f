"""Metropolis-Hastings block by block, where parameters are many and most rows depend on few of them.

A normal law N(m, (R Rᵀ)⁻¹) is close to the target; R is sparse. With θ = m + R⁻ᵀ z, a sweep draws one block
of z after the other anew and keeps the rest, so that a block changes few parameters, and few rows depend on
these. Each block has its own likelihood: that of the rows which it changes.

Sums of the expansion are brought up to date, not found anew: with slope G + Hδ at δ = θ - m, a move by Δ
changes them by (G + Hδ)·Δ + ½ Δ'HΔ.
"""

import functools
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY, InitVar, dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumbelrace.core.jit import OPTIONS, call, kernel, part
from gumbelrace.core.packed import ENTRY, Entries, read_stored
from gumbelrace.core.pool import Pool
from gumbelrace.core.random import Rng, as_generator, check_generator
from gumbelrace.errors import InvalidArgument
from gumbelrace.kernels.base import Block as Steps
from gumbelrace.kernels.base import Checked, Info, Kernel
from gumbelrace.kernels.checks import check_log_prior, check_state, real_fields, set_method
from gumbelrace.kernels.metropolis import Metropolis
from gumbelrace.kernels.target import LogPrior, Position, checked_point, refuse_start
from gumbelrace.kernels.walk import MOVE, History, new_history
from gumbelrace.kernels.workspace import Contest, Target, Workspace, ask, decide
from gumbelrace.methods.base import Method
from gumbelrace.methods.state import CURRENT, LEADER, PROPOSED, Question
from gumbelrace.population.base import Floats
from gumbelrace.population.callback import Hooks
from gumbelrace.population.likelihood import COST, KNOWN, LOST, MOST, PRIOR, READ, Likelihood

Indices = NDArray[np.int64]

# What a block's step gives: it stays, it moves, or something failed.
STAYS, MOVES, FAILS = 0, 1, -1


class Sparse(NamedTuple):
    """A matrix, row by row: those of row i are columns[starts[i] : starts[i + 1]], and their values."""

    starts: Indices
    columns: Indices
    values: Floats


def sparse(matrix: Floats) -> Sparse:
    """Keep the entries of a matrix that are not zero.

    Examples
    --------
    >>> sparse(np.array([[1.0, 0.0], [2.0, 3.0]])).columns
    array([0, 0, 1])
    """
    kept = matrix != 0.0
    rows, columns = np.nonzero(kept)
    starts = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    return Sparse(starts.astype(np.int64), columns.astype(np.int64), matrix[rows, columns])


class Law(NamedTuple):
    """The normal law close to the target, and sums of the expansion of the likelihood at its mean."""

    centre: Floats
    whitening: Sparse  # Rᵀ: z = Rᵀ (θ - m)
    gradient: Floats
    hessian: Sparse


@dataclass(frozen=True, eq=False)
class Block:
    """Coordinates of z that are drawn together, and what follows from them.

    Parameters
    ----------
    likelihood : Likelihood
        Log factors of the rows that depend on the block, less their expansion.
    coordinates : ndarray of int
        Which coordinates of z it has.
    parameters : ndarray of int
        Which parameters they change.
    matrix : ndarray of shape (parameters, coordinates)
        By how much: the part of R⁻ᵀ.
    correlation : float
        ρ, of the new coordinates with the old ones: ρz + √(1 - ρ²) ξ; 0: they are drawn anew.
    """

    likelihood: Likelihood
    coordinates: Indices
    parameters: Indices
    matrix: Floats
    correlation: float = 0.0


class Redraw:
    """The move of one block as a proposal of `Metropolis`, for audits."""

    def __init__(self, block: Block, law: Law) -> None:
        self._block, self._law = block, law

    def propose(self, rng: np.random.Generator, x: Floats) -> Floats:
        """Draw the block's coordinates."""
        block, z = self._block, self._coordinates(x)
        fresh, rho = rng.standard_normal(len(z)), block.correlation
        moved = np.array(x)
        moved[block.parameters] += block.matrix @ (rho * z + np.sqrt(1.0 - rho * rho) * fresh - z)
        return moved

    def log_ratio(self, x: Floats, proposed: Floats) -> float:
        """Give log q(x | x') - log q(x' | x)."""
        before, after = self._coordinates(x), self._coordinates(proposed)
        return float(0.5 * (after @ after - before @ before))

    def _coordinates(self, x: Floats) -> Floats:
        starts, columns, values = self._law.whitening
        step = x - self._law.centre
        pieces = [slice(starts[j], starts[j + 1]) for j in self._block.coordinates]
        return np.array([values[piece] @ step[columns[piece]] for piece in pieces])


@dataclass(frozen=True, eq=False)
class Blocks(Kernel[Position]):
    """Metropolis-Hastings block by block; a step is a sweep over all blocks.

    Parameters
    ----------
    blocks : sequence of Block
        In the order in which they are drawn.
    law : Law
        The normal law close to the target.
    log_prior : callable, optional
        ``log_prior(x) -> float``.
    delta, method : optional
        As in `Metropolis`.
    """

    blocks: Sequence[Block]
    law: Law
    _: KW_ONLY
    log_prior: LogPrior | None = None
    delta: InitVar[float | None] = None
    method: Method = None  # type: ignore[assignment]

    def __post_init__(self, delta: float | None) -> None:
        set_method(self, delta, Question.ACCEPT)
        check_log_prior(self.log_prior)
        for block in self.blocks:
            if not Target(block.likelihood, (self.log_prior,), self.method).has_slots:
                raise InvalidArgument(
                    "a block needs a likelihood by numba with an expansion, and a method that is compiled"
                )

    def start(self, position: ArrayLike | None = None, *, rng: Rng = None) -> Position:
        """Give the state of a chain that starts from a position, by default the mean of the law."""
        as_generator(rng)
        return Position(np.array(checked_point(self.law.centre if position is None else position)))

    def as_state(self, state: Position) -> Position:
        """Give a position in double precision."""
        check_state(state, Position)
        found: Position = real_fields(state, "position")
        return found

    def step(self, rng: np.random.Generator, state: Position) -> tuple[Position, Info]:
        """Draw every block once."""
        swept = self.steps(rng, state, 1)
        info: Any = swept.info
        return Position(swept.states.position[0]), Info(*(part[0].item() for part in info))

    def steps(self, rng: np.random.Generator, state: Position, count: int) -> Steps[Position]:
        """Make `count` sweeps in one compiled call."""
        check_state(state, Position)
        with self._sweepers.lend() as sweeper:
            return sweeper.steps(check_generator(rng), checked_point(state.position), count)

    def audit(self, rng: np.random.Generator, state: Position) -> Checked[Position]:
        """Check the decision of one block, chosen at random."""
        block = self.blocks[int(check_generator(rng).integers(len(self.blocks)))]
        move = Metropolis(
            block.likelihood, Redraw(block, self.law), log_prior=self.log_prior, method=self.method
        )
        return move.audit(rng, state)

    @functools.cached_property
    def _sweepers(self) -> Pool["Sweeper"]:
        return Pool(functools.partial(Sweeper, self))


class Place(NamedTuple):
    """Where a chain is, for all blocks (compiled code changes the arrays)."""

    theta: Floats
    step: Floats  # θ - m
    slope: Floats  # of the expansion there
    z: Floats
    fresh: Floats  # standard normal numbers for the next sweep
    scratch: Floats  # zeros between moves
    prior: Floats  # its logarithm; NaN: not known yet
    counts: Indices  # of the sweep: evaluations, rewards, looks
    law_error: Floats  # of the sweep


class Move(NamedTuple):
    """A block's step: who decides, what changes, and where the chain is."""

    contest: Contest
    coordinates: Indices
    parameters: Indices
    matrix: Floats
    correlation: Floats
    change: Floats  # of the coordinates
    moved: Floats  # of the parameters
    hessian: Sparse
    place: Place


class Sweeper:
    """All that compiled code needs to move a chain: workspaces of the blocks, and where it is."""

    def __init__(self, sampler: Blocks) -> None:
        self._sampler, self._hooks = sampler, Hooks()
        example = sampler.law.centre
        self._workspaces = [
            Workspace(
                MOVE,
                Target(block.likelihood, (sampler.log_prior,), sampler.method, np.stack),
                2,
                [example],
                self._hooks,
            )
            for block in sampler.blocks
        ]
        theta, step, slope, z, fresh, scratch = np.zeros((6, len(example)))
        self._place = Place(
            theta, step, slope, z, fresh, scratch, np.zeros(1), np.zeros(3, np.int64), np.zeros(1)
        )

    def steps(self, rng: np.random.Generator, position: Floats, count: int) -> Steps[Position]:
        """Make sweeps from `position`."""
        law, history = self._sampler.law, new_history(count, len(position))
        self._place.theta[:] = position
        with ExitStack() as stack:
            moves = [
                self._move(block, stack.enter_context(workspace.contest(rng)))
                for block, workspace in zip(self._sampler.blocks, self._workspaces, strict=True)
            ]
            stored = [MOVES_OF_BLOCKS.stored(move, Move) for move in moves]
            addresses = np.array([one.address for one in stored])
            stack.enter_context(self._hooks.locked(rng.bit_generator.lock))
            made = sweep_often(stored[0].entry, addresses, law, self._place, rng, history)
        if made < count:
            refuse_start(float(self._place.prior[0]), self._place.theta)
            raise InvalidArgument(
                f"log_prior or a row gave NaN or +inf, or raised an exception, near {self._place.theta}"
            )
        counts: Any = (*history.counts.T, history.accepted, history.law_errors)
        return Steps(Position(history.positions), Info(*counts))

    def _move(self, block: Block, contest: Contest) -> Move:
        matrix = np.ascontiguousarray(block.matrix, np.float64)
        changed, moved = np.empty(matrix.shape[1]), np.empty(matrix.shape[0])
        places = block.coordinates.astype(np.int64), block.parameters.astype(np.int64)
        rho = np.array([block.correlation])
        return Move(contest, *places, matrix, rho, changed, moved, self._sampler.law.hessian, self._place)


def _entry(name: str, cache: bool) -> Any:
    """Compile the step of a block."""

    @numba.cfunc(ENTRY, cache=cache, **OPTIONS)
    def step(words):  # type: ignore[no-untyped-def]
        return step_of(read_stored(words, name))

    return step


MOVES_OF_BLOCKS = Entries(_entry)


@kernel
def sweep_often(
    entry: int, moves: Indices, law: Law, place: Place, rng: np.random.Generator, history: History
) -> int:
    """Make sweeps; return how many, fewer than asked for after a fault."""
    for t in range(len(history.positions)):
        begin(law, place)
        for i in range(len(place.fresh)):
            place.fresh[i] = rng.standard_normal()
        moved = 0
        for b in range(len(moves)):
            found = call(entry, (moves[b],))
            if found == FAILS:
                return t
            moved += found
        history.positions[t], history.counts[t] = place.theta, place.counts
        history.accepted[t], history.law_errors[t] = moved / len(moves), place.law_error[0]
    return len(history.positions)


@part
def begin(law: Law, place: Place) -> None:
    """Find all that follows from θ, so that nothing but θ is carried from one sweep to the next."""
    place.prior[0], place.law_error[0] = np.nan, 0.0
    for k in range(len(place.counts)):
        place.counts[k] = 0
    for i in range(len(place.theta)):
        place.step[i] = place.theta[i] - law.centre[i]
    for i in range(len(place.theta)):
        place.z[i] = of_row(law.whitening, i, place.step)
        place.slope[i] = law.gradient[i] + of_row(law.hessian, i, place.step)


@part
def of_row(matrix: Sparse, i: int, vector: Floats) -> float:
    total = 0.0
    for k in range(matrix.starts[i], matrix.starts[i + 1]):
        total += matrix.values[k] * vector[matrix.columns[k]]
    return total


@part
def step_of(move: Move) -> int:
    """Draw a block's coordinates, and move there or stay."""
    contest, place = move.contest, move.place
    ratio = draw_coordinates(move)
    put_slots(move)
    numbers = contest.numbers
    if np.isnan(place.prior[0]):
        if not put_prior(contest, CURRENT):
            return FAILS
        place.prior[0] = numbers[CURRENT, PRIOR]
    numbers[CURRENT, PRIOR] = place.prior[0]
    if place.prior[0] == -np.inf or not put_prior(contest, PROPOSED):
        return FAILS
    if numbers[PROPOSED, PRIOR] == -np.inf:
        return STAYS
    numbers[PROPOSED, KNOWN] = growth(move)
    ask(contest)
    contest.offset[PROPOSED] += ratio
    contest.law_error[0] = 0.0
    if not decide(contest, False, place.counts):
        return FAILS
    place.law_error[0] = max(place.law_error[0], contest.law_error[0])
    if contest.tally[LEADER] != PROPOSED:
        return STAYS
    settle(move)
    return MOVES


@part
def draw_coordinates(move: Move) -> float:
    """Draw by how much coordinates change; return log q(x | x') - log q(x' | x)."""
    place, rho, ratio = move.place, move.correlation[0], 0.0
    spread = np.sqrt(1.0 - rho * rho)
    for k in range(len(move.coordinates)):
        before = place.z[move.coordinates[k]]
        after = rho * before + spread * place.fresh[move.coordinates[k]]
        ratio += 0.5 * (after * after - before * before)
        move.change[k] = after - before
    return ratio


@part
def put_slots(move: Move) -> None:
    """Put where the chain is into both slots, and the block's change into that of the proposal."""
    rooms, place = move.contest.rooms, move.place
    for i in range(len(place.theta)):
        rooms[0, CURRENT, i] = rooms[0, PROPOSED, i] = place.theta[i]
        rooms[1, CURRENT, i] = rooms[1, PROPOSED, i] = place.step[i]
    for a in range(len(move.parameters)):
        total = 0.0
        for k in range(len(move.change)):
            total += move.matrix[a, k] * move.change[k]
        move.moved[a] = total
        rooms[0, PROPOSED, move.parameters[a]] += total
        rooms[1, PROPOSED, move.parameters[a]] += total
    for slot in range(2):
        for k in (KNOWN, READ, LOST, COST):
            move.contest.numbers[slot, k] = 0.0
        move.contest.numbers[slot, MOST] = -1.0


@part
def put_prior(contest: Contest, slot: int) -> bool:
    """Evaluate the prior of a slot; False after a fault."""
    contest.numbers[slot, PRIOR] = np.nan  # stays if the prior raises an exception
    found = call(contest.prior[0], (contest.prior[1], slot))
    return bool(found == 0 and contest.numbers[slot, PRIOR] < np.inf)


@part
def growth(move: Move) -> float:
    """By how much the sum of the expansion grows."""
    place, total = move.place, 0.0
    for a in range(len(move.parameters)):
        place.scratch[move.parameters[a]] = move.moved[a]
    for a in range(len(move.parameters)):
        i = move.parameters[a]
        total += move.moved[a] * (place.slope[i] + 0.5 * of_row(move.hessian, i, place.scratch))
    for a in range(len(move.parameters)):
        place.scratch[move.parameters[a]] = 0.0
    return total


@part
def settle(move: Move) -> None:
    """Go to the proposal, and bring the slope up to date."""
    place, hessian = move.place, move.hessian
    place.prior[0] = move.contest.numbers[PROPOSED, PRIOR]
    for k in range(len(move.coordinates)):
        place.z[move.coordinates[k]] += move.change[k]
    for a in range(len(move.parameters)):
        i, change = move.parameters[a], move.moved[a]
        place.theta[i] += change
        place.step[i] += change
        for k in range(hessian.starts[i], hessian.starts[i + 1]):
            place.slope[hessian.columns[k]] += hessian.values[k] * change
