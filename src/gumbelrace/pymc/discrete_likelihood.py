"""The states of discrete variables as models to choose from, each near a mode of its own."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from gumbelrace.core.packed import pack, unpack
from gumbelrace.core.rows import Rows
from gumbelrace.errors import InvalidArgument
from gumbelrace.laplace.model import Floats, Quadratic
from gumbelrace.population.batched import Batched
from gumbelrace.population.control import Indices, Known, apart
from gumbelrace.population.likelihood import KNOWN, SLOT, Slots, new_slots
from gumbelrace.pymc.discrete import Labels
from gumbelrace.pymc.functions import Functions


@dataclass(frozen=True, repr=False)
class StateLikelihood:
    """log p0 + Σ_n log f_n of each state, at parameters of its own.

    The prior depends on the state, and is a part of what is known.

    Attributes
    ----------
    functions : Functions
        The residuals, of data that begin with the labels of a state, and the log prior of joint vectors.
    data : tuple of ndarray
        The other data.
    rows : Rows
        How many there are, and their weights.
    labels : ndarray of shape (states, entries)
        The discrete variables in each state.
    centres : ndarray of shape (states, d)
        The mode of each state.
    sums : sequence of Quadratic
        Σ_n log f_n near each.
    """

    functions: Functions
    data: tuple[Any, ...]
    rows: Rows
    labels: Labels
    centres: Floats
    sums: Sequence[Quadratic]

    has_slots = True  # compiled code knows all that is known of any point

    def __repr__(self) -> str:
        """Say how much there is, and nothing of the data."""
        return f"StateLikelihood(size={self.rows.size:_}, states={len(self.labels)})"

    def __call__(self, parameters: Sequence[Floats]) -> Batched:
        """Give the population whose arm k is state k at parameters[k]."""
        if len(parameters) != len(self.labels) or isinstance(parameters, np.ndarray):
            raise InvalidArgument("give a list of parameters, one for each state")
        steps = np.stack(parameters) - self.centres
        near = zip(self.sums, steps, strict=True)
        joint = np.concatenate([np.stack(parameters), self.labels], axis=1)
        priors = [self.functions.log_prior(one) for one in joint]
        sums = np.array([quadratic.value + quadratic.change(step) for quadratic, step in near]) + priors
        return self._around(steps, np.arange(len(steps)), Known(apart(sums[None]), np.abs(sums), 0))

    def slots(self, arms: int, dimensions: Indices) -> Slots:
        """Give slots for the steps of a chain, that know what expansions and the prior say."""
        slots = new_slots(2, arms, self.centres.shape[1], dimensions)
        values, gradients, hessians = (np.array(part) for part in zip(*self.sums, strict=True))
        near = self.labels.astype(np.float64), self.centres, values, gradients, hessians
        packed = pack((slots.rooms, slots.numbers, slots.models, *near))
        population = self._around(slots.rooms[1], slots.models)
        return slots._replace(
            population=population, known=_known(self.functions.log_prior, packed.type), packed=packed
        )

    def _around(self, steps: Floats, models: Indices, known: Known | None = None) -> Batched:
        """Give what is left of the rows at the steps and states that lie there when it is read."""
        data = (models, self.centres, steps, self.labels, *self.data)
        return Batched(of_states(self.functions.residuals), data, self.rows, len(steps), known)


@functools.lru_cache(maxsize=64)
def of_states(residuals: Any) -> Any:
    """Compile the residuals of arms that each have a state."""

    @numba.njit
    def of_state(rows, arm, models, centres, steps, labels, *data):  # type: ignore[no-untyped-def]
        state = models[arm]
        return residuals(rows, arm, centres[state], steps, labels[state], *data)

    return of_state


@functools.lru_cache(maxsize=64)
def _known(log_prior: Any, data_type: Any) -> Any:
    @numba.cfunc(SLOT)
    def known(context, slot):  # type: ignore[no-untyped-def]
        rooms, numbers, models, labels, centres, values, gradients, hessians = unpack(context, data_type)
        state, d, entries = models[slot], centres.shape[1], labels.shape[1]
        joint, step, total = np.empty(d + entries), rooms[1, slot], values[state]
        for i in range(d):
            joint[i] = rooms[0, slot, i]
            step[i] = joint[i] - centres[state, i]
        for i in range(entries):
            joint[d + i] = labels[state, i]
        for i in range(d):
            curved = 0.0
            for j in range(d):
                curved += hessians[state, i, j] * step[j]
            total += step[i] * (gradients[state, i] + 0.5 * curved)
        numbers[slot, KNOWN] = total + log_prior(joint)
        return 0

    return known
