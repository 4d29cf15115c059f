"""NumPyro models, unchanged: their terms by rows, the law of draws, and models that will not do."""

import numpy as np
import pytest
from tests.laplace.cases import Groups

from gumbelrace.errors import InvalidArgument

numpyro = pytest.importorskip("numpyro", reason="NumPyro is not installed")

import jax.numpy as jnp  # noqa: E402
import numpyro.distributions as dist  # noqa: E402
from numpyro.contrib.control_flow import scan  # noqa: E402
from numpyro.infer.util import potential_energy  # noqa: E402

import gumbelrace.numpyro as raced  # noqa: E402
from gumbelrace.jax.packages import in_double  # noqa: E402
from gumbelrace.laplace.mode import find_mode  # noqa: E402
from gumbelrace.models import logistic  # noqa: E402
from gumbelrace.numpyro.rowwise import picked, rowwise  # noqa: E402

SIZE, SOME = 3000, np.array([5, 17, 2])
RNG = np.random.default_rng(0)
X = RNG.normal(size=(SIZE, 2))
Y = 1.0 + X @ [0.5, -0.3] + 0.7 * RNG.normal(size=SIZE)


def parameters():
    sd = numpyro.sample("sd", dist.HalfNormal(5.0))
    shares = numpyro.sample("shares", dist.Dirichlet(jnp.ones(3)))
    with numpyro.plate("columns", 2):
        slopes = numpyro.sample("slopes", dist.Normal(0.0, 10.0))
    numpyro.deterministic("twice", 2.0 * sd)
    return sd, shares[0] - shares[1] + 1.0, slopes


def as_hmcecs_takes_it(x, y):
    sd, constant, slopes = parameters()
    with numpyro.plate("rows", len(y), subsample_size=10):
        some = numpyro.subsample(x, event_dim=1), numpyro.subsample(y, event_dim=0)
        numpyro.sample("y", dist.Normal(constant + some[0] @ slopes, sd), obs=some[1])


def plain(x, y):
    sd, constant, slopes = parameters()
    mean = numpyro.deterministic("mean", constant + x @ slopes)
    with numpyro.plate("rows", len(y)):
        numpyro.sample("y", dist.Normal(mean, sd), obs=y)


def of_fixed_size(x, y=None):
    sd, constant, slopes = parameters()
    with numpyro.plate("rows", SIZE):
        numpyro.sample("y", dist.Normal(constant + x @ slopes, sd), obs=y)


def indexed():
    sd, constant, slopes = parameters()
    with numpyro.plate("rows", SIZE, subsample_size=7) as n:
        numpyro.sample("y", dist.Normal(constant + jnp.asarray(X)[n] @ slopes, sd), obs=jnp.asarray(Y)[n])


def by_factor(x, y):
    sd, constant, slopes = parameters()
    with numpyro.plate("rows", SIZE):
        numpyro.factor("y", dist.Normal(constant + x @ slopes, sd).log_prob(y))


def with_more_plates(x, y):
    sd, constant, slopes = parameters()
    numpyro.sample("known", dist.Normal(constant, 1.0), obs=0.3)
    with numpyro.plate("rows", len(y)), numpyro.plate("times", 2), numpyro.handlers.scale(scale=0.5):
        numpyro.sample("y", dist.Normal(constant + x @ slopes, sd), obs=y)


MODELS = [
    (as_hmcecs_takes_it, (X, Y), {}),
    (plain, (X, Y), {}),
    (of_fixed_size, (X,), {"y": Y}),
    (indexed, (), {}),
    (by_factor, (X, Y), {}),
    (with_more_plates, (X, Y), {}),
]


@pytest.mark.parametrize(
    ("model", "args", "kwargs"), MODELS, ids=lambda part: getattr(part, "__name__", "")
)
def test_rows_and_the_rest_make_up_the_density(model, args, kwargs):
    """Oracle: NumPyro's potential, of the plain model where both are the same."""
    found, start = rowwise(model, args, kwargs)
    theta = {name: value + 0.3 for name, value in start.items()}
    oracle = plain if model is not with_more_plates else model
    with in_double():
        potential = potential_energy(
            oracle, (X, Y), {}, {name: jnp.asarray(v) for name, v in theta.items()}
        )
        rows, rest = map(np.asarray, found.terms(theta, found.all_rows, found.whole)[:2])
        some = found.terms(theta, picked(found.all_rows, SOME), found.whole)
    np.testing.assert_allclose(rows.sum() + rest, -potential, rtol=1e-10)
    np.testing.assert_allclose(some.rows, rows[SOME], rtol=1e-10)
    np.testing.assert_allclose(some.rest, rest, rtol=1e-10)


