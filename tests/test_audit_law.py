"""Audits of methods that fix no winner: what they measure, and that what is wrong is seen."""

import math
from dataclasses import dataclass

import numba
import numpy as np
import pytest
from tests.chain.test_bias import problem
from tests.common import seeded
from tests.methods.residuals import rare_dummy
from tests.methods.test_thinning import HalfDeaf

import gumbelrace as gr
from gumbelrace.core.random import bits_of
from gumbelrace.errors import InvalidArgument, PromiseBroken
from gumbelrace.methods.base import Asked
from gumbelrace.methods.state import Question, new_results, put_noise
from gumbelrace.verdict import Shift, chance_within, chi_square, judged_law

REWARDS = np.random.default_rng(1).normal(size=(400, 4), scale=0.03)


@dataclass(frozen=True)
class Drawing(gr.Method):
    """Draws exactly, or from a law in which the first arm is likelier, and fixes no winner."""

    tilt: float = 0.0
    answers = frozenset({Question.DRAW})
    promise = gr.Promise(0.01, about="law")
    has_plan = False

    def rule(self, population):
        raise NotImplementedError

    def answer_each(self, asked, population, offsets, rng):
        tilted = offsets + self.tilt * (np.arange(population.arms) == 0)
        put_noise(Question.DRAW, asked.temperature, tilted, bits_of(rng))
        return gr.Exact().best_each(population, tilted, rng)


@dataclass(frozen=True)
class Moving(gr.Method):
    """Accepts by the exact log ratio and noise of variance 1: with the penalty for it, or without."""

    penalty: float = 0.5
    answers = frozenset({Question.ACCEPT})
    promise = gr.Promise(0.001)
    has_plan = False

    def rule(self, population):
        raise NotImplementedError

    def answer_each(self, asked, population, offsets, rng):
        sums = population.rewards_at(np.arange(population.size)).sum(axis=0)
        ratio = (sums[1] - sums[0]) + offsets[:, 1] - offsets[:, 0] + rng.normal(size=len(offsets))
        found = new_results(len(offsets))
        found.arms[:] = np.log(rng.random(len(offsets))) < ratio - self.penalty
        found.evaluations[:] = 1
        return found


def test_the_law_of_draws_is_compared():
    """20,000 exact draws: p below 1e-4 once in 10,000 seeds; total variation within its interval."""
    report = gr.audit(REWARDS, Drawing(), draws=20_000, rng=seeded(2))
    assert (report.law.of, report.law.answers, report.draws) == ("draws", 20_000, 0)
    assert report.law.p_value > 1e-4
    assert report.law.interval[0] == 0.0
    assert not report.broken
    assert "law of draws off by" in str(report)
    assert report.tv_bound == report.law.interval[1]


def test_a_wrong_law_of_draws_is_seen():
    """Oracle: the total variation of the tilted law. Negative control of the test above."""
    report = gr.audit(REWARDS, Drawing(0.5), draws=20_000, rng=seeded(2))
    p, q = (np.exp(v - np.logaddexp.reduce(v)) for v in (REWARDS.sum(axis=0) + t for t in (0.0, TILT)))
    low, high = report.law.interval
    assert low <= 0.5 * np.abs(p - q).sum() <= high
    assert report.law.p_value < 1e-9
    assert report.broken


TILT = np.array([0.5, 0.0, 0.0, 0.0])


def test_the_interval_of_a_total_variation_covers():
    """2,000 samples of 500 draws, level 0.9: the tail of the binomial law at 1e-4 allows 254 misses."""
    chances, drawn = np.array([0.5, 0.3, 0.2]), np.array([0.45, 0.3, 0.25])
    counts = seeded(3).multinomial(500, drawn, size=2000)
    intervals = [judged_law(count, chances, 0.9, 0.0).interval for count in counts]
    assert sum(not low <= 0.05 <= high for low, high in intervals) <= 254


@pytest.mark.parametrize(("counts", "p"), [([50, 50, 0], 1.0), ([50, 49, 1], 0.0), ([80, 20, 0], 2e-9)])
def test_chi_square(counts, p):
    found = chi_square(np.array(counts), np.array([0.5, 0.5, 0.0]))
    assert found == pytest.approx(p, rel=0.05)


@pytest.mark.parametrize("chances", [[1.0 - 3e-4, 3e-4], [0.98, 0.02], [0.5, 0.494, *[0.0015] * 4]])
def test_rare_arms_raise_no_false_alarm(chances):
    """4,000 samples of 1,000 draws: p < 0.01 in 63 at most, but once in 10,000 seeds."""
    counts = seeded(6).multinomial(1000, chances, size=4000)
    p_values = np.array([chi_square(count, np.array(chances)) for count in counts])
    assert np.sum(p_values < 0.01) <= 63


