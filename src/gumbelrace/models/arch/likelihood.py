"""Likelihoods of ARCH models and their control variates, for any kernel; and slots, for compiled chains.

A control variate expands each row's log density in (α, ν) around a centre. The variance of a row is linear
in α, so its polynomial has the same few terms for every order. Coefficients are kept for every row and
model, and their sums as forms. The constant c(ν) of the density needs no expansion, as it is the same for
every row.
"""

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numba
import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import kernel
from gumbelrace.core.orders import NO_ROWS
from gumbelrace.core.packed import pack, unpack
from gumbelrace.core.rows import Rows, largest
from gumbelrace.errors import InvalidArgument, InvalidReward, ShapeMismatch
from gumbelrace.models.arch.data import Lagged
from gumbelrace.models.arch.model import TAU, Arch
from gumbelrace.models.arch.rows import (
    ALPHA,
    CONSTANT,
    NU,
    ORDER,
    TERMS,
    Centre,
    Floats,
    Indices,
    Projection,
    form_of,
    form_value,
    log_factor,
    place,
    points_of,
    polynomial,
    row,
    shape,
    variance,
)
from gumbelrace.population.compiled import Compiled
from gumbelrace.population.control import ControlVariate, row_weights
from gumbelrace.population.likelihood import (
    KNOWN,
    SLOT,
    Family,
    Likelihood,
    Slots,
    by_arm,
    head_reader,
    likelihood,
    new_slots,
)

Coefficients = NDArray[np.float32]

# Pilots at which the misfit of rows is found.
PILOTS = 64

# Rows whose lags are copied at a time: they fit into the cache.
BLOCK = 2048


class Known(NamedTuple):
    """What compiled code needs to sum the control variate, and the rows of the head."""

    head: Indices
    tail_size: int
    cubic: bool  # whether there are terms of the third degree
    centres: Floats  # of each model, as points
    forms: Floats  # sums over the tail: those of model k start at forms[starts[k]]
    starts: Indices
    model_of: Indices  # number of the model of each order, -1 if there is none


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
    rows : Rows
        The head, which is read in full, the tail, and weights of the residuals.
    """

    data: Lagged
    base: Floats
    terms: Coefficients
    known: Known
    rows: Rows

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What `residual` takes after the point."""
        return *self.data.arrays, self.base, self.terms, self.known.centres, self.known.model_of

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

    @functools.cached_property
    def without_head(self) -> "Expansion":
        """The same expansion for methods that draw rows by their weights."""
        if not len(self.rows.head):
            return self
        orders = np.argsort(self.known.model_of)[-len(self.known.centres) :]
        forms = self.known.forms + np.concatenate(_forms(self.data, orders, self.terms, self.rows.head))
        known = self.known._replace(head=NO_ROWS, tail_size=self.data.size, forms=forms)
        return replace(self, known=known, rows=self.rows.with_head(NO_ROWS))

    def _plain(self, points: Floats) -> Compiled:
        return Compiled(
            by_arm(log_factor), (points, *self.data.arrays), Rows(self.data.size), len(points), None
        )

    def _control(self, points: Floats, sums: Floats) -> ControlVariate:
        data, function = (points, *self.arrays), by_arm(expanded)
        return ControlVariate(function, data, sums, rows=self.rows, residual=by_arm(residual))

    def _check(self, points: Floats) -> None:
        orders = points[:, ORDER].astype(np.int64)
        without = self.known.model_of[orders] < 0
        if without.any():
            raise InvalidArgument(
                f"there is no expansion for order {orders[without][0]}; expand its model too"
            )


@row
def residual(n, point, squares, where, base, terms, centres, model_of):  # type: ignore[no-untyped-def]
    k, s, nu = model_of[int(point[ORDER])], variance(n, point, squares, where), point[NU]
    return shape(s, nu, squares[where[n]]) - polynomial(terms[n, k], s - base[n, k], nu - centres[k, NU])


@row
def expanded(n, point, squares, where, base, terms, centres, model_of):  # type: ignore[no-untyped-def]
    k, s = model_of[int(point[ORDER])], variance(n, point, squares, where)
    return point[CONSTANT] + polynomial(terms[n, k], s - base[n, k], point[NU] - centres[k, NU])


@row
def known_sum(point, known):  # type: ignore[no-untyped-def]
    """Sum the control variate over the tail."""
    k = known.model_of[int(point[ORDER])]
    polynomials = form_value(point, known.centres[k], known.forms[known.starts[k] :], known.cubic)
    return known.tail_size * point[CONSTANT] + polynomials


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


