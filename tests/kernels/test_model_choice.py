"""Model choice has the exact posterior probabilities, and adapted weights the exact evidence.

The models: normal data of mean θ z_k with one covariate z_k each, and θ ~ N(0, s_k²): posterior and
marginal likelihood are known in closed form. False-alarm rate of each statistical test: 1e-4 over seeds.
"""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from scipy.special import ndtr, stdtrit
from tests.kernels.laws import FALSE_ALARM, after, chain, tail

import gumbelrace as gr
from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.methods.exact import Exact

CELLS = 5
SPREADS = np.array([0.5, 3.0, 10.0])
P = np.array([0.5, 0.3, 0.2])  # posterior probabilities, by the choice of prior weights


def log_normal(x, mean, spread):
    return -0.5 * ((x - mean) / spread) ** 2 - np.log(spread * np.sqrt(2.0 * np.pi))


@dataclass(frozen=True)
class Conjugate(gr.Kernel):
    """Draws θ from its posterior."""

    mean: float
    spread: float
    method: gr.Method = field(default_factory=Exact)

    def step(self, rng, state):
        return gr.kernels.Position(rng.normal([self.mean], self.spread)), gr.kernels.Info(0, 0, 0, 1.0)


class Problem:
    def __init__(self, size=100, seed=1, strength=0.35):
        rng = np.random.default_rng(seed)
        self.z = rng.normal(1.0, 1.0, (size, 3))
        self.y = rng.normal(strength * self.z[:, 0], 1.0)
        precision = (self.z**2).sum(axis=0) + SPREADS**-2
        self.spread = precision**-0.5
        self.mean = self.z.T @ self.y / precision
        # Bayes' theorem at θ = 0, the same likelihood for all models
        self.log_evidence = log_normal(0.0, 0.0, SPREADS) - log_normal(0.0, self.mean, self.spread)
        self.log_weights = np.log(P) - self.log_evidence

    def likelihood(self, parameters):
        return gr.table(-0.5 * (self.y[:, None] - self.z * np.ravel(parameters)) ** 2)

    def likelihood_of(self, k):
        return lambda points: gr.table(-0.5 * (self.y[:, None] - self.z[:, k, None] * points[:, 0]) ** 2)

    def log_prior(self, k):
        return lambda x: log_normal(x[0], 0.0, SPREADS[k])

    def candidate(self, k, conjugate=False):
        walk = gr.kernels.RandomWalk(2.0 * self.spread[k])
        kernel = gr.Metropolis(self.likelihood_of(k), walk, log_prior=self.log_prior(k), method=gr.Exact())
        pseudoprior = gr.kernels.NormalPseudoprior([self.mean[k] + 0.02], [[2.0 * self.spread[k] ** 2]])
        exact = Conjugate(self.mean[k], self.spread[k])
        return gr.kernels.Candidate(exact if conjugate else kernel, pseudoprior, self.log_prior(k))

    def kernel(self, conjugate=False, **options):
        models = [self.candidate(k, conjugate) for k in range(3)]
        return gr.CarlinChib(models, self.likelihood, **{"method": gr.Exact(), **options})


@dataclass(frozen=True)
class Forgotten:
    """A pseudoprior whose density is left out, together with the prior's, as the paper prints it."""

    candidate: gr.kernels.Candidate

    def sample(self, rng):
        return self.candidate.pseudoprior.sample(rng)

    def log_density(self, x):
        return self.candidate.log_prior(x)


def forgetful(kernel):
    return replace(kernel, models=[replace(m, pseudoprior=Forgotten(m)) for m in kernel.models])


def invariance(kernel, problem, rng, replicates=600, steps=2, slack=0.0):
    """Tail probability of (model, quantile cell of its parameter) after steps from the exact posterior."""
    cells = []
    for model in rng.choice(3, size=replicates, p=P):
        start = kernel.start(int(model), rng=rng)
        theta = rng.normal([problem.mean[model]], problem.spread[model])
        parameters = tuple(theta if k == model else x for k, x in enumerate(start.parameters))
        start = start._replace(parameters=parameters, log_weights=problem.log_weights)
        end = after(kernel, start, steps, rng)
        k, x = end.model, end.parameters[end.model][0]
        cells.append(k * CELLS + int(ndtr((x - problem.mean[k]) / problem.spread[k]) * CELLS))
    return tail(np.array(cells), np.repeat(P / CELLS, CELLS), slack)


def test_leaves_the_target_invariant():
    problem = Problem()
    assert invariance(problem.kernel(), problem, np.random.default_rng(0)) > FALSE_ALARM