def test_the_chance_of_draws_under_all_laws_within_a_promise():
    """Oracle: binomial sums. The most surprising is that the first arm was drawn 7 times or more of 8."""
    most = 0.2 + 0.05
    tail = 8 * most**7 * (1.0 - most) + most**8
    found = chance_within(np.array([7, 1, 0]), np.array([0.2, 0.3, 0.5]), 0.05)
    assert found == pytest.approx(2 * 3 * tail, rel=1e-9)


def test_draws_that_are_next_to_impossible_break_a_promise():
    """An arm of chance 1e-4 was drawn 30 times in 1,000: the interval allows it, and nothing else does."""
    chances, counts = np.array([0.9999, 1e-4]), np.array([970, 30])
    wide, allowed = (
        judged_law(counts, chances, 0.998, 0.0, 1e-3),
        judged_law(counts, chances, 0.998, 0.0, 0.02),
    )
    assert wide.interval[0] < 1e-3
    assert wide.breaks(1e-3)
    assert not allowed.breaks(0.02)


def test_words_of_what_is_unsure():
    """Few answers contradict nothing, and prove nothing; many do."""
    few, many = (judged_law(np.array([n, n]), np.array([0.5, 0.5]), 0.95, 0.0) for n in (10, 10_000_000))
    nothing = 0, 0, (0.0, 1.0), 0.95, 0.1, gr.Promise(0.001)
    assert "promise of 0.001 not contradicted" in str(gr.Audit(*nothing, law=few))
    assert "promise of 0.001 kept" in str(gr.Audit(*nothing, law=many))
    assert str(gr.Audit(*nothing)).startswith("no decision was checked")
    shifts = [Shift("x", "mean", 0.5, 0.01), Shift("x", "variance", math.inf, math.inf)]
    broken = gr.Audit(9, 10, (0.5, 1.0), 0.95, 0.1, gr.Promise(0.05), bias=shifts)
    assert "broken, and the chain is biased: mean of x +0.5 ± 0.01 sd, variance of x unknown" in str(broken)


@numba.njit
def log_factor(n, theta, x, y):
    return y[n] * x[n] * theta[0] - np.log1p(np.exp(x[n] * theta[0]))


def moved(method, steps=20_000):
    """Give a trace on the slope of a logistic regression, and its positions standardised."""
    data, mean, sd = problem()
    likelihood = gr.likelihood(log_factor, data, 200)
    kernel = gr.Metropolis(likelihood, gr.kernels.RandomWalk(2.4 * sd), method=method)
    start = gr.kernels.Position(np.array([mean]))
    trace = gr.run(kernel, start, steps=steps, rng=seeded(1), progress=False, check=0)
    return trace, (trace["position"][..., 0] - mean) / sd


def test_moves_that_keep_detailed_balance_pass():
    """Noise of variance 1 and its penalty: exact. p below 1e-4 once in 10,000 seeds."""
    report = moved(Moving(), 1000)[0].audit(0.2, rng=seeded(2))
    assert report.law.of == "moves"
    assert report.law.states == 200
    assert report.law.p_value > 1e-4
    assert not report.broken
    assert all(abs(shift.value) < 4.0 * shift.error for shift in report.bias)


def test_moves_without_the_penalty_are_seen():
    """Deliberately wrong. Oracle: quadrature; the shift of the variance within 30% and four errors."""
    trace, z = moved(Moving(0.0), 4000)
    report = trace.audit(0.1, rng=seeded(2))
    assert report.law.p_value < 1e-6
    assert report.law.interval[0] > 0.001
    assert report.broken
    variance, truth = report.bias[1], z.var() - 1.0
    assert abs(variance.value - truth) < 0.3 * truth + 4.0 * variance.error
    assert variance.value > 4.0 * variance.error


def test_too_few_rows_are_seen_and_the_default_is_not():
    """Uniform rows miss the few that matter: the chain looks well, and the audit does not."""
    reports = []
    for by_weights in (True, False):
        regression = rare_dummy()
        kernel = regression.kernel(gr.Penalty(), by_weights)
        start = gr.kernels.Position(regression.mode)
        trace = gr.run(kernel, start, steps=2000, rng=seeded(4), progress=False, check=0)
        reports.append(trace.audit(0.02, rng=seeded(5)))
    right, blind = reports
    assert right.law.p_value > 1e-4
    assert not right.broken
    assert blind.law.p_value < 1e-6
    assert "detailed balance off by" in str(right)


def test_a_run_warns_of_a_law_that_is_off():
    kernel = moved(Careless(), 10)[0].kernel
    with pytest.warns(PromiseBroken, match="use Exact"):
        trace = gr.run(kernel, kernel.start([1.0]), steps=50, rng=seeded(6), progress=False, check=50)
    assert trace.checked.broken


