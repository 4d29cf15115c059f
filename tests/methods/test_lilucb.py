"""Adapted lil'UCB: its parameters, and every pull checked against the algorithm in plain Python."""

import numpy as np
import pytest
from tests.common import seeded

import gumbelrace as gr
from gumbelrace import errors
from gumbelrace.methods.base import Asked
from gumbelrace.methods.lilucb import guaranteed, heuristic
from gumbelrace.methods.loop import answer_each
from gumbelrace.methods.state import AT_ONCE, new_results


def pulls_of(method, rewards, offset, seed):
    """Run on `rewards`; return the outcome and the (row, arm) of every reward in the order read."""
    pulls = []

    def log_factors(index, arms):
        assert len(index) == len(arms) == 1
        pulls.append((int(index[0]), int(arms[0])))
        return rewards[np.ix_(index, arms)]

    bounds = (rewards.min(axis=0), rewards.max(axis=0))
    population = gr.factors(log_factors, *rewards.shape, reward_range=bounds)
    return method.best(population, offset, seeded(seed)), pulls


def highest(sums, taken, size, offset, scale, lil):
    """Upper confidence bound of the sum of N rewards after `taken` of them (paper, section 3.2)."""
    if taken == 0:
        return np.inf
    if taken == size:
        return sums + offset
    inside = np.log((1 + lil.epsilon) * taken) / lil.confidence
    if inside <= 1.0:
        return np.inf
    width = (1 + lil.beta) * (1 + np.sqrt(lil.epsilon))
    width *= np.sqrt(2 * scale**2 * (1 + lil.epsilon) * np.log(inside) / taken)
    return size * (sums / taken + width) + offset


CASES = [
    pytest.param(method, size, spread, id=f"{name}, {size} rows, {spread}")
    for name, method in [("heuristic", gr.LilUCB()), ("guaranteed", gr.LilUCB.guaranteed())]
    for size, spread in [(60, 1.0), (400, 0.3), (400, 0.03)]
]


@pytest.mark.parametrize(("method", "size", "spread"), CASES)
def test_every_pull_is_the_algorithms(method, size, spread):
    rewards = spread * seeded(size).uniform(size=(size, 5)) + [0.0, 0.5, 0.1, 0.45, 0.2]
    lil = guaranteed(0.05) if method.proved else heuristic(0.05, 5)
    scale = np.ptp(rewards, axis=0).max() / 2
    for seed in range(3):
        offset = seeded(seed).gumbel(size=5)
        outcome, pulls = pulls_of(method, rewards, offset, seed)
        sums, taken = np.zeros(5), np.zeros(5, int)
        for row, arm in pulls:
            bounds = [highest(sums[i], taken[i], size, offset[i], scale, lil) for i in range(5)]
            assert bounds[arm] >= max(bounds) - 1e-9
            may_stop = taken[arm] == size or taken[arm] >= 1 + lil.ratio * (taken.sum() - taken[arm])
            assert not (taken.all() and may_stop)
            sums[arm] += rewards[row, arm]
            taken[arm] += 1
        assert len(set(pulls)) == len(pulls) == outcome.evaluations
        assert taken.max() <= size
        top = outcome.arm
        assert taken[top] == size or taken[top] >= 1 + lil.ratio * (taken.sum() - taken[top])
        assert outcome.exhausted == (taken[top] == size)
        if (taken == size).all():
            assert top == (rewards.sum(axis=0) + offset).argmax()


def test_it_reads_less_where_arms_lie_apart():
    rewards = seeded(1).uniform(size=(20_000, 4)) * 0.1 + [0.0, 0.1, 0.5, 0.9]
    outcome = gr.LilUCB().best(gr.table(rewards), None, seeded())
    assert outcome.arm == 3
    assert outcome.evaluations < 1_000
    assert not outcome.exhausted


@pytest.mark.parametrize("method", [gr.LilUCB(), gr.LilUCB.guaranteed()], ids=["heuristic", "guaranteed"])
@pytest.mark.parametrize("power", [-900, -565, 480])
def test_a_power_of_two_as_the_unit_of_rewards_changes_nothing(method, power):
    """The arithmetic is the same to the last bit, unless something underflows or overflows."""
    rewards = seeded(4).normal([0.0, 0.05], size=(500, 2))
    for seed in range(5):
        outcome = method.best(gr.table(rewards), None, seeded(seed))
        assert method.best(gr.table(rewards * 2.0**power), None, seeded(seed)) == outcome


