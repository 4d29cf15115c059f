"""Slots: parameter vectors that compiled code writes, so that the steps of a chain need no Python.

A population reads its rewards at the parameters that lie in its slots. After one of them has changed, a
small function, called by its address, brings that slot up to date: what is known of it without a race.
"""

import functools
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from gumbelrace.core.jit import as_written, users
from gumbelrace.core.packed import Packed, pack, unpack
from gumbelrace.population.base import Floats, SharedPopulation

# known(context, slot) -> rewards read for it.
SLOT = types.int64(types.CPointer(types.int64), types.int64)

# Entries of Slots.numbers: the log prior; the known part of the sum of rewards; the sum of rewards that are
# always read, and what rounding has taken from it; the largest size of other rewards (negative: not known).
PRIOR, KNOWN, READ, LOST, MOST, COST = range(6)


class Slots(NamedTuple):
    """Parameters of some arms, and the population of rewards at them.

    `known`, called where the prior is positive, puts what else is known of one arm into its numbers, and
    returns the rewards read for it.
    """

    rooms: Floats  # [room, arm]: what is kept of each arm; in the first room its parameter
    numbers: Floats  # of each arm: PRIOR, KNOWN, ...
    models: NDArray[np.int64]  # number of the model of each arm
    dimensions: NDArray[np.int64]  # number of parameters of each model
    population: SharedPopulation | None  # none where Python decides
    known: Any  # compiled function of type SLOT
    packed: Packed  # what it needs

    @property
    def parameters(self) -> Floats:
        """The parameters, of shape (arms, width)."""
        parameters: Floats = self.rooms[0]
        return parameters

    def parameter(self, slot: int) -> Floats:
        return self.parameters[slot, : self.dimensions[self.models[slot]]].copy()


def new_slots(rooms: int, arms: int, width: int, dimensions: NDArray[np.int64]) -> Slots:
    """Make room for arms of which nothing is known; `width` is that of the widest thing kept of one."""
    numbers, models = np.zeros((arms, 6)), np.zeros(arms, np.int64)
    packed = pack((numbers,))
    known = _nothing_known(packed.type)
    return Slots(np.zeros((rooms, arms, width)), numbers, models, dimensions, None, known, packed)


def bare_slots(arms: int, dimensions: NDArray[np.int64]) -> Slots:
    """Make room for the parameters of arms alone."""
    return new_slots(1, arms, int(dimensions.max()), dimensions)


@functools.cache
def _nothing_known(data_type: Any) -> Any:
    @numba.cfunc(SLOT)
    def known(context, slot):  # type: ignore[no-untyped-def]
        unpack(context, data_type)[0][slot, KNOWN] = 0.0
        return 0

    return known


@functools.lru_cache(maxsize=64)
def always_reader(log_factor: Any) -> Any:
    """Compile ``read(numbers, point, rows, data)``, which adds up the log factors of rows always read.

    What rounding takes is kept, as arms may share most of a sum. A `part` counts no references.
    """
    given = users(log_factor)

    @as_written
    def read(numbers, point, rows, data):  # type: ignore[no-untyped-def]
        total, lost = 0.0, 0.0
        for n in rows:
            before, term = total, given(n, point, *data)
            total = before + term
            of_term = total - before
            lost += (before - (total - of_term)) + (term - of_term)
        numbers[READ] = total
        numbers[LOST] = lost if abs(total) < np.inf else 0.0

    return read
