"""What is known of each candidate, as a table to be printed."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# In the order in which they are listed.
STATES = ("best", "tied", "racing", "no better", "out")
HEADS = ("candidate", "mean", "interval", "n", "failed", "state")


class Row(NamedTuple):
    """What is known of a candidate.

    Attributes
    ----------
    name : str
        Its name.
    mean : float
        Mean score over the examples it was evaluated on; NaN if there are none.
    low, high : float
        The mean over all examples lies between them, at all times at once, but for a probability δ of each
        candidate. The means of candidates that are out come from fewer examples.
    evaluations, failures : int
        How many there were.
    state : str
        "best", "tied", "no better" (than the best, but for the tolerance), "racing", or "out".
    """

    name: str
    mean: float
    low: float
    high: float
    evaluations: int
    failures: int
    state: str


class Table(tuple[Row, ...]):
    """A row for each candidate, which prints as a table, the best first."""

    @property
    def ranked(self) -> list[Row]:
        """The rows by their state and mean."""
        return sorted(
            self, key=lambda row: (STATES.index(row.state), -np.nan_to_num(row.mean, nan=-np.inf))
        )

    def __str__(self) -> str:
        """Show the candidates by their state and mean."""
        lines = [HEADS, *map(cells, self.ranked)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(_aligned(line, widths) for line in lines)


def cells(row: Row) -> tuple[str, ...]:
    """Give what a table says of a candidate."""
    counts = f"{row.evaluations:,}", f"{row.failures:,}"
    if np.isnan(row.mean):
        return row.name, "", "", *counts, row.state
    mean, low, high = (f"{value:.{_decimals(row)}f}" for value in row[1:4])
    return row.name, mean, f"{low} - {high}", *counts, row.state


def _decimals(row: Row) -> int:
    """Four, or as many as it takes to show two digits of what scores are about."""
    size = max(row.high - row.low, abs(row.mean) / 100.0)
    return max(4, 1 - math.floor(math.log10(size))) if size > 0.0 else 4


def _aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    """Set numbers to the right, the name and the state to the left."""
    first, *numbers, last = line
    right = [f"{text:>{width}}" for text, width in zip(numbers, widths[1:-1], strict=True)]
    return "  ".join([f"{first:<{widths[0]}}", *right, last])
