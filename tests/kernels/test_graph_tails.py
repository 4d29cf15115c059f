"""Neighbours that are not all read: absorbed, or heard when they ring. Laws against exact ones.

Many centres share neighbours whose labels are held by unary factors: given these, the centres are
independent, and their conditional law is known. Fixed seeds; a false-alarm rate of 1e-4 a test.
"""

import math
import warnings

import numba
import numpy as np
import pytest
from scipy import stats

import gumbelrace as gr
from gumbelrace import errors
from gumbelrace.kernels.graph import kernel as module
from gumbelrace.kernels.graph.heads import for_absorption, for_rings, room_of
from gumbelrace.kernels.graph.layout import laid_out
from gumbelrace.kernels.graph.sweep import add_up

ALARM = 1e-4
CENTRES, NEIGHBOURS, LABELS = 4000, 600, 3
METHODS = [gr.Absorb(), gr.Thinning()]
# The labels of the neighbours, few heavy ones and many light ones of either sign.
HELD = np.random.default_rng(0).choice(LABELS, NEIGHBOURS, p=[0.15, 0.7, 0.15])
WEIGHTS = np.random.default_rng(1).normal(0.003, 0.003, NEIGHBOURS)
WEIGHTS[:5] = [0.5, -0.4, 0.3, 0.3, -0.2]
UNARY = np.array([0.3, 0.0, -0.2])


@numba.njit
def near(label, other, weight):
    return weight * math.exp(-abs(label - other))


def conditional(phi, weights=WEIGHTS, temperature: float = 1.0):
    """The exact law of a centre."""
    terms = [[phi(a, b, w) for b, w in zip(HELD.tolist(), weights, strict=True)] for a in range(LABELS)]
    values = (UNARY + np.sum(terms, axis=1)) / temperature
    return np.exp(values) / np.exp(values).sum()


def kernel_of(method, potential, weights=WEIGHTS, temperature: float = 1.0) -> gr.GraphGibbs:
    n = CENTRES + NEIGHBOURS
    adjacency, unary = np.zeros((n, n)), np.full((n, LABELS), -np.inf)
    adjacency[:CENTRES, CENTRES:], adjacency[CENTRES:, :CENTRES] = weights, weights[:, None]
    unary[:CENTRES], unary[np.arange(CENTRES, n), HELD] = UNARY, 0.0
    annealing = gr.kernels.Constant(temperature)
    return gr.GraphGibbs(adjacency, LABELS, potential, unary=unary, method=method, annealing=annealing)


def counts(kernel: gr.GraphGibbs, sweeps: int = 6, seed: int = 2):
    """How often centres have each label in the end, and the share of factors that the last sweep read."""
    rng = np.random.default_rng(seed)
    state, centres = kernel.start(rng=rng), np.arange(CENTRES)
    for _ in range(sweeps):
        state, info = kernel.step(rng, state)
    return np.bincount(state.labels[centres], minlength=LABELS), info.evaluations / info.rewards


def p_value(found, law) -> float:
    return float(stats.chisquare(found, law * found.sum()).pvalue)


@pytest.mark.parametrize("temperature", [1.0, 0.5, 2.0])
@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_draws_of_a_label_have_the_right_law(method, temperature: float) -> None:
    """Oracle: the exact conditional law. Control: the law without the light neighbours is refused."""
    potts = gr.models.Potts()
    found, share = counts(kernel_of(method, potts, temperature=temperature))
    assert p_value(found, conditional(potts.log_factor, temperature=temperature)) > ALARM
    heavy = np.where(np.abs(WEIGHTS) > 0.1, WEIGHTS, 0.0)
    assert p_value(found, conditional(potts.log_factor, heavy, temperature)) < ALARM**2
    assert share < 0.5


