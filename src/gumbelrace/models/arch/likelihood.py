"""Likelihoods of ARCH models as populations, for any kernel."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gumbelrace.models.arch.data import Lagged
from gumbelrace.models.arch.desk import desk_of
from gumbelrace.models.arch.expansion import Expansion
from gumbelrace.models.arch.model import TAU
from gumbelrace.models.arch.rows import Floats, Indices, log_factor, points_of
from gumbelrace.population.compiled import Compiled
from gumbelrace.population.desk import Desk
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
    >>> from gumbelrace.models.arch.data import lagged, simulate
    >>> from gumbelrace.models.returns import standardised
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
