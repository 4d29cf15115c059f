"""The log factors of a parameter: a population for every set of points at which to compare them.

Slots are parameter vectors that compiled code writes, so that the steps of a chain need no Python.
A population reads its rewards at the parameters that lie in its slots. After one of them has changed, a
small function, called by its address, brings that slot up to date: what is known of it without a race.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numba
import numpy as np
from numba import types
from numpy.typing import ArrayLike, NDArray

from gumbelrace.core.jit import as_written, part, users
from gumbelrace.core.packed import Packed, pack, unpack
from gumbelrace.core.rows import Rows
from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.population.arrays import floats
from gumbelrace.population.base import Floats, SharedPopulation, checked_count, checked_range
from gumbelrace.population.compiled import Compiled
from gumbelrace.population.control import ControlVariate, Indices, checked_impossible, nothing_known
from gumbelrace.population.trial import Call, checked_data, checked_dispatcher, try_out

# known(context, slot) -> rewards read for it.
SLOT = types.int64(types.CPointer(types.int64), types.int64)

# Entries of Slots.numbers: the log prior; the known part of the sum of rewards; the sum of rewards of the
# head, and what rounding has taken from it; the largest size of other rewards (negative: not known).
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
def head_reader(log_factor: Any) -> Any:
    """Compile ``read(numbers, point, head, data)``, which adds up the log factors of the rows of a head.

    What rounding takes is kept, as arms may share most of a sum. A `part` counts no references.
    """
    given = users(log_factor)

    @as_written
    def read(numbers, point, head, data):  # type: ignore[no-untyped-def]
        total, lost = 0.0, 0.0
        for n in head:
            before, term = total, given(n, point, *data)
            total = before + term
            of_term = total - before
            lost += (before - (total - of_term)) + (term - of_term)
        numbers[READ] = total
        numbers[LOST] = lost if abs(total) < np.inf else 0.0

    return read


FORM = "log_factor(n, theta, *data)"


class Family(Protocol):
    """A control variate for every set of points."""

    def at(self, points: Floats) -> ControlVariate:
        """Give the control variate whose arm i is points[i]."""


@runtime_checkable
class Fitting(Family, Protocol):
    """A family that looks at the log factors before it is used."""

    def fitted(self, likelihood: "Likelihood") -> Family:
        """Give the control variate for these log factors."""


@runtime_checkable
class Following(Family, Protocol):
    """A family whose sums compiled code knows at any point."""

    def slots(self, likelihood: "Likelihood", slots: Slots) -> Slots:
        """Give slots that know what they are of these log factors."""


@dataclass(frozen=True, repr=False)
class Likelihood:
    """Σ_n log f_n(θ), with an optional control variate. See `likelihood`."""

    log_factor: Any
    data: tuple[Any, ...]
    rows: Rows
    reward_range: tuple[ArrayLike, ArrayLike] | None = None
    control: Family | None = None
    impossible: Indices | None = None

    def __repr__(self) -> str:
        """Say how many rows there are, and nothing of the data."""
        control = "" if self.control is None else f", control={type(self.control).__name__}(...)"
        return f"Likelihood(size={self.size:_}{control})"

    @property
    def size(self) -> int:
        """Number of rows, N."""
        return self.rows.size

    def minus(self, control: Family) -> "Likelihood":
        """Return the same likelihood, read as residuals of a control variate.

        Expansions in the parameters read all rows now, at a few points around their centre, to choose those
        that are read every time from then on. See `parameter_taylor`.
        """
        if self.control is not None:
            raise InvalidArgument("the likelihood has a control variate already")
        if isinstance(control, type) or not hasattr(control, "at"):
            what = control.__name__ if isinstance(control, type) else f"a {type(control).__name__}"
            raise InvalidArgument(f"control is {what}; give parameter_taylor(...)")
        chosen = control.fitted(self) if isinstance(control, Fitting) else control
        return Likelihood(self.log_factor, self.data, self.rows, None, chosen, self.impossible)

    def __call__(self, points: ArrayLike) -> Compiled:
        """Give the population whose arm i is the parameter points[i]."""
        checked = _checked_points(points)
        population = self.plain(checked)
        control = None if self.control is None else self.control.at(checked)
        if self.impossible is not None:
            none = nothing_known(population.arms, population.reward_range)
            control = (control or none).with_impossible(self._declared)
        return population if control is None else population.minus(control)

    @functools.cached_property
    def without_head(self) -> "Likelihood":
        """The same likelihood for methods that draw rows by their weights: no head that a pilot chose.

        What users have chosen (`outliers`, `impossible`) is read in full by every method.
        """
        whole = getattr(self.control, "without_head", self.control)
        return self if whole is self.control else replace(self, control=whole)

    def typical_moves(self, is_possible: Callable[[Floats], bool]) -> list[Compiled]:
        """Give populations of two possible points each, of an expansion's Laplace law; none without it."""
        points = getattr(self.control, "typical_points", None)
        if points is None:
            return []
        pairs = zip(points[::2], points[1::2], strict=True)
        return [self.without_head(pair) for pair in pairs if all(map(is_possible, pair))]

    @functools.cached_property
    def _declared(self) -> Rows:
        """Rows of which those that can be -inf are the head."""
        return self.rows.joined(Rows(self.size, head=self.impossible))

    @property
    def has_slots(self) -> bool:
        """Whether compiled code knows all that is known of any point."""
        return self.impossible is None and isinstance(self.control, Following | None)

    def slots(self, arms: int, dimensions: Indices) -> Slots:
        """Give slots for the steps of a chain, if it `has_slots`; nothing is read."""
        if isinstance(self.control, Following):
            return self.control.slots(self, new_slots(2, arms, int(dimensions.max()), dimensions))
        slots = bare_slots(arms, dimensions)
        return slots._replace(population=self.plain(slots.parameters))

    def plain(self, points: Floats) -> Compiled:
        """Give the population of the log factors at the points that lie there when it is read."""
        arms = len(points)
        try_out(Call(users(self.log_factor), FORM, {"n": self.size - 1, "theta": points[-1]}, self.data))
        given = checked_range(self.reward_range, arms)
        return Compiled(by_arm(self.log_factor), (points, *self.data), self.rows, arms, given)


