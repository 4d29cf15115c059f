"""What holds for all kernels: chains run in threads, states keep their form, decisions can be audited."""

import copy
import pickle
from itertools import islice

import numba
import numpy as np
import pytest
from tests.kernels.clusters.mentions import pairs_of
from tests.kernels.laws import Cauchy
from tests.kernels.nested import Nested

import gumbelrace as gr
from gumbelrace.chain.kernel_data import fingerprints
from gumbelrace.chain.worker import flat
from gumbelrace.errors import InvalidArgument, InvalidGenerator, ShapeMismatch

MODEL = Cauchy(120, seed=1)
START = gr.kernels.Position(np.zeros(1))


def gibbs():
    rewards = np.random.default_rng(2).normal(0.0, 0.05, (120, 2, 3))
    return gr.Gibbs(lambda labels, variable: (gr.table(rewards[:, labels[1 - variable] % 2]), None), 2)


def langevin():
    return gr.Langevin(MODEL.likelihood, MODEL.gradient, size=120, batch=20, scale=0.1, adapt_for=3)


def carlin_chib():
    walk = gr.Metropolis(MODEL.likelihood, gr.kernels.RandomWalk(0.2), log_prior=MODEL.log_prior)
    models = [
        gr.kernels.Candidate(walk, gr.kernels.NormalPseudoprior([0.0], [[v]]), MODEL.log_prior)
        for v in (0.02, 0.04)
    ]
    return gr.CarlinChib(models, lambda points: MODEL.likelihood(np.array(points)), adapt_for=3)


NESTED = Nested(120)

KERNELS = {
    "Metropolis": (
        gr.Metropolis(MODEL.likelihood, gr.kernels.RandomWalk(0.2), log_prior=MODEL.log_prior),
        START,
    ),
    "Gibbs": (gibbs(), gr.kernels.Labels(np.array([0, 1], np.int8))),
    "Slice": (gr.Slice(MODEL.likelihood, 0.2), START),
    "Langevin": (langevin(), gr.kernels.LangevinState(np.zeros(1))),
    "CarlinChib": (carlin_chib(), carlin_chib().start(rng=np.random.default_rng(3))),
    "CarlinChib, compiled": (NESTED.kernel(gr.Race()), NESTED.kernel().start(rng=np.random.default_rng(3))),
}


@pytest.fixture(params=KERNELS)
def case(request):
    return KERNELS[request.param]


def run(case, seed, **options):
    return gr.run(*case, steps=8, rng=np.random.default_rng(seed), progress=False, **options)


def test_chains_in_threads_are_those_of_one_thread(case):
    together, first = run(case, 1, chains=3), run(case, 1, chains=1)
    for name in together.names:
        np.testing.assert_array_equal(together[name][0], first[name][0])
    assert (np.asarray(together.info.rewards) >= np.asarray(together.info.evaluations)).all()


def test_what_a_checkpoint_compares_does_not_change_while_a_chain_runs(case):
    before = fingerprints(case[0])
    run(case, 1)
    assert fingerprints(case[0]) == before


@pytest.mark.parametrize("name", ["GraphGibbs", "ClusterGibbs"])
def test_kernels_with_workspaces_of_their_own_can_be_copied_and_pickled(name):
    kernel = WITHOUT_A_PLACE[name]
    before = next(kernel.chain(rng=1))[0].labels
    copies = [copy.deepcopy(kernel)]
    if name == "GraphGibbs":  # the factor of the other is a function of this module's
        copies.append(pickle.loads(pickle.dumps(kernel)))
    for other in copies:
        np.testing.assert_array_equal(next(other.chain(rng=1))[0].labels, before)


def test_tuning_fields_are_fields(case):
    kernel, state = case
    assert kernel.tuning < set(state._fields)


def test_audit_finds_nothing_wrong_with_an_exact_method(case):
    kernel, state = case
    report = run((kernel.with_method(gr.Exact()), state), 2).audit(share=1.0, rng=np.random.default_rng(2))
    assert report.errors == 0
    assert report.draws > 0


@pytest.mark.parametrize("name", ["Metropolis", "Langevin"])
def test_method_changes_the_reading_and_not_the_proposal(name):
    """Of kernels that decide once a step: with no errors, any method gives the same step."""
    kernel, state = KERNELS[name]
    methods = gr.Exact(), gr.Betting(delta=1e-9)
    exact, careful = (kernel.with_method(s).step(np.random.default_rng(3), state)[0] for s in methods)
    np.testing.assert_array_equal(exact.position, careful.position)


def test_kernel_is_frozen(case):
    with pytest.raises(AttributeError):
        case[0].method = gr.Exact()


RING = np.roll(np.eye(6), 1, axis=1) + np.roll(np.eye(6), -1, axis=1)
WITHOUT_A_PLACE = {
    "Gibbs": gibbs(),
    "CarlinChib": carlin_chib(),
    "GraphGibbs": gr.GraphGibbs(RING, 3, gr.models.Potts()),
    "ClusterGibbs": gr.ClusterGibbs(pairs_of(1.0 - np.eye(6))),
}


