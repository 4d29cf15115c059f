"""Metropolis in compiled calls: the same chain whatever is Python, and however it is cut."""

import math
import threading

import numba
import numpy as np
import pytest

import gumbelrace as gr
from gumbelrace.models import logistic

SIZE, D = 3000, 3
METHODS = [
    gr.Exact(),
    gr.Race(first=8),
    gr.Race(gr.methods.Normal(), variance=gr.methods.Marginal()),
    gr.Betting(0.1),
]


@numba.njit
def log_prior(theta):
    return -0.5 * np.sum(theta * theta)


def python_prior(theta):
    return -0.5 * np.sum(theta * theta)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(SIZE, D))
    y = (rng.random(SIZE) < 1 / (1 + np.exp(-x @ [0.5, -0.3, 0.1]))).astype(float)
    mode, hessian = logistic.mode(x, y, 1.0)
    factor = np.linalg.cholesky(np.linalg.inv(-hessian))
    return x, y, mode, factor


def target(problem, control, outliers=0.0):
    x, y, mode, factor = problem
    raw = gr.likelihood(logistic.log_factor, (x, y), SIZE, reward_range=(-10.0, 0.0))
    if control == 0:
        return raw
    metric = np.linalg.inv(factor)
    bounds = logistic.remainder(x, metric) if control == 2 else None
    return raw.minus(
        gr.parameter_taylor(
            logistic.terms, (x, y), SIZE, mode, control, remainder=bounds, metric=metric, outliers=outliers
        )
    )


class Walk:
    """The random walk, as a user would write it."""

    def __init__(self, factor):
        self.factor = factor

    def propose(self, rng, x):
        return x + self.factor @ rng.standard_normal(len(x))

    def log_ratio(self, x, proposed):
        return 0.0


def kernels(problem, method, control, outliers=0.0):
    """The same kernel, compiled, with a prior in Python, and with everything in Python."""
    likelihood, factor = target(problem, control, outliers), 0.9 * problem[3]
    walk = gr.kernels.RandomWalk(factor)
    return [
        gr.Metropolis(likelihood, walk, log_prior=log_prior, method=method),
        gr.Metropolis(likelihood, walk, log_prior=python_prior, method=method),
        gr.Metropolis(
            lambda points: likelihood(points), Walk(factor), log_prior=python_prior, method=method
        ),
    ]


def chain(kernel, start, steps, seed=1):
    return gr.run(
        kernel, gr.kernels.Position(start), steps=steps, rng=np.random.default_rng(seed), progress=False
    )


@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize(("control", "outliers"), [(0, 0.0), (1, 0.0), (2, 0.0), (2, 0.02)])
def test_the_same_chain_whatever_is_python(problem, method, control, outliers):
    if control == 1 and method.needs_range:
        pytest.skip("no remainder is given at first order")
    compiled, *others = kernels(problem, method, control, outliers)
    assert [kernel.is_compiled for kernel in (compiled, *others)] == [True, False, False]
    ours = chain(compiled, problem[2], 60)
    for kernel in others:
        theirs = chain(kernel, problem[2], 60)
        np.testing.assert_allclose(ours["position"], theirs["position"], rtol=1e-12, atol=1e-14)
        for name in ("evaluations", "rewards", "looks", "acceptance"):
            np.testing.assert_array_equal(getattr(ours.info, name), getattr(theirs.info, name))
    assert 0.1 < ours.acceptance < 0.9


def test_control_variates_change_the_cost_and_not_the_chain(problem):
    exact = chain(kernels(problem, gr.Exact(), 0)[0], problem[2], 200)
    known = chain(kernels(problem, gr.Exact(), 2, 0.02)[0], problem[2], 200)
    raced = chain(kernels(problem, gr.Betting(1e-6), 2)[0], problem[2], 200)
    np.testing.assert_allclose(known["position"], exact["position"], atol=1e-12)
    assert known.fraction == 1.0
    assert raced.fraction < 0.5


def test_calls_of_any_length_give_the_same_chain(problem):
    kernel, *_ = kernels(problem, gr.Race(first=8), 2)
    whole = kernel.steps(np.random.default_rng(3), gr.kernels.Position(problem[2]), 50)
    rng, state = np.random.default_rng(3), gr.kernels.Position(problem[2])
    for t in range(50):
        state, info = kernel.step(rng, state)
        np.testing.assert_array_equal(state.position, whole.states.position[t])
        assert info.evaluations == whole.info.evaluations[t]