@dataclass(frozen=True)
class Written:
    """A pseudoprior as a user would write it."""

    law: gr.kernels.NormalPseudoprior

    def sample(self, rng):
        return self.law.sample(rng)

    def log_density(self, x):
        return self.law.log_density(x)


def written(kernel):
    return replace(kernel, models=[replace(m, pseudoprior=Written(m.pseudoprior)) for m in kernel.models])


def test_a_pseudoprior_of_the_users_own_leaves_it_invariant_too():
    problem = Problem()
    assert invariance(written(problem.kernel()), problem, np.random.default_rng(13)) > FALSE_ALARM


def test_left_out_pseudoprior_is_noticed():
    """Negative control: the conditional of the model as the paper prints it."""
    problem = Problem()
    assert invariance(forgetful(problem.kernel()), problem, np.random.default_rng(0)) < FALSE_ALARM


@pytest.mark.parametrize("method", [gr.Race(gr.methods.Normal(), delta=1e-3), gr.Betting(delta=1e-3)])
def test_raced_decisions_stay_within_delta(method):
    """2 steps of 2 decisions of δ = 0.001 move the law by at most 0.004 (Race: if means are normal)."""
    problem = Problem(size=300, seed=3)
    kernel = problem.kernel().with_method(method)
    assert invariance(kernel, problem, np.random.default_rng(1), slack=4e-3) > FALSE_ALARM


def test_what_moves_say_of_their_law_is_kept():
    """The kernels of the models make their steps in Python, and the draw of the model is exact."""
    problem = Problem(size=4000, strength=0.05)
    kernel = problem.kernel()
    moves = [
        replace(m.kernel, proposal=gr.kernels.RandomWalk(0.01), method=gr.Penalty()) for m in kernel.models
    ]
    models = [replace(m, kernel=move) for m, move in zip(kernel.models, moves, strict=True)]
    infos = [info for _, info in chain(replace(kernel, models=models), kernel.start(rng=2), 20, seed=3)]
    assert 0.0 < max(info.law_error for info in infos) < 0.01


@pytest.mark.parametrize("right", [True, False])
def test_adapted_weights_estimate_the_evidence(right):
    """8 chains of 600 steps: a t interval of their mean, and the last gain for the bias of adaptation.

    The evidences differ by some e⁴. Negative control: without the pseudopriors the estimate is wrong.
    """
    problem, steps = Problem(strength=0.6, seed=4), 600
    kernel = problem.kernel(conjugate=True, adapt_for=steps)
    kernel, rng = kernel if right else forgetful(kernel), np.random.default_rng(2)
    found = np.array([after(kernel, kernel.start(rng=rng), steps, rng).log_evidence for _ in range(8)])
    off = np.abs(found.mean(axis=0) - (problem.log_evidence - problem.log_evidence[0]))[1:]
    allowed = -stdtrit(7, FALSE_ALARM / 4) * found.std(axis=0, ddof=1)[1:] / np.sqrt(8)
    assert np.ptp(problem.log_evidence) > 3.0
    assert (off < allowed + kernel.gain(steps)).all() == right


def test_weights_are_fixed_after_adaptation():
    kernel = Problem().kernel(conjugate=True, adapt_for=3, gain=lambda t: 0.5)
    start = kernel.start(rng=np.random.default_rng(3))
    states = [state for state, _ in chain(kernel, start, 6, seed=3)]
    assert [-state.log_weights.sum() for state in states] == [0.5, 1.0, 1.5, 1.5, 1.5, 1.5]
    assert states[-1].iteration == 6
    assert not start.log_weights.any()
    assert kernel.tuning == {"log_weights", "iteration"}


def test_weights_are_the_prior_of_the_models():
    """A model of weight 0 is never visited."""
    kernel = Problem().kernel(conjugate=True)
    start = kernel.start(rng=np.random.default_rng(4))._replace(log_weights=np.array([0.0, 0.0, -np.inf]))
    assert 2 not in {state.model for state, _ in chain(kernel, start, 50, seed=4)}


def test_langevin_kernels_serve_as_well():
    problem = Problem()
    k = 0
    langevin = gr.Langevin(
        problem.likelihood_of(k),
        lambda index, x: problem.z[index, k] @ (problem.y[index, None] - problem.z[index, k, None] * x),
        size=100,
        batch=50,
        scale=problem.spread[k],
        log_prior=problem.log_prior(k),
    )
    candidate = replace(
        problem.candidate(k), kernel=langevin, state=lambda x: gr.kernels.LangevinState(x, log_step=-0.5)
    )
    kernel = gr.CarlinChib([candidate], lambda parameters: problem.likelihood_of(k)(np.array(parameters)))
    state, info = kernel.step(np.random.default_rng(5), kernel.start(rng=np.random.default_rng(5)))
    assert state.model == 0
    assert info.rewards == 100 + 2 * 50 + 200


