"""How compiled code draws integers, and shares NumPy's stream."""

import numba
import numpy as np
import pytest
from scipy.special import chdtrc
from tests.common import seeded

from gumbelrace.core import random
from gumbelrace.core.jit import OPTIONS
from gumbelrace.errors import InvalidGenerator

FALSE_ALARM = 1e-4


@numba.njit(**OPTIONS)
def draw(bits, bound, out):
    for i in range(len(out)):
        out[i] = random.below(bits, bound)


def integers(rng, bound, count):
    out = np.empty(count, np.int64)
    draw(random.bits_of(rng), bound, out)
    return out


def lemire(rng, bound):
    """Lemire's method on the upper half of NumPy's 64-bit words, in plain Python."""
    while True:
        word = int(rng.integers(0, 2**64 - 1, endpoint=True, dtype=np.uint64))
        product = (word >> 32) * bound
        if product % 2**32 >= 2**32 % bound:
            return product >> 32


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 1000, 3 * 2**29, 2**31 - 1])
@pytest.mark.parametrize(
    "generator", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64]
)
def test_compiled_code_draws_from_numpys_stream(bound, generator):
    ours, theirs = (np.random.Generator(generator(3)) for _ in range(2))
    assert integers(ours, bound, 200).tolist() == [lemire(theirs, bound) for _ in range(200)]
    assert ours.random() == theirs.random()


@pytest.mark.parametrize("bound", [2**32 + 1, 3 * 2**40, 2**53 - 1])
def test_large_integers_are_uniform(bound):
    """100,000 draws in 64 equal parts, chi-square, false alarms 1e-4; none is beyond the bound."""
    drawn = integers(seeded(5), bound, 100_000)
    assert drawn.min() >= 0
    assert drawn.max() < bound
    counts = np.bincount(drawn // (bound // 64 + 1), minlength=64)
    expected = 100_000 / 64
    assert chdtrc(63, ((counts - expected) ** 2).sum() / expected) > FALSE_ALARM


@pytest.mark.parametrize("bound", [2, 3, 10, 100])
def test_integers_are_uniform(bound):
    """100,000 draws, chi-square, false alarms 1e-4."""
    counts = np.bincount(integers(seeded(1), bound, 100_000), minlength=bound)
    assert len(counts) == bound
    expected = 100_000 / bound
    assert chdtrc(bound - 1, ((counts - expected) ** 2).sum() / expected) > FALSE_ALARM


def test_large_bounds_are_not_biased():
    """With bound 3·2^29 the words fall unevenly: without rejection a third would be twice as likely."""
    thirds = np.bincount(integers(seeded(2), 3 * 2**29, 90_000) % 3, minlength=3)
    assert chdtrc(2, ((thirds - 30_000) ** 2).sum() / 30_000) > FALSE_ALARM


@pytest.mark.parametrize("rng", [None, 0, np.random, np.random.RandomState(0), np.random.PCG64(0)])
def test_generator_is_checked(rng):
    with pytest.raises(InvalidGenerator, match="default_rng"):
        random.check_generator(rng)
    generator = seeded()
    assert random.check_generator(generator) is generator


@numba.njit(**OPTIONS)
def pick_many(bits, alias, out):
    for i in range(len(out)):
        out[i] = random.pick(bits, alias)


WEIGHTS = {
    "equal": np.ones(7),
    "one": np.array([0.0, 0.0, 3.0, 0.0]),
    "geometric": 2.0 ** -np.arange(12),
    "single": np.array([5.0]),
    "one heavy": np.r_[np.ones(40), 1000.0],
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_numbers_are_picked_by_their_weights(name):
    weights, drawn, rng = WEIGHTS[name], np.empty(20_000, np.int64), seeded(3)
    alias = random.alias_of(weights)
    pick_many(random.bits_of(rng), alias, drawn)
    counts, expected = np.bincount(drawn, minlength=len(weights)), weights / weights.sum() * len(drawn)
    assert np.all(counts[weights == 0.0] == 0)
    several = expected > 5.0
    chi = ((counts - expected)[several] ** 2 / expected[several]).sum()
    assert several.sum() == 1 or chdtrc(several.sum() - 1, chi) > FALSE_ALARM
    np.testing.assert_allclose(alias.chance, expected * len(weights) / len(drawn))


def test_an_alias_table_holds_the_chances_exactly():
    weights = seeded(4).lognormal(0.0, 3.0, 1000)
    alias = random.alias_of(weights)
    total = alias.keep.copy()
    np.add.at(total, alias.other, 1.0 - alias.keep)
    np.testing.assert_allclose(total, alias.chance, rtol=1e-9, atol=1e-9)
