"""Sweeps over blocks of parameters by JAX, where a draw of all of them at once is seldom accepted.

The law is that of `kernels.Blocks`: one block of the law's coordinates after the other is drawn anew, and
accepted or not by `Penalty` from rows that the block changes. All sweeps of a call are one `lax.scan`, and
so are the blocks of a sweep; chains are side by side.
"""

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gumbelrace.jax.chain import BLOCK, HALF, Made, Small
from gumbelrace.jax.model import JaxModel
from gumbelrace.jax.packages import in_double, jax, jnp, lax, random, special
from gumbelrace.jax.penalty import Move, Reading, Test, reading_of
from gumbelrace.jax.picking import Span, Table, table_of_parts
from gumbelrace.jax.stacks import Coordinates, Stack, coordinates_of, stacks_of
from gumbelrace.kernels.bends import bent, log_densities, unbent
from gumbelrace.kernels.block_sweep import ParameterBlock
from gumbelrace.laplace.blocks import Planned
from gumbelrace.laplace.model import Floats


class Data(NamedTuple):
    """What compiled code reads."""

    mode: Any
    table: Table
    stacks: list[Stack]


class Place(NamedTuple):
    """Where a chain is: in the law's coordinates, away from the mode, and the log prior there."""

    z: Any
    step: Any
    prior: Any


class Draw(NamedTuple):
    """What proposals of a sweep are made of.

    Before they are bent, new coordinates are ρ times the old ones and `normal` for the rest, ρ being
    `least` or more. Where a chain only judges, they are `there`, and it stays.
    """

    normal: Any
    least: Any
    moves: Any
    there: Any


class OfBlock(NamedTuple):
    """What is drawn for a block: a number that decides, those that pick its first rows, a key for more."""

    accept: Any
    rows: Any
    key: Any


