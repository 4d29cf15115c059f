"""The log factors of a parameter: a population for every set of points at which to compare them."""

import functools
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numba.core.dispatcher import Dispatcher
from numpy.typing import ArrayLike

from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.jit import part, users
from gumbelrace.packed import pack
from gumbelrace.population.base import Floats, checked_count, checked_range
from gumbelrace.population.compiled import Compiled
from gumbelrace.population.control import ControlVariate, Indices, checked_impossible, nothing_known
from gumbelrace.shuffle import Rows, random_rows


class Family(Protocol):
    """A control variate for every set of points."""

    def at(self, points: Floats) -> ControlVariate:
        """Give the control variate whose arm i is points[i]."""


@dataclass(frozen=True)
class Likelihood:
    """Σ_n log f_n(θ), with an optional control variate. See `likelihood`."""

    log_factor: Any
    data: tuple[Any, ...]
    rows: Rows
    reward_range: tuple[ArrayLike, ArrayLike] | None = None
    control: Family | None = None
    impossible: Indices | None = None

    @property
    def size(self) -> int:
        """Number of factors, N."""
        return self.rows.size

    def minus(self, control: Family) -> "Likelihood":
        """Return the same likelihood, read as residuals of a control variate."""
        if self.control is not None:
            raise InvalidArgument("the likelihood has a control variate already")
        return Likelihood(self.log_factor, self.data, self.rows, None, control, self.impossible)

    def __call__(self, points: ArrayLike) -> Compiled:
        """Give the population whose arm i is the parameter points[i]."""
        return self.bound(points)[0]

    def bound(self, points: ArrayLike) -> tuple[Compiled, ControlVariate | None]:
        """Give the population, and the control variate that is in it."""
        checked = np.asarray(points, np.float64, order="C")
        if checked.ndim == 0 or len(checked) == 0:
            raise ShapeMismatch("points must be an array of at least one point, one in each row")
        arms = len(checked)
        given = checked_range(self.reward_range, arms)
        data = (checked, *self.data)
        population = Compiled(by_arm(self.log_factor), data, self.rows, arms, given)
        control = None if self.control is None else self.control.at(checked)
        if self.impossible is not None:
            control = (control or nothing_known(arms, given)).with_impossible(self.impossible, self.size)
        return (population, None) if control is None else (population.minus(control), control)


def likelihood(
    log_factor: Any,
    data: tuple[Any, ...],
    size: int,
    reward_range: tuple[ArrayLike, ArrayLike] | None = None,
    impossible: ArrayLike | None = None,
) -> Likelihood:
    """Make the likelihood of a parameter from a numba function; kernels race on it.

    Parameters
    ----------
    log_factor : numba function
        ``log_factor(n, theta, *data) -> float``, decorated with ``@numba.njit``; `theta` is an array,
        or a number where points are numbers.
    data : tuple
        NumPy arrays and numbers that it takes after `theta`.
    size : int
        Number of factors N.
    reward_range : (float, float), optional
        Numbers that bound log f_n(θ) for every row and every θ.
    impossible : array_like of int, optional
        Numbers of the rows whose log factor can be -inf: they are read for every set of points,
        since a race could not be trusted to meet them; a -inf of another row is an
        error. `reward_range` is then that of the other rows.

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
    if not isinstance(log_factor, Dispatcher):
        raise InvalidArgument("log_factor is not compiled; decorate it with @numba.njit")
    if not isinstance(data, tuple):
        raise InvalidArgument(f"data is a {type(data).__name__}; give a tuple, for example (x, y) or (y,)")
    pack(data)  # says now what is wrong with it
    size = checked_count(size, "size")
    rows = checked_impossible(impossible, size, checked_range(reward_range, 1))
    return Likelihood(log_factor, data, random_rows(size), reward_range, None, rows)


@functools.lru_cache(maxsize=256)
def by_arm(log_factor: Any) -> Any:
    """Compile log_factor(n, points[arm], ...) as a function of the arm."""
    given = users(log_factor)

    @part
    def at_arm(n, arm, points, *data):  # type: ignore[no-untyped-def]
        return given(n, points[arm], *data)

    return at_arm
