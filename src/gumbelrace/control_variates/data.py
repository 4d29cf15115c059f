"""Taylor expansion of log f_n(i) = g(y_n; i) in the data y_n (paper, Eq. 10).

With the reference m of the cell in which y_n lies, d = y_n - m, and derivatives in y at m:

    h_n(i) = g(m; i) + ∇g(m; i)·d + ½ d'∇²g(m; i) d.

It is linear in 1, d and dd', so its sum over a cell is that of their sums, which are stored: sums cost
O(B) for B cells, however many rows there are. Which rows are the head, read every time, is chosen where
points are known: those whose differences between points the expansion follows worst.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumbelrace.control_variates.cells import Cells, quantile_cells
from gumbelrace.control_variates.pilot import (
    check_pilot,
    check_residuals,
    checked_share,
    farthest,
    heavy_rows,
)
from gumbelrace.core.jit import part
from gumbelrace.core.rows import Rows
from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.population.arrays import floats
from gumbelrace.population.control import ControlVariate, row_weights

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
# Rows whose log factors are held at a time.
BLOCK = 16_384
DIFFERENT = "give at least two different points, such as the arms to be compared"

Derivatives = Callable[[Floats, Any], tuple[ArrayLike, ArrayLike, ArrayLike]]


@dataclass(frozen=True)
class Space:
    """References of a space of data, and sums of 1, d and dd' over the rows of the tail in each cell."""

    references: Floats
    moments: Floats

    def expand(self, derivatives: Derivatives, points: NDArray[Any]) -> tuple[Floats, Floats]:
        """Give the terms of all cells of the first point, of the second..., and every point's sum of h."""
        terms = _terms(derivatives, self.references, points)
        return terms.reshape(-1, terms.shape[2]), np.einsum("bf,abf->a", self.moments, terms)


@dataclass(frozen=True)
class DataTaylor:
    """A control variate for every set of arms, expanded around data. See `data_taylor`.

    Attributes
    ----------
    derivatives : callable
        Gives g, its gradients and its Hessians at references.
    cells : ndarray of shape (N, S)
        The cell of each row in each of S spaces: one for all arms, or one for each arm.
    deviations : ndarray of shape (N, S, k)
        Rows less their references.
    spaces : tuple of Space
        References and moments.
    rows : Rows
        The head, which is read in full, and the tail.
    """

    derivatives: Derivatives
    cells: Indices
    deviations: Floats
    spaces: tuple[Space, ...]
    rows: Rows
    _checked: list[bool] = field(default_factory=list, repr=False)

    def at(self, points: ArrayLike) -> ControlVariate:
        """Give the control variate whose arm i is points[i]; the first time, check that it is one."""
        arms = checked_points(points)
        control = self._at(arms)
        if not self._checked:
            self.check(arms)
        return control

    def check(self, points: NDArray[Any]) -> None:
        """Compare residuals with the log factors, at points; see `check_residuals`."""
        squares, plain = self.misfit(points)
        check_residuals(squares[self.rows.tail], plain)
        if plain > 0.0:  # points that are all the same show nothing
            self._checked.append(True)

    def misfit(self, points: NDArray[Any]) -> tuple[Floats, float]:
        """Give mean squares of differences between points: of each row's residuals, of all log factors."""
        control, arms = self._at(points), np.arange(len(points))
        squares, plain = np.empty(len(self.cells)), 0.0
        for start in range(0, len(squares), BLOCK):
            rows = np.arange(start, min(start + BLOCK, len(squares)))
            given = self._log_factors(rows, points)
            squares[rows] = _pair_squares(given - control.values(rows, arms))
            plain += float(_pair_squares(given).sum())
        return squares, plain

    def _log_factors(self, rows: Indices, points: NDArray[Any]) -> Floats:
        """Give g of rows and points, of which they are the derivatives of order 0."""
        columns = []
        for k, (space, share) in enumerate(self._share_out(points)[1]):
            values = space.references[self.cells[rows, k]] + self.deviations[rows, k]
            columns.append(np.asarray(self.derivatives(values, share)[0], np.float64))
        return np.concatenate(columns, axis=1)

    def _at(self, arms: NDArray[Any]) -> ControlVariate:
        space_of, shares = self._share_out(arms)
        found = [space.expand(self.derivatives, share) for space, share in shares]
        terms, sums = (np.concatenate(parts) for parts in zip(*found, strict=True))
        lengths = np.array([len(self.spaces[s].references) for s in space_of])
        data = (self.cells, self.deviations, space_of, np.cumsum(lengths) - lengths, terms)
        return ControlVariate(expansion, data, sums, None, self.rows)

    def _share_out(self, points: NDArray[Any]) -> tuple[Indices, list[tuple[Space, NDArray[Any]]]]:
        """Give the space of each arm, and the points that are to be expanded in each space."""
        if self.cells.shape[1] == 1:
            return np.zeros(len(points), np.int64), [(self.spaces[0], points)]
        if len(points) != len(self.spaces):
            raise ShapeMismatch(
                f"values are those of {len(self.spaces)} arms; there are {len(points)} points"
            )
        own = [(space, points[i : i + 1]) for i, space in enumerate(self.spaces)]
        return np.arange(len(points)), own


