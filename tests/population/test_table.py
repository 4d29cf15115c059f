"""Tables: sums, exact ranges, memory maps that are only read, and errors that name row and arm."""

import copy
import hashlib
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.common import seeded, totals

import gumbelrace as gr
from gumbelrace.errors import InvalidArgument, InvalidReward, RewardOutOfRange, ShapeMismatch

# Single rows, the first size that is read in blocks, the last block not full, two passes for the range.
SIZES = [100, 16_384, 20_001, 70_000]


def mapped(path, rewards, mode="r"):
    """Write `rewards` to a .npy file (C or Fortran order as they are) and map it."""
    fortran = rewards.flags.f_contiguous and not rewards.flags.c_contiguous
    file = np.lib.format.open_memmap(path, "w+", rewards.dtype, rewards.shape, fortran)
    file[:] = rewards
    file.flush()
    return np.lib.format.open_memmap(path, mode)


def assert_reads(population, rewards):
    """Check size, arms, exact range, sums, and that the exact method counts every reward once."""
    size, arms = np.shape(rewards)
    exact = np.asarray(rewards, np.float64)
    assert (population.size, population.arms, population.rewards) == (size, arms, size * arms)
    low, high = population.reward_range
    np.testing.assert_array_equal(low, exact.min(axis=0))
    np.testing.assert_array_equal(high, exact.max(axis=0))
    sums = exact.sum(axis=0)
    np.testing.assert_allclose(totals(population), sums, rtol=1e-12, atol=1e-9)
    for arm in range(arms if arms > 1 else 0):
        lead = np.where(np.arange(arms) == arm, 1e-3, 0.0)
        outcome = gr.Exact().best(population, lead - sums, seeded())
        assert (outcome.arm, outcome.evaluations, outcome.exhausted) == (arm, size * arms, True)


LAYOUTS = {
    "float64": lambda x: x,
    "float32": lambda x: x.astype(np.float32),
    "float16": lambda x: x.astype(np.float16),
    "int64": lambda x: (10 * x).astype(np.int64),
    "uint8": lambda x: (100 + 10 * x).astype(np.uint8),
    "bool": lambda x: x > 0.3,
    "fortran": np.asfortranarray,
    "reversed": lambda x: x[::-1, ::-1],
    "strided": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "big-endian": lambda x: x.astype(">f8"),
    "list": lambda x: x.tolist(),
}


@pytest.mark.parametrize("size", [1, 2, 100, 20_001])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_read(layout, size):
    rewards = LAYOUTS[layout](seeded(1).normal(size=(size, 3)))
    assert_reads(gr.table(rewards), rewards)


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("layout", ["float64", "float32", "int64", "uint8", "bool", "fortran"])
def test_every_layout_of_a_memory_map_is_read(tmp_path, layout, shuffled):
    rewards = LAYOUTS[layout](seeded(2).normal(size=(20_001, 3)))
    assert_reads(gr.table(mapped(tmp_path / "x.npy", rewards), shuffled=shuffled), rewards)


@given(
    arrays(
        st.sampled_from([np.float64, np.float32]),
        st.tuples(st.integers(1, 200), st.integers(1, 5)),
        elements=st.floats(-1e6, 1e6, width=32),
    ),
    st.booleans(),
)
@settings(max_examples=50, deadline=None, derandomize=True)
def test_any_small_table_is_read(rewards, shuffled):
    assert_reads(gr.table(rewards, shuffled=shuffled), rewards)


@pytest.mark.parametrize("size", [100, 20_001])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_table_is_a_copy(size, order, shuffled):
    rewards = np.array(seeded(3).normal(size=(size, 3)), order=order)
    population, kept = gr.table(rewards, shuffled=shuffled), rewards.copy()
    rewards[:] = np.nan
    assert_reads(population, kept)


@pytest.mark.parametrize("size", [100, 20_001])
def test_a_reshuffled_table_holds_the_same_rewards(size):
    rewards = seeded(4).normal(size=(size, 3))
    assert_reads(gr.table(rewards).reshuffled(seeded(5)), rewards)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))])
def test_a_copy_shares_nothing_that_shuffling_moves(copied):
    rewards = seeded(8).normal(size=(20_000, 2))
    first = gr.table(rewards)
    second = copied(first)
    for population, seed in ((first, 1), (second, 2)):
        population.draw_order(seeded(seed))
    for population in (first, second):
        np.testing.assert_array_equal(population.identity["rewards"], rewards)
        assert_reads(population, rewards)


