"""Many steps of `CarlinChib` in one compiled call.

A step of the kernel costs some microseconds once nothing of it is Python: pseudopriors are normal laws, the
current model moves by `Autoregressive` proposals for its own, and the parameters lie on desks from which
two populations read: one for the move (current and proposed), one for the draw of the model.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument
from gumbelrace.jit import Bits, bits_of, call_setter, kernel, maker, part
from gumbelrace.kernels.checks import try_out_prior
from gumbelrace.kernels.compiled_walk import CURRENT, PROPOSED
from gumbelrace.kernels.metropolis import Metropolis
from gumbelrace.kernels.normal_laws import Laws, put, standardise
from gumbelrace.kernels.proposals import Autoregressive
from gumbelrace.population.base import CODE, FINE, Floats, Source
from gumbelrace.population.desk import Desk
from gumbelrace.shuffle import Stream
from gumbelrace.solvers.base import Solver
from gumbelrace.solvers.engine import Gear, finish, new_gear, race, start
from gumbelrace.solvers.field import EVALUATIONS, LEADER, LOOKS
from gumbelrace.solvers.reading import Sample, new_sample

Indices = NDArray[np.int64]


class Bench(NamedTuple):
    """A desk and what a race on it needs."""

    rule: Any
    source: Source
    stream: Stream
    size: int
    entry: tuple[int, int]
    parameters: Floats
    models: Indices
    offset: Floats


class History(NamedTuple):
    """What the steps gave: an entry for each."""

    models: Indices
    parameters: Floats
    log_weights: Floats
    evaluations: Indices
    rewards: Indices
    looks: Indices
    changed: Floats


def can_compile(models: Sequence[Any], likelihood: Any, solver: Solver) -> bool:
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
            and kernel.solver == solver
        )

    compiled = hasattr(likelihood, "desk") and hasattr(first.log_prior, "py_func")
    return compiled and solver.is_a_race and all(map(moves_like_the_first, models))


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
    solver : Solver
        One whose races are those of the engine.
    """

    def __init__(self, first: Any, likelihood: Any, laws: Laws, solver: Solver) -> None:
        for mean, dimension in zip(laws.means, laws.dimensions, strict=True):
            try_out_prior(first.log_prior, mean[:dimension])
        self._laws, self._solver = laws, solver
        self._correlation: float = first.kernel.proposal.correlation
        self._pair: Desk = likelihood.desk(2, laws.dimensions, first.log_prior)
        self._all: Desk = likelihood.desk(len(laws.dimensions), laws.dimensions, first.log_prior)
        self._all.models[:] = np.arange(len(laws.dimensions))

    def steps(
        self, rng: np.random.Generator, model: int, parameters: Floats, weights: Floats, gains: Floats
    ) -> History:
        """Make as many steps as there are gains, by which the weight of the model visited is lowered."""
        history, solver = _new_history(len(gains), parameters.shape), self._solver
        pair, every = self._pair.population, self._all.population
        sources = pair.source(solver.needs_range), every.source(solver.needs_range)
        streams = pair.rows.stream(), every.rows.stream()
        # Sources raise what went wrong as they close; streams must hear of it, not to be lent again.
        with streams[0] as first, streams[1] as second, sources[0] as of_pair, sources[1] as of_all:
            benches = _bench(self._pair, solver, of_pair, first), _bench(self._all, solver, of_all, second)
            with rng.bit_generator.lock:
                made = choose(
                    *benches,
                    self._laws,
                    self._correlation,
                    bits_of(rng),
                    rng,
                    model,
                    parameters,
                    weights,
                    gains,
                    history,
                )
        if made < len(gains):
            raise InvalidArgument(
                "the log prior or the control variate gave NaN or +inf; start where they are finite"
            )
        return history