def expanded(derivatives: Derivatives, cells: Sequence[Cells], rows: Rows) -> DataTaylor:
    """Expand around the means of the rows of each cell; the head does not pull them its way."""
    return expanded_around(derivatives, [c.only(rows.tail) for c in cells], rows)


def expanded_around(derivatives: Derivatives, cells: Sequence[Cells], rows: Rows) -> DataTaylor:
    return DataTaylor(
        derivatives,
        np.stack([c.cell for c in cells], axis=1),
        np.stack([c.deviations for c in cells], axis=1),
        tuple(Space(c.references, c.moments(rows.tail)) for c in cells),
        rows,
    )


@part
def expansion(n, arm, cells, deviations, space_of, start, terms):  # type: ignore[no-untyped-def]
    """Give h_n(arm); the terms of an arm's cells follow one another from start[arm] on."""
    space, k = space_of[arm], deviations.shape[2]
    row = start[arm] + cells[n, space]
    h = terms[row, 0]
    for i in range(k):
        slope = terms[row, 1 + i]
        for j in range(k):
            slope += terms[row, 1 + k + i * k + j] * deviations[n, space, j]
        h += slope * deviations[n, space, i]
    return h


def checked_points(points: ArrayLike) -> NDArray[Any]:
    arms = np.asarray(points)
    if arms.ndim == 0 or len(arms) == 0:
        raise ShapeMismatch("points must be an array of at least one point, one in each row")
    return arms


def _pair_squares(values: Floats) -> Floats:
    """Give the mean square of the differences between two columns, of each row."""
    apart = values - values[:, :1]  # exactly zero where all are the same
    squares: Floats = 2.0 * apart.var(axis=1) * values.shape[1] / max(values.shape[1] - 1, 1)
    return squares


def _terms(derivatives: Derivatives, references: Floats, points: NDArray[Any]) -> Floats:
    """Give g, ∇g and ½∇²g side by side, of shape (D, B, 1 + k + k²)."""
    cells, k = references.shape
    arms, scale = len(points), (1.0, 1.0, 0.5)
    found = [np.asarray(values, np.float64) for values in derivatives(references, points)]
    for order, values in enumerate(found):
        wanted = (cells, arms, *[k] * order)
        if len(found) != 3 or values.shape != wanted:
            raise ShapeMismatch(
                f"derivatives gave {len(found)} arrays, that of order {order} of shape {values.shape}; "
                f"it must give three, for {cells} references and {arms} points that one of shape {wanted}"
            )
    flat = [s * values.reshape(cells, arms, -1) for s, values in zip(scale, found, strict=True)]
    terms = np.ascontiguousarray(np.concatenate(flat, axis=2).transpose(1, 0, 2))
    if not np.isfinite(terms).all():
        arm, cell, _ = np.argwhere(~np.isfinite(terms))[0]
        raise InvalidArgument(
            f"derivatives are not finite at reference {references[cell]}, point {points[arm]}"
        )
    return terms


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
        """Choose the head once and for all, by points like those to be compared."""
        arms = checked_points(points)
        fitted, plain = self._fitted_at(arms)
        check_pilot(plain, len(fitted.cells), DIFFERENT)
        fitted.check(arms)
        return fitted

    def _fitted_at(self, arms: NDArray[Any]) -> tuple[DataTaylor, float]:
        """Choose the head; give also how much log factors differ between points."""
        cells = [c.around_medians() for c in self.cells]
        size = len(cells[0].cell)
        squares, plain = expanded_around(self.derivatives, cells, Rows(size)).misfit(arms)
        rows = Rows(size, head=heavy_rows(squares), weights=row_weights(squares))
        return expanded_around(self.derivatives, cells, rows), plain


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
        Share of the rows, those farthest from their references, that is read every time. Default: the rows
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
    return expanded(derivatives, cells, Rows(len(far), head=farthest(far, share)))


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
