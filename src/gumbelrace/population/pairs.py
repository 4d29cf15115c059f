"""A symmetric factor of pairs of mentions, f(i, j), computed by a user's numba function.

Values are rounded when they are read: to multiples of 2^-20 that single precision can hold. Sums of them
are exact in double precision whatever their order, so that samplers which add them up in different ways,
or keep them, make the same draws. Where values are kept, a reader looks into a store first: n(n-1)/2
entries in single precision, NaN where nothing was read yet.
"""

import functools
from typing import Any, NamedTuple, NoReturn

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumbelrace.core.jit import READER, USERS, part, users
from gumbelrace.core.packed import Packed, pack, unpack
from gumbelrace.core.rows import LARGEST
from gumbelrace.errors import (
    FactorFailed,
    InvalidArgument,
    InvalidReward,
    RewardOutOfRange,
    ShapeMismatch,
)
from gumbelrace.population.base import FAILED, NOT_A_REWARD, Floats, checked_count, checked_range
from gumbelrace.population.trial import Call, checked_data, checked_dispatcher, explained, try_out

FORM = "log_factor(i, j, *data)"

# All values are multiples of FINEST; sums of them below LARGEST_SUM are exact in double precision.
FINEST = 2.0**-20
LARGEST_SUM = 2.0**53 * FINEST
# What single precision may add to a value when it is rounded, as a share of it.
SINGLE = 2.0**-23

# Entries of Readers.site
MENTION, FIRST, COUNT = 0, 1, 2
# Items that lie before the user's data
OURS = 5


def pairs(
    log_factor: Any, data: tuple[Any, ...], size: int, *, reward_range: tuple[float, float] | None = None
) -> "Pairs":
    """Make a symmetric factor of pairs that a numba function computes.

    Parameters
    ----------
    log_factor : numba function
        ``log_factor(i, j, *data) -> float``, decorated with ``@numba.njit``; it is called with i < j. -inf
        forbids that i and j are in the same cluster.
    data : tuple
        Arrays (or array-likes) and numbers that `log_factor` takes. NumPy arrays are not copied, and must
        not change.
    size : int
        Number of mentions, n. That the data suffice is checked once, at the last pair.
    reward_range : (low, high), optional
        Numbers with ``low <= log_factor(i, j) <= high`` for every pair. Checked on every value read.

    Notes
    -----
    Values are rounded to multiples of 2^-20 in single precision; what is below -2^33/n counts as -inf, and
    what is above 2^33/n is an error.

    Examples
    --------
    >>> import numba, numpy as np, gumbelrace as gr
    >>> @numba.njit
    ... def log_factor(i, j, x):
    ...     return 1.0 - abs(x[i] - x[j])
    >>> factor = gr.pairs(log_factor, (np.array([0.0, 0.5, 3.0]),), size=3)
    >>> factor.values([0, 2], [1, 0])
    array([ 0.5, -2. ])
    """
    checked_dispatcher(log_factor, "log_factor")
    data = checked_data(data, "(x, y) or (x,)")
    if checked_count(size, "size") > LARGEST:
        raise InvalidArgument(f"size is {size}; there may be at most {LARGEST} mentions")
    if size > 1:
        try_out(Call(users(log_factor), FORM, {"i": size - 2, "j": size - 1}, data))
    return Pairs(log_factor, data, int(size), _checked_limits(reward_range))


def _checked_limits(reward_range: tuple[float, float] | None) -> tuple[float, float] | None:
    checked = checked_range(reward_range, 1)
    return None if checked is None else (float(checked[0][0]), float(checked[1][0]))


