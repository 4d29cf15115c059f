"""A symmetric factor of pairs of mentions, f(i, j), computed by a user's numba function.

Values are rounded when they are read: to multiples of 2^-20 that single precision can hold. Sums of them
are exact in double precision whatever their order, so that samplers which add them up in different ways,
or keep them, make the same draws.
"""

import functools
from typing import Any, NoReturn

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumbelrace.errors import (
    FactorFailed,
    InvalidArgument,
    InvalidReward,
    RewardOutOfRange,
    ShapeMismatch,
)
from gumbelrace.jit import users
from gumbelrace.population.base import FAILED, NOT_A_REWARD, Floats, checked_count, checked_range
from gumbelrace.population.pair_readers import FINEST, LARGEST_SUM, Fetched, fetched, rounded
from gumbelrace.population.trial import Call, checked_data, checked_dispatcher, explained, try_out
from gumbelrace.shuffle import LARGEST

FORM = "log_factor(i, j, *data)"

# What single precision may add to a value when it is rounded, as a share of it.
SINGLE = 2.0**-23


def pairs(
    log_factor: Any, data: tuple[Any, ...], size: int, reward_range: tuple[float, float] | None = None
) -> "Pairs":
    """Make a symmetric factor of pairs that a numba function computes.

    Parameters
    ----------
    log_factor : numba function
        ``log_factor(i, j, *data) -> float``, decorated with ``@numba.njit``; it is called with i < j. -inf
        forbids that i and j are in the same cluster.
    data : tuple
        NumPy arrays and numbers that `log_factor` takes. Arrays are not copied, and must not change.
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

    @property
    def owned(self) -> dict[str, Any]:
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

    def fetched(self, members: NDArray[np.int32], store: NDArray[np.float32]) -> Fetched:
        """Lend compiled readers of these values; those in `store` (see `pair_readers`) are read once."""
        with explained(FORM, self._data):
            return fetched(self._log_factor, self._data, members, store, -self.largest)

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


@functools.lru_cache(maxsize=64)
def _evaluator(log_factor: Any) -> Any:
    @numba.njit
    def evaluate(i, j, lowest, data):  # type: ignore[no-untyped-def]
        found = np.empty(len(i))
        for k in range(len(i)):
            found[k] = rounded(log_factor(i[k], j[k], *data), lowest)
        return found

    return evaluate
