"""Discrete variables of PyMC models; oracle: quadrature over one continuous parameter. Seeds are fixed."""

import functools
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from tests.pymc.common import monte_carlo_error

import gumbelrace as gr
import gumbelrace.pymc as raced
from gumbelrace.errors import InvalidArgument, NoMode, UnknownRange
from gumbelrace.laplace.progress import Progress
from gumbelrace.pymc import discrete_posterior, discrete_rows
from gumbelrace.pymc.discrete import joint_states, levels_of

pm = pytest.importorskip("pymc", reason='needs pip install "gumbelrace[pymc]"')

ROWS = 2000
# State 1 is impossible. The posterior of b is elsewhere in state 2: its slopes are multiplied.
PRIOR, TIMES = np.array([0.4, 0.0, 0.6]), np.array([1.0, 1.0, 1.05])


models_of = functools.cache(discrete_posterior.models_of)


@pytest.fixture(autouse=True)
def compiled_once(monkeypatch):
    for module in (discrete_posterior, discrete_rows):
        monkeypatch.setattr(module, "models_of", models_of)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=ROWS)
    return x, (rng.random(ROWS) < 1 / (1 + np.exp(-x))).astype(int)


@pytest.fixture(scope="module")
def model(data):
    x, y = data
    with pm.Model() as model:
        q = pm.Categorical("q", PRIOR)
        b = pm.Normal("b", 0.9, 0.1)
        slope = pm.Deterministic("slope", b * pm.math.stack(list(TIMES))[q])
        pm.Bernoulli("y", logit_p=slope * x, observed=y)
    return model


def log_joint(data, b):
    """Give log p(q, b, y) up to a constant, of shape (states, points)."""
    x, y = data
    logits = TIMES[:, None, None] * b[:, None] * x
    rows = np.where(y, logits, 0.0) - np.logaddexp(0.0, logits)
    with np.errstate(divide="ignore"):
        return rows.sum(axis=-1) + stats.norm.logpdf(b, 0.9, 0.1) + np.log(PRIOR)[:, None]


@pytest.fixture(scope="module")
def exact(data):
    """Give P(q = 2), and mean and sd of b."""
    b = np.linspace(0.4, 1.5, 400)
    logs = log_joint(data, b)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = np.sum(weights @ b)
    return np.array([weights[2].sum(), mean, np.sum(weights @ (b - mean) ** 2)])


def check_law(result, exact):
    """Check P(q = 2), the mean and the variance of b; each fails with a chance of 3e-4, by Student's t."""
    q, b = result.posterior["q"].values, result.posterior["b"].values
    assert q.dtype.kind == "i"
    assert set(np.unique(q)) == {0, 2}
    found = np.stack([q == 2, b, (b - exact[1]) ** 2], axis=-1).astype(float)
    error = monte_carlo_error(found, batches=20 // found.shape[0])
    off = np.abs(found.mean(axis=(0, 1)) - exact) / error
    assert (off < 4.6).all(), off  # 19 degrees of freedom


def test_states_and_parameters_have_the_right_law(model, exact):
    result = raced.sample(model, draws=2000, chains=2, random_seed=1, progressbar=False)
    check_law(result, exact)
    state = np.take(TIMES, result.posterior["q"])
    np.testing.assert_allclose(result.posterior["slope"], state * result.posterior["b"])
    assert result.sample_stats["evaluations"].mean() < 0.3 * 4 * ROWS
    assert "not contradicted" in result.posterior.attrs["audit"]
    assert "no decision" not in result.posterior.attrs["audit"]
    odds = exact[0] / (1 - exact[0]) * PRIOR[0] / PRIOR[2]
    with pytest.raises(AssertionError):  # as if the prior of q were flat
        check_law(result, [odds / (1 + odds), *exact[1:]])


def test_where_normal_laws_fit_badly_parameters_move_by_python(model, exact, monkeypatch):
    monkeypatch.setattr(discrete_posterior, "moves_often", lambda fit: False)
    result = raced.sample(model, draws=2000, chains=2, random_seed=5, progressbar=False)
    check_law(result, exact)


def test_steps_inside_pymc_sample(model, exact):
    with model:
        steps = [raced.Gibbs([model["q"]]), raced.Metropolis([model["b"]])]
        result = pm.sample(1500, tune=300, chains=2, cores=1, step=steps, random_seed=2, progressbar=False)
    check_law(result, exact)
    assert {"evaluations", "fraction_read", "law_error", "accepted", "scaling", "changed"} <= set(
        result.sample_stats
    )
    assert (np.diff(result.sample_stats["scaling"].values, axis=1) == 0).all()  # tuned before


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method": gr.Exact()},
        {"delta": 0.01},
        {"method": gr.Betting(0.01), "reward_range": (-8.0, 0.0)},
    ],
)
def test_gibbs_draws_the_conditional(model, data, options):
    """500 draws given b = 0.9: by the normal law of counts, one fails with a chance of 6e-5."""
    step = raced.Gibbs([model["q"]], model=model, rng=np.random.default_rng(3), **options)
    point = model.initial_point() | {"b": np.array(0.9)}
    logs = log_joint(data, np.array([0.9]))[:, 0]
    chances = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    drawn = [int(step.step(point)[0]["q"]) for _ in range(500)]
    counts = np.bincount(drawn, minlength=3)
    assert counts[1] == 0
    assert abs(counts[2] - 500 * chances[2]) < 4 * np.sqrt(500 * chances[2] * chances[0])
    assert abs(counts[2] - 500 * PRIOR[2]) > 4 * np.sqrt(500 * PRIOR[2] * PRIOR[0])  # not the prior


