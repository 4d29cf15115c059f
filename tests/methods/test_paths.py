"""Different ways to the same answer: populations of one set of numbers, and plain Python references."""

from itertools import pairwise

import numba
import numpy as np
import pytest
from tests.common import seeded

import gumbelrace as gr
from gumbelrace.methods.betting import CAUTION, MOST_AT_STAKE
from gumbelrace.methods.reading import KEPT

METHODS = [
    gr.Exact(),
    gr.Betting(0.01),
    gr.Race(delta=0.01),
    gr.Race(delta=0.01, variance=gr.methods.Marginal()),
    gr.Race(gr.methods.Serfling(), delta=0.01),
    gr.Race(gr.methods.Serfling(), delta=0.01, variance=gr.methods.Marginal()),
    gr.LilUCB(0.01),
]


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

    return gr.factors(log_factors, *rewards.shape, reward_range=(rewards.min(axis=0), rewards.max(axis=0)))


def compiled(rewards):
    bounds = (rewards.min(axis=0), rewards.max(axis=0))
    return gr.compiled(entry, (rewards,), *rewards.shape, reward_range=bounds)


@pytest.mark.parametrize("size", [300, 20_000])
@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_populations_of_the_same_numbers_agree(method, size, tmp_path):
    rewards = rewards_of(size)
    np.save(tmp_path / "x.npy", rewards)
    # A table in memory of many rows is read in blocks of an order of its own.
    table = gr.table(rewards if size == 300 else np.load(tmp_path / "x.npy", mmap_mode="r"))
    table.scan_speed = 1.0  # a table would turn to an exact scan earlier, which is faster there
    count = (10 if size == 300 else 1) if isinstance(method, gr.LilUCB) else 40
    draws = [
        gr.sample(population, size=count, method=method, rng=seeded(1))
        for population in (table, compiled(rewards), factors(rewards))
    ]
    for name in ("arms", "evaluations", "looks", "exhausted"):
        np.testing.assert_array_equal(getattr(draws[0], name), getattr(draws[1], name))
        np.testing.assert_array_equal(getattr(draws[1], name), getattr(draws[2], name))


@pytest.mark.parametrize("method", METHODS[:-1], ids=repr)
def test_memory_map_agrees_with_factors(method, tmp_path):
    """Both read single rows of 300 by their number."""
    rewards = rewards_of(300)
    np.save(tmp_path / "x.npy", rewards)
    mapped = gr.table(np.load(tmp_path / "x.npy", mmap_mode="r"))
    draws = [gr.sample(p, size=40, method=method, rng=seeded(2)) for p in (mapped, factors(rewards))]
    np.testing.assert_array_equal(draws[0].arms, draws[1].arms)


def test_lilucb_agrees_on_arms_with_rows_of_their_own():
    rewards = rewards_of(300)
    bounds = (rewards.min(axis=0), rewards.max(axis=0))
    own = gr.independent(lambda index, arm: rewards[index, arm], [300] * 6, reward_range=bounds)
    draws = [gr.sample(p, size=20, method=gr.LilUCB(), rng=seeded(3)) for p in (own, compiled(rewards))]
    for name in ("arms", "evaluations", "looks", "exhausted"):
        np.testing.assert_array_equal(getattr(draws[0], name), getattr(draws[1], name))


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_one_batch_is_draw_after_draw(method):
    """The Gumbel variables of a batch come first; with them given, draws follow one another."""
    population, offsets = gr.table(rewards_of(300)), seeded(4).gumbel(size=(20, 6))
    found = method.best_each(population, offsets, seeded(5))
    rng = seeded(5)
    for draw, offset in enumerate(offsets):
        outcome = method.best(population, offset, rng)
        expected = (found.arms[draw], found.evaluations[draw], found.looks[draw], found.exhausted[draw])
        assert (outcome.arm, outcome.evaluations, outcome.looks, outcome.exhausted) == expected


def follow(method, rewards, offset, seed):
    """Run a method; return the outcome and, for each call of the function, its rows and its arms."""
    seen = []
    outcome = method.best(factors(rewards, seen), offset, seeded(seed))
    return outcome, [(index.tolist(), arms.tolist()) for index, arms in seen]


