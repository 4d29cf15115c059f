"""Races on rows that are drawn ahead: what is fetched, and the law of draws. No Ray is needed for that.

False-alarm rate of each statistical test: 1e-4 over seeds.
"""

import numpy as np
import pytest
from scipy.stats import chi2

import gumbelrace as gr
from gumbelrace.errors import InvalidArgument, InvalidReward, RewardOutOfRange, ShapeMismatch
from gumbelrace.ray import load_table, population
from gumbelrace.ray.ahead import FIRST, Order, block_starts

SIZES = (0, 30_000, 11_000, 59_000)
SHIFTS = np.array([0.0, 0.1, 0.02, 0.09])


def parts():
    rng = np.random.default_rng(0)
    return [rng.normal(SHIFTS, 1.0, (size, len(SHIFTS))) for size in SIZES]


@pytest.fixture(scope="module")
def rewards():
    return parts()


def table_of(rewards, loaded=None):
    def load(shard):
        if loaded is not None:
            loaded.append(shard)
        return dict(zip("abcd", rewards[shard].T, strict=True))

    return load_table(range(len(rewards)), load)


def test_rows_come_from_their_files_in_a_random_order(rewards):
    """Every row once, at places that do not depend on its file."""
    drawn = population(table_of(rewards))
    drawn.draw_order(np.random.default_rng(1))
    places, arms = np.arange(drawn.size), np.array([0, 2])
    found = drawn._rewards(places, arms)
    whole = np.concatenate(rewards)
    assert np.array_equal(found, whole[drawn._rows(0, drawn.size)][:, arms])
    assert sorted(drawn._rows(0, drawn.size)) == list(range(drawn.size))
    first = np.bincount(np.digitize(drawn._rows(0, 10_000), np.cumsum(SIZES[1:])[:-1]), minlength=3)
    expected = 10_000 * np.array(SIZES[1:]) / sum(SIZES)
    assert ((first - expected) ** 2 / expected).sum() < chi2.isf(1e-4, 2)


def test_a_race_that_ends_early_fetches_little_and_only_arms_still_in(rewards):
    loaded = []
    drawn = population(table_of(rewards, loaded))
    loaded.clear()
    asked = []
    fetch = drawn._fetched
    drawn._fetched = lambda number, arms: asked.append((number, arms)) or fetch(number, arms)
    found = gr.best(drawn, rng=1)
    assert found.name == "b"
    assert asked[0] == (0, [0, 1, 2, 3])
    assert all(len(arms) < 4 for number, arms in asked if number > 0)
    assert len(loaded) == 3 * len(asked)
    assert drawn.blocks_fetched == len(asked)
    assert gr.best(population(table_of(rewards)), rng=1).evaluations == found.evaluations


def test_draws_have_the_law(rewards):
    """Oracle: the softmax of sums; every draw has an order of its own. Negative control: another law."""
    scale = 0.3 / np.sqrt(sum(SIZES))
    small = [part[: len(part) // 10] * scale for part in rewards]
    drawn = gr.sample(population(table_of(small)), size=600, rng=2, reshuffle_every=1, check=False)
    counts = np.bincount(drawn.arms, minlength=4)
    sums = np.concatenate(small).sum(axis=0)
    chances = np.exp(sums - sums.max()) / np.exp(sums - sums.max()).sum()

    def distance(law):
        return ((counts - 600 * law) ** 2 / (600 * law)).sum()

    assert distance(chances) < chi2.isf(1e-4, 3)
    assert distance(chances[::-1]) > chi2.isf(1e-4, 3)


def test_little_memory_gives_the_same_answer(rewards):
    scale = 1.0 / np.sqrt(sum(SIZES))
    table = table_of([part * scale for part in rewards])
    found = []
    for memory in (1e9, 1e6):
        drawn = population(table, memory=memory)
        answers = gr.sample(drawn, size=4, rng=5, method=gr.Exact(), check=False)
        found.append(answers.arms.tolist())
    assert found[0] == found[1]
    assert drawn.blocks_fetched > len(block_starts(drawn.size, 10**9))
    held = sum(column.nbytes for block in drawn._kept.values() for column in block.values())
    assert held <= 1.2e6


def test_blocks_grow():
    starts = block_starts(10_000_000, 10**9)
    assert starts[:4].tolist() == [0, FIRST, 4 * FIRST, 16 * FIRST]
    assert starts[-1] == 10_000_000
    assert np.diff(block_starts(10_000_000, 1_000_000)).max() == 1_000_000


def test_an_order_can_be_read_from_anywhere():
    whole = Order(40_000, [7]).rows(0, 40_000)
    order = Order(40_000, [7])
    for first, last in ((100, 30_000), (30_000, 40_000), (5, 9)):
        assert np.array_equal(order.rows(first, last), whole[first:last])
    assert not np.array_equal(Order(40_000, [8]).rows(0, 100), whole[:100])


def test_a_bad_reward_is_named(rewards):
    bad = [part.copy() for part in rewards]
    bad[2][500, 1] = np.nan
    with pytest.raises(InvalidReward, match=r"row 30500, arm 'b'"):
        gr.best(population(table_of(bad)), rng=0, method=gr.Exact())
    with pytest.raises(RewardOutOfRange):
        gr.best(population(table_of(rewards), reward_range=(-1.0, 1.0)), rng=0)


@pytest.mark.parametrize("columns", [["a"], ["a", "a"], ["a", "z"]])
def test_columns_that_are_not_there_are_refused(rewards, columns):
    with pytest.raises(InvalidArgument, match="name two or more"):
        population(table_of(rewards), columns)


def test_shards_that_do_not_fit_are_named():
    def load(shard):
        return {"x": np.zeros(3)} if shard == "a" else {"y": np.zeros(3)}

    with pytest.raises(ShapeMismatch, match="shard b has the columns y"):
        load_table(["a", "b"], load)
    with pytest.raises(InvalidArgument, match="no shard"):
        load_table([], load)
    with pytest.raises(InvalidArgument, match="gave a list"):
        load_table(["a"], lambda shard: [1.0])
    lengths = iter([3, 4])
    table = load_table(["a"], lambda shard: {"x": np.zeros(next(lengths))})
    with pytest.raises(ShapeMismatch, match="has 4 rows now"):
        list(table.chunks())


def test_types_are_those_that_hold_all_shards():
    table = load_table([np.float32, np.int16], lambda kind: {"x": np.ones(5, kind)})
    assert [(first, str(arrays["x"].dtype)) for first, arrays in table.chunks(rows=3)] == [
        (0, "float32"),
        (3, "float32"),
        (5, "float32"),
        (8, "float32"),
    ]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            2**60 + np.arange(9),
            r"column 'b' of 0 has whole numbers of 2\^53 and more, which would be rounded",
        ),
        (np.arange(9) + 1j, "column 'b' of 0 has complex128; convert it"),
        (np.array(list("abcdefghi")), "column 'b' of 0 has <U1; convert it"),
    ],
)
def test_numbers_that_would_change_are_refused(column, message):
    table = load_table([0], lambda shard: {"a": np.zeros(9), "b": column})
    with pytest.raises(InvalidArgument, match=message):
        gr.best(population(table), rng=0)


def test_a_shard_that_has_grown_is_refused():
    lengths = iter((100, 200))

    def load(shard):
        return dict(zip("ab", np.ones((2, next(lengths))), strict=True))

    with pytest.raises(ShapeMismatch, match="shard 0 has 200 rows now, and had 100 before"):
        gr.best(population(load_table([0], load)), rng=0)
