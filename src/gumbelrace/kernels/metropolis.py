"""Metropolis-Hastings: accept x' if p(x') q(x | x') ∏ f_n(x') > u p(x) q(x' | x) ∏ f_n(x)."""

import functools
from dataclasses import KW_ONLY, InitVar, dataclass
from numbers import Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from gumbelrace.core.pool import Pool
from gumbelrace.core.random import Rng, as_generator, check_generator
from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.kernels.base import Block, Info, Kernel
from gumbelrace.kernels.checks import check_part, check_state, check_target, real_fields, set_method
from gumbelrace.kernels.normal_laws import (
    Laws,
    NormalPseudoprior,
    check_positive,
    checked_scale,
    law_of_steps,
    laws_of,
    stretched,
)
from gumbelrace.kernels.target import Likelihood, LogPrior, Position, checked_point, position_of
from gumbelrace.kernels.walk import Walk
from gumbelrace.kernels.workspace import Target
from gumbelrace.methods.base import Method
from gumbelrace.methods.state import Question
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
    >>> walk = gr.kernels.RandomWalk([0.1, 2.0])
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
    >>> bool(gr.kernels.LogWalk(5.0).propose(np.random.default_rng(0), np.array([1.0])) > 0)
    True
    """

    scale: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checked_scale(self.scale))

    def propose(self, rng: np.random.Generator, x: Floats) -> Floats:
        """Draw x' from q(x' | x)."""
        check_positive(x)
        return x * np.exp(stretched(self.scale, rng.standard_normal(len(x))))

    def log_ratio(self, x: Floats, proposed: Floats) -> float:
        """Give log q(x | x') - log q(x' | x)."""
        return float(np.log(proposed).sum() - np.log(x).sum())

    def laws(self, dimension: int) -> tuple[Laws, float, float, bool]:
        """Give the law of the steps for compiled code, and that they are those of the logarithms."""
        return *RandomWalk(self.scale).laws(dimension), np.inf, True


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
    >>> law = gr.kernels.NormalPseudoprior([1.0, 2.0], [[1.0, 0.5], [0.5, 1.0]])
    >>> proposal = gr.kernels.Autoregressive(law, correlation=0.9)
    >>> proposal.propose(np.random.default_rng(0), np.array([1.0, 2.0])).round(2)
    array([1.05, 1.98])
    """

    law: NormalPseudoprior
    correlation: float = 0.5

    def __post_init__(self) -> None:
        check_law(self.law)
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
        return laws_of([checked_law(self.law, dimension)]), self.correlation


@dataclass(frozen=True, eq=False)
class StudentT:
    """Independent proposals from Student's t law around a normal law that is close to the target.

    Its tails are heavier than those of the normal law, so that a chain leaves points where the target is
    much larger than the normal law: x' = m + scale · L ξ √(ν / χ²_ν).

    Parameters
    ----------
    law : NormalPseudoprior
        The normal law N(m, L Lᵀ), for example the Laplace approximation of a posterior.
    freedom : float
        Degrees of freedom ν, positive: the fewer, the heavier the tails.
    scale : float
        How much wider than the normal law it is.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> law = gr.kernels.NormalPseudoprior([1.0, 2.0], [[1.0, 0.5], [0.5, 1.0]])
    >>> proposal = gr.kernels.StudentT(law)
    >>> proposal.propose(np.random.default_rng(0), np.array([1.0, 2.0])).shape
    (2,)
    >>> round(proposal.log_ratio(np.array([1.0, 2.0]), np.array([2.0, 2.0])), 3)
    0.595
    """

    law: NormalPseudoprior
    freedom: float = 5.0
    scale: float = 1.2

    def __post_init__(self) -> None:
        check_law(self.law)
        for name in ("freedom", "scale"):
            given = getattr(self, name)
            if not (isinstance(given, Real) and 0.0 < float(given) < np.inf):
                raise InvalidArgument(f"{name} is {given!r}; it must be a positive number")

    def propose(self, rng: np.random.Generator, x: Floats) -> Floats:
        """Draw x' from q(x'), wherever x is."""
        spread = self.scale * np.sqrt(0.5 * self.freedom / rng.standard_gamma(0.5 * self.freedom))
        return self.law.at(spread * rng.standard_normal(len(x)))

    def log_ratio(self, x: Floats, proposed: Floats) -> float:
        """Give log q(x) - log q(x')."""
        before, after = (self._log_density(point) for point in (x, proposed))
        return before - after

    def _log_density(self, x: Floats) -> float:
        """Give the log density, less that at the mean."""
        z = self.law.standardised(x) / self.scale
        return float(-0.5 * (self.freedom + len(x)) * np.log1p(z @ z / self.freedom))

    def laws(self, dimension: int) -> tuple[Laws, float, float]:
        """Give the widened law for compiled code, no correlation, and the degrees of freedom."""
        return laws_of([widened(self.law, self.scale, dimension)]), 0.0, float(self.freedom)