class Careless(Moving):
    """Accepts whenever the slope grows."""

    def answer_each(self, asked, population, offsets, rng):
        found = new_results(len(offsets))
        found.arms[:] = population._data[0][1, 0] > population._data[0][0, 0]
        found.evaluations[:] = 1
        return found


def tempered(points):
    """Give log factors of a mean, so flat that few of the rows ring."""
    return gr.table(-0.005 * (Y[:, None] - np.asarray(points)[:, 0]) ** 2)


Y = np.random.default_rng(4).normal(size=300)


@pytest.mark.parametrize(("method", "is_right"), [(gr.Thinning(), True), (HalfDeaf(), False)])
def test_moves_of_a_method_that_can_also_draw_are_compared_as_moves(method, is_right):
    """Thinning accepts less often than a draw of the two points would. False alarms: 1 in 1,000 seeds."""
    kernel = gr.Metropolis(tempered, gr.kernels.RandomWalk(1.0), method=method)
    trace = gr.run(kernel, kernel.start([0.0]), steps=200, rng=seeded(1), progress=False)
    report = trace.audit(0.2, rng=seeded(2), confidence=0.999)
    assert (report.law.of, report.law.states) == ("moves", 40)
    assert report.broken != is_right
    assert len(report.bias) == 2


def test_draws_without_noise_are_right_or_wrong():
    """At temperature 0 there is no law to compare: the best label, or an error."""

    def conditional(labels, variable):
        return gr.table(REWARDS), None

    for method, errors in ((gr.Absorb(), 0), (Drawing(-100.0), 6)):
        cold = gr.Gibbs(conditional, variables=3, annealing=gr.kernels.Constant(0.0), method=method)
        trace = gr.run(cold, cold.start([0, 1, 2]), steps=20, rng=1, progress=False, check=0)
        report = trace.audit(0.1, rng=2)
        assert (report.errors, report.draws, report.law) == (errors, 6, None)


def test_a_kernel_without_a_likelihood_is_refused():
    @dataclass(frozen=True)
    class Bare(gr.Kernel):
        method: gr.Method

        def step(self, rng, state):
            self.method.answer(Asked(Question.ACCEPT), gr.table(REWARDS[:, :2]), None, rng)
            return state, gr.kernels.Info(0, 0, 0, 0.0)

    with pytest.raises(InvalidArgument, match="no field `likelihood`"):
        Bare(gr.Penalty()).audit(seeded(), gr.kernels.Position(np.zeros(1)))


def test_moves_of_models_by_penalty():
    """Carlin and Chib: the moves are left to Penalty, the model is drawn by a race, which is audited."""
    y = np.random.default_rng(2).normal(0.12, 1.0, 1000)

    def likelihood(points):
        return gr.table(-0.5 * (y[:, None] - np.array(points)[:, 0]) ** 2)

    def candidate(scale):
        def log_prior(x):
            return -0.5 * (x[0] / scale) ** 2 - math.log(scale * math.sqrt(2.0 * math.pi))

        variance = 1.0 / (1000 + scale**-2)
        law = gr.kernels.NormalPseudoprior([variance * y.sum()], [[variance]])
        walk = gr.Metropolis(
            likelihood, gr.kernels.RandomWalk(0.07), log_prior=log_prior, method=gr.Penalty()
        )
        return gr.kernels.Candidate(walk, law, log_prior)

    candidates = [candidate(0.1), candidate(0.5)]
    log_evidence = [c.log_prior(np.zeros(1)) - c.pseudoprior.log_density(np.zeros(1)) for c in candidates]
    right = 1.0 / (1.0 + math.exp(log_evidence[0] - log_evidence[1]))
    kernel = gr.CarlinChib(candidates, likelihood, method=gr.Race(delta=1e-3))
    trace = gr.run(kernel, steps=1500, rng=seeded(7), progress=False, check=5)
    share = trace["model"].mean()
    assert abs(share - right) < 4.0 * math.sqrt(3.0 * right * (1.0 - right) / 1500)
    assert trace.checked.draws == 5
    with pytest.raises(InvalidArgument, match="this needs a draw"):
        gr.CarlinChib(candidates, likelihood, method=gr.Penalty())


def test_draws_that_are_right_in_law_are_checked_by_their_frequencies():
    """False-alarm rate 0.002, seed 5; the negative control has one arm e times too likely."""
    draws = gr.sample(REWARDS, size=4000, method=gr.Absorb(), rng=5)
    assert draws.checked.law.answers == 4000
    assert not draws.checked.broken
    with pytest.warns(PromiseBroken, match="law of draws off"):
        tilted = gr.sample(REWARDS, size=4000, method=Drawing(1.0), rng=5, check=True)
    assert tilted.checked.broken
