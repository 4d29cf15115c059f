"""Gibbs sampling on graphs, against enumeration of all states.

Many copies of a small graph make one large graph: after some sweeps each copy is an independent draw, so
that a chi-square test is exact. Every test of a law has a fixed seed and a false-alarm rate of 1e-4.
"""

import itertools
import math
import threading
from collections.abc import Callable

import numba
import numpy as np
import pytest
import scipy.sparse
from numpy.typing import NDArray
from scipy import stats

import gumbelrace as gr
from gumbelrace import errors
from gumbelrace.kernels.graph import layout as graph_layout
from gumbelrace.kernels.graph.heads import for_race
from gumbelrace.models.potts import gaussian_lattice
from gumbelrace.verdict import clopper_pearson

Floats = NDArray[np.float64]
ALARM = 1e-4
METHODS = [gr.Exact(), gr.Betting(), gr.Race(gr.methods.Normal()), gr.Race(gr.methods.Serfling())]


@numba.njit
def clock(label, other, weight):
    return weight * math.cos(2.0 * math.pi * (label - other) / 3.0)


@numba.njit
def anti_clock(label, other, weight):
    return -weight * math.cos(2.0 * math.pi * (label - other) / 3.0)


@numba.njit
def differ(label, other, weight):
    return -np.inf if label == other else 0.0


def forbidding(weights: Floats) -> tuple[Floats, Floats]:
    return np.full_like(weights, -np.inf), np.zeros_like(weights)


def random_weights(n: int, scale: float, seed: int) -> Floats:
    upper = np.triu(np.random.default_rng(seed).normal(0.0, scale, (n, n)), 1)
    return upper + upper.T


def log_p(weights: Floats, labels: int, phi: Callable[..., float], unary: Floats) -> Floats:
    """Log probability of every state, up to a constant, in the order of itertools.product."""
    n = len(weights)
    edges = [(i, j) for i in range(n) for j in range(i) if weights[i, j] != 0.0]
    return np.array(
        [
            sum(unary[i, x[i]] for i in range(n)) + sum(phi(x[i], x[j], weights[i, j]) for i, j in edges)
            for x in itertools.product(range(labels), repeat=n)
        ]
    )


def copies(weights: Floats, count: int) -> scipy.sparse.csr_array:
    return scipy.sparse.block_diag([scipy.sparse.csr_array(weights)] * count, format="csr")


def advanced(kernel: gr.GraphGibbs, sweeps: int, rng: np.random.Generator, state=None) -> gr.kernels.Labels:
    state = kernel.start(rng=rng) if state is None else state
    for _ in range(sweeps):
        state, _ = kernel.step(rng, state)
    return state


def p_value(draws: NDArray[np.int32], labels: int, log_probability: Floats) -> float:
    """Chi-square test of draws, one in each row; rare states are counted together."""
    p = np.exp(log_probability - log_probability.max())
    p /= p.sum()
    codes = draws @ labels ** np.arange(draws.shape[1])[::-1]
    observed, expected = np.bincount(codes, minlength=len(p)), p * len(draws)
    assert not observed[p == 0.0].any()
    rare = expected < 5.0
    if expected[rare].sum() > 5.0:
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    else:
        observed, expected = (
            observed[~rare],
            expected[~rare] / expected[~rare].sum() * observed[~rare].sum(),
        )
    return float(stats.chisquare(observed, expected).pvalue)


def ising_p_value(method, scan=None, potential=None, count: int = 4000) -> float:
    weights = random_weights(6, 0.5, seed=1)
    fields = np.random.default_rng(2).normal(0.0, 0.5, (6, 2))
    kernel = gr.GraphGibbs(
        copies(weights, count),
        2,
        potential or gr.models.Ising(),
        unary=np.tile(fields, (count, 1)),
        method=method,
        scan=scan or gr.kernels.Systematic(),
    )
    state = advanced(kernel, 40, np.random.default_rng(3))
    exact = log_p(weights, 2, lambda a, b, w: w if a == b else -w, fields)
    return p_value(state.labels.reshape(count, 6), 2, exact)