@dataclass(frozen=True, eq=False)
class Mixture:
    """Independent proposals from a law that is close to the target, and small steps among them.

    The independent ones reach everywhere at once. The small steps, x' = m + ρ(x - m) + √(1 - ρ²) s L ξ,
    lead a chain away from points where the target is much larger than the law, which independent proposals
    hardly leave. Which of the two a step makes does not depend on where it is.

    Parameters
    ----------
    law : NormalPseudoprior
        The normal law N(m, L Lᵀ), for example the Laplace approximation of a posterior.
    freedom : float
        Degrees of freedom of Student's t law around it; infinite: the normal law itself.
    scale : float
        s, how much wider than the normal law both are.
    small_steps : float
        Share of the proposals that are small steps, from 0 to 1.
    correlation : float
        ρ, of a small step with where it starts, from 0 to below 1.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> law = gr.kernels.NormalPseudoprior([1.0, 2.0], [[1.0, 0.5], [0.5, 1.0]])
    >>> gr.kernels.Mixture(law, small_steps=0.2).correlation
    0.9
    """

    law: NormalPseudoprior
    freedom: float = np.inf
    scale: float = 1.0
    small_steps: float = 0.1
    correlation: float = 0.9

    def __post_init__(self) -> None:
        check_law(self.law)
        if not self.freedom > 0.0 or not 0.0 < self.scale < np.inf:
            raise InvalidArgument(
                f"freedom is {self.freedom} and scale {self.scale}; they must be positive"
            )
        if not 0.0 <= self.small_steps <= 1.0 or not 0.0 <= self.correlation < 1.0:
            raise InvalidArgument(
                f"small_steps is {self.small_steps} and correlation {self.correlation}; "
                "they must lie in [0, 1] and [0, 1)"
            )

    def laws(self, dimension: int) -> tuple[Laws, float, float, bool, tuple[float, float]]:
        """Give the widened law for compiled code, and how it proposes."""
        laws = laws_of([widened(self.law, self.scale, dimension)])
        return laws, 0.0, float(self.freedom), False, (float(self.small_steps), float(self.correlation))


def widened(law: NormalPseudoprior, scale: float, dimension: int) -> NormalPseudoprior:
    """Give a law with so many times the standard deviations."""
    checked = checked_law(law, dimension)
    return NormalPseudoprior(checked.mean, scale**2 * checked.covariance)


def check_law(law: Any) -> None:
    """Refuse what is no normal law."""
    if not isinstance(law, NormalPseudoprior):
        raise InvalidArgument(f"law is {law!r}; give NormalPseudoprior(mean, covariance)")


def checked_law(law: NormalPseudoprior, dimension: int) -> NormalPseudoprior:
    """Return a law, if it has as many parameters as a position."""
    if dimension != len(law.mean):
        raise ShapeMismatch(f"the law has {len(law.mean)} parameters, and the position {dimension}")
    return law


