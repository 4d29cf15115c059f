"""The Gaussian walk against the paper's table, two other methods and simulated sampling."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import bdtr, bdtrc, ndtr, ndtri, owens_t

from gumbelrace.errors import InvalidArgument
from gumbelrace.methods.gaussian_walk import b_normal, crossing_probability
from gumbelrace.paper.bounds import paper_levels

FALSE_ALARM = 1e-4
READINGS = pytest.mark.parametrize("two_sided", [False, True], ids=["one-sided", "two-sided"])


def computed_table(deltas, fractions, two_sided):
    return np.array([[b_normal(d, pi, two_sided) for pi in fractions] for d in deltas])


def simpson_probability(bound, first_fraction, two_sided):
    """Return the crossing probability by Simpson's rule and the A_t, B_t printed in Corollary 1."""
    low = -bound if two_sided else min(bound, 0.0) - 10.0
    x, step = np.linspace(low, bound, 801, retstep=True)
    weight = step / 3.0 * np.array([1.0] + [4.0, 2.0] * 399 + [4.0, 1.0])
    density = np.exp(-(x**2) / 2.0) / np.sqrt(2.0 * np.pi)
    total, before = ndtr(-bound), first_fraction
    while (pi := 2.0 * before) < 1.0:
        a_t = before * (1.0 - pi) / (pi * (1.0 - before))
        b_t = (pi - before) / (pi * (1.0 - before))
        mean = a_t * np.sqrt((1.0 - before) / before * pi / (1.0 - pi)) * x
        total += np.sum(weight * density * ndtr((mean - bound) / np.sqrt(b_t)))
        kernel = np.exp(-((x[:, None] - mean) ** 2) / (2.0 * b_t)) / np.sqrt(2.0 * np.pi * b_t)
        density, before = kernel @ (weight * density), pi
    return total


@pytest.fixture(scope="module")
def sampled_walks():
    """Return (20000, 6) standardised means of 10, 20, ..., 320 of 640 normal scores, shuffled."""
    rng = np.random.default_rng(20160619)
    draws, size, looks = 20_000, 640, 10 * 2 ** np.arange(6)
    rewards = ndtri((np.arange(size) + 0.5) / size)
    order = rng.permuted(np.tile(rewards, (draws, 1)), axis=1)
    means = np.cumsum(order, axis=1)[:, looks - 1] / looks
    return means / (rewards.std() * np.sqrt((1.0 - (looks - 1) / (size - 1)) / looks))


def upward_exits(walks, bound, two_sided):
    """Count the walks that cross upward, or whose first exit from [-bound, bound] is upward."""
    outside = np.abs(walks) > bound if two_sided else walks > bound
    first = np.take_along_axis(walks, outside.argmax(axis=1)[:, None], axis=1)[:, 0]
    return int(np.sum(outside.any(axis=1) & (first > bound)))


def is_binomial(count, draws, p):
    """Say whether neither tail of Binomial(draws, p) at `count` is below half the alarm rate."""
    return min(bdtr(count, draws, p), bdtrc(count - 1, draws, p)) > FALSE_ALARM / 2.0


def test_two_sided_reading_is_the_printed_table():
    """Claim: two-sided B is the paper's table within 0.003. Oracle: its 210 entries up to 0.37."""
    deltas, fractions, printed = paper_levels()
    assert printed.shape == (39, 6)
    kept = deltas <= 0.37
    computed = computed_table(deltas[kept], fractions, two_sided=True)
    np.testing.assert_allclose(computed, printed[kept], rtol=0.0, atol=0.003)


def test_one_sided_reading_is_not_the_printed_table():
    """Negative control: one-sided B misses every entry from 0.13 to 0.37 by more than 0.003."""
    deltas, fractions, printed = paper_levels()
    kept = (deltas >= 0.13) & (deltas <= 0.37)
    computed = computed_table(deltas[kept], fractions, two_sided=False)
    assert np.min(computed - printed[kept]) > 0.003


def test_readings_agree_for_small_delta():
    """Claim: up to delta = 0.05 one-sided B exceeds two-sided B by less than 0.004."""
    deltas, fractions, _ = paper_levels()
    small = deltas[deltas <= 0.05]
    excess = computed_table(small, fractions, False) - computed_table(small, fractions, True)
    assert np.all(excess > -1e-9)
    assert np.all(excess < 0.004)