def test_reshuffling_changes_what_a_draw_reads():
    rewards = seeded(6).normal(size=(20_000, 3), scale=0.02)
    population = gr.table(rewards)
    draws = [
        gr.sample(p, size=50, method=gr.Race(), rng=seeded())
        for p in (population, gr.table(rewards), population.reshuffled(seeded(7)))
    ]
    np.testing.assert_array_equal(draws[0].evaluations, draws[1].evaluations)
    assert (draws[0].evaluations != draws[2].evaluations).any()


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_a_memory_map_is_never_written(tmp_path, mode, shuffled):
    path = tmp_path / "x.npy"
    rewards = seeded(8).uniform(size=(20_001, 3))
    population = gr.table(mapped(path, rewards, mode), shuffled=shuffled)
    before = hashlib.sha256(path.read_bytes()).digest()
    for method in [gr.Exact(), gr.Race(), gr.Race(gr.methods.Serfling()), gr.Betting(), gr.LilUCB()]:
        gr.sample(population, size=3, method=method, rng=seeded())
    assert hashlib.sha256(path.read_bytes()).digest() == before


@pytest.mark.parametrize("shuffled", [False, True])
def test_range_of_a_memory_map_is_taken_when_a_method_needs_it(tmp_path, shuffled):
    """A pass over the file would stumble over the one reward of +inf, which the races do not read."""
    rewards = seeded(9).uniform(size=(50_000, 2)) + np.array([0.0, 3.0])
    rewards[777, 1] = np.inf
    file = mapped(tmp_path / "x.npy", rewards)
    population = gr.table(file, shuffled=shuffled)
    assert population.knows_range
    assert gr.Race().best(population, None, seeded(1)).evaluations <= 200
    for method in [gr.Betting(), gr.Race(gr.methods.Serfling()), gr.LilUCB()]:
        with pytest.raises(InvalidReward, match="row 777, arm 1 "):
            method.best(population, None, seeded(1))
    told = gr.table(file, shuffled=shuffled, reward_range=(0.0, 4.0))
    assert gr.Betting().best(told, None, seeded(1)).evaluations <= 200


@pytest.mark.parametrize("shuffled", [False, True])
def test_range_given_for_a_memory_map_is_checked_on_what_is_read(tmp_path, shuffled):
    rewards = seeded(10).uniform(size=(50_000, 2)) + np.array([0.0, 3.0])
    rewards[12_345, 1] = 4.5
    file = mapped(tmp_path / "x.npy", rewards)
    population = gr.table(file, shuffled=shuffled, reward_range=([0.0, 3.0], [1.0, 4.0]))
    np.testing.assert_array_equal(population.reward_range, [[0.0, 3.0], [1.0, 4.0]])
    assert gr.Race().best(population, None, seeded(1)).arm == 1
    with pytest.raises(RewardOutOfRange, match="row 12345, arm 1 "):
        gr.Exact().best(population, None, seeded(1))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("bad", "dtype"),
    [
        (np.nan, np.float64),
        (np.nan, np.float32),
        (np.inf, np.float64),
        (np.inf, np.float32),
        (1e151, np.float64),
        (-1e151, np.float64),
    ],
)
def test_bad_reward_is_named(tmp_path, size, bad, dtype):
    rewards = seeded(11).normal(size=(size, 3)).astype(dtype)
    row = size - 7
    rewards[row, 2] = bad
    name = f"row {row}, arm 2 "
    with pytest.raises(InvalidReward, match=name):
        gr.table(rewards)
    population = gr.table(mapped(tmp_path / "x.npy", rewards))
    with pytest.raises(InvalidReward, match=name):
        gr.Exact().best(population, None, seeded())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("bad", [-9.0, 9.0, -np.inf])
