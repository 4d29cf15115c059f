"""How sweeps are made: the temperature of each, and the order in which it visits the variables.

Gumbel noise times T draws from p^(1/T), and at T = 0 takes the best.
"""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument

# The temperature of sweep 0, 1, 2, ...
Annealing = Callable[[int], float]


@dataclass(frozen=True)
class Constant:
    """The same temperature for every sweep: 1 samples from p, 0 takes the best state each time.

    Examples
    --------
    >>> import gumbelrace as gr
    >>> gr.kernels.Constant(0.5)(7)
    0.5
    """

    temperature: float = 1.0

    def __post_init__(self) -> None:
        checked_temperature(self.temperature)

    def __call__(self, sweep: int) -> float:
        """Give the temperature of a sweep."""
        return self.temperature


@dataclass(frozen=True)
class Geometric:
    """A temperature that falls by a fixed ratio: start · ratio^sweep, and 0 from `zero_after` on.

    Parameters
    ----------
    start : float
        Temperature of the first sweep.
    ratio : float
        In (0, 1]: each temperature over the one before.
    zero_after : int, optional
        Number of sweeps after which the temperature is 0. Default: it never is.

    Examples
    --------
    >>> import gumbelrace as gr
    >>> [gr.kernels.Geometric(start=2.0, ratio=0.5, zero_after=3)(sweep) for sweep in range(5)]
    [2.0, 1.0, 0.5, 0.0, 0.0]
    """

    start: float = 1.0
    ratio: float = 0.95
    zero_after: int | None = None

    def __post_init__(self) -> None:
        checked_temperature(self.start)
        if not (isinstance(self.ratio, Real) and 0.0 < self.ratio <= 1.0):
            raise InvalidArgument(f"ratio is {self.ratio!r}; it must lie in (0, 1]")

    def __call__(self, sweep: int) -> float:
        """Give the temperature of a sweep."""
        if self.zero_after is not None and sweep >= self.zero_after:
            return 0.0
        return self.start * self.ratio**sweep


def checked_temperature(temperature: float) -> float:
    """Return a temperature if it is one."""
    value = np.asarray(temperature)
    if value.ndim > 0 or value.dtype.kind not in "fiub" or not 0.0 <= value < np.inf:
        raise InvalidArgument(f"the temperature is {temperature!r}; it must be finite and at least 0")
    return temperature


Order = NDArray[np.int64]


class Scan(Protocol):
    """Gives the order of one sweep."""

    def order(self, rng: np.random.Generator, variables: int) -> Order:
        """Give the variables that a sweep visits, in order."""


@dataclass(frozen=True)
class Systematic:
    """Every variable once, from the first to the last.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> gr.kernels.Systematic().order(np.random.default_rng(0), 4)
    array([0, 1, 2, 3])
    """

    def order(self, rng: np.random.Generator, variables: int) -> Order:
        """Give 0, 1, ..., and draw nothing from `rng`."""
        return np.arange(variables, dtype=np.int64)


@dataclass(frozen=True)
class Shuffled:
    """Every variable once, in a new random order each sweep.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> sorted(gr.kernels.Shuffled().order(np.random.default_rng(0), 4).tolist())
    [0, 1, 2, 3]
    """

    def order(self, rng: np.random.Generator, variables: int) -> Order:
        """Give a random permutation."""
        return rng.permutation(np.arange(variables, dtype=np.int64))


@dataclass(frozen=True)
class RandomScan:
    """As many visits as there are variables, each of a variable chosen anew: the chain is reversible.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> len(gr.kernels.RandomScan().order(np.random.default_rng(0), 4))
    4
    """

    def order(self, rng: np.random.Generator, variables: int) -> Order:
        """Give independent uniform choices."""
        return rng.integers(variables, size=variables, dtype=np.int64)
