"""What the pilot of an expansion says of rows: weights, bounds, and how to do without a head."""

import pickle
from dataclasses import dataclass, replace
from typing import ClassVar

import numba
import numpy as np
from tests.common import seeded, totals
from tests.control_variates.cases import RELATIVE, SIZE, raced

import gumbelrace as gr
from gumbelrace.control_variates.expansion import LEAST_BOUND
from gumbelrace.core.rows import Rows
from gumbelrace.kernels.workspace import Target
from gumbelrace.models import logistic
from gumbelrace.population.control import FLOOR


@numba.njit
def bent(n, theta, size, bend):
    return size[n] * (theta[0] + bend * theta[0] ** 3)


def lines(size, bend=1.0, **options):
    """Give log factors a_n (θ + bend θ³) less their expansion around 0, which has the first term."""
    nothing = np.zeros(len(size))
    parts = nothing, size[:, None], nothing[:, None, None], [0.0]
    taylor = gr.control_variates.stored_taylor(*parts, spread=1.0)
    return gr.likelihood(bent, (size, bend), len(size), **options).minus(taylor)


def test_weights_follow_the_residuals():
    """Oracle: residuals are a_n θ³, whose differences between points are in proportion to |a_n|."""
    size = seeded().uniform(-1.0, 1.0, 3000)
    size[[5, 700]] = 500.0, -900.0
    rows = lines(size).control.rows
    assert rows.head.tolist() == [5, 700]
    expected = np.abs(size) + FLOOR * np.abs(size).mean()
    expected[rows.head] = 0.0
    np.testing.assert_allclose(rows.weights / rows.weights.sum(), expected / expected.sum(), rtol=1e-9)


def test_where_nothing_is_left_all_weights_are_the_same():
    assert lines(np.ones(100), bend=0.0).control.rows.weights is None


def test_rows_that_few_have_weigh_most(rare):
    """Where 20 of 20,000 rows have a column, they have at least ten times the weight of any other."""
    whole = raced(rare).without_head.control.rows
    few = rare[0][:, 1] == 1.0
    assert whole.weights[few].min() > 10.0 * whole.weights[~few].max()


def test_a_pilot_s_weights_come_before_the_user_s():
    size, given = np.ones(200), np.arange(1.0, 201.0)
    likelihood = lines(size, weights=given)
    np.testing.assert_allclose(likelihood([[0.1], [0.2]]).rows.weights, likelihood.control.rows.weights)
    assert np.ptp(likelihood.control.rows.weights) < 1e-9
    unweighted = replace(likelihood, control=replace(likelihood.control, rows=Rows(200)))
    one, other = (unweighted([[0.1], [k]]) for k in (0.2, 0.3))
    np.testing.assert_array_equal(one.rows.weights, given)
    assert one.rows is other.rows  # not made anew for every population


def test_bounds_are_relative_to_the_largest_of_the_tail(rare):
    x, _, mode, _ = rare
    limits = logistic.remainder(x, np.eye(2)) * np.linspace(1.0, 1.5, SIZE)
    likelihood = raced(rare, remainder=limits)
    for control in (likelihood.control, likelihood.without_head.control):
        expected = np.maximum(limits / limits.max(), LEAST_BOUND)
        expected[control.rows.head] = 0.0
        np.testing.assert_allclose(control.rows.bounds, expected / expected.max())
        assert control.remainder == limits[control.rows.tail].max()
        # What bounds the residuals of each row, at points some way off.
        points = mode + seeded().normal(0.0, 0.5, (4, 2))
        left = control.at(points)
        found = np.abs(
            likelihood.plain(points).rewards_at(control.rows.tail)
            - left.values(control.rows.tail, np.arange(4))
        )
        allowed = control.rows.bounds[control.rows.tail, None] * left.residual_range[1]
        assert (found <= allowed).all()
        assert not (found <= 0.3 * allowed).all()  # the bound is not idle


def apart(sums):
    return sums - sums[0]


