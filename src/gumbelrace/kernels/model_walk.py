"""Many steps of `CarlinChib` in one compiled call.

A step moves the parameter of the current model, draws those of the others, and then the model. There are
slots for the move (current and proposed) and for all models. A move by `Autoregressive` proposals for the
model's pseudoprior is the step of `walk`; one by another kernel, or a pseudoprior that is not normal, is
Python that compiled code calls.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gumbelrace.core.jit import call, kernel, part
from gumbelrace.errors import InvalidArgument
from gumbelrace.kernels.base import Kernel
from gumbelrace.kernels.metropolis import Autoregressive, Metropolis
from gumbelrace.kernels.normal_laws import Laws, draw, law_of_steps, put_at, standardise
from gumbelrace.kernels.target import Likelihood, checked_point, refuse_start
from gumbelrace.kernels.walk import FAILED, MOVE, Proposing, by_laws, step
from gumbelrace.kernels.workspace import Contest, Indices, Target, Workspace, ask, copy_slot, decide, put
from gumbelrace.methods.base import Asked, Method, Promise
from gumbelrace.methods.exact import Exact
from gumbelrace.methods.state import CURRENT, LEADER, Question, Results
from gumbelrace.population.base import Floats, Population
from gumbelrace.population.callback import Hooks
from gumbelrace.population.likelihood import PRIOR

DRAW = Asked(Question.DRAW)
IsFar = Callable[[Floats], bool]


class Chain(NamedTuple):
    """Where a chain is (compiled code changes the arrays), and how its parameters are drawn."""

    model: Indices
    weights: Floats
    gains: Floats  # by which the weight of the model visited is lowered, for each step
    laws: Laws
    log_q: Floats  # of each parameter under its pseudoprior
    z: Floats
    counts: Indices  # of a move by Python
    law_error: Floats  # of a move by Python
    hooks: tuple[int, int]  # addresses: to move, and to draw a parameter; 0: by normal laws


class History(NamedTuple):
    """What the steps gave: an entry for each."""

    models: Indices
    parameters: Floats
    log_weights: Floats
    counts: Indices  # evaluations, rewards, looks
    changed: Floats
    law_errors: Floats


def moves_by_its_law(model: Any, likelihood: Any) -> bool:
    """Whether a candidate's kernel is Metropolis for this likelihood, proposing by its pseudoprior."""
    kernel = model.kernel
    return (
        isinstance(kernel, Metropolis)
        and isinstance(kernel.proposal, Autoregressive)
        and kernel.proposal.law is model.pseudoprior
        and kernel.log_prior is model.log_prior
        and kernel.likelihood is likelihood
    )


def moves_alike(models: Sequence[Any], target: Target) -> bool:
    """Whether all candidates move by their pseudopriors, in the same way."""
    if not all(moves_by_its_law(model, target.likelihood) for model in models):
        return False
    first, kernels = models[0].kernel, [model.kernel for model in models]
    alike = all(
        k.proposal.correlation == first.proposal.correlation and k.method == first.method for k in kernels
    )
    return alike and first.method.has_plan == target.method.has_plan