@pytest.mark.parametrize("scan", [gr.kernels.Systematic(), gr.kernels.RandomScan()])
@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_ising_spins_have_the_right_law(method, scan) -> None:
    assert ising_p_value(method, scan) > ALARM


def test_a_wrong_sign_is_noticed() -> None:
    @numba.njit
    def wrong(label, other, weight):
        return -weight if label == other else weight

    assert ising_p_value(gr.Betting(), potential=gr.models.Pairwise(wrong, 1.0)) < 1e-12


@pytest.mark.parametrize("method", METHODS[:3], ids=repr)
def test_potts_labels_have_the_right_law(method) -> None:
    weights = random_weights(4, 1.0, seed=4)
    kernel = gr.GraphGibbs(copies(weights, 4000), 3, gr.models.Potts(), method=method)
    state = advanced(kernel, 40, np.random.default_rng(5))
    exact = log_p(weights, 3, lambda a, b, w: w * (a == b), np.zeros((4, 3)))
    assert p_value(state.labels.reshape(-1, 4), 3, exact) > ALARM


@pytest.mark.parametrize("potential", [clock, gr.models.Pairwise(clock, 1.0)], ids=["bare", "bounded"])
def test_a_potential_of_the_users(potential) -> None:
    weights = random_weights(4, 1.0, seed=6)
    kernel = gr.GraphGibbs(copies(weights, 4000), 3, potential)
    assert isinstance(kernel.method, gr.Race if potential is clock else gr.Thinning)
    state = advanced(kernel, 40, np.random.default_rng(7))
    exact = log_p(weights, 3, clock.py_func, np.zeros((4, 3)))
    assert p_value(state.labels.reshape(-1, 4), 3, exact) > ALARM


@pytest.mark.parametrize(
    "potential", [differ, gr.models.Pairwise(differ, forbidding)], ids=["bare", "bounded"]
)
def test_hard_constraints(potential) -> None:
    """Proper colourings of a square with a diagonal are equally likely; four colours leave room to move."""
    edges = np.array([[0, 1, 1, 1], [1, 0, 1, 0], [1, 1, 0, 1], [1, 0, 1, 0]], dtype=np.float64)
    kernel = gr.GraphGibbs(copies(edges, 2000), 4, potential)
    start = gr.kernels.Labels(np.tile(np.array([0, 1, 2, 3], np.int32), 2000))
    state = advanced(kernel, 60, np.random.default_rng(8), start)
    exact = log_p(edges, 4, differ.py_func, np.zeros((4, 4)))
    assert p_value(state.labels.reshape(-1, 4), 4, exact) > ALARM


def test_no_label_left_is_an_error_that_names_the_variable() -> None:
    triangle = np.ones((3, 3)) - np.eye(3)
    kernel = gr.GraphGibbs(triangle, 2, gr.models.Pairwise(differ, forbidding))
    with pytest.raises(errors.NoPossibleArm, match="variable 0"):
        kernel.step(np.random.default_rng(0), gr.kernels.Labels(np.array([0, 0, 1])))


def test_isolated_variables_follow_their_unary_factors() -> None:
    p = np.array([0.5, 0.0, 0.2, 0.3])
    with np.errstate(divide="ignore"):
        kernel = gr.GraphGibbs(
            scipy.sparse.csr_array((20_000, 20_000)), 4, gr.models.Potts(), unary=np.log(p)
        )
    state, info = kernel.step(np.random.default_rng(9), kernel.start(rng=np.random.default_rng(9)))
    observed = np.bincount(state.labels, minlength=4)
    assert observed[1] == 0
    assert stats.chisquare(observed[p > 0], p[p > 0] * 20_000).pvalue > ALARM
    assert (info.evaluations, info.rewards) == (0, 0)


