"""Different ways to the same answer: populations of one set of numbers, and plain Python references."""

from itertools import pairwise

import numba
import numpy as np
import pytest

import gumbelrace as gr
from gumbelrace.solvers.betting import CAUTION, MOST_AT_STAKE

SOLVERS = [
    gr.Exact(),
    gr.Betting(0.01),
    gr.Race(delta=0.01),
    gr.Race(delta=0.01, variance=gr.Marginal()),
    gr.Race(gr.Serfling(), delta=0.01),
    gr.Race(gr.Serfling(), delta=0.01, variance=gr.Marginal()),
    gr.LilUCB(0.01),
]


def seeded(seed=0):
    return np.random.default_rng(seed)


@numba.njit
def entry(n, arm, rewards):
    return rewards[n, arm]


def rewards_of(size, arms=6, spread=2.0):
    """Rewards whose sums are of order 1 apart, so that Gumbel variables matter and arms are dropped."""
    rewards = seeded(size).uniform(-1.0, 1.0, size=(size, arms))
    return rewards * spread / np.sqrt(size) + np.linspace(0.0, 3.0, arms) / size


def factors(rewards, seen=None):
    """Make a population that knows its range and notes in `seen` the rows and arms it was asked for."""

    def log_factors(index, arms):
        if seen is not None:
            seen.append((index, arms))
        return rewards[np.ix_(index, arms)]

    return gr.factors(log_factors, *rewards.shape, (rewards.min(axis=0), rewards.max(axis=0)))


def compiled(rewards):
    bounds = (rewards.min(axis=0), rewards.max(axis=0))
    return gr.compiled(entry, (rewards,), *rewards.shape, bounds)


@pytest.mark.parametrize("size", [300, 20_000])
@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_populations_of_the_same_numbers_agree(solver, size):
    rewards = rewards_of(size)
    # lil'UCB reads single rows by their number: those of a table only if it keeps their order.
    table = gr.table(rewards, shuffled=isinstance(solver, gr.LilUCB))
    table.scan_speed = 1.0  # a table would turn to an exact scan earlier, which is faster there
    count = 1 if isinstance(solver, gr.LilUCB) and size > 300 else 40
    draws = [
        gr.sample(population, size=count, solver=solver, rng=seeded(1))
        for population in (table, compiled(rewards), factors(rewards))
    ]
    for name in ("arms", "evaluations", "looks", "exhausted"):
        np.testing.assert_array_equal(getattr(draws[0], name), getattr(draws[1], name))
        np.testing.assert_array_equal(getattr(draws[1], name), getattr(draws[2], name))


@pytest.mark.parametrize("solver", SOLVERS[:-1], ids=repr)
def test_memory_map_agrees_with_factors(solver, tmp_path):
    """Both read single rows of 300 by their number."""
    rewards = rewards_of(300)
    np.save(tmp_path / "x.npy", rewards)
    mapped = gr.table(np.load(tmp_path / "x.npy", mmap_mode="r"))
    draws = [gr.sample(p, size=40, solver=solver, rng=seeded(2)) for p in (mapped, factors(rewards))]
    np.testing.assert_array_equal(draws[0].arms, draws[1].arms)


def test_lilucb_agrees_on_arms_with_rows_of_their_own():
    rewards = rewards_of(300)
    bounds = (rewards.min(axis=0), rewards.max(axis=0))
    own = gr.independent(lambda index, arm: rewards[index, arm], [300] * 6, bounds)
    draws = [gr.sample(p, size=20, solver=gr.LilUCB(), rng=seeded(3)) for p in (own, compiled(rewards))]
    for name in ("arms", "evaluations", "looks", "exhausted"):
        np.testing.assert_array_equal(getattr(draws[0], name), getattr(draws[1], name))


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_one_batch_is_draw_after_draw(solver):
    """The Gumbel variables of a batch come first; with them given, draws follow one another."""
    population, offsets = gr.table(rewards_of(300)), seeded(4).gumbel(size=(20, 6))
    found = solver.best_each(population, offsets, seeded(5))
    rng = seeded(5)
    for draw, offset in enumerate(offsets):
        outcome = solver.best(population, offset, rng)
        expected = (found.arms[draw], found.evaluations[draw], found.looks[draw], found.exhausted[draw])
        assert (outcome.arm, outcome.evaluations, outcome.looks, outcome.exhausted) == expected


