"""Second derivatives of functions of many parameters, where most pairs of them have none.

A Hessian is found from its products with directions. Where its pattern is known, few directions do: a
parameter that many others depend on has one of its own, and others share one if no third parameter depends
on two of them. So the effects of a thousand groups take a single direction.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts load when first used
from numpy.typing import NDArray

from gumbelrace.laplace.model import Floats, Indices, Quadratic

# With fewer parameters than that, or if the directions were more than that share of them, each parameter
# has a direction of its own, and the Hessian is dense.
MANY, WORTHWHILE = 64, 0.5
# How many splits into parameters with and without a direction of their own are tried.
SPLITS = 24
# Products with a random direction are equal but for that share of the largest.
EQUAL, SEED = 1e-8, 0
# How often a pattern that proves wrong at a point is learned anew, from more.
ATTEMPTS = 3

# products(theta, directions) -> value, gradient, Hessian times each direction
Products = Callable[[Floats, Floats], tuple[float, Floats, Floats]]


class Colouring(NamedTuple):
    """Which parameters share a direction.

    Attributes
    ----------
    pattern : sparse array of shape (d, d)
        Symmetric; True where the Hessian may differ from zero.
    colours : ndarray of int
        The direction of each parameter.
    alone : ndarray of bool
        Whether it has that to itself.
    """

    pattern: Any
    colours: Indices
    alone: NDArray[np.bool_]

    @property
    def size(self) -> int:
        """Number of directions."""
        return int(self.colours.max()) + 1

    @property
    def directions(self) -> Floats:
        """Give the directions, of shape (size, d)."""
        found = np.zeros((self.size, len(self.colours)))
        found[self.colours, np.arange(len(self.colours))] = 1.0
        return found

    def hessian(self, products: Floats) -> Any:
        """Give the matrix of which these are the products with the directions."""
        rows, columns = self.pattern.nonzero()
        of_column = products[self.colours[columns], rows]
        of_row = products[self.colours[rows], columns]
        values = np.where(self.alone[rows] & ~self.alone[columns], of_row, of_column)
        found = scipy.sparse.csr_array((values, (rows, columns)), shape=self.pattern.shape)
        return 0.5 * (found + found.T)


def coloured(pattern: Any) -> Colouring:
    """Find few directions for a pattern.

    Examples
    --------
    >>> pattern = np.eye(100, dtype=bool)
    >>> pattern[0], pattern[:, 0] = True, True  # one parameter has to do with all others
    >>> coloured(scipy.sparse.csr_array(pattern)).size
    2
    """
    degrees = np.asarray(pattern.sum(axis=1)).ravel()
    limits = np.unique(np.quantile(degrees, np.linspace(0.0, 1.0, SPLITS), method="lower"))
    most = min(limits.tolist(), key=lambda limit: directions_at_least(pattern, degrees, limit))
    alone = degrees > most
    shared = np.flatnonzero(~alone)
    colours = np.empty(len(degrees), np.int64)
    colours[alone] = np.arange(alone.sum())
    colours[shared] = alone.sum() + greedily(pattern[shared][:, shared].astype(np.int64))
    return Colouring(pattern, colours, alone)


def directions_at_least(pattern: Any, degrees: Indices, limit: float) -> int:
    """How many directions there are at least if parameters with more partners than `limit` are alone."""
    shared = np.flatnonzero(degrees <= limit)
    left = pattern[shared][:, shared].sum(axis=1)
    return len(degrees) - len(shared) + int(np.max(left))


def greedily(pattern: Any) -> Indices:
    """Colour parameters so that no third one depends on two of one colour."""
    conflicts = scipy.sparse.csr_array(pattern @ pattern)
    colours = np.full(pattern.shape[0], -1, np.int64)
    for i in np.argsort(-np.diff(conflicts.indptr), kind="stable"):
        taken = set(colours[conflicts.indices[conflicts.indptr[i] : conflicts.indptr[i + 1]]].tolist())
        colours[i] = next(colour for colour in range(len(colours)) if colour not in taken)
    return colours


class Hessians:
    """Derivatives of a function at any point, by as few products with directions as its pattern allows.

    Parameters
    ----------
    products : callable
        ``products(theta, directions)`` gives value, gradient, and the Hessian times each direction.
    pattern_at : callable
        ``pattern_at(theta, attempt)`` gives the pattern, a sparse array, as far as it is seen at a point;
        with more effort at later attempts. A random direction tells at each point whether that was all.
    """

    def __init__(self, products: Products, pattern_at: Callable[[Floats, int], Any]) -> None:
        self._products, self._pattern_at = products, pattern_at
        self._colouring: Colouring | None = None

    def at(self, theta: Floats) -> Quadratic:
        """Give value, gradient and Hessian, which is sparse if there are many parameters and few pairs."""
        probe = np.random.default_rng(SEED).standard_normal((1, len(theta)))
        for attempt in range(ATTEMPTS if len(theta) > MANY else 0):
            if attempt > 0 or self._colouring is None:
                self._colouring = self._learned(theta, attempt)
            colouring = self._colouring
            if colouring.size > WORTHWHILE * len(theta):
                break
            directions = np.concatenate([colouring.directions, probe])
            value, gradient, products = self._products(theta, directions)
            hessian = colouring.hessian(products[:-1])
            if same(hessian @ probe[0], products[-1]):
                return Quadratic(value, gradient, hessian)
        value, gradient, products = self._products(theta, np.eye(len(theta)))
        return Quadratic(value, gradient, 0.5 * (products + products.T))

    def _learned(self, theta: Floats, attempt: int) -> Colouring:
        found = self._pattern_at(theta, attempt) + scipy.sparse.eye_array(len(theta), dtype=bool)
        if self._colouring is not None:
            found = found + self._colouring.pattern
        return coloured(scipy.sparse.csr_array(found))


def same(one: Floats, other: Floats) -> bool:
    """Whether products are equal but for rounding, or no numbers, which others refuse."""
    if not np.isfinite(other).all():
        return True
    return bool(np.abs(one - other).max() <= EQUAL * np.abs(other).max())


def pairs(starts: Indices, columns: Indices, dimension: int) -> Any:
    """Give the pattern of a sum whose n-th term depends on columns[starts[n] : starts[n + 1]].

    Examples
    --------
    >>> pairs(np.array([0, 2]), np.array([0, 2]), 3).toarray().astype(int)
    array([[1, 0, 1],
           [0, 0, 0],
           [1, 0, 1]])
    """
    ones = np.ones(len(columns), np.int64)
    touched = scipy.sparse.csr_array((ones, columns, starts), shape=(len(starts) - 1, dimension))
    return scipy.sparse.csr_array(touched.T @ touched) > 0
