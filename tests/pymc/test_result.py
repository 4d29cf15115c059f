"""Draws as PyMC gives them; nothing is compiled."""

import numpy as np
import pytest

from gumbelrace.errors import InvalidArgument, NotConverged
from gumbelrace.pymc.graph import graph_of
from gumbelrace.pymc.result import as_pymc_gives_it, natural_values, warn_unless_converged

pm = pytest.importorskip("pymc", reason='needs pip install "gumbelrace[pymc]"')

ROWS, CHAINS, DRAWS = 50, 2, 3000
X = np.random.default_rng(0).normal(size=ROWS)
POSITIONS = np.random.default_rng(1).normal(size=(CHAINS, DRAWS, 3))


@pytest.fixture(scope="module")
def model():
    with pm.Model(coords={"column": ["one", "x"]}) as made:
        b, sigma = pm.Normal("b", 0, 1, dims="column"), pm.HalfNormal("sigma", 1)
        pm.Deterministic("fixed", pm.math.constant(np.arange(3.0)))
        pm.Deterministic("product", b * sigma)
        mean = pm.Deterministic("mean", b[0] + b[1] * X)
        pm.Normal("y", mean, sigma, observed=X)
    return made


def test_values_are_natural(model):
    found = natural_values(model, graph_of(model), POSITIONS, None)
    assert {name: values.shape[2:] for name, values in found.items()} == {
        "b": (2,),
        "sigma": (),
        "fixed": (3,),
        "product": (2,),
    }
    np.testing.assert_allclose(found["sigma"], np.exp(POSITIONS[..., 2]))
    np.testing.assert_allclose(found["product"], found["b"] * found["sigma"][..., None])
    np.testing.assert_array_equal(found["fixed"][1, 7], np.arange(3.0))


def test_variables_by_row_are_given_if_they_are_named(model):
    found = natural_values(model, graph_of(model), POSITIONS[:, :5], ["mean"])
    exact = POSITIONS[:, :5, :1] + POSITIONS[:, :5, 1:2] * X
    np.testing.assert_allclose(found["mean"], exact)


def test_unknown_names_are_refused(model):
    with pytest.raises(InvalidArgument, match="var_names has slope; the model has b, sigma"):
        natural_values(model, graph_of(model), POSITIONS, ["slope"])


def given(model, positions):
    values = natural_values(model, graph_of(model), positions, None)
    stats = {"acceptance_rate": np.ones(positions.shape[:2])}
    return as_pymc_gives_it(model, values, stats, {"promise": "law within 0.001"})


def test_the_result_has_the_names_of_the_model(model):
    result = given(model, POSITIONS)
    assert result.posterior["b"].sel(column="x").shape == (CHAINS, DRAWS)
    assert result.posterior.attrs["promise"] == "law within 0.001"
    np.testing.assert_array_equal(result.observed_data["y"], X)


def test_chains_that_differ_are_warned_of(model, recwarn):
    warn_unless_converged(given(model, POSITIONS), model)
    assert not [found for found in recwarn if found.category is NotConverged]
    apart = POSITIONS + np.arange(CHAINS)[:, None, None]
    with pytest.warns(NotConverged, match="rhat"):
        warn_unless_converged(given(model, apart), model)
