"""Taylor expansions in the parameters: sums, residual variance, remainder bounds, decisions."""

import numba
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import bdtrc
from tests.common import seeded, totals
from tests.control_variates.cases import (
    CURVATURE,
    MODELS,
    SLOPE,
    THIRD,
    assert_same_sums,
    likelihood,
    near,
    remainders,
    student_curvature,
    student_slope,
    variance_ratio,
)

import gumbelrace as gr
from gumbelrace.control_variates.expansion import taylor
from gumbelrace.errors import InvalidArgument, RewardOutOfRange, ShapeMismatch
from gumbelrace.models import logistic
from gumbelrace.population.control import difference
from gumbelrace.population.likelihood import by_arm

FALSE_ALARM = 1e-4
models = pytest.mark.parametrize("name", MODELS)
orders = pytest.mark.parametrize("order", [1, 2])
BUILT = {name: model() for name, model in MODELS.items()}


def expand(model, order=2, **options):
    return gr.parameter_taylor(model.terms, model.data, len(model.x), model.mode, order, **options)


def bounded(model, order=2, outliers=0.0, factor=1.0):
    return expand(model, order, remainder=factor * remainders(model, order), outliers=outliers)


# ---- Sums and variance ----


@models
@orders
@pytest.mark.parametrize("outliers", [0.0, 0.1])
def test_sums_are_those_of_the_rewards(name, order, outliers):
    model = BUILT[name]
    points = np.concatenate([near(model), near(model, scale=1.0)])
    rewards, control = model.rewards(points), bounded(model, order, outliers).at(points)
    size, arms = rewards.shape
    for population in (
        likelihood(model)(points).minus(control),
        gr.factors(lambda index, arms: rewards[np.ix_(index, arms)], size, arms).minus(control),
        gr.table(rewards).minus(control),
    ):
        assert_same_sums(population, rewards)
        assert_same_sums(population.reshuffled(seeded(2)), rewards)
        assert gr.Exact().best(population, None, seeded()).evaluations == population.rewards == size * arms


@models
def test_residual_variance_is_at_least_100_times_smaller(name):
    """Claim: near the mode, for each arm and each difference of two arms. (It is millions of times.)"""
    model = BUILT[name]
    points = near(model)
    for order in (1, 2):
        arm, pair = variance_ratio(expand(model, order).at(points), model.rewards(points))
        assert min(arm, pair) >= 100.0
    # Negative control: far from the mode an expansion is no approximation at all.
    far = near(model, scale=3.0)
    assert min(variance_ratio(expand(model).at(far), model.rewards(far))) < 100.0


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_sums_of_derivatives_are_those_of_their_formulas(dimension):
    model = MODELS["logistic"](400, dimension)
    p = 1.0 / (1.0 + np.exp(-model.x @ model.mode))
    found = expand(model)
    np.testing.assert_allclose(found.gradient, (model.y - p) @ model.x, atol=1e-10)
    np.testing.assert_allclose(
        found.hessian, -(model.x.T * (p * (1 - p))) @ model.x, rtol=1e-10, atol=1e-10
    )
    assert not expand(model, order=1).hessian.any()


# ---- Remainders and ranges ----


def test_largest_derivatives_of_student_s_log_density():
    z = np.linspace(-20, 20, 400_001)
    third = np.gradient(student_curvature(z), z)
    for largest, values in ((SLOPE, student_slope(z)), (CURVATURE, student_curvature(z)), (THIRD, third)):
        assert 0.99 * largest <= np.abs(values).max() <= largest


@models
@orders
@settings(max_examples=60, deadline=None)
@given(
    log_scale=st.floats(-9.0, 3.0),
    seed=st.integers(0, 2**32 - 1),
    stretch=st.lists(st.floats(-2.0, 2.0), min_size=3, max_size=3),
)
def test_remainder_bounds_hold_near_and_far(name, order, log_scale, seed, stretch):
    """Every residual that is read is checked against the range, in any metric: none lies outside."""
    model = BUILT[name]
    metric = np.diag(np.exp(stretch)) @ np.linalg.qr(seeded(seed).normal(size=(3, 3)))[0]
    scaled = np.linalg.norm(model.x @ np.linalg.inv(metric), axis=1) ** (order + 1)
    largest = model.second / 2.0 if order == 1 else model.third / 6.0
    found = expand(model, order, remainder=largest * scaled, metric=metric)
    totals(likelihood(model).minus(found)(near(model, scale=10.0**log_scale, seed=seed)))