def _bench(desk: Desk, solver: Solver, source: Source, stream: Stream) -> Bench:
    population, offset = desk.population, np.empty(desk.population.arms)
    rule = solver.rule(population)
    return Bench(rule, source, stream, population.size, desk.entry, desk.parameters, desk.models, offset)


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
    bits: Bits,
    rng: np.random.Generator,
    model: int,
    parameters: Floats,
    weights: Floats,
    gains: Floats,
    history: History,
) -> int:
    """Make steps from a model and its parameter; return how many, fewer than asked for after a fault."""
    gears = new_gear(pair.rule, pair.source), new_gear(every.rule, every.source)
    samples = new_sample(pair.source), new_sample(every.source)
    z, lengths = np.empty(laws.means.shape[1]), np.empty(len(laws.dimensions))
    few, many = samples[0], samples[1]
    for t in range(len(gains)):
        read, far = propose_move(pair, laws, rng, correlation, model, parameters, z)
        if not is_fine(pair):
            return t
        few = decide(pair, gears[0], bits, few, far)
        if pair.source.fault[CODE] != FINE:
            return t
        accepted = gears[0].field.tally[LEADER]
        tell(history, t, gears[0], pair, read)
        for i in range(laws.dimensions[model]):
            parameters[model, i] = pair.parameters[accepted, i]
        read, far = propose_models(every, laws, rng, model, parameters, weights, z, lengths)
        if not is_fine(every):
            return t
        many = decide(every, gears[1], bits, many, far)
        if every.source.fault[CODE] != FINE:
            return t
        tell(history, t, gears[1], every, read)
        chosen = gears[1].field.tally[LEADER]
        history.changed[t] = chosen != model
        model = chosen
        weights[model] -= gains[t]
        history.models[t] = model
        history.parameters[t] = parameters
        history.log_weights[t] = weights
    return len(gains)


@part
def propose_move(
    pair: Bench,
    laws: Laws,
    rng: np.random.Generator,
    correlation: float,
    model: int,
    parameters: Floats,
    z: Floats,
) -> tuple[int, bool]:
    """Put the current parameter and a proposed one on the desk, and their offsets beside them."""
    d = laws.dimensions[model]
    before = standardise(laws, model, parameters[model], z)
    rest, after = np.sqrt(1.0 - correlation * correlation), 0.0
    for i in range(d):
        pair.parameters[CURRENT, i] = parameters[model, i]
        z[i] = correlation * z[i] + rest * rng.standard_normal()
        after += z[i] * z[i]
    put(laws, model, z, pair.parameters[PROPOSED])
    pair.models[CURRENT] = pair.models[PROPOSED] = model
    read = set_offsets(pair)
    pair.offset[CURRENT] += 0.5 * before - rng.standard_exponential()  # log u
    pair.offset[PROPOSED] += 0.5 * after
    return read, max(before, after) > laws.limits[model]


@part
def propose_models(
    every: Bench,
    laws: Laws,
    rng: np.random.Generator,
    model: int,
    parameters: Floats,
    weights: Floats,
    z: Floats,
    lengths: Floats,
) -> tuple[int, bool]:
    """Draw the parameters of the other models, put all on the desk, and their offsets beside them."""
    far = False
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
        gumbel = -np.log(rng.standard_exponential())
        every.offset[k] += 0.5 * lengths[k] + laws.log_volumes[k] + weights[k] + gumbel
    return read, far


@part
def set_offsets(bench: Bench) -> int:
    """Put what is known of the arms on the desk into their offsets; return the rewards read for it."""
    low, high = bench.source.low, bench.source.high
    read: int = call_setter(
        bench.entry[0], bench.entry[1], bench.offset.ctypes.data, low.ctypes.data, high.ctypes.data
    )
    return read


@part
def is_fine(bench: Bench) -> bool:
    """Whether no offset is NaN or +inf."""
    bad = 0
    for offset in bench.offset:
        bad += not offset < np.inf
    return bad == 0


@maker
def decide(bench: Bench, gear: Gear, bits: Bits, sample: Sample, exactly: bool) -> Sample:
    """Race, or read everything; the gear's tally names the winner. Return the sample: it may have grown."""
    if not exactly:
        return race(bench.rule, gear, bench.source, bench.stream, bits, bench.size, bench.offset, sample)
    start(bench.rule, gear, bench.source, bench.size, bench.offset, sample)
    finish(gear, bench.source, bench.stream, bench.size, 0)
    return sample


@part
def tell(history: History, t: int, gear: Gear, bench: Bench, read: int) -> None:
    """Count what a decision took."""
    history.evaluations[t] += gear.field.tally[EVALUATIONS] + read
    history.rewards[t] += bench.size * len(bench.offset) + read
    history.looks[t] += gear.field.tally[LOOKS]
