"""Likelihoods of ARCH models as populations, for any kernel; and desks, from which compiled chains race."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from gumbelrace.core.packed import pack, unpack
from gumbelrace.models.arch.data import Lagged
from gumbelrace.models.arch.expansion import (
    Expansion,
    Known,
    always_sum,
    known_sum,
    mapped_residual,
)
from gumbelrace.models.arch.model import TAU
from gumbelrace.models.arch.rows import ALPHA, Floats, Indices, log_factor, place, points_of
from gumbelrace.population.compiled import Compiled
from gumbelrace.population.desk import SETTER, Desk
from gumbelrace.population.likelihood import Family, Likelihood, likelihood


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

    @property
    def desk(self) -> Callable[[int, Indices, Any], Desk]:
        """Makes a desk for compiled chains, ``desk(arms, dimensions, log_prior)``; see `CarlinChib`.

        Only a likelihood with the control variate of `expand` has it; chains of others are not compiled.
        """
        if not isinstance(self.control, Expansion):
            raise AttributeError("only a likelihood with the control variate of `expand` has a desk")
        return functools.partial(desk_of, self.control, self.tau)

    @functools.cached_property
    def _points(self) -> Likelihood:
        plain = likelihood(log_factor, self.data.parts, self.data.size)
        if self.control is None or isinstance(self.control, Expansion):
            return plain
        return plain.minus(self.control)


def desk_of(control: Expansion, tau: float, arms: int, dimensions: Indices, log_prior: Any) -> Desk:
    """Make a desk on which residuals are raced, their control variate being in the offsets."""
    lags = control.data.lags
    points, xs, models = (
        np.zeros((arms, ALPHA + 1 + lags)),
        np.zeros((arms, lags + 2)),
        np.zeros(arms, np.int64),
    )
    population = Compiled(
        mapped_residual,
        (control.raced, points, *control.parts),
        control.order,
        arms,
        None,
        control.raced,
    )
    packed = pack((xs, models, dimensions, points, tau, *control.known, *control.data.parts))
    return Desk(xs, models, population, _setter(log_prior, packed.type), packed)


@numba.njit
def put_priors(log_prior, xs, models, dimensions, points, tau, offset):  # type: ignore[no-untyped-def]
    """Lay out the parameters, and put their log priors into the offsets; return how many are possible."""
    possible = 0
    for a in range(len(xs)):
        x = xs[a, : dimensions[models[a]]]
        place(x, tau, points[a])
        offset[a] = np.nan  # stays if the prior raises an exception
        offset[a] = log_prior(x)
        possible += offset[a] > -np.inf
    return possible


@functools.lru_cache(maxsize=16)
def _setter(log_prior: Any, data_type: Any) -> Any:
    @numba.cfunc(SETTER)
    def put(context, offset, low, high):  # type: ignore[no-untyped-def]
        everything = unpack(context, data_type)
        xs, models, dimensions, points, tau = everything[:5]
        always, raced, cubic, centres, forms, starts, model_of, squares, where = everything[5:]
        known = Known(always, raced, cubic, centres, forms, starts, model_of)
        possible = put_priors(log_prior, xs, models, dimensions, points, tau, offset)
        if possible < 2:
            return 0  # decided: nothing is read
        for a in range(len(xs)):
            if offset[a] > -np.inf:
                offset[a] += known_sum(points[a], known) + always_sum(points[a], always, squares, where)
        return len(always) * possible

    return put
