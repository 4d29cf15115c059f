"""Arms with rewards of their own: sums of different numbers of rewards are compared."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.common import ONE_OF_EACH, seeded, totals

import gumbelrace as gr
from gumbelrace.errors import (
    InvalidArgument,
    InvalidReward,
    NoPossibleArm,
    RewardOutOfRange,
    ShapeMismatch,
)


class Recorder:
    """Log factors of arms of different sizes, counting how often each was asked for."""

    def __init__(self, arms):
        self.arms, self.count = arms, [np.zeros(len(arm), int) for arm in arms]

    def __call__(self, index, arm):
        assert type(arm) is int
        self.count[arm][index] += 1
        return self.arms[arm][index]

    def population(self, reward_range=None):
        return gr.independent(self, [len(arm) for arm in self.arms], reward_range=reward_range)

    def ranged(self):
        bounds = [(arm.min(initial=0.0), arm.max(initial=0.0)) for arm in self.arms]
        return self.population(tuple(np.transpose(bounds)))

    @property
    def evaluations(self):
        return sum(int(count.sum()) for count in self.count)


def recorder(sizes, seed=1):
    rng = seeded(seed)
    return Recorder([rng.normal(0.1, 1.0, size) for size in sizes])


def test_exact_reads_every_reward_once():
    arms = recorder([40, 0, 9000, 1, 300])
    population = arms.population()
    sums = [arm.sum() for arm in arms.arms]
    np.testing.assert_allclose(totals(population), sums, atol=1e-9)
    assert (population.arms, population.rewards) == (5, 9341)
    outcome = gr.Exact().best(population, None, seeded())
    assert (outcome.arm, outcome.evaluations, outcome.exhausted) == (np.argmax(sums), 9341, True)
    assert all((count == 2).all() for count in arms.count)


def test_an_exact_scan_takes_no_look():
    assert gr.Exact().best(recorder([40, 30]).population(), None, seeded()).looks == 0


@pytest.mark.parametrize("method", ONE_OF_EACH, ids=repr)
def test_evaluations_are_what_was_asked_for_without_replacement(method):
    arms = recorder([700, 40, 300, 0, 5000])
    population = arms.ranged()
    for seed in range(5):
        arms.count = [np.zeros(len(arm), int) for arm in arms.arms]
        draw = gr.sample(population, size=1, method=method, rng=seeded(seed))
        assert draw.evaluations.sum() == arms.evaluations
        assert max(int(count.max(initial=0)) for count in arms.count) <= 1
        assert draw.fraction == arms.evaluations / population.rewards


@pytest.mark.parametrize("method", [gr.Betting(1e-9), gr.Race(gr.methods.Serfling(), 1e-9)], ids=repr)
@given(st.lists(st.integers(0, 60), min_size=1, max_size=6), st.integers(0, 1000))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_proved_methods_find_the_best_sum(method, sizes, seed):
    """Of 120 races of a proved error of at most 1e-9, none errs (false alarms: 1e-7)."""
    arms = recorder(sizes, seed)
    outcome = method.best(arms.ranged(), None, seeded(seed))
    sums = np.array([arm.sum() for arm in arms.arms])
    assert sums[outcome.arm] >= sums.max() - 1e-9
    assert outcome.evaluations <= sum(sizes)


@pytest.mark.parametrize("method", ONE_OF_EACH, ids=repr)
def test_a_large_arm_is_not_favoured(method):
    """Arm 0 has the highest mean, arm 1 the highest sum, arm 2 the most rewards."""
    arms = Recorder([np.full(10, 5.0), np.full(1000, 0.1), np.full(3000, -0.1)])
    bounds = (np.array([4.9, 0.0, -0.2]), np.array([5.1, 0.2, 0.0]))
    assert gr.Exact().best(arms.population(), None, seeded()).arm == 1
    assert method.best(arms.population(bounds), None, seeded()).arm == 1


def test_a_race_drops_arms_without_a_range():
    """Arms that lie 5 and 10 standard deviations apart are told apart by few rewards."""
    rng = seeded(5)
    arms = Recorder([rng.normal(mean, 1.0, 1000) for mean in (0.0, 5.0, 10.0)])
    outcome = gr.Race().best(arms.population(), None, seeded())
    assert (outcome.arm, outcome.exhausted) == (2, False)
    assert outcome.evaluations < 300


def test_arms_without_rewards_are_decided_by_the_prior():
    population = gr.independent(lambda index, arm: index * 0.0, [0, 0, 0], reward_range=(0.0, 0.0))
    for method in ONE_OF_EACH:
        assert method.best(population, [0.0, 2.0, 1.0], seeded()).arm == 1
    draws = gr.sample(population, size=3, method=gr.Exact(), rng=seeded())
    assert (draws.fraction, draws.evaluations.sum()) == (0.0, 0)
    assert gr.audit(population, gr.Exact(), draws=3, rng=seeded()).fraction == 0.0


def test_error_names_the_row_of_the_arm():
    arms = recorder([40, 5000, 30])
    arms.arms[1][4321] = np.nan
    with pytest.raises(InvalidReward, match="row 4321, arm 1 "):
        gr.Exact().best(arms.population(), None, seeded())
    arms.arms[1][4321] = 50.0
    with pytest.raises(RewardOutOfRange, match="row 4321, arm 1 "):
        gr.Exact().best(arms.population((-20.0, 20.0)), None, seeded())


@pytest.mark.parametrize("method", ONE_OF_EACH, ids=repr)
def test_minus_infinity_rules_an_arm_out(method):
    arms = [np.full(50, -np.inf), seeded(2).uniform(size=30), np.full(40, -np.inf)]
    population = Recorder(arms).population((-np.inf, 1.0))
    assert method.best(population, None, seeded()).arm == 1
    with pytest.raises(NoPossibleArm):
        method.best(population, [0.0, -np.inf, 0.0], seeded())


def test_arms_dropped_before_the_others_proved_impossible_come_back():
    """One reward in 20 of arms 0 and 1 is -inf: few first looks of 3 rows see it, all second ones do."""
    lead = seeded(3).normal(10.0, 1.0, 1000)
    lead[::20] = -np.inf
    population = Recorder([lead, lead, seeded(4).normal(size=1000)]).population()
    outcomes = [gr.Race().best(population, None, seeded(seed)) for seed in range(40)]
    # A race whose first look shows the -inf of one arm ends there: the other is alone.
    revived = [outcome for outcome in outcomes if outcome.exhausted]
    assert len(revived) > 10
    assert {outcome.arm for outcome in revived} == {2}
    assert max(outcome.evaluations for outcome in outcomes) < 3000


def test_own_exception_and_wrong_shape():
    def broken(index, arm):
        raise LookupError("no such cluster")

    with pytest.raises(LookupError, match="no such cluster"):
        gr.Race().best(gr.independent(broken, [5, 6]), None, seeded())
    wrong = gr.independent(lambda index, arm: np.zeros((len(index), 1)), [5, 6])
    with pytest.raises(ShapeMismatch):
        gr.Race().best(wrong, None, seeded())


@pytest.mark.parametrize("sizes", [[], 5, [[1, 2]], [1.0, 2.0], ["a"], None])
def test_sizes_must_be_integers_for_each_arm(sizes):
    with pytest.raises(ShapeMismatch, match="sizes"):
        gr.independent(np.multiply, sizes)


@pytest.mark.parametrize("sizes", [[3, -1], [3, 2**53]])
def test_sizes_must_be_possible(sizes):
    with pytest.raises(InvalidArgument, match="sizes"):
        gr.independent(np.multiply, sizes)


def test_function_must_be_callable():
    with pytest.raises(InvalidArgument, match="not callable"):
        gr.independent([np.zeros(3)], [3])


@pytest.mark.parametrize("method", [gr.Race(gr.methods.Serfling()), gr.Betting()], ids=repr)
def test_arms_that_cannot_reach_the_leader_are_not_read(method):
    """One large arm, and small ones that a range of [-1, 1] keeps far below it."""
    rng = seeded(2)
    arms = [rng.uniform(-1, 1, 5) for _ in range(40)] + [rng.uniform(0.4, 0.6, 2000)]
    ranged, plain = Recorder(arms), Recorder(arms)
    outcome = method.best(ranged.population((-1.0, 1.0)), None, seeded(3))
    assert outcome.arm == 40
    assert outcome.evaluations == ranged.evaluations == ranged.count[40].sum()
    if not method.needs_range:
        assert method.best(plain.population(), None, seeded(3)).arm == 40
        assert all(count.any() for count in plain.count)


@pytest.mark.parametrize("method", [gr.Race(), gr.Race(gr.methods.Serfling()), gr.Betting()], ids=repr)
def test_an_arm_that_can_reach_little_may_still_win(method):
    arms = [np.full(50, 0.9), np.full(2000, -0.5), np.full(1000, -0.1), np.full(30, 0.2)]
    for offset in (0.0, 20.0):
        log_prior = np.array([0.0, 0.0, 0.0, 2 * offset])
        outcome = method.best(Recorder(arms).population((-1.0, 1.0)), log_prior, seeded(4))
        assert outcome.arm == (0 if offset == 0.0 else 3)
