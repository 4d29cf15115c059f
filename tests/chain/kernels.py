"""Small kernels for the tests of chains, and what compares two traces."""

import time
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from tests.common import seeded

import gumbelrace as gr
from gumbelrace.kernels.base import Info, Kernel


class Point(NamedTuple):
    x: float


class Inner(NamedTuple):
    scale: np.float64
    grid: np.ndarray  # in Fortran's order


class Mixed(NamedTuple):
    """A state with every kind of leaf."""

    x: float
    count: int
    flag: bool
    vector: np.ndarray  # float32
    inner: Inner
    bits: np.uint8


MIXED = Mixed(
    0.5, 0, False, np.zeros(3, np.float32), Inner(np.float64(1), np.zeros((2, 3), order="F")), np.uint8(7)
)


@dataclass(frozen=True)
class Walk(Kernel):
    """Moves every leaf of a `Mixed`, such that the future depends on all of them."""

    pause: float = 0.0

    def step(self, rng, state):
        if self.pause:
            time.sleep(self.pause * np.random.default_rng().random())
        x = 0.9 * state.x + rng.normal() + 0.01 * float(state.vector[0]) + 1e-3 * state.inner.grid.sum()
        noise = rng.standard_normal((2, 3))
        inner = Inner(state.inner.scale * np.float64(0.99) + x, np.asfortranarray(np.tanh(noise + x)))
        vector = state.vector * np.float32(0.5) + rng.random(3, np.float32)
        count = state.count + int(rng.integers(3))
        # uint8 arithmetic wraps, as that of Python's numbers does not.
        bits = np.add(state.bits, np.uint8(rng.integers(200)))
        new = Mixed(float(x), count, bool(x > 0), vector, inner, bits)
        return new, Info(count % 7, 10, 1, float(new.flag))


@dataclass(frozen=True)
class Autoregression(Kernel):
    """x' = φ x + noise: its n draws are worth n (1 - φ) / (1 + φ) independent ones."""

    correlation: float = 0.5

    def step(self, rng, state):
        return Point(self.correlation * state.x + rng.normal()), Info(3, 12, 1, 1.0)


class Scaled(NamedTuple):
    position: np.ndarray
    scale: float


class Tuned(Kernel):
    tuning = frozenset({"scale"})

    def step(self, rng, state):
        position = state.position + state.scale * rng.normal(size=2)
        return Scaled(position, 0.9 * state.scale), Info(1, 2, 3, 0.25)


REWARDS = seeded(3).normal(0.0, 0.02, size=(500, 2))


class Choice(NamedTuple):
    arm: int


@dataclass(frozen=True)
class Raced(Kernel):
    """Chooses one of two arms at each step, by a race."""

    method: gr.Method = field(default_factory=gr.Betting)
    population: gr.Population = field(default_factory=lambda: gr.table(REWARDS))

    def step(self, rng, state):
        found = self.method.best(self.population, rng.gumbel(size=2), rng)
        moved = float(found.arm != state.arm)
        return Choice(found.arm), Info(found.evaluations, self.population.rewards, found.looks, moved)


def assert_same(trace, other):
    """Equal bit for bit, dtypes and all."""
    assert trace.names == other.names
    for ours, theirs in [
        *((trace[name], other[name]) for name in trace.names),
        *zip(trace.info, other.info, strict=True),
    ]:
        assert ours.dtype == theirs.dtype
        assert ours.tobytes() == theirs.tobytes()
    assert repr(trace.last) == repr(other.last)
