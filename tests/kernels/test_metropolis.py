"""Metropolis leaves its target invariant; raced decisions bias it no more than δ allows.

False-alarm rate of each statistical test: 1e-4 over seeds.
"""

from dataclasses import dataclass, replace

import numba
import numpy as np
import pytest
from scipy.special import fdtr
from tests.kernels.laws import CELLS, FALSE_ALARM, Cauchy, Rate, chain, invariance, tail

import gumbelrace as gr
from gumbelrace.errors import InvalidArgument, InvalidGenerator, ShapeMismatch

WALK = gr.kernels.RandomWalk(0.3)


def cauchy(size=200, cut=-0.1, method=None, **changes):
    """Give a kernel and its target: the location of Cauchy data, cut off near its middle."""
    model = Cauchy(size, seed=1, cut=cut)
    kernel = gr.Metropolis(model.likelihood, WALK, log_prior=model.log_prior, method=method or gr.Exact())
    return replace(kernel, **changes), model.target


@dataclass(frozen=True)
class NoRatio:
    """A proposal that says that it is symmetric."""

    proposal: object

    def propose(self, rng, x):
        return self.proposal.propose(rng, x)

    def log_ratio(self, x, proposed):
        return 0.0


def test_leaves_the_target_invariant():
    """Oracle: quadrature; the prior is -inf where 2 of 5 proposals fall."""
    kernel, target = cauchy()
    assert invariance(kernel, target, np.random.default_rng(0)) > FALSE_ALARM


def test_wrong_prior_is_noticed():
    """Negative control: the same test with a wrong prior."""
    kernel, target = cauchy(log_prior=lambda x: 8.0 * x[0] if x[0] >= -0.1 else -np.inf)
    assert invariance(kernel, target, np.random.default_rng(0)) < FALSE_ALARM


@pytest.mark.parametrize("method", [gr.Race(gr.methods.Normal(), delta=1e-3), gr.Betting(delta=1e-3)])
def test_raced_decisions_stay_within_delta(method):
    """3 decisions of δ = 0.001 move the law by at most 0.003 (Race: if means are normal)."""
    kernel, target = cauchy(size=500, method=method)
    assert invariance(kernel, target, np.random.default_rng(1), slack=3e-3) > FALSE_ALARM


def test_careless_race_is_noticed():
    """Negative control: decisions of δ = 0.8 after a first look at 2 rows."""
    kernel, target = cauchy(size=500, method=gr.Race(gr.methods.Normal(), delta=0.8, first=2))
    assert invariance(kernel, target, np.random.default_rng(1), slack=3e-3) < FALSE_ALARM


@pytest.mark.parametrize("walk", [gr.kernels.LogWalk(0.4), NoRatio(gr.kernels.LogWalk(0.4))])
def test_log_ratio_makes_the_difference(walk):
    """A walk of logarithms is right with its log_ratio, and (negative control) wrong without."""
    model = Rate(12, seed=2)
    kernel = gr.Metropolis(model.likelihood, walk, method=gr.Exact())
    found = invariance(kernel, model.target, np.random.default_rng(2), 2000, 4)
    assert (found > FALSE_ALARM) == isinstance(walk, gr.kernels.LogWalk)


AUTOREGRESSIVE = gr.kernels.Autoregressive(gr.kernels.NormalPseudoprior([0.1], [[0.02]]), 0.3)


@pytest.mark.parametrize("walk", [AUTOREGRESSIVE, NoRatio(AUTOREGRESSIVE)])
def test_autoregressive_proposals_leave_the_target_invariant(walk):
    """The first is compiled; the second, without its log_ratio, is the negative control."""
    kernel, target = cauchy(proposal=walk)
    found = invariance(kernel, target, np.random.default_rng(10), 2000, 4)
    assert (found > FALSE_ALARM) == isinstance(walk, gr.kernels.Autoregressive)


def test_proposals_of_student_have_its_law():
    """20,000 draws: a chi-square test of radii against F(d, ν); seed 12."""
    law = gr.kernels.NormalPseudoprior([1.0, -2.0], [[1.0, 0.6], [0.6, 2.0]])
    proposal, rng = gr.kernels.StudentT(law, freedom=3.0, scale=1.5), np.random.default_rng(12)
    drawn = np.array([law.standardised(proposal.propose(rng, np.zeros(2))) for _ in range(20_000)]) / 1.5
    squares, even = (drawn**2).sum(axis=1) / 2.0, np.full(CELLS, 1.0 / CELLS)
    for freedom in (3.0, 6.0):  # the second is the negative control
        cells = (fdtr(2, freedom, squares) * CELLS).astype(int)
        assert (tail(cells, even) > FALSE_ALARM) == (freedom == 3.0)


def test_a_scale_that_is_not_triangular_has_the_same_law():
    """20,000 steps of a flat walk: variances and covariance within 4.5 standard errors; seed 11."""
    flat = gr.likelihood(numba.njit(lambda n, theta: 0.0 * theta[0]), (), 2)
    scale = np.array([[0.1, 0.3], [0.2, -0.1]])
    kernel = gr.Metropolis(flat, gr.kernels.RandomWalk(scale), method=gr.Exact())
    block = kernel.steps(np.random.default_rng(11), gr.kernels.Position(np.zeros(2)), 20_000)
    found, right = np.cov(np.diff(block.states.position, axis=0).T), scale @ scale.T
    errors = np.sqrt((np.outer(np.diag(right), np.diag(right)) + right**2) / 20_000)
    assert (np.abs(found - right) < 4.5 * errors).all()
    assert block.info.acceptance.all()