class Choice:
    """A chain over models: its slots, and all that compiled code needs to move it.

    `laws` are the pseudopriors, if they are normal; `far[k](x)` says whether decisions on a parameter of
    model k are to be exact.
    """

    def __init__(
        self,
        models: Sequence[Any],
        target: Target,
        laws: Laws | None,
        parameters: Sequence[Floats],
        far: Sequence[IsFar] | None,
    ) -> None:
        self._models, self._laws, self._far, self._hooks = models, laws, far, Hooks()
        self._every = Workspace(DRAW, target, len(models), parameters, self._hooks)
        self._slots = self._every.slots
        self._slots.models[:] = np.arange(len(models))
        self._pair: Workspace | None = None
        if laws is not None and moves_alike(models, target):
            # Slots are copied between the two, so that they must know the same of a point.
            method = models[0].kernel.method
            of_moves = target._replace(method=method, form=np.stack, read_for=target.method)
            self._pair = Workspace(MOVE, of_moves, 2, parameters, self._hooks)
        self._entries = self._entries_of()

    def steps(
        self,
        rng: np.random.Generator,
        model: int,
        parameters: Sequence[Floats],
        weights: Floats,
        gains: Floats,
    ) -> History:
        """Make as many steps as there are gains, by which the weight of the model visited is lowered."""
        for k, x in enumerate(parameters):
            self._slots.parameters[k, : len(x)] = x
        self._rng, history = rng, _new_history(len(gains), self._slots.parameters.shape)
        self._chain = chain = self._chain_of(model, weights, gains)
        proposing = by_laws(chain.laws, self._models[0].kernel.proposal.correlation if self._pair else 1.0)
        with (
            self._every.contest(rng) as every,
            self._pair.contest(rng) if self._pair else nullcontext(every) as pair,
            self._hooks.locked(rng.bit_generator.lock),
        ):
            made = choose(pair, every, proposing, chain, rng, history)
        if made < len(gains):
            self._explain()
        return history

    def _chain_of(self, model: int, weights: Floats, gains: Floats) -> Chain:
        count, width = self._slots.parameters.shape
        laws = law_of_steps(np.ones(width)) if self._laws is None else self._laws
        of_move, arrays = (np.zeros(3, np.int64), np.zeros(1)), (np.zeros(count), np.empty(width))
        return Chain(np.array([model]), weights, gains, laws, *arrays, *of_move, self._entries)

    def _entries_of(self) -> tuple[int, int]:
        move = 0 if self._pair else self._hooks.of_slot(self._move)
        return move, self._hooks.of_slot(self._redraw) if self._laws is None else 0

    def _move(self, k: int) -> None:
        model, x = self._models[k], checked_point(self._slots.parameter(k))
        kernel = model.kernel if self._far is None else guarded(model.kernel, self._far[k])
        moved, info = kernel.step(self._rng, model.state(x))
        self._slots.parameters[k, : len(x)] = checked_point(moved.position)
        self._chain.counts[:], self._chain.law_error[0] = info[:3], info.law_error

    def _redraw(self, k: int) -> None:
        """Draw the parameter of a model that is not current, and find the density of any."""
        law, x = self._models[k].pseudoprior, self._slots.parameter(k)
        if k != self._chain.model[0]:
            x = checked_point(law.sample(self._rng))
            self._slots.parameters[k, : len(x)] = x
        self._chain.log_q[k] = law.log_density(x)
        self._check_density(k)

    def _check_density(self, k: int) -> None:
        log_q = self._chain.log_q[k]
        if not np.isfinite(log_q):
            raise InvalidArgument(
                f"the pseudoprior of model {k} has log density {log_q} at {self._slots.parameter(k)}; it "
                "must be positive wherever the prior is"
            )

    def _explain(self) -> None:
        model = int(self._chain.model[0])
        refuse_start(self._slots.numbers[model, PRIOR], self._slots.parameter(model))
        for k in range(len(self._models)):
            self._check_density(k)
        raise InvalidArgument(
            "the log prior or the control variate gave NaN or +inf; start where they are finite"
        )


def _new_history(count: int, shape: tuple[int, ...]) -> History:
    parameters, weights = np.zeros((count, *shape)), np.zeros((count, shape[0]))
    models, counts = np.zeros(count, np.int64), np.zeros((count, 3), np.int64)
    return History(models, parameters, weights, counts, np.zeros(count), np.zeros(count))


@kernel
def choose(
    pair: Contest,
    every: Contest,
    proposing: Proposing,
    chain: Chain,
    rng: np.random.Generator,
    history: History,
) -> int:
    """Make steps from a model and its parameter; return how many, fewer than asked for after a fault."""
    if not put(every, chain.model[0]) or every.numbers[chain.model[0], PRIOR] == -np.inf:
        return 0
    for t in range(len(chain.gains)):
        before, counts = chain.model[0], history.counts[t]
        pair.law_error[0] = 0.0
        if not move(pair, every, proposing, chain, rng, counts):
            return t
        of_move = max(pair.law_error[0], chain.law_error[0])
        if not draw_model(every, chain, rng, counts):
            return t
        model = chain.model[0]
        chain.weights[model] -= chain.gains[t]
        history.changed[t] = model != before
        history.law_errors[t] = max(of_move, every.law_error[0])
        record(every, chain, history, t)
    return len(chain.gains)


