"""Taylor expansions in the data: references, sums from stored moments, residual variance, outliers."""

import numba
import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from scipy.special import bdtrc
from tests.common import seeded, totals
from tests.control_variates.cases import (
    FREEDOM,
    assert_same_sums,
    student,
    student_curvature,
    student_slope,
    variance_ratio,
)

import gumbelrace as gr
from gumbelrace.control_variates.data import expansion
from gumbelrace.errors import InvalidArgument, MissingPackage, ShapeMismatch
from gumbelrace.population.control import difference, table_of
from gumbelrace.population.likelihood import by_arm

FALSE_ALARM = 1e-4
# Shares of outliers given here are too small on purpose; `test_pilot` is about the warning.
pytestmark = pytest.mark.filterwarnings("ignore::gumbelrace.errors.UnevenResiduals")


# Locations of Student's t in two dimensions, the axes independent; points are locations.


@numba.njit
def log_factor(n, theta, y):
    total = 0.0
    for i in range(len(theta)):
        total -= 0.5 * (FREEDOM + 1.0) * np.log1p((y[n, i] - theta[i]) ** 2 / FREEDOM)
    return total


def derivatives(references, points):
    z = references[:, None] - points
    hessian = student_curvature(z)[..., None] * np.eye(z.shape[2])
    return student(z).sum(axis=2), student_slope(z), hessian


def rewards_of(y, points):
    return student(y[:, None] - points).sum(axis=2)


def make(size, axes=2, seed=0):
    return seeded(seed).standard_t(FREEDOM, size=(size, axes))


def near(y, arms=4, seed=1):
    """Give points about a standard deviation of the posterior from the middle."""
    return np.median(y, axis=0) + seeded(seed).normal(size=(arms, y.shape[1])) / np.sqrt(len(y))


# ---- Sums and variance ----


def test_outliers_are_the_farthest_in_units_of_their_axis():
    y = seeded(2).uniform(-1, 1, size=(1000, 2)) * [1.0, 1e6]
    y[[7, 800]] = [[30.0, 0.0], [0.0, 5e7]]
    found = gr.data_taylor(y, derivatives, outliers=0.002)
    assert found.rows.head.tolist() == [7, 800]
    np.testing.assert_allclose(found.spaces[0].references[0], np.delete(y, [7, 800], axis=0).mean(axis=0))


@pytest.mark.parametrize(("bins", "outliers"), [(1, 0.2), (10, 0.0), (10, 0.2), (10, None)])
def test_sums_are_those_of_the_rewards(bins, outliers):
    y = make(5000)
    points = np.concatenate([near(y), 3.0 * near(y)])
    rewards, found = rewards_of(y, points), gr.data_taylor(y, derivatives, bins, outliers)
    control = found.at(points)
    size, arms = rewards.shape
    for population in (
        gr.likelihood(log_factor, (y,), size).minus(found)(points),
        gr.factors(lambda index, arms: rewards[np.ix_(index, arms)], size, arms).minus(control),
        gr.table(rewards).minus(control),
    ):
        assert_same_sums(population, rewards)
        assert_same_sums(population.reshuffled(seeded(3)), rewards)
        outcome = gr.Exact().best(population, None, seeded())
        assert outcome.evaluations == population.rewards == rewards.size


def test_sums_far_from_zero():
    """First moments are zero but for rounding; here that matters."""
    y = make(5000) + 1e7
    points = near(y)
    found = gr.data_taylor(y, derivatives, bins=5)
    assert_same_sums(gr.likelihood(log_factor, (y,), len(y)).minus(found)(points), rewards_of(y, points))


