"""Populations of a numba function: data of every kind reach it, what it computes is counted."""

import sys

import numba
import numpy as np
import pytest
from tests.common import QUICK, seeded, totals

import gumbelrace as gr
from gumbelrace.errors import FactorFailed, InvalidArgument, InvalidReward, RewardOutOfRange


@numba.njit
def counting(n, arm, rewards, count):
    count[n, arm] += 1
    return rewards[n, arm]


@numba.njit
def weighted(n, arm, x, y, scale, shift):
    return scale * x[n] * y[arm] + shift


@numba.njit
def failing(n, arm, bad):
    if n == bad:
        raise ValueError("this row cannot be computed")
    return 0.1 * arm


def counted(rewards, reward_range=None):
    count = np.zeros(rewards.shape, np.int64)
    return gr.compiled(counting, (rewards, count), *rewards.shape, reward_range=reward_range), count


def ranged(rewards):
    return counted(rewards, (rewards.min(axis=0), rewards.max(axis=0)))


@pytest.mark.parametrize("size", [1, 129, 16_383, 16_384, 20_001])
def test_exact_reads_every_reward_once(size):
    rewards = seeded(1).normal(size=(size, 4))
    population, count = counted(rewards)
    np.testing.assert_allclose(totals(population), rewards.sum(axis=0), atol=1e-9)
    assert (count == 1).all()
    outcome = gr.Exact().best(population, None, seeded())
    assert (outcome.arm, outcome.evaluations) == (rewards.sum(axis=0).argmax(), 4 * size)
    assert (count == 2).all()


@pytest.mark.parametrize("size", [300, 20_001])
@pytest.mark.parametrize("method", QUICK, ids=repr)
def test_evaluations_are_what_was_computed(method, size):
    population, count = ranged(seeded(2).normal(size=(size, 5), scale=3.0 / np.sqrt(size)))
    for seed in range(5):
        count[:] = 0
        draws = gr.sample(population, size=1, method=method, rng=seeded(seed))
        assert count.sum() == draws.evaluations.sum()
        assert count.max() == 1


X, Y = seeded(3).normal(size=40), np.array([-1.0, 0.5, 2.0])
DATA = {
    "floats": (X, Y, 2.0, 0.25),
    "integers": (np.arange(40), np.arange(3, dtype=np.uint8), 3, np.int16(-4)),
    "float32": (X.astype(np.float32), Y.astype(np.float32), np.float32(0.5), np.float64(1.0)),
    "booleans": (X > 0, Y > 0, True, np.False_),
    "strided": (np.repeat(X, 3)[::3], Y[::-1], 1.0, 0.0),
    "column of a Fortran array": (np.asfortranarray(np.tile(X[:, None], 2))[:, 1], Y, 1.0, 0.0),
}


@pytest.mark.parametrize("kind", DATA)
def test_data_of_every_kind_reach_the_factor(kind):
    x, y, scale, shift = DATA[kind]
    population = gr.compiled(weighted, DATA[kind], size=40, arms=3)
    expected = (float(scale) * np.multiply.outer(np.asarray(x, float), y) + float(shift)).sum(axis=0)
    np.testing.assert_allclose(totals(population), expected, rtol=1e-6, atol=1e-6)


def test_no_data_and_two_dimensional_data():
    bare = numba.njit(lambda n, arm: float(n * arm))
    np.testing.assert_array_equal(totals(gr.compiled(bare, (), size=5, arms=3)), [0, 10, 20])
    for order in "CF":
        rewards = np.array(seeded(4).normal(size=(50, 3)), order=order)
        population = gr.compiled(counting, (rewards, np.zeros((50, 3), np.int64)), size=50, arms=3)
        np.testing.assert_allclose(totals(population), rewards.sum(axis=0))


def test_data_stay_alive_and_are_not_copied():
    rewards = np.zeros((30, 2))
    population = gr.compiled(counting, (rewards, np.zeros((30, 2), np.int64)), size=30, arms=2)
    rewards[:, 1] = 1.0
    del rewards
    np.testing.assert_array_equal(totals(population), [0.0, 30.0])


def test_reshuffled_factors_are_the_same():
    rewards = seeded(5).normal(size=(20_001, 3))
    population = ranged(rewards)[0].reshuffled(seeded(6))
    np.testing.assert_allclose(totals(population), rewards.sum(axis=0), atol=1e-9)
    np.testing.assert_array_equal(population.reward_range[0], rewards.min(axis=0))


@pytest.mark.parametrize("size", [100, 20_001])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_reward_is_named(size, bad):
    rewards = seeded(7).normal(size=(size, 3))
    rewards[size - 3, 1] = bad
    for given in [None, (-9.0, 9.0)]:
        with pytest.raises(InvalidReward, match=f"row {size - 3}, arm 1 "):
            gr.Exact().best(counted(rewards, given)[0], None, seeded())


@pytest.mark.parametrize("size", [100, 20_001])
@pytest.mark.parametrize("bad", [-0.5, 1.5, -np.inf])
@pytest.mark.parametrize("method", [gr.Exact(), gr.Betting(), gr.LilUCB()], ids=repr)
def test_reward_out_of_range_is_named(method, size, bad):
    rewards = np.tile(seeded(8).uniform(size=(size, 1)), 3)  # tied: everything is read
    rewards[size // 2, 2] = bad
    with pytest.raises(RewardOutOfRange, match=f"row {size // 2}, arm 2 .*\\[0, 1\\]"):
        method.best(counted(rewards, (0.0, 1.0))[0], None, seeded())


@pytest.mark.parametrize("method", QUICK, ids=repr)
def test_factor_that_raises(method, monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: told.append(str(unraisable.exc_value)))
    population = gr.compiled(failing, (7,), size=50, arms=3, reward_range=(0.0, 1.0))
    with pytest.raises(FactorFailed, match=r"row \d+, arm [012]"):
        method.best(population, [0.0, -5.0, -10.0], seeded())
    assert told == ["this row cannot be computed"]


def test_function_must_be_compiled():
    with pytest.raises(InvalidArgument, match=r"numba\.njit"):
        gr.compiled(lambda n, arm: 0.0, (), size=3, arms=2)


@pytest.mark.parametrize("data", [[X, Y], X, None, {"x": X}, 3.0])
def test_data_must_be_a_tuple(data):
    with pytest.raises(InvalidArgument, match="tuple"):
        gr.compiled(weighted, data, size=40, arms=3)


@pytest.mark.parametrize("item", [["a"], "text", None, {}, (1.0,), np.array([object()])])
def test_item_of_the_data_of_a_wrong_type_is_named(item):
    with pytest.raises(InvalidArgument, match=r"data\[1\]"):
        gr.compiled(weighted, (X, item, 1.0, 0.0), size=40, arms=3)


@pytest.mark.parametrize("counts", [(0, 2), (-1, 2), (2.0, 2), (None, 2), (3, 0), (3, 1.0), (3, "2")])
def test_size_and_arms_must_be_counts(counts):
    with pytest.raises(InvalidArgument, match=r"size|arms"):
        gr.compiled(counting, (X, Y), *counts)


@pytest.mark.parametrize("data", [(), (np.zeros(5), 1.0, 2.0), (1.0,)])
def test_data_that_do_not_fit_the_function_are_named(data):
    @numba.njit
    def log_factor(n, arm, y):
        return y[n] * arm

    with pytest.raises(InvalidArgument, match=rf"with {len(data)} items of data"):
        gr.compiled(log_factor, data, size=5, arms=2)
