"""Many steps of `CarlinChib` in one compiled call.

A step of the kernel costs some microseconds once nothing of it is Python: pseudopriors are normal laws, the
current model moves by `Autoregressive` proposals for its own, and the parameters lie on desks from which
two populations read: one for the move (current and proposed), one for the draw of the model.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import call_setter, kernel, part
from gumbelrace.errors import InvalidArgument
from gumbelrace.kernels.checks import try_out_prior
from gumbelrace.kernels.metropolis import Metropolis
from gumbelrace.kernels.normal_laws import Laws, put, standardise
from gumbelrace.kernels.proposals import Autoregressive
from gumbelrace.methods.base import Asked, Method
from gumbelrace.methods.loop import Plan, answer
from gumbelrace.methods.questions import CURRENT, PROPOSED, Question
from gumbelrace.methods.state import AT_ONCE, EVALUATIONS, LEADER, LOOKS
from gumbelrace.population.base import CODE, FINE, Floats
from gumbelrace.population.desk import Desk

Indices = NDArray[np.int64]
MOVE, DRAW = Asked(Question.ACCEPT), Asked(Question.DRAW)


class Bench(NamedTuple):
    """A desk and what a race on it needs."""

    plan: Plan
    entry: tuple[int, int]
    parameters: Floats
    models: Indices


class Chain(NamedTuple):
    """Where a chain is (compiled code changes the arrays), and room for one model's parameter."""

    model: int
    parameters: Floats
    weights: Floats
    z: Floats
    lengths: Floats  # squared, of each model's z


class History(NamedTuple):
    """What the steps gave: an entry for each."""

    models: Indices
    parameters: Floats
    log_weights: Floats
    evaluations: Indices
    rewards: Indices
    looks: Indices
    changed: Floats


def can_compile(models: Sequence[Any], likelihood: Any, method: Method) -> bool:
    """Whether nothing of a step of these candidates needs Python."""
    first = models[0]

    def moves_like_the_first(model: Any) -> bool:
        kernel = model.kernel
        return (
            isinstance(kernel, Metropolis)
            and isinstance(kernel.proposal, Autoregressive)
            and kernel.proposal.law is model.pseudoprior
            and kernel.proposal.correlation == first.kernel.proposal.correlation
            and model.log_prior is kernel.log_prior is first.log_prior
            and kernel.likelihood is likelihood
            and kernel.method == first.kernel.method
        )

    compiled = hasattr(likelihood, "desk") and hasattr(first.log_prior, "py_func")
    races = method.is_a_race and first.kernel.method.is_a_race
    return compiled and races and all(map(moves_like_the_first, models))


class CompiledChoice:
    """Desks of a chain, and all that compiled code needs to move it.

    Parameters
    ----------
    first : Candidate
        The first of the models; the others move like it.
    likelihood : likelihood with a `desk`
        ``likelihood.desk(arms, dimensions, log_prior)`` gives a `Desk` for models with these numbers of
        parameters.
    laws : Laws
        Pseudopriors.
    method : Method
        For the draws of the model: one whose races are those of the engine.
    """

    def __init__(self, first: Any, likelihood: Any, laws: Laws, method: Method) -> None:
        for mean, dimension in zip(laws.means, laws.dimensions, strict=True):
            try_out_prior(first.log_prior, mean[:dimension])
        self._laws, self._method, self._method_of_moves = laws, method, first.kernel.method
        self._correlation: float = first.kernel.proposal.correlation
        self._pair: Desk = likelihood.desk(2, laws.dimensions, first.log_prior)
        self._all: Desk = likelihood.desk(len(laws.dimensions), laws.dimensions, first.log_prior)
        self._all.models[:] = np.arange(len(laws.dimensions))

    def steps(
        self, rng: np.random.Generator, model: int, parameters: Floats, weights: Floats, gains: Floats
    ) -> History:
        """Make as many steps as there are gains, by which the weight of the model visited is lowered."""
        history = _new_history(len(gains), parameters.shape)
        pair, every = self._pair.population, self._all.population
        moves = self._method_of_moves.plan(MOVE, pair, rng)
        draws = self._method.plan(DRAW, every, rng)
        with moves as of_pair, draws as of_all, rng.bit_generator.lock:
            made = choose(
                _bench(self._pair, of_pair),
                _bench(self._all, of_all),
                self._laws,
                self._correlation,
                rng,
                Chain(model, parameters, weights, np.empty(parameters.shape[1]), np.empty(len(weights))),
                gains,
                history,
            )
        if made < len(gains):
            raise InvalidArgument(
                "the log prior or the control variate gave NaN or +inf; start where they are finite"
            )
        return history


