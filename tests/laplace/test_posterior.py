"""Posterior draws of a compiled model in one call have the right law.

False-alarm rate of each statistical test: 1e-4 over seeds.
"""

from dataclasses import replace

import numba
import numpy as np
import pytest
from scipy import stats
from tests.laplace.cases import Dummy, Groups, log_prior, simulated

import gumbelrace as gr
from gumbelrace.errors import InvalidArgument, NoMode, PoorFit
from gumbelrace.kernels.blocks import Blocks
from gumbelrace.laplace.blocks import plan_blocks
from gumbelrace.laplace.compiled import CompiledModel
from gumbelrace.laplace.mode import find_mode
from gumbelrace.models import logistic

FAR = 4.5


def batches(draws):
    """Give means and standard errors of the columns of chains, from batches of each."""
    parts = draws.reshape(-1, draws.shape[1] // 10, draws.shape[2]).mean(axis=1)
    return parts.mean(axis=0), parts.std(axis=0, ddof=1) / np.sqrt(len(parts))


def check_moments(draws, mean, sd, far=FAR):
    """Compare means, and mean squares, with those of an oracle, by their standard errors."""
    z = (draws - mean) / sd
    for power, right in ((z, 0.0), (z**2, 1.0)):
        found, error = batches(power)
        assert (np.abs(found - right) < far * error + 0.01).all(), (found, error)


@pytest.fixture(scope="module")
def dummy():
    case = Dummy()
    return case, gr.posterior(*case.given, start=[0.0, 0.0], log_prior=log_prior)


def test_a_coefficient_of_few_rows_is_right(dummy):
    """Oracle: quadrature. Laplace's law is off by half a standard deviation, its tails too light."""
    case, fit = dummy
    mean, sd = case.moments()
    assert (mean - fit.mode[1]) / sd > 0.35
    assert fit.kernel.proposal.freedom < np.inf
    trace = fit.sample(25_000, rng=1, progress=False)
    check_moments(trace["position"][:, :, 1:], mean, sd)
    assert trace.fraction < 0.02


def test_the_forecast_holds(dummy):
    _, fit = dummy
    trace = fit.sample(2_000, rng=2, progress=False)
    assert abs(trace.acceptance - fit.forecast.acceptance) < 0.15
    assert trace.fraction * fit.forecast.size < 3.0 * fit.forecast.rows
    assert "rows a step" in repr(fit)


def test_chains_that_do_much_worse_than_foreseen_are_said(dummy, recwarn):
    """As foreseen, 0.6 effective draws a step, nothing is said."""
    _, fit = dummy
    fit.sample(1_000, rng=2, progress=False)
    assert not [one for one in recwarn if one.category is PoorFit]
    other = replace(fit, forecast=fit.forecast._replace(effective=30.0))
    with pytest.warns(
        PoorFit, match=r"theta\[1\]: 0\.\d+ effective draws a step .* where 30 were foreseen"
    ):
        other.sample(1_000, rng=2, progress=False)


@numba.njit
def wrong_slope(n, centre, direction, x, y):
    value, slope, curvature = logistic.terms(n, centre, direction, x, y)
    return value, (1.5 if y[n] == 1.0 else 1.0) * slope, curvature


@numba.njit
def wrong_value(n, centre, direction, x, y):
    value, slope, curvature = logistic.terms(n, centre, direction, x, y)
    return value + 3.0 * (n % 2), slope, curvature


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        (wrong_slope, r"gives the slope .* of row \d at the start"),
        (wrong_value, "the value .* of row 1 at"),
    ],
)
def test_derivatives_of_another_function_are_named(terms, message):
    """Instead of a search for the mode that goes nowhere, with advice that cannot help."""
    x, y = simulated(2_000, 3)
    with pytest.raises(InvalidArgument, match=message):
        gr.posterior(logistic.log_factor, terms, (x, y), 2_000, start=np.zeros(3), progress=False)


