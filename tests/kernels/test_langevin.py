"""Corrected Langevin proposals leave the target invariant, and the step size adapts.

Oracle: quadrature. False-alarm rate of each statistical test: 1e-4 over seeds.
"""

from dataclasses import dataclass, replace
from itertools import cycle

import numpy as np
import pytest
from tests.kernels.laws import FALSE_ALARM, Cauchy, Line, chain, invariance

import gumbelrace as gr
from gumbelrace.errors import FactorFailed, InvalidArgument
from gumbelrace.methods.exact import Scan
from gumbelrace.models import student

START = gr.kernels.LangevinState(np.zeros(1))


def cauchy(size=150, cut=-0.1, **options):
    """Give a kernel and its target; a batch is a fifth of the rows."""
    model = Cauchy(size, seed=1, cut=cut)
    functions = {
        "log_prior": model.log_prior,
        "prior_gradient": model.prior_gradient,
        "gradient": model.gradient,
    }
    options = {"batch": size // 5, "scale": 0.15, "method": gr.Exact(), **functions, **options}
    return gr.Langevin(model.likelihood, size=size, **options), model.target


@dataclass(frozen=True)
class Yes(gr.Method):
    """Always takes the second arm."""

    @property
    def promise(self):
        return gr.Promise(1.0)

    def rule(self, population):
        return Scan()

    def answer(self, asked, population, offset, rng):
        return gr.Outcome(1, 0, 0, False)


def law(kernel, target, seed, **options):
    rng = np.random.default_rng(seed)
    return invariance(kernel, target, rng, 800, 2, state=gr.kernels.LangevinState, **options)


@pytest.mark.parametrize("batch", [3, 30, 150])
def test_leaves_the_target_invariant(batch):
    """Whatever the batch: a poor gradient costs acceptance, not correctness."""
    kernel, target = cauchy(batch=batch)
    assert law(kernel, target, 0) > FALSE_ALARM


def test_wrong_gradient_does_not_matter():
    kernel, target = cauchy(gradient=lambda index, x: np.sign(x) * 3.0)
    assert law(kernel, target, 0) > FALSE_ALARM


def test_uncorrected_proposals_are_noticed():
    """Negative control: the same proposals, all accepted (the prior is not cut off)."""
    kernel, target = cauchy(cut=-np.inf, method=Yes())
    assert law(kernel, target, 0) < FALSE_ALARM


def way_back_mistaken(model):
    """Give gradients whose sign is wrong on the way back (a step asks twice)."""
    sign = cycle([1.0, -1.0])
    return {"gradient": lambda index, x: next(sign) * model.gradient(index, x), "cut": -np.inf}


def test_wrong_way_back_is_noticed():
    """Negative control."""
    kernel, target = cauchy(batch=150, **way_back_mistaken(Cauchy(150, seed=1)))
    assert law(kernel, target, 0) < FALSE_ALARM


@pytest.mark.parametrize("method", [gr.Race(gr.methods.Normal(), delta=1e-3), gr.Betting(delta=1e-3)])
def test_raced_decisions_stay_within_delta(method):
    """2 decisions of δ = 0.001 move the law by at most 0.002 (Race: if means are normal)."""
    kernel, target = cauchy(size=500, method=method)
    assert law(kernel, target, 1, slack=2e-3) > FALSE_ALARM


def share_left(kernel):
    """Give the share of the rows that decisions leave unread; gradients are read and counted alike."""
    infos = [info for _, info in chain(kernel, START, 100, seed=4)]
    return sum(info.rewards - info.evaluations for info in infos) / (100 * 2 * kernel.size)


def test_penalty_leaves_the_target_invariant():
    """2 decisions whose law is within 0.001; not all rows are read. Negative control: a wrong way back."""
    options = {"size": 4000, "scale": 0.015, "batch": 400, "method": gr.Penalty()}
    kernel, target = cauchy(**options)
    assert law(kernel, target, 2, slack=2e-3) > FALSE_ALARM
    assert share_left(kernel) > 0.2
    wrong, target = cauchy(**options | way_back_mistaken(Cauchy(4000, seed=1)))
    assert law(wrong, target, 2, slack=2e-3) < FALSE_ALARM


def bounded(size=60):
    """Give the Cauchy target as residuals that know their bounds: it is Student's with one degree."""
    model, ones = Cauchy(size, seed=1), np.ones((size, 1))
    data = ones, model.y, 1.0, 1.0
    mode, hessian = student.mode(*data)
    metric = np.sqrt(-hessian)
    taylor = gr.parameter_taylor(
        student.terms, data, size, mode, remainder=student.remainder(ones, metric, 1.0, 1.0), metric=metric
    )
    return gr.likelihood(student.log_factor, data, size).minus(taylor)


def test_thinning_leaves_the_target_invariant():
    """Exactly, from a share of the rows. Negative control: a wrong way back."""
    options = {"size": 60, "scale": 0.2, "batch": 60, "method": gr.Thinning()}
    kernel, target = cauchy(**options)
    kernel = replace(kernel, likelihood=bounded())
    assert law(kernel, target, 3) > FALSE_ALARM
    assert share_left(kernel) > 0.2
    wrong, target = cauchy(**options | way_back_mistaken(Cauchy(60, seed=1)))
    assert law(replace(wrong, likelihood=bounded()), target, 3) < FALSE_ALARM


@pytest.mark.parametrize("matrix", [True, False])
def test_two_dimensions(matrix):
    """Normal data of mean x0 + x1 z, preconditioned: whitened ends are standard normal in each margin."""
    rng = np.random.default_rng(2)
    line = Line(60, rng)
    scale = line.root if matrix else [0.15, 0.1]
    kernel = gr.Langevin(line.likelihood, line.gradient, size=60, batch=20, scale=scale, method=gr.Exact())
    assert line.invariance(kernel, rng, 1000, gr.kernels.LangevinState) > FALSE_ALARM


@pytest.mark.parametrize(("start", "goal"), [(0.01, 0.57), (30.0, 0.57), (1.0, 0.8)])
def test_adaptation_reaches_the_target_acceptance(start, goal):
    """600 steps of warm-up, then 600 more: acceptance within 0.1 of the goal.

    The mean of 600 correlated decisions has a standard error near 0.025; the step size is off by a little.
    """
    kernel, _ = cauchy(cut=-np.inf, batch=100, adapt_for=600, target_acceptance=goal)
    visited = chain(kernel, START._replace(log_step=np.log(start)), 1200, seed=3)
    acceptance = np.mean([info.acceptance for _, info in visited[600:]])
    assert abs(acceptance - goal) < 0.1
    assert len({state.log_step for state, _ in visited[600:]}) == 1
    assert len({state.log_step for state, _ in visited[:600]}) == 600


def test_without_adaptation_the_step_is_fixed():
    kernel, _ = cauchy()
    states = [state for state, _ in chain(kernel, START._replace(log_step=-1.0), 5, seed=4)]
    assert [state.log_step for state in states] == [-1.0] * 5
    assert states[-1].iteration == 5
    assert kernel.tuning == set(gr.kernels.LangevinState._fields) - {"position"}


def test_gradients_are_counted():
    """A batch at the point and one at the proposal, besides what the race reads."""
    kernel, _ = cauchy(cut=-np.inf)
    _, info = kernel.step(np.random.default_rng(5), START)
    assert info.evaluations == info.rewards == 2 * 30 + 2 * 150


def test_impossible_proposal_is_rejected_without_a_second_gradient():
    kernel, _ = cauchy(log_prior=lambda x: 0.0 if x[0] == 0.0 else -np.inf)
    state, info = kernel.step(np.random.default_rng(6), START)
    assert state == START._replace(iteration=1)
    assert info == gr.kernels.Info(30, 30, 0, 0.0)


def test_equal_seeds_give_equal_chains_and_no_state_changes():
    kernel, _ = cauchy(method=gr.Betting(), adapt_for=5)
    start = gr.kernels.LangevinState(np.zeros(1))
    start.position.setflags(write=False)
    first, second = (chain(kernel, start, 10, seed=7) for _ in range(2))
    assert first == second
    assert start == START


def test_audit_checks_the_decision():
    kernel, _ = cauchy(cut=-np.inf, method=gr.Betting())
    assert kernel.audit(np.random.default_rng(8), START)[:2] == (0, 1)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"batch": 151}, InvalidArgument, "only 150 rows"),
        ({"batch": 0}, InvalidArgument, "batch"),
        ({"adapt_for": -1}, InvalidArgument, "adapt_for"),
        ({"target_acceptance": 1.0}, InvalidArgument, "target_acceptance"),
        ({"gradient": lambda index, x: np.zeros(2)}, FactorFailed, "must hold 1 finite"),
        ({"prior_gradient": lambda x: x * np.nan}, FactorFailed, "must hold 1 finite"),
    ],
)
def test_errors_say_what_to_do(options, error, message):
    with pytest.raises(error, match=message):
        cauchy(**options)[0].step(np.random.default_rng(9), START)
