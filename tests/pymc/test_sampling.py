"""Draws from PyMC models, unchanged; oracles: quadrature and importance sampling. Seeds are fixed."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from tests.laplace.cases import counts_in_groups, log_prior, moments_of_groups
from tests.pymc.common import check_moments, moments, monte_carlo_error

import gumbelrace as gr
import gumbelrace.pymc as raced
from gumbelrace.errors import InvalidArgument, MissingPackage, NoMode, NotConverged, PoorFit, PromiseBroken
from gumbelrace.kernels.blocks import Blocks
from gumbelrace.models import logistic
from gumbelrace.pymc.result import natural_values
from gumbelrace.pymc.sampling import Progress, made_ready_for

pm = pytest.importorskip("pymc", reason='needs pip install "gumbelrace[pymc]"')

# 20 of 20,000 rows have the dummy column, and all but one of them are ones.
ROWS, SPECIAL, ONES = 20_000, 20, 19


@pytest.fixture(scope="module")
def few_special_rows():
    rng = np.random.default_rng(0)
    dummy = (np.arange(ROWS) < SPECIAL).astype(float)
    y = (rng.random(ROWS) < 1 / (1 + np.e)).astype(int)
    y[:SPECIAL] = np.arange(SPECIAL) < ONES
    return dummy, y


def exact_of_dummy(y):
    """Give mean and sd of b by quadrature: the data count by four numbers only."""
    ones, others = y[SPECIAL:].sum(), ROWS - SPECIAL
    a, b = np.meshgrid(np.linspace(-1.2, -0.8, 201), np.linspace(-2.0, 25.0, 2001), indexing="ij")
    logs = stats.norm.logpdf(a, 0, 10) + stats.norm.logpdf(b, 0, 10)
    logs += ones * a - others * np.logaddexp(0, a) + ONES * (a + b) - SPECIAL * np.logaddexp(0, a + b)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = np.sum(weights * b)
    return mean, np.sqrt(np.sum(weights * (b - mean) ** 2))


def test_a_dummy_column_of_few_rows_comes_out_right(few_special_rows, capsys):
    dummy, y = few_special_rows
    with pm.Model(coords={"coefficient": ["b"]}) as model:
        a = pm.Normal("a", 0, 10)
        b = pm.Normal("b", 0, 10, dims="coefficient")
        pm.Deterministic("odds", pm.math.exp(a))
        logit = pm.Deterministic("logit", a + b[0] * pm.Data("dummy", dummy))
        pm.Bernoulli("y", logit_p=logit, observed=y)
        result = raced.sample(draws=4000, random_seed=1)
    mean, sd = exact_of_dummy(y)
    drawn = result.posterior["b"].sel(coefficient="b").values
    error, error_of_square = monte_carlo_error(drawn), monte_carlo_error((drawn - mean) ** 2)
    # By Student's t with 39 degrees of freedom, each fails with a chance of 3e-4.
    assert abs(drawn.mean() - mean) < 4 * error
    assert abs(np.mean((drawn - mean) ** 2) - sd**2) < 4 * error_of_square
    # The Laplace law itself would not pass: its mean is the mode, logit(19 / 20) - a.
    assert abs(np.log(19) + 1.0 - mean) > 4 * error
    np.testing.assert_allclose(result.posterior["odds"], np.exp(result.posterior["a"]))
    assert "logit" not in result.posterior  # it has a value for each row
    assert result.sample_stats["evaluations"].mean() < 0.02 * ROWS
    assert {"promise", "forecast", "audit", "pymc_version"} <= set(result.posterior.attrs)
    said = capsys.readouterr().err
    assert [said.index(what) for what in ("compiling", "mode", "pilot", "forecast", "drawing")]
    assert set(model.named_vars) >= set(result.posterior.data_vars)


def fitted(model):
    fit, compiled = made_ready_for(model, Progress(False), None)
    trace = fit.sample(2000, rng=2, progress=False, check=2)
    assert trace.checked is not None
    assert not trace.checked.broken
    return fit, natural_values(model, compiled.graph, trace["position"], None)


def test_student_regression_with_unknown_scale_and_freedom():
    rng = np.random.default_rng(3)
    x = rng.normal(size=3000)
    y = 1.0 + 0.5 * x + 0.7 * rng.standard_t(4, 3000)
    with pm.Model() as model:
        b = pm.Normal("b", 0, 3, shape=2)
        sigma, nu = pm.HalfNormal("sigma", 2), pm.Gamma("nu", 2, 0.1)
        pm.StudentT("y", nu=nu, mu=b[0] + b[1] * x, sigma=sigma, observed=y)
    fit, found = fitted(model)

    def log_density(points):
        sigma, nu = np.exp(points[:, 2]), np.exp(points[:, 3])
        prior = stats.norm.logpdf(points[:, :2], 0, 3).sum(axis=1) + points[:, 2] + points[:, 3]
        prior += stats.halfnorm.logpdf(sigma, scale=2) + stats.gamma.logpdf(nu, 2, scale=10)
        factors = [
            stats.t.logpdf(y, n, p[0] + p[1] * x, s).sum()
            for p, s, n in zip(points, sigma, nu, strict=True)
        ]
        return prior + np.array(factors)

    def natural(points):
        return np.column_stack([points[:, :2], np.exp(points[:, 2:])])

    exact = moments(log_density, fit.law, natural, rng, points=3000)
    drawn = np.concatenate([found["b"], found["sigma"][..., None], found["nu"][..., None]], axis=-1)
    check_moments(drawn, exact)


def test_poisson_with_group_effects():
    rng, groups = np.random.default_rng(4), 100
    group = rng.integers(0, groups, 200_000)
    y = rng.poisson(np.exp(0.2 + 0.5 * rng.standard_normal(groups)[group]))
    with pm.Model() as model:
        a, scale = pm.Normal("a", 0, 2), pm.HalfNormal("scale", 1)
        effects = pm.Normal("effects", 0, scale, shape=groups)
        pm.Poisson("y", pm.math.exp(a + effects[group]), observed=y)
    fit, found = fitted(model)
    totals, counts = np.bincount(group, y, groups), np.bincount(group, minlength=groups)

    def log_density(points):
        a, log_scale, effects = points[:, 0], points[:, 1], points[:, 2:]
        prior = stats.norm.logpdf(a, 0, 2) + stats.halfnorm.logpdf(np.exp(log_scale)) + log_scale
        prior += stats.norm.logpdf(effects, 0, np.exp(log_scale)[:, None]).sum(axis=1)
        rates = a[:, None] + effects
        return prior + rates @ totals - np.exp(rates) @ counts

    def natural(points):
        return np.column_stack([points[:, 0], np.exp(points[:, 1]), points[:, 2:5]])

    exact = moments(log_density, fit.law, natural, rng, points=60_000)
    first = [found["a"][..., None], found["scale"][..., None], found["effects"][..., :3]]
    check_moments(np.concatenate(first, axis=-1), exact)


@pytest.fixture(scope="module")
def many_groups():
    """A hundred groups of about forty counts, and a rate and a scale of theirs."""
    (group, y), groups = counts_in_groups(), 100
    with pm.Model() as model:
        rate, scale = pm.Normal("rate", 0, 2), pm.HalfNormal("scale", 1)
        effects = pm.Normal("effects", 0, scale, shape=groups)
        pm.Poisson("y", pm.math.exp(rate + effects[group]), observed=y)
    return model, np.bincount(group, y, groups), np.bincount(group, minlength=groups)


def test_many_groups_are_drawn_by_blocks(many_groups):
    """Oracle: quadrature. Each of 204 comparisons fails with a chance of 3e-4, by Student's t."""
    model, totals, counts = many_groups
    fit, compiled = made_ready_for(model, Progress(False), None)
    assert compiled._hessians._colouring.size == 2  # the rate, and all effects together
    assert isinstance(fit.kernel, Blocks)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PromiseBroken)
        trace = fit.sample(5000, rng=3, progress=False, check=2)
    means, sds = moments_of_groups(totals, counts)
    assert np.max(np.abs(fit.mode[2:] - means[2:]) / sds[2:]) > 0.1  # the mode would not pass
    found = natural_values(model, compiled.graph, trace["position"], None)
    drawn = np.concatenate([found["rate"][..., None], found["scale"][..., None], found["effects"]], axis=-1)
    check_moments(drawn, (means, sds, np.zeros_like(means)))


