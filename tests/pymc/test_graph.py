"""Models taken apart into rows and the rest, and nothing compiled; oracle: PyMC's own log probability."""

from dataclasses import replace

import numpy as np
import pytest

from gumbelrace.errors import InvalidArgument
from gumbelrace.laplace.differences import by_differences
from gumbelrace.pymc.checks import check_by_rows, check_model, interpreted, kinks
from gumbelrace.pymc.functions import (
    derivatives_of,
    functions_of,
    inputs,
    prior_of,
    python_function,
    vectors,
)
from gumbelrace.pymc.graph import graph_of, rebuilt, start_of
from gumbelrace.pymc.model import PymcModel, check_derivatives

pm = pytest.importorskip("pymc", reason='needs pip install "gumbelrace[pymc]"')

N = 60
RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(N, 3)), RNG.normal(size=40)
COUNTS, GROUPS = RNG.poisson(2.0, N), RNG.integers(0, 4, N)


def one_variable():
    b = pm.Normal("b", 0, 1, shape=3)
    pm.Bernoulli("y", logit_p=X @ b, observed=COUNTS > 2)


def shared_data():
    b, sigma = pm.Normal("b", 0, 1, shape=3), pm.HalfNormal("sigma", 1)
    x, y = pm.Data("x", X), pm.Data("counts", 1.0 * COUNTS)
    pm.StudentT("y", nu=pm.Gamma("nu", 2, 0.1), mu=x @ b, sigma=sigma, observed=y)


def columns_first():
    b = pm.Normal("b", 0, 1, shape=3)
    pm.Normal("y", b @ np.ascontiguousarray(X.T), 1, observed=X[:, 0])


def groups():
    scale = pm.HalfNormal("scale", 1)
    effects = pm.Normal("effects", 0, scale, shape=4)
    pm.Poisson("y", pm.math.exp(effects[GROUPS]), observed=COUNTS)


def two_of_one_length():
    a = pm.Normal("a", 0, 1)
    pm.Normal("y", a, 1, observed=X[:, 0])
    pm.Poisson("counts", pm.math.exp(a), observed=COUNTS)


def two_of_different_lengths():
    a, s = pm.Normal("a", 0, 1), pm.HalfNormal("s", 1)
    pm.Normal("y", a, s, observed=X[:, 0])
    pm.Normal("z", 2 * a, s, observed=Z)


def few_rows_beside():
    a = pm.Normal("a", 0, 1)
    pm.Normal("y", a, 1, observed=X[:, 0])
    pm.Normal("few", a, 1, observed=np.array([0.3, 0.4]))
    pm.Normal("one", a, 1, observed=0.5)


def potential():
    a = pm.Normal("a", 0, 1)
    pm.Potential("rows", -0.5 * (X[:, 0] - a) ** 2)
    pm.Potential("soft", -(a**4))


def many_columns():
    a = pm.Normal("a", 0, 1, shape=3)
    pm.Normal("y", a, 1, observed=X)


def mixture():
    weight, mu = pm.Beta("weight", 2, 2), pm.Normal("mu", 0, 3, shape=2)
    pm.NormalMixture("y", pm.math.stack([weight, 1 - weight]), mu, 1.0, observed=X[:, 0])


def fixed_lengths():
    a = pm.Normal("a", 0, 1)
    spread = a + pm.math.zeros_like(np.zeros(N)) + pm.math.constant(X[:, :1]).reshape((N,))
    pm.Normal("y", spread, 1, observed=X[:, 1])


def vectors_observed():
    a = pm.Normal("a", 0, 1, shape=3)
    pm.MvNormal("y", a, np.eye(3), observed=X)


def centred_hierarchy():
    mu, scale = pm.Normal("mu", 0, 1), pm.HalfNormal("scale", 1)
    effects = pm.Normal("effects", mu, scale, shape=4)
    pm.Poisson("y", pm.math.exp((mu + effects)[GROUPS]), observed=COUNTS)


def one_value_of_each_group():
    """Forty groups have sixty rows and, each, a value of its own."""
    effects, slope = pm.Normal("effects", 0, 1, shape=40), pm.Normal("slope", 0, 1)
    pm.Normal("of_groups", slope * effects, 1, observed=Z)
    pm.Poisson("y", pm.math.exp(effects[np.arange(N) % 40]), observed=COUNTS)


def flat_priors():
    b, sigma = pm.Flat("b", shape=3), pm.HalfFlat("sigma")
    pm.Normal("y", X @ b, sigma, observed=X[:, 0])


def nothing_but_flat():
    b = pm.Flat("b", shape=3)
    pm.Bernoulli("y", logit_p=X @ b, observed=COUNTS > 2)


