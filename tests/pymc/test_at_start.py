"""Data that PyMC cannot compute with are named as such, before anything is compiled."""

import numpy as np
import pytest

from gumbelrace.errors import InvalidArgument
from gumbelrace.pymc.at_start import check_at_start
from gumbelrace.pymc.checks import check_by_rows, interpreted
from gumbelrace.pymc.graph import graph_of, start_of

pm = pytest.importorskip("pymc", reason='needs pip install "gumbelrace[pymc]"')

N = 60
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(N, 3)), RNG.integers(0, 2, N)
GROUPS = RNG.integers(0, 4, N)


@pytest.fixture
def regression():
    with pm.Model() as model:
        x, y, group = pm.Data("x", X), pm.Data("y_data", Y), pm.Data("group", GROUPS)
        effects = pm.Normal("effects", 0, 1, shape=4)
        b = pm.Normal("b", 0, 10, shape=3)
        pm.Bernoulli("y", logit_p=effects[group] + x @ b, observed=y)
    return model


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"x": X[:50]}, r"shapes.*x has the shape \(50, 3\), y_data has the shape \(60,\)"),
        ({"x": X[:1]}, r"broadcast.*x has the shape \(1, 3\)"),
        ({"y_data": Y[:50]}, r"x has the shape \(60, 3\), y_data has the shape \(50,\)"),
        ({"group": GROUPS + 3}, "out of bounds for axis 0 with size 4"),
        (
            {"x": np.where(np.arange(N)[:, None] == 3, np.nan, X)},
            "x has missing values; leave those rows out",
        ),
        (
            {"y_data": Y + 1},
            r"y: at the initial point the log density of row \d+ \(\d+ such rows\) is -inf",
        ),
    ],
)
def test_data_that_were_set_and_do_not_fit_are_named(regression, changed, message):
    check_at_start(regression)
    pm.set_data(changed, model=regression)
    with pytest.raises(InvalidArgument, match=message):
        check_at_start(regression)


def test_data_that_were_set_are_those_that_are_read(regression):
    graph_of(regression)
    pm.set_data({"x": X[:50], "y_data": Y[:50], "group": GROUPS[:50]}, model=regression)
    check_at_start(regression)
    graph, start = graph_of(regression), start_of(regression)
    check_by_rows(graph, start)
    assert graph.size == 50
    found = interpreted(graph)(np.arange(50), start + 0.1, *(leaf.array for leaf in graph.leaves))
    logits = 0.1 + 0.1 * X[:50].sum(axis=1)
    np.testing.assert_allclose(found, Y[:50] * logits - np.logaddexp(0.0, logits))


def minibatch():
    x, y = pm.Minibatch(X, X[:, 0], batch_size=40)
    pm.Normal("y", x @ pm.Normal("b", 0, 1, shape=3), 1, observed=y, total_size=N)


def scaled_up():
    pm.Normal("y", pm.Normal("a", 0, 1), 1, observed=X[:, 0], total_size=10 * N)


@pytest.mark.parametrize("build", [minibatch, scaled_up])
def test_minibatches_are_refused(build):
    with pm.Model() as model:
        build()
    with pytest.raises(InvalidArgument, match=r"y is a minibatch.*give all rows, and leave total_size out"):
        check_at_start(model)


def infinite():
    x = np.where(np.arange(N) == 3, np.inf, X[:, 0])
    pm.Normal("y", x * pm.Normal("b", 1, 1), 1, observed=Y)


def column():
    pm.Normal("y", X[:, 0] * pm.Normal("b", 0, 1), 1, observed=X[:, 1:2])


def negative():
    pm.Poisson("y", pm.math.exp(pm.Normal("a", 0, 1)), observed=np.arange(N) - 1)


def wrong_start():
    pm.Uniform("y", 0.0, pm.HalfNormal("top", 1.0), observed=5.0 + Y)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            infinite,
            r"^y: .*log density of row 3 .* an array of shape \(60,\) has entries that are NaN or infinite",
        ),
        (column, r"cannot compute the model's log density: .*y has the shape \(60, 1\)"),
        (
            negative,
            "^y: at the initial point the log density of row 0 .* a value that the likelihood does not",
        ),
        (wrong_start, "give other initvals"),
    ],
)
def test_impossible_rows_are_named(build, message):
    with pm.Model() as model:
        build()
    with pytest.raises(InvalidArgument, match=message):
        check_at_start(model)


def test_initvals_make_rows_possible():
    with pm.Model() as model:
        wrong_start()
    check_at_start(model, {"top": 10.0})
    with pytest.raises(InvalidArgument, match=r"initvals is .*give one mapping"):
        check_at_start(model, [{"top": 10.0}] * 4)
