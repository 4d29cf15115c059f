"""Orders worked out from a key behave as uniform ones where a race looks: at sums of the first rows."""

import numba
import numpy as np
import pytest
from scipy.special import chdtrc, gammaincc, ndtr
from tests.common import seeded

from gumbelrace.core import orders as keyed
from gumbelrace.core.jit import OPTIONS
from gumbelrace.core.random import bits_of

FALSE_ALARM = 1e-4


@numba.njit(**OPTIONS)
def first_rows(bits, size, width, rows):
    """The first rows of order after order, each with a key of its own."""
    keys = np.empty((1, keyed.ROUNDS), np.uint64)
    for draw in range(len(rows)):
        keyed.draw_key(bits, keys, 0)
        keyed.take_permuted(keyed.words_of(keys, 0), width, 0, size, rows[draw], rows.shape[1])


@numba.njit(**OPTIONS)
def weak_rows(bits, size, width, rows):
    """The same with half of the rounds without effect: what the checks must notice."""
    keys = np.empty((1, keyed.ROUNDS), np.uint64)
    for draw in range(len(rows)):
        keyed.draw_key(bits, keys, 0)
        for i in range(rows.shape[1]):
            high, low = i >> (width // 2), i & ((1 << (width // 2)) - 1)
            low ^= int(keyed.scrambled(np.uint64(high), keys[0, 0], np.uint64(width // 2)))
            rows[draw, i] = ((high << (width // 2)) | low) % size


def drawn(reader, size, count, draws, seed):
    rng, rows = seeded(seed), np.empty((draws, count), np.int64)
    reader(bits_of(rng), size, keyed.width_of(size), rows)
    return rows


LAYOUTS = {
    "sorted": lambda n, size: n / size,
    "first half": lambda n, size: n < size / 2,
    "even": lambda n, size: n % 2,
    "bit 5": lambda n, size: (n >> 5) & 1,
    "parity of the bits": lambda n, size: np.bitwise_count(n) & 1,
    "every 64th": lambda n, size: n % 64 == 0,
    "the last 1%": lambda n, size: n >= 0.99 * size,
    "high bits times low bits": lambda n, size: ((n >> 7) * (n & 127)) % 2,
}


def worst_tail(rows, size):
    """Smallest p-value over layouts: are sums of T rows as in samples without replacement?

    Mean and variance of the standardised sums, against the exact ones (their own law is normal: 40,000
    sums of 100 rows and more).
    """
    everything, tails = np.arange(size), []
    for layout in LAYOUTS.values():
        values = np.asarray(layout(everything, size), float)
        draws, count = rows.shape
        spread = values.std() * np.sqrt((size - count) / (size - 1) / count)
        z = (np.asarray(layout(rows, size), float).mean(axis=1) - values.mean()) / spread
        tails.append(2.0 * ndtr(-abs(z.mean()) * np.sqrt(draws)))
        error = max(np.std(z**2), 1e-9) / np.sqrt(draws)
        tails.append(2.0 * ndtr(-abs(np.mean(z**2) - 1.0) / error))
    return min(tails)


@pytest.mark.parametrize(
    ("size", "count"), [(16_384, 128), (16_384, 4096), (20_000, 400), (1_000_000, 128)]
)
def test_sums_of_first_rows_are_those_of_a_uniform_order(size, count):
    """Claim: as without replacement, whatever the layout. False-alarm rate 1e-4 a test, 16 statistics."""
    draws = 40_000 if count < 1000 else 4000
    rows = drawn(first_rows, size, count, draws, seed=size + count)
    assert worst_tail(rows, size) > FALSE_ALARM / (2 * len(LAYOUTS))


def test_the_check_notices_rows_that_are_badly_mixed():
    assert worst_tail(drawn(weak_rows, 16_384, 128, 40_000, seed=1), 16_384) < 1e-12


@pytest.mark.parametrize("size", [16_384, 20_000])
def test_pairs_of_rows_are_equally_likely(size):
    """Cells of the first and the second row, 32 x 32, 200,000 orders: chi-square."""
    cell = drawn(first_rows, size, 2, 200_000, seed=size) * 32 // size
    counts = np.bincount(cell[:, 0] * 32 + cell[:, 1], minlength=1024)
    shares = np.bincount(np.arange(size) * 32 // size) / size
    expected = len(cell) * np.outer(shares, shares).ravel()
    assert chdtrc(1023, ((counts - expected) ** 2 / expected).sum()) > FALSE_ALARM


def test_orders_of_different_keys_are_different():
    """How many rows two orders have in common among their first 128: hypergeometric, mean 1."""
    rows = drawn(first_rows, 16_384, 128, 20_000, seed=3)
    common = np.array([len(np.intersect1d(a, b)) for a, b in zip(rows[::2], rows[1::2], strict=True)])
    assert gammaincc(common.sum(), len(common)) > FALSE_ALARM / 2
    assert gammaincc(common.sum(), len(common)) < 1.0 - FALSE_ALARM / 2
    assert common.max() < 12


@pytest.mark.parametrize(
    ("size", "width"), [(1, 0), (16_383, 0), (16_384, 14), (16_385, 15), (2**31 - 1, 31)]
)
def test_few_rows_have_no_key(size, width):
    assert keyed.width_of(size) == width
