"""Slice sampling leaves its target invariant. Oracle: quadrature, or a normal posterior in closed form.

False-alarm rate of each statistical test: 1e-4 over seeds.
"""

import numpy as np
import pytest
from tests.kernels.laws import FALSE_ALARM, Cauchy, Line, Rate, chain, invariance

import gumbelrace as gr
from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.kernels import slice as slice_module


def cauchy(size=150, cut=-0.1, **options):
    """Give a kernel and its target: the location of Cauchy data, cut off near its middle."""
    model = Cauchy(size, seed=1, cut=cut)
    options = {"width": 0.1, "log_prior": model.log_prior, "method": gr.Exact(), **options}
    return gr.Slice(model.likelihood, **options), model.target


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_leaves_the_target_invariant(steps):
    """A width of half the target's and a limit on steps out: the bracket often ends inside the slice."""
    kernel, target = cauchy(max_steps_out=steps)
    found = invariance(kernel, target, np.random.default_rng(0), replicates=600, steps=2)
    assert found > FALSE_ALARM


def test_wrong_level_is_noticed(monkeypatch):
    """Negative control: a level that is lower by 2 nats."""
    monkeypatch.setattr(slice_module, "prior_of_current", lambda log_prior, x: log_prior(x) - 2.0)
    kernel, target = cauchy()
    assert invariance(kernel, target, np.random.default_rng(0), 500, 2) < FALSE_ALARM


def test_one_sided_steps_are_noticed(monkeypatch):
    """Negative control: all steps out go to the right, and the bracket starts at x."""

    def step_out(line, rng):
        right, left = 1.0, 1
        while left > 0 and line.contains(right):
            right, left = right + 1.0, left - 1
        return 0.0, right

    monkeypatch.setattr(slice_module._Line, "step_out", step_out)
    kernel, target = cauchy()
    assert invariance(kernel, target, np.random.default_rng(0), 500, 2) < FALSE_ALARM


def test_skewed_target():
    model = Rate(6, seed=2)
    kernel = gr.Slice(
        model.likelihood, 0.5, log_prior=lambda x: 0.0 if x[0] > 0.0 else -np.inf, method=gr.Exact()
    )
    assert invariance(kernel, model.target, np.random.default_rng(1), 500, 2) > FALSE_ALARM


@pytest.mark.parametrize("method", [gr.Race(gr.methods.Normal(), delta=5e-4), gr.Betting(delta=5e-4)])
def test_raced_decisions_stay_within_delta(method):
    """2 updates of some 6 decisions of δ = 0.0005: about 0.006 in all (Race: if means are normal)."""
    kernel, target = cauchy(size=400, method=method)
    found = invariance(kernel, target, np.random.default_rng(2), 400, 2, slack=6e-3)
    assert found > FALSE_ALARM


@pytest.mark.parametrize("directions", [gr.kernels.EachCoordinate(), gr.kernels.RandomDirection()])
@pytest.mark.parametrize("width", [0.3, np.linalg.cholesky([[0.2, 0.1], [0.1, 0.1]])])
def test_two_dimensions(directions, width):
    """Normal data of mean x0 + x1 z: the posterior is normal. Each margin of whitened ends is tested."""
    rng = np.random.default_rng(3)
    line = Line(60, rng)
    kernel = gr.Slice(line.likelihood, width, directions=directions, method=gr.Exact())
    assert line.invariance(kernel, rng, 250) > FALSE_ALARM


def test_limit_on_steps_out_is_kept():
    """On a flat target every end is inside: a bracket has exactly 1 + max_steps_out widths."""
    kernel = gr.Slice(lambda points: gr.table(np.zeros((2, 2))), 1.0, max_steps_out=5)
    decisions = slice_module.Decisions(kernel.method, np.random.default_rng(4))
    line = slice_module._Line(kernel, decisions, np.zeros(1), np.ones(1), -1.0)
    for _ in range(50):
        left, right = line.step_out(decisions.rng)
        assert right - left == pytest.approx(6.0)
        assert left <= 0.0 <= right


def test_equal_seeds_give_equal_chains_and_no_state_changes():
    kernel, _ = cauchy(method=gr.Betting(), directions=gr.kernels.RandomDirection())
    start = gr.kernels.Position(np.zeros(1))
    start.position.setflags(write=False)
    first, second = (chain(kernel, start, 10, seed=5) for _ in range(2))
    assert first == second
    assert start.position[0] == 0.0


def test_audit_checks_every_comparison():
    kernel, _ = cauchy(method=gr.Betting())
    errors, decisions, *_ = kernel.audit(np.random.default_rng(6), gr.kernels.Position(np.zeros(1)))
    assert errors == 0
    assert decisions > 1


def test_info_counts_all_comparisons():
    kernel, _ = cauchy(cut=-np.inf)
    _, info = kernel.step(np.random.default_rng(7), gr.kernels.Position(np.zeros(1)))
    assert info.evaluations == info.rewards
    assert info.rewards % 300 == 0
    assert 0.0 < info.acceptance <= 1.0


def test_bracket_that_shrinks_to_nothing_leaves_the_point():
    """Every other point is impossible by the prior: there is nowhere to go, and nothing is read."""
    kernel, _ = cauchy(log_prior=lambda x: 0.0 if x[0] == 0.25 else -np.inf)
    state, info = kernel.step(np.random.default_rng(8), gr.kernels.Position(np.array([0.25])))
    assert state.position[0] == 0.25
    assert info.evaluations in (0, 300)  # a candidate may round to the point itself


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"width": 0.0}, InvalidArgument, "positive"),
        ({"width": [0.1, 0.1]}, ShapeMismatch, "scale has shape"),
        ({"max_steps_out": -1}, InvalidArgument, "max_steps_out"),
        ({"log_prior": lambda x: -np.inf}, InvalidArgument, "start where it is finite"),
    ],
)
def test_errors_say_what_to_do(options, error, message):
    with pytest.raises(error, match=message):
        cauchy(**options)[0].step(np.random.default_rng(9), gr.kernels.Position(np.zeros(1)))