def test_without_an_expansion_moves_are_tested_exactly(model):
    step = raced.Metropolis([model["b"]], model=model, expand=False, scaling=0.05)
    point, (statistics,) = step.step(model.initial_point())
    assert statistics["fraction_read"] == 1.0
    assert set(point) == set(model.initial_point())


def test_a_step_can_go_to_another_process(model):
    """It gives the same draws there, by the same random numbers."""
    cloudpickle = pytest.importorskip("cloudpickle")
    step = raced.Gibbs([model["q"]], model=model)
    other = cloudpickle.loads(cloudpickle.dumps(step))
    drawn = []
    for one in (step, other):
        one.rng = np.random.default_rng(4)
        drawn.append([int(one.step(model.initial_point())[0]["q"]) for _ in range(20)])
    assert drawn[0] == drawn[1]


def test_levels():
    with pm.Model() as several:
        weights = pm.Dirichlet("weights", np.ones(3))
        pm.Categorical("c", weights)
        pm.Binomial("b", [2, 3], 0.5)
        pm.DiscreteUniform("u", [-1, 0], 1)
    levels = [levels_of(several, value).tolist() for value in several.discrete_value_vars]
    assert levels == [[0, 1, 2], [0, 1, 2, 3], [-1, 0, 1]]
    with pm.Model() as two:
        pm.Bernoulli("q", 0.5, shape=2)
    assert joint_states(two).tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]


def poisson(x):
    q = pm.Poisson("q", 2.0)
    pm.Normal("y", q * pm.Normal("a"), 1.0, observed=x)


def many(x):
    q = pm.Bernoulli("q", 0.5, shape=6)
    pm.Normal("y", pm.math.sum(q) * pm.Normal("a"), 1.0, observed=x)


def bounds_that_move(x):
    q = pm.DiscreteUniform("q", 0, 1 + pm.Bernoulli("k", 0.5))
    pm.Normal("y", q * pm.Normal("a"), 1.0, observed=x)


def for_each_row(x):
    q = pm.Bernoulli("q", 0.5, shape=len(x))
    pm.Normal("y", q * pm.Normal("a"), 1.0, observed=x)


def alone(x):
    pm.Normal("y", pm.Bernoulli("q", 0.5), 1.0, observed=x)


def aside(x):
    q = pm.Bernoulli("q", 0.5)
    pm.Normal("y", pm.Normal("a", q), 1.0, observed=x)


def cumulated(x):
    q = pm.Bernoulli("q", 0.5)
    pm.Normal("y", pm.Normal("a") * q * pm.math.cumsum(pm.Data("x", x)), 1.0, observed=x)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (poisson, "q is Poisson, which has no finite list of states"),
        (many, r"q: 64 states in all.*pm.sample\(step=gumbelrace.pymc.Gibbs"),
        (bounds_that_move, "upper depends on parameters"),
        (for_each_row, "q has an entry for each of 50 rows"),
        (alone, "q: all parameters are discrete; use pm.sample"),
        (cumulated, "^x: log factors that depend on other rows"),
    ],
)
def test_what_sample_refuses(build, message):
    with pm.Model() as refused:
        build(np.linspace(0.0, 1.0, 50))
    with pytest.raises(InvalidArgument, match=message):
        raced.sample(refused, progressbar=False)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (poisson, "q is Poisson, which has no finite list of states"),
        (for_each_row, "q has an entry for each of 50 rows"),
        (aside, "q: no log factor depends on it"),
        (cumulated, "^x: log factors that depend on other rows"),
    ],
)
def test_what_gibbs_refuses(build, message):
    with pm.Model() as refused:
        build(np.linspace(0.0, 1.0, 50))
    with pytest.raises(InvalidArgument, match=message):
        raced.Gibbs([refused["q"]], model=refused)


def test_methods_that_cannot_decide_are_refused(model):
    with pytest.raises(UnknownRange, match="Betting needs to know how large rewards can be; give"):
        raced.Gibbs([model["q"]], model=model, method=gr.Betting())
    with pytest.raises(InvalidArgument, match="Penalty gives only a decision on a move"):
        raced.Gibbs([model["q"]], model=model, method=gr.Penalty())
    for method in (gr.Thinning(), gr.Betting()):
        with pytest.raises(UnknownRange, match="a PyMC model does not tell; use Penalty"):
            raced.Metropolis([model["b"]], model=model, method=method)
    with pm.Model() as counted:
        poisson(np.linspace(0.0, 1.0, 50))
    with pytest.raises(InvalidArgument, match=r"q is Poisson.*give expand=False"):
        raced.Metropolis([counted["a"]], model=counted)
    with pytest.raises(InvalidArgument, match=r"q: discrete; use gumbelrace\.pymc\.Gibbs"):
        raced.Metropolis([model["q"]], model=model)


def test_a_state_without_a_mode_is_named(monkeypatch):
    def flat(*_):
        raise NoMode("the posterior has no curved mode")

    monkeypatch.setattr(discrete_posterior, "made_ready", flat)
    model = SimpleNamespace(functions=SimpleNamespace(log_prior=None))
    with pytest.raises(NoMode, match=r"with q = 0, r\[1\] = 2: the posterior has no curved mode"):
        discrete_posterior.fitted(model, "q = 0, r[1] = 2", None, Progress(False))
