"""Arms whose parameters compiled code puts down before each race, so that a chain needs no Python."""

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from gumbelrace.core.packed import Packed
from gumbelrace.population.base import Floats, SharedPopulation

# set(context, offset, low, high) -> rewards read: puts what is known of each arm into its offset, and the
# range of what is not into low and high.
SETTER = types.int64(
    types.CPointer(types.int64),
    types.CPointer(types.float64),
    types.CPointer(types.float64),
    types.CPointer(types.float64),
)


class Desk(NamedTuple):
    """Parameters of some arms, and the population of rewards at them.

    Attributes
    ----------
    parameters : ndarray of shape (arms, width)
        The parameter of each arm, in the first entries of its row.
    models : ndarray of shape (arms,)
        Number of the model of each arm.
    population : SharedPopulation
        Rewards at the parameters that lie there when they are read.
    setter : compiled function of type SETTER
        To be called after parameters have changed: puts their log prior, and what is known of their sums of
        rewards, into the offsets.
    packed : Packed
        What the setter needs.
    """

    parameters: Floats
    models: NDArray[np.int64]
    population: SharedPopulation
    setter: Any
    packed: Packed

    @property
    def entry(self) -> tuple[int, int]:
        """Addresses of the setter and of its data."""
        return self.setter.address, self.packed.words.ctypes.data