@pytest.mark.parametrize(
    ("method", "potential"),
    [
        (gr.Absorb(), near),
        (gr.Absorb(), gr.models.Pairwise(near, 1.0)),
        (gr.Thinning(), gr.models.Pairwise(near, 1.0)),
    ],
    ids=["absorb, bare", "absorb, bounded", "thinning"],
)
def test_potentials_of_users_have_the_right_law(method, potential) -> None:
    found, _ = counts(kernel_of(method, potential))
    assert p_value(found, conditional(near)) > ALARM


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_without_noise_the_best_label_is_found(method) -> None:
    """At temperature 0 every centre has the best label, proved from as few factors as that takes."""
    potts = gr.models.Potts()
    found, share = counts(kernel_of(method, potts, temperature=0.0), sweeps=1)
    assert found.argmax() == conditional(potts.log_factor).argmax()
    assert (found.max(), share < 1.0) == (CENTRES, True)


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_equal_weights_keep_their_law(method) -> None:
    """Oracle: the law of the number of spins up. Student's test of two moments over 20 copies."""
    n, beta, copies, sweeps = 400, 0.5, 20, 60
    block = beta / n * (1.0 - np.eye(n))
    kernel = gr.GraphGibbs(np.kron(np.eye(copies), block), 2, gr.models.Ising(), method=method)
    k, rng = np.arange(n + 1), np.random.default_rng(3)
    log_weight = beta / (2 * n) * (2 * k - n) ** 2
    log_weight -= np.array([math.lgamma(i + 1) + math.lgamma(n - i + 1) for i in k])
    p = np.exp(log_weight - log_weight.max())
    p /= p.sum()
    state, ups = kernel.start(rng=rng), np.empty((sweeps, copies))
    for t in range(-20, sweeps):
        state, info = kernel.step(rng, state)
        if t >= 0:
            ups[t] = state.labels.reshape(copies, n).sum(axis=1)
    assert info.evaluations < 0.5 * info.rewards
    for moment, exact in ((ups - n / 2, 0.0), ((ups - n / 2) ** 2, p @ (k - n / 2) ** 2)):
        assert stats.ttest_1samp(moment.mean(axis=0), exact).pvalue > ALARM / 2
    assert stats.ttest_1samp(((ups - n / 2) ** 2).mean(axis=0), n / 4).pvalue < ALARM  # without couplings


def equal(n: int, beta: float):
    return laid_out(beta / n * (1.0 - np.eye(n)), gr.models.Potts())


def test_heads_where_neighbours_ring() -> None:
    assert set(for_rings(equal(1000, 2.0), 1.0).heads.tolist()) == {0}
    # Everything counts, or would if it were colder.
    assert set(for_rings(equal(1000, 2000.0), 1.0).heads.tolist()) == {999}
    assert set(for_rings(equal(1000, 2.0), 0.02).heads.tolist()) == {999}
    lattice = for_rings(laid_out(gr.models.potts.gaussian_lattice(20, 4.6, 1.5), gr.models.Potts()), 1.0)
    assert (lattice.heads.max() <= 16, lattice.tails.min() > 300) == (True, True)
    assert lattice.expected.max() < 20.0


def test_heads_where_neighbours_are_absorbed() -> None:
    rule = gr.Absorb().rule(gr.table(np.zeros((2, 3))))
    reading = for_absorption(equal(1000, 2.0), room_of(rule, 3, 1.0))
    assert (set(reading.heads.tolist()), set(reading.tails.tolist())) == ({0}, {999})
    assert set(for_absorption(equal(1000, 200.0), room_of(rule, 3, 1.0)).heads.tolist()) == {999}
    # Neighbours that change no law by more than the error are not read.
    reading = for_absorption(equal(1000, 1e-3), room_of(rule, 3, 1.0))
    assert (set(reading.heads.tolist()), set(reading.tails.tolist())) == ({0}, {0})


def test_factors_that_may_forbid_labels_are_heads() -> None:
    """Bounds down to -inf: only what has none may be left to chance."""

    def bounds(weights):
        return np.where(weights > 0.5, -np.inf, -weights), np.zeros_like(weights)

    weights = np.full((400, 400), 1e-4)
    weights[0, 5] = weights[5, 0] = 1.0
    np.fill_diagonal(weights, 0.0)
    layout = laid_out(weights, gr.models.Pairwise(near, bounds))
    rule = gr.Absorb().rule(gr.table(np.zeros((2, 3))))
    for reading in (for_rings(layout, 1.0), for_absorption(layout, room_of(rule, 3, 1.0))):
        assert (reading.heads[0], reading.heads[5], reading.heads[1]) == (8, 8, 0)


