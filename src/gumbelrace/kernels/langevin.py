"""Langevin proposals from a minibatch, corrected by a raced Metropolis-Hastings test.

With L a square root of the preconditioner, M = L Lᵀ, and ξ standard normal,

    x' = x + ½ ε² M ĝ(x) + ε L ξ,    ĝ(x) = ∇log p(x) + (N / m) Σ_{n in batch} ∇log f_n(x).

The batch is drawn anew for each step, whatever x is. *Given* the batch, q(x' | x) is a proposal like any
other, so the test with q(x | x') / q(x' | x), both for the same batch, leaves the target invariant.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import KW_ONLY, InitVar, dataclass
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumbelrace.core.pool import Pool
from gumbelrace.core.random import Rng, as_generator, check_generator
from gumbelrace.errors import FactorFailed, InvalidArgument
from gumbelrace.kernels.base import Info, Kernel
from gumbelrace.kernels.checks import check_function, check_state, check_target, real_fields, set_method
from gumbelrace.kernels.normal_laws import checked_scale, stretched
from gumbelrace.kernels.target import Likelihood, LogPrior, checked_point, position_of
from gumbelrace.kernels.walk import Walk
from gumbelrace.kernels.workspace import Target
from gumbelrace.methods.base import Method
from gumbelrace.methods.state import Question
from gumbelrace.population.base import Floats, checked_count

Rows = NDArray[np.int64]
Gradient = Callable[[Rows, Floats], Floats]

# Gains of the adaptation at step t, t^-DECAY, and weights of its average, t^-FORGETTING.
DECAY, FORGETTING = 0.6, 0.75


class LangevinState(NamedTuple):
    """State of a Langevin chain.

    Attributes
    ----------
    position : ndarray of shape (d,)
        The parameter.
    log_step : float
        log ε.
    average : float
        Average of log ε so far, which is the log ε when the adaptation is over.
    iteration : int
        Steps made so far.
    """

    position: Floats
    log_step: float = 0.0
    average: float = 0.0
    iteration: int = 0


@dataclass(frozen=True, eq=False)
class Langevin(Kernel[LangevinState]):
    """Metropolis-adjusted Langevin from minibatches: SGLD's proposal, corrected by a race.

    Parameters
    ----------
    likelihood : callable
        As in `Metropolis`.
    gradient : callable
        ``gradient(index, x)`` gives Σ ∇log f_n(x) over the rows n in `index`, of shape (d,).
    size, batch : int
        Number of rows N, and how many of them a proposal's gradient takes.
    scale : float, array_like of shape (d,) or (d, d)
        L, in the form of the `scale` of `RandomWalk`. If it is about the target's spread, a step size ε
        of about 1 is right.
    adapt_for : int
        Number of steps in which ε adapts. Later it is fixed: leave them out by ``run(..., warmup=)``.
    target_acceptance : float
        Share of accepted proposals that the adaptation aims at.
    prior_gradient, log_prior : callable, optional
        The gradient of the log prior and the log prior, functions of x. Where the prior is -inf a proposal
        is rejected.
    delta, method : optional
        Who decides: one of them, or neither. Default: `Penalty`, which needs no winner, or `Thinning` where
        an expansion knows its remainder and rings are few; with a `delta`, a race that finds a winner, and
        is wrong with that probability at most: `Betting` where the population knows its range, else
        `Race`.

    Notes
    -----
    The noise of a batch must be small next to the proposal's own, or the way back is too unlikely:
    batches of some hundred rows, or small steps.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(1.0, 1.0, 2000)
    >>> kernel = gr.Langevin(
    ...     likelihood=lambda points: gr.table(-0.5 * (y[:, None] - points[:, 0]) ** 2),
    ...     gradient=lambda index, x: np.sum(y[index, None] - x, axis=0),
    ...     size=2000, batch=500, scale=0.02, adapt_for=100,
    ... )
    >>> state = kernel.start([1.0])
    >>> for _ in range(200):
    ...     state, info = kernel.step(rng, state)
    >>> bool(abs(state.position[0] - y.mean()) < 0.1)
    True
    """

    tuning: ClassVar[frozenset[str]] = frozenset({"log_step", "average", "iteration"})

    likelihood: Likelihood
    gradient: Gradient
    _: KW_ONLY
    size: int
    batch: int
    scale: Any = 1.0
    adapt_for: int = 0
    target_acceptance: float = 0.57
    prior_gradient: Callable[[Floats], Floats] | None = None
    log_prior: LogPrior | None = None
    delta: InitVar[float | None] = None
    method: Method = None  # type: ignore[assignment]

    def __post_init__(self, delta: float | None) -> None:
        check_target(self.likelihood, self.log_prior)
        set_method(self, delta, Question.ACCEPT)
        object.__setattr__(self, "scale", checked_scale(self.scale))
        check_function(self.gradient, "gradient", "gradient(index, x)")
        for name in ("size", "batch"):
            checked_count(getattr(self, name), name)
        checked_count(self.adapt_for, "adapt_for", least=0)
        if self.batch > self.size:
            raise InvalidArgument(f"batch is {self.batch}; there are only {self.size} rows")
        if not 0.0 < self.target_acceptance < 1.0:
            raise InvalidArgument(f"target_acceptance is {self.target_acceptance}; it must lie in (0, 1)")

    def start(
        self, position: ArrayLike | None = None, step: float = 1.0, *, rng: Rng = None
    ) -> LangevinState:
        """Give the state of a chain that starts from a position, as in `Metropolis`, with a step size ε."""
        as_generator(rng)
        if not (isinstance(step, Real) and 0.0 < float(step) < math.inf):
            raise InvalidArgument(f"step is {step!r}; it must be more than 0, and finite")
        return LangevinState(position_of(position, self), math.log(step))

    def as_state(self, state: LangevinState) -> LangevinState:
        """Give a state in double precision."""
        check_state(state, LangevinState)
        found: LangevinState = real_fields(state, "position", "log_step", "average")
        return found

    def step(self, rng: np.random.Generator, state: LangevinState) -> tuple[LangevinState, Info]:
        """Propose along a batch's gradient, go there or stay, and adapt the step size."""
        check_state(state, LangevinState)
        x = checked_point(state.position)
        with self._walks(x).lend() as (walk, proposal):
            proposal.log_step, proposal.gradients = state.log_step, 0
            block = walk.steps(check_generator(rng), x, 1)
            read = proposal.gradients * self.batch
        counts: Any = block.info
        evaluations, rewards, looks, accepted, law_error = (part[0].item() for part in counts)
        after = self._adapted(state, bool(accepted))
        moved = after._replace(position=block.states.position[0]) if accepted else after
        return moved, Info(evaluations + read, rewards + read, looks, accepted, law_error)

    @functools.cached_property
    def _pools(self) -> dict[int, Pool[tuple[Walk, "Drifting"]]]:
        return {}

    def _walks(self, x: Floats) -> Pool[tuple[Walk, "Drifting"]]:
        return self._pools.setdefault(len(x), Pool(functools.partial(self._walk, x)))

    def _walk(self, x: Floats) -> tuple[Walk, "Drifting"]:
        proposal, target = Drifting(self), Target(self.likelihood, (self.log_prior,), self.method, np.stack)
        return Walk(target, proposal, x), proposal

    def _adapted(self, state: LangevinState, accepted: bool) -> LangevinState:
        """Robbins-Monro on log ε while it adapts, and its average when that is over."""
        t = state.iteration + 1
        if t > self.adapt_for:
            return state._replace(iteration=t)
        log_step = state.log_step + (accepted - self.target_acceptance) / t**DECAY
        average = state.average + (log_step - state.average) / t**FORGETTING
        return state._replace(
            log_step=average if t == self.adapt_for else log_step, average=average, iteration=t
        )


