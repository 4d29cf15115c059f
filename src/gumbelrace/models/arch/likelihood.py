"""Likelihoods of ARCH models as populations, for any kernel; and slots, for compiled chains."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numba

from gumbelrace.core.packed import pack, unpack
from gumbelrace.models.arch.data import Lagged
from gumbelrace.models.arch.expansion import Expansion, Known, known_sum
from gumbelrace.models.arch.model import TAU
from gumbelrace.models.arch.rows import ALPHA, Floats, Indices, log_factor, place, points_of
from gumbelrace.population.compiled import Compiled
from gumbelrace.population.likelihood import (
    KNOWN,
    SLOT,
    Family,
    Likelihood,
    Slots,
    head_reader,
    likelihood,
    new_slots,
)


@dataclass(frozen=True, eq=False)
class ArchLikelihood:
    """Populations of log factors of ARCH models of any orders.

    Called with parameters x, one for each arm, whose lengths tell their orders.

    Parameters
    ----------
    data : Lagged
        Rows.
    tau : float
        τ of the models.
    control : Expansion or Family, optional
        A control variate for every set of points, usually that of `expand`.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> from gumbelrace.models.arch.model import Arch
    >>> from gumbelrace.models.arch.data import lagged, simulate, standardised
    >>> rng = np.random.default_rng(0)
    >>> data = lagged(standardised(simulate(5000, rng)), 10)
    >>> low, high = Arch(1).parameter([0.8, 0.1], 5.0), Arch(3).parameter([0.5, 0.1, 0.1, 0.1], 5.0)
    >>> gr.best(ArchLikelihood(data)([low, high]), rng=rng).arm
    1
    """

    data: Lagged
    tau: float = TAU
    control: Expansion | Family | None = None

    def __call__(self, xs: Sequence[Floats] | Floats) -> Compiled:
        """Give the population whose arm i is the parameter xs[i]."""
        points = points_of(xs, self.tau, self.data.lags)
        if isinstance(self.control, Expansion):
            return self.control.population(points)
        return self._points(points)

    @functools.cached_property
    def without_head(self) -> "ArchLikelihood":
        """The same for methods that draw rows by their weights. See `Likelihood.without_head`."""
        if not isinstance(self.control, Expansion):
            return self
        return replace(self, control=self.control.without_head)

    @property
    def has_slots(self) -> bool:
        """Whether chains are compiled: with the control variate of `expand`."""
        return isinstance(self.control, Expansion)

    def slots(self, arms: int, dimensions: Indices) -> Slots:
        """Give slots in which residuals are raced, if it `has_slots`; see `CarlinChib`."""
        control, lags = cast(Expansion, self.control), self.data.lags
        slots = new_slots(2, arms, ALPHA + 1 + lags, dimensions)
        packed = pack((*slots[:4], self.tau, *control.known, *self.data.arrays))
        known = _known(packed.type)
        return slots._replace(population=control.residuals(slots.rooms[1]), known=known, packed=packed)

    @functools.cached_property
    def _points(self) -> Likelihood:
        plain = likelihood(log_factor, self.data.arrays, self.data.size)
        if self.control is None or isinstance(self.control, Expansion):
            return plain
        return plain.minus(self.control)


@functools.lru_cache(maxsize=16)
def _known(data_type: Any) -> Any:
    read = head_reader(log_factor)

    @numba.cfunc(SLOT)
    def known(context, slot):  # type: ignore[no-untyped-def]
        everything = unpack(context, data_type)
        rooms, of_all, models, dimensions, tau = everything[:5]
        head, tail_size, cubic, centres, forms, starts, model_of, squares, where = everything[5:]
        point, numbers = rooms[1, slot], of_all[slot]
        place(rooms[0, slot, : dimensions[models[slot]]], tau, point)
        read(numbers, point, head, (squares, where))
        sums = Known(head, tail_size, cubic, centres, forms, starts, model_of)
        numbers[KNOWN] = known_sum(point, sums)
        return len(head)

    return known
