"""Reading without replacement: every row once, in uniform order, the same again after a rewind."""

from concurrent.futures import ThreadPoolExecutor
from itertools import repeat

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import chdtrc
from tests.common import ONE_OF_EACH, seeded

import gumbelrace as gr
from gumbelrace.core import orders as shuffle
from gumbelrace.core.jit import OPTIONS
from gumbelrace.core.orders import FEWEST
from gumbelrace.core.random import bits_of
from gumbelrace.core.rows import BLOCKS, IndependentRows, Rows, block_length
from gumbelrace.errors import InvalidArgument

FALSE_ALARM = 1e-4
SIZES = [1, 2, 127, 129, 16_383, 16_384, 20_001, 300_000]


@numba.njit(**OPTIONS)
def read_some(stream, bits, counts, rows, piece):
    done = 0
    for count in counts:
        shuffle.take(stream, bits, piece, count)
        rows[done : done + count] = piece[:count]
        done += count


@numba.njit(**OPTIONS)
def rewind(stream):
    shuffle.rewind(stream)


@numba.njit(**OPTIONS)
def unread(stream, size, part, rows):
    """Rows that a scan would still read after the first `part`; then forget what was marked."""
    until = shuffle.mark_rows(stream, size, part, rows[:13])
    count = shuffle.unseen_rows(stream, 0, size, until, rows)
    shuffle.forget_marks(stream)
    return count


@numba.njit(**OPTIONS)
def read_first_blocks(stream, bits, positions):
    """Positions of the first rows of draw after draw, the stream rewound after each."""
    piece = np.empty(positions.shape[1], np.int64)
    for draw in range(len(positions)):
        shuffle.take(stream, bits, piece, len(piece))
        positions[draw] = piece
        shuffle.rewind(stream)


@numba.njit(**OPTIONS)
def read_arms(streams, bits, counts, rows):
    """Read counts[arm] rows of every arm, one at a time in turn, then rewind."""
    one = np.empty(1, np.int64)
    for turn in range(counts.max()):
        for arm in range(len(counts)):
            if turn < counts[arm]:
                shuffle.take_from(streams, bits, arm, one, 1)
                rows[arm, turn] = one[0]
    shuffle.rewind_first(streams, len(streams.sizes))


def taken(stream, size, counts, seed=0):
    rows = np.empty(sum(counts), np.int64)
    rng = seeded(seed)
    read_some(stream, bits_of(rng), np.array(counts, np.int64), rows, np.empty(size + 1, np.int64))
    return rows


def pieces(rng, size):
    """Cut `size` rows into pieces of random lengths."""
    cuts = np.unique(rng.integers(0, size + 1, size=rng.integers(0, 12)))
    return np.diff(np.concatenate([[0], cuts, [size]])).tolist()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("block", [1, 16])
def test_every_row_is_visited_once_and_rewind_restores(size, block):
    with Rows(size, block).stream() as stream:
        counts = pieces(seeded(size), size)
        rows = taken(stream, size, counts)
        np.testing.assert_array_equal(np.sort(rows), np.arange(size))
        rewind(stream)
        blocks = stream.streams.blocks
        np.testing.assert_array_equal(blocks, np.arange(len(blocks)))
        np.testing.assert_array_equal(taken(stream, size, counts), rows)


