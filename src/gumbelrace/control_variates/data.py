"""Expansions in the data, as users make them; see `by_cells`."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumbelrace.control_variates.by_cells import (
    DataTaylor,
    Derivatives,
    Floats,
    Indices,
    checked_points,
    expanded,
    expanded_around,
)
from gumbelrace.control_variates.cells import Cells, quantile_cells
from gumbelrace.control_variates.outliers import checked_share, farthest
from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.population.arrays import floats
from gumbelrace.population.control import Always, ControlVariate
from gumbelrace.population.heavy import check_pilot, heavy_rows

DIFFERENT = "give at least two different points, such as the arms to be compared"


@dataclass(frozen=True)
class ChoosingTaylor:
    """A control variate for every set of arms, its rows chosen anew for each. See `data_taylor`.

    Attributes
    ----------
    derivatives : callable
        Gives g, its gradients and its Hessians at references.
    cells : tuple of Cells
        One for all arms, or one for each arm.
    """

    derivatives: Derivatives
    cells: tuple[Cells, ...]

    def at(self, points: ArrayLike) -> ControlVariate:
        """Give the control variate whose arm i is points[i]; all rows are read for it."""
        return self._fitted_at(checked_points(points))[0].at(points)

    def by_pilot(self, points: ArrayLike) -> DataTaylor:
        """Choose the rows that are always read once and for all, by points like those to be compared."""
        arms = checked_points(points)
        fitted, plain = self._fitted_at(arms)
        check_pilot(plain, len(fitted.cells), DIFFERENT)
        fitted.check(arms)
        return fitted

    def _fitted_at(self, arms: NDArray[Any]) -> tuple[DataTaylor, float]:
        """Choose the rows that are always read; give also how much log factors differ between points."""
        cells = [c.around_medians() for c in self.cells]
        whole = expanded_around(self.derivatives, cells, None)
        squares, plain = whole.misfit(arms)
        rows = heavy_rows(squares)
        always = Always(rows, len(squares)) if len(rows) else None
        return expanded_around(self.derivatives, cells, always), plain


def data_taylor(
    values: ArrayLike,
    derivatives: Derivatives,
    bins: ArrayLike = 1,
    outliers: float | None = None,
    *,
    points: ArrayLike | None = None,
) -> DataTaylor | ChoosingTaylor:
    """Expand log factors g(y_n; i) around points close to the data y_n.

    Parameters
    ----------
    values : array_like of shape (N, k), or (N, D, k) if every arm has data of its own
        The data y_n, in the space in which g is smooth.
    derivatives : callable
        ``derivatives(references, points)`` takes B references, of shape (B, k), and the D points of `at`,
        and gives g of shape (B, D), its gradients (B, D, k) and its Hessians (B, D, k, k) in y. Where every
        arm has data of its own, it is called for one point at a time. See also `derivatives_by_jax`.
    bins : int or sequence of k ints
        Number of quantile intervals on each axis. The reference of a row is the middle of its cell: with
        ``bins=10`` and k = 2 there are up to 100 cells, and with ``bins=1`` one, in the middle of all.
    outliers : float, optional
        Share of the rows, those farthest from their references, that is always read. Default: the rows
        whose differences between points the expansion follows worst, as many as it takes that a race with
        a normal bound sees what matters, at most a tenth.
    points : array_like, optional
        At least two points like those that will be compared, as far apart, by which these rows are chosen
        once and for all. Without
        them all rows are read whenever points are bound: give them for a kernel, which binds at every step.

    Returns
    -------
    DataTaylor or ChoosingTaylor
        ``population.minus(data_taylor(...).at(points))``, or ``likelihood.minus(data_taylor(...))``.
        The first time that it meets points, residuals that vary more than the log factors are an error, and
        `gumbelrace.errors.UnevenResiduals` warns of those that a normal bound would misjudge.

    Examples
    --------
    Locations of a Student-t distribution with 4 degrees of freedom:

    >>> import numba, numpy as np, gumbelrace as gr
    >>> @numba.njit
    ... def log_factor(n, theta, y):
    ...     return -2.5 * np.log1p((y[n] - theta[0]) ** 2 / 4)
    >>> def derivatives(references, points):
    ...     z = references - points[:, 0]
    ...     gradient, hessian = -5 * z / (4 + z**2), -5 * (4 - z**2) / (4 + z**2) ** 2
    ...     return -2.5 * np.log1p(z**2 / 4), gradient[..., None], hessian[..., None, None]
    >>> rng = np.random.default_rng(0)
    >>> y = rng.standard_t(4, 50_000)
    >>> points = np.array([[-0.1], [0.0], [0.1]])
    >>> taylor = gr.data_taylor(y[:, None], derivatives, bins=30, points=points)
    >>> population = gr.likelihood(log_factor, (y,), size=len(y)).minus(taylor)(points)
    >>> outcome = gr.best(population, rng=rng)
    >>> outcome.arm, outcome.evaluations / population.rewards < 0.1
    (1, True)
    """
    if not callable(derivatives):
        raise InvalidArgument(
            "derivatives is not callable; give a function derivatives(references, points)"
        )
    data = _checked_values(values)
    counts = _checked_bins(bins, data.shape[2])
    cells = tuple(quantile_cells(space, counts) for space in data.transpose(1, 0, 2))
    share = checked_share(outliers)
    if share is None:
        choosing = ChoosingTaylor(derivatives, cells)
        return choosing if points is None else choosing.by_pilot(points)
    far = np.max([c.distances() for c in cells], axis=0)
    return expanded(derivatives, cells, farthest(far, share))


def _checked_values(values: ArrayLike) -> Floats:
    """Give the values as (N, S, k), S = 1 if all arms share them."""
    data = floats(values, "values")
    if data.ndim not in (2, 3) or data.size == 0:
        raise ShapeMismatch(f"values have shape {data.shape}; it must be (N, k), or (N, D, k)")
    if not np.isfinite(data).all():
        row = int(np.argwhere(~np.isfinite(data))[0][0])
        raise InvalidArgument(f"a value of row {row} is not finite; there is no expansion around it")
    return data if data.ndim == 3 else data[:, None, :]


def _checked_bins(bins: ArrayLike, axes: int) -> Indices:
    counts = np.asarray(bins)
    if counts.dtype.kind not in "iu" or counts.shape not in ((), (axes,)) or (counts < 1).any():
        raise InvalidArgument(f"bins is {bins!r}; it must be an integer of at least 1, or {axes} of them")
    return np.broadcast_to(counts, (axes,))
