"""The bounds against the paper's formulas, written again in plain Python."""

import math

import numba
import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

import gumbelrace as gr
from gumbelrace.core.jit import OPTIONS
from gumbelrace.errors import InvalidArgument
from gumbelrace.methods import lilucb as lil

PRINTED = gr.methods.Normal(student=False)
CASES = [(50, 1000), (50, 100_000), (2, 300), (3, 17), (50, 51)]


def looks_of(first, size):
    """Give T = first · 2^k < N."""
    return np.array([first * 2**k for k in range(40) if first * 2**k < size], np.int64)


@pytest.mark.parametrize("delta", [0.001, 0.05, 0.3])
@pytest.mark.parametrize(("first", "size"), CASES)
def test_normal_is_equation_9(delta, first, size):
    looks = looks_of(first, size)
    per_deviation, per_range = PRINTED.coefficients(delta, looks, size)
    level = gr.methods.b_normal(delta, first / size)
    expected = [level / math.sqrt(t) * math.sqrt(1 - (t - 1) / (size - 1)) for t in looks.tolist()]
    np.testing.assert_allclose(per_deviation, expected, rtol=1e-12)
    assert per_range.tolist() == [0.0] * len(looks)


@pytest.mark.parametrize("delta", [0.001, 0.05, 0.3, 0.9])
@pytest.mark.parametrize(("first", "size"), CASES)
def test_normal_has_the_tail_of_students_t(delta, first, size):
    """At each look, T normal rewards are beyond their bound as often as the walk is beyond B."""
    looks = looks_of(first, size)
    per_deviation, per_range = gr.methods.Normal().coefficients(delta, looks, size)
    # In units of the error that is estimated: σ̂² = SS/T, and the variance of the mean SS/(T-1)·(1/T - 1/N).
    units = [math.sqrt(t / (t - 1) * (1 / t - 1 / size)) for t in looks.tolist()]
    tails = stats.t.sf(per_deviation / units, looks - 1)
    np.testing.assert_allclose(tails, stats.norm.sf(gr.methods.b_normal(delta, first / size)), rtol=1e-9)
    assert per_range.tolist() == [0.0] * len(looks)


def test_many_rewards_tell_their_deviation():
    looks = looks_of(100_000, 10_000_000)
    new, printed = (bound.coefficients(0.01, looks, 10_000_000) for bound in (gr.methods.Normal(), PRINTED))
    np.testing.assert_allclose(new.per_deviation, printed.per_deviation, rtol=1e-4)


def test_a_tail_beyond_floats_decides_nothing():
    for delta in (1e-250, 1e-300):
        per_deviation = gr.methods.Normal().coefficients(delta, looks_of(4, 1000), 1000).per_deviation
        assert (per_deviation > 1.0).all()


def serfling(delta, t, size, deviation, spread):
    """B_EBS(δ, n, σ̂, C) of the paper."""
    kappa = 7 / 3 + 3 / math.sqrt(2)
    rho = 1 - (t - 1) / size if t <= size / 2 else (1 - t / size) * (1 + 1 / t)
    log = math.log(5 / delta)
    return deviation * math.sqrt(2 * rho * log / t) + kappa * spread * log / t


@pytest.mark.parametrize("delta", [0.001, 0.05, 0.3])
@pytest.mark.parametrize(("first", "size"), CASES)
def test_serfling_is_equations_6_and_7(delta, first, size):
    looks = looks_of(first, size)
    per_deviation, per_range = gr.methods.Serfling().coefficients(delta, looks, size)
    for k, t in enumerate(looks.tolist()):
        bound = per_deviation[k] * 0.7 + per_range[k] * 2.5
        assert bound == pytest.approx(serfling(delta / len(looks), t, size, 0.7, 2.5), rel=1e-12)