@given(st.integers(1, 600) | st.integers(FEWEST - 2, 2 * FEWEST), st.integers(1, 40), st.integers(0, 2**32))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_any_size_and_block(size, block, seed):
    """How the rows are asked for changes neither their order nor what is left to scan."""
    rng = seeded(seed)
    with Rows(size, block).stream() as stream:
        rows = taken(stream, size, [size], seed)
        np.testing.assert_array_equal(np.sort(rows), np.arange(size))
        rewind(stream)
        part = int(rng.integers(0, size + 1))
        np.testing.assert_array_equal(taken(stream, size, pieces(rng, part), seed), rows[:part])
        left = np.empty(size + 1, np.int64)
        for fewer in {part, part // 2}:
            count = unread(stream, size, fewer, left)
            np.testing.assert_array_equal(left[:count], np.setdiff1d(np.arange(size), rows[:fewer]))
        count = unread(stream, size, part, left)
        np.testing.assert_array_equal(left[:count], np.setdiff1d(np.arange(size), rows[:part]))
        assert not stream.seen.any()


def assert_uniform(counts):
    """Check that all counts are equal but for chance: chi-square, false alarms 1e-4.

    A square of counts is a sum of permutation matrices: (n-1)/n of the statistic has (n-1)² degrees
    of freedom.
    """
    expected, n = counts.sum() / counts.size, len(counts)
    statistic = ((counts - expected) ** 2).sum() / expected
    if counts.ndim == 1:
        assert chdtrc(n - 1, statistic) > FALSE_ALARM
    else:
        assert chdtrc((n - 1) ** 2, statistic * (n - 1) / n) > FALSE_ALARM


def test_every_row_is_as_likely_at_every_position():
    """Single rows, 60,000 draws of all 12: how often each row came at each position."""
    positions = np.empty((60_000, 12), np.int64)
    rng = seeded(1)
    with Rows(12).stream() as stream:
        read_first_blocks(stream, bits_of(rng), positions)
    assert_uniform(np.array([np.bincount(column, minlength=12) for column in positions.T]))


def test_every_block_is_as_likely():
    """157 blocks of 128 of 20,000 rows: first and second block of 40,000 draws."""
    positions = np.empty((40_000, 160), np.int64)
    rng = seeded(2)
    with Rows(20_000, 128).stream() as stream:
        read_first_blocks(stream, bits_of(rng), positions)
    assert_uniform(np.bincount(positions[:, 0] // 128))
    second = np.where(positions[:, 0] // 128 == 156, positions[:, 32], positions[:, 128])
    assert_uniform(np.bincount(second // 128))


def test_the_check_of_uniformity_can_fail():
    positions = seeded(3).integers(0, 12, size=60_000)
    positions[:1500] = 0
    with pytest.raises(AssertionError):
        assert_uniform(np.bincount(positions))


def test_a_table_is_shuffled_uniformly():
    """Where row 0 of 16,384 lands in 3,200 shuffles, in 64 cells."""
    rng, lands = seeded(4), []
    table = gr.table(np.arange(16_384.0)[:, None])
    for _ in range(3_200):
        shuffled = table.reshuffled(rng)
        lands.append(int(np.argmin(shuffled._rewards[0])))
    assert_uniform(np.bincount(np.array(lands) // 256))


@pytest.mark.parametrize("size", [1, 16_383, 16_384, 100_000, 10_000_000, 2**31 - 1, 2**40])
def test_block_length(size):
    """There are at least a thousand blocks: given the order of the rows, draws differ almost as without."""
    length = block_length(size)
    assert length == 1 if size < 16_384 else length & (length - 1) == 0
    assert size < 16_384 or size // length >= BLOCKS


@pytest.mark.parametrize("size", [0, -1, 2**53])
def test_impossible_size(size):
    with pytest.raises(InvalidArgument, match="size"):
        Rows(size)


@given(st.lists(st.integers(0, 50) | st.just(FEWEST), min_size=1, max_size=6), st.integers(0, 2**32))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_arms_with_rows_of_their_own(sizes, seed):
    sizes, rng = np.array(sizes, np.int64), seeded(seed)
    counts = rng.integers(0, np.minimum(sizes, 50) + 1)
    with IndependentRows(sizes).streams() as streams:
        both = np.full((2, len(sizes), 51), -1)
        for rows in both:
            generator = seeded(seed)
            read_arms(streams, bits_of(generator), counts, rows)
    np.testing.assert_array_equal(both[0], both[1])
    for arm, count in enumerate(counts):
        rows = both[0, arm, :count]
        assert len(np.unique(rows)) == count
        assert ((rows >= 0) & (rows < sizes[arm])).all()


def test_arms_are_read_in_independent_orders():
    """First rows of two arms of 8, 40,000 draws: all 64 pairs are equally likely."""
    pairs = np.zeros(64, int)
    rows, rng = np.empty((2, 1), np.int64), seeded(5)
    with IndependentRows(np.array([8, 8])).streams() as streams:
        for _ in range(40_000):
            read_arms(streams, bits_of(rng), np.array([1, 1]), rows)
            pairs[8 * rows[0, 0] + rows[1, 0]] += 1
    assert_uniform(pairs)


def rewards_of(size):
    return seeded(6).uniform(size=(size, 4), high=4.0 / np.sqrt(size))


def populations(size, path):
    rewards = rewards_of(size)
    np.save(path / "x.npy", rewards)
    bounds = (rewards.min(axis=0), rewards.max(axis=0))
    yield gr.table(rewards)
    yield gr.table(np.load(path / "x.npy", mmap_mode="r"))
    yield gr.factors(lambda index, arms: rewards[np.ix_(index, arms)], size, 4, reward_range=bounds)


def draw(population, method, seed):
    found = gr.sample(population, size=4, method=method, rng=seeded(seed))
    return [*found.arms, *found.evaluations, *found.looks, *found.exhausted]


@pytest.mark.parametrize("size", [500, 20_001])
def test_equal_seeds_give_equal_results(size, tmp_path):
    """Of populations made anew, or already used once with the same seed, whatever ran in between."""
    methods = ONE_OF_EACH if size == 500 else ONE_OF_EACH[:-1]
    for population, fresh in zip(populations(size, tmp_path), populations(size, tmp_path), strict=True):
        for one in (population, fresh):
            draw(one, methods[0], 9)
        expected = [draw(fresh, method, 1) for method in methods]
        for seed, method in enumerate(methods):
            draw(population, method, seed + 2)
        assert [draw(population, method, 1) for method in methods[::-1]] == expected[::-1]


@pytest.mark.parametrize("seconds", [0.0, 1e9])
def test_results_do_not_depend_on_how_a_batch_is_cut(monkeypatch, seconds):
    population = gr.table(rewards_of(500))
    expected = [gr.sample(population, size=100, method=s, rng=seeded()).evaluations for s in ONE_OF_EACH]
    monkeypatch.setattr("gumbelrace.methods.base.SECONDS_A_CALL", seconds)
    for method, evaluations in zip(ONE_OF_EACH, expected, strict=True):
        again = gr.sample(population, size=100, method=method, rng=seeded()).evaluations
        np.testing.assert_array_equal(again, evaluations)


@pytest.mark.parametrize("size", [500, 20_001])
def test_threads_share_a_population(size, tmp_path):
    methods = (ONE_OF_EACH if size == 500 else ONE_OF_EACH[:-1]) * 4
    for population in populations(size, tmp_path):
        draw(population, methods[0], 0)
        expected = [draw(population, method, seed) for seed, method in enumerate(methods)]
        with ThreadPoolExecutor(2) as pool:
            found = pool.map(draw, repeat(population), methods, range(len(methods)))
            assert list(found) == expected


@pytest.mark.parametrize("head", [[0], [3, 17, 99], list(range(0, 100, 2))])
def test_rows_of_the_head_are_not_drawn(head):
    rows, rng = Rows(100, head=head), seeded(1)
    with rows.stream() as stream:
        got, piece = np.empty(rows.tail_size, np.int64), np.empty(100, np.int64)
        read_some(stream, bits_of(rng), np.array([1, 5, rows.tail_size - 6]), got, piece)
        assert sorted(got) == rows.tail.tolist() == sorted(set(range(100)) - set(head))
        count = unread(stream, rows.tail_size, 6, piece)
        assert sorted(piece[:count]) == sorted(set(rows.tail) - set(got[:6]))
        rewind(stream)


@numba.njit(**OPTIONS)
def pick_many(bits, chances, size, out):
    shuffle.pick_rows(bits, chances, size, out, len(out))


@pytest.mark.parametrize("head", [[], [1, 4]])
@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 3.0, 4.0, 5.0, 30.0]])
def test_rows_of_the_tail_are_picked_by_their_weights(head, weights):
    """20,000 rows, chi-square, false alarms 1e-4; with the chances of all rows in reverse it fails."""
    rows, drawn, rng = Rows(6, head=head, weights=weights), np.empty(20_000, np.int64), seeded(2)
    with rows.stream() as stream:
        pick_many(bits_of(rng), stream.weights, rows.tail_size, drawn)
        chance = np.delete(stream.weights.chance, head) if weights else np.ones(rows.tail_size)
    counts = np.bincount(drawn, minlength=6)
    assert (counts[head] == 0).all()
    # Chances are relative to those of an equal draw from the tail.
    expected = chance / rows.tail_size * len(drawn)
    np.testing.assert_allclose(expected.sum(), len(drawn))

    def fits(expected):
        return (
            chdtrc(len(expected) - 1, ((counts[rows.tail] - expected) ** 2 / expected).sum()) > FALSE_ALARM
        )

    assert fits(expected)
    assert weights is None or not fits(expected[::-1])


def test_estimates_from_picked_rows_are_unbiased():
    """Means of reward / chance, times its size, against the sum of the tail; z, false alarms 1e-4."""
    rewards, rng = seeded(3).uniform(0.1, 3.0, 50), seeded(5)
    rows, drawn = Rows(50, head=[3, 20], weights=rewards + 0.5), np.empty(40_000, np.int64)
    with rows.stream() as stream:
        pick_many(bits_of(rng), stream.weights, rows.tail_size, drawn)
        estimates = rows.tail_size * rewards[drawn] / stream.weights.chance[drawn]
    error = estimates.std() / np.sqrt(len(drawn))
    assert abs(estimates.mean() - rewards[rows.tail].sum()) < 3.9 * error
    assert abs(rows.tail_size * rewards[drawn].mean() - rewards[rows.tail].sum()) > 3.9 * error


def test_rows_are_joined_once():
    """Heads come together; weights are those of the first that has some."""
    one, other = Rows(10, head=[1, 5]), Rows(10, head=[5, 7], weights=np.arange(1.0, 11.0))
    both = one.joined(other)
    assert both.head.tolist() == [1, 5, 7]
    assert both.weights.tolist() == [1, 0, 3, 4, 5, 0, 7, 0, 9, 10]
    assert one.joined(other) is both is both.joined(other)
    assert one.joined(Rows(10)) is one
    assert other.joined(Rows(10, weights=np.ones(10))) is other
    np.testing.assert_array_equal(both.with_head([]).weights, np.arange(1.0, 11.0))


def test_bounds_are_relative_to_the_largest_of_the_tail():
    rows = Rows(4, head=[0], bounds=[8.0, 2.0, 4.0, 0.0])
    assert rows.bounds.tolist() == [0.0, 0.5, 1.0, 0.0]
    assert Rows(3, head=[2], bounds=[0.0, 0.0, 1.0]).bounds is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"head": [2, 1]}, "increasing"),
        ({"head": [2, 2]}, "increasing"),
        ({"head": [-1, 2]}, r"0\.\.9"),
        ({"head": [0.5]}, "integers"),
        ({"head": [1, 10]}, r"0\.\.9"),
        ({"head": range(10)}, "every row"),
        ({"weights": [1.0]}, "one for each of the 10 rows"),
        ({"weights": np.zeros(10)}, "not all of them zero"),
        ({"bounds": -np.ones(10)}, "not negative"),
    ],
)
def test_wrong_heads_and_weights_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Rows(10, **options)