@dataclass(frozen=True, eq=False)
class Sweeps:
    """All that makes chains of a posterior, block by block."""

    model: JaxModel
    rule: Reading
    law: Coordinates
    blocks: list[ParameterBlock]
    data: Data

    def steps(self, key: Any, z: Floats, small: Small) -> Made:
        """Make BLOCK sweeps of each chain from z, of shape (chains, d)."""
        with in_double():
            keys = random.split(key, (len(z), BLOCK))
            found = self._sweeps(keys, z, self.thetas(z), jnp.asarray(small), self.data)
        z_after, accepted, log_chance, rows, law_error = map(np.asarray, found)
        return Made(z_after, accepted.mean(-1), log_chance, rows.sum(-1), law_error.mean(-1))

    def judged(self, key: Any, here: Floats, there: Floats) -> Made:
        """Judge moves of one block BLOCK times each, by other rows each time."""
        stack, n = self._where[np.flatnonzero((here != there).any(axis=0))[0]]
        with in_double():
            keys = random.split(key, (len(here), BLOCK))
            found = self._judgements(keys, here, there, self.thetas(here), n, self.data, stack=stack)
        return Made(*map(np.asarray, found))

    def proposed(self, rng: np.random.Generator, here: Floats) -> Floats:
        """Draw one block anew, the same for all points."""
        block, there = self.blocks[rng.integers(len(self.blocks))], here.copy()
        rho, fresh = block.correlation, rng.standard_normal((len(here), len(block.coordinates)))
        u = rho * unbent(here[:, block.coordinates], block.bends) + np.sqrt(1.0 - rho**2) * fresh
        there[:, block.coordinates] = bent(u, block.bends)
        return there

    def known(self, z: Floats) -> Floats:
        """Give what is known of the log posterior at points without reading rows."""
        priors = [self.model.log_prior(theta) for theta in self.thetas(z)]
        return np.array(priors) + self.law.expansion(z)

    def log_proposal(self, z: Floats) -> Floats:
        """Give the log density of the law that proposes, up to a constant, of shape (points,)."""
        found: Floats = log_densities(z, self.law.bends).sum(axis=1)
        return found

    def thetas(self, z: Floats) -> Floats:
        """Give points as the model takes them."""
        return self.law.points(z)

    @functools.cached_property
    def _where(self) -> dict[int, tuple[int, int]]:
        """The stack of each coordinate's block, and its place there."""
        return {
            int(i): (s, n)
            for s, stack in enumerate(self.data.stacks)
            for n, coordinates in enumerate(np.asarray(stack.coordinates))
            for i in coordinates
        }

    @functools.cached_property
    def _most(self) -> list[int]:
        """The most rows that a block of each stack has."""
        return [int(np.asarray(stack.size).max()) for stack in self.data.stacks]

    @functools.cached_property
    def _sweeps(self) -> Any:
        def of_chain(keys: Any, z: Any, theta: Any, small: Any, data: Data) -> Any:
            sweep = functools.partial(self.sweep, data, small)
            return lax.scan(sweep, self.place(data, z, theta), keys)[1]

        return jax.jit(jax.vmap(of_chain, (0, 0, 0, None, None)))

    @functools.cached_property
    def _judgements(self) -> Any:
        def of_chain(keys: Any, here: Any, there: Any, theta: Any, n: Any, data: Data, stack: int) -> Any:
            block = jax.tree.map(lambda field: field[n], data.stacks[stack])
            draw, place = Draw(here, 0.0, False, there), self.place(data, here, theta)

            def judge(state: Place, key: Any) -> Any:
                own = jax.tree.map(lambda field: field[0], self.noise(key, 1)[1])
                state, found = self.block_step(data, stack, draw, state, (block, own))
                return state, Made(state.z, *found)

            return lax.scan(judge, place, keys)[1]

        return jax.jit(
            lambda *given, stack: jax.vmap(
                functools.partial(of_chain, stack=stack), (0, 0, 0, 0, None, None)
            )(*given),
            static_argnames="stack",
        )

    def place(self, data: Data, z: Any, theta: Any) -> Place:
        """Find all that follows from where a chain is."""
        return Place(z, theta - data.mode, self.model.log_prior_at(theta, data.table.whole))

    def noise(self, key: Any, blocks: int, numbers: int = 0) -> tuple[Any, OfBlock]:
        """Draw what the decisions of so many blocks need, and further uniform numbers.

        All at once, which is compiled sooner.
        """
        keys, rows = random.split(key), self.rule.pilot + self.rule.first
        uniform = random.uniform(keys[0], (numbers + blocks * (1 + rows),)) + HALF
        of_blocks = uniform[numbers:].reshape(blocks, 1 + rows)
        own = OfBlock(jnp.log(of_blocks[:, 0]), of_blocks[:, 1:], random.split(keys[1], blocks))
        return uniform[:numbers], own

    def sweep(self, data: Data, small: Any, place: Place, key: Any) -> Any:
        """Draw every block once."""
        share, correlation = small
        counts = [len(stack.size) for stack in data.stacks]
        uniform, own = self.noise(key, sum(counts), 1 + len(data.mode))
        least = jnp.where(uniform[0] < share, correlation, 0.0)
        draw, decided, begin = Draw(special.ndtri(uniform[1:]), least, True, place.z), [], 0
        for s, (stack, count) in enumerate(zip(data.stacks, counts, strict=True)):
            step = functools.partial(self.block_step, data, s, draw)
            some = OfBlock(*(part[begin : begin + count] for part in own))
            place, found = lax.scan(step, place, (stack, some))
            decided.append(found)
            begin += count
        joined = [jnp.concatenate(parts) for parts in zip(*decided, strict=True)]
        return place, Made(place.z, *joined)

    def block_step(self, data: Data, stack: int, draw: Draw, place: Place, given: Any) -> Any:
        """Draw a block's coordinates, and go there or stay."""
        (block, own), z = given, place.z
        before, after = ends_of(block, draw, z)
        change = after - before
        step = place.step.at[block.parameters].add(block.matrix @ change, mode="drop")
        prior = self.model.log_prior_at(data.mode + step, data.table.whole)
        ratio = jnp.sum(log_densities(before, block.bends, jnp) - log_densities(after, block.bends, jnp))
        offset = prior - place.prior + growth(block, z, change) + ratio
        move = Move(data.mode, place.step, step, offset, own.rows, own.key)
        span = Span(block.begin, block.size, self._most[stack])
        found = Test(self.model, self.rule, data.table, span, move).decision()
        accepted = own.accept < found.log_chance
        there = Place(z.at[block.coordinates].set(after, mode="drop"), step, prior)
        goes = accepted & draw.moves
        place = jax.tree.map(lambda new, old: jnp.where(goes, new, old), there, place)
        return place, (accepted, *found)


def ends_of(block: Stack, draw: Draw, z: Any) -> tuple[Any, Any]:
    """Give a block's coordinates where a chain is, and where it may go."""
    before, fresh, given = (taken(x, block.coordinates) for x in (z, draw.normal, draw.there))
    rho = jnp.maximum(block.correlation, draw.least)
    u = rho * unbent(before, block.bends, jnp) + jnp.sqrt(1.0 - rho * rho) * fresh
    return before, jnp.where(draw.moves, bent(u, block.bends, jnp), given)


def growth(block: Stack, z: Any, change: Any) -> Any:
    """By how much the sum of the expansion grows."""
    middle = z.at[block.coordinates].add(0.5 * change, mode="drop")
    return change @ (block.gradient + block.curvature @ taken(middle, block.columns))


def taken(vector: Any, places: Any) -> Any:
    """Give entries of a vector; 0 where there is none."""
    return vector.at[places].get(mode="fill", fill_value=0.0)


def sweeps_of(model: JaxModel, planned: Planned) -> Sweeps:
    """Make ready what sweeps over planned blocks need."""
    law, blocks = coordinates_of(planned), planned.blocks
    rows: list[Any] = [block.likelihood for block in blocks]
    stacks = stacks_of(blocks, [len(part.numbers) for part in rows], law)
    with in_double():
        data = jax.tree.map(jnp.asarray, Data(law.mode, table_of_parts(model, rows), stacks))
    return Sweeps(model, reading_of(planned.forecast.rows / len(blocks)), law, blocks, data)
