"""Normal laws: pseudopriors and proposals are made of them, in Python and in compiled code."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy  # its parts load when first used
from numpy.typing import ArrayLike, NDArray

from gumbelrace.core.jit import part
from gumbelrace.core.random import check_generator
from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.population.arrays import floats
from gumbelrace.population.base import Floats

Indices = NDArray[np.int64]


class Pseudoprior(Protocol):
    """A proper law of a model's parameter, positive wherever its prior is."""

    def sample(self, rng: np.random.Generator) -> Floats:
        """Draw a parameter."""

    def log_density(self, x: Floats) -> float:
        """Give the logarithm of the normalised density at x."""


@dataclass(frozen=True, eq=False)
class NormalPseudoprior:
    """A normal pseudoprior, for example the Laplace approximation of the model's posterior.

    Parameters
    ----------
    mean : array_like of shape (d,)
        Mean.
    covariance : array_like of shape (d, d)
        Covariance matrix.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> pseudoprior = gr.kernels.NormalPseudoprior([0.0, 0.0], np.eye(2))
    >>> round(pseudoprior.log_density(np.zeros(2)), 4)
    -1.8379
    """

    mean: Any
    covariance: Any = field(repr=False)
    _root: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        mean = np.array(floats(self.mean, "mean"))
        covariance = np.array(floats(self.covariance, "covariance"))
        if mean.ndim != 1 or covariance.shape != (len(mean), len(mean)):
            raise ShapeMismatch(
                f"mean has shape {mean.shape} and covariance {covariance.shape}; give (d,) and (d, d)"
            )
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "covariance", covariance)
        object.__setattr__(self, "_root", _cholesky(covariance))

    @property
    def root(self) -> Floats:
        """Lower triangular square root L of the covariance, L Lᵀ."""
        return self._root

    @property
    def log_volume(self) -> float:
        """Minus the log density at the mean."""
        return float(np.log(np.diag(self._root)).sum() + 0.5 * len(self.mean) * np.log(2.0 * np.pi))

    def sample(self, rng: np.random.Generator) -> Floats:
        """Draw a parameter."""
        return self.at(check_generator(rng).standard_normal(len(self.mean)))

    def at(self, z: Floats) -> Floats:
        """Give the parameter whose standardised value is z."""
        x: Floats = self.mean + self._root @ z
        return x

    def standardised(self, x: Floats) -> Floats:
        """Give z such that x = mean + L z."""
        z: Floats = scipy.linalg.solve_triangular(self._root, x - self.mean, lower=True)
        return z

    def log_density(self, x: Floats) -> float:
        """Give the logarithm of the normalised density at x."""
        z = self.standardised(x)
        return float(-0.5 * z @ z) - self.log_volume


def _cholesky(covariance: Floats) -> Floats:
    try:
        return np.asarray(np.linalg.cholesky(covariance), np.float64)
    except np.linalg.LinAlgError as error:
        raise InvalidArgument("covariance is not positive definite; it has no Cholesky factor") from error


def checked_scale(scale: ArrayLike) -> Floats:
    """Return a scale as a read-only array, or say what is wrong with it."""
    checked = np.array(floats(scale, "scale"))
    if checked.ndim > 2 or checked.shape != checked.shape[::-1]:
        raise ShapeMismatch(f"scale has shape {checked.shape}; it must be a number, (d,) or (d, d)")
    if not np.isfinite(checked).all() or (checked.ndim < 2 and (checked <= 0.0).any()):
        raise InvalidArgument(f"scale is {scale!r}; standard deviations must be positive and finite")
    checked.setflags(write=False)
    return checked


def stretched(scale: Floats, vector: Floats) -> Floats:
    """Give L v, where `scale` is L or its diagonal."""
    if scale.ndim > 0 and len(scale) != len(vector):
        raise ShapeMismatch(f"scale has shape {scale.shape}, and the position ({len(vector)},)")
    product: Floats = scale @ vector if scale.ndim == 2 else scale * vector
    return product