def curie_weiss(n: int, beta: float, count: int = 1) -> scipy.sparse.csr_array:
    return copies(beta / n * (np.ones((n, n)) - np.eye(n)), count)


@pytest.mark.parametrize("method", [gr.Betting(0.01), gr.Race(gr.methods.Normal(), 0.01)], ids=repr)
def test_races_on_equal_weights_keep_the_law(method) -> None:
    """The number of spins up has a known law; a z-test of its first two moments over 20 copies."""
    n, beta, count, sweeps = 200, 0.5, 20, 150
    kernel = gr.GraphGibbs(curie_weiss(n, beta, count), 2, gr.models.Ising(), method=method)
    assert not kernel._rules[1].heads.any()
    k = np.arange(n + 1)
    log_weight = -np.array([math.lgamma(i + 1) + math.lgamma(n - i + 1) for i in k])
    log_weight += beta / (2 * n) * (2 * k - n) ** 2
    p = np.exp(log_weight - log_weight.max())
    p /= p.sum()
    rng = np.random.default_rng(10)
    state, ups = advanced(kernel, 50, rng), np.empty((sweeps, count))
    for t in range(sweeps):
        state, info = kernel.step(rng, state)
        ups[t] = state.labels.reshape(count, n).sum(axis=1)
    assert info.evaluations < 0.8 * info.rewards
    # Twice 5e-5, from Student's law: means of copies are independent.
    for moment, exact in ((ups - n / 2, 0.0), ((ups - n / 2) ** 2, p @ (k - n / 2) ** 2)):
        assert stats.ttest_1samp(moment.mean(axis=0), exact).pvalue > ALARM / 2


def test_dense_potts_lattice_matches_exact_gibbs() -> None:
    """20x20, 10 labels, β = 4.6, γ = 1.5: energy and label counts of raced and exact chains."""
    weights = gaussian_lattice(20, 4.6, 1.5)
    kernel, means = gr.GraphGibbs(weights, 10, gr.models.Potts()), {}
    for name, method in (("raced", gr.Betting()), ("exact", gr.Exact())):
        means[name] = np.array([chain_means(kernel.with_method(method), weights, s) for s in range(6)])
    shift = means["raced"][:, :2] - means["exact"][:, :2]
    # Six chains of each, other seeds: Welch's test of agreement and concentration.
    assert np.abs(shift).max() > 0.0
    for statistic in range(2):
        raced, exact = means["raced"][:, statistic], means["exact"][:, statistic]
        assert stats.ttest_ind(raced, exact, equal_var=False).pvalue > ALARM / 3
    frequencies = means["raced"][:, 2:]
    z = (frequencies.mean(axis=0) - 0.1) / (frequencies.std(axis=0, ddof=1) / np.sqrt(6))
    assert np.all(2 * stats.t.sf(np.abs(z), 5) > ALARM / 30)


def chain_means(kernel: gr.GraphGibbs, weights, seed: int) -> Floats:
    """Mean energy of a chain, mean square of its label shares, and the shares."""
    rng = np.random.default_rng([seed, isinstance(kernel.method, gr.Exact)])
    state, rows, columns = advanced(kernel, 40, rng), *weights.nonzero()
    sums = np.zeros(12)
    for _ in range(100):
        state, _ = kernel.step(rng, state)
        shares = np.bincount(state.labels, minlength=10) / 400
        energy = 0.5 * weights.data[state.labels[rows] == state.labels[columns]].sum()
        sums += [energy, (shares**2).sum(), *shares]
    return sums / 100


def test_dense_potts_lattice_reads_little() -> None:
    kernel = gr.GraphGibbs(gaussian_lattice(20, 4.6, 1.5), 10, gr.models.Potts())
    rng = np.random.default_rng(0)
    _, info = kernel.step(rng, advanced(kernel, 20, rng))
    assert info.evaluations < 0.05 * info.rewards
    assert info.rewards == 10 * gaussian_lattice(20, 4.6, 1.5).nnz