@pytest.fixture(scope="module")
def centred():
    """Forty groups of 200 rows around a mean, with a scale, and of each group another measurement."""
    rng, groups = np.random.default_rng(8), 40
    group, effects = np.arange(8_000) % groups, rng.normal(1.0, 0.4, groups)
    y, other = rng.normal(effects[group], 1.0), rng.normal(effects, 0.2)
    with pm.Model() as model:
        mu, tau = pm.Normal("mu", 0, 3), pm.HalfNormal("tau", 1)
        theta = pm.Normal("theta", mu, tau, shape=groups)
        pm.Normal("other", theta, 0.2, observed=other)
        pm.Normal("y", theta[group], 1.0, observed=y)
    return model, np.bincount(group, y, groups) / 200, other


def exact_of_centred(means, other):
    """Means and sds by quadrature over mean and scale: given those, effects are normal."""
    mu, log_tau = np.meshgrid(np.linspace(0.4, 1.6, 121), np.linspace(-2.2, 0.6, 141), indexing="ij")
    mu, tau = mu.ravel()[:, None], np.exp(log_tau.ravel())[:, None]
    precision = 200.0 + 25.0
    told = (200.0 * means + 25.0 * other) / precision
    heights = stats.norm.logpdf(mu, 0, 3)[:, 0] + (stats.halfnorm.logpdf(tau) + np.log(tau))[:, 0]
    heights += stats.norm.logpdf(told, mu, np.hypot(tau, precision**-0.5)).sum(axis=1)
    chances = np.exp(heights - heights.max())
    chances /= chances.sum()
    variance = 1.0 / (precision + tau**-2)
    first = variance * (precision * told + mu * tau**-2)
    values = np.column_stack([mu, tau, first])
    right = chances @ values
    second = chances @ np.column_stack([mu**2, tau**2, first**2 + variance])
    return right, np.sqrt(second - right**2), np.zeros(len(right))