@pytest.mark.parametrize("scale", [0.3, [0.3, 0.3], np.linalg.cholesky([[0.09, 0.05], [0.05, 0.09]])])
def test_walk_has_the_scale_that_was_asked_for(scale):
    """20,000 steps: a variance of 0.09 is met within 4 standard errors (false-alarm rate 1e-4)."""
    rng, walk = np.random.default_rng(3), gr.kernels.RandomWalk(scale)
    steps = np.array([walk.propose(rng, np.zeros(2)) for _ in range(20_000)])
    assert np.abs(steps.var(axis=0) - 0.09).max() < 4.0 * 0.09 * np.sqrt(2.0 / 20_000)
    covariance = 0.05 if np.ndim(scale) == 2 else 0.0
    assert abs(np.cov(steps.T)[0, 1] - covariance) < 4.0 * 0.11 / np.sqrt(20_000)


def test_equal_seeds_give_equal_chains_and_no_state_changes():
    kernel, _ = cauchy(method=gr.Betting())
    start = gr.kernels.Position(np.zeros(1))
    start.position.setflags(write=False)
    first, second = (chain(kernel, start, 20, seed=4) for _ in range(2))
    assert first == second
    assert start.position[0] == 0.0


def test_impossible_proposal_is_rejected_without_reading():
    kernel, _ = cauchy(log_prior=lambda x: 0.0 if x[0] == 0.0 else -np.inf)
    state = gr.kernels.Position(np.zeros(1))
    assert kernel.step(np.random.default_rng(5), state) == (state, gr.kernels.Info(0, 0, 0, 0.0))


def test_info_counts_what_was_read():
    kernel, _ = cauchy(cut=-np.inf)
    _, info = kernel.step(np.random.default_rng(6), gr.kernels.Position(np.zeros(1)))
    assert (info.evaluations, info.rewards) == (400, 400)
    assert info.acceptance in (0.0, 1.0)


def test_audit_counts_wrong_decisions():
    kernel, _ = cauchy(size=2000, cut=-np.inf, proposal=gr.kernels.RandomWalk(0.01))
    careless = kernel.with_method(gr.Race(gr.methods.Normal(), delta=0.9, first=2))
    rng, state = np.random.default_rng(7), gr.kernels.Position(np.zeros(1))
    assert [kernel.audit(rng, state)[:2] for _ in range(20)] == [(0, 1)] * 20
    assert sum(careless.audit(rng, state)[0] for _ in range(100)) > 10


def test_compiled_likelihood_without_a_range_is_raced():
    @numba.njit
    def log_factor(n, arm, points, y):
        return -0.5 * (y[n] - points[arm, 0]) ** 2

    y = np.random.default_rng(8).normal(size=20_000)
    kernel = gr.Metropolis(
        lambda points: gr.compiled(log_factor, (points, y), len(y), len(points)), gr.kernels.RandomWalk(0.5)
    )
    infos = [info for _, info in chain(kernel, gr.kernels.Position(np.zeros(1)), 50, seed=8)]
    assert sum(info.evaluations for info in infos) < 0.5 * sum(info.rewards for info in infos)


@pytest.mark.parametrize(
    ("changes", "position", "error", "message"),
    [
        ({}, 0.0, ShapeMismatch, r"single number x as \[x\]"),
        ({}, [np.nan], InvalidArgument, "not finite"),
        ({}, [-0.5], InvalidArgument, "start where it is finite"),
        ({"log_prior": lambda x: np.nan}, [0.0], InvalidArgument, "log prior of"),
        ({"proposal": gr.kernels.RandomWalk([1.0, 1.0])}, [0.0], ShapeMismatch, "scale has shape"),
        ({"proposal": gr.kernels.LogWalk(1.0)}, [0.0], InvalidArgument, "positive"),
        ({"likelihood": lambda points: gr.table(np.zeros((5, 3)))}, [0.0], ShapeMismatch, "3 arms"),
        ({"likelihood": lambda points: 0.0}, [0.0], InvalidArgument, "gave a float"),
    ],
)
def test_errors_say_what_to_do(changes, position, error, message):
    kernel, _ = cauchy(**{"log_prior": lambda x: 0.0 if x[0] >= -0.1 else -np.inf, **changes})
    with pytest.raises(error, match=message):
        chain(kernel, gr.kernels.Position(position), 20, seed=9)


@pytest.mark.parametrize("scale", [0.0, [1.0, -1.0], np.inf, np.ones((2, 3)), np.ones((1, 1, 1))])
def test_bad_scale_is_an_error(scale):
    with pytest.raises((InvalidArgument, ShapeMismatch), match="scale"):
        gr.kernels.RandomWalk(scale)


def test_only_a_generator_will_do():
    kernel, _ = cauchy()
    with pytest.raises(InvalidGenerator, match="Generator"):
        kernel.step(np.random.RandomState(0), gr.kernels.Position(np.zeros(1)))