@models
@orders
def test_remainder_bounds_are_needed(name, order):
    """Negative control: bounds a hundred times too small are noticed when all is read."""
    model = BUILT[name]
    points = near(model, scale=0.3)
    totals(likelihood(model).minus(bounded(model, order))(points))
    with pytest.raises(RewardOutOfRange, match="arm"):
        totals(likelihood(model).minus(bounded(model, order, factor=0.01))(points))


@models
@orders
def test_the_range_is_that_of_the_tail(name, order):
    model = BUILT[name]
    points, bounds = near(model), remainders(model, order)
    low, high = likelihood(model).minus(bounded(model, order, outliers=0.2))(points).reward_range
    distances = np.linalg.norm(points - model.mode, axis=1)
    expected = np.sort(bounds)[-len(bounds) // 5 - 1] * distances ** (order + 1)
    np.testing.assert_allclose(high, expected, rtol=1e-9, atol=1e-10)
    np.testing.assert_array_equal(low, -high)


@numba.njit
def normal_factor(n, theta, y):
    return -0.5 * (y[n] - theta[0]) ** 2


@numba.njit
def normal_terms(n, centre, direction, y):
    z = y[n] - centre[0]
    return -0.5 * z * z, z * direction[0], -direction[0] * direction[0]


@pytest.mark.parametrize("distance", [0.0, 1e-8, 1.0, 1e3, 1e6])
@pytest.mark.parametrize(("order", "remainder"), [(1, 0.5), (2, 0.0)])
def test_the_range_allows_for_rounding(distance, order, remainder):
    """Where the expansion is exact, or its bound attained, residuals leave the range by rounding only."""
    y = seeded(3).normal(size=2000)
    found = gr.parameter_taylor(normal_terms, (y,), 2000, [y.mean()], order, remainder=remainder)
    points = y.mean() + np.array([[0.0], [0.3 * distance], [-distance]])
    population = gr.likelihood(normal_factor, (y,), 2000).minus(found)(points)
    assert_same_sums(population, -0.5 * (y[:, None] - points[:, 0]) ** 2)
    assert gr.Betting().best(population, None, seeded()).arm in ([0] if distance else [0, 1, 2])


# ---- Decisions ----


@models
def test_betting_decides_without_reading_a_row_where_the_range_allows_it(name):
    model = BUILT[name]
    population = likelihood(model).minus(bounded(model))([model.mode, model.mode + 0.01, model.mode - 0.01])
    outcome = gr.Betting().best(population, None, seeded())
    assert (outcome.arm, outcome.evaluations, outcome.exhausted) == (0, 0, False)
    raced = likelihood(model).minus(expand(model))([model.mode, model.mode + 0.01])
    assert not raced.knows_range


@models
@pytest.mark.parametrize("method", [gr.Betting(delta=0.05), gr.Race(delta=0.05)], ids=repr)
def test_methods_keep_their_promise_on_residuals(name, method):
    """Claim: errors ≤ δ = 0.05 over 500 Gumbel draws (seed 7); false alarm 1e-4 by the binomial tail.

    The points lie so far out that the sum of the residuals matters: it has a standard deviation of order 1.
    """
    model = BUILT[name]
    points = near(model, scale=0.08)
    population = likelihood(model).minus(bounded(model))(points)
    report = gr.audit(population, method, draws=500, rng=seeded(7), log_prior=-totals(population))
    assert bdtrc(report.errors - 1, 500, 0.05) >= FALSE_ALARM
    assert report.fraction > 0.0


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 60), st.integers(1, 4), st.floats(0.0, 0.9), st.integers(0, 2**32 - 1))
def test_small_populations(size, arms, outliers, seed):
    rng = seeded(seed)
    x, y = rng.normal(size=(size, 2)), rng.integers(0, 2, size).astype(float)
    assume(int(outliers * size) < size)
    bounds = logistic.remainder(x, np.eye(2))
    found = gr.parameter_taylor(
        logistic.terms, (x, y), size, [0.3, -0.2], remainder=bounds, outliers=outliers
    )
    points = rng.normal(size=(arms, 2))
    s = x @ points.T
    population = gr.likelihood(logistic.log_factor, (x, y), size).minus(found)(points)
    assert_same_sums(population, y[:, None] * s - np.logaddexp(0.0, s))


