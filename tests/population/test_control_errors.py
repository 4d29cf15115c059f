"""What can be wrong with residuals: impossible arms, invalid rewards, control variates that do not fit."""

import sys

import numba
import numpy as np
import pytest
from tests.common import ONE_OF_EACH, seeded, totals
from tests.population.residuals import Case, kinds, shares

import gumbelrace as gr
from gumbelrace.core.rows import Rows
from gumbelrace.errors import (
    FactorFailed,
    InvalidArgument,
    InvalidReward,
    NoPossibleArm,
    RewardOutOfRange,
    ShapeMismatch,
)

# ---- Impossible arms and invalid rewards ----


@kinds
@pytest.mark.parametrize("method", ONE_OF_EACH, ids=repr)
def test_minus_infinity_in_the_head_eliminates_the_arm(kind, method):
    case = Case(300, 3, 0.1)
    best = int(case.sums.argmax())
    case.rewards[case.rows.head[3], best] = -np.inf
    population = case.population(kind).minus(case.control())
    second = int(np.argmax(np.where(np.arange(3) == best, -np.inf, case.sums)))
    assert method.best(population, None, seeded()).arm == second
    assert np.isneginf(totals(population)[best])


@kinds
def test_minus_infinity_for_all_arms_is_an_error(kind):
    case = Case(300, 3, 0.1)
    case.rewards[case.rows.head[:3], range(3)] = -np.inf
    population = case.population(kind).minus(case.control())
    with pytest.raises(NoPossibleArm):
        gr.Exact().best(population, None, seeded())


@pytest.mark.parametrize("kind", ["compiled", "factors"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rows_of_the_head_are_named_by_the_user_s_numbers(kind, bad):
    case = Case(300, 3, 0.1)
    row = case.rows.head[-1]
    case.rewards[row, 2] = bad
    with pytest.raises(InvalidReward, match=f"row {row}, arm 2"):
        case.population(kind).minus(case.control())


@kinds
@shares
@pytest.mark.parametrize("size", [300, 20_001])
def test_rows_of_the_tail_are_named_by_the_user_s_numbers(kind, share, size):
    case = Case(size, 3, share)
    row = case.rows.tail[-5]
    case.near[row, 1] = np.nan  # a table of rewards with a NaN is refused before that
    sums = np.zeros(3)
    with pytest.raises(InvalidReward, match=f"row {row}, arm 1"):
        gr.Exact().best(case.population(kind).minus(case.control(sums=sums)), None, seeded())


@pytest.mark.parametrize("kind", ["compiled", "factors"])
@shares
def test_a_range_that_is_too_small_is_noticed(kind, share):
    case = Case(300, 3, share)
    row = case.rows.tail[-5]
    case.near[row, 1] += 1.0
    population = case.population(kind).minus(case.control())
    for one in (population, population.reshuffled(seeded())):
        with pytest.raises(RewardOutOfRange, match=f"row {row}, arm 1"):
            gr.Exact().best(one, None, seeded())


def test_a_table_of_residuals_knows_its_exact_range():
    case = Case(300, 3)
    left = case.rewards - case.near
    low, high = case.population("table").minus(case.control(residual_range=None)).reward_range
    np.testing.assert_array_equal(low, left.min(axis=0))
    np.testing.assert_array_equal(high, left.max(axis=0))


@numba.njit
def failing(n, arm, bad):
    one = np.ones(3)[arm] if n == bad else 1.0
    return one / (n - bad)


@shares
def test_a_log_factor_keeps_the_options_it_was_compiled_with(share, monkeypatch):
    """Arrays may be made, and a division by zero is an exception: our own code is compiled without both."""
    case = Case(300, 3, share)
    control = case.control(residual_range=None)
    gr.Exact().best(gr.compiled(failing, (300,), 300, 3).minus(control), None, seeded())
    population = gr.compiled(failing, (int(case.rows.tail[0]),), 300, 3).minus(control)
    raised = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: raised.append(what.exc_type))
    with pytest.raises(FactorFailed, match=f"row {case.rows.tail[0]}"):
        gr.Exact().best(population, None, seeded())
    assert raised == [ZeroDivisionError]


# ---- Arguments ----


@kinds
def test_a_second_control_variate_is_refused(kind):
    case = Case(300, 3)
    population = case.population(kind).minus(case.control())
    with pytest.raises(InvalidArgument, match="already"):
        population.minus(case.control())


@kinds
@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"sums": np.zeros(2)}, ShapeMismatch, "3 arms"),
        ({"sums": 2.0**60 - np.array([0, 2**11, 2**40])}, InvalidArgument, "subtract what all arms share"),
        ({"sums": np.zeros((3, 1))}, ShapeMismatch, "3 arms"),
        ({"sums": np.array([0.0, np.nan, 0.0])}, InvalidArgument, "not finite"),
        ({"size": 299}, ShapeMismatch, "299 rows; the population has 300"),
        ({"rows": Rows(299, head=[3])}, ShapeMismatch, "299 rows; the population has 300"),
    ],
)
def test_a_control_variate_must_fit(kind, changes, error, message):
    case = Case(300, 3)
    with pytest.raises(error, match=message):
        case.population(kind).minus(case.control(**changes))


@pytest.mark.parametrize("kind", ["compiled", "factors"])
@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ((np.zeros(2), np.ones(2)), ShapeMismatch),
        ((np.ones(3), np.zeros(3)), InvalidArgument),
        ((np.full(3, np.nan), np.ones(3)), InvalidArgument),
    ],
)
def test_the_range_must_fit(kind, wrong, error):
    case = Case(300, 3)
    with pytest.raises(error, match="reward_range"):
        case.population(kind).minus(case.control(residual_range=wrong))


def test_the_function_must_be_compiled():
    with pytest.raises(InvalidArgument, match=r"@numba\.njit"):
        Case(300, 3).control(function=lambda n, arm, near: 0.0)


def test_populations_without_control_variates_say_so(tmp_path):
    case = Case(300, 3)
    independent = gr.independent(lambda index, arm: case.rewards[index, arm], [300, 200, 100])
    mapped = np.memmap(tmp_path / "rewards", np.float64, "w+", shape=case.rewards.shape)
    for population in (independent, gr.table(mapped)):
        with pytest.raises(InvalidArgument, match="takes no control variate; use factors or compiled"):
            population.minus(case.control())


def test_rewards_of_the_wrong_shape_are_named():
    case = Case(300, 3, 0.1)
    population = gr.factors(lambda index, arms: np.zeros(len(index)), 300, 3)
    with pytest.raises(ShapeMismatch, match=r"shape \(30,\) for 30 rows and 3 arms"):
        population.minus(case.control())