def test_annealing_finds_the_ground_state() -> None:
    weights = random_weights(10, 1.0, seed=11)
    values = log_p(weights, 2, lambda a, b, w: w if a == b else -w, np.zeros((10, 2)))
    schedule = gr.kernels.Geometric(start=10.0, ratio=0.96, zero_after=100)
    kernel = gr.GraphGibbs(copies(weights, 30), 2, gr.models.Ising(), annealing=schedule)
    state = advanced(kernel, 105, np.random.default_rng(12))
    spins = 2 * state.labels.reshape(30, 10) - 1
    found = 0.5 * np.einsum("ci,ij,cj->c", spins, weights, spins)
    assert found.max() == pytest.approx(values.max())
    assert state.sweep == 105
    again, info = kernel.step(np.random.default_rng(13), state)
    assert np.array_equal(again.labels, state.labels)
    assert info.acceptance == 0.0


def test_a_temperature_scales_all_factors() -> None:
    weights = random_weights(4, 1.0, seed=14)
    kernel = gr.GraphGibbs(copies(weights, 4000), 2, gr.models.Ising(), annealing=lambda sweep: 2.0)
    state = advanced(kernel, 40, np.random.default_rng(15))
    exact = 0.5 * log_p(weights, 2, lambda a, b, w: w if a == b else -w, np.zeros((4, 2)))
    assert p_value(state.labels.reshape(-1, 4), 2, exact) > ALARM


@pytest.mark.parametrize("method", [gr.Betting(0.05), gr.Race(gr.methods.Normal(), 0.05)], ids=repr)
@pytest.mark.parametrize("weights", ["equal", "normal", "two sizes"])
def test_audit_keeps_the_promise(method, weights: str) -> None:
    """P(error) <= δ in every sweep: fails only if the errors' Clopper-Pearson interval lies above δ."""
    n, rng = 600, np.random.default_rng(16)
    matrix = {
        "equal": np.full((n, n), 2.0 / n),
        "normal": random_weights(n, 0.5 / n, seed=17),
        "two sizes": np.where(random_weights(n, 1.0, 18) > 2.5, 0.2, 1.0 / n),
    }[weights]
    np.fill_diagonal(matrix, 0.0)
    kernel = gr.GraphGibbs(matrix, 5, gr.models.Potts(), method=method)
    state = advanced(kernel, 5, rng)
    wrong, decisions = np.sum([kernel.audit(rng, state)[:2] for _ in range(5)], axis=0)
    assert decisions == 5 * n
    assert clopper_pearson(int(wrong), int(decisions), 1 - 2 * ALARM)[0] <= 0.05
    _, info = kernel.step(rng, state)
    assert info.evaluations < 0.7 * info.rewards


def test_audit_of_exact_finds_nothing() -> None:
    kernel = gr.GraphGibbs(curie_weiss(300, 2.0), 4, gr.models.Potts(), method=gr.Exact())
    rng = np.random.default_rng(19)
    assert kernel.audit(rng, kernel.start(rng=rng))[:2] == (0, 300)


def test_audit_counts_errors() -> None:
    """A race that promises next to nothing errs, and the audit says so; also beside what labels share."""
    plain, large = (
        gr.GraphGibbs(
            curie_weiss(2000, 2.0), 3, gr.models.Potts(), unary=np.full(3, shared), method=gr.Betting(0.9)
        )
        for shared in (0.0, 1e10)
    )
    state = plain.start(rng=np.random.default_rng(21))
    wrong = plain.audit(np.random.default_rng(22), state).errors
    assert wrong > 10
    # The noise itself is rounded there.
    assert large.audit(np.random.default_rng(22), state).errors == pytest.approx(wrong, abs=3)


