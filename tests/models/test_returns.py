"""Returns of prices: what is mended is counted, and what is left is what plain arithmetic gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.models.returns import Overnight, Repairs, returns_from_prices, standardised

DAYS, BARS = 4, 6


def seeded(seed=0):
    return np.random.default_rng(seed)


def bars(seed=0):
    """Give times of four days with six prices each, five minutes apart, and prices."""
    day = np.datetime64("2024-03-04T09:35", "s") + np.arange(DAYS) * np.timedelta64(1, "D")
    times = (day[:, None] + np.arange(BARS) * np.timedelta64(300, "s")).ravel()
    return times, 100.0 * np.exp(np.cumsum(0.01 * seeded(seed).normal(size=len(times))))


def raw(returns):
    return returns.mean + returns.scale * returns.values


def log_returns(prices):
    return np.diff(np.log(prices.reshape(DAYS, BARS)), axis=1).ravel()


def test_overnight_returns_are_dropped_and_lags_run_on():
    times, prices = bars()
    found = returns_from_prices(times, prices)
    np.testing.assert_allclose(raw(found), log_returns(prices), atol=1e-14)
    assert found.lengths.tolist() == [DAYS * (BARS - 1)]
    assert found.repairs == Repairs(overnight=DAYS - 1)
    np.testing.assert_array_equal(found.times, times.reshape(DAYS, BARS)[:, 1:].ravel())


def test_overnight_returns_are_kept():
    times, prices = bars()
    found = returns_from_prices(times, prices, overnight=Overnight.KEPT)
    np.testing.assert_allclose(raw(found), np.diff(np.log(prices)), atol=1e-14)
    assert found.lengths.tolist() == [DAYS * BARS - 1]
    assert found.repairs == Repairs()


def test_every_day_is_a_segment():
    times, prices = bars()
    found = returns_from_prices(times, prices, overnight=Overnight.NEW_SEGMENT)
    np.testing.assert_allclose(raw(found), log_returns(prices), atol=1e-14)
    assert found.lengths.tolist() == [BARS - 1] * DAYS
    assert found.repairs == Repairs(overnight=DAYS - 1)


def test_returns_are_standardised_over_all_segments():
    times, prices = bars()
    found = returns_from_prices(times, prices, np.arange(len(times)) >= 2 * BARS)
    assert found.values.mean() == pytest.approx(0.0, abs=1e-12)
    assert found.values.std() == pytest.approx(1.0)
    assert found.lengths.tolist() == [2 * (BARS - 1)] * 2


@pytest.mark.parametrize("overnight", Overnight)
def test_no_return_crosses_a_segment(overnight):
    """Two series at other levels, one after the other or row by row: no return is as large as the jump."""
    times, prices = bars()
    both, level = np.concatenate([times, times]), np.concatenate([prices, 1e6 * prices])
    label = np.repeat(["x", "a"], len(times))
    expected = returns_from_prices(both, level, label, overnight)
    assert np.abs(raw(expected)).max() < 0.1
    mixed = np.argsort(np.tile(np.arange(len(times)), 2), kind="stable")
    found = returns_from_prices(both[mixed], level[mixed], label[mixed], overnight)
    np.testing.assert_allclose(found.values, expected.values)
    np.testing.assert_array_equal(found.lengths, expected.lengths)
    assert found.repairs == expected.repairs
    assert found.repairs.unsorted == 0


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_disorder_is_mended_and_counted(seed):
    """Shuffled rows, doubles that come first, holes and prices that are none: the returns stay the same."""
    rng, (times, prices) = seeded(seed), bars()
    order = rng.permutation(len(times))
    doubles = rng.integers(0, len(times), 5)
    bad = np.array([0.0, -3.0, np.inf, np.nan])
    when = np.concatenate([times[doubles], times[order], times[:4]])
    what = np.concatenate([np.full(5, 55.0), prices[order], bad])
    when = np.append(when, np.datetime64("NaT", "s"))
    found = returns_from_prices(when, np.append(what, 1.0))
    np.testing.assert_allclose(raw(found), log_returns(prices), atol=1e-13)
    assert found.repairs._replace(unsorted=0) == Repairs(2, 3, 0, 5, DAYS - 1, 0)
    assert (found.repairs.unsorted > 0) == bool((np.diff(when[:-5]) < np.timedelta64(0, "s")).any())


def test_rows_that_step_back_are_counted():
    times, prices = bars()
    order = np.arange(len(times))
    order[[2, 3]] = 3, 2
    assert returns_from_prices(times[order], prices[order]).repairs.unsorted == 1


def test_gaps_are_counted_and_stated():
    times, prices = bars()
    keep = np.delete(np.arange(len(times)), [2, 9])
    found = returns_from_prices(times[keep], prices[keep])
    assert found.repairs == Repairs(overnight=DAYS - 1, gaps=2)
    assert str(found.repairs) == f"{DAYS - 1} overnight, 2 gaps"
    assert str(Repairs()) == "none"
    assert str(Repairs(not_positive=2)) == "2 not positive"


@pytest.mark.parametrize(
    ("times", "prices", "complaint"),
    [
        ([], [], "0 usable prices"),
        (["2024-01-02"], [1.0], "1 usable prices"),
        (["2024-01-02", "2024-01-03"], [1.0, np.nan], r"1 usable prices.*1 missing"),
        (["2024-01-02", "2024-01-03"], [1.0, 2.0], "2 usable prices"),  # one return, and it is overnight
        (["2024-01-02T10", "2024-01-02T11", "2024-01-02T12"], [1.0, 1.0, 1.0], "no variance"),
    ],
)
def test_too_little_is_an_error(times, prices, complaint):
    with pytest.raises(InvalidArgument, match=complaint):
        returns_from_prices(np.array(times, "datetime64[s]"), np.array(prices))


def test_wrong_arguments_are_explained():
    times, prices = bars()
    with pytest.raises(ShapeMismatch, match="must be"):
        returns_from_prices(times[1:], prices)
    with pytest.raises(ShapeMismatch, match="must be"):
        returns_from_prices(times, prices, [1, 2])
    with pytest.raises(InvalidArgument, match="datetime64"):
        returns_from_prices(np.arange(len(prices)), prices)
    with pytest.raises(InvalidArgument, match=r"Overnight\.DROPPED"):
        returns_from_prices(times, prices, overnight="dropped")
    with pytest.raises(InvalidArgument, match="return 1 is not finite"):
        standardised([0.1, np.nan, 0.2])
    with pytest.raises(ShapeMismatch, match=r"\(n,\)"):
        standardised([[0.1, 0.2]])
    with pytest.raises(InvalidArgument, match="no variance"):
        standardised([])
