"""Control variates of ARCH models: each row's log density, expanded in (α, ν) around a centre.

The variance of a row is linear in α, so its polynomial has the same few terms for every order. Coefficients
are kept for every row and model, and their sums as forms. The constant c(ν) of the density needs no
expansion, as it is the same for every row.
"""

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import kernel
from gumbelrace.core.shuffle import Rows
from gumbelrace.errors import InvalidArgument, InvalidReward
from gumbelrace.models.arch.data import Lagged
from gumbelrace.models.arch.polynomials import form_value, polynomial
from gumbelrace.models.arch.rows import (
    CONSTANT,
    NU,
    ORDER,
    Floats,
    Indices,
    log_factor,
    row,
    shape,
    variance,
)
from gumbelrace.population.compiled import Compiled
from gumbelrace.population.control import Always, ControlVariate
from gumbelrace.population.likelihood import by_arm

Coefficients = NDArray[np.float32]


class Known(NamedTuple):
    """What compiled code needs to sum the control variate, and the rows that are always read.

    Attributes
    ----------
    always : ndarray
        Rows that are always read.
    raced : int
        Number of the others.
    cubic : bool
        Whether there are terms of the third degree.
    centres : ndarray of shape (K, width)
        Centres, as points.
    forms, starts : ndarray
        Sums over the rows that are not always read: those of model k start at forms[starts[k]].
    model_of : ndarray of shape (lags + 1,)
        Number of the model of each order, -1 if there is none.
    """

    always: Indices
    raced: int
    cubic: bool
    centres: Floats
    forms: Floats
    starts: Indices
    model_of: Indices


@dataclass(frozen=True, eq=False)
class Expansion:
    """A control variate for every set of points of given models. See `expand`.

    Attributes
    ----------
    data : Lagged
        Rows.
    base : ndarray of shape (N, K)
        Variance of each row at the centre of each model.
    terms : ndarray of shape (N, K, 6) or (N, K, 10)
        Coefficients of the rows' polynomials. Single precision is enough, as the sums are those of the same
        numbers.
    known : Known
        Sums.
    always : Always or None
        Rows that are always read.
    """

    data: Lagged
    base: Floats
    terms: Coefficients
    known: Known
    always: Always | None

    @property
    def parts(self) -> tuple[Any, ...]:
        """What `residual` takes after the point."""
        return *self.data.parts, self.base, self.terms, self.known.centres, self.known.model_of

    def population(self, points: Floats) -> Compiled:
        """Give the residuals, with an arm for each point."""
        self._check(points)
        sums = _sums(points, self.known)
        if not np.isfinite(sums).all():
            raise InvalidReward(
                f"the log likelihood at {points[np.argmin(np.isfinite(sums))]} is not finite"
            )
        return self._plain(points).minus(self._control(points, sums))

    def residuals(self, points: Floats) -> Compiled:
        """Give the residuals at the points that lie there when they are read; nothing is read here."""
        return self._plain(points).residuals(self._control(points, np.zeros(len(points))))

    def _plain(self, points: Floats) -> Compiled:
        return Compiled(by_arm(log_factor), (points, *self.data.parts), self._rows, len(points), None)

    def _control(self, points: Floats, sums: Floats) -> ControlVariate:
        data, function = (points, *self.parts), by_arm(expanded)
        return ControlVariate(
            function, data, sums, always=self.always, size=self.data.size, residual=by_arm(residual)
        )

    @functools.cached_property
    def _rows(self) -> Rows:
        return Rows(self.data.size)

    def _check(self, points: Floats) -> None:
        orders = points[:, ORDER].astype(np.int64)
        without = self.known.model_of[orders] < 0
        if without.any():
            raise InvalidArgument(
                f"there is no expansion for order {orders[without][0]}; expand its model too"
            )


@row
def residual(n, point, squares, where, base, terms, centres, model_of):  # type: ignore[no-untyped-def]
    """Give the log factor of row n less its control variate."""
    k, s, nu = model_of[int(point[ORDER])], variance(n, point, squares, where), point[NU]
    return shape(s, nu, squares[where[n]]) - polynomial(terms[n, k], s - base[n, k], nu - centres[k, NU])


@row
def expanded(n, point, squares, where, base, terms, centres, model_of):  # type: ignore[no-untyped-def]
    """Give the control variate of row n."""
    k, s = model_of[int(point[ORDER])], variance(n, point, squares, where)
    return point[CONSTANT] + polynomial(terms[n, k], s - base[n, k], point[NU] - centres[k, NU])


@row
def known_sum(point, known):  # type: ignore[no-untyped-def]
    """Sum the control variate over the rows that are not always read."""
    k = known.model_of[int(point[ORDER])]
    polynomials = form_value(point, known.centres[k], known.forms[known.starts[k] :], known.cubic)
    return known.raced * point[CONSTANT] + polynomials


@kernel
def _sums(points: Floats, known: Known) -> Floats:
    sums = np.empty(len(points))
    for a in range(len(points)):
        sums[a] = known_sum(points[a], known)
    return sums


@kernel
def mean_squares(
    points: Floats,
    squares: Floats,
    where: Indices,
    base: Floats,
    terms: Coefficients,
    centres: Floats,
    model_of: Indices,
) -> Floats:
    """Mean square of the residuals of each row over points."""
    found = np.zeros(len(where))
    for a in range(len(points)):
        for n in range(len(where)):
            left = residual(n, points[a], squares, where, base, terms, centres, model_of)
            found[n] += left * left / len(points)
    return found
