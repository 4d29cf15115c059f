"""Data of ARCH models: squared returns behind each other, and where the rows are in them.

Rows are the returns that have `lags` predecessors in their segment: those of the largest order, so that
models of all orders have the same rows. The squares lie backwards in time: those of a row and its lags
follow one another, and a row costs no memory of its own.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumbelrace.core.jit import Rng, as_generator, kernel
from gumbelrace.errors import InvalidArgument
from gumbelrace.models.returns import Returns
from gumbelrace.population.base import checked_count

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

# An ARCH(10) whose order is plain in some 10,000 returns; their variance is about 1.
ALPHA = (0.12, *[0.055] * 10)
NU = 6.0


@dataclass(frozen=True, eq=False)
class Lagged:
    """Rows of an ARCH model of order `lags` or less. See `lagged`.

    Attributes
    ----------
    squares : ndarray of shape (n,)
        Squared returns, the last one first.
    where : ndarray of shape (N,)
        The square of row n is squares[where[n]], its lags are squares[where[n] + 1], ...
    returns : ndarray of shape (N,)
        The returns of the rows.
    lags : int
        Number of lags that each row has.
    short : int
        Number of segments that are too short to have a row.
    """

    squares: Floats
    where: Indices
    returns: Floats
    lags: int
    short: int

    @property
    def size(self) -> int:
        """Number of rows N."""
        return len(self.where)

    @property
    def parts(self) -> tuple[Floats, Indices]:
        """What a log factor takes after (n, point)."""
        return self.squares, self.where

    def design(self, order: int, rows: Indices | slice = slice(None)) -> Floats:
        """Give a_t = (1, r²_{t-1}, ..., r²_{t-q}) of rows, of shape (len(rows), q + 1)."""
        windows = np.lib.stride_tricks.sliding_window_view(self.squares, order + 1)
        design: Floats = windows[self.where[rows]]
        design[:, 0] = 1.0
        return design


def lagged(returns: Returns, lags: int) -> Lagged:
    """Lay out returns for ARCH models of order `lags` or less.

    Parameters
    ----------
    returns : Returns
        From `returns_from_prices` or `standardised`.
    lags : int
        The largest order. Rows are the returns with that many predecessors in their segment.

    Examples
    --------
    >>> from gumbelrace.models.returns import standardised
    >>> data = lagged(standardised([1.0, -2.0, 3.0, -2.0, 1.0, 1.0, -2.0], segments=[0] * 4 + [1] * 3), 1)
    >>> data.size, data.returns.round(1)
    (5, array([-1.1,  1.6, -1.1,  0.5, -1.1]))
    """
    lags = checked_count(lags, "lags")
    ends = np.cumsum(returns.lengths)
    parts = [np.arange(end - n + lags, end) for end, n in zip(ends, returns.lengths, strict=True)]
    index = np.concatenate(parts).astype(np.int64)
    if len(index) < lags + 2:
        raise InvalidArgument(
            f"{len(index)} rows have {lags} lags in their segment, too few for {lags + 2} parameters; "
            "give more returns, longer segments or lower orders"
        )
    backwards = np.ascontiguousarray(returns.values[::-1] ** 2)
    short = int((returns.lengths <= lags).sum())
    return Lagged(backwards, len(backwards) - 1 - index, returns.values[index], lags, short)


def simulate(
    size: int,
    rng: Rng = None,
    alpha: ArrayLike = ALPHA,
    nu: float = NU,
    burn_in: int = 1000,
) -> Floats:
    """Draw returns from an ARCH model: r_t = σ_t z_t, z_t Student-t with ν degrees of freedom.

    Parameters
    ----------
    size : int
        Number of returns.
    rng : numpy.random.Generator, int, or None
        Source of randomness.
    alpha : array_like of shape (q + 1,)
        α_0, ..., α_q. Default: an order of 10.
    nu : float
        Degrees of freedom.
    burn_in : int
        Number of returns that are drawn first and thrown away.

    Examples
    --------
    >>> returns = simulate(13_000, np.random.default_rng(0))
    >>> returns.shape, bool(abs(returns.mean()) < 0.1)
    ((13000,), True)
    """
    size, burn_in = checked_count(size, "size"), checked_count(burn_in, "burn_in", least=0)
    weights = np.array(alpha, np.float64)
    if weights.ndim != 1 or len(weights) < 2 or not (weights[0] > 0.0 and (weights >= 0.0).all()):
        raise InvalidArgument(f"alpha is {alpha!r}; give α_0 > 0 and α_1, ..., α_q, none negative")
    if not (nu > 2.0 and weights[1:].sum() * nu / (nu - 2.0) < 1.0):
        raise InvalidArgument(
            f"with nu {nu} and sum(alpha[1:]) {weights[1:].sum():.3g} returns have no variance; "
            "nu must exceed 2, and the sum be less than 1 - 2 / nu"
        )
    z = as_generator(rng).standard_t(nu, burn_in + size)
    return _filtered(z, weights)[burn_in:]


@kernel
def _filtered(z: Floats, alpha: Floats) -> Floats:
    """Give r_t = σ_t z_t, from a past of zeros."""
    returns, order = np.zeros(len(z)), len(alpha) - 1
    for t in range(len(z)):
        s = alpha[0]
        for i in range(1, min(order, t) + 1):
            s += alpha[i] * returns[t - i] ** 2
        returns[t] = np.sqrt(s) * z[t]
    return returns