def test_the_control_variate_is_the_expansion():
    """Oracle: Eq. 11 in NumPy, row by row; and its sums by adding them up."""
    y, points = make(400), near(make(400))
    found = gr.data_taylor(y, derivatives, bins=3, outliers=0.1)
    rows, control = found.rows.tail, found.at(points)
    expected = np.empty((len(rows), len(points)))
    for i, n in enumerate(rows):
        reference = found.spaces[0].references[found.cells[n, 0]]
        value, gradient, hessian = (part[0] for part in derivatives(reference[None], points))
        d = y[n] - reference
        expected[i] = value + gradient @ d + 0.5 * d @ hessian @ d
    np.testing.assert_allclose(control.values(rows, np.arange(4)), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(control.sums, expected.sum(axis=0), rtol=1e-12)


def test_residual_variance_is_at_least_100_times_smaller():
    """Claim: for each arm and each difference of two arms near the mode, with 50 bins and 2% outliers."""
    y = make(20_000, axes=1)
    points = near(y)
    control = gr.data_taylor(y, derivatives, bins=50, outliers=0.02).at(points)
    assert min(variance_ratio(control, rewards_of(y, points))) >= 100.0
    # Negative control: around one reference the tails of Student's t are not followed.
    single = gr.data_taylor(y, derivatives, outliers=0.02).at(points)
    assert min(variance_ratio(single, rewards_of(y, points))) < 100.0


def test_a_quadratic_needs_one_reference():
    y = seeded(4).normal(size=(1000, 2))
    points = near(y)

    def quadratic(references, points):
        z = references[:, None] - points
        hessian = np.broadcast_to(-np.eye(2), (*z.shape, 2))
        return -0.5 * np.square(z).sum(axis=2), -z, hessian

    control = gr.data_taylor(y, quadratic).at(points)
    rewards = -0.5 * np.square(y[:, None] - points).sum(axis=2)
    np.testing.assert_allclose(control.values(np.arange(1000), np.arange(4)), rewards, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 60),
    st.integers(1, 5),
    st.integers(1, 7),
    st.floats(0.0, 0.9),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_small_populations(size, arms, bins, outliers, tied, seed):
    y, points = make(size, seed=seed), seeded(seed).normal(size=(arms, 2))
    y = np.round(y) if tied else y
    found = gr.data_taylor(y, derivatives, bins, outliers)
    try:
        population = gr.likelihood(log_factor, (y,), size).minus(found)(points)
    except InvalidArgument:
        reject()  # one that makes it worse
    assert_same_sums(population, rewards_of(y, points))


# ---- Every arm with data of its own ----


@numba.njit
def own_factor(n, arm, y):
    return -0.5 * (FREEDOM + 1.0) * np.log1p(y[n, arm] ** 2 / FREEDOM)


@pytest.mark.parametrize("outliers", [0.0, 0.2])
def test_arms_with_data_of_their_own(outliers):
    """As in the paper's ARCH models: what the data are depends on the arm. Points are not used here."""
    y = make(6000, axes=3) * [1.0, 0.5, 2.0]
    y[:, 2] = np.clip(np.round(y[:, 2]), -4, 4)  # fewer cells than the others
    found = gr.data_taylor(y[:, :, None], lambda m, points: derivatives(m, 0.0 * points), 20, outliers)
    control = found.at(np.arange(3.0)[:, None])
    assert len(found.spaces[2].references) < len(found.spaces[0].references)
    rows = found.rows.tail
    values = control.values(rows, np.arange(3))
    np.testing.assert_allclose(control.sums, values.sum(axis=0), rtol=1e-12)
    population = gr.compiled(own_factor, (y,), 6000, 3).minus(control)
    assert_same_sums(population, student(y))
    residuals = student(y)[rows] - values
    assert (student(y).var(axis=0) > (100.0 if outliers else 10.0) * residuals.var(axis=0)).all()
    with pytest.raises(ShapeMismatch, match="3 arms; there are 2 points"):
        found.at(np.zeros((2, 1)))


# ---- Decisions ----


@pytest.mark.parametrize("outliers", [0.0, 0.1])
def test_race_keeps_its_promise_on_residuals(outliers):
    """Claim: errors ≤ δ = 0.05 over 500 Gumbel draws (seed 7); false alarm 1e-4 by the binomial tail."""
    y = make(8000)
    points = near(y, arms=5)
    found = gr.data_taylor(y, derivatives, bins=10, outliers=outliers)
    population = gr.likelihood(log_factor, (y,), len(y)).minus(found)(points)
    report = gr.audit(
        population, gr.Race(delta=0.05), draws=500, rng=seeded(7), log_prior=-totals(population)
    )
    assert bdtrc(report.errors - 1, 500, 0.05) >= FALSE_ALARM
    assert 0.0 < report.fraction < 0.9


def test_fewer_rewards_are_read():
    y = make(20_000)
    points = near(y)
    plain = gr.likelihood(log_factor, (y,), len(y))
    residual = plain.minus(gr.data_taylor(y, derivatives, bins=10, outliers=0.05))
    share = [gr.sample(one(points), size=200, rng=seeded(8)).fraction for one in (plain, residual)]
    assert share[1] < 0.5 * share[0]


# ---- Arguments, compilation ----


def test_binding_new_points_compiles_nothing():
    y = make(300)
    raced = gr.likelihood(log_factor, (y,), 300).minus(gr.data_taylor(y, derivatives, 3, 0.1))
    residual = difference(by_arm(log_factor), expansion, 2)
    functions, counts = [residual, expansion, table_of(by_arm(log_factor))], []
    for seed in range(3):
        gr.Race().best(raced(near(y, arms=3 + seed, seed=seed)), None, seeded())
        counts.append([len(function.signatures) for function in functions])
    assert counts[0] == counts[1] == counts[2]


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"values": np.zeros(5)}, ShapeMismatch, r"shape \(5,\)"),
        ({"values": np.zeros((0, 2))}, ShapeMismatch, r"shape \(0, 2\)"),
        ({"values": np.array([[0.0], [1.0], [np.nan]])}, InvalidArgument, "row 2 is not finite"),
        ({"derivatives": None}, InvalidArgument, "not callable"),
        ({"bins": 0}, InvalidArgument, "bins is 0"),
        ({"bins": 2.5}, InvalidArgument, "bins is 2.5"),
        ({"bins": [2, 2, 2]}, InvalidArgument, "or 2 of them"),
        ({"outliers": 1.0}, InvalidArgument, r"must lie in \[0, 1\)"),
        ({"outliers": np.nan}, InvalidArgument, r"must lie in \[0, 1\)"),
    ],
)
def test_arguments_are_checked(changes, error, message):
    with pytest.raises(error, match=message):
        gr.data_taylor(**({"values": make(20), "derivatives": derivatives} | changes))


