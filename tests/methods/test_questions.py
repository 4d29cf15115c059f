"""What is asked, and the noise that answers it: laws against their formulas, every path the same."""

import numba
import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

import gumbelrace as gr
from gumbelrace.auditing import Audited
from gumbelrace.core.random import bits_of
from gumbelrace.methods.base import Asked
from gumbelrace.methods.loop import answer_each
from gumbelrace.methods.state import Question, new_results, put_noise

# A false alarm once in 10,000 seeds.
ALARM = 1e-4
VALUES = np.array([0.3, -0.4, 1.1, 0.0])


def answers(asked, offsets, method=None, seed=1):
    population = gr.table(np.zeros((50, offsets.shape[1])))
    rng = np.random.default_rng(seed)
    return (method or gr.Exact()).answer_each(asked, population, offsets, rng).arms


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("wrong", [False, True])
def test_draws_have_their_probabilities(temperature, wrong):
    """Chi-square against exp(value / T), and (negative control) against another temperature."""
    arms = answers(Asked(Question.DRAW, temperature), np.tile(VALUES, (20_000, 1)))
    weights = np.exp(VALUES / (temperature * (1.2 if wrong else 1.0)))
    expected = 20_000 * weights / weights.sum()
    assert (stats.chisquare(np.bincount(arms, minlength=4), expected).pvalue > ALARM) != wrong


@pytest.mark.parametrize("gap", [-1.0, -0.1, 0.0, 0.7])
def test_moves_are_accepted_with_the_probability_of_metropolis_and_hastings(gap):
    arms = answers(Asked(Question.ACCEPT), np.tile([0.0, gap], (20_000, 1)))
    chance = min(1.0, np.exp(gap))
    assert arms.all() if chance == 1.0 else stats.binomtest(int(arms.sum()), 20_000, chance).pvalue > ALARM


@pytest.mark.parametrize("method", [gr.Exact(), gr.Betting(), gr.Race(first=8), gr.LilUCB()], ids=str)
def test_plans_that_compiled_code_follows_have_noise_of_their_own(method):
    """The same laws where a plan answers; a method that is asked for winners instead accepts none."""
    population = gr.table(np.zeros((50, 2)))
    for asked, chance in ((Asked(Question.ACCEPT), np.exp(-0.7)), (Asked(Question.DRAW), expit(-0.7))):
        found = new_results(4000)
        with method.plan(asked, population, np.random.default_rng(2)) as plan:
            answer_each(plan, np.tile([0.0, -0.7], (4000, 1)), found)
        assert stats.binomtest(int(found.arms.sum()), 4000, chance).pvalue > ALARM


@pytest.mark.parametrize("method", [gr.LilUCB(), gr.Betting(), gr.Race(gr.methods.Serfling())], ids=str)
def test_a_range_that_is_not_known_is_missed_on_the_compiled_path_too(method):
    likelihood = gr.likelihood(log_factor, (np.zeros(100),), 100)
    kernel = gr.Metropolis(likelihood, gr.kernels.RandomWalk(0.1), method=method)
    with pytest.raises(gr.errors.UnknownRange, match="needs to know how large"):
        kernel.step(np.random.default_rng(0), kernel.start([0.0]))


def test_a_method_for_another_question_is_named():
    likelihood = gr.likelihood(log_factor, (np.zeros(100),), 100)
    with pytest.raises(gr.errors.InvalidArgument, match=r"use Penalty\(\), Betting"):
        gr.Metropolis(likelihood, gr.kernels.RandomWalk(0.1), method=gr.Absorb())
    with pytest.raises(gr.errors.InvalidArgument, match=r"use Absorb\(\), Betting"):
        gr.sample(np.eye(5), method=gr.Penalty(), rng=0)
    with pytest.raises(gr.errors.InvalidArgument, match=r"use Betting"):
        gr.best(np.eye(5), method=gr.Penalty(), rng=0)


def test_at_temperature_zero_the_best_is_drawn_without_noise():
    offsets = np.tile(VALUES, (5, 1))
    assert np.array_equal(answers(Asked(Question.DRAW, 0.0), offsets), [2] * 5)
    assert np.array_equal(offsets, np.tile(VALUES, (5, 1)))


def test_what_is_impossible_stays_so():
    offsets = np.array([[-np.inf, 0.0]] * 200)
    assert answers(Asked(Question.DRAW), offsets).all()
    assert not answers(Asked(Question.ACCEPT), offsets[:, ::-1].copy()).any()


def test_all_methods_have_the_same_noise():
    rewards = np.random.default_rng(3).normal(size=(300, 4))
    offsets = [np.zeros((30, 4)) for _ in range(3)]
    for method, mine in zip((gr.Exact(), gr.Betting(), gr.LilUCB()), offsets, strict=True):
        method.answer_each(Asked(Question.DRAW), gr.table(rewards), mine, np.random.default_rng(4))
    assert np.array_equal(offsets[0], offsets[1])
    assert np.array_equal(offsets[0], offsets[2])


@numba.njit
def log_factor(n, theta, y):
    return -0.5 * (y[n] - theta[0]) ** 2


def test_an_audit_checks_the_path_that_makes_the_chain():
    """A careless race errs; compiled steps under audit count it, and go where they would have gone."""
    y = np.random.default_rng(5).normal(0.0, 1.0, 2000)
    kernel = gr.Metropolis(
        gr.likelihood(log_factor, (y,), 2000), gr.kernels.RandomWalk(0.05), method=gr.Race(delta=0.5)
    )
    state = gr.kernels.Position(np.zeros(1))
    audited = Audited(kernel.method)
    assert kernel.with_method(audited).is_compiled
    checked = kernel.with_method(audited).steps(np.random.default_rng(6), state, 400)
    plain = kernel.steps(np.random.default_rng(6), state, 400)
    assert np.array_equal(checked.states.position, plain.states.position)
    assert audited.decisions == 400
    assert audited.errors > 20
    never_wrong = Audited(gr.Exact())
    kernel.with_method(never_wrong).steps(np.random.default_rng(6), state, 400)
    assert never_wrong.errors == 0


def test_noise_of_many_draws_is_that_of_one_after_the_other():
    many, single = np.zeros((10, 3)), np.zeros((10, 3))
    put_noise(Question.DRAW, 1.0, many, bits_of(rng := np.random.default_rng(7)))
    rng = np.random.default_rng(7)
    for row in single:
        put_noise(Question.DRAW, 1.0, row[None], bits_of(rng))
    assert np.array_equal(many, single)