@part
def record(every: Contest, chain: Chain, history: History, t: int) -> None:
    """Note where the chain is (by loops: to compile an assignment of arrays takes seconds)."""
    history.models[t] = chain.model[0]
    for k in range(len(chain.weights)):
        history.log_weights[t, k] = chain.weights[k]
        for i in range(history.parameters.shape[2]):
            history.parameters[t, k, i] = every.rooms[0, k, i]


@part
def move(
    pair: Contest,
    every: Contest,
    proposing: Proposing,
    chain: Chain,
    rng: np.random.Generator,
    counts: Indices,
) -> bool:
    """Move the parameter of the current model; False after a fault."""
    model = chain.model[0]
    if chain.hooks[0] != 0:
        if call(chain.hooks[0], (0, model)) != 0 or not put(every, model):
            return False
        for i in range(3):
            counts[i] += chain.counts[i]
        return True
    copy_slot(every, model, pair, CURRENT)
    if step(pair, proposing, rng, counts) == FAILED:
        return False
    copy_slot(pair, CURRENT, every, model)
    return True


@part
def draw_model(every: Contest, chain: Chain, rng: np.random.Generator, counts: Indices) -> bool:
    """Draw the parameters of the other models, and then the model; False after a fault."""
    exactly = False
    for k in range(len(chain.weights)):
        exactly |= redraw(every, chain, rng, k)
        if not abs(chain.log_q[k]) < np.inf or (k != chain.model[0] and not put(every, k)):
            return False
    ask(every)
    for k in range(len(chain.weights)):
        every.offset[k] += chain.weights[k] - chain.log_q[k]
    if not decide(every, exactly, counts):
        return False
    chain.model[0] = every.tally[LEADER]
    return True


@part
def redraw(every: Contest, chain: Chain, rng: np.random.Generator, k: int) -> bool:
    """Draw the parameter of a model that is not current; put log densities; say whether one is far out."""
    if chain.hooks[1] != 0:
        if call(chain.hooks[1], (0, k)) != 0:
            chain.log_q[k] = np.nan
        return False
    laws, x, z = chain.laws, every.rooms[0, k], chain.z
    if k == chain.model[0]:
        squared = standardise(laws, k, x, z)
    else:
        squared = draw(laws, k, rng, z)
        put_at(laws, k, laws.means[k], z, x)
    chain.log_q[k] = -0.5 * squared - laws.log_volumes[k]
    return bool(squared > laws.limits[k])


def guarded(kernel: Kernel[Any], is_far: IsFar) -> Kernel[Any]:
    """Give a kernel that makes one step, its decisions exact if a point that they compare is far out.

    The points that a kernel compares are those that it asks its `likelihood` for. What a kernel without
    one compares cannot be seen: it decides exactly.
    """
    if "likelihood" not in {item.name for item in fields(kernel)}:  # type: ignore[arg-type]
        return kernel.with_method(Exact())
    watched = Watched(kernel.likelihood, is_far)  # type: ignore[attr-defined]
    method = Guarded(kernel.method, watched)
    return replace(kernel, likelihood=watched, method=method)  # type: ignore[type-var]


class Watched:
    """A likelihood that knows whether a point for which it was asked last is far out."""

    def __init__(self, likelihood: Likelihood, is_far: IsFar) -> None:
        self._likelihood, self._is_far, self.far = likelihood, is_far, False

    def __call__(self, points: Floats) -> Population | ArrayLike:
        self.far = any(self._is_far(x) for x in points)
        return self._likelihood(points)


class Guarded(Method):
    """A method that decides exactly where a watched likelihood was asked for a point far out."""

    has_plan = False

    def __init__(self, method: Method, watched: Watched) -> None:
        self._method, self._watched = method, watched

    @property
    def promise(self) -> Promise:
        return self._method.promise

    def promised(self, population: Population) -> Promise:
        return self._answering.promise if self._watched.far else self._method.promised(population)

    def rule(self, population: Population) -> Any:
        return self._method.rule(population)

    def answer_each(
        self, asked: Asked, population: Population, offsets: Floats, rng: np.random.Generator
    ) -> Results:
        return self._answering.answer_each(asked, population, offsets, rng)

    @property
    def _answering(self) -> Method:
        return Exact() if self._watched.far else self._method