def test_a_centred_hierarchy_with_a_value_of_each_group(centred):
    """Oracle: quadrature. Each of 84 comparisons fails with a chance of 3e-4; a wrong scale is noticed."""
    model, means, other = centred
    fit, found = fitted(model)
    drawn = np.concatenate([found["mu"][..., None], found["tau"][..., None], found["theta"]], axis=-1)
    exact = exact_of_centred(means, other)
    check_moments(drawn, exact)
    with pytest.raises(AssertionError):
        check_moments(drawn, exact_of_centred(means, means))
    assert fit.forecast.size == 8_000


RARE = 0.005, 0.01, 0.05, 0.3


def test_rare_indicator_columns_are_right_by_pymc_and_numba():
    """Oracle: importance sampling with all rows. Laplace's own means, the mode, are not right."""
    rng = np.random.default_rng(9)
    x = np.column_stack([np.ones(6_000), rng.random((6_000, len(RARE))) < RARE]).astype(float)
    y = (rng.random(6_000) < 1 / (1 + np.exp(-(x @ [-1.0, 2.4, -1.0, 0.5, 0.5])))).astype(float)
    with pm.Model() as model:
        b = pm.Normal("b", 0, 10, shape=x.shape[1])
        pm.Bernoulli("y", logit_p=pm.math.dot(x, b), observed=y)
    fit, found = fitted(model)
    kinds, kind = np.unique(x, axis=0, return_inverse=True)  # of rows: they are few
    ones, counts = np.bincount(kind, y), np.bincount(kind)

    def log_density(points):
        s = points @ kinds.T
        return s @ ones - np.logaddexp(0.0, s) @ counts - 0.005 * np.sum(points**2, axis=1)

    exact = moments(log_density, fit.law, np.asarray, rng, points=200_000)
    check_moments(found["b"], exact)
    with pytest.raises(AssertionError):
        check_moments(found["b"], (fit.mode, exact[1], exact[2]))
    given = logistic.log_factor, logistic.terms, (x, y), len(x)
    by_numba = gr.posterior(*given, start=np.zeros(5), log_prior=log_prior, progress=False)
    check_moments(by_numba.sample(2000, rng=3, progress=False)["position"], exact)


def mixture():
    y = np.random.default_rng(5).normal(size=200) + np.arange(200) % 2 * 3.0
    weight, mu = pm.Beta("weight", 2, 2), pm.Normal("mu", 0, 3, shape=2)
    pm.NormalMixture("y", pm.math.stack([weight, 1 - weight]), mu, 1.0, observed=y)


def funnel():
    v = pm.Normal("v", 0, 3)
    x = pm.Normal("x", 0, pm.math.exp(v / 2), shape=9)
    pm.Normal("y", x[0], 1.0, observed=np.random.default_rng(6).normal(size=200))


def test_what_no_normal_law_is_close_to_is_refused():
    with pm.Model() as model:
        mixture()
    with pytest.raises(NoMode, match=r"no curved mode: it is flat along mu\[0\]"):
        raced.sample(model, progressbar=False)


def test_a_funnel_is_not_silently_wrong():
    """Its mode, at v = -40, is curved, and far from where the posterior is: the chains say so."""
    with pm.Model() as model:
        funnel()
    with pytest.warns((NotConverged, PoorFit)):
        raced.sample(model, progressbar=False)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"model": 1000}, r"model is 1000; it must be a pymc\.Model.*sample\(draws=1000\)"),
        ({"draws": 0}, "draws is 0; it must be an integer of at least 1"),
        ({"chains": 2.5}, r"chains is 2\.5"),
        ({"tune": -1}, "tune is -1"),
        ({"var_names": "slope"}, "var_names has slope; the model has a"),
        ({"num_samples": 5, "cores": 2}, "num_samples: it is called draws; cores: all chains run in one"),
        (
            {"target_accept": 0.9},
            "target_accept: a setting of NUTS.*Arguments are model, draws, chains",
        ),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_compiled(given, message, monkeypatch):
    monkeypatch.setattr("gumbelrace.pymc.sampling.made_ready_for", None)
    with pm.Model():
        pm.Normal("y", pm.Normal("a", 0, 1), 1, observed=np.zeros(40))
        with pytest.raises(InvalidArgument, match=message):
            raced.sample(**given)


def test_without_pymc_the_extra_is_named(without):
    without("pymc")
    with pytest.raises(MissingPackage, match=r"gumbelrace\[pymc\]"):
        raced.sample(None)


def test_ctrl_c_before_the_first_draw_is_ctrl_c(monkeypatch):
    class Stopped:
        def sample(self, *args, **options):
            return SimpleNamespace(draws=0)

    monkeypatch.setattr("gumbelrace.pymc.sampling.made_ready_for", lambda *given: (Stopped(), None))
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("a"), 1.0, observed=np.zeros(100))
    with pytest.raises(KeyboardInterrupt):
        raced.sample(model, progressbar=False)
