"""What is known of a population without reading it: a control variate (paper, section 3.4).

If h_n(i) is close to the reward l_n(i) of row n and arm i, and its sum over the rows is known, the race may
read the small residuals l_n(i) - h_n(i) instead, and start from the known sums. Rows on which h fits badly
can be put into the head, which is read in full: rows are drawn from the tail alone.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumbelrace.core.jit import part, users
from gumbelrace.core.orders import NO_ROWS
from gumbelrace.core.rows import Rows
from gumbelrace.errors import InvalidArgument, InvalidReward, ShapeMismatch
from gumbelrace.population.arrays import NO_REWARD, floats, no_rewards
from gumbelrace.population.trial import Call, checked_data, checked_dispatcher, try_out

FORM = "function(n, arm, *data)"
# Log probabilities that differ by less than this are the same; many steps of rounding apart, they are not.
COARSEST, MANY_STEPS = 0.001, 1024
# Of residuals: what one outside its range is called, and what to do about it.
OUT_OF_BOUNDS = "residual", "bounds", "enlarge them (remainder=, residual_range=) or mend the factor"
# Least weight of a row, as a share of their mean.
FLOOR = 0.1

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class Known(NamedTuple):
    """The part of each arm's sum that needs no race, less what all arms share of it."""

    sums: Floats
    sizes: Floats  # of the control variate's sums, which are right but for rounding
    evaluations: int  # rewards that were read for it
    finite: bool = False  # whether a reward of -inf is an error in the tail


@dataclass(frozen=True)
class ControlVariate:
    """An approximation h_n(i) of the rewards of which the sums are known.

    Attributes
    ----------
    function : numba function
        ``function(n, arm, *data) -> float``, finite.
    data : tuple
        Arrays and numbers that it takes.
    sums : ndarray of shape (D,)
        Sum of h over the rows of the tail.
    residual_range : (low, high), optional
        Arrays of length D that bound l - h on the same rows.
    rows : Rows, optional
        Which rows are the head, read in full, where h is not used, and which are the tail; weights of the
        residuals. Default: those of the population; a population without options has no head. It is made
        once for all control variates that differ in their arms only.
    size : int, optional
        Number of rows of which it is an approximation, to be checked. `function` itself is tried out on the
        last row and arm of a population that it is subtracted from.
    finite : bool
        Whether no reward of the tail is -inf: then one is an error.
    residual : numba function, optional
        ``residual(n, arm, *data)``, l - h in one pass, for populations of numba functions.

    Examples
    --------
    >>> import numba, numpy as np, gumbelrace as gr
    >>> rewards = np.random.default_rng(0).normal(size=(1000, 2))
    >>> near = np.round(rewards, 3)
    >>> h = numba.njit(lambda n, arm, near: near[n, arm])
    >>> control = gr.control_variates.ControlVariate(h, (near,), sums=near.sum(axis=0), size=1000)
    >>> population = gr.table(rewards).minus(control)
    >>> bool(np.all(population.reward_range[1] <= 0.0005))
    True
    """

    function: Any
    data: tuple[Any, ...]
    sums: Floats
    residual_range: tuple[Floats, Floats] | None = None
    rows: Rows | None = None
    size: int | None = None
    finite: bool = False
    residual: Any = None

    def __post_init__(self) -> None:
        checked_dispatcher(self.function, "function")
        object.__setattr__(self, "data", checked_data(self.data, "(near,)"))
        object.__setattr__(self, "sums", floats(self.sums, "sums"))

    def values(self, index: Indices, arms: Indices) -> Floats:
        """Give h for rows and arms, of shape (len(index), len(arms))."""
        values: Floats = table_of(self.function)(index, arms, self.data)
        return values

    @property
    def head(self) -> Indices:
        """Rows that are read in full."""
        return NO_ROWS if self.rows is None else self.rows.head

    def with_impossible(self, declared: Rows) -> "ControlVariate":
        """Return it with the head of these rows read in full as well, the only ones that can be -inf."""
        fresh = np.setdiff1d(declared.head, self.head)
        sums = self.sums - self.values(fresh, np.arange(len(self.sums))).sum(axis=0)
        rows = declared if self.rows is None else self.rows.joined(declared)
        return replace(self, sums=sums, rows=rows, finite=True)


@numba.njit
def _nothing(n, arm):  # type: ignore[no-untyped-def]
    return 0.0


def nothing_known(arms: int, reward_range: tuple[Floats, Floats] | None) -> ControlVariate:
    return ControlVariate(_nothing, (), np.zeros(arms), reward_range)


def checked_impossible(
    rows: ArrayLike | None, size: int, reward_range: tuple[Floats, Floats] | None
) -> Indices | None:
    """Return the numbers of the rows that can be -inf, in order, or say what is wrong with them."""
    if rows is None:
        return None
    checked = np.unique(np.asarray(rows)) if np.size(rows) else np.empty(0, np.int64)
    if checked.dtype.kind not in "iu" or np.ndim(rows) != 1:
        raise InvalidArgument("impossible must be an array of row numbers, for example [3, 17]")
    if len(checked) and not 0 <= checked[0] <= checked[-1] < size:
        raise InvalidArgument(f"impossible has a row outside 0..{size - 1}")
    if reward_range is not None and np.isneginf(reward_range[0]).any():
        raise InvalidArgument("with impossible, reward_range is that of the other rows: give a finite low")
    return checked.astype(np.int64)


