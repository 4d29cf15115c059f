"""What is checked of tables: which columns there are, and which numbers they hold."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument, InvalidReward, RewardOutOfRange
from gumbelrace.population.arrays import LARGEST_REWARD


class Allowed(NamedTuple):
    """The numbers that are allowed: from `low` to `high`."""

    low: float
    high: float
    given: bool  # by the user, not only by what can be raced

    def check(
        self, block: NDArray[Any], names: Sequence[str | int], rows: NDArray[np.int64] | range
    ) -> None:
        """Raise an error that names the first number of a block that is not allowed."""
        # NaN is neither above nor below, and the least and largest of numbers with a NaN is NaN.
        if not (block.min() >= self.low and block.max() <= self.high):
            wrong = ~((block >= self.low) & (block <= self.high))
            row, column = (int(i) for i in np.argwhere(wrong)[0])
            self._refuse(block[row, column], f"row {rows[row]} (counted from 0), column {names[column]!r}")

    def _refuse(self, number: Any, place: str) -> None:
        infinite = np.inf if self.high < np.inf else -np.inf
        if np.isnan(number) or number == infinite or not self.given:
            raise InvalidReward(
                f"{place} is {number}; replace it by a number of at most {LARGEST_REWARD:g}, "
                "or leave the column or the row out"
            )
        raise RewardOutOfRange(
            f"{place} is {number}, outside the range {self.low:g} to {self.high:g}; widen --range"
        )


def allowed(limits: tuple[float, float] | None, lowest: bool = False) -> Allowed:
    """Give the range as the user named it; without one, all numbers but that infinity which always wins."""
    if limits is None:
        low, high = (-LARGEST_REWARD, np.inf) if lowest else (-np.inf, LARGEST_REWARD)
        return Allowed(low, high, given=False)
    low, high = limits
    if not -np.inf < low < high < np.inf:
        raise InvalidArgument(f"--range is {low:g} to {high:g}; give two numbers, the lower one first")
    return Allowed(low, high, given=True)


def check_names(wanted: Sequence[str], names: Sequence[str], path: str | Path) -> None:
    """Check that each of the columns that are wanted is there, and there once."""
    counts = Counter(names)
    for name in wanted:
        if name not in counts:
            raise InvalidArgument(f"{path} has no column {name!r}; it has {listed(names)}")
        if counts[name] > 1:
            raise InvalidArgument(f"{path}: column {name!r} is there twice; name each column once")


def listed(names: Sequence[str], most: int = 10) -> str:
    """Put names in a row, or the first of them."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(repr(name) for name in names[:most]) + more