def follow(solver, rewards, offset, seed):
    """Run a solver; return the outcome and, for each call of the function, its rows and its arms."""
    seen = []
    outcome = solver.best(factors(rewards, seen), offset, seeded(seed))
    return outcome, [(index.tolist(), arms.tolist()) for index, arms in seen]


class Algorithm1:
    """Racing-Normal in plain Python on the rows that a solver asks for; checks the arms it asks for."""

    def __init__(self, calls, rewards, offset, delta, first, paired):
        self.alive, self.rows, self.leaders, self.dropped = list(range(rewards.shape[1])), [], [], 0
        self.scanned = False
        self.level = gr.b_normal(delta / (len(self.alive) - paired), first / len(rewards))
        self.rewards, self.offset, self.paired = rewards, offset, paired
        for index, asked in calls:
            assert asked == self.alive
            # A call that is no look is part of the scan of all remaining rows.
            if len(self.rows) + len(index) not in [first * 2**k for k in range(20)]:
                self.scanned = True
                break
            self.look(index)

    def look(self, index):
        self.rows += index
        l, taken, size = self.rewards[self.rows], len(self.rows), len(self.rewards)
        mean = l.mean(axis=0) + self.offset / size
        x = max(self.alive, key=lambda i: mean[i])
        shrink = self.level / np.sqrt(taken) * np.sqrt(1.0 - (taken - 1) / (size - 1))
        if self.paired:
            bound = [shrink * np.std(l[:, x] - l[:, i]) for i in range(l.shape[1])]
        else:
            bound = [shrink * np.std(l[:, x]) + shrink * np.std(l[:, i]) for i in range(l.shape[1])]
        left = [i for i in self.alive if i == x or not mean[x] - mean[i] > bound[i]]
        self.dropped += len(self.alive) - len(left)
        self.alive, self.leaders = left, [*self.leaders, x]

    @property
    def lead_came_back(self):
        """Whether an arm led, lost the lead to another and led again."""
        changes = [b for a, b in pairwise([None, *self.leaders]) if a != b]
        return len(changes) > len(set(changes))


def follow_races(rewards, variance, reference_delta):
    races = []
    for seed in range(60):
        offset = seeded(seed).gumbel(size=6)
        outcome, calls = follow(gr.Race(variance=variance), rewards, offset, seed)
        race = Algorithm1(calls, rewards, offset, reference_delta, 50, variance.paired)
        assert outcome.exhausted == race.scanned
        assert race.scanned or len(race.alive) == 1
        assert outcome.arm == max(race.alive, key=lambda i: rewards[:, i].sum() + offset[i])
        races.append(race)
    return races


@pytest.mark.parametrize("size", [300, 20_000])
@pytest.mark.parametrize("variance", [gr.Paired(), gr.Marginal()], ids=repr)
def test_race_is_algorithm_1(variance, size):
    races = follow_races(rewards_of(size, spread=0.7), variance, 0.05)
    assert sum(race.dropped for race in races) > 100
    assert sum(not race.scanned for race in races) > 5
    assert any(race.lead_came_back for race in races)


def test_another_delta_is_not_algorithm_1():
    """A negative control: the reference at half the δ keeps arms that the race drops."""
    with pytest.raises(AssertionError):
        follow_races(rewards_of(20_000, spread=0.7), gr.Marginal(), 0.025)


