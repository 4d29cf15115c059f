"""ARCH models: densities against SciPy's, derivatives against differences of high order."""

import itertools

import numpy as np
import pytest
import scipy.stats
from scipy.integrate import quad
from tests.models.arch.cases import ORDERS, fitted, large, seeded, small, some_x

from gumbelrace.errors import InvalidArgument, InvalidGenerator, NoMode, ShapeMismatch
from gumbelrace.models.arch import Arch, lagged, laplace, log_evidence_by_importance
from gumbelrace.models.arch import rows as compiled
from gumbelrace.models.arch.data import standardised
from gumbelrace.models.arch.model import log_posterior
from gumbelrace.models.arch.rows import points_of

MODELS = [Arch(order) for order in ORDERS] + [Arch.paper(4), Arch(4, 0.05)]
# Central differences of eighth order: Σ weight · f(x + k step), k = 1..4, less those at -k.
EIGHTH = np.array([4 / 5, -1 / 5, 4 / 105, -1 / 280])


def slope(function, x, step):
    """Differentiate by differences of eighth order."""
    return (
        sum(w * (function(x + k * step) - function(x - k * step)) for k, w in enumerate(EIGHTH, start=1))
        / np.abs(step).max()
    )


def gradient(function, x, steps):
    return np.array([slope(function, x, step) for step in np.diag(steps)])


def log_factors(model, x, data):
    """Log densities of the rows by SciPy."""
    alpha, nu = model.natural(x)
    scale = np.sqrt(data.design(model.order) @ alpha)
    return scipy.stats.t.logpdf(data.returns, nu, scale=scale)


def steps_of(model):
    return 0.02 * model.scales


@pytest.mark.parametrize("model", MODELS)
def test_log_factors_are_students_t(model):
    data, x = small(), some_x(model)
    (point,) = points_of([x], model.tau, data.lags)
    found = [compiled.log_factor(n, point, *data.arrays) for n in range(data.size)]
    np.testing.assert_allclose(found, log_factors(model, x, data), rtol=1e-10, atol=1e-11)
    assert model.log_likelihood(x, data) == pytest.approx(log_factors(model, x, data).sum(), rel=1e-12)


def test_innovations_are_not_scaled_to_unit_variance():
    """Negative control of the test above: with z of variance 1 the log factors are others."""
    model, data = Arch(4), small()
    x = some_x(model)
    alpha, nu = model.natural(x)
    scale = np.sqrt(data.design(4) @ alpha * (nu - 2) / nu)
    other = scipy.stats.t.logpdf(data.returns, nu, scale=scale)
    assert np.abs(other - log_factors(model, x, data)).max() > 0.01


@pytest.mark.parametrize("tau", [0.003, 1.0])
@pytest.mark.parametrize("last", [False, True])
def test_priors_are_gamma_variables(tau, last):
    """The density of x is normalised, and that of α, or ν, is Gamma(1, 1): P(x ≤ b) = 1 - exp(-α(b))."""
    model, at = Arch(1, tau), 2 if last else 0
    x, scale = model.parameter([0.3, 0.3], 0.4), model.scales[at]

    def density(value):
        moved = x.copy()
        moved[at] = value
        return np.exp(model.log_prior(moved) - model.log_prior(x))

    rest = sum(scipy.stats.gamma(1).logpdf(v) for v in np.delete(np.append(*model.natural(x)), at))
    rest += sum(-np.logaddexp(0.0, -v) for v in np.delete(x / model.scales, at))
    unit = np.exp(model.log_prior(x) - rest)
    for value in (0.2, 0.7):
        b = value + scale * np.log(-np.expm1(-value / scale))
        points = [-5 * scale, 0.0, 5 * scale]
        mass = quad(density, -60 * scale, b, points=points, epsabs=1e-12, limit=500)[0] * unit
        assert mass == pytest.approx(-np.expm1(-value), rel=1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_natural_and_parameter_are_inverse(model):
    x = some_x(model)
    np.testing.assert_allclose(model.parameter(*model.natural(x)), x, rtol=1e-9, atol=1e-9 * model.tau)
    alpha, nu = model.natural(x)
    (point,) = points_of([x], model.tau, 12)
    np.testing.assert_allclose(point[compiled.ALPHA : compiled.ALPHA + model.order + 1], alpha, rtol=1e-13)
    assert point[compiled.NU] == pytest.approx(nu, rel=1e-14)
    assert point[compiled.ORDER] == model.order


@pytest.mark.parametrize("x", [-3000.0, -40.0, 40.0, 3000.0])
def test_extreme_parameters_do_not_overflow(x):
    model = Arch(1, 1.0)
    values = np.full(3, x)
    assert np.isfinite(model.log_prior(values))
    assert np.isfinite(model.prior_gradient(values)).all()
    assert np.isfinite(model.prior_hessian(values)).all()


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("seed", range(2))
def test_gradients_are_derivatives(model, seed):
    data, x = small(), some_x(model, seed)
    expected = gradient(lambda v: log_factors(model, v, data).sum(), x, steps_of(model))
    found = model.gradient(np.arange(data.size), x, data)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7 * np.abs(expected).max())
    prior = gradient(model.log_prior, x, steps_of(model))
    np.testing.assert_allclose(model.prior_gradient(x), prior, rtol=1e-7, atol=1e-7 * np.abs(prior).max())


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("seed", range(2))
def test_hessians_are_derivatives_of_gradients(model, seed):
    data, x = small(), some_x(model, seed)
    expected = gradient(lambda v: model.gradient(np.arange(data.size), v, data), x, steps_of(model))
    found = model.hessian(x, data)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())
    np.testing.assert_allclose(found, found.T, rtol=1e-12)
    prior = gradient(model.prior_gradient, x, steps_of(model))
    np.testing.assert_allclose(model.prior_hessian(x), prior, rtol=1e-7, atol=1e-7 * np.abs(prior).max())