def _checked_points(points: ArrayLike) -> Floats:
    checked = np.asarray(floats(points, "points"), order="C")
    if checked.ndim == 0 or len(checked) == 0:
        raise ShapeMismatch("points must be an array of at least one point, one in each row")
    return checked


def likelihood(
    log_factor: Any,
    data: tuple[Any, ...],
    size: int,
    *,
    reward_range: tuple[ArrayLike, ArrayLike] | None = None,
    impossible: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> Likelihood:
    """Make the likelihood of a parameter from a numba function; kernels race on it.

    Parameters
    ----------
    log_factor : numba function
        ``log_factor(n, theta, *data) -> float``, decorated with ``@numba.njit``; `theta` is an array,
        or a number where points are numbers.
    data : tuple
        Arrays (or array-likes) and numbers that it takes after `theta`.
    size : int
        Number of factors N. That the data suffice is checked at the last row, when points are first given.
    reward_range : (float, float), optional
        Numbers that bound log f_n(θ) for every row and every θ.
    impossible : array_like of int, optional
        Numbers of the rows whose log factor can be -inf: they are read for every set of points,
        since a race could not be trusted to meet them; a -inf of another row is an
        error. `reward_range` is then that of the other rows.
    weights : array_like of shape (N,), optional
        As in `compiled`: how much each row is expected to matter. An expansion in the parameters brings
        weights of its own, those of what it leaves.

    Returns
    -------
    Likelihood
        Called with D points, of shape (D, d), it gives a population with D arms.

    Examples
    --------
    >>> import numba, numpy as np, gumbelrace as gr
    >>> @numba.njit
    ... def log_factor(n, theta, y):
    ...     return -0.5 * (y[n] - theta[0]) ** 2
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(0.3, 1.0, 50_000)
    >>> population = gr.likelihood(log_factor, (y,), size=len(y))([[0.0], [0.29], [0.6]])
    >>> gr.best(population, rng=rng).arm
    1
    """
    checked_dispatcher(log_factor, "log_factor")
    data = checked_data(data, "(x, y) or (y,)")
    size = checked_count(size, "size")
    head = checked_impossible(impossible, size, checked_range(reward_range, 1))
    return Likelihood(log_factor, data, Rows(size, weights=weights), reward_range, None, head)


@functools.lru_cache(maxsize=256)
def by_arm(log_factor: Any) -> Any:
    """Compile log_factor(n, points[arm], ...) as a function of the arm."""
    given = users(log_factor)

    @part
    def at_arm(n, arm, points, *data):  # type: ignore[no-untyped-def]
        return given(n, points[arm], *data)

    return at_arm
