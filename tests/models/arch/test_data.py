"""Data of ARCH models: what is mended is counted, the rest is plain arithmetic, rows keep to segments."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.models.arch.cases import seeded

from gumbelrace.errors import InvalidArgument, InvalidGenerator, ShapeMismatch
from gumbelrace.models.arch import lagged, simulate
from gumbelrace.models.arch.data import ALPHA, NU, Overnight, Repairs, returns_from_prices, standardised

DAYS, BARS = 4, 6


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
        (["2024-01-02T10", "2024-01-02T11", "2024-01-02T12"], [1.0, 1.0, 1.0], "no variance"),
    ],
)
def test_too_little_is_an_error(times, prices, complaint):
    with pytest.raises(InvalidArgument, match=complaint):
        returns_from_prices(np.array(times, "datetime64[s]"), np.array(prices))


def test_only_nights_name_the_remedy():
    times = np.array(["2024-01-02", "2024-01-03", "2024-01-04"], "datetime64[s]")
    with pytest.raises(InvalidArgument, match=r"3 usable prices.*--overnight kept"):
        returns_from_prices(times, [1.0, 2.0, 1.0], overnight=Overnight.DROPPED)


def test_daily_prices_are_recognised():
    """Most days have one price: returns from day to day are all there are, but of bars they are dropped."""
    times = np.datetime64("2024-01-01", "D") + np.arange(20)
    found = returns_from_prices(times, np.arange(1.0, 21.0))
    assert (len(found.values), found.overnight, str(found.repairs)) == (19, Overnight.KEPT, "none")
    assert returns_from_prices(*bars()).overnight is Overnight.DROPPED


@pytest.mark.parametrize(
    ("step", "hole", "longest", "cut"),
    [
        ("5m", "10D", {}, False),
        ("5m", "15D", {}, True),
        ("5m", "15D", {"longest_gap": 30.0}, False),
        ("5m", "1D", {"longest_gap": 0.5}, True),
        ("1D", "10D", {}, False),
        ("1D", "400D", {}, True),
        ("30D", "120D", {}, False),  # four usual steps
        ("30D", "200D", {}, True),
    ],
)
def test_series_are_cut_at_long_gaps(step, hole, longest, cut):
    count, unit = int(step[:-1]), step[-1]
    times = np.datetime64("2020-01-01T09:00", "m") + np.arange(40) * np.timedelta64(count, unit)
    times[25:] += np.timedelta64(int(hole[:-1]), "D")
    prices = np.exp(np.random.default_rng(0).normal(size=40))
    found = returns_from_prices(times, prices, **longest)
    assert found.lengths.tolist() == ([24, 14] if cut else [found.lengths.sum()])
    assert found.repairs.long_gaps == len(found.holes) == cut
    if cut:
        assert found.holes[0] == (times[24], times[25])
        assert found.repairs.overnight == 0


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


def by_hand(returns, lengths, lags):
    """Give (r_t², r²_{t-1}, ..., r²_{t-lags}) of every row, in order of time."""
    rows, start = [], 0
    for length in lengths:
        segment = returns[start : start + length]
        rows += [[segment[t - i] ** 2 for i in range(lags + 1)] for t in range(lags, length)]
        start += length
    return np.array(rows)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=6), st.integers(1, 5), st.integers(0, 99))
def test_lags_stay_in_their_segments(lengths, lags, seed):
    labels = np.repeat(np.arange(len(lengths)), lengths)
    assume(len(labels) > 1)
    returns = standardised(seeded(seed).normal(size=len(labels)), labels)
    expected = by_hand(returns.values, lengths, lags)
    if len(expected) < lags + 2:
        with pytest.raises(InvalidArgument, match=f"{len(expected)} rows have {lags} lags"):
            lagged(returns, lags)
        return
    data = lagged(returns, lags)
    assert data.size == len(expected)
    assert data.short == sum(length <= lags for length in lengths)
    found = data.squares[data.where[:, None] + np.arange(lags + 1)]
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    np.testing.assert_allclose(data.returns**2, expected[:, 0], rtol=1e-14)


def test_the_design_has_a_column_of_ones_and_one_for_each_lag():
    returns = standardised(seeded().normal(size=40))
    data, expected = lagged(returns, 6), by_hand(returns.values, [40], 6)
    for order in (1, 6):
        design = data.design(order)
        np.testing.assert_array_equal(design[:, 0], 1.0)
        np.testing.assert_allclose(design[:, 1:], expected[:, 1 : order + 1], rtol=1e-14)
    np.testing.assert_allclose(data.design(6, np.array([4, 2]))[:, 1:], expected[[4, 2], 1:], rtol=1e-14)
    np.testing.assert_array_equal(data.squares, returns.values[::-1] ** 2)  # the design was a copy


def test_all_orders_have_the_rows_of_the_largest():
    returns = standardised(seeded().normal(size=100))
    np.testing.assert_array_equal(lagged(returns, 30).returns, lagged(returns, 5).returns[25:])


def test_simulated_returns_follow_the_recursion():
    """Oracle: r_t / σ_t, computed here, are the draws of Student's t."""
    alpha, nu = np.array([0.3, 0.2, 0.1]), 5.0
    returns = simulate(300, seeded(3), alpha, nu, burn_in=50)
    z = seeded(3).standard_t(nu, 350)
    s = alpha[0] + alpha[1] * returns[1:-1] ** 2 + alpha[2] * returns[:-2] ** 2
    np.testing.assert_allclose(returns[2:] / np.sqrt(s), z[52:], rtol=1e-12)


def test_simulated_returns_have_their_variance():
    """Variance α_0 k / (1 - k Σα) with k = ν / (ν - 2); seed 4; 20 batch means, fails at 5 standard errors.

    Negative control: the variance without the factor k, that of unit-variance innovations.
    """
    squares = simulate(400_000, seeded(4), nu=8.0) ** 2
    k, total = 8.0 / 6.0, sum(ALPHA[1:])
    batches = squares.reshape(20, -1).mean(axis=1)
    error = batches.std(ddof=1) / np.sqrt(20)
    assert abs(batches.mean() - ALPHA[0] * k / (1 - k * total)) < 5 * error
    assert abs(batches.mean() - ALPHA[0] / (1 - total)) > 5 * error


def test_what_cannot_be_simulated_is_explained():
    for alpha in ([0.1], [0.0, 0.2], [0.1, -0.2], [[0.1, 0.2]]):
        with pytest.raises(InvalidArgument, match="alpha is"):
            simulate(10, seeded(), alpha)
    for alpha, nu in (([0.1, 0.7], NU), ([0.1, 0.2], 2.0)):
        with pytest.raises(InvalidArgument, match="no variance"):
            simulate(10, seeded(), alpha, nu)
    with pytest.raises(InvalidArgument, match="size"):
        simulate(0, seeded())
    with pytest.raises(InvalidGenerator):
        simulate(10, 0.5)
    assert (simulate(10, 3) == simulate(10, seeded(3))).all()
    with pytest.raises(InvalidArgument, match="lags"):
        lagged(standardised(seeded().normal(size=40)), 0)