def row_weights(squares: Floats) -> Floats | None:
    """Give weights by which rows are to be drawn with replacement; None if all are the same.

    They are the s of each row, by how much its residual differs between points (root mean square over those
    of a pilot), and a tenth of their mean. In proportion to s alone they would give the
    least variance, if the points of the pilot were all points; but a row that the pilot found to fit would
    hardly ever be drawn, and count for as much more where it does not. So every row has at least a tenth of
    the mean.

    Parameters
    ----------
    squares : ndarray of shape (N,)
        s² of each row.

    Examples
    --------
    >>> row_weights(np.array([0.0, 0.0, 9.0])).round(2)
    array([0.1, 0.1, 3.1])
    """
    roots = np.sqrt(squares)
    weights: Floats = roots + FLOOR * roots.mean()
    return weights if weights.any() else None


def check_fit(control: ControlVariate, size: int, arms: int) -> None:
    if not isinstance(control, ControlVariate):
        raise InvalidArgument(
            f"control is a {type(control).__name__}; give a ControlVariate, such as taylor.at(points)"
        )
    if control.sums.shape != (arms,):
        raise ShapeMismatch(
            f"the control variate has sums of shape {control.sums.shape}; the population has {arms} arms"
        )
    if not np.isfinite(control.sums).all():
        raise InvalidArgument("a sum of the control variate is not finite")
    if _is_too_coarse(control.sums):
        raise InvalidArgument(
            f"sums of the control variate are as large as {np.abs(control.sums).max():.3g}: double "
            f"precision does not hold differences of {COARSEST} beside them; subtract what all arms share"
        )
    for count in (control.size, control.rows.size if control.rows else None):
        if count not in (None, size):
            raise ShapeMismatch(f"the control variate is of {count} rows; the population has {size}")
    try_out(Call(users(control.function), FORM, {"n": size - 1, "arm": arms - 1}, control.data))


def _is_too_coarse(sums: Floats) -> bool:
    """Whether the best two sums are so large, and so close, that rounding may decide between them."""
    best = np.sort(sums)[-2:]
    step = np.spacing(np.abs(best).max())
    return bool(len(best) > 1 and step > COARSEST and best[1] - best[0] <= MANY_STEPS * step)


def known(control: ControlVariate, rewards_of: Callable[[Indices], Floats]) -> Known:
    """Add the rewards of the head to the known sums."""
    head = control.head
    if len(head) == 0:
        return Known(apart(control.sums[None]), np.abs(control.sums), 0, control.finite)
    rewards = floats(rewards_of(head), "what log_factors gave")
    if rewards.shape != (len(head), len(control.sums)):
        raise ShapeMismatch(
            f"log_factors gave an array of shape {rewards.shape} for {len(head)} rows "
            f"and {len(control.sums)} arms"
        )
    bad = no_rewards(rewards)
    if bad.any():
        k, arm = np.argwhere(bad)[0]
        raise InvalidReward(
            f"the reward of row {head[k]}, arm {arm} {NO_REWARD}; "
            "rescale it or mend the factor; -inf means an impossible arm"
        )
    sums = apart(np.concatenate([control.sums[None], rewards]))
    return Known(sums, np.abs(control.sums), rewards.size, control.finite)


def apart(terms: Floats) -> Floats:
    """Sum columns less that of one arm: what all arms share cancels before anything is rounded.

    The arm is the best one: of the others only those count that come close to it.
    """
    possible, sums = np.flatnonzero((terms > -np.inf).all(axis=0)), np.full(terms.shape[1], -np.inf)
    if len(possible):
        best = possible[terms[:, possible].sum(axis=0).argmax()]
        less = (-terms[:, best]).tolist()
        sums[possible] = [math.fsum(column + less) for column in terms[:, possible].T.tolist()]
    return sums


@functools.lru_cache(maxsize=256)
def table_of(function: Any) -> Any:
    """Compile ``function(n, arm, *data)`` for many rows and arms."""

    @numba.njit(nogil=True)
    def values(index, arms, data):  # type: ignore[no-untyped-def]
        out = np.empty((len(index), len(arms)))
        for i in range(len(index)):
            for a in range(len(arms)):
                out[i, a] = function(index[i], arms[a], *data)
        return out

    return values


def residual_of(control: ControlVariate, log_factor: Any, data: tuple[Any, ...]) -> tuple[Any, Any]:
    """Give what computes a residual, and its data."""
    if control.residual is None:
        return difference(log_factor, control.function, len(data)), (*data, *control.data)
    return users(control.residual), control.data


@functools.lru_cache(maxsize=256)
def difference(log_factor: Any, control: Any, split: int) -> Any:
    """Compile log_factor - control; the first `split` items of the data are log_factor's.

    Cutting the data in two counts references to every array, which would cost more than most log factors:
    hence a `part`.
    """
    log_factor, control = users(log_factor), users(control)

    @part
    def residual(n, arm, *data):  # type: ignore[no-untyped-def]
        return log_factor(n, arm, *data[:split]) - control(n, arm, *data[split:])

    return residual
