"""Rewards with an approximation whose sums are known, as populations of every kind."""

import math

import numba
import numpy as np
import pytest
from tests.common import seeded, totals

import gumbelrace as gr
from gumbelrace.core.rows import Rows

# Of the largest sum; 1e-9 is asked for.
RELATIVE = 1e-11

kinds = pytest.mark.parametrize("kind", ["compiled", "factors", "table"])
shares = pytest.mark.parametrize("share", [0.0, 0.1])
sizes = pytest.mark.parametrize("size", [2, 300, 20_001])


@numba.njit
def entry(n, arm, rewards, count):
    count[n, arm] += 1
    return rewards[n, arm]


@numba.njit
def approximate(n, arm, approximation):
    return approximation[n, arm]


class Case:
    """Rewards and sums of order 1, an approximation that is off by `noise`, and a head."""

    def __init__(self, size, arms, share=0.0, noise=0.01, seed=0):
        rng = seeded(seed)
        rewards = rng.normal(size=(size, arms))
        self.rewards = rewards - rewards.mean(axis=0) + rng.normal(size=arms) / size
        self.near = self.rewards + noise * rng.uniform(-1, 1, size=(size, arms))
        self.noise, self.count = noise, np.zeros(self.rewards.shape, np.int64)
        rows = np.sort(rng.choice(size, int(share * size), replace=False))
        self.rows = Rows(size, head=rows)

    def control(self, **changes):
        given = {
            "function": approximate,
            "data": (self.near,),
            "sums": np.array([math.fsum(column) for column in self.near[self.rows.tail].T]),
            "residual_range": (np.full(self.arms, -self.noise), np.full(self.arms, self.noise)),
            "rows": self.rows,
            "size": len(self.rewards),
        }
        return gr.control_variates.ControlVariate(**(given | changes))

    @property
    def arms(self):
        return self.rewards.shape[1]

    @property
    def sums(self):
        return np.array([math.fsum(column) for column in self.rewards.T])

    def population(self, kind):
        size, arms = self.rewards.shape
        match kind:
            case "compiled":
                return gr.compiled(entry, (self.rewards, self.count), size, arms)
            case "factors":
                return gr.factors(self._read, size, arms)
            case "table":
                return gr.table(self.rewards)

    def _read(self, index, arms):
        self.count[np.ix_(index, arms)] += 1
        return self.rewards[np.ix_(index, arms)]


def difference(sums):
    """Totals are known up to a constant that all arms share."""
    return sums - sums[0]


def assert_same_sums(population, sums):
    error = np.abs(difference(totals(population)) - difference(sums)).max()
    assert error <= RELATIVE * max(1.0, np.abs(sums).max())