class Algorithm1:
    """Racing-Normal in plain Python, on the rows and arms that a method asked for in its looks."""

    def __init__(self, rewards, offset, delta, paired, first=50):
        self.rewards, self.offset, self.paired = rewards, offset, paired
        self.arms, self.next = list(range(rewards.shape[1])), first
        self.rows, self.leaders, self.dropped = [], [], 0
        self.level = gr.methods.b_normal(delta / (len(self.arms) - paired), first / len(rewards))

    def judge(self, asked, kept=True):
        """Check the arms still asked for against those that the bound leaves.

        Without the rows of earlier looks a race may keep an arm too long, but never drop one too early.
        """
        l, taken, size = self.rewards[self.rows], len(self.rows), len(self.rewards)
        mean = l.mean(axis=0) + self.offset / size
        x = max(self.arms, key=lambda i: mean[i])
        shrink = self.level / np.sqrt(taken) * np.sqrt(1.0 - (taken - 1) / (size - 1))
        if self.paired:
            bound = [shrink * np.std(l[:, x] - l[:, i]) for i in range(l.shape[1])]
        else:
            bound = [shrink * np.std(l[:, x]) + shrink * np.std(l[:, i]) for i in range(l.shape[1])]
        left = [i for i in self.arms if i == x or not mean[x] - mean[i] > bound[i]]
        assert asked == left or (not kept and set(left) < set(asked))
        self.dropped += len(self.arms) - len(asked)
        self.arms, self.leaders = asked, [*self.leaders, x]

    def follow(self, calls, outcome):
        """Take the calls of each look together; a look may be more than one call."""
        for index, asked in calls:
            if len(self.rows) == self.next:
                self.judge(asked, kept=self.next <= KEPT)
                self.next *= 2
            if len(self.leaders) == outcome.looks:
                break  # the scan of all remaining rows
            assert asked == self.arms
            self.rows += index
        if not outcome.exhausted:
            self.judge([outcome.arm], kept=self.next <= KEPT)
        assert len(self.leaders) == outcome.looks
        values = self.rewards.sum(axis=0) + self.offset
        assert outcome.arm == max(self.arms, key=lambda i: values[i])
        return self

    @property
    def lead_came_back(self):
        """Whether an arm led, lost the lead to another and led again."""
        changes = [b for a, b in pairwise([None, *self.leaders]) if a != b]
        return len(changes) > len(set(changes))


def follow_races(rewards, variance, reference_delta, seeds):
    """Run races beside the reference; return each reference and whether all rows were scanned."""
    for seed in seeds:
        offset = seeded(seed).gumbel(size=6)
        race = gr.Race(gr.methods.Normal(student=False), variance=variance)  # the paper's own bound
        outcome, calls = follow(race, rewards, offset, seed)
        reference = Algorithm1(rewards, offset, reference_delta, variance.paired)
        yield reference.follow(calls, outcome), outcome.exhausted


@pytest.mark.parametrize("size", [300, 20_000])
@pytest.mark.parametrize("variance", [gr.methods.Paired(), gr.methods.Marginal()], ids=repr)
def test_race_is_algorithm_1(variance, size):
    races = list(follow_races(rewards_of(size, spread=0.7), variance, 0.05, range(60)))
    assert sum(race.dropped for race, _ in races) > 100
    assert sum(not scanned for _, scanned in races) > 5
    assert any(race.lead_came_back for race, _ in races)


@pytest.mark.parametrize("variance", [gr.methods.Paired(), gr.methods.Marginal()], ids=repr)
def test_race_without_its_earlier_rows_drops_no_arm_too_early(variance):
    """Looks at up to 102,400 rows, of which the first KEPT are kept; the lead changes after that."""
    rewards = rewards_of(200_000, spread=1.4)
    races = [race for race, _ in follow_races(rewards, variance, 0.05, range(16))]
    late = [race.leaders[int(np.log2(KEPT / 50)) :] for race in races]
    assert any(len(set(leaders)) > 1 for leaders in late)
    assert sum(race.dropped for race in races) > 10


def test_another_delta_is_not_algorithm_1():
    """A negative control: the reference at half the δ keeps arms that the race drops."""
    with pytest.raises(AssertionError):
        list(follow_races(rewards_of(20_000, spread=0.7), gr.methods.Paired(), 0.025, range(60)))


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
                self.squares[j] += self.deviations(index, j)
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

    def deviations(self, rows, j):
        return np.sum((self.z(rows, j) - self.z(rows, j).mean()) ** 2)

    def bet(self, j, leader, runner_up):
        """Choose rival and λ; False if the rows not yet seen cannot make j the best."""
        rival, taken = runner_up if j == leader else leader, len(self.rows)
        has_met, self.rival[j] = self.rival[j] is not None, rival
        if not has_met:
            self.squares[j] = self.deviations(self.fresh, j)
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
