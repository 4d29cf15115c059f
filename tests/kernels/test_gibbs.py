"""Gibbs leaves its target invariant, and annealed it finds the best state. Oracle: enumeration.

The model: 3 variables with 3, 2 and 4 states; N rows, each a factor of all three.
False-alarm rate of each statistical test: 1e-4 over seeds.
"""

from itertools import product

import numpy as np
import pytest
from tests.kernels.laws import FALSE_ALARM, after, chain, tail

import gumbelrace as gr
from gumbelrace.errors import InvalidArgument, NoPossibleArm, ShapeMismatch

STATES = (3, 2, 4)
ALL = list(product(*map(range, STATES)))
SCANS = [gr.kernels.Systematic(), gr.kernels.Shuffled(), gr.kernels.RandomScan()]


class Model:
    """Log factors of shape (N, 3, 2, 4) and a log prior of the joint state."""

    def __init__(self, size, seed):
        rng = np.random.default_rng(seed)
        self.factors = rng.normal(0.0, 0.7 / np.sqrt(size), size=(size, *STATES))
        self.prior = rng.normal(0.0, 0.5, size=STATES)

    def conditional(self, labels, variable):
        index = [slice(None), *labels]
        index[1 + variable] = slice(None)
        return gr.table(self.factors[tuple(index)]), self.prior[tuple(index[1:])]

    def without_prior(self, labels, variable):
        return self.conditional(labels, variable)[0], None

    @property
    def log_p(self):
        return (self.factors.sum(axis=0) + self.prior).ravel()


def kernel_of(model, **options):
    return gr.Gibbs(options.pop("conditional", model.conditional), 3, **{"method": gr.Exact(), **options})


def p_of(model):
    p = np.exp(model.log_p - model.log_p.max())
    return p / p.sum()


def invariance(kernel, p, rng, replicates=600, steps=2, slack=0.0):
    """Tail probability of where replicates end that start from p."""
    starts = rng.choice(len(ALL), size=replicates, p=p)
    ends = [after(kernel, gr.kernels.Labels(np.array(ALL[start])), steps, rng).labels for start in starts]
    return tail(np.ravel_multi_index(np.transpose(ends), STATES), p, slack)


@pytest.mark.parametrize("scan", SCANS)
def test_leaves_the_target_invariant(scan):
    model = Model(100, seed=1)
    assert invariance(kernel_of(model, scan=scan), p_of(model), np.random.default_rng(0)) > FALSE_ALARM


@pytest.mark.parametrize("temperature", [2.0, 0.5])
def test_temperature_draws_from_a_power(temperature):
    """Noise times T leaves p^(1/T) invariant."""
    model = Model(100, seed=1)
    powered = p_of(model) ** (1.0 / temperature)
    kernel = kernel_of(model, annealing=gr.kernels.Constant(temperature))
    assert invariance(kernel, powered / powered.sum(), np.random.default_rng(1)) > FALSE_ALARM


@pytest.mark.parametrize("change", ["no prior", "temperature"])
def test_wrong_kernels_are_noticed(change):
    """Negative controls: the log prior left out, and a temperature of 0.5."""
    model = Model(100, seed=1)
    changes = {
        "no prior": {"conditional": model.without_prior},
        "temperature": {"annealing": lambda _: 0.5},
    }
    kernel = kernel_of(model, **changes[change])
    assert invariance(kernel, p_of(model), np.random.default_rng(0)) < FALSE_ALARM


@pytest.mark.parametrize("method", [gr.Race(gr.methods.Normal(), delta=1e-3), gr.Betting(delta=1e-3)])
def test_raced_draws_stay_within_delta(method):
    """6 draws of δ = 0.001 move the law by at most 0.006 (Race: if means are normal)."""
    model = Model(300, seed=2)
    kernel = kernel_of(model, method=method)
    assert invariance(kernel, p_of(model), np.random.default_rng(2), slack=6e-3) > FALSE_ALARM


def arrivals(method, annealing, sweeps):
    """From how many of the 24 states the best is found: it has worse ones around it."""
    model = Model(60, seed=3)
    model.prior[2, 0, 1] += 5.0
    kernel = kernel_of(model, annealing=annealing, scan=gr.kernels.Shuffled(), method=method)
    rng, best = np.random.default_rng(3), ALL[int(np.argmax(model.log_p))]
    ends = [after(kernel, gr.kernels.Labels(np.array(start)), sweeps, rng) for start in ALL]
    assert {end.sweep for end in ends} == {sweeps}
    return sum(tuple(end.labels) == best for end in ends)


