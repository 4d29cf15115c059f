"""Model choice by Gibbs sampling in the product of all models' parameter spaces (Carlin & Chib 1995).

Model k has weight w_k, parameter θ_k with prior p(θ_k | k), and pseudoprior q_k(θ_k), the law that θ_k has
while another model is current. Then

    p(k | θ, data) ∝ w_k p(θ_k | k) / q_k(θ_k) ∏ f_n(θ_k; k),

a race with an arm for each model. (The paper's appendix leaves out p / q; it belongs there, since the
product over the other models' q is the product over all of them divided by q_k.)
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumbelrace.auditing import Audited
from gumbelrace.core.pool import Pool
from gumbelrace.core.random import Rng, as_generator, check_generator
from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.kernels.base import Block, Checked, Info, Kernel
from gumbelrace.kernels.checks import (
    check_function,
    check_log_prior,
    check_part,
    check_state,
    check_target,
    real_fields,
    set_method,
)
from gumbelrace.kernels.model_walk import Choice, moves_alike
from gumbelrace.kernels.normal_laws import Laws, NormalPseudoprior, Pseudoprior, laws_of
from gumbelrace.kernels.target import LogPrior, Position, checked_point
from gumbelrace.kernels.workspace import Target
from gumbelrace.methods.base import Method, weakest
from gumbelrace.methods.exact import Exact
from gumbelrace.methods.state import Question
from gumbelrace.population.base import Floats, Population, checked_count

Parameters = tuple[Floats, ...]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model to choose.

    Parameters
    ----------
    kernel : Kernel
        Updates the parameter while the model is current: any kernel whose state has a `position`.
    pseudoprior : Pseudoprior
        An object with ``sample(rng)`` and ``log_density(x)``, such as `NormalPseudoprior`. The closer to
        the model's posterior, the more often models change.
    log_prior : callable
        ``log_prior(x) -> float``, the logarithm of the *normalised* prior density of the parameter.
    state : callable
        Makes the kernel's state of a position; for a `Langevin` kernel, for example,
        ``lambda x: LangevinState(x, log_step=-0.5)``.
    """

    kernel: Kernel[Any]
    pseudoprior: Pseudoprior
    log_prior: LogPrior
    state: Callable[[Floats], Any] = Position

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise InvalidArgument(
                f"kernel is a {type(self.kernel).__name__}; give a kernel, as Metropolis(...)"
            )
        check_part(self.pseudoprior, "pseudoprior", "sample", "NormalPseudoprior(mean, covariance)")
        check_function(self.log_prior, "log_prior", "log_prior(x)")
        check_log_prior(self.log_prior)


def checked_models(models: Any) -> tuple[Candidate, ...]:
    checked = tuple(models) if isinstance(models, Iterable) else (models,)
    for model in checked:
        if not isinstance(model, Candidate):
            raise InvalidArgument(f"a model is a {type(model).__name__}; give a list of Candidate(...)")
    return checked


class ModelChoice(NamedTuple):
    """State of a chain over models.

    Attributes
    ----------
    model : int
        The current model.
    parameters : tuple of ndarray
        The parameter of each model; those of the models that are not current mean nothing.
    log_weights : ndarray of shape (K,)
        Log prior probability of each model, up to a constant.
    iteration : int
        Steps made so far.
    """

    model: int
    parameters: Parameters
    log_weights: Floats
    iteration: int = 0

    @property
    def log_evidence(self) -> Floats:
        """Log marginal likelihoods relative to the first model's, as adapted weights estimate them.

        How far they are off is not known; `gumbelrace.log_evidence` gives estimates with errors.
        """
        relative: Floats = self.log_weights[0] - self.log_weights
        return relative


def first_of(states: ModelChoice) -> ModelChoice:
    model, parameters, weights, iteration = states
    drawn = tuple(parameter[0] for parameter in parameters)
    return ModelChoice(int(np.asarray(model)[0]), drawn, weights[0], int(np.asarray(iteration)[0]))


def wang_landau(t: int) -> float:
    """Give 1 / (1 + t / 100), by which step t lowers the log weight of the model it visits."""
    return 1.0 / (1.0 + t / 100.0)


