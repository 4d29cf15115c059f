"""Regressions with one, two and three covariates: model choice with slots, known in closed form."""

import numba
import numpy as np
from scipy.special import ndtr
from tests.kernels.laws import after, tail

import gumbelrace as gr
from gumbelrace.core.rows import Rows
from gumbelrace.population.compiled import Compiled
from gumbelrace.population.likelihood import new_slots

CELLS, SPREAD = 5, 2.0
P = np.array([0.5, 0.3, 0.2])  # posterior probabilities, by the choice of prior weights


@numba.njit
def log_prior(x):
    return -0.5 * np.sum((x / SPREAD) ** 2) - len(x) * np.log(SPREAD * np.sqrt(2.0 * np.pi))


@numba.njit
def log_factor(n, arm, xs, models, y, z):
    mean = 0.0
    for i in range(models[arm] + 1):
        mean += xs[arm, i] * z[n, i]
    return -0.5 * (y[n] - mean) ** 2


class Nested:
    """Normal data of mean θ·z, z the first k + 1 covariates in model k, and θ ~ N(0, SPREAD²)."""

    def __init__(self, size=200, seed=1):
        rng = np.random.default_rng(seed)
        self.z = rng.normal(1.0, 1.0, (size, 3))
        self.y = rng.normal(0.2 * self.z[:, 0], 1.0)
        self.means, self.covariances, evidence = [], [], []
        for k in range(3):
            z = self.z[:, : k + 1]
            covariance = np.linalg.inv(z.T @ z + np.eye(k + 1) / SPREAD**2)
            mean = covariance @ z.T @ self.y
            law = gr.kernels.NormalPseudoprior(mean, covariance)
            # Bayes' theorem at θ = 0, where all models have the same likelihood.
            evidence.append(log_prior(np.zeros(k + 1)) - law.log_density(np.zeros(k + 1)))
            self.means.append(mean)
            self.covariances.append(covariance)
        self.log_weights = np.log(P) - np.array(evidence)

    def __call__(self, parameters):
        models = np.array([len(x) - 1 for x in parameters])
        xs = np.zeros((len(models), 3))
        for row, x in zip(xs, parameters, strict=True):
            row[: len(x)] = x
        return gr.compiled(log_factor, (xs, models, self.y, self.z), size=len(self.y), arms=len(models))

    has_slots = True

    def slots(self, arms, dimensions):
        slots = new_slots(1, arms, 3, dimensions)
        data = (slots.parameters, slots.models, self.y, self.z)
        return slots._replace(population=Compiled(log_factor, data, Rows(len(self.y)), arms, None))

    def kernel(self, method=None, prior=log_prior, moves=None, **options):
        """Make a kernel whose pseudopriors are wider than the posteriors and beside them."""
        method, models = method or gr.Exact(), []
        of_move = moves or method
        for mean, covariance in zip(self.means, self.covariances, strict=True):
            law = gr.kernels.NormalPseudoprior(mean + 0.02, 1.5 * covariance)
            move = gr.Metropolis(self, gr.kernels.Autoregressive(law, 0.6), log_prior=prior, method=of_move)
            models.append(gr.kernels.Candidate(move, law, prior))
        return gr.CarlinChib(models, self, method=method, **options)

    def start(self, kernel, rng, model):
        """Draw a state from the exact posterior, given the model."""
        state, law = (
            kernel.start(model, rng=rng),
            gr.kernels.NormalPseudoprior(self.means[model], self.covariances[model]),
        )
        parameters = tuple(law.sample(rng) if k == model else x for k, x in enumerate(state.parameters))
        return state._replace(parameters=parameters, log_weights=self.log_weights)

    def invariance(self, kernel, rng, replicates=1500, steps=2, slack=0.0):
        """Tail probability of (model, cell of its parameter) after steps from the exact posterior."""
        cells = []
        for model in rng.choice(3, size=replicates, p=P):
            end = after(kernel, self.start(kernel, rng, int(model)), steps, rng)
            k, x = end.model, end.parameters[end.model]
            deviation = np.sqrt(self.covariances[k][-1, -1])
            cells.append(k * CELLS + int(ndtr((x[-1] - self.means[k][-1]) / deviation) * CELLS))
        return tail(np.array(cells), np.repeat(P / CELLS, CELLS), slack)
