"""Metropolis-Hastings: accept x' if p(x') q(x | x') ∏ f_n(x') > u p(x) q(x' | x) ∏ f_n(x)."""

import functools
from dataclasses import KW_ONLY, InitVar, dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from gumbelrace.core.jit import Rng, check_generator
from gumbelrace.core.pool import Pool
from gumbelrace.errors import ShapeMismatch
from gumbelrace.kernels.base import Block, Info, Kernel
from gumbelrace.kernels.checks import check_part, check_state, check_target, real_fields, set_method
from gumbelrace.kernels.compiled_walk import CompiledWalk, can_compile
from gumbelrace.kernels.proposals import Proposal, RandomWalk, stretched
from gumbelrace.kernels.target import (
    Decisions,
    Likelihood,
    LogPrior,
    Position,
    checked_point,
    position_of,
    prior_at,
    prior_of_current,
)
from gumbelrace.methods.base import Method
from gumbelrace.population.base import Floats


@dataclass(frozen=True, eq=False)
class Metropolis(Kernel[Position]):
    """Metropolis-Hastings, its accept or reject decided by a race of two arms.

    The arms are the current point and the proposed one, and their offsets
    log p(x) + log u and log p(x') + log q(x | x') - log q(x' | x).

    Known algorithms are special cases of the method: ``Race(methods.Serfling())`` is the test of Bardenet,
    Doucet & Holmes (2014) with δ spread evenly over the looks, and ``Race()`` that of
    Korattikara, Chen & Welling (2014) with looks that double and a normal law in place of Student's t.
    Gibbs sampling of a binary variable is a race of two arms as well (see `Gibbs`).

    Parameters
    ----------
    likelihood : callable
        ``likelihood(points)`` takes points of shape (D, d) and gives a population of D arms, the reward
        of row n for arm i being log f_n(points[i]).
    proposal : Proposal
        An object with ``propose(rng, x)`` and ``log_ratio(x, proposed)``, such as `RandomWalk`.
    log_prior : callable, optional
        ``log_prior(x) -> float``. Where it is -inf a proposal is rejected, and nothing is read.
    delta, method : optional
        Who decides, and its δ: one of them, or neither. Default: ``Betting(0.001)`` where the population
        knows its reward range, else ``Race(delta=1e-5)``: errors add up along a chain.

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
    proposal: Proposal
    _: KW_ONLY
    log_prior: LogPrior | None = None
    delta: InitVar[float | None] = None
    method: Method = None  # type: ignore[assignment]

    def __post_init__(self, delta: float | None) -> None:
        set_method(self, delta)
        check_target(self.likelihood, self.log_prior)
        check_part(self.proposal, "proposal", "propose", "gumbelrace.kernels.RandomWalk(scale)")

    def start(self, position: ArrayLike | None = None, *, rng: Rng = None) -> Position:
        """Give the state of a chain that starts from a position, array_like of shape (d,).

        Where the likelihood has an expansion (`parameter_taylor`), the default is its centre.
        """
        return Position(position_of(position, self))

    def started(self, state: Position) -> Position:
        """Give a position in double precision."""
        check_state(state, Position)
        started: Position = real_fields(state, "position")
        return started

    def step(self, rng: np.random.Generator, state: Position) -> tuple[Position, Info]:
        """Propose a point, and go there or stay."""
        check_state(state, Position)
        block = self.steps(rng, state, 1)
        if block is None:
            return self._step(rng, state)
        counts: Any = block.info
        return Position(block.states.position[0]), Info(*(part[0].item() for part in counts))

    def steps(self, rng: np.random.Generator, state: Position, count: int) -> Block[Position] | None:
        """Make `count` steps in one compiled call, if `is_compiled`."""
        if not self.is_compiled:
            return None
        check_state(state, Position)
        x = checked_point(state.position)
        prior_of_current(self.log_prior, x)
        with self._walks(len(x)).lend() as walk:
            return walk.steps(check_generator(rng), x, count)

    @property
    def is_compiled(self) -> bool:
        """Whether a step needs no Python: `likelihood`, `RandomWalk`, a prior by numba, a race."""
        return isinstance(self.proposal, RandomWalk) and can_compile(
            self.likelihood, self.log_prior, self.method
        )

    @functools.cached_property
    def _pools(self) -> dict[int, Pool[CompiledWalk]]:
        return {}

    def _walks(self, dimension: int) -> Pool[CompiledWalk]:
        # One for each thread: the points that are compared lie in the walk.
        return self._pools.setdefault(dimension, Pool(lambda: self._walk(dimension)))

    def _walk(self, dimension: int) -> CompiledWalk:
        likelihood: Any = self.likelihood
        scale: Floats = cast(RandomWalk, self.proposal).scale
        diagonal = stretched(scale, np.ones(dimension))
        factor = np.array(scale) if scale.ndim == 2 else np.diag(diagonal)
        return CompiledWalk(likelihood, self.log_prior, factor, self.method)

    def _step(self, rng: np.random.Generator, state: Position) -> tuple[Position, Info]:
        decisions, x = Decisions(self.method, rng), checked_point(state.position)
        proposed = self._propose(rng, x)
        offset = self._offset(x, proposed)
        accepted = decisions.accepts(self.likelihood, x, proposed, offset)
        return Position(proposed) if accepted else state, decisions.info(float(accepted))

    def _propose(self, rng: np.random.Generator, x: Floats) -> Floats:
        proposed = checked_point(self.proposal.propose(rng, x))
        if proposed.shape != x.shape:
            raise ShapeMismatch(f"the proposal has shape {proposed.shape}, and the position {x.shape}")
        return proposed

    def _offset(self, x: Floats, proposed: Floats) -> tuple[float, float]:
        of_current = prior_of_current(self.log_prior, x)
        of_proposed = prior_at(self.log_prior, proposed)
        # What is impossible may have no proposal density either.
        possible = of_proposed > -np.inf
        return of_current, of_proposed + (self.proposal.log_ratio(x, proposed) if possible else 0.0)
