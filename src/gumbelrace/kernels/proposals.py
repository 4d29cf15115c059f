"""Proposals of Metropolis-Hastings: how to draw x' near x, and how likely the way back is."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.kernels.normal_laws import Laws, NormalPseudoprior, law_of_steps, laws_of
from gumbelrace.population.arrays import floats
from gumbelrace.population.base import Floats


class Proposal(Protocol):
    """Draws x' from q(x' | x)."""

    def propose(self, rng: np.random.Generator, x: Floats) -> Floats:
        """Draw x' from q(x' | x), leaving x as it is."""

    def log_ratio(self, x: Floats, proposed: Floats) -> float:
        """Give log q(x | x') - log q(x' | x)."""


@dataclass(frozen=True, eq=False)
class RandomWalk:
    """A normal random walk: x' = x + scale ξ with ξ standard normal.

    Parameters
    ----------
    scale : float, array_like of shape (d,) or (d, d)
        Standard deviation of all coordinates or of each, or a square root L of the covariance L Lᵀ
        (for example its Cholesky factor).

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> walk = gr.RandomWalk([0.1, 2.0])
    >>> walk.propose(np.random.default_rng(0), np.zeros(2)).round(2)
    array([ 0.01, -0.26])
    """

    scale: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checked_scale(self.scale))

    def propose(self, rng: np.random.Generator, x: Floats) -> Floats:
        """Draw x' from q(x' | x)."""
        return x + stretched(self.scale, rng.standard_normal(len(x)))

    def log_ratio(self, x: Floats, proposed: Floats) -> float:
        """Give 0: the walk is symmetric."""
        return 0.0

    def laws(self, dimension: int) -> tuple[Laws, float]:
        """Give the law of the steps for compiled code, and the correlation 1."""
        diagonal = stretched(self.scale, np.ones(dimension))
        return law_of_steps(self.scale if self.scale.ndim == 2 else diagonal), 1.0


@dataclass(frozen=True, eq=False)
class LogWalk:
    """A random walk of the logarithms, for positive parameters: log x' = log x + scale ξ.

    It is not symmetric: log q(x | x') - log q(x' | x) = Σ (log x' - log x).

    Parameters
    ----------
    scale : float, array_like of shape (d,) or (d, d)
        As in `RandomWalk`, on the scale of the logarithms.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> bool(gr.LogWalk(5.0).propose(np.random.default_rng(0), np.array([1.0])) > 0)
    True
    """

    scale: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checked_scale(self.scale))

    def propose(self, rng: np.random.Generator, x: Floats) -> Floats:
        """Draw x' from q(x' | x)."""
        if not (x > 0.0).all():
            raise InvalidArgument(f"LogWalk needs positive parameters, and the position is {x}")
        return x * np.exp(stretched(self.scale, rng.standard_normal(len(x))))

    def log_ratio(self, x: Floats, proposed: Floats) -> float:
        """Give log q(x | x') - log q(x' | x)."""
        return float(np.log(proposed).sum() - np.log(x).sum())


@dataclass(frozen=True, eq=False)
class Autoregressive:
    """Langevin's proposal for a normal law that is close to the target: x' = m + ρ(x - m) + √(1 - ρ²) L ξ.

    The walk would stay in the law N(m, L Lᵀ) by itself, so the test has only to mend the difference between
    it and the target: with a good fit even ρ = 0 is accepted often. No gradient is read.

    Parameters
    ----------
    law : NormalPseudoprior
        The normal law, for example the Laplace approximation of a posterior.
    correlation : float
        ρ, from 0 (independent proposals) to below 1 (small steps).

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> law = gr.NormalPseudoprior([1.0, 2.0], [[1.0, 0.5], [0.5, 1.0]])
    >>> proposal = gr.Autoregressive(law, correlation=0.9)
    >>> proposal.propose(np.random.default_rng(0), np.array([1.0, 2.0])).round(2)
    array([1.05, 1.98])
    """

    law: NormalPseudoprior
    correlation: float = 0.5

    def __post_init__(self) -> None:
        if not isinstance(self.law, NormalPseudoprior):
            raise InvalidArgument(f"law is {self.law!r}; give NormalPseudoprior(mean, covariance)")
        if not 0.0 <= self.correlation < 1.0:
            raise InvalidArgument(f"correlation is {self.correlation}; it must lie in [0, 1)")

    def propose(self, rng: np.random.Generator, x: Floats) -> Floats:
        """Draw x' from q(x' | x)."""
        rho, z = self.correlation, self.law.standardised(x)
        return self.law.at(rho * z + np.sqrt(1.0 - rho * rho) * rng.standard_normal(len(x)))

    def log_ratio(self, x: Floats, proposed: Floats) -> float:
        """Give log q(x | x') - log q(x' | x)."""
        return self.law.log_density(x) - self.law.log_density(proposed)

    def laws(self, dimension: int) -> tuple[Laws, float]:
        """Give the law for compiled code, and the correlation."""
        if dimension != len(self.law.mean):
            raise ShapeMismatch(
                f"the law has {len(self.law.mean)} parameters, and the position {dimension}"
            )
        return laws_of([self.law]), self.correlation


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