ONE_SIDED = [1e-12, 1e-6, 1e-3, 0.05, 0.3, 0.7, 0.999]
TWO_SIDED = [1e-12, 1e-6, 1e-3, 0.05, 0.3, 0.49]
CASES = [(d, False) for d in ONE_SIDED] + [(d, True) for d in TWO_SIDED]


@pytest.mark.parametrize("first_fraction", [1e-4, 0.013, 0.125, 0.3, 0.4999])
@pytest.mark.parametrize(("delta", "two_sided"), CASES)
def test_b_agrees_with_simpson(delta, two_sided, first_fraction):
    """Claim: B is right within 1e-6. Oracle: Simpson's rule on 801 points brackets delta."""
    bound = b_normal(delta, first_fraction, two_sided)
    above = simpson_probability(bound - 1e-6, first_fraction, two_sided)
    below = simpson_probability(bound + 1e-6, first_fraction, two_sided)
    assert below < delta < above


@READINGS
def test_thirty_looks_agree_with_simpson(two_sided):
    """Claim: P is right within 1e-8, relative, over 30 looks at P near 1e-6. Oracle: Simpson."""
    expected = simpson_probability(5.3, 1e-9, two_sided)
    assert crossing_probability(5.3, 1e-9, two_sided) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("bound", [-2.0, 0.0, 1.5, 4.0, 7.0])
@pytest.mark.parametrize("pi", [0.25, 0.3, 0.4999])
def test_two_looks_have_a_closed_form(pi, bound):
    """Claim: P is right within 1e-10, relative, over two looks. Oracle: Owen's T function."""
    r = np.sqrt((1.0 - 2.0 * pi) / (2.0 * (1.0 - pi)))
    expected = ndtr(-bound) + 2.0 * owens_t(bound, np.sqrt((1.0 - r) / (1.0 + r)))
    assert crossing_probability(bound, pi) == pytest.approx(expected, rel=1e-10)


@READINGS
@pytest.mark.parametrize("delta", [0.01, 0.1, 0.4])
def test_sampling_without_replacement_crosses_with_probability_delta(sampled_walks, delta, two_sided):
    """Claim: means of rows read without replacement cross B with probability delta.

    Oracle: 20,000 shuffles of 640 normal scores, seed 20160619, binomial tails, false-alarm rate
    1e-4 (per case). Negative control: 0.9 B must fail.
    """
    draws = len(sampled_walks)
    bound = b_normal(delta, 10 / 640, two_sided)
    assert is_binomial(upward_exits(sampled_walks, bound, two_sided), draws, delta)
    assert not is_binomial(upward_exits(sampled_walks, 0.9 * bound, two_sided), draws, delta)


@READINGS
@pytest.mark.parametrize("first_fraction", [0.5, 0.75, 0.999])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.05, 0.49])
def test_single_look_is_the_normal_quantile(delta, first_fraction, two_sided):
    """Claim: with one look B is the upper quantile. Oracle: scipy.special.ndtri."""
    assert b_normal(delta, first_fraction, two_sided) == pytest.approx(-ndtri(delta), abs=1e-12)
    assert crossing_probability(-ndtri(delta), first_fraction, two_sided) == pytest.approx(delta)


@pytest.mark.parametrize(
    ("delta", "first_fraction", "two_sided"),
    [
        (5e-324, 1e-9, False),
        (5e-324, 1e-9, True),
        (np.nextafter(1.0, 0.0), 1e-9, False),
        (np.nextafter(1.0, 0.0), 1e-300, False),
        (np.nextafter(0.5, 0.0), 1e-9, True),
        (0.1, np.nextafter(1.0, 0.0), False),
        (0.1, np.nextafter(0.5, 0.0), True),
    ],
)
@pytest.mark.filterwarnings("error")
def test_ends_of_the_ranges_lie_between_one_look_and_union_bound(delta, first_fraction, two_sided):
    """Claim: every allowed float has an answer, between the bounds of one look and of all looks."""
    looks = np.sum(first_fraction * 2.0 ** np.arange(1000) < 1.0)
    bound = b_normal(delta, first_fraction, two_sided)
    highest = 39.0 if delta < 1e-300 else -ndtri(delta / looks)
    assert -ndtri(delta) - 1e-9 <= bound <= highest + 1e-9