def test_audit_does_not_change_the_draws() -> None:
    kernel = gr.GraphGibbs(curie_weiss(300, 2.0), 4, gr.models.Potts(), method=gr.Exact())
    state = kernel.start(rng=np.random.default_rng(22))
    plain, *_ = kernel._sweep(np.random.default_rng(23), state)
    audited, *_ = kernel._sweep(np.random.default_rng(23), state, np.random.default_rng(24))
    assert np.array_equal(plain, audited)


@pytest.mark.parametrize("scan", [gr.kernels.Systematic(), gr.kernels.RandomScan()])
def test_equal_seeds_give_equal_chains(scan) -> None:
    kernel = gr.GraphGibbs(curie_weiss(300, 2.0), 4, gr.models.Potts(), scan=scan)
    chains = [advanced(kernel, 5, np.random.default_rng(24)).labels for _ in range(2)]
    assert np.array_equal(*chains)
    assert not np.array_equal(chains[0], advanced(kernel, 5, np.random.default_rng(25)).labels)


def test_threads_share_a_kernel() -> None:
    kernel = gr.GraphGibbs(curie_weiss(300, 2.0), 4, gr.models.Potts())
    found: dict[int, NDArray[np.int32]] = {}

    def run(seed: int) -> None:
        found[seed] = advanced(kernel, 50, np.random.default_rng(seed)).labels

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed, labels in found.items():
        assert np.array_equal(labels, advanced(kernel, 50, np.random.default_rng(seed)).labels)


def test_a_step_changes_no_state() -> None:
    kernel = gr.GraphGibbs(curie_weiss(50, 0.1), 4, gr.models.Potts())
    state = kernel.start(rng=np.random.default_rng(26))
    before = state.labels.copy()
    after, info = kernel.step(np.random.default_rng(27), state)
    assert np.array_equal(state.labels, before)
    assert info.acceptance == np.mean(after.labels != before)
    assert (state.sweep, after.sweep) == (0, 1)


def test_the_layout_keeps_every_pair() -> None:
    weights = random_weights(100, 1.0, 28)
    weights[np.abs(weights) < 0.5] = 0.0
    layout = graph_layout.laid_out(weights, gr.models.Potts())
    rebuilt = np.zeros_like(weights)
    for i in range(100):
        at = slice(layout.starts[i], layout.starts[i + 1])
        rebuilt[i, layout.neighbours[at]] = layout.weights[at]
        assert np.all(np.diff(np.abs(layout.weights[at])) <= 0.0)
        assert layout.reach[i, 0] == pytest.approx(np.abs(weights[i]).sum())
    assert np.array_equal(rebuilt, weights)


def test_heads_are_as_long_as_the_weights_ask_for() -> None:
    def heads(weights) -> set[int]:
        return set(for_race(graph_layout.laid_out(weights, gr.models.Potts())).heads.tolist())

    assert heads(curie_weiss(2000, 1.0)) == {0}
    assert heads(curie_weiss(2000, 2000.0)) == {1999}  # every factor counts
    assert heads(curie_weiss(5, 1.0)) == {4}
    assert max(heads(gaussian_lattice(20, 4.6, 1.5))) <= 128


def test_dense_and_sparse_agree() -> None:
    weights = random_weights(50, 0.1, 29)
    labels = [
        advanced(gr.GraphGibbs(form, 3, gr.models.Potts()), 3, np.random.default_rng(30)).labels
        for form in (weights, scipy.sparse.coo_matrix(weights), scipy.sparse.csc_array(weights))
    ]
    assert np.array_equal(labels[0], labels[1])
    assert np.array_equal(labels[0], labels[2])


def test_another_method_shares_the_layout() -> None:
    kernel = gr.GraphGibbs(curie_weiss(50, 1.0), 3, gr.models.Potts())
    other = kernel.with_method(gr.Race())
    assert other._layout is kernel._layout
    assert isinstance(kernel.method, gr.Thinning)
    assert isinstance(other.method, gr.Race)