def test_sums_without_a_head_are_exact(rare):
    x, y, mode, _ = rare
    likelihood, points = raced(rare), mode + seeded().normal(0.0, 0.3, (3, 2))
    s = x @ points.T
    expected = apart((y[:, None] * s - np.logaddexp(0.0, s)).sum(axis=0))
    whole = likelihood.without_head
    assert len(likelihood(points).rows.head) > 0 == len(whole(points).rows.head)
    for one in (likelihood, whole):
        assert np.abs(apart(totals(one(points))) - expected).max() <= RELATIVE * SIZE
    # Negative control: the tail's sums with the rows of all.
    wrong = replace(whole, control=replace(likelihood.control, rows=whole.control.rows))
    assert np.abs(apart(totals(wrong(points))) - expected).max() > 1e-3


def test_a_head_that_was_chosen_stays(rare):
    likelihood = raced(rare, outliers=0.01)
    assert likelihood.without_head is likelihood
    assert likelihood.control.rows.weights is not None


def test_rows_that_can_be_impossible_stay_in_the_head(rare):
    x, y, mode, _ = rare
    plain = gr.likelihood(logistic.log_factor, (x, y), SIZE, impossible=[1, 17])
    likelihood = plain.minus(gr.parameter_taylor(logistic.terms, (x, y), SIZE, mode))
    points = mode + seeded().normal(0.0, 0.3, (3, 2))
    head = likelihood(points).rows.head
    assert set(head) == {1, 17, *likelihood.control.rows.head}
    population = likelihood.without_head(points)
    assert population.rows.head.tolist() == [1, 17]
    assert population.rows is likelihood.without_head(points[:2]).rows
    np.testing.assert_allclose(
        apart(totals(population)), apart(totals(likelihood(points))), atol=RELATIVE * SIZE
    )


def test_a_likelihood_can_be_sent_to_another_process(rare):
    likelihood = raced(rare)
    rows = pickle.loads(pickle.dumps(likelihood.control.rows))
    np.testing.assert_array_equal(rows.head, likelihood.control.rows.head)
    np.testing.assert_array_equal(rows.weights, likelihood.control.rows.weights)
    with rows.stream() as stream:
        assert len(stream.streams.tail) == rows.tail_size


# ---- Kernels ----


@dataclass(frozen=True)
class Picking(gr.Exact):
    """Reads everything, and says that it draws rows by their weights."""

    picks_rows: ClassVar[bool] = True


def test_kernels_read_for_their_method(rare):
    """A method that needs no head makes the chain of one that has it, if both are exact."""
    likelihood = raced(rare)
    target = Target(likelihood, (None,), Picking())
    assert target.read is likelihood.without_head
    assert target._replace(method=gr.Exact()).read is likelihood
    assert target._replace(read_for=gr.Exact()).read is likelihood
    scale = 1.4 * np.linalg.cholesky(np.linalg.inv(-rare[3]))
    blocks = [
        gr.Metropolis(likelihood, gr.kernels.RandomWalk(scale), method=method).steps(
            seeded(3), gr.kernels.Position(rare[2]), 60
        )
        for method in (gr.Exact(), Picking())
    ]
    np.testing.assert_array_equal(*(block.states.position for block in blocks))
    assert 0.1 < blocks[0].info.acceptance.mean() < 0.9


@numba.njit
def standard(theta):
    return -0.5 * (theta[0] ** 2 + theta[1] ** 2)


def chain_over_models(rare, moving, choosing):
    """Give the draws of a chain over two models, which are the same but for their pseudopriors."""
    likelihood, models = raced(rare), []
    for wider in (1.0, 1.3):
        law = gr.kernels.NormalPseudoprior(rare[2], wider * np.linalg.inv(-rare[3]))
        step = gr.kernels.Autoregressive(law, 0.5)
        move = gr.Metropolis(likelihood, step, log_prior=standard, method=moving)
        models.append(gr.kernels.Candidate(move, law, standard))
    kernel = gr.CarlinChib(models, likelihood, method=choosing)
    assert kernel.is_compiled
    return kernel.steps(seeded(1), kernel.start(rng=seeded()), 60).states


def test_moves_and_choices_know_the_same_of_a_point(rare):
    """Slots are exchanged between methods of which one needs no head: the chain is that of exact ones."""
    expected = chain_over_models(rare, gr.Exact(), gr.Exact())
    for moving, choosing in ((Picking(), gr.Exact()), (gr.Exact(), Picking())):
        found = chain_over_models(rare, moving, choosing)
        np.testing.assert_array_equal(found.model, expected.model)
        np.testing.assert_allclose(found.parameters[0], expected.parameters[0])
