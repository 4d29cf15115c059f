"""Metropolis-Hastings on rows that were drawn ahead: a pool of them is read in order, each once.

Which rows a decision reads does not depend on what it decides. So rows can be drawn, with replacement and
by their weights, before a chain begins: in one pass over a file that is larger than memory. Every chain
reads a part of the pool that is its own. A pool that is used up is followed by the next one, drawn in a
further pass.
"""

import functools
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from gumbelrace.core.pool import Pool
from gumbelrace.core.random import Rng, as_generator, check_generator
from gumbelrace.core.rows import DrawnRows
from gumbelrace.errors import InvalidArgument
from gumbelrace.kernels.base import Block, Info, Kernel
from gumbelrace.kernels.checks import check_state, real_fields
from gumbelrace.kernels.metropolis import Mixture
from gumbelrace.kernels.target import LogPrior, checked_point
from gumbelrace.kernels.walk import Walk
from gumbelrace.kernels.workspace import Target
from gumbelrace.methods.penalty import Penalty
from gumbelrace.population.base import Floats

# The estimate of a decision takes at most that share of a pool, and between so many rows.
SHARE_OF_POOL, LEAST_AND_MOST = 64, (256, 8192)


class PooledPosition(NamedTuple):
    """A position, and how far the pools of rows are read."""

    position: Floats
    reader: int  # whose part of a pool it reads
    pool: int  # number of the pool
    place: int  # rows of that part which are used


class RowPools(Protocol):
    """Pools of rows, as many as are needed, each drawn in a pass when it is first asked for."""

    @property
    def size(self) -> int:
        """Number of rows that pools are drawn from, N."""

    @property
    def remark(self) -> str:
        """What was read so far."""

    def length(self, number: int) -> int:
        """Give the number of rows in a pool."""

    def likelihood(self, number: int) -> tuple[Any, DrawnRows]:
        """Give the log factors of the rows in a pool, less their expansion, and a cursor of their own."""


class Reader(NamedTuple):
    """What makes steps from a pool, and the rows that it reads."""

    walk: Walk
    rows: DrawnRows


@dataclass(frozen=True, eq=False)
class PooledMetropolis(Kernel[PooledPosition]):
    """Metropolis-Hastings by `Penalty`, its rows taken from pools.

    Parameters
    ----------
    pools : RowPools
        Where rows come from.
    proposal : Mixture
        Draws x'.
    log_prior : callable, optional
        ``log_prior(x) -> float``.
    readers : int
        How many chains share a pool.
    method : Penalty
        Who decides.
    """

    pools: RowPools
    proposal: Mixture
    log_prior: LogPrior | None = None
    readers: int = 1
    method: Penalty = field(default_factory=Penalty)

    tuning = frozenset({"reader", "pool", "place"})

    @property
    def remark(self) -> str:  # type: ignore[override]
        """What was read of the table."""
        return self.pools.remark

    def start(
        self, position: ArrayLike | None = None, *, reader: int | None = None, rng: Rng = None
    ) -> PooledPosition:
        """Give the state of the chain that is the `reader`-th of those that share pools."""
        as_generator(rng)
        if position is None or reader is None or not 0 <= reader < self.readers:
            raise InvalidArgument(
                f"start(position, reader=) needs a position, and which of the {self.readers} readers of "
                "the pools it is; Posterior.sample gives every chain a part of its own"
            )
        return PooledPosition(checked_point(position), int(reader), 0, 0)

    def as_state(self, state: PooledPosition) -> PooledPosition:
        """Give a position in double precision."""
        check_state(state, PooledPosition)
        found: PooledPosition = real_fields(state, "position")
        return found

    def step(self, rng: np.random.Generator, state: PooledPosition) -> tuple[PooledPosition, Info]:
        """Propose a point, and go there or stay."""
        block: Any = self.steps(rng, state, 1)
        position, *places = block.states
        moved = PooledPosition(position[0], *(int(part[0]) for part in places))
        return moved, Info(*(part[0].item() for part in block.info))

    def steps(self, rng: np.random.Generator, state: PooledPosition, count: int) -> Block[PooledPosition]:
        """Make `count` steps, going on to the next pool where one is used up."""
        check_state(state, PooledPosition)
        blocks: list[Any] = []
        while (missing := count - sum(len(block.info.looks) for block in blocks)) > 0:
            state = self._with_rows(state)
            blocks.append(self._from_pool(check_generator(rng), state, missing))
            state = PooledPosition(*(part[-1] for part in blocks[-1].states))
        parts = zip(*((*block.states, *block.info) for block in blocks), strict=True)
        joined: Any = [np.concatenate(part) for part in parts]
        return Block(PooledPosition(*joined[:4]), Info(*joined[4:]))

    def _with_rows(self, state: PooledPosition) -> PooledPosition:
        """Give the state with the next pool, if too few rows are left of this one for a decision."""
        if state.place + self._reserve(state.pool) <= self._part(state.pool):
            return state
        following = state._replace(pool=int(state.pool) + 1, place=0)
        if self._reserve(following.pool) > self._part(following.pool):
            raise InvalidArgument(
                f"a pool of {self.pools.length(following.pool):,} rows is too small for "
                f"{self.readers} chains; give a larger pool_rows, or fewer chains"
            )
        return following

    def _part(self, number: int) -> int:
        """Give how many rows of a pool each reader has."""
        return self.pools.length(number) // self.readers

    def _reserve(self, number: int) -> int:
        """Give how many rows a decision may take: a pilot may be half as long as what it asks for."""
        return 2 * (most_rows(self.pools.length(number)) + self.method.least_rows)

    def _from_pool(self, rng: np.random.Generator, state: PooledPosition, count: int) -> Block[Any]:
        """Make steps until the pool is used up."""
        with self._readers(state).lend() as (walk, rows):
            part = self._part(state.pool)
            first = state.reader * part
            rows.cursor[:] = first + state.place, first + part, self._reserve(state.pool)
            block = walk.steps(rng, checked_point(state.position), count)
            places, made = walk.places - first, len(walk.places)
        states: Any = block.states.position, *(np.full(made, n) for n in (state.reader, state.pool)), places
        # An exact decision would read all rows of both points.
        rewards: Any = np.where(np.asarray(block.info.rewards) > 0, 2 * self.pools.size, 0)
        return Block(PooledPosition(*states), block.info._replace(rewards=rewards))

    @functools.cached_property
    def _by_pool(self) -> dict[int, Pool[Reader]]:
        return {}

    def _readers(self, state: PooledPosition) -> Pool[Reader]:
        """Give those who read a pool; pools that chains have left behind are forgotten."""
        for number in [known for known in self._by_pool if known < state.pool - 1]:
            self._by_pool.pop(number, None)
        made = functools.partial(self._reader, int(state.pool), len(state.position))
        return self._by_pool.setdefault(int(state.pool), Pool(made))

    def _reader(self, number: int, dimension: int) -> Reader:
        likelihood, rows = self.pools.likelihood(number)
        target = Target(likelihood, (self.log_prior,), self.method, np.stack)
        return Reader(Walk(target, self.proposal, np.zeros(dimension)), rows)


def most_rows(length: int) -> int:
    """Give how many rows of a pool the estimate of a decision takes at most."""
    return int(np.clip(length // SHARE_OF_POOL, *LEAST_AND_MOST))