SQUARE = np.array([[0.0, 1.0], [1.0, 0.0]])


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"adjacency": np.ones((2, 3))}, errors.ShapeMismatch, "square"),
        ({"adjacency": "graph"}, errors.ShapeMismatch, "square"),
        ({"adjacency": np.zeros((0, 0))}, errors.InvalidArgument, "0 variables"),
        ({"adjacency": np.array([[0.0, 1.0], [2.0, 0.0]])}, errors.InvalidArgument, "symmetric"),
        ({"adjacency": np.array([[0.0, 1.0], [0.0, 0.0]])}, errors.InvalidArgument, "symmetric"),
        ({"adjacency": np.eye(2)}, errors.InvalidArgument, "variable 0 .* itself"),
        ({"adjacency": SQUARE * np.nan}, errors.InvalidArgument, "NaN"),
        ({"adjacency": SQUARE * 1j}, errors.InvalidArgument, "complex"),
        ({"labels": 0}, errors.InvalidArgument, "labels"),
        ({"labels": 2**31}, errors.InvalidArgument, "at most"),
        ({"potential": lambda a, b, w: w}, errors.InvalidArgument, "njit"),
        ({"potential": gr.models.Pairwise(clock, lambda w: (w[:1], w))}, errors.ShapeMismatch, "bounds"),
        ({"potential": gr.models.Pairwise(clock, lambda w: (w, w - 1))}, errors.InvalidArgument, "bounds"),
        ({"potential": clock, "method": gr.Betting()}, errors.UnknownRange, "Pairwise"),
        ({"method": gr.LilUCB()}, errors.InvalidArgument, "method"),
        ({"unary": np.zeros((3, 2))}, errors.ShapeMismatch, "unary"),
        ({"unary": np.full((2, 2), np.nan)}, errors.InvalidArgument, "NaN"),
        ({"unary": np.array([[0.0, 0.0], [-np.inf, -np.inf]])}, errors.InvalidArgument, "variable 1"),
    ],
)
def test_what_is_wrong_is_said(changes, error, words: str) -> None:
    arguments = {"adjacency": SQUARE, "labels": 2, "potential": gr.models.Potts(), **changes}
    with pytest.raises(error, match=words):
        gr.GraphGibbs(**arguments)


def test_nested_lists_are_an_adjacency() -> None:
    listed, dense = (gr.GraphGibbs(given, 2, gr.models.Potts()) for given in (SQUARE.tolist(), SQUARE))
    for found, wanted in zip(listed._layout, dense._layout, strict=True):
        np.testing.assert_array_equal(found, wanted)
    with pytest.raises(errors.ShapeMismatch, match="ragged"):
        gr.GraphGibbs([[0.0, 1.0], [1.0]], 2, gr.models.Potts())


def test_sizes_beyond_32_bits() -> None:
    with pytest.raises(errors.InvalidArgument, match="variables"):
        graph_layout.checked_adjacency(type("Huge", (), {"shape": (2**31, 2**31)})())


@pytest.mark.parametrize(
    ("labels", "error"),
    [
        (np.zeros(3, np.int32), errors.ShapeMismatch),
        (np.zeros(2), errors.InvalidArgument),
        (np.array([0, 2]), errors.InvalidArgument),
        (np.array([-1, 0]), errors.InvalidArgument),
    ],
)
def test_wrong_states(labels, error) -> None:
    kernel = gr.GraphGibbs(SQUARE, 2, gr.models.Potts())
    with pytest.raises(error):
        kernel.step(np.random.default_rng(0), gr.kernels.Labels(labels))


def test_wrong_temperatures_and_generators() -> None:
    kernel = gr.GraphGibbs(SQUARE, 2, gr.models.Potts(), annealing=lambda sweep: -1.0)
    state = gr.kernels.Labels(np.zeros(2, np.int32))
    with pytest.raises(errors.InvalidArgument, match="temperature is -1"):
        kernel.step(np.random.default_rng(0), state)
    with pytest.raises(errors.InvalidGenerator):
        gr.GraphGibbs(SQUARE, 2, gr.models.Potts()).step(0, state)


