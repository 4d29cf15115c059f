"""Returns of prices: r_t = log(p_t / p_{t-1}), less their mean and over their standard deviation.

Prices as they come have holes, doubles and nights. What is mended is counted, never silent.
"""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumbelrace.errors import InvalidArgument, ShapeMismatch

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Times = NDArray[np.datetime64]

# A return over more than this many times the usual step is counted as one over a gap.
GAP = 1.5


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
    """

    missing: int = 0
    not_positive: int = 0
    unsorted: int = 0
    duplicates: int = 0
    overnight: int = 0
    gaps: int = 0

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
    overnight: Overnight = Overnight.DROPPED,
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
    overnight : Overnight
        What becomes of returns from one day to another.

    Examples
    --------
    >>> times = np.array(["2024-01-01T10", "2024-01-01T11", "2024-01-01T11", "2024-01-01T12",
    ...                   "2024-01-02T10"], dtype="datetime64[s]")
    >>> returns = returns_from_prices(times, [100.0, 1.0, 101.0, 103.0, 90.0])
    >>> len(returns.values), str(returns.repairs)
    (2, '1 duplicates, 1 overnight')
    """
    if not isinstance(overnight, Overnight):
        raise InvalidArgument(f"overnight is {overnight!r}; give Overnight.DROPPED, KEPT or NEW_SEGMENT")
    bars, repairs = _mended(_checked(times, prices, segments))
    day = bars.times.astype("datetime64[D]")
    same, night = bars.within(), day[1:] != day[:-1]
    keep = same if overnight is Overnight.KEPT else same & ~night
    if not keep.any():
        raise InvalidArgument(
            f"{len(day)} usable prices give no return (repairs: {repairs}); give more prices"
        )
    breaks = ~same | night if overnight is Overnight.NEW_SEGMENT else ~same
    found = standardised(np.diff(np.log(bars.prices))[keep], np.cumsum(breaks)[keep])
    counts = {"overnight": int((same & ~keep).sum()), "gaps": _gaps(bars.times, same & ~night)}
    return replace(found, times=bars.times[1:][keep], repairs=repairs._replace(**counts))


class _Bars(NamedTuple):
    """Prices with their times and segments."""

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