@pytest.mark.parametrize("kernel", WITHOUT_A_PLACE.values(), ids=WITHOUT_A_PLACE)
def test_run_starts_by_itself(kernel):
    """Every chain from a start of its own, the same for the same seed, and as `chain` goes on."""
    trace = gr.run(kernel, steps=4, chains=2, rng=5, progress=False)
    again = gr.run(kernel, steps=4, chains=2, rng=np.random.default_rng(5), progress=False)
    steps = list(islice(kernel.chain(rng=np.random.default_rng(5).spawn(1)[0]), 4))
    for name in trace.names:
        np.testing.assert_array_equal(trace[name], again[name])
    for kept, made in zip(flat(trace.state(0, 3)), flat(steps[-1][0]), strict=True):
        np.testing.assert_array_equal(kept, made)
    assert trace.info.evaluations[0].tolist() == [info.evaluations for _, info in steps]


PLACED = ["Metropolis", "Slice", "Langevin"]


@pytest.mark.parametrize("name", PLACED)
def test_a_place_is_asked_for(name):
    kernel, state = KERNELS[name]
    with pytest.raises(InvalidArgument, match=f"{name} does not know where to start"):
        gr.run(kernel, steps=3, rng=0)
    started = kernel.start([0])
    assert started.position.dtype == np.float64
    made, known = next(kernel.chain(started, rng=0)), kernel.step(np.random.default_rng(0), state)
    assert (made[0].position, made[1]) == (known[0].position, known[1])


@numba.njit
def log_factor(n, theta, y):
    return -0.5 * (y[n] - theta[0]) ** 2


def test_the_centre_of_an_expansion_is_a_place():
    y = np.linspace(0.0, 1.0, 30)
    derivatives = -0.5 * (y - 0.4) ** 2, (y - 0.4)[:, None], -np.ones((30, 1, 1))
    taylor = gr.control_variates.stored_taylor(*derivatives, [0.4])
    kernel = gr.Metropolis(
        gr.likelihood(log_factor, (y,), 30).minus(taylor), gr.kernels.RandomWalk(0.1), method=gr.Exact()
    )
    assert kernel.start().position == [0.4]
    gr.run(kernel, steps=2, rng=0, progress=False)


def test_starts_are_checked():
    with pytest.raises(ShapeMismatch, match="each of 2 variables"):
        gibbs().start([0, 1, 2])
    with pytest.raises(InvalidArgument, match=r"0\.\.\.2"):
        WITHOUT_A_PLACE["GraphGibbs"].start([3] * 6)
    with pytest.raises(InvalidArgument, match=r"0\.\.\.5"):
        WITHOUT_A_PLACE["ClusterGibbs"].start([6] * 6)
    with pytest.raises(InvalidArgument, match="step"):
        langevin().start([0.0], step=0.0)
    assert langevin().start([0.0], step=2.0).log_step == np.log(2.0)


STARTS = {name: (kernel, [0.0]) for name, (kernel, _) in KERNELS.items() if name in PLACED} | {
    "Gibbs": (gibbs(), None),
    "ClusterGibbs": (WITHOUT_A_PLACE["ClusterGibbs"], None),
    "CarlinChib": (carlin_chib(), 0),
}


@pytest.mark.parametrize(("kernel", "place"), STARTS.values(), ids=STARTS)
@pytest.mark.parametrize("wrong", ["x", np.random.RandomState(0)])
def test_the_generator_of_a_start_is_checked(kernel, place, wrong):
    with pytest.raises(InvalidGenerator, match="rng=0"):
        kernel.start(place, rng=wrong)


def test_the_generator_of_a_chain_is_checked_before_its_first_step():
    with pytest.raises(InvalidGenerator, match="rng=0"):
        KERNELS["Metropolis"][0].chain(START, rng="x")


def test_reprs_show_no_data():
    y = np.linspace(0.0, 1.0, 30)
    likelihood = gr.likelihood(log_factor, (y,), 30)
    kernel = gr.Metropolis(likelihood, gr.kernels.RandomWalk(0.1), delta=0.01)
    assert "likelihood=Likelihood(size=30)" in repr(kernel)
    assert "method=default method (delta=0.01)" in repr(kernel)
    assert "pairs=Pairs(size=6, reward_range=" in repr(WITHOUT_A_PLACE["ClusterGibbs"])
    assert all("array([[" not in repr(kernel) for kernel, _ in KERNELS.values())


def test_a_likelihood_may_give_an_array():
    y = np.linspace(-1.0, 1.0, 100)

    def rewards(points):
        return -0.5 * (y[:, None] - points[:, 0]) ** 2

    tables, arrays = (
        gr.Slice(form, 0.5, method=gr.Exact()).step(np.random.default_rng(1), START)
        for form in (lambda points: gr.table(rewards(points)), rewards)
    )
    assert tables == arrays
    walk = gr.Metropolis(rewards, gr.kernels.RandomWalk(0.1), method=gr.Exact())
    assert walk.step(np.random.default_rng(1), START)[1].rewards == 200
    with pytest.raises(InvalidArgument, match="an array of shape"):
        gr.Slice(lambda points: 0.5, 0.5).step(np.random.default_rng(1), START)