def test_the_gradient_of_a_batch_is_that_of_its_rows():
    model, data = Arch(4), small()
    x, index = some_x(model), np.array([3, 200, 200, 7])
    expected = gradient(lambda v: log_factors(model, v, data)[index].sum(), x, steps_of(model))
    found = model.gradient(index, x, data)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("seed", range(5))
def test_derivatives_of_a_row(seed):
    """Each derivative is the difference quotient of one of lower order."""
    rng = seeded(seed)
    s, nu, y = rng.uniform(0.1, 4.0), rng.uniform(2.0, 9.0), rng.uniform(0.0, 6.0)

    def derivatives(s, nu):
        return compiled.row_derivatives(np.array([s]), nu, np.array([y]))[0]

    in_s = slope(lambda v: derivatives(v, nu), s, 0.01 * s)
    in_nu = slope(lambda v: derivatives(s, v), nu, 0.01 * nu)
    found = derivatives(s, nu)
    # g; s, ν; ss, sν, νν
    np.testing.assert_allclose(found[[1, 3, 4]], in_s[[0, 1, 2]], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(found[[2, 4, 5]], in_nu[[0, 1, 2]], rtol=1e-8, atol=1e-9)


def test_sums_run_over_blocks(monkeypatch):
    model, data = Arch(4), small()
    x, whole = some_x(model), Arch(4).hessian(some_x(model), data)
    monkeypatch.setattr("gumbelrace.models.arch.model.BLOCK", 100)
    np.testing.assert_allclose(model.hessian(x, data), whole, rtol=1e-11, atol=1e-11 * np.abs(whole).max())


def test_wrong_arguments_are_explained():
    data = small()
    with pytest.raises(InvalidArgument, match="order"):
        Arch(0)
    with pytest.raises(InvalidArgument, match="tau"):
        Arch(1, 0.0)
    with pytest.raises(ShapeMismatch, match="order 4 has 6"):
        Arch(4).log_prior(np.zeros(5))
    with pytest.raises(ShapeMismatch, match="12 lags"):
        Arch(13).log_likelihood(np.zeros(15), data)
    with pytest.raises(InvalidArgument, match="must be positive"):
        Arch(1).parameter([0.1, 0.0], 3.0)


def quadrature(fit, data, nodes=24):
    """Integrate prior times likelihood on a grid of Gauss-Hermite nodes around the mode."""
    axis, weight = np.polynomial.hermite_e.hermegauss(nodes)
    z = np.array(list(itertools.product(axis, repeat=len(fit.mean))))
    log_weight = sum(map(np.log, np.meshgrid(*[weight] * len(fit.mean), indexing="ij"))).ravel()
    log_volume = np.log(np.diag(fit.root)).sum()
    values = [log_posterior(fit.model, x, data) for x in fit.at(z)] + 0.5 * np.square(z).sum(axis=1)
    return float(np.logaddexp.reduce(values + log_weight) + log_volume)


@pytest.mark.parametrize("tau", [0.003, 0.2, 1.0])
@pytest.mark.parametrize("order", [1, 10, 12])
def test_the_mode_is_a_maximum(order, tau):
    fit, data = fitted(order, tau), large()
    gradient = fit.model.prior_gradient(fit.mean)
    gradient += fit.model.gradient(np.arange(data.size), fit.mean, data)
    assert gradient @ fit.covariance @ gradient < 1e-8
    np.testing.assert_allclose(fit.covariance @ -fit.hessian, np.eye(order + 2), atol=1e-6)
    np.testing.assert_allclose(np.triu(fit.root, 1), 0.0, atol=0.0)
    assert fit.log_posterior == log_posterior(fit.model, fit.mean, data)
    others = [log_posterior(fit.model, x, data) for x in fit.sample(seeded(), 100)]
    assert max(others) < fit.log_posterior


@pytest.mark.parametrize("order", [20, 30])
def test_a_mode_is_found_in_few_rows_of_pure_noise(order):
    fit = laplace(Arch(order), lagged(standardised(seeded(1).standard_t(3, 200)), order))
    assert np.isfinite(fit.log_evidence)


@pytest.mark.parametrize("tau", [0.003, 1.0])
def test_evidence_agrees_with_quadrature(tau):
    """Order 1, three parameters; seed 2, 4,000 draws; a false alarm at 5 errors has odds of 1e-6.

    Negative control: the same estimate with a prior of ν that is flat.
    """
    data = small()
    fit = laplace(Arch(1, tau), data)
    exact = quadrature(fit, data)
    found = log_evidence_by_importance(fit, data, seeded(2), 4000)
    assert 0.0 < found.efficiency <= 1.0
    assert abs(found.log_evidence - exact) < 5 * found.error
    assert found.error < 0.05
    flat = found.log_evidence + fit.model.natural(fit.mean)[1]
    assert abs(flat - exact) > 5 * found.error
    assert abs(fit.log_evidence - exact) < 0.3


def test_evidence_does_not_depend_on_the_parametrisation():
    """τ = 0.003 and τ = 1 at order 4, seeds 3 and 4: the difference within 5 of its errors."""
    narrow, wide = (
        log_evidence_by_importance(fitted(4, tau), large(), seeded(seed))
        for tau, seed in ((0.003, 3), (1.0, 4))
    )
    assert abs(narrow.log_evidence - wide.log_evidence) < 5 * np.hypot(narrow.error, wide.error)


def test_errors_are_those_of_repeated_estimates():
    """40 estimates of 200 draws: their deviation is within 1/2 to 2 of the mean error (odds 1e-6)."""
    runs = [log_evidence_by_importance(fitted(4), large(), seeded(k), 200) for k in range(40)]
    ratio = np.std([run.log_evidence for run in runs], ddof=1) / np.mean([run.error for run in runs])
    assert 0.5 < ratio < 2.0


def test_the_order_of_simulated_data_is_found():
    """13,000 returns of order 10: the log evidence of 4 and 12 is smaller by 5 and more."""
    evidence = {order: fitted(order).log_evidence for order in (4, 10, 12)}
    assert evidence[10] > max(evidence[4], evidence[12]) + 5.0


def test_draws_have_the_laws_covariance():
    fit = fitted(4)
    z = np.linalg.solve(fit.root, (fit.sample(seeded(), 20_000) - fit.mean).T)
    np.testing.assert_allclose(np.cov(z), np.eye(6), atol=0.05)  # 7 standard errors
    np.testing.assert_array_equal(fit.at(np.zeros((1, 6)))[0], fit.mean)


def test_failures_are_explained(monkeypatch):
    with pytest.raises(InvalidArgument, match="draws"):
        log_evidence_by_importance(fitted(4), large(), seeded(), 1)
    with pytest.raises(InvalidGenerator):
        log_evidence_by_importance(fitted(4), large(), 0)
    monkeypatch.setattr("gumbelrace.models.arch.model.GOOD", -1.0)
    with pytest.raises(NoMode, match="order 4"):
        laplace(Arch(4), small())
