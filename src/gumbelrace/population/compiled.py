"""Rewards computed by a user's numba function, one (row, arm) at a time, without leaving compiled code."""

import functools
from typing import Any

import numba
import numpy as np
from numpy.typing import ArrayLike

from gumbelrace.core.jit import READER, users
from gumbelrace.core.packed import Packed, fetch_row, pack, unpack
from gumbelrace.core.rows import Rows
from gumbelrace.errors import InvalidArgument
from gumbelrace.population.base import Floats, Range, SharedPopulation, checked_count, checked_range
from gumbelrace.population.control import (
    OUT_OF_BOUNDS,
    ControlVariate,
    Indices,
    Known,
    check_fit,
    known,
    residual_of,
    table_of,
)
from gumbelrace.population.trial import Call, checked_data, checked_dispatcher, explained, try_out

FORM = "log_factor(n, arm, *data)"
# Rows lie anywhere in the user's data: they are fetched this many rows before they are needed.
AHEAD = 24


def compiled(
    log_factor: Any,
    data: tuple[Any, ...],
    size: int,
    arms: int,
    *,
    reward_range: tuple[ArrayLike, ArrayLike] | None = None,
    impossible: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> "Compiled":
    """Make a population of log factors that a numba function computes.

    Parameters
    ----------
    log_factor : numba function
        ``log_factor(n, arm, *data) -> float``, decorated with ``@numba.njit``. Integers of 2^53 and more
        that it gives are rounded: return floats.
    data : tuple
        Arrays (or array-likes) and numbers that `log_factor` takes. NumPy arrays are not copied: a change
        in one is seen by the next draw.
    size, arms : int
        Number of rows N and of arms D. That the data suffice is checked once, at the last row and arm:
        compiled code checks no index.
    reward_range : (low, high), optional
        Numbers or arrays of length D with ``low[i] <= log f_n(i) <= high[i]`` for every row. Checked
        on every reward that is read.
    impossible : array_like of int, optional
        Numbers of the rows whose log factor can be -inf: they are read when the population is made,
        since a race could not be trusted to meet them; a -inf of another row is an
        error. `reward_range` is then that of the other rows.
    weights : array_like of shape (N,), optional
        How much each row is expected to matter, on any scale: methods that draw rows with replacement draw
        large ones more often. Races read rows of all weights alike.

    Examples
    --------
    >>> import numba, numpy as np, gumbelrace as gr
    >>> @numba.njit
    ... def log_factor(n, arm, y, centers):
    ...     return -0.5 * (y[n] - centers[arm]) ** 2
    >>> rng = np.random.default_rng(0)
    >>> y, centers = rng.normal(0.3, 1.0, 50_000), np.array([0.0, 0.29, 0.6])
    >>> population = gr.compiled(log_factor, (y, centers), size=len(y), arms=3)
    >>> gr.sample(population, rng=rng).arm
    1
    """
    checked_dispatcher(log_factor, "log_factor")
    data = checked_data(data, "(y, centers) or (y,)")
    size, arms = checked_count(size, "size"), checked_count(arms, "arms")
    try_out(Call(users(log_factor), FORM, {"n": size - 1, "arm": arms - 1}, data))
    rows, given = Rows(size, weights=weights), checked_range(reward_range, arms)
    population = Compiled(log_factor, data, rows, arms, given)
    return population.declaring(impossible)  # type: ignore[return-value]


class Compiled(SharedPopulation):
    """Log factors computed by a numba function. See `compiled`."""

    chunk = 1024

    def __init__(
        self,
        log_factor: Any,
        data: tuple[Any, ...],
        rows: Rows,
        arms: int,
        given: Range | None,
        known: Known | None = None,
    ) -> None:
        super().__init__(rows, arms)
        self._log_factor, self._data, self._range = log_factor, data, given
        self.known = known

    @property
    def reward_range(self) -> Range | None:
        return self._range

    @property
    def identity(self) -> dict[str, Any]:
        """The function, its data and range."""
        own = {"log_factor": self._log_factor, "data": self._data, "reward_range": self._range}
        return super().identity | own

    def minus(self, control: ControlVariate) -> "Compiled":
        """Return the residuals, with the same sums. See `Population.minus`."""
        if self._undeclared is not None:
            plain, declared = self._undeclared
            return plain.minus(control.with_impossible(declared))  # type: ignore[return-value]
        if self.known is not None:
            raise InvalidArgument("the population has a control variate already")
        check_fit(control, self.size, self.arms)
        return self.residuals(control, known(control, self.rewards_at))

    def residuals(self, control: ControlVariate, known_sums: Known | None = None) -> "Compiled":
        """Return the residuals. Without `known_sums` nothing is read: who races on them adds the sums."""
        residuals = Compiled(
            *residual_of(control, self._log_factor, self._data),
            self.rows if control.rows is None else control.rows.joined(self.rows),
            self.arms,
            checked_range(control.residual_range, self.arms),
            known_sums,
        )
        residuals.out_of_range = OUT_OF_BOUNDS
        return residuals

    def rewards_at(self, rows: Indices) -> Floats:
        """Read rows, of all arms, as they come; of shape (len(rows), D)."""
        rewards: Floats = table_of(self._log_factor)(rows, np.arange(self.arms), self._data)
        return rewards

    @functools.cached_property
    def _packed(self) -> Packed:
        return pack(self._data)

    def _entry(self) -> tuple[int, int]:
        with explained(FORM, self._data):
            reader = _reader(self._log_factor, self._packed.type)
        return reader.address, self._packed.words.ctypes.data


@functools.lru_cache(maxsize=256)
def _reader(log_factor: Any, data_type: Any) -> Any:
    """Wrap a scalar function into a reader of many rewards: one call by address for all of them."""
    given = users(log_factor)

    @numba.cfunc(READER)
    def read(context, rows, n_rows, arms, n_arms, out, stride):  # type: ignore[no-untyped-def]
        data = unpack(context, data_type)
        for i in range(min(AHEAD, n_rows)):
            fetch_row(data, rows[i])
        to_fetch = n_rows - AHEAD
        # All arms of a row, then the next row: its data stay at hand, and branches in log_factor that
        # depend on them are foreseen.
        for i in range(n_rows):
            if i < to_fetch:
                fetch_row(data, rows[i + AHEAD])
            for a in range(n_arms):
                out[arms[a] * stride + i] = given(rows[i], arms[a], *data)
        return n_rows * n_arms

    return read
