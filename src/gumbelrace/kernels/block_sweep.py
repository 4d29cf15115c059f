"""The compiled sweeps of `Blocks`: one block after the other is drawn, and accepted or not.

Sums of the expansion are brought up to date, not found anew: with slope G + Hδ at δ = θ - m, a move by Δ
changes them by (G + Hδ)·Δ + ½ Δ'HΔ.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import OPTIONS, call, kernel, part
from gumbelrace.core.packed import ENTRY, Entries, read_stored
from gumbelrace.errors import InvalidArgument
from gumbelrace.kernels.base import Block as Steps
from gumbelrace.kernels.base import Info
from gumbelrace.kernels.bends import bent_one, log_slope_one, no_bends, unbent_one
from gumbelrace.kernels.target import LogPrior, Position, refuse_start
from gumbelrace.kernels.walk import MOVE, History, new_history
from gumbelrace.kernels.workspace import Contest, Target, Workspace, ask, decide
from gumbelrace.methods.base import Method
from gumbelrace.methods.state import CURRENT, LEADER, PROPOSED
from gumbelrace.population.base import Floats
from gumbelrace.population.callback import Hooks
from gumbelrace.population.likelihood import COST, KNOWN, LOST, MOST, PRIOR, READ, Likelihood

Indices = NDArray[np.int64]

# What a block's step gives: it stays, it moves, or something failed.
STAYS, MOVES, FAILS = 0, 1, -1
# In that share of the sweeps all steps are small, correlated by ρ: where the tails of the normal law are
# too light, a chain that only draws anew would stay for long.
SMALL_STEPS, SMALL = 0.2, 0.7


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
class ParameterBlock:
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
        ρ, of the new coordinates with the old ones: ρu + √(1 - ρ²) ξ; 0: they are drawn anew.
    bends : ndarray of shape (coordinates, 2), optional
        How heavy the tails of each coordinate's law are, on its two sides (`kernels.bends`): u is what z is
        bent from. Default: normal ones.
    """

    likelihood: Likelihood
    coordinates: Indices
    parameters: Indices
    matrix: Floats
    correlation: float = 0.0
    bends: Floats = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.bends is None:
            object.__setattr__(self, "bends", no_bends(len(self.coordinates)))


class Place(NamedTuple):
    """Where a chain is, for all blocks (compiled code changes the arrays)."""

    theta: Floats
    step: Floats  # θ - m
    slope: Floats  # of the expansion there
    z: Floats
    fresh: Floats  # standard normal numbers for the next sweep
    scratch: Floats  # zeros between moves
    least: Floats  # the correlation of old and new coordinates is no less than that in this sweep
    prior: Floats  # its logarithm; NaN: not known yet
    counts: Indices  # of the sweep: evaluations, rewards, looks
    law_error: Floats  # of the decisions of the sweep, added up


class Move(NamedTuple):
    """A block's step: who decides, what changes, and where the chain is."""

    contest: Contest
    coordinates: Indices
    parameters: Indices
    matrix: Floats
    correlation: Floats
    bends: Floats
    change: Floats  # of the coordinates
    moved: Floats  # of the parameters
    hessian: Sparse
    place: Place


class Sweeper:
    """All that compiled code needs to move a chain: workspaces of the blocks, and where it is."""

    def __init__(
        self, blocks: Sequence[ParameterBlock], law: Law, log_prior: LogPrior | None, method: Method
    ) -> None:
        self._blocks, self._law, self._hooks = blocks, law, Hooks()
        example = law.centre
        targets = [Target(block.likelihood, (log_prior,), method, np.stack) for block in blocks]
        self._workspaces = [Workspace(MOVE, target, 2, [example], self._hooks) for target in targets]
        theta, step, slope, z, fresh, scratch = np.zeros((6, len(example)))
        least, prior, law_error = np.zeros((3, 1))
        self._place = Place(
            theta, step, slope, z, fresh, scratch, least, prior, np.zeros(3, np.int64), law_error
        )

    def steps(self, rng: np.random.Generator, position: Floats, count: int) -> Steps[Position]:
        """Make sweeps from `position`."""
        law, history = self._law, new_history(count, len(position))
        self._place.theta[:] = position
        with ExitStack() as stack:
            moves = [
                self._move(block, stack.enter_context(workspace.contest(rng)))
                for block, workspace in zip(self._blocks, self._workspaces, strict=True)
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

    def _move(self, block: ParameterBlock, contest: Contest) -> Move:
        matrix = np.ascontiguousarray(block.matrix, np.float64)
        changed, moved = np.empty(matrix.shape[1]), np.empty(matrix.shape[0])
        places = block.coordinates.astype(np.int64), block.parameters.astype(np.int64)
        rho = np.array([block.correlation])
        bends = np.ascontiguousarray(block.bends, np.float64)
        return Move(contest, *places, matrix, rho, bends, changed, moved, self._law.hessian, self._place)


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
        place.least[0] = SMALL if rng.random() < SMALL_STEPS else 0.0
        for i in range(len(place.fresh)):
            place.fresh[i] = rng.standard_normal()
        moved = 0
        for b in range(len(moves)):
            found = call(entry, (moves[b],))
            if found == FAILS:
                return t
            moved += found
        history.positions[t], history.counts[t] = place.theta, place.counts
        history.accepted[t], history.law_errors[t] = moved / len(moves), place.law_error[0] / len(moves)
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
    place.law_error[0] += contest.law_error[0]
    if contest.tally[LEADER] != PROPOSED:
        return STAYS
    settle(move)
    return MOVES


@part
def draw_coordinates(move: Move) -> float:
    """Draw by how much coordinates change; return log q(x | x') - log q(x' | x)."""
    place, bends, ratio = move.place, move.bends, 0.0
    rho = max(move.correlation[0], place.least[0])
    spread = np.sqrt(1.0 - rho * rho)
    for k in range(len(move.coordinates)):
        z = place.z[move.coordinates[k]]
        before = unbent_one(z, bends, k)
        after = rho * before + spread * place.fresh[move.coordinates[k]]
        there = bent_one(after, bends, k)
        ratio += 0.5 * (after * after - before * before)
        ratio += log_slope_one(there, bends, k) - log_slope_one(z, bends, k)
        move.change[k] = there - z
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
