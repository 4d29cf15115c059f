"""Bounds against the methods' own rules, B_Normal beside the printed table, cases that break a bound."""

import numpy as np
import pytest

import gumbelrace as gr
from gumbelrace.methods.lilucb import heuristic
from gumbelrace.paper.bounds import (
    BROKEN_DELTAS,
    BROKEN_SIZE,
    CASES,
    COMPARED,
    bound_curves,
    broken,
    compared_levels,
    normal,
    paper_levels,
    resolved,
    serfling,
    unit_rewards,
)
from gumbelrace.paper.synthetic_claims import too_many

SIZE, ARMS, DELTA = 20_000, 3, 0.1
DRAWS = 400


@pytest.fixture(scope="module")
def rewards():
    return unit_rewards(SIZE, ARMS)


@pytest.fixture(scope="module")
def curves(rewards):
    points = bound_curves(rewards, DELTA)
    return {name: [p for p in points if p.method == name] for name in {p.method for p in points}}


def rule(bound, rewards):
    """Give the rule of a race of one pair: δ is not divided."""
    return gr.Race(bound, DELTA).rule(gr.table(rewards[:, :2]))


def test_rewards_have_unit_variance(rewards):
    assert rewards.shape == (SIZE, ARMS)
    assert rewards.mean(axis=0) == pytest.approx(0.0, abs=1e-12)
    assert rewards.std(axis=0) == pytest.approx(1.0)


def test_racing_ebs_is_the_rule_of_the_race(rewards):
    looks, width = rule(gr.methods.Serfling(), rewards), 7.5
    expected = looks.per_deviation + looks.per_range * width
    assert serfling(looks.at, SIZE, DELTA, width) == pytest.approx(expected)


def test_racing_normal_is_the_rule_of_the_race(rewards):
    looks = rule(gr.methods.Normal(student=False), rewards)
    rows, widths = normal(looks.at[0], SIZE, DELTA)
    assert (rows == looks.at[0]).all()
    assert widths == pytest.approx(looks.per_deviation[0])


def test_lil_ucb_is_the_formula_with_half_the_range(rewards, curves):
    lil, half = heuristic(DELTA, ARMS), np.ptp(rewards, axis=0).max() / 2
    for point in curves["lil'UCB"]:
        inner = (
            2
            * half**2
            * (1 + lil.epsilon)
            * np.log(np.log((1 + lil.epsilon) * point.rows) / lil.confidence)
        )
        expected = (1 + lil.beta) * (1 + np.sqrt(lil.epsilon)) * np.sqrt(inner / point.rows)
        assert point.width == pytest.approx(expected)


def test_curves_fall_and_reach_from_the_first_rows_to_the_last(curves):
    assert {name: points[0].rows for name, points in curves.items() if name != "Betting"} == {
        "lil'UCB": 2,
        "Racing-EBS": 2,
        "Racing-Normal": 50,
    }
    for name, points in curves.items():
        widths = [point.width for point in points]
        assert widths == sorted(widths, reverse=True)
        assert points[-1].rows == SIZE - 1 or name == "Betting"


def test_a_resolved_gap_is_the_width_of_a_race(rewards):
    """Half of the races with a gap of G(T) have ended by T. Oracle: G_Normal at its looks.

    A median of 201 races lies below the look where 90% of them end, and at or above the one where 10% do,
    but for a probability far below 1e-6.
    """
    looks = rule(gr.methods.Normal(), rewards)
    for rows, gap in zip(*resolved(gr.Race(gr.methods.Normal(), DELTA), rewards[:, 0]), strict=True):
        # Means have a standard error of a_t / B: G more or less 1.3 of these is crossed by 90% or 10%.
        error = looks.per_deviation[0] / gr.methods.b_normal(DELTA, 50 / SIZE)
        surely = looks.at[0, np.argmax(looks.per_deviation[0] + 1.3 * error < gap)]
        hardly = looks.at[0, np.argmax(looks.per_deviation[0] - 1.3 * error < gap)]
        assert hardly <= rows <= surely


def test_betting_is_close_to_racing_normal_and_far_below_the_others(curves):
    widths = {name: {p.rows: p.width for p in points} for name, points in curves.items()}
    for rows, width in widths["Betting"].items():
        if rows > 100:
            at = {n: np.interp(rows, list(w), list(w.values())) for n, w in widths.items()}
            assert at["Racing-Normal"] < 2 * width < 6 * at["Racing-Normal"]
            assert width < at["lil'UCB"]
            assert width < at["Racing-EBS"]


def test_printed_table_is_whole():
    deltas, fractions, levels = paper_levels()
    assert (deltas.shape, fractions.shape, levels.shape) == ((39,), (6,), (39, 6))
    assert (deltas[0], deltas[-1]) == (1e-6, 0.49)
    assert (levels[0, 0], levels[-1, -1]) == (5.27250, 0.61783)
    assert (np.diff(levels, axis=0) < 0).all()
    assert (np.diff(levels, axis=1) < 0).all()


def test_levels_stand_beside_the_printed_ones():
    levels = compared_levels()
    assert len(levels) == 39 * 6
    for level in levels:
        assert level.one_sided >= level.two_sided - 1e-9
        if level.delta <= 0.37:
            assert level.printed == pytest.approx(level.two_sided, abs=0.003)
    apart = max(level.one_sided - level.printed for level in levels)
    assert apart > 0.4


@pytest.fixture(scope="module")
def rows():
    return list(broken(DRAWS, seed=1))


def test_every_case_method_and_delta_has_a_row(rows):
    assert [row[:3] for row in rows] == [(c, s, d) for c in CASES for s in COMPARED for d in BROKEN_DELTAS]


def test_normal_breaks_and_proved_bounds_hold(rows):
    """400 races a row, seed 1; a proved method fails if as many errors have probability below 1e-4."""
    for row in rows:
        chance = too_many(row.errors, row.draws, row.delta)
        if row.method == "Racing-Normal":
            assert chance < 1e-12, row
        else:
            assert chance > 1e-4, row


def test_the_outlier_decides():
    difference = CASES["one outlier"](np.random.default_rng(0))
    assert difference.max() > 0.9 * BROKEN_SIZE
    assert np.sort(difference)[-2] < 10