class Pairs:
    """A symmetric factor of pairs of `size` mentions. See `pairs`.

    Attributes
    ----------
    size : int
        Number of mentions.
    reward_range : (float, float) or None
        Range as given.
    """

    def __init__(
        self,
        log_factor: Any,
        data: tuple[Any, ...],
        size: int,
        reward_range: tuple[float, float] | None = None,
    ) -> None:
        self.size, self.reward_range = size, reward_range
        self._log_factor, self._data = log_factor, data

    def __repr__(self) -> str:
        """Say how many mentions there are, and nothing of the data."""
        return f"Pairs(size={self.size:_}, reward_range={self.reward_range})"

    @property
    def identity(self) -> dict[str, Any]:
        """The function, its data and range."""
        own = {"log_factor": self._log_factor, "data": self._data, "reward_range": self.reward_range}
        return {"size": self.size, **own}

    @property
    def largest(self) -> float:
        """The largest value with which all sums stay exact."""
        return LARGEST_SUM / self.size

    @property
    def limits(self) -> tuple[float, float]:
        """Range of the rounded values: -inf to the largest one where none was given."""
        if self.reward_range is None:
            return -np.inf, self.largest
        low, high = self.reward_range
        return low - FINEST - SINGLE * abs(low), min(high + FINEST + SINGLE * abs(high), self.largest)

    def without_range(self) -> "Pairs":
        """Give the same factor, its range not known."""
        return Pairs(self._log_factor, self._data, self.size)

    def readers(self, members: NDArray[np.int32], keeps: bool) -> "Readers":
        """Make readers for one thread; `members` holds the mentions, cluster after cluster."""
        store = np.full(self.size * (self.size - 1) // 2 if keeps else 0, np.nan, np.float32)
        site, computed = np.zeros(3, np.int64), np.zeros(1, np.int64)
        packed = pack((site, computed, members, store, np.float64(-self.largest), *self._data))
        with explained(FORM, self._data):
            values, lines = _readers(self._log_factor, packed.type, keeps)
        return Readers(values, lines, packed, site, computed, store)

    def values(self, i: ArrayLike, j: ArrayLike) -> Floats:
        """Give the values of some pairs, as the samplers see them."""
        first, second = np.broadcast_arrays(np.asarray(i, np.int64), np.asarray(j, np.int64))
        low, high = np.minimum(first, second).ravel(), np.maximum(first, second).ravel()
        if low.size and (low.min() < 0 or high.max() >= self.size or (low == high).any()):
            raise ShapeMismatch(f"pairs are two different numbers in 0...{self.size - 1}")
        with explained(FORM, self._data):
            found = _evaluator(self._log_factor)(low, high, -self.largest, self._data)
        return np.asarray(found, np.float64).reshape(first.shape)

    def blame(self, code: int, i: int, j: int) -> NoReturn:
        """Raise what is wrong with the value of a pair."""
        pair = f"log_factor({min(i, j)}, {max(i, j)})"
        if code == FAILED:
            raise FactorFailed(
                f"{pair}, or one soon after it, raised an exception; its own message is on standard error"
            )
        if code == NOT_A_REWARD:
            raise InvalidReward(
                f"{pair} is NaN or +inf; it must be finite, or -inf where a pair is impossible"
            )
        if self.reward_range is None:
            raise RewardOutOfRange(f"{pair} exceeds {self.largest:.6g}; use factors of a smaller scale")
        low, high = self.reward_range
        raise RewardOutOfRange(
            f"{pair} lies outside the reward_range [{low:.6g}, {high:.6g}]; widen it or mend the factor"
        )


class Readers(NamedTuple):
    """Compiled readers of values, and what they work on.

    Attributes
    ----------
    values : compiled function of type READER
        Row j is the value of (site[MENTION], j).
    lines : compiled function of type READER
        Row i is the sum of the values of (i, j) over the `COUNT` members from `FIRST` on.
    packed : Packed
        What the readers need.
    site : ndarray of int64
        What is to be read.
    computed : ndarray of int64
        How many values were computed so far.
    store : ndarray of float32
        Values that are kept.
    """

    values: Any
    lines: Any
    packed: Packed
    site: NDArray[np.int64]
    computed: NDArray[np.int64]
    store: NDArray[np.float32]


@part
def rounded(value: float, lowest: float) -> float:
    """Round a value so that sums are exact; NaN and infinities stay, and what is very low is -inf."""
    if value < lowest:
        return -np.inf
    return np.float64(np.float32(np.rint(value / FINEST) * FINEST))


@functools.lru_cache(maxsize=256)
def _readers(log_factor: Any, packed_type: Any, keeps: bool) -> tuple[Any, Any]:
    value_of = _kept(_computed(log_factor)) if keeps else _computed(log_factor)

    @numba.cfunc(READER)
    def values(context, rows, n_rows, arms, n_arms, out, stride):  # type: ignore[no-untyped-def]
        packed = unpack(context, packed_type)
        i, to = packed[0][MENTION], arms[0] * stride
        for r in range(n_rows):
            out[to + r] = value_of(i, rows[r], packed)
        return n_rows

    @numba.cfunc(READER)
    def lines(context, rows, n_rows, arms, n_arms, out, stride):  # type: ignore[no-untyped-def]
        packed = unpack(context, packed_type)
        site, members, to = packed[0], packed[2], arms[0] * stride
        for r in range(n_rows):
            total = 0.0
            for k in range(site[FIRST], site[FIRST] + site[COUNT]):
                total += value_of(rows[r], members[k], packed)
            out[to + r] = total
        return n_rows

    return values, lines


def _computed(log_factor: Any) -> Any:
    @numba.njit(**USERS)
    def computed(i, j, packed):  # type: ignore[no-untyped-def]
        packed[1][0] += 1
        return rounded(log_factor(min(i, j), max(i, j), *packed[OURS:]), packed[4])

    return computed


def _kept(computed: Any) -> Any:
    """Wrap the factor so that it is looked up first, and computed once."""

    @numba.njit(**USERS)
    def kept(i, j, packed):  # type: ignore[no-untyped-def]
        store, low, high = packed[3], min(i, j), max(i, j)
        place = np.uint64(high * (high - 1) // 2 + low)
        if np.isnan(store[place]):
            store[place] = computed(low, high, packed)
        return np.float64(store[place])

    return kept


@functools.lru_cache(maxsize=64)
def _evaluator(log_factor: Any) -> Any:
    @numba.njit
    def evaluate(i, j, lowest, data):  # type: ignore[no-untyped-def]
        found = np.empty(len(i))
        for k in range(len(i)):
            found[k] = rounded(log_factor(i[k], j[k], *data), lowest)
        return found

    return evaluate