@dataclass(frozen=True, eq=False)
class Metropolis(Kernel[Position]):
    """Metropolis-Hastings, its accept or reject decided by a race of two arms.

    The arms are the current point and the proposed one, and their offsets
    log p(x) + log u and log p(x') + log q(x | x') - log q(x' | x).

    Known algorithms are special cases of the method: ``Race(methods.Serfling())`` is the test of Bardenet,
    Doucet & Holmes (2014) with δ spread evenly over the looks, and ``Race()`` that of
    Korattikara, Chen & Welling (2014), by Student's t as well, with looks that double and a δ for all looks
    together.
    Gibbs sampling of a binary variable is a race of two arms as well (see `Gibbs`).

    Parameters
    ----------
    likelihood : callable
        ``likelihood(points)`` takes points of shape (D, d) and gives a population of D arms, the reward
        of row n for arm i being log f_n(points[i]).
    proposal : Proposal
        An object with ``propose(rng, x)`` and ``log_ratio(x, proposed)``, such as `RandomWalk`, or a
        `Mixture`.
    log_prior : callable, optional
        ``log_prior(x) -> float``. Where it is -inf a proposal is rejected, and nothing is read.
    delta, method : optional
        Who decides: one of them, or neither. Default: `Penalty`, which needs no winner, or `Thinning` where
        an expansion knows its remainder and rings are few; with a `delta`, a race that finds a winner, and
        is wrong with that probability at most: `Betting` where the population knows its range, else
        `Race`.

    Examples
    --------
    The mean of normal data:

    >>> import numba, numpy as np, gumbelrace as gr
    >>> @numba.njit
    ... def log_factor(n, arm, points, y):
    ...     return -0.5 * (y[n] - points[arm, 0]) ** 2
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(1.0, 1.0, 10_000)
    >>> def likelihood(points):
    ...     return gr.compiled(log_factor, (points, y), size=len(y), arms=len(points))
    >>> kernel = gr.Metropolis(likelihood, gr.kernels.RandomWalk(0.02), log_prior=lambda x: -0.5 * x @ x)
    >>> state = kernel.start([1.0])
    >>> for _ in range(100):
    ...     state, info = kernel.step(rng, state)
    >>> bool(abs(state.position[0] - y.mean()) < 0.05)
    True
    """

    likelihood: Likelihood
    proposal: Proposal | Mixture
    _: KW_ONLY
    log_prior: LogPrior | None = None
    delta: InitVar[float | None] = None
    method: Method = None  # type: ignore[assignment]

    def __post_init__(self, delta: float | None) -> None:
        check_target(self.likelihood, self.log_prior)
        set_method(self, delta, Question.ACCEPT)
        if not isinstance(self.proposal, Mixture):
            check_part(self.proposal, "proposal", "propose", "gumbelrace.kernels.RandomWalk(scale)")

    def start(self, position: ArrayLike | None = None, *, rng: Rng = None) -> Position:
        """Give the state of a chain that starts from a position, array_like of shape (d,).

        Where the likelihood has an expansion (`parameter_taylor`), the default is its centre.
        """
        as_generator(rng)
        return Position(position_of(position, self))

    def as_state(self, state: Position) -> Position:
        """Give a position in double precision."""
        check_state(state, Position)
        found: Position = real_fields(state, "position")
        return found

    def step(self, rng: np.random.Generator, state: Position) -> tuple[Position, Info]:
        """Propose a point, and go there or stay."""
        block = self.steps(rng, state, 1)
        counts: Any = block.info
        moved = Position(block.states.position[0]) if counts.acceptance[0] else state
        return moved, Info(*(part[0].item() for part in counts))

    def steps(self, rng: np.random.Generator, state: Position, count: int) -> Block[Position]:
        """Make `count` steps in one compiled call, which calls what is Python where it is needed."""
        check_state(state, Position)
        x = checked_point(state.position)
        with self._walks(x).lend() as walk:
            return walk.steps(check_generator(rng), x, count)

    @functools.cached_property
    def _pools(self) -> dict[int, Pool[Walk]]:
        return {}

    @property
    def is_compiled(self) -> bool:
        """Whether a step needs no Python: `likelihood`, a proposal of ours, a prior by numba, a race."""
        return hasattr(self.proposal, "laws") and self._target.is_compiled

    @property
    def _target(self) -> Target:
        return Target(self.likelihood, (self.log_prior,), self.method, np.stack)

    def _walks(self, x: Floats) -> Pool[Walk]:
        # One for each thread: the points that are compared lie in the walk.
        return self._pools.setdefault(len(x), Pool(functools.partial(Walk, self._target, self.proposal, x)))