def test_right_derivatives_are_not_blamed():
    """All labels are those that the column tells: no mode, and `terms` are right."""
    x, _ = simulated(2_000, 3)
    y = (x[:, 0] > 0.0).astype(float)
    with pytest.raises(NoMode):
        gr.posterior(logistic.log_factor, logistic.terms, (x, y), 2_000, start=np.zeros(3), progress=False)


def test_a_normal_law_is_left_alone():
    x, y = simulated(20_000, 3)
    fit = gr.posterior(logistic.log_factor, logistic.terms, (x, y), len(x), start=np.zeros(3))
    assert fit.kernel.proposal.freedom == np.inf
    assert fit.forecast.acceptance > 0.9
    again = [fit.sample(200, chains=2, rng=5, progress=False)["position"] for _ in range(2)]
    np.testing.assert_array_equal(*again)


def test_a_normal_law_of_few_rows_is_left_alone(recwarn):
    """Of a hundred rows more than a quarter are read, though the expansion is exact."""
    y = np.random.default_rng(0).normal(size=100)
    fit = gr.posterior(square, square_terms, (y,), 100, start=[0.0], progress=False)
    fit.sample(100, rng=0, progress=False)
    assert not [one for one in recwarn if one.category is PoorFit]


def test_bounds_make_exact_tests_possible(dummy):
    """Thinning, exact, against quadrature."""
    case, _ = dummy
    fit = gr.posterior(
        *case.given,
        start=[0.0, 0.0],
        log_prior=log_prior,
        remainder=lambda metric: logistic.remainder(case.x, metric),
        method=gr.Thinning(),
    )
    check_moments(fit.sample(25_000, rng=3, progress=False)["position"][:, :, 1:], *case.moments())


@pytest.fixture(scope="module")
def groups():
    """Twelve groups of about thirty counts: effects are skewed."""
    case = Groups(360, 12, -0.3)
    names = [f"theta[{i}]" for i in range(13)]
    model = CompiledModel(*case.given, log_prior, case.start, names)
    planned = plan_blocks(model, find_mode(model))
    return case, Blocks(planned.blocks, planned.law, log_prior=log_prior, method=gr.Exact())


def test_blocks_have_the_right_law(groups):
    """Oracle: quadrature."""
    case, kernel = groups
    draws = gr.run(kernel, steps=20_000, warmup=50, chains=4, rng=4, progress=False)["position"]
    check_moments(draws, *case.moments())


def test_blocks_of_a_wrong_law_are_noticed(groups):
    """Negative control: expansion sums that are not those of the model."""
    case, kernel = groups
    law = kernel.law._replace(gradient=kernel.law.gradient + 1.0)
    wrong = Blocks(kernel.blocks, law, log_prior=log_prior, method=gr.Exact())
    draws = gr.run(wrong, steps=5_000, chains=4, rng=4, progress=False)["position"]
    with pytest.raises(AssertionError):
        check_moments(draws, *case.moments())


def test_blocks_do_not_depend_on_how_sweeps_are_cut(groups):
    _, kernel = groups
    whole = kernel.steps(np.random.default_rng(6), kernel.start(), 7).states.position
    rng, state, ends = np.random.default_rng(6), kernel.start(), []
    for _ in range(7):
        state, _ = kernel.step(rng, state)
        ends.append(state.position)
    np.testing.assert_array_equal(whole, ends)


def test_blocks_read_few_rows_and_can_be_audited():
    """Groups of about 300 rows: blocks of several groups, each tested by some of its rows."""
    case = Groups(6_000, 20, 0.0)
    names = [f"theta[{i}]" for i in range(21)]
    model = CompiledModel(*case.given, log_prior, case.start, names)
    planned = plan_blocks(model, find_mode(model))
    kernel = Blocks(planned.blocks, planned.law, log_prior=log_prior)
    trace = gr.run(kernel, steps=2_000, chains=2, rng=7, progress=False)
    assert trace.fraction < 0.2
    assert not trace.audit(0.02, rng=8).broken


@numba.njit
def two_modes(n, theta, y):
    """A mixture of two normal laws at ±θ: the posterior has two modes, and curvature that varies."""
    return np.logaddexp(-0.5 * (y[n] - theta[0]) ** 2, -0.5 * (y[n] + theta[0]) ** 2)


