"""A watched race is the race that the method ran: its looks, its arms, its winner, its bounds."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gumbelrace as gr
from gumbelrace.applications.demo import (
    DELTA,
    PROBABILITIES,
    example_race,
    example_rewards,
    normalised,
    watch,
)
from gumbelrace.errors import ShapeMismatch


def problem(seed, size, arms, scale=1.0):
    """Give rewards whose sums have deviations of `scale` around zero, and Gumbel offsets."""
    rng = np.random.default_rng(seed)
    rewards = normalised(rng.normal(size=(size, arms)), np.zeros(arms), scale / np.sqrt(size))
    return rewards, rng.gumbel(size=arms)


def by_look(race):
    return [[one for one in race.standings if one.look == look] for look in range(race.outcome.looks)]


def unwatched(rewards, offset, delta, seed):
    """Run the method on the same rewards, given as another function."""

    def log_factors(index, arms):
        return rewards.take(index, axis=0).take(arms, axis=1)

    population = gr.factors(log_factors, *rewards.shape)
    return gr.Race(gr.methods.Normal(), delta).best(population, offset, np.random.default_rng(seed))


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    size=st.sampled_from([60, 1000, 9000, 40_000]),
    arms=st.integers(2, 7),
    scale=st.sampled_from([0.2, 1.0, 5.0, 50.0]),
)
def test_watching_agrees_with_the_method(seed, size, arms, scale):
    rewards, offset = problem(seed, size, arms, scale)
    race = watch(rewards, offset, 0.05, np.random.default_rng(seed))
    looks = by_look(race)
    assert race.outcome == unwatched(rewards, offset, 0.05, seed)
    assert [look[0].rows for look in looks] == [50 * 2**t for t in range(race.outcome.looks)]
    assert race.outcome.evaluations == read(race, looks)
    for look, following in pairwise(looks):
        assert [one.arm for one in following] == [one.arm for one in look if one.alive]
    alive = {one.arm for one in looks[-1] if one.alive}
    assert race.outcome.arm in alive
    assert race.outcome.exhausted == (len(alive) > 1)


def read(race, looks):
    """Count the rewards that the looks, and a scan after them, must have read."""
    rows = [0, *(look[0].rows for look in looks)]
    raced = sum(
        len(look) * (after - before) for look, before, after in zip(looks, rows, rows[1:], strict=False)
    )
    left = sum(one.alive for one in looks[-1])
    return raced + (left * (race.size - rows[-1]) if race.outcome.exhausted else 0)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), arms=st.integers(2, 6), scale=st.sampled_from([0.5, 2.0, 10.0]))
def test_the_engine_drops_the_arms_whose_interval_lies_below_the_leader(seed, arms, scale):
    race = watch(*problem(seed, 20_000, arms, scale), 0.05, np.random.default_rng(seed))
    assert [one.alive for one in race.standings] == [one.high >= 0.0 for one in race.standings]


def test_a_wrong_bound_would_be_seen():
    """Negative control of the test above: with half the margin, other arms would have been dropped."""
    differ = 0
    for seed in range(20):
        race = watch(*problem(seed, 20_000, 4, 2.0), 0.05, np.random.default_rng(seed))
        halved = [one.estimate + (one.high - one.estimate) / 2 >= 0.0 for one in race.standings]
        differ += halved != [one.alive for one in race.standings]
    assert differ > 10


def test_intervals_are_those_of_the_bound():
    """Oracle: the whole table, the method's coefficients at δ/(D-1), deviations of differences."""
    rewards, offset = problem(1, 5000, 3)
    asked = []

    def log_factors(index, arms):
        asked.append(index.copy())
        return rewards[np.ix_(index, arms)]

    gr.Race(gr.methods.Normal(), 0.1).best(
        gr.factors(log_factors, 5000, 3), offset, np.random.default_rng(2)
    )
    race = watch(rewards, offset, 0.1, np.random.default_rng(2))
    first = rewards[asked[0]]
    assert len(first) == 50
    looks = 50 * 2 ** np.arange(7)
    margin = gr.methods.Normal().coefficients(0.1 / 2, looks, 5000).per_deviation[0]
    sums = first.mean(axis=0) * 5000 + offset
    leader = sums.argmax()
    deviations = (first - first[:, [leader]]).std(axis=0)
    for one in by_look(race)[0]:
        half = 5000 * margin * deviations[one.arm]
        gap = sums[one.arm] - sums[leader]
        assert (one.estimate, one.low, one.high) == pytest.approx((gap, gap - half, gap + half), abs=1e-9)


def test_the_example_is_a_draw_worth_watching():
    race = example_race()
    dropped = [one.rows for one in race.standings if not one.alive]
    assert len(set(dropped)) == len(PROBABILITIES) - 1
    assert not race.outcome.exhausted
    assert race.delta == DELTA
    exact = example_rewards().sum(axis=0)
    assert exact == pytest.approx(np.log(PROBABILITIES), abs=1e-6)


def test_the_example_is_always_the_same():
    assert example_race() == example_race()


@pytest.mark.parametrize("shape", [(50, 3), (1000, 1)])
def test_what_makes_no_race_is_refused(shape):
    with pytest.raises(ShapeMismatch, match="no race"):
        watch(np.zeros(shape), np.zeros(shape[1]), 0.05, np.random.default_rng(0))