def test_draws_have_the_right_law():
    """Oracle: quadrature. Means by four standard errors, once in 8,000 seeds; sds by 5%."""

    def of_mean(y):
        mean = numpyro.sample("mean", dist.Normal(0.0, 10.0))
        sd = numpyro.sample("sd", dist.HalfNormal(5.0))
        numpyro.deterministic("ratio", mean / sd)
        with numpyro.plate("rows", len(y), subsample_size=100):
            numpyro.sample("y", dist.StudentT(4.0, mean, sd), obs=numpyro.subsample(y, event_dim=0))

    y = 2.0 + RNG.standard_t(4, size=SIZE)
    trace = raced.sample(of_mean, y, rng_key=0, num_samples=2000, progress_bar=False)
    found = trace.get_samples(group_by_chain=True)
    assert {name: values.shape for name, values in found.items()} == dict.fromkeys(
        ("mean", "ratio", "sd"), (4, 2000)
    )
    np.testing.assert_allclose(found["ratio"], found["mean"] / found["sd"], rtol=1e-5)
    assert trace.get_samples()["sd"].shape == (8000,)
    means, sds = np.meshgrid(2.0 + np.linspace(-0.15, 0.15, 31), 1.0 + np.linspace(-0.15, 0.15, 31))
    heights = [
        -2.5 * np.log1p(((y - m) / s) ** 2 / 4.0).sum() - SIZE * np.log(s) - m * m / 200.0 - s * s / 50.0
        for m, s in zip(means.ravel(), sds.ravel(), strict=True)
    ]
    chances = np.exp(heights - np.max(heights)) / np.exp(heights - np.max(heights)).sum()
    for name, grid in (("mean", means.ravel()), ("sd", sds.ravel())):
        draws, mean = np.asarray(found[name], float), chances @ grid
        blocks = draws.reshape(40, -1).mean(axis=1)
        assert abs(draws.mean() - mean) < 4.0 * blocks.std(ddof=1) / np.sqrt(40)
        assert abs(draws.std() / np.sqrt(chances @ (grid - mean) ** 2) - 1.0) < 0.05
    pytest.importorskip("arviz_base", reason="arviz-base is not installed")
    assert set(trace.to_arviz()["posterior"].data_vars) == set(found)


def test_the_mode_is_found_though_derivatives_at_zero_are_wrong():
    """Oracle: Newton by hand. NumPyro's Bernoulli has a wrong slope where its logits are exactly 0."""

    def of_labels(x, y):
        slopes = numpyro.sample("slopes", dist.Normal(0.0, 10.0).expand([2]).to_event(1))
        with numpyro.plate("rows", len(y)):
            numpyro.sample("y", dist.Bernoulli(logits=x @ slopes), obs=y)

    labels = (Y > 1.3).astype(int)
    found, start = rowwise(of_labels, (X, labels), {})
    expected, _ = logistic.mode(X, labels, prior_scale=10.0)
    np.testing.assert_allclose(find_mode(found.as_jax(start)).theta, expected, atol=1e-5)


def no_plate(x, y):
    sd, constant, slopes = parameters()
    numpyro.sample("y", dist.Normal(constant + x @ slopes, sd), obs=y)


def two_plates(x, y):
    sd, constant, slopes = parameters()
    with numpyro.plate("rows", len(y)):
        numpyro.sample("y", dist.Normal(constant + x @ slopes, sd), obs=y)
    with numpyro.plate("others", 10):
        numpyro.sample("z", dist.Normal(constant, sd), obs=y[:10])


def discrete(x, y):
    sd, constant, slopes = parameters()
    sign = numpyro.sample("sign", dist.Bernoulli(0.5))
    with numpyro.plate("rows", len(y)):
        numpyro.sample("y", dist.Normal(sign * constant + x @ slopes, sd), obs=y)


def one_for_each_row(x, y):
    sd, constant, slopes = parameters()
    with numpyro.plate("rows", len(y)):
        own = numpyro.sample("own", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.Normal(own + constant + x @ slopes, sd), obs=y)


def standardised(x, y):
    sd, constant, slopes = parameters()
    with numpyro.plate("rows", len(y)):
        numpyro.sample("y", dist.Normal(constant + (x - x.mean(axis=0)) @ slopes, sd), obs=y)