class Drifting:
    """The proposal of a step, with the batch by which it was drawn."""

    def __init__(self, kernel: Langevin) -> None:
        self._kernel, self.log_step, self.gradients = kernel, 0.0, 0

    def propose(self, rng: np.random.Generator, x: Floats) -> Floats:
        kernel = self._kernel
        self._rows = rng.choice(kernel.size, kernel.batch, replace=False)
        self._noise = rng.standard_normal(len(x))
        self._move = self._noise + self._drift(x)
        return x + math.exp(self.log_step) * stretched(kernel.scale, self._move)

    def log_ratio(self, x: Floats, proposed: Floats) -> float:
        back = -self._move - self._drift(proposed)
        return 0.5 * float(self._noise @ self._noise - back @ back)

    def _drift(self, x: Floats) -> Floats:
        """Give ½ ε Lᵀ ĝ(x): the drift in units of ε L, in which the noise is standard normal."""
        kernel, self.gradients = self._kernel, self.gradients + 1
        estimate = (kernel.size / kernel.batch) * _checked_gradient(kernel.gradient(self._rows, x), x)
        if kernel.prior_gradient is not None:
            estimate = estimate + _checked_gradient(kernel.prior_gradient(x), x)
        return 0.5 * math.exp(self.log_step) * stretched(kernel.scale.T, estimate)


def _checked_gradient(gradient: Any, x: Floats) -> Floats:
    checked = np.asarray(gradient, np.float64)
    if checked.shape != x.shape or not np.isfinite(checked).all():
        raise FactorFailed(
            f"a gradient at {x} is {gradient!r}; it must hold {len(x)} finite numbers, summed over the rows"
        )
    return checked
