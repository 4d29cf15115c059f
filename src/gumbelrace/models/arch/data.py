"""Data of ARCH models: standardised returns, and rows of them with their lags.

Returns r_t = log(p_t / p_{t-1}) are taken less their mean and over their standard deviation. Prices as they
come have holes, doubles and nights. What is mended is counted, never silent.

Rows are the returns that have `lags` predecessors in their segment: those of the largest order, so that
models of all orders have the same rows. The squares lie backwards in time: those of a row and its lags
follow one another, and a row costs no memory of its own.
"""

import hashlib
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumbelrace.core.jit import kernel
from gumbelrace.core.random import Rng, as_generator
from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.population.base import checked_count

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Times = NDArray[np.datetime64]
# A return over more than this many times the usual step is counted as one over a gap.
GAP = 1.5
# Series are cut where no price is for more than so many days (no holiday lasts as long), and usual steps.
LONG_DAYS, LONG_STEPS = 14.0, 5.0
# An ARCH(10) whose order is plain in some 10,000 returns; their variance is about 1.
ALPHA = (0.12, *[0.055] * 10)
NU = 6.0


class Overnight(Enum):
    """What becomes of the return from the last price of a day to the first of the next.

    DROPPED: it is left out, and the lags of a morning reach back into the day before. KEPT: it is a return
    like any other. NEW_SEGMENT: it is left out, and every day is a segment, which lags never leave.
    """

    DROPPED = "dropped"
    KEPT = "kept"
    NEW_SEGMENT = "new-segment"


class Repairs(NamedTuple):
    """What was done to a series of prices, in numbers.

    Attributes
    ----------
    missing : int
        Rows without a time or a price: left out.
    not_positive : int
        Rows whose price is zero, negative or infinite: left out.
    unsorted : int
        Rows that come before an earlier one of their segment: sorted by time.
    duplicates : int
        Rows whose time comes again later in the file: left out, so that the last one counts.
    overnight : int
        Returns from one day to another: left out.
    gaps : int
        Returns within a day over more than the usual step, for example a lunch break: kept.
    long_gaps : int
        Gaps of more than `longest_gap` days: the series is cut there.
    """

    missing: int = 0
    not_positive: int = 0
    unsorted: int = 0
    duplicates: int = 0
    overnight: int = 0
    gaps: int = 0
    long_gaps: int = 0

    def __str__(self) -> str:
        found = [f"{count} {name.replace('_', ' ')}" for name, count in self._asdict().items() if count]
        return ", ".join(found) or "none"


NONE = Repairs()


@dataclass(frozen=True, eq=False)
class Returns:
    """Standardised returns, one segment after another.

    Attributes
    ----------
    values : ndarray of shape (n,)
        (return - mean) / scale: mean 0 and variance 1 over all segments together.
    lengths : ndarray
        Number of returns in each segment.
    mean, scale : float
        What was subtracted, and by what was divided: return = mean + scale * value.
    times : ndarray of shape (n,), optional
        When each return ends.
    repairs : Repairs
        What was mended.
    holes : tuple of pairs of times
        The long gaps at which the series was cut: last price before and first one after each.
    overnight : Overnight, optional
        What became of returns from one day to another.

    Examples
    --------
    >>> returns = standardised([0.01, -0.01, 0.03])
    >>> returns.values.round(3), round(returns.mean, 3), round(returns.scale, 4)
    (array([ 0.   , -1.225,  1.225]), 0.01, 0.0163)
    """

    values: Floats
    lengths: Indices
    mean: float
    scale: float
    times: Times | None = None
    repairs: Repairs = NONE
    holes: tuple[tuple[np.datetime64, np.datetime64], ...] = ()
    overnight: Overnight | None = None

    @property
    def digest(self) -> str:
        """A text that other returns do not have."""
        return hashlib.sha256(self.values.tobytes() + self.lengths.tobytes()).hexdigest()