MODELS = [
    one_variable,
    shared_data,
    columns_first,
    groups,
    two_of_one_length,
    two_of_different_lengths,
    few_rows_beside,
    potential,
    many_columns,
    mixture,
    fixed_lengths,
    vectors_observed,
    centred_hierarchy,
    one_value_of_each_group,
    flat_priors,
    nothing_but_flat,
]


def made(build):
    with pm.Model() as model:
        build()
    return model


@pytest.mark.parametrize("build", MODELS)
def test_rows_and_prior_are_the_whole_posterior(build):
    model = made(build)
    graph, start = graph_of(model), start_of(model)
    check_by_rows(graph, start)
    theta = start + 0.1 * np.random.default_rng(1).normal(size=len(start))
    data = [leaf.array for leaf in graph.leaves]
    terms = interpreted(graph)
    every = terms(np.arange(graph.size), theta, *data)
    (vector,) = vectors(graph, "theta")
    prior = python_function([vector], rebuilt([graph.prior], graph.pieces(vector))[0])(theta)
    pieces = graph.pieces(theta)
    exact = python_function(model.value_vars, model.logp())(*(pieces[v] for v in model.value_vars))
    assert every.shape == (graph.size,)
    np.testing.assert_allclose(prior + every.sum(), exact, rtol=1e-12)
    some = np.array([graph.size - 1, 3, 3, 0])
    np.testing.assert_allclose(terms(some, theta, *data), every[some], rtol=1e-12)


def test_rows_of_several_variables_are_counted_together():
    assert graph_of(made(two_of_different_lengths)).size == N + 40
    assert graph_of(made(two_of_one_length)).size == N
    assert graph_of(made(few_rows_beside)).size == N
    assert graph_of(made(one_value_of_each_group)).size == N  # the forty values are read in full