class Wealth:
    """Betting in plain Python: W_j, its rival, λ and η, the rewards holding their share of the offset."""

    def __init__(self, rewards, offset, delta):
        self.l, self.target = rewards + offset / len(rewards), 1.0 / delta
        self.low, self.high = self.l.min(axis=0), self.l.max(axis=0)
        self.size, arms = rewards.shape
        self.rows, self.fresh, self.drops = [], [], 0
        self.sums = np.zeros(arms)
        self.wealth, self.squares = np.ones(arms), np.zeros(arms)
        self.stake, self.ceiling, self.rival = np.zeros(arms), np.zeros(arms), [None] * arms
        self.alive = [j for j in range(arms) if self.high[j] >= self.low.max()]

    def is_look(self, index):
        return len(self.rows) + len(index) < self.size

    def look(self, index):
        """Settle the bets on the rows of `index`, drop arms, and bet again."""
        self.rows, self.fresh = self.rows + index, index
        self.sums += self.l[index].sum(axis=0)
        leader = self.ranked()[0]
        for j in self.alive:
            if self.rival[j] is not None:
                z = self.z(index, j)
                self.wealth[j] *= np.prod(1.0 + self.stake[j] * (z - self.ceiling[j]))
                self.squares[j] += np.sum((z - z.mean()) ** 2)
        self.keep([j for j in self.alive if self.wealth[j] < self.target] or [leader])
        while len(self.alive) > 1:
            possible = [j for j in self.alive if self.bet(j, *self.ranked()[:2])]
            if possible == self.alive:
                break
            self.keep(possible)

    def keep(self, arms):
        self.drops += len(self.alive) - len(arms)
        self.alive = arms

    def ranked(self):
        return sorted(self.alive, key=lambda j: -self.sums[j])

    def z(self, rows, j):
        return self.l[rows, self.rival[j]] - self.l[rows, j]

    def bet(self, j, leader, runner_up):
        """Choose rival and λ; False if the rows not yet seen cannot make j the best."""
        rival, taken = runner_up if j == leader else leader, len(self.rows)
        has_met, self.rival[j] = self.rival[j] is not None, rival
        if not has_met:
            z = self.z(self.fresh, j)
            self.squares[j] = np.sum((z - z.mean()) ** 2)
        mean, rest = (self.sums[rival] - self.sums[j]) / taken, self.size - taken
        self.ceiling[j] = eta = -mean * taken / rest
        lowest = self.low[rival] - self.high[j]
        if eta < lowest:
            return False
        gain = max(mean - eta, 0.0)
        spread = self.squares[j] / taken + gain**2
        error = spread * self.size / (taken * rest)
        kelly = gain**3 / (spread * (gain**2 + CAUTION * error)) if gain > 0.0 else 0.0
        self.stake[j] = min(kelly, MOST_AT_STAKE / (eta - lowest))
        return True


def follow_betting(rewards, delta, reference_delta, seeds):
    """Check that arms leave the race when, and only when, the reference's wealth says so."""
    dropped = decided = 0
    for seed in seeds:
        offset = seeded(seed).gumbel(size=rewards.shape[1])
        outcome, calls = follow(gr.Betting(delta), rewards, offset, seed)
        wealth, scanned = Wealth(rewards, offset, reference_delta), False
        for look, (index, asked) in enumerate(calls):
            assert asked == wealth.alive
            scanned = scanned or look >= outcome.looks
            if not scanned:
                assert wealth.is_look(index)
                wealth.look(index)
        assert outcome.exhausted == (len(wealth.alive) > 1)
        best = max(wealth.alive, key=lambda j: rewards[:, j].sum() + offset[j])
        assert outcome.arm == best
        dropped, decided = dropped + wealth.drops, decided + (not scanned)
    return dropped, decided


@pytest.mark.parametrize(("size", "spread"), [(300, 0.5), (20_000, 2.0)])
def test_betting_drops_an_arm_when_its_wealth_reaches_one_over_delta(size, spread):
    dropped, decided = follow_betting(rewards_of(size, 6, spread), 0.05, 0.05, range(30))
    assert dropped > 50
    assert decided > 3


def test_another_target_is_not_this_betting():
    """A negative control: a reference that waits for 2/δ keeps arms that the race drops."""
    with pytest.raises(AssertionError):
        follow_betting(rewards_of(20_000), 0.05, 0.025, range(30))
