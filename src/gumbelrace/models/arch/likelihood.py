"""Likelihoods of ARCH models as populations, for any kernel."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gumbelrace.errors import InvalidArgument
from gumbelrace.models.arch.data import Lagged
from gumbelrace.models.arch.desk import controlled_desk, plain_desk
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

    def desk(self, arms: int, dimensions: Indices, log_prior: Any) -> Desk:
        """Make a desk for compiled chains; see `gumbelrace.CarlinChib`.

        Parameters
        ----------
        arms : int
            Number of arms.
        dimensions : ndarray of int64
            Number of parameters of each model.
        log_prior : numba function
            ``log_prior(x) -> float``.
        """
        if self.control is None:
            return plain_desk(self.data, self.tau, arms, dimensions, log_prior)
        if not isinstance(self.control, Expansion):
            raise InvalidArgument("a desk needs the control variate of `expand`, or none")
        return controlled_desk(self.control, self.tau, arms, dimensions, log_prior)

    @functools.cached_property
    def _points(self) -> Likelihood:
        plain = likelihood(log_factor, self.data.parts, self.data.size)
        return plain if self.control is None else plain.minus(self.control)
