"""What the recipe of a posterior needs to know of a model, whichever package it was written with.

A posterior is p(θ) ∝ p0(θ) ∏_{n < N} f_n(θ); θ is a vector of real numbers without constraints.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class Quadratic(NamedTuple):
    """A function near a point: its value, gradient and Hessian there, which may be sparse on the way."""

    value: float
    gradient: Floats
    hessian: Any

    def plus(self, other: "Quadratic") -> "Quadratic":
        """Give the sum of two functions."""
        return Quadratic(
            self.value + other.value, self.gradient + other.gradient, self.hessian + other.hessian
        )

    def change(self, step: Floats) -> float:
        """By how much it grows from the point to `step` away from it."""
        return float(step @ (self.gradient + 0.5 * self.hessian @ step))


def dense(matrix: Any) -> Floats:
    """Give a matrix as an array."""
    found: Floats = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    return found


class Tried(NamedTuple):
    """Residuals of rows at several points: sums at each, rows that rule it out, and squares of each row.

    Those are summed over the points of each law, of shape (laws, N).
    """

    left: Floats
    ruled_out: Floats
    squares: Floats


def tried_one_by_one(
    residuals: Callable[[Floats], Floats], steps: Floats, laws: Indices, size: int
) -> Tried:
    """Read all rows at one point after another, by a function of the step that leads to it."""
    left, ruled_out = np.zeros((2, len(steps)))
    squares = np.zeros((int(laws.max()) + 1, size))
    for k, step in enumerate(steps):
        found = residuals(step)
        finite = np.isfinite(found)
        left[k], ruled_out[k] = found.sum(), (~finite).sum()
        if laws[k] >= 0:
            squares[laws[k]] += np.where(finite, found, 0.0) ** 2
    return Tried(left, ruled_out, squares)


class Summed(Protocol):
    """A posterior, as a front end knows it: sums over its rows."""

    @property
    def size(self) -> int:
        """Number of rows, N."""

    @property
    def names(self) -> Sequence[str]:
        """The name of each coordinate of θ, for messages."""

    @property
    def start(self) -> Floats:
        """Where to begin looking for the mode."""

    def value(self, theta: Floats) -> float:
        """Give log p0(θ) + Σ log f_n(θ); -inf or NaN where θ is impossible."""

    @property
    def gradient(self) -> Callable[[Floats], Floats] | None:
        """The gradient of the same, where it costs much less than a Hessian; else None."""

    def prior(self, theta: Floats) -> Quadratic:
        """Give log p0 near θ."""

    def factors(self, theta: Floats) -> Quadratic:
        """Give Σ log f_n near θ."""

    def log_prior(self, theta: Floats) -> float:
        """Give log p0(θ)."""


class Model(Summed, Protocol):
    """A posterior whose rows are at hand."""

    @property
    def few(self) -> "Model":
        """The same model of some of its rows, on which to try things; itself if there are few."""

    def residuals(self, centre: Floats, step: Floats) -> Floats:
        """Give log f_n(centre + step), less its expansion at the centre to second order, of all rows."""
