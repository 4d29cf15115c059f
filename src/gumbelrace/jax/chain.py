"""Chains by JAX: many steps in one `lax.scan`, all chains side by side.

A step proposes an independent draw of the law, or sometimes a small step, as `kernels.Mixture` does, and
has `Penalty` decide. Points are in the law's own coordinates: θ = mode + s + L z, where the shift s is 0
but for expansions that fit on average.
"""

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gumbelrace.jax.model import JaxModel
from gumbelrace.jax.packages import in_double, jax, jnp, lax, random, special
from gumbelrace.jax.penalty import Move, Reading, Test, reading_of
from gumbelrace.jax.picking import Span, Table, table_of
from gumbelrace.laplace.mode import Mode
from gumbelrace.laplace.model import Floats
from gumbelrace.laplace.pilot import Pilot, Tails, step_to_top

# Steps that are made in one call.
BLOCK = 250
# Uniform numbers are multiples of 2⁻⁵², from 0 on; half of that more, and none is 0 or 1.
HALF = 2.0**-53


class Law(NamedTuple):
    """The law, and the expansion of the log factors' sum at the mode in its coordinates."""

    mode: Any
    shift: Any  # from the mode to the centre of the law
    root: Any
    gradient: Any
    hessian: Any


class Small(NamedTuple):
    """Share of small steps, and their correlation with where they start."""

    share: float
    correlation: float


class Noise(NamedTuple):
    """What is drawn for a step: the first rows are picked by uniform numbers, others by a key."""

    normal: Any
    kind: Any
    spread: Any
    rows: Any
    accept: Any
    key: Any


class Made(NamedTuple):
    """Steps: where they led, whether they were accepted, and `Decision`'s fields."""

    z: Any
    accepted: Any
    log_chance: Any
    rows: Any
    law_error: Any