def check_positive(x: Floats) -> None:
    """Refuse a position that has no logarithm."""
    if not (x > 0.0).all():
        raise InvalidArgument(f"LogWalk needs positive parameters, and the position is {x}")


class Laws(NamedTuple):
    """Normal laws of all models, for compiled code: mean + L z, z standard normal, L lower triangular."""

    dimensions: Indices
    means: Floats
    roots: Floats
    inverses: Floats  # of the roots: to multiply is faster than to solve
    log_volumes: Floats
    limits: Floats  # of the squared length of a standardised parameter; beyond, decisions are exact


def laws_of(pseudopriors: Sequence[NormalPseudoprior], guard: float | None = None) -> Laws:
    """Put laws of different dimensions side by side."""
    dimensions = np.array([len(law.mean) for law in pseudopriors])
    count, width = len(dimensions), int(dimensions.max())
    means, (roots, inverses) = np.zeros((count, width)), np.zeros((2, count, width, width))
    for k, law in enumerate(pseudopriors):
        d = dimensions[k]
        means[k, :d], roots[k, :d, :d] = law.mean, law.root
        inverses[k, :d, :d] = scipy.linalg.solve_triangular(law.root, np.eye(d), lower=True)
    log_volumes = np.array([law.log_volume for law in pseudopriors])
    return Laws(dimensions, means, roots, inverses, log_volumes, limits_of(dimensions, guard))


def law_of_steps(root: Floats) -> Laws:
    """Give the law N(0, L Lᵀ) of a walk's steps, where L is `root` or has it on its diagonal."""
    matrix = np.diag(root) if root.ndim == 1 else root
    if np.triu(matrix, 1).any():
        matrix = np.transpose(np.linalg.qr(matrix.T).R)
    d, unused = len(matrix), np.zeros((1, *matrix.shape))  # nobody standardises a step
    root = np.array(matrix[None], order="C")
    return Laws(np.array([d]), np.zeros((1, d)), root, unused, np.zeros(1), UNLIMITED)


UNLIMITED = np.full(1, np.inf)


def limits_of(dimensions: Indices, guard: float | None) -> Floats:
    """Give the squared radius of the ball that holds a share `guard` of a standard normal law."""
    if guard is None:
        return np.full(len(dimensions), np.inf)
    limits: Floats = scipy.special.chdtri(dimensions, 1.0 - guard)
    return limits


@part
def draw(laws: Laws, model: int, rng: np.random.Generator, z: Floats) -> float:
    """Draw a standardised parameter; return its squared length."""
    squared = 0.0
    for i in range(laws.dimensions[model]):
        z[i] = rng.standard_normal()
        squared += z[i] * z[i]
    return squared


@part
def standardise(laws: Laws, model: int, x: Floats, z: Floats) -> float:
    """Find z such that x = mean + L z; return its squared length."""
    d, squared = laws.dimensions[model], 0.0
    for i in range(d):
        z[i] = x[i] - laws.means[model, i]
    for i in range(d - 1, -1, -1):  # those before the i-th are still differences
        total = 0.0
        for j in range(i + 1):
            total += laws.inverses[model, i, j] * z[j]
        z[i] = total
        squared += total * total
    return squared


@part
def height(squared: float, freedom: float, dimension: int) -> float:
    """Give the log density at a squared distance from the mean, less that there.

    It is that of Student's t law with so many degrees of freedom, or with infinitely many the normal one.
    """
    if freedom == np.inf:
        return -0.5 * squared
    return float(-0.5 * (freedom + dimension) * np.log1p(squared / freedom))


@part
def put_at(laws: Laws, model: int, centre: Floats, z: Floats, x: Floats) -> None:
    """Put centre + L z into x."""
    for i in range(laws.dimensions[model]):
        total = centre[i]
        for j in range(i + 1):
            total += laws.roots[model, i, j] * z[j]
        x[i] = total
