"""Compiled steps over models have the law of the exact posterior, and are the same however they are cut.

False-alarm rate of each statistical test: 1e-4 over seeds.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.kernels.laws import FALSE_ALARM
from tests.kernels.nested import Nested, log_prior

import gumbelrace as gr
from gumbelrace.core.rows import Rows
from gumbelrace.errors import InvalidArgument, InvalidReward

CAREFUL = gr.Race(gr.methods.Normal(), delta=1e-3)


def generator(seed):
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def problem():
    return Nested()


def test_compiled_steps_leave_the_target_invariant(problem):
    kernel = problem.kernel()
    assert kernel.is_compiled
    assert problem.invariance(kernel, generator(0)) > FALSE_ALARM


def test_so_do_those_in_python(problem):
    kernel = problem.kernel(prior=lambda x: log_prior(x))
    assert not kernel.is_compiled
    assert problem.invariance(kernel, generator(1), replicates=500) > FALSE_ALARM


def test_raced_decisions_stay_within_delta(problem):
    """2 steps of 2 decisions of δ = 0.001 move the law by at most 0.004, if means are normal."""
    kernel = Nested(size=2000).kernel(CAREFUL)
    assert kernel.is_compiled
    assert Nested(size=2000).invariance(kernel, generator(2), slack=4e-3) > FALSE_ALARM


def test_decisions_that_find_no_winner_keep_the_law():
    """2 steps of 2 decisions whose law is within 0.001, and not all rows are read."""
    problem = Nested(size=4000)
    kernel = problem.kernel(gr.Absorb(), moves=gr.Penalty())
    assert kernel.is_compiled
    assert problem.invariance(kernel, generator(12), slack=4e-3) > FALSE_ALARM
    info = kernel.steps(generator(13), problem.start(kernel, generator(13), 0), 200).info
    assert info.evaluations.sum() < 0.9 * info.rewards.sum()
    assert 0.0 < info.law_error.mean() < 1e-2


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_wrong_pseudoprior_is_noticed(problem, share):
    """Negative control: densities of the laws drawn from without their constants, or with half of them."""
    kernel = problem.kernel()
    kernel.__dict__["_laws"] = kernel._laws._replace(log_volumes=share * kernel._laws.log_volumes)
    assert problem.invariance(kernel, generator(3)) < FALSE_ALARM


@pytest.mark.parametrize("method", [gr.Exact(), CAREFUL], ids=["exact", "race"])
def test_how_steps_are_cut_changes_nothing(problem, method):
    kernel = problem.kernel(method, adapt_for=7)
    start = problem.start(kernel, generator(4), 1)
    whole = kernel.steps(generator(5), start, 12)
    rng, state = generator(5), start
    for t in range(12):
        state, info = kernel.step(rng, state)
        assert state.model == whole.states.model[t]
        assert state.iteration == whole.states.iteration[t] == t + 1
        assert info == tuple(part[t] for part in whole.info)
        np.testing.assert_array_equal(state.log_weights, whole.states.log_weights[t])
        for mine, all_of_it in zip(state.parameters, whole.states.parameters, strict=True):
            np.testing.assert_array_equal(mine, all_of_it[t])
    assert -state.log_weights.sum() == pytest.approx(
        sum(kernel.gain(t) for t in range(7)) - problem.log_weights.sum()
    )


def test_the_state_it_starts_from_stays_as_it_is(problem):
    kernel = problem.kernel(adapt_for=5)
    start = problem.start(kernel, generator(6), 0)
    before = [x.copy() for x in (*start.parameters, start.log_weights)]
    kernel.steps(generator(7), start, 5)
    for x, y in zip((*start.parameters, start.log_weights), before, strict=True):
        np.testing.assert_array_equal(x, y)


def test_exact_steps_read_everything_once_for_each_arm(problem):
    block = problem.kernel().steps(generator(8), problem.kernel().start(rng=generator(8)), 3)
    np.testing.assert_array_equal(block.info.evaluations, 200 * (2 + 3))
    np.testing.assert_array_equal(block.info.rewards, 200 * (2 + 3))


def test_beyond_the_guard_decisions_are_exact():
    problem = Nested(size=5000)
    loose, tight = (problem.kernel(gr.Race(), guard=guard) for guard in (0.9999, 1e-6))
    start = problem.start(loose, generator(9), 0)
    of_loose, of_tight = (kernel.steps(generator(9), start, 20).info for kernel in (loose, tight))
    assert of_loose.evaluations.sum() < of_tight.evaluations.sum()
    np.testing.assert_array_equal(of_tight.evaluations, of_tight.rewards)


def test_the_guard_holds_in_python_too():
    problem = Nested(size=5000)
    kernel = problem.kernel(gr.Race(), prior=lambda x: log_prior(x), guard=1e-6)
    _, info = kernel.step(generator(10), problem.start(kernel, generator(10), 0))
    assert info.evaluations == info.rewards


class Leap:
    """Proposes a point far out, from anywhere."""

    def propose(self, rng, x):
        return x + 3.0

    def log_ratio(self, x, proposed):
        return 0.0


def test_a_proposal_beyond_the_guard_is_decided_exactly():
    """Within the guard: the current point. Beyond: what the move proposes. One model: nothing to draw."""
    problem = Nested(size=5000)
    kernel = problem.kernel(gr.Race(), prior=lambda x: log_prior(x), guard=1.0 - 1e-9)
    first = replace(kernel.models[0], kernel=replace(kernel.models[0].kernel, proposal=Leap()))
    for guard, exact in ((kernel.guard, True), (None, False)):
        alone = replace(kernel, models=[first], guard=guard)
        start = alone.start(rng=generator(10))._replace(parameters=(problem.means[0],))
        _, info = alone.step(generator(10), start)
        assert (info.evaluations == 2 * 5000) == exact


def test_a_kernel_whose_points_cannot_be_seen_decides_exactly(problem):
    @dataclass(frozen=True, eq=False)
    class Hidden(gr.Kernel):
        inner: gr.Metropolis

        @property
        def method(self):
            return self.inner.method

        def step(self, rng, state):
            return self.inner.step(rng, state)

        def with_method(self, method):
            return Hidden(self.inner.with_method(method))

    kernel = problem.kernel(gr.Race(first=10), prior=lambda x: log_prior(x), guard=0.9999)
    models = [replace(m, kernel=Hidden(m.kernel)) for m in kernel.models]
    _, info = replace(kernel, models=models).step(generator(10), problem.start(kernel, generator(10), 0))
    assert info.evaluations >= 2 * len(problem.y)


def test_an_error_leaves_no_order_half_read():
    """A reward that is not a number once: later steps are those of a kernel that has not met it."""
    problem = Sharing(size=2000)
    kernel, start = problem.kernel(gr.Race()), problem.start(problem.kernel(), generator(12), 0)
    y, problem.y[:] = problem.y.copy(), np.nan
    with pytest.raises(InvalidReward):
        kernel.steps(generator(13), start, 5)
    problem.y[:] = y
    found, expected = (
        k.steps(generator(14), start, 20) for k in (kernel, Sharing(size=2000).kernel(gr.Race()))
    )
    np.testing.assert_array_equal(found.states.model, expected.states.model)
    np.testing.assert_array_equal(found.info.evaluations, expected.info.evaluations)


class Sharing(Nested):
    """All slots read rows in one order."""

    def __init__(self, size):
        super().__init__(size)
        self.rows = Rows(size)

    def slots(self, arms, dimensions):
        slots = super().slots(arms, dimensions)
        slots.population.rows = self.rows
        return slots


@pytest.mark.parametrize("guard", [0.0, 1.0, -1.0])
def test_a_guard_is_a_share(problem, guard):
    with pytest.raises(InvalidArgument, match="guard"):
        problem.kernel(guard=guard)


def test_what_needs_python_is_not_compiled(problem):
    kernel = problem.kernel()
    first = kernel.models[0]
    walk = replace(first.kernel, proposal=gr.kernels.RandomWalk(0.1))
    other_law = gr.kernels.Autoregressive(gr.kernels.NormalPseudoprior([0.0], [[1.0]]), 0.6)
    other_step = gr.kernels.Autoregressive(first.pseudoprior, 0.1)
    kernels = [walk, *(replace(first.kernel, proposal=p) for p in (other_law, other_step))]
    kernels.append(first.kernel.with_method(CAREFUL))
    for changed in kernels:
        assert not replace(kernel, models=[replace(first, kernel=changed), *kernel.models[1:]]).is_compiled
    assert not replace(kernel, likelihood=lambda parameters: problem(parameters)).is_compiled


def test_autoregressive_proposals_keep_their_law():
    """From the law to the law: 4,000 proposals have its moments within 4.5 standard errors; seed 11."""
    law = gr.kernels.NormalPseudoprior([1.0, -2.0], [[1.0, 0.6], [0.6, 0.5]])
    proposal, rng = gr.kernels.Autoregressive(law, 0.7), generator(11)
    moved = np.array([law.standardised(proposal.propose(rng, law.sample(rng))) for _ in range(4000)])
    assert np.abs(moved.mean(axis=0)).max() < 4.5 / np.sqrt(4000)
    assert np.abs(np.cov(moved.T) - np.eye(2)).max() < 4.5 * np.sqrt(2 / 4000)
    x, y = law.sample(rng), law.sample(rng)
    assert proposal.log_ratio(x, y) == pytest.approx(law.log_density(x) - law.log_density(y))
    assert proposal.log_ratio(x, y) == -proposal.log_ratio(y, x)
