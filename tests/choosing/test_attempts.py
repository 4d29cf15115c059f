"""Tries of an evaluation: pauses that grow, limits of rates, and the user's pause."""

import threading
import time

import numpy as np
import pytest

import gumbelrace as gr
from gumbelrace.choosing import attempts
from gumbelrace.choosing.attempts import Patience, evaluated, finished

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
    waits = [patience.wait_after(ValueError(), failed) for failed in (1, 2, 3, 20)]
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