def test_schedules_of_arms_with_sizes_of_their_own():
    sizes, delta = np.array([40.0, 900.0]), 0.02
    looks = np.array([[3.0, 3.0], [7.0, 93.0], [15.0, 273.0], [31.0, 633.0]])
    normal = gr.methods.Normal().any_schedule(delta, looks, sizes)
    proved = gr.methods.Serfling().any_schedule(delta, looks, sizes)
    level = ndtri(1 - delta / 4)
    for k in range(4):
        for i in range(2):
            t, n = looks[k, i], sizes[i]
            expected = level / math.sqrt(t) * math.sqrt(1 - (t - 1) / (n - 1))
            assert normal.per_deviation[k, i] == pytest.approx(expected, rel=1e-9)
            assert normal.per_range[k, i] == 0.0
            bound = proved.per_deviation[k, i] * 0.7 + proved.per_range[k, i] * 2.5
            assert bound == pytest.approx(serfling(delta / 4, t, n, 0.7, 2.5), rel=1e-12)


@pytest.mark.parametrize("size", [1.0, 2.0, 40.0, 1e6])
def test_nothing_is_uncertain_once_everything_is_read(size):
    """At T = N no deviation counts; Serfling's term of the range does: a race never judges there."""
    looks = np.array([[1.0], [size]])
    for bound in (gr.methods.Normal(), gr.methods.Serfling()):
        per_deviation, per_range = bound.any_schedule(0.05, looks, np.array([size]))
        assert per_deviation[-1, 0] == pytest.approx(0.0, abs=1e-12) or size == 1.0
        assert np.isfinite(per_deviation).all()
        assert np.isfinite(per_range).all()


@pytest.mark.parametrize("bound", [gr.methods.Normal(), gr.methods.Serfling()], ids=repr)
def test_bounds_shrink_with_rows_and_grow_with_confidence(bound):
    looks = looks_of(50, 100_000)
    per_deviation, per_range = bound.coefficients(0.05, looks, 100_000)
    assert (np.diff(per_deviation) < 0).all()
    assert (np.diff(per_range) <= 0).all()
    assert (bound.coefficients(0.01, looks, 100_000).per_deviation > per_deviation).all()


def test_populations_within_one_look_need_no_coefficients():
    for bound in (gr.methods.Normal(), gr.methods.Serfling()):
        assert [len(part) for part in bound.coefficients(0.05, np.zeros(0, np.int64), 40)] == [0, 0]


def test_delta_is_divided_among_the_events():
    assert [gr.methods.Paired().errors(d) for d in (1, 2, 10)] == [1, 1, 9]
    assert [gr.methods.Marginal().errors(d) for d in (1, 2, 10)] == [1, 2, 10]


def test_what_bounds_rest_on():
    assert (gr.methods.Normal().first, gr.methods.Normal().needs_range) == (50, False)
    assert "normal" in gr.methods.Normal().assumption
    assert (
        gr.methods.Serfling().first,
        gr.methods.Serfling().needs_range,
        gr.methods.Serfling().assumption,
    ) == (2, True, None)


@numba.njit(**OPTIONS)
def radius(parameters, scale, taken):
    return lil.radius(parameters, scale, taken)


@pytest.mark.parametrize(
    "parameters", [lil.heuristic(0.05, 10), lil.guaranteed(0.05)], ids=["heuristic", "proved"]
)
@pytest.mark.parametrize("taken", [2, 3, 10, 1000])
def test_lil_radius(parameters, taken):
    e, b, delta, _ = parameters
    inside = math.log((1 + e) * taken) / delta
    expected = (1 + b) * (1 + math.sqrt(e)) * math.sqrt(2 * 1.7**2 * (1 + e) * math.log(inside) / taken)
    assert radius(parameters, 1.7, taken) == pytest.approx(expected, rel=1e-12)


def test_lil_radius_of_one_reward():
    """log(log T/δ) has no value at T = 1 and ε = 0: nothing is known yet."""
    assert radius(lil.heuristic(0.05, 10), 1.0, 1) == math.inf


def test_student_is_named_and_true_or_false():
    with pytest.raises(TypeError):
        gr.methods.Normal(0.001)
    with pytest.raises(InvalidArgument, match=r"student is 0.001; it must be True or False"):
        gr.methods.Normal(student=0.001)
