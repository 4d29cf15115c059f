"""Metropolis-Hastings block by block, where parameters are many and most rows depend on few of them.

A normal law N(m, (R Rᵀ)⁻¹) is close to the target; R is sparse. With θ = m + R⁻ᵀ z, a sweep draws one block
of z after the other anew and keeps the rest, so that a block changes few parameters, and few rows depend on
these. Each block has its own likelihood: that of the rows which it changes.
"""

import functools
from collections.abc import Sequence
from dataclasses import KW_ONLY, InitVar, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gumbelrace.core.pool import Pool
from gumbelrace.core.random import Rng, as_generator, check_generator
from gumbelrace.errors import InvalidArgument
from gumbelrace.kernels.base import Block as Steps
from gumbelrace.kernels.base import Checked, Info, Kernel
from gumbelrace.kernels.bends import bent, log_densities, unbent
from gumbelrace.kernels.block_sweep import SMALL, SMALL_STEPS, Law, ParameterBlock, Sweeper
from gumbelrace.kernels.checks import check_log_prior, check_state, real_fields, set_method
from gumbelrace.kernels.metropolis import Metropolis
from gumbelrace.kernels.target import LogPrior, Position, checked_point
from gumbelrace.kernels.workspace import Target
from gumbelrace.methods.base import Method
from gumbelrace.methods.state import Question
from gumbelrace.population.base import Floats


class Redraw:
    """The move of one block as a proposal of `Metropolis`, for audits."""

    def __init__(self, block: ParameterBlock, law: Law) -> None:
        self._block, self._law = block, law

    def propose(self, rng: np.random.Generator, x: Floats) -> Floats:
        """Draw the block's coordinates."""
        block, z = self._block, self._coordinates(x)
        fresh = rng.standard_normal(len(z))
        rho = max(block.correlation, SMALL if rng.random() < SMALL_STEPS else 0.0)
        u = rho * unbent(z, block.bends) + np.sqrt(1.0 - rho * rho) * fresh
        moved = np.array(x)
        moved[block.parameters] += block.matrix @ (bent(u, block.bends) - z)
        return moved

    def log_ratio(self, x: Floats, proposed: Floats) -> float:
        """Give log q(x | x') - log q(x' | x)."""
        heights = [log_densities(self._coordinates(point), self._block.bends) for point in (x, proposed)]
        return float(np.sum(heights[0] - heights[1]))

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
    blocks : sequence of ParameterBlock
        In the order in which they are drawn.
    law : Law
        The normal law close to the target.
    log_prior : callable, optional
        ``log_prior(x) -> float``.
    delta, method : optional
        As in `Metropolis`.
    """

    blocks: Sequence[ParameterBlock]
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
    def _sweepers(self) -> Pool[Sweeper]:
        return Pool(functools.partial(Sweeper, self.blocks, self.law, self.log_prior, self.method))