@READINGS
def test_far_bounds_and_narrow_floats(two_sided):
    """Claim: P is 0 far above, 1 far below, 0.5 for an empty interval; float32 is read exactly."""
    assert crossing_probability(1e9, 0.01, two_sided) == 0.0
    assert crossing_probability(-1e9, 0.01) == 1.0
    assert crossing_probability(0.0, 0.01, two_sided=True) == pytest.approx(0.5, abs=1e-15)
    narrow = np.float32(0.01)
    assert b_normal(0.1, narrow, two_sided) == b_normal(0.1, float(narrow), two_sided)
    wide = crossing_probability(2.0, float(narrow), two_sided)
    assert crossing_probability(np.float32(2.0), narrow, two_sided) == wide


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (b_normal, (0.0, 0.1), r"delta is 0\.0; it must lie in \(0, 1\)"),
        (b_normal, (1.0, 0.1), r"delta is 1\.0; it must lie in \(0, 1\)"),
        (b_normal, (np.nan, 0.1), r"delta is nan; it must lie in \(0, 1\)"),
        (b_normal, (0.5, 0.1, True), r"delta is 0\.5; it must lie in \(0, 0\.5\)"),
        (b_normal, (0.05, 0.0), r"first_fraction is 0\.0; it must lie in \(0, 1\)"),
        (b_normal, (0.05, 1.0), r"first_fraction is 1\.0; it must lie in \(0, 1\)"),
        (crossing_probability, (2.0, -0.1), r"first_fraction is -0\.1; it must lie in \(0, 1\)"),
        (crossing_probability, (2.0, np.nan), r"first_fraction is nan; it must lie in \(0, 1\)"),
        (crossing_probability, (np.inf, 0.1), "bound is inf; it must be finite"),
        (crossing_probability, (np.nan, 0.1, True), "bound is nan; it must be finite"),
        (crossing_probability, (-1.0, 0.1, True), r"bound is -1\.0; .* not negative"),
    ],
)
def test_invalid_arguments_are_named(function, arguments, message):
    with pytest.raises(InvalidArgument, match=message):
        function(*arguments)


fractions = st.floats(1e-5, 0.999)


@READINGS
@given(first_fraction=fractions, deltas=st.tuples(*[st.floats(1e-8, 0.499)] * 2))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_b_falls_with_delta(two_sided, first_fraction, deltas):
    small, large = sorted(deltas)
    bounds = [b_normal(d, first_fraction, two_sided) for d in (small, large)]
    assert bounds[0] >= bounds[1] - 1e-9


@READINGS
@given(first_fraction=fractions, bounds=st.tuples(*[st.floats(0.0, 7.0)] * 2))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_probability_falls_with_bound(two_sided, first_fraction, bounds):
    low, high = (crossing_probability(b, first_fraction, two_sided) for b in sorted(bounds))
    assert low >= high * (1.0 - 1e-10)


@READINGS
@given(first_fraction=fractions, delta=st.floats(1e-8, 0.499))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_earlier_first_look_needs_a_larger_bound(two_sided, first_fraction, delta):
    """Claim: one more look, at half the first fraction, raises B: it adds a chance to cross."""
    later = b_normal(delta, first_fraction, two_sided)
    earlier = b_normal(delta, first_fraction / 2.0, two_sided)
    assert earlier >= later - 1e-9


@given(first_fraction=fractions, delta=st.floats(1e-8, 0.499))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_readings_are_ordered_and_inverse(first_fraction, delta):
    """Claim: one-sided B is at least the two-sided one, and both give delta back."""
    one, two = (b_normal(delta, first_fraction, two_sided) for two_sided in (False, True))
    assert one >= two - 1e-9
    assert crossing_probability(one, first_fraction) == pytest.approx(delta, rel=1e-8)
    assert crossing_probability(two, first_fraction, True) == pytest.approx(delta, rel=1e-8)