@pytest.mark.parametrize(
    "build", [shared_data, groups, centred_hierarchy, one_value_of_each_group, mixture]
)
def test_derivatives_of_rows_are_those_of_differences(build):
    """Sums of a parameter and a vector of them among these, which PyTensor's own `Rop` gets wrong."""
    model = made(build)
    graph, point = graph_of(model), start_of(model)
    point = point + 0.1 * np.random.default_rng(2).normal(size=len(point))
    theta, directions, *outputs = derivatives_of(graph, graph.terms.sum())
    given = python_function([graph.rows, theta, directions, *inputs(graph)], outputs)
    rows, data = np.arange(graph.size), [leaf.array for leaf in graph.leaves]
    value, gradient, products = given(rows, point, np.eye(len(point)), *data)
    terms = interpreted(graph)
    right = by_differences(lambda theta: float(terms(rows, theta, *data).sum()), point)
    np.testing.assert_allclose(value, right.value)
    np.testing.assert_allclose(gradient, right.gradient, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(products, right.hessian, rtol=1e-3, atol=1e-3)


def test_coordinates_have_names():
    assert graph_of(made(shared_data)).names == ["b[0]", "b[1]", "b[2]", "sigma_log__", "nu_log__"]


def centred():
    x = pm.Data("x", X)
    pm.Normal("y", (x - x.mean(axis=0)) @ pm.Normal("b", 0, 1, shape=3), 1, observed=X[:, 0])


def cumulated():
    series = pm.Data("series", X[:, 1])
    pm.Normal("y", pm.Normal("b", 0, 1) * pm.math.cumsum(series), 1, observed=X[:, 0])


def by_the_largest():
    time = pm.Data("time", np.arange(float(N)))
    pm.Normal("y", pm.Normal("b", 0, 1) * time / time.max(), 1, observed=X[:, 0])


def centred_and_rare():
    rare = pm.Data("rare", (np.arange(N) >= N - 3).astype(float))
    pm.Normal("y", pm.Normal("b", 0, 1) * (rare - rare.mean()), 1, observed=X[:, 0])


MIXED = (centred, "x"), (cumulated, "series"), (by_the_largest, "time"), (centred_and_rare, "rare")


@pytest.mark.parametrize(("build", "leaf"), MIXED)
def test_what_mixes_rows_is_named(build, leaf):
    model = made(build)
    with pytest.raises(InvalidArgument, match=rf"^{leaf}: log factors that depend on other rows"):
        check_by_rows(graph_of(model), start_of(model))


def test_parameters_that_are_not_allowed_are_named_as_such():
    def negative():
        pm.Poisson("y", pm.Normal("a", 0, 1) + 0.0 * X[:, 0], observed=np.ones(N, int))

    model = made(negative)
    with pytest.raises(InvalidArgument, match="has parameters that it does not allow"):
        check_by_rows(graph_of(model), start_of(model))


@pytest.fixture(scope="module")
def chances():
    with pm.Model() as model:
        pm.Bernoulli("y", p=pm.Normal("a", 0.5, 1) + 0.0 * X[:, 0], observed=np.ones(N, int))
    graph = graph_of(model)
    return PymcModel(graph, functions_of(graph), np.array([0.5]))


def test_parameters_that_are_not_allowed_are_impossible(chances):
    """A chance above 1 has no log density, though the logarithm of it has a value."""
    sums = chances.functions.sums
    values = [sums(np.arange(N), np.array([p]), np.zeros((1, 1)), chances.data)[0] for p in (0.9, 1.1)]
    np.testing.assert_allclose(values, [N * np.log(0.9), -np.inf])


def test_derivatives_that_contradict_each_other_are_refused(chances):
    check_derivatives(chances)
    right = chances.functions.sums

    def wrong(*given):
        value, gradient, products = right(*given)
        return value, gradient, 0.9 * products

    mistaken = replace(chances, functions=chances.functions._replace(sums=wrong))
    with pytest.raises(InvalidArgument, match="by the installed PyTensor contradict each other"):
        check_derivatives(mistaken)


def test_a_value_for_each_row_is_refused():
    def latent():
        pm.Poisson("y", pm.math.exp(pm.Normal("z", 0, 1, shape=N)), observed=COUNTS)

    with pytest.raises(InvalidArgument, match="z has an entry for each of 60 rows; integrate it out"):
        graph_of(made(latent))


def test_rows_that_the_model_picks_from_others_are_refused():
    def masked():
        mu, some, fewer = X[:, 0] * pm.Normal("b", 0, 1), np.arange(N) < 40, np.arange(N) < 35
        pm.Normal("y", mu[some], 1, observed=X[some, 1])
        pm.Normal("z", mu[fewer], 2, observed=X[fewer, 2])

    with pytest.raises(InvalidArgument, match=r"^y, z: rows are picked from others within the model"):
        graph_of(made(masked))


def discrete():
    k = pm.Bernoulli("k", 0.5)
    pm.Normal("y", k, 1, observed=X[:, 0])


def missing():
    pm.Normal("y", pm.Normal("a", 0, 1), 1, observed=np.where(np.arange(N) == 3, np.nan, X[:, 0]))


@pytest.mark.filterwarnings("ignore:Data in y contains missing")
@pytest.mark.parametrize(
    ("build", "message"),
    [
        (discrete, "k: all parameters are discrete"),
        (missing, "y has missing values"),
        (lambda: None, "no parameters"),
    ],
)
def test_other_models_are_refused(build, message):
    with pytest.raises(InvalidArgument, match=message):
        check_model(made(build))


def laplace():
    pm.Laplace("y", pm.Normal("a", 0, 1), pm.HalfNormal("s", 1), observed=X[:, 0])


def hinge():
    pm.Potential("rows", -pm.math.abs(X[:, 0] - pm.Normal("a", 0, 1)))


@pytest.mark.parametrize(
    ("build", "named"),
    [(laplace, ["y (Laplace)"]), (hinge, ["rows"]), (one_variable, []), (shared_data, []), (mixture, [])],
)
def test_kinks_are_found(build, named):
    assert kinks(made(build)) == named


def no_data():
    pm.Normal("a", 0, 1)


def process():
    scale = pm.HalfNormal("scale", 1)
    gp = pm.gp.Marginal(cov_func=pm.gp.cov.ExpQuad(1, ls=scale))
    gp.marginal_likelihood("y", X=X[:, :1], y=X[:, 1], sigma=1.0)


@pytest.mark.parametrize(
    ("build", "message"),
    [(no_data, "no observed variables"), (process, "y: no observed variable has 32 rows")],
)
def test_models_without_rows_are_refused(build, message):
    with pytest.raises(InvalidArgument, match=message):
        graph_of(made(build))


@pytest.mark.parametrize("build", [groups, centred_hierarchy, flat_priors, nothing_but_flat])
def test_derivatives_of_the_prior_are_those_of_differences(build):
    graph = graph_of(made(build))
    prior, d = prior_of(graph), graph.dimension
    point = np.array([0.3, -0.2, 0.5, 0.1, 0.4, 0.2])[:d]
    value, gradient, products = prior(point, np.eye(d))
    right = by_differences(lambda theta: prior(theta, np.zeros((1, d)))[0], point)
    np.testing.assert_allclose(value, right.value)
    np.testing.assert_allclose(gradient, right.gradient, rtol=1e-6)
    np.testing.assert_allclose(products, right.hessian, rtol=1e-5, atol=1e-5)


def test_initvals_are_where_the_mode_is_looked_for():
    with pm.Model() as model:
        groups()
    np.testing.assert_allclose(start_of(model), np.zeros(5))
    given = start_of(model, {"scale": np.e, "effects": np.arange(4.0)})
    np.testing.assert_allclose(given, [1.0, 0.0, 1.0, 2.0, 3.0])
    with pytest.raises(InvalidArgument, match="initvals has effect; the model has scale, effects, y"):
        start_of(model, {"effect": 0.0})
