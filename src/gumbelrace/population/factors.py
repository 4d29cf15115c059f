"""Rewards computed by a user's NumPy function, many rows and arms at a time.

Arms may share their rows (`factors`), or be finite populations of sizes N_i of their own (`independent`).
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumbelrace.core.rows import MOST_ROWS, Rows
from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.population.arrays import check_unmasked, floats
from gumbelrace.population.base import (
    FAILED,
    Floats,
    Population,
    Range,
    SharedPopulation,
    checked_count,
    checked_range,
)
from gumbelrace.population.callback import Callback, held_interrupts
from gumbelrace.population.control import OUT_OF_BOUNDS, ControlVariate, Indices, Known, check_fit, known

LogFactors = Callable[[NDArray[np.int64], NDArray[np.int64]], Any]

# Most rewards of one call: enough that a call's own cost does not matter.
CALL = 65_536


def factors(
    log_factors: LogFactors,
    size: int,
    arms: int,
    *,
    reward_range: tuple[ArrayLike, ArrayLike] | None = None,
    impossible: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> "Factors":
    """Make a population of log factors that a NumPy function computes.

    Parameters
    ----------
    log_factors : callable
        ``log_factors(index, arms)`` takes two integer arrays and returns the log factors of those
        rows and arms, of shape ``(len(index), len(arms))``.
    size, arms : int
        Number of rows N and of arms D.
    reward_range : (low, high), optional
        Numbers or arrays of length D with ``low[i] <= log f_n(i) <= high[i]`` for every row. Checked
        on every reward that is read.
    impossible : array_like of int, optional
        Numbers of the rows whose log factor can be -inf: they are read when the population is made,
        since a race could not be trusted to meet them; a -inf of another row is an
        error. `reward_range` is then that of the other rows.
    weights : array_like of shape (N,), optional
        As in `compiled`: how much each row is expected to matter.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> rng = np.random.default_rng(0)
    >>> y, centers = rng.normal(0.3, 1.0, 50_000), np.array([0.0, 0.29, 0.6])
    >>> def log_factors(index, arms):
    ...     return -0.5 * (y[index, None] - centers[arms]) ** 2
    >>> draw = gr.sample(gr.factors(log_factors, size=len(y), arms=3), rng=rng)
    >>> draw.arm, bool(draw.fraction < 0.1)
    (1, True)
    """
    if not callable(log_factors):
        raise InvalidArgument("log_factors is not callable; give a function log_factors(index, arms)")
    size, arms = checked_count(size, "size"), checked_count(arms, "arms")
    rows, given = Rows(size, weights=weights), checked_range(reward_range, arms)
    population = Factors(log_factors, rows, arms, given)
    return population.declaring(impossible)  # type: ignore[return-value]


class _Called(Population):
    """Rewards that compiled code has a Python function compute."""

    _log_factors: Any
    _range: Range | None
    _callback: Callback

    @property
    def reward_range(self) -> Range | None:
        """Range as given."""
        return self._range

    @property
    def identity(self) -> dict[str, Any]:
        """The function and its range."""
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


class Factors(_Called, SharedPopulation):
    """Log factors computed by a NumPy function. See `factors`."""

    def __init__(
        self,
        log_factors: LogFactors,
        rows: Rows,
        arms: int,
        given: Range | None,
        known: Known | None = None,
    ) -> None:
        super().__init__(rows, arms)
        self.known = known
        self.chunk = max(64, CALL // arms)
        self._log_factors, self._range = log_factors, given
        self._callback = Callback(log_factors)

    def minus(self, control: ControlVariate) -> "Factors":
        """Return the residuals, with the same sums. See `Population.minus`."""
        if self._undeclared is not None:
            plain, declared = self._undeclared
            return plain.minus(control.with_impossible(declared))  # type: ignore[return-value]
        if self.known is not None:
            raise InvalidArgument("the population has a control variate already")
        check_fit(control, self.size, self.arms)
        every = np.arange(self.arms)
        residuals = Factors(
            Residuals(self._log_factors, control),
            self.rows if control.rows is None else control.rows.joined(self.rows),
            self.arms,
            checked_range(control.residual_range, self.arms),
            known(control, lambda rows: self._log_factors(rows, every)),
        )
        residuals.out_of_range = OUT_OF_BOUNDS
        return residuals


@dataclass(frozen=True, eq=False)
class Residuals:
    """log_factors - control."""

    log_factors: LogFactors
    control: ControlVariate

    def __call__(self, index: Indices, arms: Indices) -> Floats:
        """Give the residuals of some rows and arms."""
        found = floats(self.log_factors(index, arms), "what log_factors gave")
        return found - self.control.values(index, arms)


LogFactorsOfOne = Callable[[NDArray[np.int64], int], Any]


def independent(
    log_factors: LogFactorsOfOne,
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
    if counts.min() < 0 or counts.max() > MOST_ROWS:
        raise InvalidArgument(f"sizes must lie between 0 and {MOST_ROWS}; got {counts.min()}")
    return Independent(log_factors, counts.astype(np.int64), checked_range(reward_range, len(counts)))


class Independent(_Called):
    """Arms with rewards of their own. See `independent`."""

    chunk = 4096
    undeclared = "it missed a -inf: give a reward_range that goes down to -inf, and all is read"

    def __init__(self, log_factors: LogFactorsOfOne, sizes: NDArray[np.int64], given: Range | None) -> None:
        super().__init__(sizes)
        self._range, self._log_factors = given, log_factors
        self._callback = Callback(_Columns(log_factors))


class _Columns:
    """Log factors of one arm as a table of one column."""

    def __init__(self, log_factors: LogFactorsOfOne) -> None:
        self._log_factors = log_factors

    def __call__(self, index: NDArray[np.int64], arms: NDArray[np.int64]) -> Floats:
        return floats(self._log_factors(index, int(arms[0])), "what log_factors gave")[..., None]
