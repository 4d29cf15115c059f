"""What kernels are made of is checked when they are made, and their states when they step."""

import numba
import numpy as np
import pytest
from tests.common import seeded

import gumbelrace as gr
from gumbelrace.errors import InvalidArgument, ShapeMismatch

Y = seeded(1).normal(size=50)
RING = np.roll(np.eye(4), 1, axis=1) + np.roll(np.eye(4), -1, axis=1)
TWO_LABELS = np.zeros((2, 2))
OF_TWO_LABELS = numba.njit(lambda a, b, w: w * TWO_LABELS[a, b])
OF_TWO_NUMBERS = numba.njit(lambda x: -(x[1] ** 2))
LAW = gr.kernels.NormalPseudoprior([0.0], [[1.0]])


def likelihood(points):
    return gr.table(-0.5 * (Y[:, None] - np.asarray(points)[:, 0]) ** 2)


def conditional(labels, variable):
    return gr.table(np.zeros((5, 2))), None


FACTOR = numba.njit(lambda n, theta, y: -0.5 * (y[n] - theta[0]) ** 2)


def metropolis(**more):
    return gr.Metropolis(likelihood, gr.kernels.RandomWalk(0.1), **more)


def candidate(**more):
    given = {"kernel": metropolis(), "pseudoprior": LAW, "log_prior": lambda x: 0.0}
    return gr.kernels.Candidate(**(given | more))


MADE = {
    "number as proposal": (
        lambda: gr.Metropolis(likelihood, 0.01),
        r"write gumbelrace.kernels.RandomWalk\(0.01\)",
    ),
    "class as proposal": (lambda: gr.Metropolis(likelihood, gr.kernels.RandomWalk), r"RandomWalk\(scale\)"),
    "array as likelihood": (
        lambda: gr.Metropolis(Y, gr.kernels.RandomWalk(0.1)),
        "likelihood is a ndarray",
    ),
    "text as method": (lambda: metropolis(method="race"), "gumbelrace.Race"),
    "class as method": (lambda: gr.Slice(likelihood, 0.1, method=gr.Race), r"write Race\(\)"),
    "number as log prior": (lambda: metropolis(log_prior=0.5), "log_prior is a float"),
    "compiled log prior": (lambda: metropolis(log_prior=numba.njit(lambda x: x)), "real number"),
    "class as directions": (
        lambda: gr.Slice(likelihood, 0.1, directions=gr.kernels.RandomDirection),
        "directions",
    ),
    "no gradient": (lambda: gr.Langevin(likelihood, None, size=50, batch=10), "gradient"),
    "no conditional": (lambda: gr.Gibbs(3, 2), "conditional"),
    "class as scan": (
        lambda: gr.Gibbs(conditional, 2, scan=gr.kernels.Shuffled),
        r"gumbelrace.kernels.Shuffled\(\)",
    ),
    "number as annealing": (lambda: gr.Gibbs(conditional, 2, annealing=0.5), "gumbelrace.kernels.Constant"),
    "scan of a graph": (
        lambda: gr.GraphGibbs(RING, 2, gr.models.Potts(), scan=gr.kernels.Shuffled),
        "Shuffled",
    ),
    "potential": (lambda: gr.GraphGibbs(RING, 2, numba.njit(lambda a, b, w: None)), "a return is missing"),
    "masked adjacency": (
        lambda: gr.GraphGibbs(np.ma.masked_equal(RING, 1), 2, gr.models.Potts()),
        "masked",
    ),
    "text as temperature": (lambda: gr.kernels.Constant("a"), "temperature is 'a'"),
    "text as ratio": (lambda: gr.kernels.Geometric(ratio="a"), "ratio is 'a'"),
    "no pairs": (lambda: gr.ClusterGibbs(None), "gumbelrace.pairs"),
    "no trace": (lambda: gr.log_evidence(None), "trace is a NoneType"),
    "class as control": (
        lambda: gr.likelihood(FACTOR, (Y,), 50).minus(gr.control_variates.ParameterTaylor),
        "_taylor",
    ),
    "kernel as model": (lambda: gr.CarlinChib([metropolis()], likelihood), r"list of Candidate"),
    "likelihood of models": (lambda: gr.CarlinChib([candidate()], Y), "likelihood is a ndarray"),
    "kernel of a model": (lambda: candidate(kernel=likelihood), "give a kernel"),
    "log prior of a model": (lambda: candidate(log_prior=None), "log_prior is a NoneType"),
    "law of a walk": (lambda: gr.kernels.Autoregressive(3.0), "NormalPseudoprior"),
    "kernel of a run": (
        lambda: gr.run(gr.Metropolis, gr.kernels.Position(Y), steps=3, rng=seeded()),
        "give a kernel",
    ),
    "state of a run": (
        lambda: gr.run(metropolis(), np.zeros(2), steps=3, rng=seeded()),
        r"give kernel.start",
    ),
}


@pytest.mark.parametrize("case", MADE)
def test_wrong_part_is_named(case):
    make, message = MADE[case]
    with pytest.raises(InvalidArgument, match=message):
        make()