# ---- Arguments, compilation ----


def test_binding_new_points_compiles_nothing():
    model = BUILT["logistic"]
    raced = likelihood(model).minus(bounded(model))
    expansion = taylor(model.terms, 2)
    residual = difference(by_arm(model.log_factor), expansion, 3)
    counts = []
    for seed in range(3):
        gr.Race().best(raced(near(model, arms=3 + seed, seed=seed)), None, seeded())
        counts.append([len(residual.signatures), len(expansion.signatures)])
    assert counts[0] == counts[1] == counts[2]
    assert residual is difference(by_arm(model.log_factor), expansion, 3)


MODEL = BUILT["logistic"]
SIZE = len(MODEL.x)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"order": 3}, InvalidArgument, "order is 3; it must be 1 or 2"),
        ({"order": 0}, InvalidArgument, "order is 0"),
        ({"outliers": 1.5}, InvalidArgument, r"must lie in \[0, 1\)"),
        ({"spread": np.ones(2)}, ShapeMismatch, r"spread has shape \(2,\)"),
        ({"spread": np.inf}, InvalidArgument, "spread must be finite"),
        ({"outliers": 1.0, "remainder": np.ones(SIZE)}, InvalidArgument, r"must lie in \[0, 1\)"),
        ({"outliers": -0.1, "remainder": np.ones(SIZE)}, InvalidArgument, r"must lie in \[0, 1\)"),
        ({"remainder": -1.0}, InvalidArgument, "not negative"),
        ({"remainder": np.nan}, InvalidArgument, "not negative"),
        ({"remainder": np.inf}, InvalidArgument, "infinite"),
        ({"remainder": np.full(SIZE, np.inf), "outliers": 0.5}, InvalidArgument, "infinite"),
        ({"remainder": np.ones(SIZE - 1)}, InvalidArgument, rf"\({SIZE},\)"),
        ({"metric": np.diag([1.0, 0.0, 1.0])}, InvalidArgument, "metric has no inverse"),
        ({"metric": np.eye(2)}, ShapeMismatch, r"metric has shape \(2, 2\); it must be \(3, 3\)"),
    ],
)
def test_options_are_checked(options, error, message):
    with pytest.raises(error, match=message):
        expand(MODEL, **options)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"terms": lambda n, centre, direction, x, y: 0.0}, "@numba.njit"),
        ({"data": [MODEL.x, MODEL.y]}, "a tuple"),
        ({"size": 0}, "size is 0"),
        ({"size": 2.5}, "size is 2.5"),
        ({"centre": np.eye(2)}, "centre"),
        ({"centre": [0.0, np.nan, 0.0]}, "centre"),
        ({"data": (np.full_like(MODEL.x, np.nan), MODEL.y)}, "no finite value"),
    ],
)
def test_arguments_are_checked(changes, message):
    given = {"terms": MODEL.terms, "data": MODEL.data, "size": SIZE, "centre": MODEL.mode}
    with pytest.raises(InvalidArgument, match=message):
        gr.parameter_taylor(**(given | changes))


@pytest.mark.parametrize("points", [[0.0, 0.0, 0.0], [[0.0]], [[0.0, 0.0]], np.zeros((2, 3, 1))])
def test_points_of_the_wrong_shape_are_named(points):
    with pytest.raises(ShapeMismatch, match=r"it must be \(D, 3\)"):
        expand(MODEL).at(points)


def test_a_point_that_is_not_a_number_is_named():
    with pytest.raises(InvalidArgument, match="not finite"):
        likelihood(MODEL).minus(expand(MODEL))([[0.0, np.nan, 0.0]])


def test_an_expansion_of_other_rows_is_refused():
    x, y = MODEL.x[:100], MODEL.y[:100]
    other = gr.parameter_taylor(logistic.terms, (x, y), 100, MODEL.mode)
    with pytest.raises(ShapeMismatch, match=f"100 rows; the population has {SIZE}"):
        likelihood(MODEL).minus(other)(near(MODEL))
