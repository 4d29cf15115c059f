"""In which order a sweep of Gibbs sampling visits the variables."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

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
