"""Tries of an evaluation: pauses that grow, limits of rates, and the user's pause."""

import random
import threading
import time
from email.utils import formatdate

import numpy as np
import pytest

import gumbelrace as gr
from gumbelrace.choosing import attempts
from gumbelrace.choosing.attempts import Patience, Tries, evaluated, finished, seconds_of
from gumbelrace.errors import EvaluationFailed, InvalidArgument

SCORES = (np.random.default_rng(4).random((4, 300)) < np.array([[0.4], [0.5], [0.75], [0.7]])).astype(float)


def options(**changes):
    settled = {"score_range": (0, 1), "rng": 1, "workers": 4, "progress": False, "retries": 0}
    return {"candidates": range(4), "examples": range(300), **settled, **changes}


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(attempts, "FIRST_WAIT", 0.001)


@pytest.mark.usefixtures("impatient")
def test_retries_help():
    tried, lock = {}, threading.Lock()

    def flaky(candidate, example):
        with lock:
            tried[candidate, example] = tried.get((candidate, example), 0) + 1
        if tried[candidate, example] < 3 and example % 5 == 0:
            raise TimeoutError
        return SCORES[candidate, example]

    choice = gr.choose(flaky, **options(retries=2))
    assert not choice.failures
    assert (
        choice.out_at.tolist()
        == gr.choose(lambda candidate, example: SCORES[candidate, example], **options()).out_at.tolist()
    )
    tried.clear()
    assert gr.choose(flaky, **options(retries=1)).failures


def test_pauses_grow_and_jitter():
    patience = Patience(retries=9)
    waits = [patience.wait_after(ValueError(), Tries(failed)) for failed in (0, 1, 2, 19)]
    for wait, longest in zip(waits, (0.5, 1.0, 2.0, 60.0), strict=True):
        assert longest / 2 <= wait <= longest
    assert patience.quiet == 0.0


class Limited(Exception):
    retry_after = 0.05


def test_limits_of_rates_stop_everybody_and_are_no_failures():
    until = [0.0]

    def limited(candidate, example):
        now = time.monotonic()
        if now < until[0]:
            raise AssertionError("asked during a pause")
        if example == 7 and candidate == 2 and until[0] == 0.0:
            until[0] = now + 0.04
            raise Limited
        return SCORES[candidate, example]

    choice = gr.choose(limited, **options(workers=1))
    assert choice.failures == ()
    assert until[0] > 0.0


def test_starts_after_a_limit_of_rates_are_spread():
    """Uniformly over a time that doubles with each refusal: the mean of 1,000 is off by 6 of its standard
    deviations less than one time in 10^8. Without jitter all would be the same."""
    random.seed(0)
    for refused in (0, 3, 6):
        longest = 0.1 * 0.05 * 2.0**refused
        waits = [Patience(0).wait_after(Limited(), Tries(0, refused)) - 0.05 for _ in range(1000)]
        assert 0.0 <= min(waits) < max(waits) <= longest
        assert abs(np.mean(waits) - longest / 2) < 6 * longest / np.sqrt(12 * 1000)


def test_a_service_that_always_refuses_ends_the_call_and_is_no_score(tmp_path, monkeypatch):
    monkeypatch.setattr(attempts, "MOST_REFUSALS", 3)

    def refuses(candidate, example):
        raise Limited("slow down")

    kept = {"store": tmp_path / "run.db", "examples": list(range(300))}
    with pytest.raises(EvaluationFailed, match=r"3 tries .* fewer workers \(Limited: slow down\)"):
        gr.choose(refuses, **options(**kept))
    choice = gr.choose(lambda candidate, example: SCORES[candidate, example], **options(**kept))
    assert (choice.reused, choice.failures) == (0, ())


def test_pauses_may_be_dates_of_http_headers():
    assert seconds_of("1.5") == 1.5
    assert seconds_of(-3) == 0.0
    assert 50.0 < seconds_of(formatdate(time.time() + 60.0, usegmt=True)) <= 60.0


@pytest.mark.parametrize("asked", ["soon", float("nan"), [1]])
def test_pauses_that_say_nothing_are_refused(asked):
    def refuses(candidate, example):
        raise Limited

    with pytest.raises(InvalidArgument, match="give seconds, or the date"):
        gr.choose(refuses, **options(pause=lambda error: asked))


def test_the_users_pause_is_asked():
    patience = Patience(0, lambda error: 0.02 if isinstance(error, KeyError) else None)
    answers = iter([KeyError(), KeyError(), 0.5])

    async def answer():
        given = next(answers)
        if isinstance(given, Exception):
            raise given
        return given

    slept = []

    async def sleep(seconds):
        slept.append(seconds)
        time.sleep(seconds)

    assert finished(evaluated(answer, sleep, patience)).score == 0.5
    assert sum(slept) >= 0.035