@numba.njit
def two_modes_terms(n, centre, direction, y):
    t, s = np.tanh(y[n] * centre[0]), direction[0]
    value = np.logaddexp(-0.5 * (y[n] - centre[0]) ** 2, -0.5 * (y[n] + centre[0]) ** 2)
    return value, (y[n] * t - centre[0]) * s, (y[n] ** 2 * (1.0 - t * t) - 1.0) * s * s


@numba.njit
def factor_with_an_edge(n, theta, y):
    return -np.inf if n == 17 and theta[0] > 0.03 else -0.5 * (y[n] - theta[0]) ** 2


@numba.njit
def square(n, theta, y):
    return -0.5 * (y[n] - theta[0]) ** 2


@numba.njit
def square_terms(n, centre, direction, y):
    rest = y[n] - centre[0]
    return -0.5 * rest * rest, rest * direction[0], -direction[0] * direction[0]


def test_rows_that_rule_points_out_are_said():
    """One row of 2,000 is -inf a standard deviation above the mode: who does not read it misses that."""
    y = np.random.default_rng(0).normal(size=2_000)
    y -= y.mean()
    given = factor_with_an_edge, square_terms, (y,), 2_000
    fit = gr.posterior(*given, start=[0.0], progress=False)
    assert 0.0 < fit.forecast.ruled_out < 0.5
    with pytest.warns(PoorFit, match="are -inf or NaN: all rows are read in each step"):
        drawn = fit.sample(5_000, rng=0, check=0, progress=False)["position"]
    # The posterior is N(0, 1/2000) below 0.03, whose mean is that of a truncated normal law.
    sd = 1.0 / np.sqrt(2_000)
    right = stats.truncnorm(-np.inf, 0.03 / sd, scale=sd)
    assert drawn.max() <= 0.03
    check_moments(drawn, right.mean(), right.std())


def test_a_chain_that_went_where_rows_do_not_allow_says_what_to_do(dummy, monkeypatch):
    def stuck(*args, **options):
        raise gr.NoPossibleArm("every arm has a reward of -inf; name the rows (impossible=)")

    monkeypatch.setattr("gumbelrace.laplace.posterior.run", stuck)
    with pytest.raises(gr.NoPossibleArm, match=r"a chain went where .* method=gumbelrace.Exact\(\)"):
        dummy[1].sample(10, rng=0)


def test_a_second_mode_is_said():
    """A chain around one of them would never meet the other, and nothing of it would look wrong."""
    rng = np.random.default_rng(9)
    y = rng.normal(size=200) + 2.0 * np.sign(rng.normal(size=200))
    with pytest.warns(PoorFit, match=r"another mode at theta\[0\] = -1.9"):
        gr.posterior(two_modes, two_modes_terms, (y,), 200, start=[1.0])


@numba.njit
def funnel(n, theta, y):
    """One count of zero for each effect, whose scale is unknown as well."""
    return -0.5 * (y[n] - theta[1 + n]) ** 2


@numba.njit
def funnel_terms(n, centre, direction, y):
    apart = y[n] - centre[1 + n]
    return -0.5 * apart**2, apart * direction[1 + n], -(direction[1 + n] ** 2)


@numba.njit
def funnel_prior(theta):
    scale = np.exp(theta[0])
    total = -0.5 * (theta[0] / 1.5) ** 2
    for i in range(1, len(theta)):
        total -= 0.5 * (theta[i] / scale) ** 2 + theta[0]
    return total


def test_a_funnel_is_said():
    """Eight effects and their scale, the mode at a scale of zero."""
    y = np.random.default_rng(2).normal(size=8) * 0.1
    named = r"flat along theta\[0\]. theta\[0\] scales theta\[1\], .* \(a funnel\): write each as mean"
    with pytest.raises(NoMode, match=named):
        gr.posterior(funnel, funnel_terms, (y,), 8, start=np.zeros(9), log_prior=funnel_prior)