@pytest.mark.parametrize("scale", [2.0, np.inf, np.nan])
def test_factors_outside_their_bounds_are_named(scale: float) -> None:
    @numba.njit
    def factor(label, other, weight):
        return scale * weight

    kernel = gr.GraphGibbs(100 * SQUARE, 2, gr.models.Pairwise(factor, 1.0))
    error = errors.RewardOutOfRange if scale == 2.0 else errors.InvalidReward
    with pytest.raises(error, match=r"log_factor\(0, 1, 100\) of variable 0 and its neighbour 1"):
        kernel.step(np.random.default_rng(1), gr.kernels.Labels(np.array([0, 1])))


def test_a_bad_factor_of_the_head_is_named_though_there_is_a_tail() -> None:
    @numba.njit
    def factor(label, other, weight):
        return np.nan if weight > 0.5 else weight * (label == other)

    weights = np.full((400, 400), 1e-3)
    weights[0, 7] = weights[7, 0] = 1.0
    np.fill_diagonal(weights, 0.0)
    kernel = gr.GraphGibbs(weights, 2, factor)
    assert 0 < kernel._rules[1].heads[0] < 399
    with pytest.raises(errors.InvalidReward, match="of variable 0 and its neighbour 7"):
        kernel.step(np.random.default_rng(1), kernel.start(rng=np.random.default_rng(1)))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_failing_factor_is_an_error(capfd) -> None:
    @numba.njit
    def factor(label, other, weight):
        if weight > 0.0:
            raise ValueError("no")
        return 0.0

    kernel = gr.GraphGibbs(SQUARE, 2, factor)
    with pytest.raises(errors.FactorFailed, match="variable 0"):
        kernel.step(np.random.default_rng(1), gr.kernels.Labels(np.array([0, 1])))
    capfd.readouterr()


def test_tails_of_many_sizes_have_rules() -> None:
    """Degrees from 20 to 300: `Race` needs looks that fit each."""
    rng, n = np.random.default_rng(31), 320
    degree_like = np.triu(rng.random((n, n)) < np.linspace(0.05, 1.0, n), 1)
    weights = 0.002 * (degree_like + degree_like.T)
    kernel = gr.GraphGibbs(weights, 3, clock, method=gr.Race(first=4))
    rules = kernel._rules[0]
    tails = kernel._rules[1].tails
    assert rules.sizes[-1] >= tails.max()
    for size in tails[tails > 0].tolist():
        fitting = rules.sizes[np.searchsorted(rules.sizes, size)]
        assert size <= fitting <= 1.13 * size
    wrong, _ = np.sum([kernel.audit(rng, kernel.start(rng=rng))[:2] for _ in range(5)], axis=0)
    assert clopper_pearson(int(wrong), 5 * n, 1 - 2 * ALARM)[0] <= 0.05


@pytest.mark.parametrize("method", [gr.Betting(0.05), gr.Race(gr.methods.Normal(), 0.05)], ids=repr)
def test_where_heads_decide_the_chain_is_that_of_exact_gibbs(method: gr.Method) -> None:
    """On the 20 x 20 lattice nothing is left to chance but the noise, which is the same."""
    raced = gr.GraphGibbs(gaussian_lattice(20, 4.6, 1.5), 10, gr.models.Potts(), method=method)
    exact, rng = raced.with_method(gr.Exact()), np.random.default_rng
    ours = theirs = raced.start(rng=rng(0))
    one, other = rng(1), rng(1)
    for _ in range(40):
        ours, info = raced.step(one, ours)
        theirs, _ = exact.step(other, theirs)
        assert np.array_equal(ours.labels, theirs.labels)
    assert info.evaluations < 0.05 * info.rewards