def standardised(returns: ArrayLike, segments: ArrayLike | None = None) -> Returns:
    """Standardise returns as they are.

    Parameters
    ----------
    returns : array_like of shape (n,)
        Returns, in order of time within each segment.
    segments : array_like of shape (n,), optional
        A label for each: a segment is a run of equal labels. Default: one segment.
    """
    raw = np.asarray(returns, np.float64)
    labels = np.zeros(raw.shape, np.int64) if segments is None else np.asarray(segments)
    if raw.ndim != 1 or labels.shape != raw.shape:
        raise ShapeMismatch(f"returns have shape {raw.shape}, segments {labels.shape}; both must be (n,)")
    if not np.isfinite(raw).all():
        raise InvalidArgument(f"return {int(np.argmin(np.isfinite(raw)))} is not finite; leave it out")
    scale = float(raw.std()) if len(raw) else 0.0
    if not scale > 0.0:
        raise InvalidArgument(f"{len(raw)} returns have no variance; give a series that moves")
    mean = float(raw.mean())
    return Returns((raw - mean) / scale, _run_lengths(labels), mean, scale)


def returns_from_prices(
    times: ArrayLike,
    prices: ArrayLike,
    segments: ArrayLike | None = None,
    overnight: Overnight | None = None,
    longest_gap: float = LONG_DAYS,
) -> Returns:
    """Take log returns of prices, mend what must be mended, and standardise.

    Parameters
    ----------
    times : array_like of datetime64, shape (n,)
        When each price was. Days are those of this clock.
    prices : array_like of shape (n,)
        Prices; NaN where missing.
    segments : array_like of shape (n,), optional
        A label for each price, for several series or one with long holes. No return and no lag crosses from
        one segment into another.
    overnight : Overnight, optional
        What becomes of returns from one day to another. Default: they are dropped, or kept if most prices
        are the only one of their day.
    longest_gap : float
        Days. The series is cut, as between segments, where there is no price for longer, and for more than
        five usual steps.

    Examples
    --------
    >>> times = np.array(["2024-01-01T10", "2024-01-01T11", "2024-01-01T11", "2024-01-01T12",
    ...                   "2024-01-02T10"], dtype="datetime64[s]")
    >>> returns = returns_from_prices(times, [100.0, 1.0, 101.0, 103.0, 90.0])
    >>> len(returns.values), str(returns.repairs)
    (2, '1 duplicates, 1 overnight')
    """
    if not (overnight is None or isinstance(overnight, Overnight)):
        raise InvalidArgument(f"overnight is {overnight!r}; give Overnight.DROPPED, KEPT or NEW_SEGMENT")
    bars, repairs = _mended(_checked(times, prices, segments))
    steps, night = _Steps.of(bars, longest_gap), _nights(bars)
    overnight = overnight or _usual_overnight(night[steps.joined])
    keep = steps.joined if overnight is Overnight.KEPT else steps.joined & ~night
    if not keep.any():
        remedy = (
            "keep those from day to day (--overnight kept)" if steps.joined.any() else "give more prices"
        )
        raise InvalidArgument(
            f"{len(bars.prices)} usable prices give no return (repairs: {repairs}); {remedy}"
        )
    breaks = ~steps.joined | night if overnight is Overnight.NEW_SEGMENT else ~steps.joined
    found = standardised(np.diff(np.log(bars.prices))[keep], np.cumsum(breaks)[keep])
    dropped, holes = int((steps.joined & ~keep).sum()), steps.holes(bars.times)
    counts = {
        "overnight": dropped,
        "gaps": _gaps(bars.times, steps.joined & ~night),
        "long_gaps": len(holes),
    }
    return replace(
        found,
        times=bars.times[1:][keep],
        repairs=repairs._replace(**counts),
        holes=holes,
        overnight=overnight,
    )


class _Bars(NamedTuple):
    times: Times
    prices: Floats
    segments: NDArray[Any]

    def only(self, chosen: NDArray[Any]) -> "_Bars":
        return _Bars(*(part[chosen] for part in self))

    def by_segment(self) -> "_Bars":
        """Put each segment together, in the order in which they first appear."""
        _, first, label = np.unique(self.segments, return_index=True, return_inverse=True)
        number = np.argsort(np.argsort(first))[label]
        return self._replace(segments=number).only(np.argsort(number, kind="stable"))

    def within(self) -> NDArray[np.bool_]:
        """Whether each row but the first is of the segment of the one before."""
        same: NDArray[np.bool_] = self.segments[1:] == self.segments[:-1]
        return same


