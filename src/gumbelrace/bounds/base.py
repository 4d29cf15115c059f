"""A bound G(δ, T, σ̂, C): how far an estimated mean may lie above the true one (paper, Eq. 4).

Both bounds of the paper have the form a_t·σ̂ + c_t·C, with numbers a_t and c_t that depend on the look
alone. A new bound is one new file that gives these two.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Coefficients(NamedTuple):
    """a_t and c_t for each look."""

    per_deviation: Floats
    per_range: Floats


class Bound(ABC):
    """A bound on the error of a mean that holds at all looks together."""

    #: Rows of the first look, m^(1), if the user does not say.
    first: int
    #: Whether the bound needs to know how large rewards can be.
    needs_range: bool
    #: What the bound rests on; None if it is proved for all bounded rewards.
    assumption: str | None
    #: Whether the errors of two independent means add in squares (else they just add).
    adds_in_squares: bool

    @abstractmethod
    def coefficients(self, delta: float, looks: NDArray[np.int64], size: int) -> Coefficients:
        """Give a_t and c_t at `looks` rows of `size`, for an error `delta` over all of them.

        `looks` are the rows read at each look before the last, each twice the one before.
        """

    @abstractmethod
    def any_schedule(self, delta: float, looks: Floats, sizes: Floats) -> Coefficients:
        """Give the same for any schedule: `looks[t, i]` rows of the `sizes[i]` of each arm."""
