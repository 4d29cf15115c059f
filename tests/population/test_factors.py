"""Populations of a NumPy function: what it is asked for, what is counted, and its errors."""

import pickle

import numpy as np
import pytest
from tests.common import QUICK, seeded, totals

import gumbelrace as gr
from gumbelrace.errors import InvalidArgument, InvalidReward, RewardOutOfRange, ShapeMismatch

SIZES = [1, 129, 16_383, 16_384, 20_001]


class Recorder:
    """Log factors out of an array that counts how often each was asked for."""

    def __init__(self, rewards):
        self.rewards, self.count = rewards, np.zeros(rewards.shape, int)

    def __call__(self, index, arms):
        assert index.dtype == arms.dtype == np.int64
        self.count[np.ix_(index, arms)] += 1
        return self.rewards[np.ix_(index, arms)]

    def population(self, **kwargs):
        return gr.factors(self, *self.rewards.shape, **kwargs)

    def ranged(self):
        return self.population(reward_range=(self.rewards.min(axis=0), self.rewards.max(axis=0)))


@pytest.mark.parametrize("size", SIZES)
def test_exact_reads_every_reward_once(size):
    recorder = Recorder(seeded(1).normal(size=(size, 4)))
    np.testing.assert_allclose(totals(recorder.population()), recorder.rewards.sum(axis=0), atol=1e-9)
    assert (recorder.count == 1).all()
    outcome = gr.Exact().best(recorder.population(), None, seeded())
    assert (outcome.arm, outcome.evaluations) == (recorder.rewards.sum(axis=0).argmax(), 4 * size)
    assert (recorder.count == 2).all()


@pytest.mark.parametrize("size", [300, 20_001])
@pytest.mark.parametrize("method", QUICK, ids=repr)
def test_evaluations_are_what_was_asked_for(method, size):
    if method == gr.LilUCB() and size > 300:
        pytest.skip("a call of Python for every reward")
    recorder = Recorder(seeded(2).normal(size=(size, 5), scale=3.0 / np.sqrt(size)))
    population = recorder.ranged()
    for seed in range(5):
        recorder.count[:] = 0
        draws = gr.sample(population, size=1, method=method, rng=seeded(seed))
        assert recorder.count.sum() == draws.evaluations.sum()
        assert recorder.count.max() == 1


def test_reshuffled_factors_are_the_same():
    recorder = Recorder(seeded(3).normal(size=(20_001, 3)))
    population = recorder.ranged().reshuffled(seeded(4))
    np.testing.assert_allclose(totals(population), recorder.rewards.sum(axis=0), atol=1e-9)
    np.testing.assert_array_equal(population.reward_range[0], recorder.rewards.min(axis=0))


def test_integers_and_lists_are_fine():
    population = gr.factors(lambda index, arms: [[int(n + a) for a in arms] for n in index], 10, 3)
    np.testing.assert_array_equal(totals(population), [45, 55, 65])


def test_what_the_function_does_to_its_arguments_does_not_matter():
    rewards = seeded(5).normal(size=(300, 3))

    def careless(index, arms):
        values = rewards[np.ix_(index, arms)]
        index[:], arms[:] = 0, 0
        return values

    np.testing.assert_allclose(totals(gr.factors(careless, 300, 3)), rewards.sum(axis=0), atol=1e-9)
    careful = gr.sample(Recorder(rewards).population(), size=20, method=gr.Race(), rng=seeded())
    drawn = gr.sample(gr.factors(careless, 300, 3), size=20, method=gr.Race(), rng=seeded())
    np.testing.assert_array_equal(drawn.arms, careful.arms)


@pytest.mark.parametrize("size", [100, 20_001])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_reward_is_named(size, bad):
    recorder = Recorder(seeded(6).normal(size=(size, 3)))
    recorder.rewards[size - 3, 1] = bad
    for population in [recorder.population(), recorder.population(reward_range=(-9.0, 9.0))]:
        with pytest.raises(InvalidReward, match=f"row {size - 3}, arm 1 "):
            gr.Exact().best(population, None, seeded())