def expand(
    data: Lagged,
    models: Sequence[Arch],
    pilots: Sequence[Floats],
    fit: Projection | None = None,
    share: float = 0.01,
) -> Expansion:
    """Expand the log factors of models around where they will be read.

    Parameters
    ----------
    data : Lagged
        Rows.
    models : sequence of K Arch
        Models of different orders.
    pilots : sequence of K arrays of shape (M, q + 2)
        Parameters of each model like those at which it will be read, some hundred of them: draws from its
        pseudoprior. Their means of α and ν are the centre.
    fit : Projection
        How the polynomials are chosen.
    share : float
        Share of the rows that is read every time: those on which the polynomials fit the pilots worst.

    Examples
    --------
    >>> import gumbelrace as gr
    >>> from gumbelrace.models.arch.likelihood import ArchLikelihood
    >>> from gumbelrace.models.arch.data import lagged, simulate
    >>> from gumbelrace.models.arch.model import laplace
    >>> from gumbelrace.models.arch.data import standardised
    >>> rng = np.random.default_rng(0)
    >>> data = lagged(standardised(simulate(13_000, rng)), 10)
    >>> models = [Arch(order) for order in (5, 10)]
    >>> pilots = [laplace(model, data).sample(rng, 300) for model in models]
    >>> population = ArchLikelihood(data, control=expand(data, models, pilots))([p[0] for p in pilots])
    >>> outcome = gr.best(population, rng=rng)
    >>> outcome.arm, outcome.evaluations / population.rewards < 0.05
    (1, True)
    """
    if not 0.0 <= share < 1.0:
        raise InvalidArgument(f"share is {share}; it must lie in [0, 1)")
    model_of = models_by_order(models, data)
    points = [_checked_pilots(*pair, data) for pair in zip(models, pilots, strict=True)]
    centres = np.stack([pilot.mean(axis=0) for pilot in points])
    base, terms = _fitted_all(data, points, fit or Projection())
    parts = (*data.arrays, base, terms, centres, model_of)
    misfit = np.sum([mean_squares(pilot[:PILOTS], *parts) for pilot in points], axis=0)
    head = largest(misfit, int(share * data.size))
    rows = Rows(data.size, head=head, weights=row_weights(misfit))
    forms = _forms(data, [model.order for model in models], terms, rows.tail)
    known = Known(
        rows.head,
        rows.tail_size,
        terms.shape[2] == TERMS[3],
        centres,
        np.concatenate(forms),
        np.cumsum([0, *map(len, forms)]),
        model_of,
    )
    return Expansion(data, base, terms, known, rows)


def models_by_order(models: Sequence[Arch], data: Lagged) -> Indices:
    """Give the number of the model of each order up to that of the data, -1 if there is none."""
    orders = [model.order for model in models]
    if not orders or len(set(orders)) < len(orders):
        raise InvalidArgument(f"the models have orders {orders}; give at least one, all different")
    if max(orders) > data.lags:
        raise ShapeMismatch(f"the data have {data.lags} lags; a model of order {max(orders)} needs as many")
    found = np.full(data.lags + 1, -1)
    found[orders] = np.arange(len(orders))
    return found


def _checked_pilots(model: Arch, pilots: Floats, data: Lagged) -> Floats:
    if np.ndim(pilots) != 2 or np.shape(pilots)[1] != model.dimension or len(pilots) < 2:
        raise ShapeMismatch(
            f"pilots of order {model.order} have shape {np.shape(pilots)}; give two or more parameters, "
            f"of shape (M, {model.dimension})"
        )
    return points_of(pilots, model.tau, data.lags)


def _fitted_all(data: Lagged, pilots: Sequence[Floats], fit: Projection) -> tuple[Floats, Coefficients]:
    """Give the variances of all rows and models at the centres, and their coefficients."""
    found = [_fitted(data, pilot, fit) for pilot in pilots]
    base, terms = (np.stack(part, axis=1) for part in zip(*found, strict=True))
    if not (np.abs(terms) < np.finfo(np.float32).max).all():
        raise InvalidArgument("log factors have no finite expansion there; give pilots around the mode")
    return base, terms.astype(np.float32)


def _fitted(data: Lagged, pilots: Floats, fit: Projection) -> tuple[Floats, Floats]:
    """Give the variances of all rows at the centre, and the coefficients of their polynomials."""
    order, centre = int(pilots[0, ORDER]), pilots.mean(axis=0)
    alphas = pilots[:, ALPHA : ALPHA + order + 1]
    covariance = np.atleast_2d(np.cov(alphas.T))
    s, squared = np.empty(data.size), np.empty(data.size)
    for start in range(0, data.size, BLOCK):
        rows = slice(start, start + BLOCK)
        design = data.design(order, rows)
        s[rows] = design @ centre[ALPHA : ALPHA + order + 1]
        squared[rows] = np.einsum("ni,ni->n", design @ covariance, design)
    spread, y = np.sqrt(squared), data.squares[data.where]
    return s, fit.coefficients(Centre(s, spread, centre[NU], pilots[:, NU].std(), y))


def _forms(data: Lagged, orders: Iterable[int], terms: Coefficients, rows: Indices) -> list[Floats]:
    """Sum the polynomials of the rows, model by model."""
    return [form_of(_blocks(data, q, terms[:, k], rows), q) for k, q in enumerate(orders)]


def _blocks(
    data: Lagged, order: int, terms: Coefficients, rows: Indices
) -> Iterator[tuple[Floats, Floats]]:
    for start in range(0, len(rows), BLOCK):
        some = rows[start : start + BLOCK]
        yield data.design(order, some), terms[some].astype(np.float64)


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