@pytest.mark.parametrize(
    ("method", "potential", "error", "words"),
    [
        (gr.Penalty(), gr.models.Potts(), errors.InvalidArgument, r"give Thinning\(\), Absorb\(\)"),
        (gr.Thinning(), near, errors.UnknownRange, "Thinning needs to know how large factors can be"),
    ],
)
def test_what_makes_no_sense_is_refused(method, potential, error, words: str) -> None:
    with pytest.raises(error, match=words):
        gr.GraphGibbs(1.0 - np.eye(3), 2, potential, method=method)


@pytest.mark.parametrize(("beta", "low", "high"), [(1e-3, 2.49e-4, 2.5e-4), (0.5, 1e-9, 0.01)])
def test_a_sweep_says_how_far_its_law_is_off(beta: float, low: float, high: float) -> None:
    """Of neighbours that are not read, tanh(R/4), R = 0.999 beta; of others, by what was read."""
    n = 1000
    weights = beta / n * (1.0 - np.eye(n))
    kernel = gr.GraphGibbs(weights, 2, gr.models.Potts(), method=gr.Absorb())
    rng = np.random.default_rng(5)
    _, info = kernel.step(rng, kernel.start(rng=rng))
    assert low < info.law_error < high
    _, exact = kernel.with_method(gr.Thinning()).step(rng, kernel.start(rng=rng))
    assert exact.law_error == 0.0


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_draws_that_find_no_winner_are_compared_in_law(method, monkeypatch) -> None:
    """Level 0.999: a false alarm once in 1,000 seeds. Negative control: the exact law is a flatter one."""
    weights = 1.0 / 300 * (1.0 - np.eye(300))
    kernel = gr.GraphGibbs(weights, 3, gr.models.Potts(), unary=[0.0, 0.5, 1.5], method=method)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace = gr.run(kernel, steps=100, rng=np.random.default_rng(1), progress=False)
    report = trace.audit(0.1, rng=np.random.default_rng(2), confidence=0.999)
    assert (report.law.of, report.law.states, report.bias) == ("draws of a chain", 80, ())
    assert not report.broken

    def flatter(plan, graph, workspace, i) -> None:
        add_up(plan, graph, workspace, i)
        workspace.values[:] *= 0.7

    monkeypatch.setattr(module, "add_up", flatter)
    assert trace.audit(0.1, rng=np.random.default_rng(2), confidence=0.999).broken


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_an_audit_without_noise_counts_errors(method) -> None:
    cold = gr.kernels.Constant(0.0)
    kernel = gr.GraphGibbs(1.0 - np.eye(3), 2, gr.models.Potts(), annealing=cold, method=method)
    assert kernel.audit(np.random.default_rng(0), kernel.start(rng=0))[:2] == (0, 3)


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_a_bad_factor_of_the_tail_is_named(method) -> None:
    @numba.njit
    def factor(label, other, weight):
        return 2.0 * weight

    kernel = gr.GraphGibbs(1e-3 * (1.0 - np.eye(600)), 3, gr.models.Pairwise(factor, 1.0), method=method)
    with pytest.raises(errors.RewardOutOfRange, match=r"log_factor\(., ., 0.001\) of variable"):
        kernel.step(np.random.default_rng(1), kernel.start(rng=1))


def test_a_factor_beyond_its_own_bounds_is_named_though_others_reach_further() -> None:
    """Of weights of either sign, ±w is what some factor may be, but spans more than its own may."""
    signs = np.sign(np.random.default_rng(5).normal(size=(600, 600)))
    weights = 1e-3 * (np.triu(signs, 1) + np.triu(signs, 1).T)
    potential = gr.models.Pairwise(gr.models.Ising().log_factor, gr.models.Potts().bounds)
    kernel = gr.GraphGibbs(weights, 3, potential)
    with pytest.raises(errors.RewardOutOfRange, match="outside the potential's bounds"):
        kernel.step(np.random.default_rng(1), kernel.start(rng=1))
