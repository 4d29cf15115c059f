"""The best arm: the default method, its δ, and the offset."""

import numpy as np
import pytest
from tests.common import seeded

import gumbelrace as gr

REWARDS = np.random.default_rng(1).uniform(size=(20_000, 4)) * 0.5 + [0.0, 0.1, 0.3, 0.2]


def factors(reward_range=None):
    return gr.factors(
        lambda index, arms: REWARDS[np.ix_(index, arms)], 20_000, 4, reward_range=reward_range
    )


@pytest.mark.parametrize("delta", [0.001, 0.05, 0.2])
def test_default_is_betting_where_the_range_is_known(delta):
    for population in [gr.table(REWARDS), factors((0.0, 1.0))]:
        expected = gr.Betting(delta).best(population, None, seeded(2))
        assert gr.best(population, delta=delta, rng=seeded(2)) == expected
        assert expected.arm == 2
        assert not expected.exhausted


@pytest.mark.parametrize("delta", [0.001, 0.05, 0.2])
def test_default_is_a_normal_race_elsewhere(delta):
    expected = gr.Race(delta=delta).best(factors(), None, seeded(2))
    assert gr.best(factors(), delta=delta, rng=seeded(2)) == expected
    assert expected.arm == 2


def test_default_on_arms_with_rows_of_their_own():
    own = gr.independent(lambda index, arm: REWARDS[index, arm], [300, 9000, 2000, 100])
    assert gr.best(own, rng=seeded()) == gr.Race().best(own, None, seeded())
    assert gr.best(own, rng=seeded()).arm == 1


@pytest.mark.parametrize("arm", range(4))
def test_offset_is_on_the_scale_of_the_sum(arm):
    """Offsets that make up for the sums, and 500 for one arm, a fortieth of a reward a row."""
    offset = 500.0 * (np.arange(4) == arm) - REWARDS.sum(axis=0)
    for population in [gr.table(REWARDS), factors()]:
        assert gr.best(population, rng=seeded(), offset=offset).arm == arm


def test_a_smaller_delta_reads_more():
    """Mean over 20 races."""
    population = gr.table(REWARDS)
    read = [
        np.mean([gr.best(population, delta=delta, rng=seeded(s)).evaluations for s in range(20)])
        for delta in (0.2, 0.01, 1e-6)
    ]
    assert read[0] < read[1] < read[2] < 80_000


def test_outcome_holds_plain_numbers():
    outcome = gr.best(gr.table(REWARDS), rng=seeded())
    kinds = [type(outcome.arm), type(outcome.evaluations), type(outcome.looks), type(outcome.exhausted)]
    assert kinds == [int, int, int, bool]


def test_tables_may_count_evaluations():
    """Scores whose best arm takes most rows to find: a scan is faster, a race without one reads less."""
    scores = (np.random.default_rng(0).random((10_000, 12)) < np.linspace(0.7, 0.75, 12)).astype(float)
    truth = scores.sum(axis=0).argmax()
    quick, sparing = gr.best(scores, rng=1), gr.best(gr.table(scores, scan=False), rng=1)
    assert quick.arm == sparing.arm == truth
    assert sparing.evaluations < quick.evaluations
    assert gr.table(scores).scan_speed > 1.0  # the default is about time
