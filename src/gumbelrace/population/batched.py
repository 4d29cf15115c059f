"""Rewards computed by a numba function for many rows at once, as array libraries do it.

One call costs about as much for fifty rows as for one: what is allocated and looked up is shared by all.
"""

import functools
from typing import Any

import numba
import numpy as np

from gumbelrace.core.jit import READER, call, kernel, users
from gumbelrace.core.packed import Packed, fetch_row, pack, unpack
from gumbelrace.core.rows import Rows
from gumbelrace.errors import FactorFailed
from gumbelrace.population.base import Floats, Range, SharedPopulation
from gumbelrace.population.control import Indices, Known
from gumbelrace.population.trial import explained

FORM = "rewards(rows, arm, *data)"


class Batched(SharedPopulation):
    """Rewards of a numba function ``rewards(rows, arm, *data)``, which gives an array, one for each row.

    `data` are arrays and numbers; what else is known of the arms' sums (`known`) needs no race.
    """

    chunk = 1024

    def __init__(
        self, function: Any, data: tuple[Any, ...], rows: Rows, arms: int, known: Known | None = None
    ) -> None:
        super().__init__(rows, arms)
        self._function, self._data, self.known = function, data, known

    @property
    def reward_range(self) -> Range | None:
        return None

    @property
    def identity(self) -> dict[str, Any]:
        """The function and its data."""
        return super().identity | {"rewards": self._function, "data": self._data}

    def rewards_at(self, rows: Indices) -> Floats:
        """Read rows, of all arms, as they come; of shape (len(rows), D). Other threads run meanwhile."""
        found = np.empty((self.arms, len(rows)))
        if not _read_all(*self._entry(), rows, np.arange(self.arms), found, self.chunk):
            raise FactorFailed("the rewards of some rows could not be computed; see standard error")
        return found.T

    @functools.cached_property
    def _packed(self) -> Packed:
        return pack(self._data)

    def _entry(self) -> tuple[int, int]:
        with explained(FORM, self._data):
            reader = _reader(self._function, self._packed.type)
        return reader.address, self._packed.address


@functools.lru_cache(maxsize=256)
def _reader(function: Any, data_type: Any) -> Any:
    """Wrap a function of many rows into a reader that compiled code calls by its address."""
    given = users(function)

    @numba.cfunc(READER)
    def read(context, rows, n_rows, arms, n_arms, out, stride):  # type: ignore[no-untyped-def]
        data, picked = unpack(context, data_type), numba.carray(rows, n_rows)
        for i in range(n_rows):
            fetch_row(data, rows[i])
        for a in range(n_arms):
            rewards, first = given(picked, arms[a], *data), arms[a] * stride
            for i in range(n_rows):
                out[first + i] = rewards[i]
        return n_rows * n_arms

    return read


@kernel
def _read_all(reader: int, context: int, rows: Indices, arms: Indices, found: Floats, chunk: int) -> bool:
    """Read rows chunk by chunk into found[arm, row]; False after a fault."""
    stride, places = len(rows), arms.ctypes.data
    for first in range(0, len(rows), chunk):
        count, out = min(chunk, len(rows) - first), found.ctypes.data + 8 * first
        words = context, rows.ctypes.data + 8 * first, count, places, len(arms), out, stride
        if call(reader, words) == 0:
            return False
    return True
