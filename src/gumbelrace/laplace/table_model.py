"""A model given all rows of a table: sums of log factors, each found in a pass, and a subsample."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gumbelrace.core.pool import of_shards
from gumbelrace.errors import NoMode
from gumbelrace.laplace.columns import Array, Columns, Table
from gumbelrace.laplace.mode import find_mode
from gumbelrace.laplace.model import Floats, Quadratic
from gumbelrace.laplace.passes import Scanner, Subsample, Sums

# Rows of the subsample: as many as take so many bytes, within bounds.
SUBSAMPLE_BYTES, FEWEST, MOST = 2**24, 16_384, 2**18


@dataclass(frozen=True, eq=False)
class TableModel:
    """A model of all rows of a table; see `Model`. Sums at a point are kept: each takes a pass."""

    example: Any  # a model of the same kind, of whatever rows
    scanner: Scanner
    subsample: list[Array]

    gradient = None

    @property
    def size(self) -> int:
        """Number of rows, N."""
        return self.scanner.size

    @property
    def names(self) -> Sequence[str]:
        """The name of each coordinate of θ."""
        names: Sequence[str] = self.example.names
        return names

    @functools.cached_property
    def few(self) -> Any:
        """The same model of the subsample."""
        return self.of_data(self.scanner.columns.with_rows(self.subsample))

    def part_of_few(self, most: int) -> Any:
        """Give the same model of at most so many rows of the subsample, spread evenly over the table."""
        step = -(-len(self.subsample[0]) // most)
        return self.of_data(
            self.scanner.columns.with_rows([array[::step].copy() for array in self.subsample])
        )

    @functools.cached_property
    def start(self) -> Floats:
        """The mode of the subsample, or the start that was given."""
        try:
            return find_mode(self.few).theta
        except NoMode:  # few rows may not tell what all rows do
            given: Floats = self.example.given_start
            return given

    def of_data(self, data: tuple[Any, ...]) -> Any:
        """Give the same model of some rows."""
        return self.example.of_data(data, len(self.scanner.columns.rows_of(data)[0]))

    def log_prior(self, theta: Floats) -> float:
        """Give log p0(θ)."""
        return float(self.example.log_prior(theta))

    def prior(self, theta: Floats) -> Quadratic:
        """Give log p0 near θ."""
        found: Quadratic = self.example.prior(theta)
        return found

    def value(self, theta: Floats) -> float:
        """Give log p0(θ) + Σ log f_n(θ)."""
        prior = self.log_prior(theta)
        return prior + self.factors(theta).value if prior > -np.inf else prior

    def factors(self, theta: Floats) -> Quadratic:
        """Give Σ log f_n near θ."""
        key = theta.tobytes()
        if key not in self._sums:
            work = Sums(self.example, self.scanner.columns, theta)
            result = self.scanner.result(f"sums {len(self._sums)}", work)
            self._sums[key] = Quadratic(float(result[0]), *result[1:])
        return self._sums[key]

    @functools.cached_property
    def _sums(self) -> dict[bytes, Quadratic]:
        return {}


def subsampled(scanner: Scanner) -> list[Array]:
    """Take a subsample in a pass."""
    some = [next(shard for shard in scanner.table.shards if shard.size > 0)]
    row_bytes = next(of_shards(scanner.workers, functools.partial(bytes_of_row, scanner.columns), some))
    wanted = min(max(SUBSAMPLE_BYTES // row_bytes, FEWEST), MOST)
    return scanner.result("subsample", Subsample(scanner, min(wanted / scanner.size, 1.0)))


def bytes_of_row(columns: Columns, shard: Table) -> int:
    """Give how many bytes the columns of a row take."""
    _, first = next(iter(shard.chunks(columns.names, 1)))
    return sum(array.itemsize for array in first.values())