@pytest.mark.parametrize("points", [0.0, np.zeros((0, 2))])
def test_points_of_the_wrong_shape_are_named(points):
    with pytest.raises(ShapeMismatch, match="at least one point"):
        gr.data_taylor(make(20), derivatives).at(points)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda value, gradient, hessian: (value.T, gradient, hessian), r"order 0 of shape \(2, 1\)"),
        (lambda value, gradient, hessian: (value, gradient[..., 0], hessian), r"order 1 of shape \(1, 2\)"),
        (lambda value, gradient, hessian: (value, gradient), "gave 2 arrays"),
    ],
)
def test_derivatives_of_the_wrong_shape_are_named(wrong, message):
    found = gr.data_taylor(make(20), lambda *at: wrong(*derivatives(*at)))
    with pytest.raises(ShapeMismatch, match=message):
        found.at(np.zeros((2, 2)))


def test_derivatives_that_are_not_finite_are_named():
    with pytest.raises(InvalidArgument, match=r"not finite at reference .*, point \[nan +0.\]"):
        gr.data_taylor(make(20), derivatives).at([[0.0, 0.0], [np.nan, 0.0]])


def test_an_expansion_of_other_rows_is_refused():
    y = make(300)
    found = gr.data_taylor(y[:200], derivatives, bins=10)
    with pytest.raises(ShapeMismatch, match="200 rows; the population has 300"):
        gr.likelihood(log_factor, (y,), 300).minus(found)(near(y))


# ---- JAX ----


def test_derivatives_by_jax():
    """Oracle: derivatives by hand; in double precision, whatever JAX's default is."""
    jnp = pytest.importorskip("jax.numpy")
    y = make(500)

    def log_density(y, theta):
        return jnp.sum(-0.5 * (FREEDOM + 1.0) * jnp.log1p((y - theta) ** 2 / FREEDOM))

    by_jax = gr.control_variates.derivatives_by_jax(log_density)
    for found, expected in zip(by_jax(y[:5], near(y)), derivatives(y[:5], near(y)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    found = gr.data_taylor(y, by_jax, bins=3, outliers=0.1)
    raced = gr.likelihood(log_factor, (y,), 500).minus(found)
    assert_same_sums(raced(near(y)), rewards_of(y, near(y)))


def test_without_jax_the_extra_is_named(without):
    without("jax")
    with pytest.raises(MissingPackage, match=r"gumbelrace\[jax\]"):
        gr.control_variates.derivatives_by_jax(lambda y, theta: 0.0)