@dataclass(frozen=True, eq=False)
class CarlinChib(Kernel[ModelChoice]):
    """Model choice with pseudopriors; the draw of the model is a race with an arm for each.

    A step updates the parameter of the current model, draws those of the others from their
    pseudopriors, and then draws the model. To visit all models, their weights can adapt (Wang-Landau):
    minus the adapted log weights estimate the log marginal likelihoods, up to a constant. For estimates
    with errors, make further steps with fixed weights: `log_evidence`.

    Parameters
    ----------
    models : sequence of Candidate
        The models.
    likelihood : callable
        ``likelihood(parameters)`` takes a list with the parameter of each model and gives a population
        with an arm for each, the reward of row n for arm k being log f_n(parameters[k]; model k).
    adapt_for : int
        Number of steps in which the weights adapt. Later they are fixed. In t steps they move by at most
        the sum of the gains, by default 100 log(1 + t / 100): for models that are further apart, start
        from weights that are about right.
    gain : callable
        ``gain(t)``: by how much step t lowers the log weight of the model that it visits.
    guard : float, optional
        Share of a `NormalPseudoprior`. Outside the ellipsoid around its mean that holds so much of it, a
        control variate may be far off: decisions on parameters there are exact (all of those of a kernel
        that has no `likelihood`, since the points that it compares cannot be seen).
    delta, method : optional
        Who draws the model (the kernels of the models have methods of their own). Default: as in `Gibbs`.

    Notes
    -----
    Steps need no Python if the likelihood has `slots`, the models have the same log prior, a numba
    function, and each moves by `Metropolis` with `Autoregressive` proposals for its pseudoprior.

    Examples
    --------
    Is the mean of these data close to 0, or anywhere?

    >>> import numpy as np, gumbelrace as gr
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(0.5, 1.0, 500)
    >>> def likelihood(points):
    ...     return gr.table(-0.5 * (y[:, None] - np.array(points)[:, 0]) ** 2)
    >>> def candidate(scale):
    ...     log_prior = lambda x: -0.5 * (x[0] / scale) ** 2 - np.log(scale * np.sqrt(2 * np.pi))
    ...     variance = 1 / (500 + scale**-2)
    ...     pseudoprior = gr.kernels.NormalPseudoprior([variance * y.sum()], [[variance]])
    ...     kernel = gr.Metropolis(likelihood, gr.kernels.RandomWalk(0.1), log_prior=log_prior)
    ...     return gr.kernels.Candidate(kernel, pseudoprior, log_prior)
    >>> kernel = gr.CarlinChib([candidate(0.1), candidate(1.0)], likelihood)
    >>> state, visits = kernel.start(rng=rng), []
    >>> for _ in range(200):
    ...     state, info = kernel.step(rng, state)
    ...     visits.append(state.model)
    >>> bool(np.mean(visits) > 0.9)
    True
    """

    tuning: ClassVar[frozenset[str]] = frozenset({"log_weights", "iteration"})

    models: Sequence[Candidate]
    likelihood: Callable[[list[Floats]], Population | ArrayLike]
    _: KW_ONLY
    adapt_for: int = 0
    gain: Callable[[int], float] = wang_landau
    guard: float | None = None
    delta: InitVar[float | None] = None
    method: Method = None  # type: ignore[assignment]

    def __post_init__(self, delta: float | None) -> None:
        set_method(self, delta, Question.DRAW)
        object.__setattr__(self, "models", checked_models(self.models))
        checked_count(len(self.models), "the number of models")
        check_target(self.likelihood, None)
        checked_count(self.adapt_for, "adapt_for", least=0)
        if self.guard is not None and not 0.0 < self.guard < 1.0:
            raise InvalidArgument(f"guard is {self.guard}; it must lie strictly between 0 and 1")
        if self.guard is not None and not self._normal_laws:
            raise InvalidArgument("guard needs pseudopriors that are NormalPseudoprior")

    def presence(self, states: ModelChoice) -> dict[str, NDArray[np.bool_]]:
        """Say in which draws a parameter is that of the current model, and not of its pseudoprior."""
        return {f"parameters.{k}": np.asarray(states.model) == k for k in range(len(self.models))}

    def start(self, model: int = 0, *, rng: Rng = None) -> ModelChoice:
        """Give a state with parameters drawn from the pseudopriors and equal weights."""
        rng, number = as_generator(rng), self._checked_model(model)
        parameters = tuple(candidate.pseudoprior.sample(rng) for candidate in self.models)
        return ModelChoice(number, parameters, np.zeros(len(self.models)))

    def as_state(self, state: ModelChoice) -> ModelChoice:
        """Give parameters and weights in double precision."""
        self._check(state)
        found: ModelChoice = real_fields(state, "parameters", "log_weights")
        return found

    def step(self, rng: np.random.Generator, state: ModelChoice) -> tuple[ModelChoice, Info]:
        """Update the current model's parameter, draw the others' anew, and draw the model."""
        block = self.steps(rng, state, 1)
        counts: Any = block.info
        return first_of(block.states), Info(*(part[0].item() for part in counts))

    def steps(self, rng: np.random.Generator, state: ModelChoice, count: int) -> Block[ModelChoice]:
        """Make `count` steps in one compiled call, which calls what is Python where it is needed."""
        self._check(state)
        iterations = state.iteration + np.arange(count)
        gains = np.array([self.gain(t) if t < self.adapt_for else 0.0 for t in iterations.tolist()])
        parameters = [checked_point(x) for x in state.parameters]
        with self._choices(parameters).lend() as choice:
            weights = np.array(state.log_weights, np.float64)
            history = choice.steps(check_generator(rng), state.model, parameters, weights, gains)
        drawn = tuple(history.parameters[:, k, : len(x)] for k, x in enumerate(parameters))
        states: Any = (history.models, drawn, history.log_weights, iterations + 1)
        counts: Any = (*history.counts.T, history.changed, history.law_errors)
        return Block(ModelChoice(*states), Info(*counts))

    @property
    def is_compiled(self) -> bool:
        """Whether a step needs no Python."""
        target = self._target
        return self._normal_laws and target.is_compiled and moves_alike(self.models, target)

    @functools.cached_property
    def _normal_laws(self) -> bool:
        return all(isinstance(model.pseudoprior, NormalPseudoprior) for model in self.models)

    @functools.cached_property
    def _laws(self) -> Laws | None:
        pseudopriors: Any = [model.pseudoprior for model in self.models]
        return laws_of(pseudopriors, self.guard) if self._normal_laws else None

    @property
    def _target(self) -> Target:
        return Target(self.likelihood, [model.log_prior for model in self.models], self.method)

    @functools.cached_property
    def _pools(self) -> dict[tuple[int, ...], Pool[Choice]]:
        return {}

    def _choices(self, parameters: Sequence[Floats]) -> Pool[Choice]:
        # One for each thread: the parameters that are compared lie in it.
        far = [functools.partial(self._is_far, k) for k in range(len(self.models))] if self.guard else None
        made = functools.partial(Choice, self.models, self._target, self._laws, parameters, far)
        return self._pools.setdefault(tuple(len(x) for x in parameters), Pool(made))

    def with_method(self, method: Method) -> Self:
        """Return the same kernel with another method, also for the kernels of the models."""
        return self._with_methods(method, method)

    def audit(self, rng: np.random.Generator, state: ModelChoice) -> Checked[ModelChoice]:
        """Make one step, checking every decision, also those of the current model's kernel."""
        return self.audited(rng, state)[0]

    def audited(
        self, rng: np.random.Generator, state: ModelChoice
    ) -> tuple[Checked[ModelChoice], Audited, Audited]:
        """Make one step; also give the checks of the current model's kernel, and of the model's draw.

        Decisions that are right in law only are left as they are: audit the kernels of the models for them.
        """
        self._check(state)
        noise, rows = (int(seed) for seed in check_generator(rng).integers(2**63, size=2))
        own, methods = np.random.default_rng(rows), (self.models[state.model].kernel.method, self.method)
        inner, outer = checks = [Audited(method, own) for method in methods]
        raced, _ = self._step_by(checks, methods, noise, state)
        errors, exact = inner.errors + outer.errors, raced
        if errors > 0:
            exact, _ = self._step_by([Audited(Exact(), own)] * 2, methods, noise, state)
        impossible, decisions = inner.impossible + outer.impossible, inner.decisions + outer.decisions
        promise = weakest([inner.promise, outer.promise])
        return Checked(errors, decisions, raced, exact, impossible, promise), inner, outer

    def _step_by(
        self, checks: Sequence[Method], methods: Sequence[Method], noise: int, state: ModelChoice
    ) -> tuple[ModelChoice, Info]:
        """Make a step by the checks of those methods whose answers can be checked one by one."""
        chosen = (
            check if method.finds_winners else method for check, method in zip(checks, methods, strict=True)
        )
        return self._with_methods(*chosen).step(np.random.default_rng(noise), state)

    def _with_methods(self, inner: Method, outer: Method) -> Self:
        """Return the same kernel with a method for the models' moves, and one for the draw of the model."""
        models = [replace(model, kernel=model.kernel.with_method(inner)) for model in self.models]
        return replace(self, models=models, method=outer)

    def _is_far(self, k: int, x: Floats) -> bool:
        z = cast(NormalPseudoprior, self.models[k].pseudoprior).standardised(x)
        return bool(z @ z > cast(Laws, self._laws).limits[k])

    def _check(self, state: ModelChoice) -> None:
        check_state(state, ModelChoice)
        count = len(self.models)
        if len(state.parameters) != count or np.shape(state.log_weights) != (count,):
            raise ShapeMismatch(
                f"the state must have a parameter and a log weight for each of {count} models"
            )
        self._checked_model(state.model)

    def _checked_model(self, model: Any) -> int:
        if not isinstance(model, int | np.integer) or not 0 <= model < len(self.models):
            last = len(self.models) - 1
            raise InvalidArgument(f"the current model is {model!r}; it must be a number from 0 to {last}")
        return int(model)