class _Steps(NamedTuple):
    """Steps from one price to the next: which go on within a series, and which lead over a long gap."""

    joined: NDArray[np.bool_]
    long: NDArray[np.bool_]

    @classmethod
    def of(cls, bars: _Bars, longest_gap: float) -> "_Steps":
        same, days = bars.within(), np.diff(bars.times) / np.timedelta64(1, "D")
        usual = float(np.median(days[same])) if same.any() else 0.0
        long = same & (days > max(longest_gap, LONG_STEPS * usual))
        return cls(same & ~long, long)

    def holes(self, times: Times) -> tuple[tuple[np.datetime64, np.datetime64], ...]:
        return tuple((times[k], times[k + 1]) for k in np.flatnonzero(self.long))


def _nights(bars: _Bars) -> NDArray[np.bool_]:
    """Whether each price but the first is of another day than the one before."""
    day = bars.times.astype("datetime64[D]")
    other: NDArray[np.bool_] = day[1:] != day[:-1]
    return other


def _usual_overnight(night: NDArray[np.bool_]) -> Overnight:
    """Keep returns from day to day where there are hardly others."""
    return Overnight.KEPT if len(night) and night.mean() > 0.5 else Overnight.DROPPED


def _checked(times: ArrayLike, prices: ArrayLike, segments: ArrayLike | None) -> _Bars:
    stamps, values = np.asarray(times), np.asarray(prices, np.float64)
    labels = np.zeros(values.shape, np.int64) if segments is None else np.asarray(segments)
    if values.ndim != 1 or not stamps.shape == labels.shape == values.shape:
        raise ShapeMismatch(
            f"times, prices and segments have shapes {stamps.shape}, {values.shape} and {labels.shape}; "
            "they must be (n,)"
        )
    if stamps.dtype.kind != "M":
        raise InvalidArgument(
            f"times are {stamps.dtype}; give datetime64, for example times.astype('datetime64[s]')"
        )
    return _Bars(stamps, values, labels)


def _mended(bars: _Bars) -> tuple[_Bars, Repairs]:
    """Leave out what is no price, sort by segment and time, and keep the last price of each time."""
    missing = np.isnat(bars.times) | np.isnan(bars.prices)
    bad = ~missing & ~((bars.prices > 0.0) & (bars.prices < np.inf))
    filed = bars.only(~missing & ~bad).by_segment()
    back = filed.within() & (filed.times[1:] < filed.times[:-1])
    ranked = filed.only(np.lexsort((filed.times, filed.segments)))  # stable: a file's last price stays last
    again = ranked.within() & (ranked.times[1:] == ranked.times[:-1])
    counts = (int(part.sum()) for part in (missing, bad, back, again))
    return ranked.only(np.append(~again, True)[: len(ranked.times)]), Repairs(*counts)


def _gaps(times: Times, within: NDArray[np.bool_]) -> int:
    steps = np.diff(times)[within].astype(np.int64)
    return int((steps > GAP * np.median(steps)).sum()) if len(steps) else 0


def _run_lengths(labels: NDArray[Any]) -> Indices:
    ends = np.append(np.flatnonzero(labels[1:] != labels[:-1]) + 1, len(labels))
    return np.diff(ends, prepend=0)


