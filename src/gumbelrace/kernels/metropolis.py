"""Metropolis-Hastings: accept x' if p(x') q(x | x') ∏ f_n(x') > u p(x) q(x' | x) ∏ f_n(x)."""

import functools
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gumbelrace.core.jit import check_generator
from gumbelrace.core.pool import Pool
from gumbelrace.kernels.base import Block, Info, Kernel
from gumbelrace.kernels.checks import check_part, check_state, check_target, real_fields
from gumbelrace.kernels.proposals import Proposal
from gumbelrace.kernels.target import Likelihood, LogPrior, Position, checked_point
from gumbelrace.kernels.walk import Walk
from gumbelrace.kernels.workspace import Target
from gumbelrace.methods.base import Method
from gumbelrace.methods.default import Default
from gumbelrace.population.base import Floats


@dataclass(frozen=True, eq=False)
class Metropolis(Kernel[Position]):
    """Metropolis-Hastings, its accept or reject decided by a race of two arms.

    The arms are the current point and the proposed one, and their offsets
    log p(x) + log u and log p(x') + log q(x | x') - log q(x' | x).

    Known algorithms are special cases of the method: ``Race(Serfling())`` is the test of Bardenet,
    Doucet & Holmes (2014) with δ spread evenly over the looks, and ``Race(Normal())`` that of
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
    method : Method
        Default: ``Betting(0.001)`` where the population knows its reward range, else
        ``Race(Normal(), delta=1e-5)``: errors add up along a chain.

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
    >>> kernel = gr.Metropolis(likelihood, gr.RandomWalk(0.02), log_prior=lambda x: -0.5 * x @ x)
    >>> state = gr.Position(np.array([1.0]))
    >>> for _ in range(100):
    ...     state, info = kernel.step(rng, state)
    >>> bool(abs(state.position[0] - y.mean()) < 0.05)
    True
    """

    likelihood: Likelihood
    proposal: Proposal
    log_prior: LogPrior | None = None
    method: Method = field(default_factory=Default)

    def __post_init__(self) -> None:
        check_target(self.likelihood, self.log_prior, self.method)
        check_part(self.proposal, "proposal", "propose", "gumbelrace.RandomWalk(scale)")

    def started(self, state: Position) -> Position:
        """Give a position in double precision."""
        check_state(state, Position)
        started: Position = real_fields(state, "position")
        return started

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
        """Whether a step needs no Python: `likelihood`, a normal proposal, a prior by numba, a race."""
        return hasattr(self.proposal, "laws") and self._target.is_compiled

    @property
    def _target(self) -> Target:
        return Target(self.likelihood, (self.log_prior,), self.method, np.stack)

    def _walks(self, x: Floats) -> Pool[Walk]:
        # One for each thread: the points that are compared lie in the walk.
        return self._pools.setdefault(len(x), Pool(functools.partial(Walk, self._target, self.proposal, x)))
