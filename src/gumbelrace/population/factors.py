"""Rewards computed by a user's NumPy function, many rows and arms at a time."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumbelrace.core.rows import Rows
from gumbelrace.errors import InvalidArgument
from gumbelrace.population.arrays import floats
from gumbelrace.population.base import (
    FAILED,
    Floats,
    Range,
    SharedPopulation,
    checked_count,
    checked_range,
)
from gumbelrace.population.callback import Callback, held_interrupts
from gumbelrace.population.control import ControlVariate, Indices, Known, check_fit, known

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
    population = Factors(log_factors, Rows(size), arms, checked_range(reward_range, arms))
    return population.declaring(impossible)  # type: ignore[return-value]


class Factors(SharedPopulation):
    """Log factors computed by a NumPy function. See `factors`."""

    def __init__(
        self,
        log_factors: LogFactors,
        rows: Rows,
        arms: int,
        given: Range | None,
        raced: Indices | None = None,
        known: Known | None = None,
    ) -> None:
        super().__init__(rows, arms)
        self._raced, self.known = raced, known
        self.chunk = max(64, CALL // arms)
        self._log_factors, self._range = log_factors, given
        self._callback = Callback(log_factors)

    @property
    def reward_range(self) -> Range | None:
        """Range as given."""
        return self._range

    @property
    def identity(self) -> dict[str, Any]:
        """The function and its range."""
        return super().identity | {"log_factors": self._log_factors, "reward_range": self._range}

    def minus(self, control: ControlVariate) -> "Factors":
        """Return the residuals, with the same sums. See `Population.minus`."""
        if self._undeclared is not None:
            plain, rows = self._undeclared
            return plain.minus(control.with_impossible(rows, plain.size))  # type: ignore[return-value]
        if self.known is not None:
            raise InvalidArgument("the population has a control variate already")
        check_fit(control, self.size, self.arms)
        always, every = control.always, np.arange(self.arms)
        raced = None if always is None else always.raced
        return Factors(
            Residuals(self._log_factors, control, raced),
            self.rows if always is None else always.order,
            self.arms,
            checked_range(control.residual_range, self.arms),
            raced,
            known(control, lambda rows: self._log_factors(rows, every)),
        )

    def _row_name(self, row: int) -> int:
        return row if self._raced is None else int(self._raced[row])

    def _entry(self) -> tuple[int, int]:
        return self._callback.address, 0

    def _guard(self) -> AbstractContextManager[None]:
        return held_interrupts()

    def _raise(self, code: int, row: int, arm: int, low: Floats, high: Floats) -> None:
        error = self._callback.take_exception()
        if code == FAILED and error is not None:
            raise error
        super()._raise(code, row, arm, low, high)


@dataclass(frozen=True, eq=False)
class Residuals:
    """log_factors - control; if some rows are left out, the index is a position in `raced`."""

    log_factors: LogFactors
    control: ControlVariate
    raced: Indices | None

    def __call__(self, index: Indices, arms: Indices) -> Floats:
        """Give the residuals of some rows and arms."""
        rows = index if self.raced is None else self.raced[index]
        found = floats(self.log_factors(rows, arms), "what log_factors gave")
        return found - self.control.values(rows, arms)
