"""Corners: one row, one arm, ties, constants, impossible arms, and never more than everything read."""

import subprocess
import sys

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.common import EVERY_METHOD, seeded

import gumbelrace as gr
from gumbelrace.errors import NoPossibleArm

KINDS = ["table", "memmap", "shuffled memmap", "factors", "compiled"]


@numba.njit
def entry(n, arm, rewards):
    return rewards[n, arm]


def bounds_of(rewards):
    """Range as a user could give it: -inf where a reward is."""
    return rewards.min(axis=0), np.where(np.isinf(rewards), -1e3, rewards).max(axis=0)


def make(kind, rewards, path=None):
    """Make a population of the given kind that knows its range."""
    if kind == "table":
        return gr.table(rewards)
    if "memmap" in kind:
        np.save(path / "x.npy", rewards)
        return gr.table(np.load(path / "x.npy", mmap_mode="r"), shuffled="shuffled" in kind)
    if kind == "compiled":
        return gr.compiled(entry, (rewards,), *rewards.shape, reward_range=bounds_of(rewards))
    return gr.factors(
        lambda index, arms: rewards[np.ix_(index, arms)], *rewards.shape, reward_range=bounds_of(rewards)
    )


@EVERY_METHOD
@pytest.mark.parametrize("kind", ["table", "factors"])
@pytest.mark.parametrize("size", [1, 2, 3, 17, 129, 20_001])
def test_answer_is_right_for_any_size(method, kind, size):
    """Arms far apart, the best one last: found, and nothing read twice."""
    rewards = seeded(size).uniform(size=(size, 4)) + np.array([0.0, 2.0, 1.0, 50.0])
    outcome = method.best(make(kind, rewards), None, seeded())
    assert outcome.arm == 3
    assert outcome.evaluations <= 4 * size
    assert outcome.looks >= 0


@EVERY_METHOD
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 500])
def test_one_arm(method, kind, size, tmp_path):
    population = make(kind, seeded(1).normal(size=(size, 1)), tmp_path)
    outcome = method.best(population, [-3.0], seeded())
    assert outcome.arm == 0
    assert outcome.evaluations <= size
    assert gr.sample(population, size=4, method=method, rng=seeded()).arms.tolist() == [0] * 4


@pytest.mark.parametrize("first", [300, 301, 10_000])
@pytest.mark.parametrize("bound", [gr.methods.Normal(), gr.methods.Serfling()], ids=repr)
@pytest.mark.parametrize("variance", [gr.methods.Paired(), gr.methods.Marginal()], ids=repr)
def test_first_look_at_everything_is_exact(first, bound, variance):
    rewards = seeded(2).normal(size=(300, 5))
    outcome = gr.Race(bound, first=first, variance=variance).best(gr.table(rewards), None, seeded())
    assert outcome == gr.Outcome(int(rewards.sum(axis=0).argmax()), 1500, 0, True)


@EVERY_METHOD
@pytest.mark.parametrize("kind", ["table", "factors", "compiled"])
@pytest.mark.parametrize("size", [1, 200, 20_001])
def test_tied_arms(method, kind, size):
    """Arms with the same rewards: any is right, the offset decides between them."""
    if kind == "factors" and size > 200 and isinstance(method, gr.LilUCB):
        pytest.skip("a call of Python for every reward")
    rewards = np.tile(seeded(3).normal(size=(size, 1)), 3)
    population = make(kind, rewards)
    assert method.best(population, None, seeded()).evaluations <= 3 * size
    outcome = method.best(population, [0.0, 1e-3, 0.0], seeded())
    assert outcome.arm == 1 or not isinstance(method, gr.Exact)
    if outcome.evaluations == 3 * size:
        assert outcome.arm == 1


@EVERY_METHOD
@pytest.mark.parametrize("kind", ["table", "factors", "compiled"])
@pytest.mark.parametrize("size", [1, 200, 20_001])
def test_constant_equal_rewards(method, kind, size):
    if kind == "factors" and size > 200 and isinstance(method, gr.LilUCB):
        pytest.skip("a call of Python for every reward")
    population = make(kind, np.full((size, 3), 0.1))
    for arm in range(3):
        offset = np.where(np.arange(3) == arm, 1.0, 0.0)
        outcome = method.best(population, offset, seeded())
        assert outcome.arm == arm
        assert outcome.evaluations <= 3 * size


@EVERY_METHOD
@pytest.mark.parametrize("kind", ["table", "factors", "compiled"])
def test_constant_different_rewards(method, kind):
    """The range says that rewards are constant: a race may decide at its first look."""
    population = make(kind, np.tile([0.1, 0.3, 0.2], (5000, 1)))
    outcome = method.best(population, None, seeded())
    assert outcome.arm == 1
    if not isinstance(method, gr.Exact):
        assert outcome.evaluations < 15_000
    if method == gr.Race():
        assert outcome.evaluations == 150