@pytest.mark.parametrize(("warmup", "thin"), [(0, 3), (7, 1), (5, 4)])
def test_warm_up_and_thinning_pick_from_the_same_chain(problem, warmup, thin):
    kernel, *_ = kernels(problem, gr.Race(first=8), 2)
    start, rng = gr.kernels.Position(problem[2]), np.random.default_rng
    whole = gr.run(kernel, start, steps=60, rng=rng(3), progress=False)
    some = gr.run(kernel, start, steps=48, rng=rng(3), progress=False, warmup=warmup, thin=thin)
    picked = slice(warmup + thin - 1, warmup + 48, thin)
    np.testing.assert_array_equal(some["position"][0], whole["position"][0, picked])
    kept = whole.info.evaluations[0, warmup : warmup + 48].reshape(-1, thin).sum(axis=1)
    np.testing.assert_array_equal(some.info.evaluations[0], kept)


def test_threads_do_not_share_their_points(problem):
    kernel, *_ = kernels(problem, gr.Race(first=8), 2)
    together = gr.run(kernel, gr.kernels.Position(problem[2]), steps=300, rng=4, chains=3, progress=False)
    for k, rng in enumerate(np.random.default_rng(4).spawn(3)):
        alone = kernel.steps(rng, gr.kernels.Position(problem[2]), 300)
        np.testing.assert_array_equal(together["position"][k], alone.states.position)
    assert threading.active_count() < 50


def test_states_are_not_changed(problem):
    kernel, *_ = kernels(problem, gr.Race(first=8), 2)
    start = problem[2].copy()
    rng, state = np.random.default_rng(0), gr.kernels.Position(start)
    seen = []
    for _ in range(20):
        state, _ = kernel.step(rng, state)
        seen.append((state.position, state.position.copy()))
    np.testing.assert_array_equal(start, problem[2])
    for kept, copy in seen:
        np.testing.assert_array_equal(kept, copy)


@numba.njit
def half_line(theta):
    return 0.0 if theta[0] > 0.5 else -np.inf


def test_impossible_proposals_are_rejected_unread(problem):
    likelihood, start = target(problem, 2), problem[2] + 0.5
    kernel = gr.Metropolis(likelihood, gr.kernels.RandomWalk(0.5), log_prior=half_line, method=gr.Betting())
    block = kernel.steps(np.random.default_rng(0), gr.kernels.Position(start), 300)
    assert (block.states.position[:, 0] > 0.5).all()
    assert (block.info.evaluations == 0).sum() > 50


def test_a_start_without_probability_is_refused(problem):
    kernel = gr.Metropolis(
        target(problem, 2), gr.kernels.RandomWalk(0.1), log_prior=half_line, method=gr.Betting()
    )
    with pytest.raises(gr.errors.InvalidArgument, match="start where it is finite"):
        kernel.step(np.random.default_rng(0), gr.kernels.Position(np.zeros(D)))


@numba.njit
def scale_factor(n, theta, y):
    """The log density of a normal variable with standard deviation θ: there is none at θ ≤ 0."""
    return -0.5 * (y[n] / theta[0]) ** 2 - math.log(theta[0])


@numba.njit
def scale_terms(n, centre, direction, y):
    z, s, t = (y[n] / centre[0]) ** 2, centre[0], direction[0]
    return -0.5 * z - math.log(s), (z - 1.0) / s * t, (1.0 - 3.0 * z) / (s * s) * t * t


@numba.njit
def positive(theta):
    return 0.0 if theta[0] > 0.0 else -np.inf


def scales(prior, width):
    """Give a kernel on a scale, of which 2 of 20 rows are the head."""
    y = np.random.default_rng(2).normal(size=20)
    centre = np.sqrt(np.mean(y**2))
    taylor = gr.parameter_taylor(scale_terms, (y,), 20, [centre], remainder=1e9 * y**2, outliers=0.1)
    likelihood = gr.likelihood(scale_factor, (y,), 20).minus(taylor)
    return gr.Metropolis(
        likelihood, gr.kernels.RandomWalk(width), log_prior=prior, method=gr.Exact()
    ), gr.kernels.Position([centre])


def test_a_factor_need_not_exist_where_the_prior_rules_it_out():
    """Neither before the walk starts, at θ = 0, nor at proposals below it: those are rejected unread."""
    kernel, start = scales(positive, 3.0)
    block = kernel.steps(np.random.default_rng(0), start, 200)
    assert (block.states.position > 0.0).all()
    assert set(block.info.evaluations.tolist()) == {0, 40}
    assert set(block.info.rewards.tolist()) == {0, 40}


