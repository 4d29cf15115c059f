"""In which order variables are visited, and at which temperature."""

from dataclasses import dataclass

import numpy as np

from gumbelrace.errors import InvalidArgument
from gumbelrace.population.base import checked_count


@dataclass(frozen=True)
class SystematicScan:
    """Visit the variables one after the other."""


@dataclass(frozen=True)
class RandomScan:
    """Visit as many variables as there are, each picked at random (some twice, some never)."""


@dataclass(frozen=True)
class Annealing:
    """Inverse temperatures that grow geometrically; afterwards infinite, so that labels only improve.

    Parameters
    ----------
    first, last : float
        Inverse temperatures of the first and of the last noisy sweep.
    sweeps : int
        Number of noisy sweeps.

    Examples
    --------
    >>> import gumbelrace as gr
    >>> schedule = gr.Annealing(first=0.5, last=2.0, sweeps=3)
    >>> [schedule(sweep) for sweep in range(4)]
    [0.5, 1.0, 2.0, inf]
    """

    first: float = 0.1
    last: float = 10.0
    sweeps: int = 1000

    def __post_init__(self) -> None:
        checked_count(self.sweeps, "sweeps")
        if not 0.0 < self.first <= self.last < np.inf:
            raise InvalidArgument(
                f"inverse temperatures from {self.first} to {self.last}; 0 < first <= last is needed"
            )

    def __call__(self, sweep: int) -> float:
        """Give the inverse temperature of a sweep, the first being number 0."""
        if sweep >= self.sweeps:
            return float("inf")
        ratio: float = self.last / self.first
        return float(self.first * ratio ** (sweep / max(self.sweeps - 1, 1)))
