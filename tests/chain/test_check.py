"""Checks at the end of a run: what they find, what they cost, and that they change nothing."""

import warnings

import numba
import numpy as np
import pytest
from tests.chain.kernels import MIXED, Choice, Raced, Walk, assert_same
from tests.chain.test_trace import Guess
from tests.common import seeded

import gumbelrace as gr
from gumbelrace.errors import InvalidArgument, PromiseBroken
from gumbelrace.methods.default import Default

RACED = Raced()


@numba.njit
def squared(n, theta, y):
    return -0.5 * (y[n] - theta[0]) ** 2


def run(kernel=RACED, steps=400, **options):
    return gr.run(kernel, Choice(0), steps=steps, rng=seeded(1), chains=2, progress=False, **options)


def test_a_sound_method_is_checked_without_a_word():
    trace = run()
    checks = int(0.02 * np.sum(trace.info.evaluations) / 1000)  # a step decides once, over 1,000 rewards
    assert trace.checked.draws == checks > 0
    assert not trace.checked.broken
    assert not trace.checked.bias


def test_a_guess_is_found_out():
    """Wrong half of the time: 50 checks find more than δ = 0.05 allows but once in 10^9 seeds."""
    with pytest.warns(PromiseBroken, match="promise of 0.05 broken"):
        trace = run(Raced(Guess()), check=50)
    assert trace.checked.draws == 50


def test_checks_change_no_draw(tmp_path):
    rng, other = seeded(1), seeded(1)
    options = {"kernel": Raced(), "state": Choice(0), "steps": 300, "progress": False}
    assert_same(gr.run(rng=rng, check=0, **options), gr.run(rng=other, check=100, **options))
    assert rng.spawn(1)[0].random() == other.spawn(1)[0].random()


def test_a_resumed_run_has_the_same_checks(tmp_path):
    whole = run()
    run(steps=150, checkpoint=tmp_path / "half")
    assert run(checkpoint=tmp_path / "half").checked == whole.checked


@pytest.mark.parametrize("options", [{"check": 0}, {"kernel": Raced(gr.Exact())}, {"steps": 0}])
def test_nothing_to_check(options):
    assert run(**options).checked is None


def test_a_kernel_without_a_method_is_not_checked():
    assert gr.run(Walk(), MIXED, steps=20, rng=seeded(), progress=False).checked is None


def test_few_steps_are_not_checked():
    """One check would read more than a tenth of what they have read."""
    assert run(steps=2).checked is None


def test_no_more_checks_than_draws():
    assert run(steps=3, check=100).checked.draws == 6


class Failing(Raced):
    def audit(self, rng, state):
        raise ZeroDivisionError("row 17")


def test_a_check_that_fails_does_not_lose_the_draws():
    with pytest.warns(PromiseBroken, match="could not be checked exactly: row 17"):
        trace = run(Failing(), check=3)
    assert trace.draws == 400
    assert trace.checked is None


@pytest.mark.parametrize("check", [-1, 1.5, "all"])
def test_check_is_a_count(check):
    with pytest.raises(InvalidArgument, match="check"):
        run(check=check)


@pytest.mark.parametrize(("reward_range", "delta"), [(None, 1e-5), ((-20.0, 0.0), 1e-3)])
def test_errors_are_compared_with_what_was_promised_of_these_decisions(reward_range, delta):
    """Races decide at another δ where no range is known: two errors in 100 are too many there."""
    y = seeded(3).normal(size=300)
    likelihood = gr.likelihood(squared, (y,), 300, reward_range=reward_range)
    kernel = gr.Metropolis(likelihood, gr.kernels.RandomWalk(0.1), method=Default())
    trace = gr.run(
        kernel, gr.kernels.Position(np.zeros(1)), steps=200, rng=seeded(4), progress=False, check=20
    )
    assert trace.checked.promise.delta == delta
    assert trace.audit(0.1, rng=seeded(5)).promise.delta == delta


def test_a_law_that_is_far_off_by_what_was_read_is_warned_of():
    """One row in fifty carries the sums, and has no weight; the same rows alike give no warning."""
    y = np.where(np.arange(3000) % 50 == 0, 40.0, 0.0)
    with pytest.warns(PromiseBroken, match="a few rows carry the sums"):
        trace = skewed_chain(y)
    assert trace.law_error > 0.03
    with warnings.catch_warnings():
        warnings.simplefilter("error", PromiseBroken)
        skewed_chain(seeded(6).normal(size=3000))


def skewed_chain(y):
    kernel = gr.Metropolis(gr.likelihood(squared, (y,), len(y)), gr.kernels.RandomWalk(0.03))
    start = gr.kernels.Position(np.array([y.mean()]))
    return gr.run(kernel, start, steps=200, rng=seeded(4), progress=False, check=0)
