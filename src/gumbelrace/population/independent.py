"""Arms with rewards of their own: arm i is a finite population of its own size N_i."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumbelrace.core.rows import LARGEST
from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.population.arrays import check_unmasked, floats
from gumbelrace.population.base import FAILED, Floats, Population, Range, checked_range
from gumbelrace.population.callback import Callback, held_interrupts

LogFactors = Callable[[NDArray[np.int64], int], Any]


def independent(
    log_factors: LogFactors,
    sizes: ArrayLike,
    *,
    reward_range: tuple[ArrayLike, ArrayLike] | None = None,
) -> "Independent":
    """Make a population whose arms have different numbers of log factors.

    Sums of N_i rewards are compared, not means: a larger arm is not favoured or hindered, its rewards
    simply count. An arm of size 0 has the sum 0.

    Parameters
    ----------
    log_factors : callable
        ``log_factors(index, arm)`` takes an integer array of rows of one arm and returns their log
        factors, of shape ``(len(index),)``.
    sizes : array_like of int
        Number of rows of each arm.
    reward_range : (low, high), optional
        As in `factors`. If log factors can be -inf, let it go down to there, for the arms whose can: a race
        that reads some of the rows would miss it, so all rows of arms that may win are read.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> rng = np.random.default_rng(0)
    >>> clusters = [rng.normal(mean, 1.0, n) for mean, n in [(-0.5, 40), (0.4, 900), (0.0, 300)]]
    >>> population = gr.independent(lambda index, arm: clusters[arm][index], [40, 900, 300])
    >>> gr.best(population, rng=rng).arm
    1
    """
    if not callable(log_factors):
        raise InvalidArgument("log_factors is not callable; give a function log_factors(index, arm)")
    check_unmasked(sizes, "sizes")
    counts = np.asarray(sizes)
    if counts.ndim != 1 or len(counts) == 0 or counts.dtype.kind not in "iu":
        raise ShapeMismatch("sizes must be a sequence of integers, one for each arm")
    if counts.min() < 0 or counts.max() > LARGEST:
        raise InvalidArgument(f"sizes must lie between 0 and {LARGEST}; got {counts.min()}")
    return Independent(log_factors, counts.astype(np.int64), checked_range(reward_range, len(counts)))


class Independent(Population):
    """Arms with rewards of their own. See `independent`."""

    chunk = 4096
    undeclared = "it missed a -inf: give a reward_range that goes down to -inf, and all is read"

    def __init__(self, log_factors: LogFactors, sizes: NDArray[np.int64], given: Range | None) -> None:
        super().__init__(sizes)
        self._range, self._log_factors = given, log_factors
        self._callback = Callback(_Columns(log_factors))

    @property
    def reward_range(self) -> Range | None:
        """Range as given."""
        return self._range

    @property
    def identity(self) -> dict[str, Any]:
        """The function, its range, and the arms' numbers of rewards."""
        return super().identity | {"log_factors": self._log_factors, "reward_range": self._range}

    def _entry(self) -> tuple[int, int]:
        return self._callback.address, 0

    def _guard(self) -> AbstractContextManager[None]:
        return held_interrupts()

    def _raise(self, code: int, row: int, arm: int, low: Floats, high: Floats) -> None:
        error = self._callback.take_exception()
        if code == FAILED and error is not None:
            raise error
        super()._raise(code, row, arm, low, high)


class _Columns:
    """Log factors of one arm as a table of one column."""

    def __init__(self, log_factors: LogFactors) -> None:
        self._log_factors = log_factors

    def __call__(self, index: NDArray[np.int64], arms: NDArray[np.int64]) -> Floats:
        return floats(self._log_factors(index, int(arms[0])), "what log_factors gave")[..., None]
