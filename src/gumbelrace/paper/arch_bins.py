"""The paper's control variates for ARCH models (appendix C.2): bins of (r_t, σ_t²), expanded in the data.

Rows are put into bins of (r_t, σ_t²), σ_t² at the mode, by marginal quantiles. In its bin a row's log
density is expanded to the second order around the mean of r and the mean of a, the lags: with σ² = α·a
linear in them, deviations u = r_t - r̄ and v = α·(a_t - ā),

    h = g + g_r u + g_s v + ½ g_rr u² + g_rs uv + ½ g_ss v².

Its sum over a bin needs the moments of (u, a - ā) in it, which are stored. The paper leaves open at which α
the expansion is made; here it is the α of each arm, without which h would not follow the log density.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gumbelrace.control_variates.cells import Cells, quantile_cells
from gumbelrace.control_variates.pilot import farthest
from gumbelrace.models.arch.data import Lagged
from gumbelrace.models.arch.expansion import models_by_order
from gumbelrace.models.arch.fit import Laplace
from gumbelrace.models.arch.rows import (
    ALPHA,
    CONSTANT,
    NU,
    ORDER,
    Floats,
    Indices,
    row,
    row_derivatives,
    variance,
)
from gumbelrace.population.control import Always, ControlVariate

# Entries of the terms of a bin: σ² of its reference, g, g_r, g_s, ½ g_rr, g_rs, ½ g_ss.
REFERENCE, VALUE, IN_R, IN_S, TWICE_R, MIXED, TWICE_S = range(7)


class Moments(NamedTuple):
    """Means and central moments of the rows of each bin of a model that are not always read."""

    counts: Indices
    r: Floats  # (B,)
    lags: Floats  # (B, m)
    r_r: Floats  # (B,), sums of u²
    r_lags: Floats  # (B, m), sums of u (a - ā)
    lags_lags: Floats  # (B, m, m), sums of (a - ā)(a - ā)'


@dataclass(frozen=True, eq=False)
class Binned:
    """The paper's control variate for every set of points. See `binned`.

    Attributes
    ----------
    data : Lagged
        Rows.
    cells : ndarray of shape (N, K)
        Bin of each row for each model.
    deviations : ndarray of shape (N, K)
        r less that of the reference.
    moments : tuple of K Moments
        What the sums need.
    model_of : ndarray of shape (lags + 1,)
        Number of the model of each order.
    always : Always or None
        Rows that are always read.
    """

    data: Lagged
    cells: Indices
    deviations: Floats
    moments: tuple[Moments, ...]
    model_of: Indices
    always: Always | None

    def at(self, points: Floats) -> ControlVariate:
        """Give the control variate whose arm i is points[i]."""
        found = [_expanded(self.moments[self.model_of[int(point[ORDER])]], point) for point in points]
        terms = np.zeros((len(points), self.cells.max() + 1, 7))
        for own, (of_bins, _) in zip(terms, found, strict=True):
            own[: len(of_bins)] = of_bins
        data = (points, *self.data.parts, self.cells, self.deviations, terms, self.model_of)
        sums = np.array([total for _, total in found])
        return ControlVariate(expansion, data, sums, None, self.always, self.data.size)


@row
def expansion(n, arm, points, squares, where, cells, deviations, terms, model_of):  # type: ignore[no-untyped-def]
    """Give the control variate of row n and an arm."""
    point = points[arm]
    k = model_of[int(point[ORDER])]
    of_bin, u = terms[arm, cells[n, k]], deviations[n, k]
    v = variance(n, point, squares, where) - of_bin[REFERENCE]
    in_u = of_bin[IN_R] + of_bin[TWICE_R] * u + of_bin[MIXED] * v
    return point[CONSTANT] + of_bin[VALUE] + in_u * u + (of_bin[IN_S] + of_bin[TWICE_S] * v) * v


def binned(data: Lagged, fits: Sequence[Laplace], bins: int = 10, share: float = 0.2) -> Binned:
    """Make the paper's control variates.

    Parameters
    ----------
    data : Lagged
        Rows.
    fits : sequence of K Laplace
        Models with their modes.
    bins : int
        Number of quantile intervals on each axis; with 10 there are 100 bins, as in the paper.
    share : float
        Share of the rows, those farthest from their references, that is always read.
    """
    variances = [data.design(fit.model.order) @ fit.model.natural(fit.mean)[0] for fit in fits]
    cells = [quantile_cells(np.column_stack([data.returns, s]), np.full(2, bins)) for s in variances]
    always = farthest(np.max([c.distances() for c in cells], axis=0), share)
    raced = always.raced if always else np.arange(data.size)
    # What is always read does not pull the references its way.
    cells = [c.only(raced) for c in cells]
    moments = tuple(_moments(data, fit, c, raced) for fit, c in zip(fits, cells, strict=True))
    return Binned(
        data,
        np.stack([c.cell for c in cells], axis=1),
        np.stack([data.returns - found.r[c.cell] for found, c in zip(moments, cells, strict=True)], axis=1),
        moments,
        models_by_order([fit.model for fit in fits], data),
        always,
    )


def _moments(data: Lagged, fit: Laplace, cells: Cells, raced: Indices) -> Moments:
    of_bins = [raced[cells.cell[raced] == b] for b in range(len(cells.references))]
    return Moments(*map(np.stack, zip(*[_of_bin(data, fit.model.order, b) for b in of_bins], strict=True)))


def _of_bin(data: Lagged, order: int, rows: Indices) -> tuple[Floats, ...]:
    r, lags = data.returns[rows], data.design(order, rows)
    u, d = r - r.mean(), lags - lags.mean(axis=0)
    return np.array(len(rows)), r.mean(), lags.mean(axis=0), u @ u, u @ d, d.T @ d


def _expanded(moments: Moments, point: Floats) -> tuple[Floats, float]:
    """Give the terms of all bins at a point, and the sum of h over the rows in them."""
    alpha, nu, r = point[ALPHA : ALPHA + moments.lags.shape[1]], point[NU], moments.r
    s = moments.lags @ alpha
    g, in_s, _, twice_s = row_derivatives(s, nu, r**2)[:, :4].T
    k = nu * s + r**2
    in_r, mixed = -(nu + 1.0) * r / k, (nu + 1.0) * nu * r / k**2
    twice_r = (nu + 1.0) * (2.0 * r**2 / k - 1.0) / k
    terms = np.column_stack([s, g, in_r, in_s, 0.5 * twice_r, mixed, 0.5 * twice_s])
    spread = np.einsum("bij,i,j->b", moments.lags_lags, alpha, alpha)
    sums = moments.counts * (g + point[CONSTANT])
    sums += 0.5 * twice_r * moments.r_r + mixed * (moments.r_lags @ alpha) + 0.5 * twice_s * spread
    return terms, float(sums.sum())