def test_rows_of_an_arm_are_drawn_at_random():
    """First row of each of 2 arms of 20 rows, 1,000 draws: no cell deviates by 5 standard errors."""
    rewards, first = seeded(2).uniform(size=(20, 2)), np.zeros((20, 2))
    for seed in range(1000):
        _, pulls = pulls_of(gr.LilUCB(), rewards, None, seed)
        for arm in (0, 1):
            first[next(row for row, pulled in pulls if pulled == arm), arm] += 1
    assert np.abs(first - 50.0).max() < 5 * np.sqrt(1000 * 0.05 * 0.95)


def test_heuristic_parameters():
    assert heuristic(0.05, 4) == (0.0, 0.5, 0.01, 3.5)
    assert heuristic(0.1, 10) == (0.0, 0.5, 0.02, 2.0)


@pytest.mark.parametrize("delta", [1e-6, 0.01, 0.05, 0.25664])
def test_guaranteed_parameters_satisfy_the_theorem(delta):
    epsilon, beta, inner, ratio = guaranteed(delta)
    c = (2 + epsilon) / epsilon * (1 / np.log(1 + epsilon)) ** (1 + epsilon)
    assert 4 * np.sqrt(c * inner) + 4 * c * inner == pytest.approx(delta, rel=1e-9)
    assert 0 < c * inner < np.log(1 + epsilon) / np.e
    weight, log = ((2 + beta) / beta) ** 2, np.log(1 / inner)
    room = 1 - inner - np.sqrt(inner**0.25 * log)
    assert room > 0
    assert ratio >= (1 - 1e-12) * weight * (1 + np.log(2 * np.log(weight / inner)) / log) / room


@pytest.mark.parametrize("delta", [0.25665, 0.5, 0.99])
def test_no_guarantee_is_given_where_the_theorem_does_not_hold(delta):
    """It asks for δ' < log(1 + ε)/(e c), which is δ < 0.25665 at ε = 0.01."""
    assert gr.LilUCB.guaranteed(0.25664).delta == 0.25664
    assert gr.LilUCB(delta).delta == delta
    for make in (gr.LilUCB.guaranteed, lambda delta: gr.LilUCB(delta, proved=True)):
        with pytest.raises(errors.InvalidArgument, match=r"below 0\.25665:"):
            make(delta)


def test_promises():
    assert gr.LilUCB(0.1).promise.delta == gr.LilUCB.guaranteed(0.1).promise.delta == 0.1
    assert gr.LilUCB.guaranteed(0.1).promise.proved
    assert "heuristic" in gr.LilUCB(0.1).promise.assumption


def arms_of(rewards):
    sizes = [len(column) for column in rewards]
    return gr.independent(lambda index, arm: rewards[arm][index], sizes, reward_range=(-3.0, 3.0))


@pytest.mark.parametrize("sizes", [[0, 50], [1, 50], [3, 400]])
@pytest.mark.parametrize("method", [gr.LilUCB(0.05), gr.LilUCB.guaranteed(0.05)], ids=str)
def test_a_small_arm_that_is_read_to_its_end_proves_nothing_of_the_others(sizes, method):
    """Oracle: exact sums; 60 near ties, none decided wrongly."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        rewards = [rng.uniform(-1.0, 1.0, size) for size in sizes]
        rewards[1] -= rewards[1].mean() + (0.5 if seed % 2 else -0.5) / sizes[1]
        right = int(np.argmax([column.sum() for column in rewards]))
        assert gr.best(arms_of(rewards), method=method, rng=rng).arm == right


def test_reading_everything_at_once_is_exact():
    rewards = np.random.default_rng(0).normal(size=(300, 3))
    method = gr.LilUCB(0.5)
    with method.plan(Asked(), gr.table(rewards), np.random.default_rng(1)) as plan:
        plan.state.tally[AT_ONCE] = 1
        found = new_results(1)
        answer_each(plan, np.zeros((1, 3)), found)
    assert found.arms[0] == rewards.sum(axis=0).argmax()
    assert found.evaluations[0] == 900