def test_equal_seeds_give_equal_chains():
    kernel = Problem().kernel(adapt_for=5).with_method(gr.Betting())
    start = kernel.start(rng=np.random.default_rng(6))
    for (state, info), (other, same) in zip(
        *(chain(kernel, start, 10, seed=6) for _ in range(2)), strict=True
    ):
        assert (state.model, state.parameters, info) == (other.model, other.parameters, same)
        np.testing.assert_array_equal(state.log_weights, other.log_weights)


def test_audit_checks_the_model_and_its_kernel():
    kernel = Problem().kernel().with_method(gr.Betting())
    rng = np.random.default_rng(7)
    assert kernel.audit(rng, kernel.start(rng=rng))[:2] == (0, 2)


def test_info_adds_up():
    """300 rewards for the draw of the model, 200 for the current model's own move."""
    kernel, rng = Problem().kernel(), np.random.default_rng(8)
    _, info = kernel.step(rng, kernel.start(rng=rng))
    assert info.evaluations == info.rewards == 500


def test_normal_pseudoprior_is_what_it_says():
    """Its density integrates to one, and 4,000 draws have its moments within 4.5 standard errors."""
    mean, covariance = np.array([1.0, -1.0]), np.array([[1.0, 0.6], [0.6, 0.5]])
    pseudoprior, rng = gr.kernels.NormalPseudoprior(mean, covariance), np.random.default_rng(9)
    draws = np.array([pseudoprior.sample(rng) for _ in range(4000)])
    assert np.abs(draws.mean(axis=0) - mean).max() < 4.5 / np.sqrt(4000)
    assert np.abs(np.cov(draws.T) - covariance).max() < 4.5 * np.sqrt(2.0 / 4000)
    grid = np.linspace(-7.0, 7.0, 141)
    density = [np.exp(pseudoprior.log_density(mean + np.array([a, b]))) for a in grid for b in grid]
    assert np.sum(density) * 0.1**2 == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: gr.kernels.NormalPseudoprior([0.0], [[-1.0]]), InvalidArgument, "positive definite"),
        (lambda: gr.kernels.NormalPseudoprior(0.0, 1.0), ShapeMismatch, "mean has shape"),
        (lambda: gr.CarlinChib([], None), InvalidArgument, "number of models"),
        (lambda: Problem().kernel(adapt_for=-1), InvalidArgument, "adapt_for"),
    ],
)
def test_bad_options_are_errors(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"model": 3}, InvalidArgument, "current model is 3"),
        ({"log_weights": np.zeros(2)}, ShapeMismatch, "each of 3 models"),
        ({"parameters": ()}, ShapeMismatch, "each of 3 models"),
    ],
)
def test_bad_states_are_errors(change, error, message):
    kernel, rng = Problem().kernel(), np.random.default_rng(10)
    with pytest.raises(error, match=message):
        kernel.step(rng, kernel.start(rng=rng)._replace(**change))


class Stop(Exception):
    """What a user's part raises."""


def stop(*_):
    raise Stop("enough")


@pytest.mark.parametrize("part", ["sample", "log_density", "log_prior", "likelihood", "kernel"])
def test_exceptions_of_python_arrive_unchanged(part):
    kernel, rng = written(Problem().kernel()), np.random.default_rng(12)
    start = kernel.start(rng=rng)
    if part == "likelihood":
        kernel = replace(kernel, likelihood=stop)
    elif part == "kernel":
        moves = [replace(m.kernel, log_prior=stop) for m in kernel.models]
        kernel = replace(
            kernel, models=[replace(m, kernel=k) for m, k in zip(kernel.models, moves, strict=True)]
        )
    elif part == "log_prior":
        kernel = replace(kernel, models=[replace(m, log_prior=stop) for m in kernel.models])
    else:
        for model in kernel.models:
            object.__setattr__(model.pseudoprior, part, stop)
    with pytest.raises(Stop, match="enough"):
        kernel.step(rng, start)
    Problem().kernel().step(rng, start)  # the generator's lock is free


def test_pseudoprior_must_cover_the_prior():
    kernel, rng = Problem().kernel(), np.random.default_rng(11)
    narrow = gr.kernels.NormalPseudoprior([0.0], [[1e-320]])
    models = [replace(model, pseudoprior=narrow) for model in kernel.models]
    with pytest.raises(InvalidArgument, match="wherever the prior is"), np.errstate(all="ignore"):
        after(replace(kernel, models=models), kernel.start(rng=rng), 5, rng)
