"""A PyMC model given a table on disk, built with a few of its rows.

False-alarm rate of the statistical test: 1e-4 over seeds.
"""

import numpy as np
import pytest
from tests.laplace.cases import simulated
from tests.laplace.test_from_table import quadrature, stored
from tests.laplace.test_posterior import check_moments

import gumbelrace as gr
from gumbelrace.errors import InvalidArgument, NoMode, ShapeMismatch
from gumbelrace.laplace.progress import Progress

pm = pytest.importorskip("pymc", reason="PyMC is not installed")

import gumbelrace.pymc as raced  # noqa: E402
from gumbelrace.pymc.from_table import of_table  # noqa: E402
from gumbelrace.pymc.model import model_of  # noqa: E402

COLUMNS = {"x": ["0", "1"], "y": "2"}


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    x, y = simulated(30_000, 2)
    table, _ = stored(tmp_path_factory.mktemp("rows"), x, y)
    with pm.Model() as model:
        slopes = pm.Normal("slopes", 0.0, 10.0, shape=2)
        rows = pm.Data("x", x[:500])
        pm.Bernoulli("y", logit_p=rows @ slopes, observed=y[:500])
    return x, y, table, model


def test_draws_are_those_given_all_rows(case):
    """Oracle: quadrature. Given the rows alone that the model was built with, sds are 8 times as large."""
    x, y, table, model = case
    fit = of_table(model_of(model), COLUMNS, gr.Passes(table, rng=0), None, Progress(False))

    def log_posterior(theta):
        s = x @ theta
        return y @ s - np.logaddexp(0.0, s).sum() - 0.005 * theta @ theta

    mean, sd = quadrature(log_posterior, fit)
    passes = gr.Passes(table, rng=0)
    idata = raced.sample(model, 3_000, random_seed=1, table=passes, columns=COLUMNS, progressbar=False)
    check_moments(idata.posterior["slopes"].values, mean, sd)
    assert "passes over 30,000 rows" in idata.posterior.attrs["read"]


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"x": ["0", "1"]}, InvalidArgument, "y has rows"),
        ({"x": "0", "y": "2"}, ShapeMismatch, "list of as many"),
        ({**COLUMNS, "z": "1"}, InvalidArgument, "columns has z"),
        ({"x": ["0", "7"], "y": "2"}, InvalidArgument, "no column '7'"),
    ],
)
def test_what_is_wrong_is_said(case, columns, error, message):
    *_, table, model = case
    with pytest.raises(error, match=message):
        raced.sample(model, 10, table=table, columns=columns, progressbar=False)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (0.5, InvalidArgument, "x is 0.5 in a row .* array of float64"),
        (np.nan, NoMode, "no finite number in row 7 .* of column '0'"),
    ],
)
def test_numbers_are_not_cut_to_the_type_of_the_model(tmp_path, value, error, message):
    """Whole numbers in another type are taken; a fraction, or a gap, is not made one."""
    x, y = np.arange(100.0) % 9, np.arange(100.0) / 50.0
    with pm.Model() as model:
        slope = pm.Normal("slope", 0.0, 10.0)
        pm.Normal("y", slope * pm.Data("x", np.arange(40)), 1.0, observed=y[:40])
    columns = {"x": "0", "y": "1"}
    for change in (x[7], value):
        x[7] = change
        np.save(tmp_path / "rows.npy", np.column_stack([x, y]))
        passes = gr.Passes(gr.open_table(tmp_path / "rows.npy"), rng=0, pool_rows=20_000)
        if np.array_equal(x, np.arange(100) % 9):
            fit = of_table(model_of(model), columns, passes, None, Progress(False))
            assert np.allclose(fit.mode, x @ y / (x @ x + 0.01))
            continue
        with pytest.raises(error, match=message):
            of_table(model_of(model), columns, passes, None, Progress(False))