@dataclass(frozen=True, eq=False)
class Chains:
    """All that makes chains of a posterior."""

    model: JaxModel
    rule: Reading
    tails: Tails
    table: Table
    law: Law

    def steps(self, key: Any, z: Floats, small: Small) -> Made:
        """Make BLOCK steps of each chain from z, of shape (chains, d)."""
        with in_double():
            return self._made(self._noise(key, len(z)), z, small, True)

    def judged(self, key: Any, here: Floats, there: Floats) -> Made:
        """Judge independent proposals BLOCK times each, by other rows each time, and stay.

        The compiled steps are the same as those of `steps`: what is checked is what makes chains.
        """
        with in_double():
            noise = self._noise(key, len(here))
            proposed = np.broadcast_to(there[:, None] / self.tails.scale, noise.normal.shape)
            fixed = noise._replace(normal=proposed, spread=jnp.ones_like(noise.spread))
            return self._made(fixed, here, Small(0.0, 0.0), False)

    def proposed(self, rng: np.random.Generator, here: Floats) -> Floats:
        """Draw points by the law, as many as are given."""
        spreads = np.array([[self.tails.spread(rng)] for _ in here])
        return spreads * rng.normal(size=here.shape)

    def known(self, z: Floats) -> Floats:
        """Give the heights of points, of shape (points, d)."""
        with in_double():
            return np.asarray(self._heights(self.table, self.law, z))

    def log_proposal(self, z: Floats) -> Floats:
        """Give the log density of the law that proposes, of shape (points,)."""
        return self.tails.log_density(z)

    def thetas(self, z: Floats) -> Floats:
        """Give points as the model takes them."""
        mode, shift, root = map(np.asarray, self.law[:3])
        points: Floats = mode + shift + z @ root.T
        return points

    def _made(self, noise: Noise, z: Floats, small: Small, moves: bool) -> Made:
        options = jnp.asarray([*small, 1.0 * moves])
        return Made(*map(np.asarray, self._steps(noise, z, options, self.table, self.law)))

    @functools.cached_property
    def _heights(self) -> Any:
        return jax.jit(jax.vmap(self.height, (None, None, 0)))

    @functools.cached_property
    def _noise(self) -> Any:
        return jax.jit(self.noise, static_argnums=1)

    @functools.cached_property
    def _steps(self) -> Any:
        def of_chain(noise: Noise, z: Any, options: Any, table: Table, law: Law) -> Any:
            step = functools.partial(self.step, options, table, law)
            return lax.scan(step, (z, self.height(table, law, z)), noise)[1]

        return jax.jit(jax.vmap(of_chain, (0, 0, None, None, None)))

    def noise(self, key: Any, chains: int) -> Noise:
        """Draw what BLOCK steps of each chain need; uniform numbers at once, which is compiled sooner."""
        d, freedom, shape = len(self.law.mode), self.tails.freedom, (chains, BLOCK)
        squares = int(freedom) if freedom < np.inf else 0
        keys, rows = random.split(key), self.rule.pilot + self.rule.first
        uniform = random.uniform(keys[0], (*shape, d + squares + 2 + rows)) + HALF
        normal, squared, two, first = jnp.split(uniform, np.cumsum([d, squares, 2]), axis=-1)
        spread = jnp.ones(shape)
        if squares:
            spread = jnp.sqrt(freedom / jnp.square(special.ndtri(squared)).sum(axis=-1))
        several = random.split(keys[1], shape)
        return Noise(special.ndtri(normal), two[..., 0], spread, first, jnp.log(two[..., 1]), several)

    def step(self, options: Any, table: Table, law: Law, state: Any, noise: Noise) -> Any:
        """Propose a point, and go there or stay."""
        share, correlation, moves = options
        (here, height), is_small = state, noise.kind < share
        rho = jnp.where(is_small, correlation, 0.0)
        spread = jnp.where(is_small, jnp.sqrt(1.0 - rho * rho), noise.spread)
        there = rho * here + self.tails.scale * spread * noise.normal
        ratio = jnp.where(
            is_small, self.ratio(here, there, np.inf), self.ratio(here, there, self.tails.freedom)
        )
        new_height = self.height(table, law, there)
        test = self.test(table, law, (here, there), new_height - height + ratio, noise.rows, noise.key)
        found = test.decision()
        accepted = noise.accept < found.log_chance
        goes = accepted & (moves > 0.0)
        z, height = jnp.where(goes, there, here), jnp.where(goes, new_height, height)
        return (z, height), Made(z, accepted, *found)

    def test(self, table: Table, law: Law, ends: tuple[Any, Any], offset: Any, rows: Any, key: Any) -> Test:
        """Give the test of a move."""
        here, there = (law.shift + law.root @ z for z in ends)
        span, move = (
            Span(0, self.model.size, self.model.size),
            Move(law.mode, here, there, offset, rows, key),
        )
        return Test(self.model, self.rule, table, span, move)

    def height(self, table: Table, law: Law, z: Any) -> Any:
        """Give what is known of the log posterior without reading rows: the prior and the expansion."""
        prior = self.model.log_prior_at(law.mode + law.shift + law.root @ z, table.whole)
        return prior + z @ (law.gradient + 0.5 * law.hessian @ z)

    def ratio(self, here: Any, there: Any, freedom: float) -> Any:
        """Give the log ratio of the law's densities."""
        return self.log_density(here, freedom) - self.log_density(there, freedom)

    def log_density(self, z: Any, freedom: float) -> Any:
        squared = z @ z / self.tails.scale**2
        if freedom == np.inf:
            return -0.5 * squared
        return -0.5 * (freedom + len(z)) * jnp.log1p(squared / freedom)


def chains_of(model: JaxModel, mode: Mode, pilot: Pilot) -> Chains:
    """Make ready what chains need."""
    law = law_of(mode, pilot.root, step_to_top(mode))
    with in_double():
        law, table = jax.tree.map(jnp.asarray, (law, table_of(model, pilot.weights)))
    return Chains(model, reading_of(pilot.forecast.rows), pilot.tails, table, law)


def law_of(mode: Mode, root: Floats, shift: Floats) -> Law:
    """Give the law, and the expansion in its coordinates but for a constant."""
    _, gradient, hessian = mode.factors
    return Law(mode.theta, shift, root, root.T @ (gradient + hessian @ shift), root.T @ hessian @ root)