@pytest.mark.parametrize("size", [100, 20_001])
@pytest.mark.parametrize("bad", [-0.5, 1.5, -np.inf])
@pytest.mark.parametrize("method", [gr.Exact(), gr.Betting()], ids=repr)
def test_reward_out_of_range_is_named(method, size, bad):
    recorder = Recorder(np.tile(seeded(7).uniform(size=(size, 1)), 3))  # tied: everything is read
    recorder.rewards[size // 2, 2] = bad
    with pytest.raises(RewardOutOfRange, match=f"row {size // 2}, arm 2 .*\\[0, 1\\]"):
        method.best(recorder.population(reward_range=(0.0, 1.0)), None, seeded())


@pytest.mark.parametrize("count", [0, -1, 2.0, "3", None, True])
def test_size_must_be_a_count(count):
    with pytest.raises(InvalidArgument, match="size"):
        gr.factors(np.add.outer, size=count, arms=2)


@pytest.mark.parametrize("count", [0, -1, 2.0, "3", None, True])
def test_arms_must_be_a_count(count):
    with pytest.raises(InvalidArgument, match="arms"):
        gr.factors(np.add.outer, size=2, arms=count)


def test_function_must_be_callable():
    with pytest.raises(InvalidArgument, match="not callable"):
        gr.factors(np.zeros((3, 2)), size=3, arms=2)


@pytest.mark.parametrize("given", [(0.0,), (0.0, 1.0, 2.0), 3.0, ([0.0] * 3, 1.0), ("a", "b")])
def test_range_of_the_wrong_shape(given):
    with pytest.raises(ShapeMismatch, match="length 2"):
        gr.factors(np.add.outer, size=3, arms=2, reward_range=given)


@pytest.mark.parametrize(
    "given", [(1.0, 0.0), ([0.0, 2.0], 1.0), (0.0, np.inf), (np.nan, 1.0), (0.0, np.nan)]
)
def test_range_that_no_reward_could_have(given):
    with pytest.raises(InvalidArgument, match="reward_range of arm"):
        gr.factors(np.add.outer, size=3, arms=2, reward_range=given)


def test_range_is_the_users_own_copy():
    low, high = np.zeros(2), np.ones(2)
    population = gr.factors(np.add.outer, size=3, arms=2, reward_range=(low, high))
    low[:], high[:] = 5.0, 6.0
    np.testing.assert_array_equal(population.reward_range, [[0.0, 0.0], [1.0, 1.0]])


WRONG = {
    "complex": lambda values: values + 0j,
    "masked": lambda values: np.ma.masked_less(values, 100.0),
    "objects": lambda values: values.astype(object),
    "text": lambda values: values.astype(str),
    "nothing": lambda values: None,
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_no_array_of_real_numbers_is_refused(kind):
    rewards = seeded(8).normal(size=(50, 2))
    several = gr.factors(lambda index, arms: WRONG[kind](rewards[np.ix_(index, arms)]), 50, 2)
    single = gr.independent(lambda index, arm: WRONG[kind](rewards[index, arm]), [50, 50])
    for population in (several, single):
        with pytest.raises(InvalidArgument, match="what log_factors gave"):
            gr.Exact().best(population, None, seeded())


def ones(index, arms):
    return np.sin(np.add.outer(index, arms))


def sines(index, arm):
    return np.sin(index + arm)


def test_population_is_pickled_with_its_function():
    used, own = (
        gr.factors(ones, 20_000, 3, reward_range=(-1.0, 1.0)),
        gr.independent(sines, [300, 200], reward_range=(-1.0, 1.0)),
    )
    for population in (used, own, gr.factors(ones, 300, 3)):
        gr.best(population, rng=seeded())
        copy = pickle.loads(pickle.dumps(population))
        drawn, again = (gr.sample(each, size=20, rng=seeded(9)) for each in (population, copy))
        np.testing.assert_array_equal(drawn.arms, again.arms)
        np.testing.assert_array_equal(drawn.evaluations, again.evaluations)