def after_an_event(x, y):
    """Few rows do not show it: it happens in the last of them."""
    sd, constant, slopes = parameters()
    event = jnp.asarray(y == Y[-1], float)
    with numpyro.plate("rows", len(y)):
        numpyro.sample("y", dist.Normal(constant * jnp.cumsum(event) + x @ slopes, sd), obs=y)


def steps_in_a_scan(x, y):
    sd, constant, slopes = parameters()
    _, walk = scan(lambda at, _: 2 * (numpyro.sample("at", dist.Normal(at, sd)),), constant, jnp.arange(5))
    with numpyro.plate("rows", len(y)):
        numpyro.sample("y", dist.Normal(walk.sum() + x @ slopes, sd), obs=y)


def closed_over(unused):
    sd, constant, slopes = parameters()
    with numpyro.plate("rows", SIZE):
        numpyro.sample("y", dist.Normal(constant + X @ slopes, sd), obs=Y)


def rest_of_rows(x, y):
    plain(x, y)
    numpyro.factor("more", -0.5 * (y**2).sum())


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (no_plate, "no plate with observed sites"),
        (two_plates, r"several plates \(others, rows\)"),
        (discrete, "'sign' is discrete"),
        (one_for_each_row, "'own' lies in plate 'rows'"),
        (standardised, "by themselves"),
        (after_an_event, "by themselves"),
        (steps_in_a_scan, "latent sites within numpyro.contrib.control_flow.scan will not do"),
        (closed_over, "hand them to the model as arguments"),
        (rest_of_rows, "outside of the plate changes"),
    ],
    ids=lambda part: getattr(part, "__name__", ""),
)
def test_models_that_cannot_be_drawn_from(model, text):
    """The check before trusting: `standardised` and the like would be drawn from, and wrongly."""
    args = (X,) if model is closed_over else (X, Y)
    with pytest.raises(InvalidArgument, match=text):
        raced.sample(model, *args)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            {"thinning": 2},
            "^thinning: thin the draws afterwards.* Arguments are model, args, rng_key",
        ),
        (
            {"draws": 100, "warmup": 5},
            "^draws: it is called num_samples; warmup: it is called num_warmup",
        ),
        ({"x": X}, "cannot be called with what was given: multiple values for argument 'x'"),
        ({"num_samples": 0}, "num_samples is 0; it must be an integer of at least 1"),
        ({"num_chains": "4"}, "num_chains is '4'"),
        ({"num_warmup": -1}, "num_warmup is -1"),
        ({"rng_key": "seed"}, "rng_key is 'seed'; pass a seed"),
    ],
)
def test_wrong_arguments_are_answered_before_anything_is_computed(given, text, monkeypatch):
    monkeypatch.setattr("gumbelrace.numpyro.recipe.rowwise", None)
    with pytest.raises(InvalidArgument, match=text):
        raced.sample(plain, X, Y, **given)


def test_a_model_is_a_function():
    with pytest.raises(InvalidArgument, match="model is 3; it must be a function"):
        raced.sample(3)


def test_effects_of_groups_are_drawn_in_blocks():
    """Oracle: quadrature. 81 means by 4.5 standard errors: once in 1,800 seeds; sds by 10%."""
    case, chains = Groups(4_000, 80, 0.3), 4

    def of_groups(x, group, y, groups):
        slope = numpyro.sample("slope", dist.Normal(0.0, 10.0))
        with numpyro.plate("groups", groups):
            effect = numpyro.sample("effect", dist.Normal(0.0, 10.0))
        with numpyro.plate("rows", len(y), subsample_size=100) as n:
            numpyro.sample("y", dist.Poisson(jnp.exp(slope * x[n] + effect[group[n]])), obs=y[n])

    data = case.x, case.group, case.y, case.groups
    trace = raced.sample(of_groups, *data, rng_key=0, num_chains=chains, progress_bar=False)
    found = trace.get_samples(group_by_chain=True)
    assert found["effect"].shape == (chains, 1000, 80)
    draws = np.concatenate([np.asarray(found["slope"])[..., None], found["effect"]], axis=-1).astype(float)
    (mean, sd), parts = case.moments(), draws.reshape(80, -1, 81).mean(axis=1)
    error = parts.std(axis=0, ddof=1) / np.sqrt(len(parts))
    assert np.abs((parts.mean(axis=0) - mean) / error).max() < 4.5
    assert np.abs(draws.std(axis=(0, 1)) / sd - 1.0).max() < 0.1
    assert trace.forecast.effective > 0.35
