"""Log factors less their second-order expansion, computed for many rows at once."""

import functools
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import ArrayLike

from gumbelrace.core.packed import pack, unpack
from gumbelrace.core.rows import Rows
from gumbelrace.errors import ShapeMismatch
from gumbelrace.laplace.model import Floats, Quadratic
from gumbelrace.population.batched import Batched
from gumbelrace.population.control import Indices, Known, apart
from gumbelrace.population.likelihood import KNOWN, SLOT, Slots, new_slots


@dataclass(frozen=True, repr=False)
class BatchedLikelihood:
    """Σ_n log f_n(θ) near a centre: the sums of the expansion are known, what is left of rows is read.

    Attributes
    ----------
    residuals : numba function
        ``residuals(rows, arm, centre, steps, *data)`` gives, of each row, its log factor at the centre and
        steps[arm], less its second-order expansion at the centre.
    data : tuple
        Arrays and numbers that it takes.
    rows : Rows
        How many there are, and their weights.
    centre : ndarray of shape (d,)
        The point of expansion.
    sums : Quadratic
        Σ_n log f_n near the centre.
    """

    residuals: Any
    data: tuple[Any, ...]
    rows: Rows
    centre: Floats
    sums: Quadratic

    has_slots = True  # compiled code knows all that is known of any point

    def __repr__(self) -> str:
        """Say how many rows there are, and nothing of the data."""
        return f"BatchedLikelihood(size={self.size:_})"

    @property
    def size(self) -> int:
        """Number of rows, N."""
        return self.rows.size

    def __call__(self, points: ArrayLike) -> Batched:
        """Give the population whose arm i is the parameter points[i]."""
        checked = np.asarray(points, np.float64)
        if checked.ndim != 2 or checked.shape[1] != len(self.centre):
            raise ShapeMismatch(f"points have shape {checked.shape}; it must be (D, {len(self.centre)})")
        steps = np.ascontiguousarray(checked - self.centre)
        sums = np.array([self.sums.change(step) for step in steps])
        return self.around(steps, Known(apart(sums[None]), np.abs(sums), 0))

    def around(self, steps: Floats, known: Known | None = None) -> Batched:
        """Give what is left of the rows at the centre and `steps`, which lie there when it is read."""
        return Batched(self.residuals, (self.centre, steps, *self.data), self.rows, len(steps), known)

    def slots(self, arms: int, dimensions: Indices) -> Slots:
        """Give slots for the steps of a chain, that know the sums of the expansion; nothing is read."""
        slots = new_slots(2, arms, len(self.centre), dimensions)
        packed = pack((slots.rooms, slots.numbers, self.centre, self.sums.gradient, self.sums.hessian))
        return slots._replace(
            population=self.around(slots.rooms[1]), known=_known(packed.type), packed=packed
        )


@functools.cache
def _known(data_type: Any) -> Any:
    @numba.cfunc(SLOT)
    def known(context, slot):  # type: ignore[no-untyped-def]
        rooms, numbers, centre, gradient, hessian = unpack(context, data_type)
        step, total = rooms[1, slot], 0.0
        for i in range(len(centre)):
            step[i] = rooms[0, slot, i] - centre[i]
        for i in range(len(centre)):
            curved = 0.0
            for j in range(len(centre)):
                curved += hessian[i, j] * step[j]
            total += step[i] * (gradient[i] + 0.5 * curved)
        # The value at the centre is left out, which all arms share.
        numbers[slot, KNOWN] = total
        return 0

    return known