def test_reward_outside_the_given_range_is_named(tmp_path, size, bad):
    rewards = seeded(12).uniform(size=(size, 3))
    rewards[size // 3, 1] = bad
    name = f"row {size // 3}, arm 1 "
    with pytest.raises(RewardOutOfRange, match=name):
        gr.table(rewards, reward_range=(0.0, 1.0))
    population = gr.table(mapped(tmp_path / "x.npy", rewards), reward_range=(0.0, 1.0))
    with pytest.raises(RewardOutOfRange, match=name):
        gr.Exact().best(population, None, seeded())


def test_wider_range_is_accepted_and_the_exact_one_kept():
    rewards = seeded(13).uniform(size=(50, 3))
    assert_reads(gr.table(rewards, reward_range=(-1.0, 2.0)), rewards)


@pytest.mark.parametrize("shape", [(), (3,), (0, 3), (3, 0), (0, 0), (2, 2, 2)])
def test_shape_that_is_no_table(shape):
    with pytest.raises(ShapeMismatch, match="rewards has shape"):
        gr.table(np.zeros(shape))


@pytest.mark.parametrize("dtype", [complex, object, "U3", "M8[s]"])
def test_dtype_that_is_no_reward(dtype):
    with pytest.raises(InvalidArgument, match="dtype"):
        gr.table(np.zeros((3, 2), dtype=dtype))


@pytest.mark.parametrize("dtype", ["float16", ">f8", ">i4", "longdouble"])
def test_dtype_that_compiled_code_cannot_read_in_a_file(tmp_path, dtype):
    """In memory such rewards are converted; a file is read where it lies."""
    with pytest.raises(InvalidArgument, match="dtype"):
        gr.table(mapped(tmp_path / "x.npy", np.zeros((3, 2), dtype)))


def test_masked_entries_are_refused_and_a_mask_of_nothing_is_not():
    rewards = seeded(30).normal(size=(50, 2))
    with pytest.raises(InvalidArgument, match=r"masked.*filled"):
        gr.table(np.ma.masked_greater(rewards, 1.0))
    assert_reads(gr.table(np.ma.masked_greater(rewards, 100.0)), rewards)
    with pytest.raises(InvalidArgument, match=r"masked.*filled"):
        gr.table(list(np.ma.masked_greater(rewards, 1.0)))
    with pytest.raises(InvalidArgument, match=r"masked.*filled"):
        gr.table([[1.0, 2.0], [1.0, np.ma.masked]])
    assert_reads(gr.table(list(np.ma.masked_greater(rewards, 100.0))), rewards)


def test_more_than_double_precision_is_refused_where_it_would_be_rounded():
    rewards = np.ones((50, 2), np.longdouble)
    assert_reads(gr.table(rewards), rewards.astype(float))
    if np.finfo(np.longdouble).eps == np.finfo(np.float64).eps:
        return  # the platform has no more
    rewards[7, 1] += np.finfo(np.longdouble).eps
    with pytest.raises(InvalidArgument, match=r"rounded.*astype"):
        gr.table(rewards)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
@pytest.mark.parametrize("number", [2**53, 2**53 + 1, 2**62 + 1])
def test_integers_that_would_be_rounded_are_refused(tmp_path, dtype, number):
    rewards = np.ones((50, 2), dtype)
    assert gr.best(gr.table(rewards * (2**53 - 1)), rng=seeded()).tied
    rewards[7, 1] = number
    with pytest.raises(InvalidArgument, match="rounded"):
        gr.table(rewards)
    file = mapped(tmp_path / "large.npy", rewards)
    for method in [gr.Exact(), gr.Race(), gr.Betting()]:
        with pytest.raises(InvalidArgument, match="rounded"):
            method.best(gr.table(file), None, seeded())
    with pytest.raises(InvalidArgument, match="rounded"):
        gr.table(file, reward_range=(0.0, 2.0**60))


def mixed_frame(number):
    return pytest.importorskip("pandas").DataFrame({"a": [number], "b": [number + 1], "c": [0.5]})


MIXED = {
    "list": lambda number: [[number, number + 1, 0.5]],
    "list of arrays": lambda number: [np.array([number, number + 1]), np.array([0.5, 0.5])],
    "data frame": mixed_frame,
}


@pytest.mark.parametrize("make", MIXED.values(), ids=MIXED)
def test_integers_beside_other_numbers_are_refused_where_they_would_be_rounded(make):
    exact = make(2**53 - 2)
    np.testing.assert_array_equal(gr.table(exact).reward_range[1], np.max(exact, axis=0))
    for number in (2**53, -(2**62)):
        with pytest.raises(InvalidArgument, match="rounded"):
            gr.table(make(number))


def test_large_floating_point_numbers_in_a_list_are_rewards():
    assert gr.table([[2.0**62, 1, 0.5], [-np.inf, 2, 0.5]]).arms == 3


def test_a_repr_says_how_much_there_is():
    rewards = seeded().normal(size=(2000, 3))
    assert repr(gr.table(rewards)) == "Table(size=2_000, arms=3)"
    assert repr(gr.factors(lambda n, arms: rewards[n][:, arms], 2000, 3)) == "Factors(size=2_000, arms=3)"
    own = gr.independent(lambda n, arm: rewards[n, arm], [3, 40])
    assert repr(own) == "Independent(rewards=43, arms=2)"