def test_a_factor_without_a_value_at_a_possible_point_is_named():
    kernel, start = scales(None, 3.0)
    with pytest.raises(gr.errors.InvalidArgument, match="read every time"):
        kernel.steps(np.random.default_rng(0), start, 200)


@numba.njit
def broken(theta):
    return np.sqrt(1.0 - 100.0 * theta[0])


def test_a_prior_of_nan_is_named(problem):
    kernel = gr.Metropolis(
        target(problem, 2), gr.kernels.RandomWalk(1.0), log_prior=broken, method=gr.Race()
    )
    with pytest.raises(gr.errors.InvalidArgument, match="NaN"):
        kernel.steps(np.random.default_rng(0), gr.kernels.Position(np.full(D, -1.0)), 1000)


def test_a_remainder_that_is_too_small_is_found_out(problem):
    x, y, mode, factor = problem
    bounds = 1e-4 * logistic.remainder(x, np.linalg.inv(factor))
    taylor = gr.parameter_taylor(
        logistic.terms, (x, y), SIZE, mode, remainder=bounds, metric=np.linalg.inv(factor)
    )
    likelihood = gr.likelihood(logistic.log_factor, (x, y), SIZE).minus(taylor)
    kernel = gr.Metropolis(
        likelihood, gr.kernels.RandomWalk(factor), log_prior=log_prior, method=gr.Exact()
    )
    with pytest.raises(gr.errors.RewardOutOfRange):
        kernel.steps(np.random.default_rng(0), gr.kernels.Position(mode + factor @ np.ones(D)), 10)


def test_audit_checks_decisions(problem):
    kernel, *_ = kernels(problem, gr.Race(first=8), 2)
    errors, decisions, *_ = kernel.audit(np.random.default_rng(0), gr.kernels.Position(problem[2]))
    assert (errors, decisions) == (0, 1)


class InPython:
    """A proposal of which compiled code knows nothing."""

    def __init__(self, proposal):
        self.propose, self.log_ratio = proposal.propose, proposal.log_ratio


NEAR = gr.kernels.NormalPseudoprior([0.5, -0.2, 0.2], 0.002 * (np.eye(D) + 0.5))


@pytest.mark.parametrize(
    "proposal",
    [gr.kernels.LogWalk(0.1), gr.kernels.Autoregressive(NEAR, 0.4), gr.kernels.StudentT(NEAR, 4.0, 1.3)],
    ids=lambda proposal: type(proposal).__name__,
)
def test_proposals_are_the_same_in_compiled_code_and_in_python(problem, proposal):
    likelihood, start = target(problem, 2), np.array([0.5, 0.1, 0.1])
    compiled, other = (
        gr.Metropolis(likelihood, given, log_prior=log_prior, method=gr.Exact())
        for given in (proposal, InPython(proposal))
    )
    assert [compiled.is_compiled, other.is_compiled] == [True, False]
    ours, theirs = chain(compiled, start, 60), chain(other, start, 60)
    np.testing.assert_allclose(ours["position"], theirs["position"], rtol=1e-10)
    assert 0.1 < ours.acceptance < 0.95


@pytest.mark.parametrize("warmup", [0, 3])
@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_a_start_of_any_real_dtype_is_one_in_double_precision(problem, dtype, warmup):
    """No draw is rounded to what the start is made of, on either path."""
    for kernel in kernels(problem, gr.Race(first=8), 0):
        given, right = (
            gr.run(
                kernel,
                gr.kernels.Position(start),
                steps=40,
                rng=np.random.default_rng(1),
                progress=False,
                warmup=warmup,
            )
            for start in (np.array([1, 0, 0], dtype), np.array([1.0, 0.0, 0.0]))
        )
        assert given["position"].dtype == np.float64
        np.testing.assert_array_equal(given["position"], right["position"])
        assert len(np.unique(right["position"])) > 10


@numba.njit
def shared_factor(n, theta, size):
    return size if n == 0 else -0.5 * (n - 10.0 * theta[0]) ** 2


@numba.njit
def shared_terms(n, centre, direction, size):
    z, t = n - 10.0 * centre[0], 0.0 if n == 0 else 10.0 * direction[0]
    return size if n == 0 else -0.5 * z * z, z * t, -t * t


