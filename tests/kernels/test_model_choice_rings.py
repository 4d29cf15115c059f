"""Model choice by Thinning: moves and the draw of the model are exact from the rows that ring.

Data on a circle, two models of faint factors, log f_n = ε cos(y_n - x) and ε cos(2 (y_n - x)): rings
are few; the posterior of both together is known by quadrature. False-alarm rate: 1e-4 over seeds.
"""

from dataclasses import dataclass

import numpy as np
from tests.kernels.laws import FALSE_ALARM, after, tail

import gumbelrace as gr
from gumbelrace.methods.thinning import Rings

SIZE, FAINT, CELLS = 60, 0.03, 5
Y = np.random.default_rng(1).normal(0.8, 0.3, SIZE)
PSEUDOPRIOR = gr.kernels.NormalPseudoprior([0.3], [[1.5]])
GRID = np.linspace(-5.0, 5.0, 4001)


def rewards(model, points):
    return FAINT * np.cos((model + 1) * (Y[:, None] - points))


def log_prior(x):
    return -0.5 * x[0] ** 2 - 0.5 * np.log(2.0 * np.pi)


def likelihood_of(model):
    return lambda points: gr.table(rewards(model, points[:, 0]))


def likelihood(parameters):
    return gr.table(np.column_stack([rewards(k, x[0]) for k, x in enumerate(parameters)]))


def kernel(method):
    models = []
    for k in range(2):
        walk = gr.kernels.RandomWalk(1.5)
        move = gr.Metropolis(likelihood_of(k), walk, log_prior=log_prior, method=method)
        models.append(gr.kernels.Candidate(move, PSEUDOPRIOR, log_prior))
    return gr.CarlinChib(models, likelihood, method=method)


def posterior():
    """Give the probability of each model and point of the grid."""
    heights = np.array([rewards(k, GRID).sum(axis=0) for k in range(2)]) - 0.5 * GRID**2
    weights = np.exp(heights)
    return weights / weights.sum()


def invariance(method, seed, replicates=800, steps=3):
    """Tail probability of (model, cell of its parameter) after steps from the exact posterior."""
    rng, exact, asked, cells = np.random.default_rng(seed), posterior(), kernel(method), []
    cumulative = exact.cumsum(axis=1) / exact.sum(axis=1, keepdims=True)
    for k in rng.choice(2, size=replicates, p=exact.sum(axis=1)):
        start = asked.start(int(k), rng=rng)
        x = np.interp([rng.random()], cumulative[k], GRID)
        parameters = tuple(x if i == k else other for i, other in enumerate(start.parameters))
        end = after(asked, start._replace(parameters=parameters), steps, rng)
        place = np.interp(end.parameters[end.model][0], GRID, cumulative[end.model])
        cells.append(end.model * CELLS + min(int(place * CELLS), CELLS - 1))
    return tail(np.array(cells), np.repeat(exact.sum(axis=1) / CELLS, CELLS))


@dataclass(frozen=True)
class Deaf(gr.Thinning):
    """Negative control: no row rings."""

    def rule(self, population):
        return Rings(0.0, uneven=False)


def test_moves_and_draws_by_rings_leave_the_target_invariant():
    assert invariance(gr.Thinning(), 0) > FALSE_ALARM


def test_missing_rings_are_noticed():
    assert invariance(Deaf(), 0) < FALSE_ALARM


def test_not_all_rows_are_read():
    asked = kernel(gr.Thinning())
    rng = np.random.default_rng(1)
    state, read = asked.start(rng=rng), 0.0
    for _ in range(100):
        state, info = asked.step(rng, state)
        read += info.evaluations / info.rewards / 100
    assert 0.0 < read < 0.4