RARE = np.zeros((5000, 2))
RARE[seeded(4).choice(5000, 5, replace=False), 1] = 4.0  # sums 0 and 20


@pytest.mark.parametrize("variance", [gr.methods.Paired(), gr.methods.Marginal()], ids=repr)
@pytest.mark.parametrize("kind", ["table", "factors", "independent"])
@pytest.mark.parametrize("usual", [0.0, 0.1], ids=["exact", "rounded"])
def test_zero_variance_proves_nothing(kind, variance, usual):
    """19 in 20 first looks see equal rewards only, and arm 0 ahead by its prior of 10: 200 draws, δ = 0.05.

    A race that took zero variance for certainty would err in 19 of 20. The oracle is the binomial
    law: more than 21 errors in 200 have a probability of 1e-3 at δ.
    """
    rewards = RARE + usual
    population = gr.table(rewards)
    if kind == "factors":
        population = gr.factors(lambda index, arms: rewards[np.ix_(index, arms)], *rewards.shape)
    if kind == "independent":
        population = gr.independent(lambda index, arm: rewards[index, arm], [len(rewards)] * 2)
    race = gr.Race(variance=variance)
    report = gr.audit(population, race, draws=200, rng=seeded(5), log_prior=[10.0, 0.0])
    assert report.errors <= 21
    assert not report.broken


def test_zero_variance_is_proof_if_the_range_says_constant():
    rewards = np.zeros((5000, 2))
    ranges = {0.0: 100, 1.0: 10_000}  # how high rewards may be -> rewards that must be read
    for high, evaluations in ranges.items():
        population = gr.factors(
            lambda index, arms: rewards[np.ix_(index, arms)], 5000, 2, reward_range=(0.0, high)
        )
        outcome = gr.Race().best(population, [1.0, 0.0], seeded())
        assert (outcome.arm, outcome.evaluations) == (0, evaluations)


@EVERY_METHOD
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("impossible", [[0], [2], [0, 1], [1, 2]])
def test_minus_infinity_rules_arms_out(method, kind, impossible, tmp_path):
    """The impossible arms would be far ahead; one of ten of their rewards is -inf."""
    rewards = seeded(6).uniform(size=(400, 3)) + np.array([0.0, 0.5, 1.0])
    rewards[:, impossible] += 10.0
    rewards[np.ix_(np.arange(3, 400, 10), impossible)] = -np.inf
    outcome = method.best(make(kind, rewards, tmp_path), None, seeded())
    assert outcome.arm == max({0, 1, 2} - set(impossible))
    assert outcome.evaluations <= 1200


@EVERY_METHOD
@pytest.mark.parametrize("kind", KINDS)
def test_one_minus_infinity_among_tied_arms(method, kind, tmp_path):
    """Tied arms are read to the end (or known beforehand): the one -inf of arm 0 is seen."""
    rewards = np.tile(seeded(7).uniform(size=(400, 1)), 3)
    rewards[77, 0] = -np.inf
    assert method.best(make(kind, rewards, tmp_path), None, seeded()).arm != 0


@EVERY_METHOD
@pytest.mark.parametrize("kind", KINDS)
def test_no_possible_arm(method, kind, tmp_path):
    rewards = seeded(8).uniform(size=(400, 3))
    rewards[::7] = -np.inf
    population = make(kind, rewards, tmp_path)
    with pytest.raises(NoPossibleArm):
        method.best(population, None, seeded())
    with pytest.raises(NoPossibleArm):
        method.best(population, [0.0, -np.inf, 1.0], seeded())


@pytest.mark.parametrize("kind", ["memmap", "shuffled memmap", "factors", "compiled"])
@pytest.mark.parametrize("arms", [3, 20])
@pytest.mark.parametrize("variance", [gr.methods.Paired(), gr.methods.Marginal()], ids=repr)
def test_dropped_arms_come_back_if_all_others_prove_impossible(kind, arms, variance, tmp_path):
    """Arms 0 and 1 are tied and far ahead; both have a -inf in one row, found late or in the last scan."""
    rewards = seeded(9).normal(size=(1000, arms))
    rewards[:, 1] = rewards[:, 0] = rewards[:, 0] + 10.0
    rewards[3, :2] = -np.inf
    rewards[:, 2] += 0.5
    if kind == "factors":
        population = gr.factors(lambda index, arms: rewards[np.ix_(index, arms)], *rewards.shape)
    elif kind == "compiled":
        population = gr.compiled(entry, (rewards,), *rewards.shape)
    else:
        population = make(kind, rewards, tmp_path)
    for seed in range(20):
        outcome = gr.Race(variance=variance).best(population, None, seeded(seed))
        assert outcome.arm == 2
        assert outcome.evaluations <= rewards.size