def _bench(desk: Desk, plan: Plan) -> Bench:
    return Bench(plan, desk.entry, desk.parameters, desk.models)


def _new_history(count: int, shape: tuple[int, ...]) -> History:
    models, evaluations, rewards, looks = np.zeros((4, count), np.int64)
    parameters, weights = np.zeros((count, *shape)), np.zeros((count, shape[0]))
    return History(models, parameters, weights, evaluations, rewards, looks, np.zeros(count))


@kernel
def choose(
    pair: Bench,
    every: Bench,
    laws: Laws,
    correlation: float,
    rng: np.random.Generator,
    chain: Chain,
    gains: Floats,
    history: History,
) -> int:
    """Make steps from a model and its parameter; return how many, fewer than asked for after a fault."""
    model, parameters = chain.model, chain.parameters
    for t in range(len(gains)):
        read, far = propose_move(pair, laws, rng, correlation, model, chain)
        if not decide(pair, history, t, read, far):
            return t
        accepted = winner_of(pair)
        for i in range(laws.dimensions[model]):
            parameters[model, i] = pair.parameters[accepted, i]
        read, far = propose_models(every, laws, rng, model, chain)
        if not decide(every, history, t, read, far):
            return t
        history.changed[t] = winner_of(every) != model
        model = winner_of(every)
        chain.weights[model] -= gains[t]
        history.models[t] = model
        history.parameters[t] = parameters
        history.log_weights[t] = chain.weights
    return len(gains)


@part
def propose_move(
    pair: Bench,
    laws: Laws,
    rng: np.random.Generator,
    correlation: float,
    model: int,
    chain: Chain,
) -> tuple[int, bool]:
    """Put the current parameter and a proposed one on the desk, and their offsets beside them."""
    d, parameters, z, offset = laws.dimensions[model], chain.parameters, chain.z, pair.plan.state.offset
    before = standardise(laws, model, parameters[model], z)
    rest, after = np.sqrt(1.0 - correlation * correlation), 0.0
    for i in range(d):
        pair.parameters[CURRENT, i] = parameters[model, i]
        z[i] = correlation * z[i] + rest * rng.standard_normal()
        after += z[i] * z[i]
    put(laws, model, z, pair.parameters[PROPOSED])
    pair.models[CURRENT] = pair.models[PROPOSED] = model
    read = set_offsets(pair)
    offset[CURRENT] += 0.5 * before
    offset[PROPOSED] += 0.5 * after
    return read, max(before, after) > laws.limits[model]


@part
def propose_models(
    every: Bench,
    laws: Laws,
    rng: np.random.Generator,
    model: int,
    chain: Chain,
) -> tuple[int, bool]:
    """Draw the parameters of the other models, put all on the desk, and their offsets beside them."""
    parameters, z, lengths, far = chain.parameters, chain.z, chain.lengths, False
    for k in range(len(laws.dimensions)):
        if k == model:
            lengths[k] = standardise(laws, k, parameters[k], z)
        else:
            lengths[k] = 0.0
            for i in range(laws.dimensions[k]):
                z[i] = rng.standard_normal()
                lengths[k] += z[i] * z[i]
            put(laws, k, z, parameters[k])
        far |= lengths[k] > laws.limits[k]
        for i in range(laws.dimensions[k]):
            every.parameters[k, i] = parameters[k, i]
    read = set_offsets(every)
    for k in range(len(laws.dimensions)):
        every.plan.state.offset[k] += 0.5 * lengths[k] + laws.log_volumes[k] + chain.weights[k]
    return read, far


@part
def set_offsets(bench: Bench) -> int:
    """Put what is known of the arms on the desk into their offsets; return the rewards read for it."""
    source, offset = bench.plan.source, bench.plan.state.offset
    read: int = call_setter(
        bench.entry[0],
        bench.entry[1],
        offset.ctypes.data,
        source.low.ctypes.data,
        source.high.ctypes.data,
    )
    return read


@part
def decide(bench: Bench, history: History, t: int, read: int, exactly: bool) -> bool:
    """Race, or read everything, and count what it took; False after a fault."""
    plan = bench.plan
    for offset in plan.state.offset:
        if not offset < np.inf:
            return False
    plan.state.tally[AT_ONCE] = exactly
    answer(plan)
    history.evaluations[t] += plan.state.tally[EVALUATIONS] + read
    history.rewards[t] += plan.sizes[0] * len(plan.state.offset) + read
    history.looks[t] += plan.state.tally[LOOKS]
    return bool(plan.source.fault[CODE] == FINE)


@part
def winner_of(bench: Bench) -> int:
    """Give the winner of the last race."""
    return int(bench.plan.state.tally[LEADER])
