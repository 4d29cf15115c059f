"""What models share whose rows compiled code sums: parts for threads, and a start among few rows."""

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Self

import numpy as np

from gumbelrace.core.pool import processors
from gumbelrace.errors import NoMode
from gumbelrace.laplace.mode import find_mode
from gumbelrace.laplace.model import Floats, Indices

# Rows are summed in that many parts, by threads; so the sum does not depend on how many of these there are.
# Fewer than so many rows are not worth it.
PARTS, WORTHWHILE = 16, 8192
# A mode is looked for among so many rows first, or so many for each parameter, if there are many times as
# many.
FEW, FOR_EACH, MANY_TIMES = 5_000, 50, 8
SEED = 0


class InParts:
    """A model, a frozen dataclass, whose rows are summed in parts."""

    all_rows: int  # of the data
    given_start: Floats
    rows: Indices | None  # None: all

    @property
    def size(self) -> int:
        """Number of rows, N."""
        return self.all_rows if self.rows is None else len(self.rows)

    @property
    def start(self) -> Floats:
        """The start that was given, or the mode of a few of the rows, which is close to that of all."""
        if self.few is self:
            return self.given_start
        try:
            return find_mode(self.few).theta  # type: ignore[arg-type]
        except NoMode:  # few rows may not tell what all rows do
            return self.given_start

    @functools.cached_property
    def few(self) -> Self:
        """The same model of some of its rows; itself if there are few."""
        count = max(FEW, FOR_EACH * len(self.given_start))
        if self.rows is not None or self.all_rows < MANY_TIMES * count:
            return self
        some = np.random.default_rng(SEED).choice(self.all_rows, count, replace=False)
        return self.of_rows(np.sort(some))

    def of_rows(self, rows: Indices) -> Self:
        """Give the same model of some of its rows."""
        return replace(self, rows=rows)  # type: ignore[type-var]

    @functools.cached_property
    def _parts(self) -> list[Indices]:
        rows = np.arange(self.all_rows) if self.rows is None else self.rows
        return np.array_split(rows, PARTS) if len(rows) >= WORTHWHILE else [rows]

    def of_parts(self, function: Callable[[Indices], Any]) -> list[Any]:
        """Give what a function makes of each part of the rows."""
        if len(self._parts) == 1:
            return [function(self._parts[0])]
        if processors() == 1:
            return list(map(function, self._parts))
        with ThreadPoolExecutor(processors()) as pool:
            return list(pool.map(function, self._parts))