@pytest.mark.parametrize(
    ("kernel", "state", "kind"),
    [
        (metropolis(), np.zeros(1), "Position"),
        (metropolis(), gr.kernels.Labels(np.zeros(1, int)), "Position"),
        (gr.Slice(likelihood, 0.1), np.zeros(1), "Position"),
        (
            gr.Langevin(likelihood, lambda i, x: x, size=50, batch=5),
            gr.kernels.Position(np.zeros(1)),
            "LangevinState",
        ),
        (gr.Gibbs(conditional, 2), np.zeros(2, int), "Labels"),
        (gr.GraphGibbs(RING, 2, gr.models.Potts()), np.zeros(4, int), "Labels"),
        (gr.CarlinChib([candidate()], likelihood), gr.kernels.Position(np.zeros(1)), "ModelChoice"),
    ],
)
def test_wrong_state_is_named(kernel, state, kind):
    with pytest.raises(InvalidArgument, match=f"give a {kind}, as kernel.start"):
        kernel.step(seeded(), state)


@pytest.mark.parametrize(
    "given", [lambda x: x, lambda x: None, lambda x: "0", lambda x: 1j, lambda x: np.ma.masked]
)
def test_log_prior_must_give_one_number(given):
    for kernel in (metropolis(log_prior=given), gr.Slice(likelihood, 0.1, log_prior=given)):
        with pytest.raises(InvalidArgument, match="one real number"):
            kernel.step(seeded(), gr.kernels.Position(np.zeros(1)))
    number = metropolis(log_prior=lambda x: np.array(-0.5))
    assert len(number.step(seeded(), gr.kernels.Position(np.zeros(1)))[0].position) == 1


@pytest.mark.parametrize("given", [likelihood, gr.likelihood(FACTOR, (Y,), 50)], ids=["plain", "compiled"])
def test_log_prior_that_reads_beyond_the_point_is_refused(given):
    kernel = gr.Metropolis(given, gr.kernels.RandomWalk(0.1), log_prior=OF_TWO_NUMBERS)
    with pytest.raises(ShapeMismatch, match=r"log_prior reads beyond x, of shape \(1,\): the index"):
        kernel.step(seeded(), gr.kernels.Position(np.zeros(1)))


def test_log_prior_of_models_that_reads_beyond_their_parameters_is_refused():
    kernel = gr.CarlinChib([candidate(log_prior=OF_TWO_NUMBERS)], likelihood)
    with pytest.raises(ShapeMismatch, match="log_prior reads beyond x"):
        kernel.step(seeded(), kernel.start(rng=seeded()))


def test_potential_that_reads_beyond_its_array_is_refused():
    for potential in (OF_TWO_LABELS, gr.models.Pairwise(OF_TWO_LABELS, 1.0)):
        assert gr.GraphGibbs(RING, 2, potential).labels == 2
        with pytest.raises(ShapeMismatch, match="label = 2, other = 2"):
            gr.GraphGibbs(RING, 3, potential)


PAIRS = gr.pairs(numba.njit(lambda i, j, y: y[i] - y[j]), (np.zeros(200),), 200)


@pytest.mark.parametrize(
    "kernel",
    [
        gr.Gibbs(lambda labels, variable: (np.zeros((5, 200)), None), 200),
        gr.GraphGibbs(np.ones((200, 200)) - np.eye(200), 200, gr.models.Potts()),
        gr.ClusterGibbs(PAIRS),
    ],
    ids=lambda kernel: type(kernel).__name__,
)
def test_labels_must_hold_every_state(kernel):
    with pytest.raises(InvalidArgument, match="int8 cannot hold 200 states"):
        kernel.step(seeded(), gr.kernels.Labels(np.zeros(200, np.int8)))


def test_array_of_a_conditional_is_taken_as_a_table():
    made = [gr.Gibbs(lambda *_, wrap=wrap: (wrap(np.eye(3)), None), 2) for wrap in (gr.table, np.array)]
    after = [kernel.step(seeded(), gr.kernels.Labels(np.zeros(2, np.int8)))[0].labels for kernel in made]
    np.testing.assert_array_equal(*after)


def test_starts_are_in_double_precision():
    """Langevin's and those over models, also where they run; labels keep their dtype."""
    langevin = gr.Langevin(likelihood, lambda i, x: 0.0 * x, size=50, batch=5, adapt_for=5)
    trace = gr.run(
        langevin,
        gr.kernels.LangevinState(np.zeros(1, np.int32), -1, 0),
        steps=10,
        rng=seeded(),
        progress=False,
    )
    assert {trace[name].dtype for name in ("position", "log_step", "average")} == {np.dtype(np.float64)}
    choice = gr.CarlinChib([candidate()], likelihood, adapt_for=3)
    start = gr.kernels.ModelChoice(0, (np.zeros(1, np.float32),), np.zeros(1, np.int64))
    trace = gr.run(choice, start, steps=5, rng=seeded(), progress=False)
    assert trace["parameters.0"].dtype == trace["log_weights"].dtype == np.float64
    labels = gr.kernels.Labels(np.zeros(2, np.int8))
    assert gr.Gibbs(conditional, 2).as_state(labels) is labels