def test_a_huge_row_that_points_share_does_not_drown_what_decides():
    """Two rows are the head, and the first, of 2^60, is shared: the chain is that without it."""
    blocks = []
    for size in (0.0, 2.0**60):
        bounds = np.r_[1.0, 1.0, np.zeros(18)]
        taylor = gr.parameter_taylor(
            shared_terms, (size,), 20, [0.95], remainder=bounds, outliers=0.1, metric=[[0.1]]
        )
        likelihood = gr.likelihood(shared_factor, (size,), 20).minus(taylor)
        kernel = gr.Metropolis(likelihood, gr.kernels.RandomWalk(0.02), method=gr.Exact())
        blocks.append(kernel.steps(np.random.default_rng(5), gr.kernels.Position([0.95]), 200))
    np.testing.assert_array_equal(blocks[0].states.position, blocks[1].states.position)


class Stop(Exception):
    """What a user's function raises."""


def raising(after, error):
    """Give a function that raises an exception when it is called once too often."""
    calls = iter(range(after))

    def called(*_):
        if next(calls, None) is None:
            raise error
        return 0.0

    return called


@pytest.mark.parametrize("error", [Stop("enough"), KeyboardInterrupt()])
@pytest.mark.parametrize("where", ["prior", "proposal", "ratio", "likelihood"])
def test_exceptions_of_python_arrive_unchanged(problem, where, error):
    likelihood, walk = target(problem, 2), Walk(0.9 * problem[3])
    call, prior = raising(7, error), None
    if where == "prior":
        prior = call
    elif where == "proposal":
        walk.propose = lambda rng, x: x + call()
    elif where == "ratio":
        walk.log_ratio = call
    given = likelihood if where != "likelihood" else lambda points: call() or likelihood(points)
    kernel = gr.Metropolis(given, walk, log_prior=prior, method=gr.Race(first=8))
    with pytest.raises(type(error)) as found:
        kernel.steps(np.random.default_rng(0), gr.kernels.Position(problem[2]), 50)
    assert found.value is error
    kernel = gr.Metropolis(
        likelihood, walk if where == "likelihood" else Walk(problem[3]), method=gr.Race()
    )
    # The generator's lock is free.
    kernel.steps(np.random.default_rng(0), gr.kernels.Position(problem[2]), 5)


def test_a_fused_residual_changes_nothing_but_the_time(problem):
    x, y, mode, factor = problem
    stored = logistic.at_centre(mode, x, y)
    raw, metric = gr.likelihood(logistic.log_factor, (x, y), SIZE), np.linalg.inv(factor)
    bounds = logistic.remainder(x, metric)
    chains = []
    for terms, data, residual in (
        (logistic.terms, (x, y), None),
        (logistic.terms, (x, y), logistic.residual),
        (logistic.stored_terms, (x, stored), logistic.stored_residual),
    ):
        taylor = gr.parameter_taylor(
            terms, data, SIZE, mode, remainder=bounds, metric=metric, outliers=0.02
        )
        taylor = taylor if residual is None else taylor.with_residual(residual)
        kernel = gr.Metropolis(
            raw.minus(taylor), gr.kernels.RandomWalk(factor), log_prior=log_prior, method=gr.Race(first=8)
        )
        chains.append(chain(kernel, mode, 100))
    for fused in chains[1:]:
        np.testing.assert_array_equal(fused["position"], chains[0]["position"])
        np.testing.assert_array_equal(fused.info.evaluations, chains[0].info.evaluations)


def test_a_wrong_residual_is_refused(problem):
    x, y, mode, _ = problem
    taylor = gr.parameter_taylor(logistic.terms, (x, y), SIZE, mode).with_residual(half_of_it)
    with pytest.raises(gr.errors.InvalidArgument, match="residual is not log_factor less its expansion"):
        gr.likelihood(logistic.log_factor, (x, y), SIZE).minus(taylor)


@numba.njit
def half_of_it(n, centre, direction, x, y):
    return 0.5 * logistic.residual(n, centre, direction, x, y)


@pytest.mark.parametrize("ratio", [None, np.nan, np.inf, np.zeros(1)])
def test_a_log_ratio_that_is_no_number_is_refused(problem, ratio):
    walk = Walk(problem[3])
    walk.log_ratio = lambda x, proposed: ratio
    kernel = gr.Metropolis(target(problem, 2), walk, method=gr.Race())
    with pytest.raises(gr.errors.InvalidArgument, match="log_ratio gave"):
        kernel.steps(np.random.default_rng(0), gr.kernels.Position(problem[2]), 5)
