"""The exact scan in near ties of large rewards, against integers, which do not round."""

import numba
import numpy as np
import pytest
from tests.common import seeded

import gumbelrace as gr

UNIT = 2.0**-20  # rewards near 1e8 are multiples of it


def near_tie(rng, size):
    """Make integers whose sums differ by one, and say which column is the better one."""
    units = rng.integers(-(2**20), 2**20, size=(size, 2))
    units[0, 1] += units[:, 0].sum() - units[:, 1].sum()
    best = int(rng.integers(2))
    units[1, best] += 1
    return units, best


@numba.njit
def entry(n, arm, rewards):
    return rewards[n, arm]


def compiled(rewards):
    return gr.compiled(entry, (rewards,), *rewards.shape)


@pytest.mark.parametrize("method", [gr.Exact(), gr.Race(delta=1e-12), gr.Betting(1e-12)], ids=repr)
@pytest.mark.parametrize("make", [gr.table, compiled])
@pytest.mark.parametrize("size", [300, 20_000])
def test_near_ties_of_large_rewards_are_decided_rightly(method, make, size):
    """Oracle: sums of integers; seed 1. Races this careful read everything, and end with the same scan."""
    if method.needs_range and make is compiled:
        pytest.skip("no range is known")
    rng, plainly = seeded(1), 0
    for _ in range(20):
        units, best = near_tie(rng, size)
        rewards = 1e8 + UNIT * units
        assert method.best(make(rewards), None, rng).arm == best
        plainly += np.argmax([np.cumsum(column)[-1] for column in rewards.T]) == best
    assert plainly < 20  # a negative control: plain sums are wrong
