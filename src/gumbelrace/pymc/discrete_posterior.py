"""Posteriors with discrete variables of few states: each state has parameters, a mode and a law of its own.

Where the other parameters are likely may depend on the state, so that a state drawn given them would hardly
ever change. Each state has parameters of its own, therefore, those of the others drawn from the normal laws
around their modes, and the state is a choice between models (`CarlinChib`): each read as what the
expansion around its own mode leaves of a few rows.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from gumbelrace.auditing import AuditedLaw
from gumbelrace.chain.run import run
from gumbelrace.chain.trace import Trace
from gumbelrace.core.random import Rng, as_generator
from gumbelrace.core.rows import Rows
from gumbelrace.errors import InvalidArgument, NoMode, optional
from gumbelrace.kernels.base import Checked
from gumbelrace.kernels.metropolis import Autoregressive, Metropolis, Mixture
from gumbelrace.kernels.model_choice import Candidate, CarlinChib, ModelChoice
from gumbelrace.kernels.model_walk import DRAW
from gumbelrace.kernels.normal_laws import NormalPseudoprior
from gumbelrace.kernels.workspace import flat
from gumbelrace.laplace.convergence import warn_of_fit
from gumbelrace.laplace.model import Floats, dense
from gumbelrace.laplace.posterior import OFTEN, Posterior, made_ready
from gumbelrace.laplace.progress import Progress
from gumbelrace.methods.base import Method
from gumbelrace.methods.state import Question
from gumbelrace.population.base import checked_count
from gumbelrace.pymc.at_start import check_at_start
from gumbelrace.pymc.checks import check_by_rows, check_model
from gumbelrace.pymc.discrete import Labels, example_points, joint_graph, joint_states
from gumbelrace.pymc.discrete_likelihood import StateLikelihood
from gumbelrace.pymc.functions import Functions, functions_of_rows, log_prior_of, prior_of
from gumbelrace.pymc.graph import Leaf, RowGraph, graph_of, rebuilt, start_of
from gumbelrace.pymc.model import PymcModel, check_derivatives, compile_all

# States whose log probability is lower than the best one's by that, by their normal laws, do not matter.
NEGLIGIBLE = 10.0
# How far from the start points are looked for at which a state is possible, and how many.
AROUND, TRIES = (0.1, 1.0, 10.0), 32
# Of a move with where it starts, where proposals of normal laws are accepted often.
CORRELATION = 0.5


class StateChoice(CarlinChib):
    """Model choice whose draws of the model are checked, also where they are right in law only."""

    def audit(self, rng: np.random.Generator, state: ModelChoice) -> Checked[ModelChoice]:
        """Compare the law of the draw from a state with the exact one."""
        if self.method.finds_winners:
            return super().audit(rng, state)
        laws = [model.pseudoprior for model in self.models]
        log_q = [law.log_density(x) for law, x in zip(laws, state.parameters, strict=True)]
        asked = AuditedLaw(self.method, rng, no_way_back)
        population: Any = self.likelihood(list(state.parameters))
        asked.answer_each(DRAW, population, (state.log_weights - log_q)[None], rng)
        return Checked(0, 0, state, state, 0, asked.promise, law=asked.compared)


def no_way_back() -> Any:
    """Draws have none."""
    raise NotImplementedError


@dataclass(frozen=True)
class StatePosterior:
    """The posterior of each state, and the kernel that draws states and parameters."""

    graph: RowGraph  # of joint vectors
    labels: Labels
    fits: Sequence[Posterior]
    kernel: StateChoice

    @property
    def forecast(self) -> str:
        """What is expected of moves, in each state."""
        named = zip(states_named(self.graph, self.labels), self.fits, strict=True)
        return "; ".join(f"with {name}: {fit.forecast}" for name, fit in named)

    def sample(
        self, draws: int, *, chains: int, warmup: int, rng: Rng, **options: Any
    ) -> Trace[ModelChoice]:
        """Draw from the posterior; see `Posterior.sample`."""
        generator = as_generator(rng)
        for fit, log_evidence in zip(self.fits, self.log_evidences, strict=True):
            if log_evidence > self.log_evidences.max() - NEGLIGIBLE:
                warn_of_fit(fit.forecast)
        starts = [self.start(generator) for _ in range(checked_count(chains, "chains"))]
        return run(self.kernel, starts, steps=draws, warmup=warmup, chains=chains, rng=generator, **options)

    def start(self, rng: np.random.Generator) -> ModelChoice:
        """Draw a state to start from, by how probable the normal laws say that it is, or likelier ones."""
        chances = np.exp(np.maximum(self.log_evidences - self.log_evidences.max(), -NEGLIGIBLE))
        return self.kernel.start(int(rng.choice(len(chances), p=chances / chances.sum())), rng=rng)

    @functools.cached_property
    def log_evidences(self) -> Floats:
        """Log probability of each state, up to a constant, by its normal law."""
        likelihood: Any = self.kernel.likelihood
        joint = np.concatenate([likelihood.centres, self.labels], axis=1)
        heights = [
            likelihood.functions.log_prior(point) + sums.value
            for point, sums in zip(joint, likelihood.sums, strict=True)
        ]
        return np.array(heights) + [fit.law.log_volume for fit in self.fits]

    def joint(self, trace: Trace[ModelChoice]) -> Floats:
        """Give draws as joint vectors, of shape (chains, draws, d)."""
        models = trace["model"]
        every = np.stack([trace[f"parameters.{k}"] for k in range(len(self.labels))])
        drawn = np.take_along_axis(every, models[None, ..., None], axis=0)[0]
        return np.concatenate([drawn, self.labels[models].astype(np.float64)], axis=-1)


def states_made_ready(
    model: Any, said: Progress, method: Method | None, initvals: Mapping[str, Any] | None = None
) -> StatePosterior:
    """Compile a model, find the mode of each state, and look how well normal laws fit."""
    with said("compiling"):
        joint, labels, models, log_prior = models_of(model, initvals)
    moves, draws = method_for(method, Question.ACCEPT), method_for(method, Question.DRAW)
    named = zip(models, states_named(joint, labels), strict=True)
    fits = [fitted(one, name, moves, said) for one, name in named]
    found = [one.factors(fit.mode) for one, fit in zip(models, fits, strict=True)]
    sums = [one._replace(hessian=dense(one.hessian)) for one in found]
    of_joint = models[0].functions._replace(log_prior=log_prior)
    rows, centres = Rows(joint.size, weights=mean_weights(fits)), np.stack([fit.mode for fit in fits])
    likelihood = StateLikelihood(of_joint, models[0].data[1:], rows, labels, centres, sums)
    kernels = [fit.kernel for fit in fits]
    if all(moves_often(fit) for fit in fits):
        kernels = [compiled_kernel(likelihood, fit.law, moves) for fit in fits]
    # The prior is known by the likelihood.
    candidates = [Candidate(one, fit.law, flat) for one, fit in zip(kernels, fits, strict=True)]
    return StatePosterior(joint, labels, fits, StateChoice(candidates, likelihood, method=draws))


def moves_often(fit: Posterior) -> bool:
    """Whether proposals of the normal law itself will do for a state."""
    proposal = getattr(fit.kernel, "proposal", None)
    return isinstance(proposal, Mixture) and proposal.freedom == np.inf and fit.forecast.acceptance > OFTEN


def compiled_kernel(likelihood: StateLikelihood, law: NormalPseudoprior, method: Any) -> Metropolis:
    """Give a kernel that moves the parameters of a state without Python."""
    return Metropolis(likelihood, Autoregressive(law, CORRELATION), log_prior=flat, method=method)  # type: ignore[arg-type]


def method_for(method: Method | None, question: Question) -> Any:
    """Give a method to a question that it answers, and leave others to the default one."""
    return method if method is None or question in method.answers else None


def models_of(
    model: Any, initvals: Mapping[str, Any] | None = None
) -> tuple[RowGraph, Labels, list[PymcModel], Any]:
    """Give the graph of joint vectors, the possible states, the posterior of each, and the log prior."""
    check_model(model)
    check_at_start(model, initvals)
    plain, start = graph_of(model), start_of(model, initvals)
    joint = joint_graph(model, plain)
    check_by_rows(joint, *example_points(model, joint))
    every, log_prior = joint_states(model), log_prior_of(joint)
    looked = [(state, possible_start(log_prior, start, state)) for state in every]
    found = [(state, begun) for state, begun in looked if begun is not None]
    possible = [state for state, _ in found]
    if not possible:
        raise InvalidArgument("no state of the discrete variables is possible near PyMC's initial point")
    graph = labelled(plain, joint)
    shared, at_states = functions_of_rows(graph), [at_state(graph, state) for state in possible]
    priors = [
        (prior_at(log_prior, state), prior_of(one)) for state, one in zip(possible, at_states, strict=True)
    ]
    models = [
        PymcModel(one, Functions(*shared, *prior), begun)
        for one, prior, (_, begun) in zip(at_states, priors, found, strict=True)
    ]
    compile_all(models[0])
    check_derivatives(models[0])
    return joint, np.stack(possible), models, log_prior


def possible_start(log_prior: Any, start: Floats, state: Labels) -> Floats | None:
    """Give a point, the start or one around it, at which a state is possible; None if none is found."""
    rng = np.random.default_rng(0)
    point: Floats
    for scale in (0.0, *np.repeat(AROUND, TRIES)):
        point = start + scale * rng.standard_normal(len(start))
        if log_prior(np.concatenate([point, state])) > -np.inf:
            return point
    return None


def labelled(plain: RowGraph, joint: RowGraph) -> RowGraph:
    """Give the graph of continuous parameters, with the labels of discrete ones as its first data."""
    labels = optional("pytensor.tensor", "pymc").lvector("labels")
    discrete = joint._replace(
        values=joint.values[len(plain.values) :], shapes=joint.shapes[len(plain.shapes) :]
    )
    prior, terms = rebuilt([plain.prior, plain.terms], discrete.pieces(labels))
    leaf = Leaf(labels, 0, labels, np.zeros(discrete.dimension, np.int64))
    return plain._replace(prior=prior, terms=terms, leaves=[leaf, *plain.leaves])


def at_state(graph: RowGraph, state: Labels) -> RowGraph:
    """Give the graph of a state, of one that has the labels as its first data."""
    labels, *others = graph.leaves
    prior = rebuilt([graph.prior], {labels.input: optional("pytensor.tensor", "pymc").constant(state)})[0]
    return graph._replace(prior=prior, leaves=[labels._replace(array=state), *others])


def prior_at(log_prior: Any, state: Labels) -> Any:
    """Compile the log prior of the continuous parameters and a state."""
    labels, count = state.astype(np.float64), len(state)

    @numba.njit
    def of_state(theta):  # type: ignore[no-untyped-def]
        joint, d = np.empty(len(theta) + count), len(theta)
        for i in range(d):
            joint[i] = theta[i]
        for i in range(count):
            joint[d + i] = labels[i]
        return log_prior(joint)

    of_state.called = log_prior.called  # to be kept as long as it may be called
    return of_state


def states_named(joint: RowGraph, labels: Labels) -> list[str]:
    """Say what discrete variables are in each state."""
    names = joint.names[-labels.shape[1] :]
    return [
        ", ".join(f"{name} = {value}" for name, value in zip(names, state, strict=True)) for state in labels
    ]


def fitted(model: PymcModel, name: str, method: Method | None, said: Progress) -> Posterior:
    """Make the posterior of a state ready; what goes wrong is said of that state."""
    said.tell(f"with {name}:")
    try:
        return made_ready(model, model.functions.log_prior, method, said)
    except NoMode as error:
        raise NoMode(f"with {name}: {error}") from error


def mean_weights(fits: Sequence[Posterior]) -> Floats | None:
    """Give weights of rows that suit all states, by the pilots of those whose parameters move at once."""
    likelihoods: list[Any] = [fit.kernel.likelihood for fit in fits if isinstance(fit.kernel, Metropolis)]
    weights = [one.rows.weights for one in likelihoods if one.rows.weights is not None]
    return np.mean(weights, axis=0) if weights else None
