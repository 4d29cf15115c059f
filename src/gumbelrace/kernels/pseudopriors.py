"""Pseudopriors: laws from which the parameters of the models that are not current are drawn."""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import scipy  # its parts load when first used

from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.population.arrays import floats
from gumbelrace.population.base import Floats


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
    covariance: Any
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
        return self.at(rng.standard_normal(len(self.mean)))

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