@pytest.mark.parametrize("method", [gr.Exact(), gr.Betting(delta=1e-3)])
def test_annealing_finds_the_best_state(method):
    assert arrivals(method, gr.kernels.Geometric(start=1.5, ratio=0.95, zero_after=60), 62) >= 20


def test_greed_does_not_find_it():
    """Negative control: temperature 0 from the start ends in the nearest mode."""
    assert arrivals(gr.Exact(), gr.kernels.Constant(0.0), 10) < 12


def test_temperature_zero_takes_the_best_and_draws_no_noise():
    model = Model(50, seed=4)
    kernel = kernel_of(model, annealing=gr.kernels.Constant(0.0))
    rng, untouched = (np.random.default_rng(4) for _ in range(2))
    state, _ = kernel.step(rng, gr.kernels.Labels(np.zeros(3, int)))
    population, prior = model.conditional(state.labels, 2)
    assert state.labels[2] == gr.Exact().best(population, prior, rng).arm
    assert rng.random() == untouched.random()


def test_impossible_states_are_never_drawn():
    model = Model(50, seed=5)
    model.prior[0] = -np.inf
    kernel = kernel_of(model, method=gr.Betting())
    states = [state for state, _ in chain(kernel, gr.kernels.Labels(np.ones(3, int)), 50, seed=5)]
    assert all(state.labels[0] > 0 for state in states)


def test_equal_seeds_give_equal_chains_and_no_state_changes():
    kernel = kernel_of(Model(100, seed=6), scan=gr.kernels.RandomScan(), method=gr.Betting())
    start = gr.kernels.Labels(np.zeros(3, int))
    start.labels.setflags(write=False)
    first, second = (chain(kernel, start, 10, seed=6) for _ in range(2))
    for (state, info), (other, same) in zip(first, second, strict=True):
        np.testing.assert_array_equal(state.labels, other.labels)
        assert info == same
    assert not start.labels.any()


def test_info_counts_reads_and_changes():
    kernel = kernel_of(Model(100, seed=7))
    start = gr.kernels.Labels(np.zeros(3, int))
    state, info = kernel.step(np.random.default_rng(7), start)
    assert info.evaluations == info.rewards == 100 * sum(STATES)
    assert info.acceptance == np.mean(state.labels != start.labels)


def test_audit_counts_every_draw_of_the_sweep():
    kernel = kernel_of(Model(100, seed=8), method=gr.Betting())
    errors, decisions, *_ = kernel.audit(np.random.default_rng(8), gr.kernels.Labels(np.zeros(3, int)))
    assert (errors, decisions) == (0, 3)


def test_labels_given_to_the_conditional_are_read_only():
    def conditional(labels, variable):
        labels[0] = 1

    with pytest.raises(ValueError, match="read-only"):
        gr.Gibbs(conditional, 1).step(np.random.default_rng(0), gr.kernels.Labels(np.zeros(1, int)))


@pytest.mark.parametrize(
    ("options", "labels", "error", "message"),
    [
        ({}, np.zeros(2, int), ShapeMismatch, "each of 3 variables"),
        ({}, np.zeros(3), ShapeMismatch, "dtype float64"),
        ({"conditional": lambda *_: gr.table(np.zeros((2, 2)))}, [0, 0, 0], InvalidArgument, "log_prior"),
        (
            {"conditional": lambda *_: (gr.table(np.zeros((2, 2))), [-np.inf] * 2)},
            [0, 0, 0],
            NoPossibleArm,
            "every arm",
        ),
        ({"annealing": lambda sweep: -1.0}, [0, 0, 0], InvalidArgument, "temperature is -1"),
    ],
)
def test_errors_say_what_to_do(options, labels, error, message):
    kernel = kernel_of(Model(10, seed=9), **options)
    with pytest.raises(error, match=message):
        kernel.step(np.random.default_rng(9), gr.kernels.Labels(labels))


@pytest.mark.parametrize(
    "make",
    [
        lambda: gr.Gibbs(Model(10, 0).conditional, 0),
        lambda: gr.kernels.Geometric(start=-1.0),
        lambda: gr.kernels.Geometric(ratio=1.5),
        lambda: gr.kernels.Constant(np.nan),
    ],
)
def test_bad_options_are_errors(make):
    with pytest.raises(InvalidArgument):
        make()
