"""Pairwise models: what a pair of neighbours adds to the log probability of their labels.

A model on n variables is p(x) ∝ exp(Σ_i u_i(x_i) + Σ_{i<j} φ(x_i, x_j, w_ij)): every pair counts once. A
potential is φ as a numba function, with bounds on it for a given weight.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import scipy  # its parts load when first used
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument
from gumbelrace.population.base import Floats, checked_count

Bounds = Callable[[Floats], tuple[Floats, Floats]]


@numba.njit
def _potts(label: int, other: int, weight: float) -> float:
    return weight if label == other else 0.0


@numba.njit
def _ising(label: int, other: int, weight: float) -> float:
    return weight if label == other else -weight


@dataclass(frozen=True)
class Potts:
    """Potts potential: φ = w if the labels are equal, else 0.

    Examples
    --------
    >>> import gumbelrace as gr
    >>> gr.models.Potts().log_factor(2, 2, 0.5), gr.models.Potts().log_factor(2, 1, 0.5)
    (0.5, 0.0)
    """

    @property
    def log_factor(self) -> Any:
        """The numba function φ(label, other, weight)."""
        return _potts

    def bounds(self, weights: Floats) -> tuple[Floats, Floats]:
        """Give the lowest and the highest φ of each weight."""
        return np.minimum(weights, 0.0), np.maximum(weights, 0.0)


@dataclass(frozen=True)
class Ising:
    """Ising potential: φ = w if the labels are equal, else -w; labels 0 and 1 are the spins -1 and +1.

    Examples
    --------
    >>> import gumbelrace as gr
    >>> gr.models.Ising().log_factor(1, 1, 0.5), gr.models.Ising().log_factor(0, 1, 0.5)
    (0.5, -0.5)
    """

    @property
    def log_factor(self) -> Any:
        """The numba function φ(label, other, weight)."""
        return _ising

    def bounds(self, weights: Floats) -> tuple[Floats, Floats]:
        """Give the lowest and the highest φ of each weight."""
        return -np.abs(weights), np.abs(weights)


@dataclass(frozen=True)
class Pairwise:
    """A potential of the user's, and how large it can be.

    Parameters
    ----------
    log_factor : numba function
        ``log_factor(label, other, weight) -> float``, decorated with ``@numba.njit``; -inf forbids a pair
        of labels. It must be symmetric in the labels, as the weights are.
    bound : float or callable
        A number c with ``|log_factor| <= c * |weight|``, or a function of an array of weights that gives
        two arrays ``(low, high)``; ``low`` may be -inf. Checked on every factor that is read.

    Examples
    --------
    >>> import numba, gumbelrace as gr
    >>> @numba.njit
    ... def clock(label, other, weight):
    ...     return -weight * min(abs(label - other), 2)
    >>> low, high = gr.models.Pairwise(clock, bound=2.0).bounds(np.array([0.5]))
    >>> float(low[0]), float(high[0])
    (-1.0, 1.0)
    """

    log_factor: Any
    bound: float | Bounds

    def __post_init__(self) -> None:
        if not callable(self.bound) and not (0.0 <= self.bound < np.inf):
            raise InvalidArgument(f"bound is {self.bound!r}; give a finite number or a function")

    def bounds(self, weights: Floats) -> tuple[Floats, Floats]:
        """Give the lowest and the highest φ of each weight."""
        if callable(self.bound):
            return self.bound(weights)
        high: NDArray[np.float64] = self.bound * np.abs(weights)
        return -high, high


def gaussian_lattice(side: int, beta: float, gamma: float, least: float = 0.0) -> Any:
    """Couple every pair of sites of a square lattice: w_ij = β exp(-γ d_ij²), d_ij their distance.

    With side 20, β = 4.6, γ = 1.5 and 10 labels this is the fully connected Potts model of Poisson-Gibbs
    (Zhang & De Sa, 2019): there, as here, a pair counts once, and the weights of a site add up to at most
    5.09.

    Parameters
    ----------
    side : int
        Sites on a side; the lattice has side² sites.
    beta, gamma : float
        Strength of the couplings, and how fast they decay.
    least : float
        Couplings of at most this size are left out. The default leaves out those that are zero in double
        precision: with γ = 1.5, all at distances above 22.

    Returns
    -------
    scipy.sparse.csr_array
        The weights: symmetric, zero diagonal.

    Examples
    --------
    >>> weights = gaussian_lattice(20, beta=4.6, gamma=1.5)
    >>> weights.shape, weights.nnz, round(float(weights.sum(axis=0).max()), 2)
    ((400, 400), 158696, 5.09)
    """
    side = checked_count(side, "side")
    if not (beta >= 0.0 and gamma >= 0.0 and np.isfinite([beta, gamma]).all()):
        raise InvalidArgument(f"beta is {beta} and gamma is {gamma}; both must be finite and at least 0")
    site = np.arange(side, dtype=np.float64)
    line = scipy.sparse.csr_array(np.exp(-gamma * (site[:, None] - site) ** 2))
    weights = scipy.sparse.csr_array(scipy.sparse.kron(line, line, format="csr"))
    weights.setdiag(0.0)
    weights.data *= beta
    weights.data[np.abs(weights.data) <= least] = 0.0
    weights.eliminate_zeros()
    return weights
