"""Draws have the law p(x) ∝ f0(x) ∏ f_n(x): chi-square tests against exact probabilities.

The law q of a draw may be off by a total variation of δ (Proposition 1). That adds at most
n Σ (q - p)²/p ≤ n δ² (1/p_a + 1/p_b) to the mean of the statistic of n draws, a and b the rarest states:
0.8 for δ = 0.001 and n = 20,000. So the statistic is compared with the noncentral chi-square law of that
slack, and a check fails if its tail is below 1e-4: for correct code this often over seeds, or less.

Draws of one shuffle share its luck; the test with `reshuffle_every` has draws of 40 shuffles.
"""

import numba
import numpy as np
import pytest
from scipy.special import chndtr
from tests.rewards import factors, uniform

import gumbelrace as gr
from gumbelrace.applications.demo import normalised

FALSE_ALARM = 1e-4
SIZE, ARMS, DELTA, IMPOSSIBLE = 100_000, 10, 0.001, 3
DRAWS = 20_000


@pytest.fixture(scope="module")
def problem():
    """Give rewards, a log prior that rules one state out, and exact p: the others lie in [0.04, 0.22]."""
    rng = np.random.default_rng(20160619)
    prior = rng.normal(size=ARMS)
    log_p = rng.permutation(np.linspace(0.0, 1.5, ARMS))
    rewards = normalised(uniform(rng, SIZE, ARMS), log_p - prior, 5e-5)
    prior[IMPOSSIBLE] = -np.inf
    p = np.exp(prior + rewards.sum(axis=0))
    return rewards, prior, p / p.sum()


@numba.njit
def entry(n, arm, rewards):
    return rewards[n, arm]


def compiled(rewards):
    bounds = rewards.min(axis=0), rewards.max(axis=0)
    return gr.compiled(entry, (rewards,), *rewards.shape, reward_range=bounds)


def tail(arms, p, delta=DELTA):
    """Probability of a chi-square as large, if the law is p but for a total variation of `delta`."""
    counts, expected = np.bincount(arms, minlength=ARMS), len(arms) * p
    assert counts[IMPOSSIBLE] == 0
    possible = p > 0.0
    rarest = np.sort(p[possible])[:2]
    slack = len(arms) * delta**2 * np.sum(1.0 / rarest)
    statistic = np.sum((counts - expected)[possible] ** 2 / expected[possible])
    return 1.0 - chndtr(statistic, possible.sum() - 1, slack)


def test_default_draws_have_the_right_law(problem):
    """Claim: the default method draws from p. Oracle: exact p; seed 1; false-alarm rate 1e-4.

    It promises a total variation of 0.05, with which any law near p passes. Betting does far better: here
    0.001 of its draws differ from exact ones, and 0.005 are allowed.
    """
    rewards, prior, p = problem
    draws = gr.sample(gr.table(rewards), prior, DRAWS, rng=np.random.default_rng(1))
    assert draws.tv_bound.proved
    assert draws.fraction < 0.1
    assert tail(draws.arms, p, delta=0.005) > FALSE_ALARM


@pytest.mark.parametrize(
    ("make", "method", "count", "seed"),
    [
        (gr.table, gr.Betting(DELTA), DRAWS, 21),
        (gr.table, gr.Race(gr.methods.Normal(), DELTA), DRAWS, 22),
        (gr.table, gr.Race(gr.methods.Normal(), DELTA, variance=gr.methods.Marginal()), DRAWS, 23),
        (gr.table, gr.Exact(), 4000, 24),
        (compiled, gr.Betting(DELTA), 10_000, 25),
        (compiled, gr.Race(gr.methods.Normal(), DELTA), 10_000, 26),
        (factors, gr.Betting(DELTA), 3000, 27),
        (factors, gr.Race(gr.methods.Normal(), DELTA), 3000, 28),
    ],
    ids=lambda value: None if isinstance(value, int) else getattr(value, "__name__", type(value).__name__),
)
def test_draws_have_the_right_law(problem, make, method, count, seed):
    """Claim: draws have the law p. Oracle: exact p; seeds 21 to 28; false-alarm rate 1e-4."""
    rewards, prior, p = problem
    draws = gr.sample(make(rewards), prior, count, method=method, rng=np.random.default_rng(seed))
    assert draws.exhausted.all() == isinstance(method, gr.Exact)
    assert tail(draws.arms, p) > FALSE_ALARM


def test_reshuffling_leaves_the_law(problem):
    """Claim: with `reshuffle_every` the law is still p. Oracle: exact p; seed 3; false-alarm rate 1e-4."""
    rewards, prior, p = problem
    rng = np.random.default_rng(3)
    population, method = gr.table(rewards), gr.Betting(DELTA)
    draws = gr.sample(population, prior, DRAWS, method=method, rng=rng, reshuffle_every=500)
    assert tail(draws.arms, p) > FALSE_ALARM


@pytest.mark.parametrize("method", [gr.Betting(DELTA), gr.Exact()], ids=["betting", "exact"])
def test_a_wrong_prior_is_seen(problem, method):
    """Negative control: draws with the prior of one state a third higher fail the same check."""
    rewards, prior, p = problem
    wrong = prior.copy()
    wrong[np.argmax(p)] += np.log(4 / 3)
    draws = gr.sample(gr.table(rewards), wrong, 4000, method=method, rng=np.random.default_rng(4))
    assert tail(draws.arms, p) < FALSE_ALARM


@pytest.mark.parametrize("every", [None, 30])
@pytest.mark.parametrize("make", [gr.table, compiled, factors], ids=["table", "compiled", "factors"])
def test_a_seed_says_it_all(problem, make, every):
    """Claim: equal seeds give equal draws, from the same population and from a new one; seeds 5 and 6."""
    rewards, prior, _ = problem
    population = make(rewards)

    def draw(population, seed):
        rng = np.random.default_rng(seed)
        return gr.sample(population, prior, 100, rng=rng, reshuffle_every=every)

    first, again, new = draw(population, 5), draw(population, 5), draw(make(rewards), 5)
    for other in (again, new):
        np.testing.assert_array_equal(other.arms, first.arms)
        np.testing.assert_array_equal(other.evaluations, first.evaluations)
    assert (draw(population, 6).arms != first.arms).any()