@dataclass(frozen=True, eq=False)
class Lagged:
    """Rows of an ARCH model of order `lags` or less. See `lagged`."""

    squares: Floats  # squared returns, the last one first
    where: Indices  # the square of row n is squares[where[n]], its lags follow
    returns: Floats  # the returns of the rows
    lags: int  # of each row
    short: int  # number of segments that are too short to have a row

    @property
    def size(self) -> int:
        """Number of rows N."""
        return len(self.where)

    @property
    def arrays(self) -> tuple[Floats, Indices]:
        """What a log factor takes after (n, point)."""
        return self.squares, self.where

    def design(self, order: int, rows: Indices | slice = slice(None)) -> Floats:
        """Give a_t = (1, r²_{t-1}, ..., r²_{t-q}) of rows, of shape (len(rows), q + 1)."""
        windows = np.lib.stride_tricks.sliding_window_view(self.squares, order + 1)
        design: Floats = windows[self.where[rows]]
        design[:, 0] = 1.0
        return design


def lagged(returns: Returns, lags: int) -> Lagged:
    """Lay out returns for ARCH models of order `lags` or less.

    Parameters
    ----------
    returns : Returns
        From `returns_from_prices` or `standardised`.
    lags : int
        The largest order. Rows are the returns with that many predecessors in their segment.

    Examples
    --------
    >>> from gumbelrace.models.arch.data import standardised
    >>> data = lagged(standardised([1.0, -2.0, 3.0, -2.0, 1.0, 1.0, -2.0], segments=[0] * 4 + [1] * 3), 1)
    >>> data.size, data.returns.round(1)
    (5, array([-1.1,  1.6, -1.1,  0.5, -1.1]))
    """
    lags = checked_count(lags, "lags")
    ends = np.cumsum(returns.lengths)
    parts = [np.arange(end - n + lags, end) for end, n in zip(ends, returns.lengths, strict=True)]
    index = np.concatenate(parts).astype(np.int64)
    if len(index) < lags + 2:
        raise InvalidArgument(
            f"{len(index)} rows have {lags} lags in their segment, too few for {lags + 2} parameters; "
            "give more returns, longer segments or lower orders"
        )
    backwards = np.ascontiguousarray(returns.values[::-1] ** 2)
    short = int((returns.lengths <= lags).sum())
    return Lagged(backwards, len(backwards) - 1 - index, returns.values[index], lags, short)


def simulate(
    size: int,
    rng: Rng = None,
    alpha: ArrayLike = ALPHA,
    nu: float = NU,
    burn_in: int = 1000,
) -> Floats:
    """Draw returns from an ARCH model: r_t = σ_t z_t, z_t Student-t with ν degrees of freedom.

    Parameters
    ----------
    size : int
        Number of returns.
    rng : numpy.random.Generator, int, or None
        Source of randomness.
    alpha : array_like of shape (q + 1,)
        α_0, ..., α_q. Default: an order of 10.
    nu : float
        Degrees of freedom.
    burn_in : int
        Number of returns that are drawn first and thrown away.

    Examples
    --------
    >>> returns = simulate(13_000, np.random.default_rng(0))
    >>> returns.shape, bool(abs(returns.mean()) < 0.1)
    ((13000,), True)
    """
    size, burn_in = checked_count(size, "size"), checked_count(burn_in, "burn_in", least=0)
    weights = np.array(alpha, np.float64)
    if weights.ndim != 1 or len(weights) < 2 or not (weights[0] > 0.0 and (weights >= 0.0).all()):
        raise InvalidArgument(f"alpha is {alpha!r}; give α_0 > 0 and α_1, ..., α_q, none negative")
    if not (nu > 2.0 and weights[1:].sum() * nu / (nu - 2.0) < 1.0):
        raise InvalidArgument(
            f"with nu {nu} and sum(alpha[1:]) {weights[1:].sum():.3g} returns have no variance; "
            "nu must exceed 2, and the sum be less than 1 - 2 / nu"
        )
    z = as_generator(rng).standard_t(nu, burn_in + size)
    return _filtered(z, weights)[burn_in:]


@kernel
def _filtered(z: Floats, alpha: Floats) -> Floats:
    """Give r_t = σ_t z_t, from a past of zeros."""
    returns, order = np.zeros(len(z)), len(alpha) - 1
    for t in range(len(z)):
        s = alpha[0]
        for i in range(1, min(order, t) + 1):
            s += alpha[i] * returns[t - i] ** 2
        returns[t] = np.sqrt(s) * z[t]
    return returns