def test_betting_goes_on_after_its_rival_proved_impossible():
    """Arm 0 leads until it shows a -inf, in a late look: arms 1 and 2 are then told apart as before."""
    rewards = seeded(10).uniform(size=(20_000, 3)) + np.array([1.0, 0.2, 0.0])
    rewards[seeded(11).random(20_000) < 0.02, 0] = -np.inf
    population = make("factors", rewards)
    for seed in range(10):
        outcome = gr.Betting().best(population, None, seeded(seed))
        assert outcome.arm == 1
        assert outcome.evaluations < 6_000


LIL = """
import numpy as np, gumbelrace as gr
for seed in range(8):
    rng = np.random.default_rng(seed)
    rewards = rng.normal(size=(60, 20))
    impossible = rng.random(20) < 0.6
    impossible[seed] = False
    rewards[:, impossible] = -np.inf
    bounds = -np.inf, 9.0
    population = gr.factors(lambda index, arms: rewards[np.ix_(index, arms)], 60, 20, reward_range=bounds)
    for method in [gr.LilUCB(), gr.LilUCB.guaranteed()]:
        outcome = method.best(population, None, rng)
        assert not impossible[outcome.arm]
        assert outcome.evaluations <= rewards.size
"""


def test_lilucb_ends_with_many_impossible_arms():
    """In a process of its own: compiled code that does not end cannot be interrupted."""
    subprocess.run([sys.executable, "-c", LIL], check=True, timeout=120)


@EVERY_METHOD
@pytest.mark.parametrize("size", [300, 20_001])
def test_arm_ruled_out_by_the_prior_is_never_read(method, size):
    asked = set()
    rewards = seeded(12).uniform(size=(size, 5)) + np.array([9.0, 0.0, 9.0, 4.0, 0.0])

    def log_factors(index, arms):
        asked.update(arms.tolist())
        return rewards[np.ix_(index, arms)]

    population = gr.factors(log_factors, size, 5, reward_range=(0.0, 10.0))
    prior = [-np.inf, 0.0, -np.inf, 0.0, 0.0]
    draws = gr.sample(population, prior, size=2, method=method, rng=seeded())
    assert draws.arms.tolist() == [3, 3]
    assert asked <= {1, 3, 4}
    assert draws.evaluations.max() <= 3 * size
    only = [-np.inf] * 4 + [0.0]
    assert gr.sample(population, only, size=2, method=method, rng=seeded()).arms.tolist() == [4, 4]


# Few different values make ties; the small ones next to large ones make rounding matter.
TABLES = arrays(
    np.float64,
    st.tuples(st.integers(1, 60), st.integers(1, 5)),
    elements=st.sampled_from([0.0, 1.0, -1.0, 0.1, 1e-9, 1e6 / 3.0, -2.5]) | st.floats(-5.0, 5.0),
    fill=st.nothing(),
)


@EVERY_METHOD
@given(rewards=TABLES, seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_any_small_population(method, rewards, seed):
    """Every reward is read at most once, and the answer is exact among the arms read to the end."""
    count = np.zeros(rewards.shape, int)

    def log_factors(index, arms):
        count[np.ix_(index, arms)] += 1
        return rewards[np.ix_(index, arms)]

    population = gr.factors(
        log_factors, *rewards.shape, reward_range=(rewards.min(axis=0), rewards.max(axis=0))
    )
    outcome = method.best(population, None, seeded(seed))
    sums, rounding = rewards.sum(axis=0), 1e-12 * np.abs(rewards).sum()
    assert count.max() <= 1
    assert outcome.evaluations == count.sum()
    if outcome.exhausted:
        read = count.all(axis=0)
        assert read[outcome.arm]
        assert sums[outcome.arm] >= sums[read].max() - rounding


@pytest.mark.parametrize(
    "method", [gr.Exact(), gr.Betting(1e-9), gr.Race(gr.methods.Serfling(), 1e-9)], ids=repr
)
@given(rewards=TABLES, seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_proved_methods_are_exact_on_any_small_table(method, rewards, seed):
    """Of 180 races of a proved error of at most 1e-9, none errs (false alarms: 1e-7)."""
    offset = seeded(seed).normal(size=rewards.shape[1])
    outcome = method.best(gr.table(rewards), offset, seeded(seed))
    values = rewards.sum(axis=0) + offset
    assert values[outcome.arm] >= values.max() - 1e-12 * np.abs(rewards).sum()
