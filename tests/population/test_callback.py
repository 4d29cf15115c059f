"""Ctrl-C while compiled code calls Python: it is never lost, and nothing half-read is returned."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import gumbelrace as gr
from gumbelrace.population.callback import held_interrupts

SCRIPT = """
import os, signal, threading
import numpy as np, gumbelrace as gr
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background ignores it
rewards = 0.01 * np.random.default_rng(0).normal(size=(20_000, 20))
factors = gr.factors(lambda index, arms: rewards[np.ix_(index, arms)], 20_000, 20, reward_range=(-1.0, 1.0))
gr.sample(factors, size=1, rng=0, check=False)
heard = 0
for trial in range(15):
    after = threading.Timer(0.01 + 0.0013 * trial, os.kill, (os.getpid(), signal.SIGINT))
    after.start()
    try:
        gr.sample(factors, size=2000, method=gr.Exact(), rng=0, check=False)
    except KeyboardInterrupt:
        heard += 1
print(heard)
"""


def test_ctrl_c_is_heard_wherever_it_comes():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["15"], done.stderr


@pytest.fixture
def by_default():
    """Have Ctrl-C handled as Python does by itself; a shell in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(passed):
    with held_interrupts():
        os.kill(os.getpid(), signal.SIGINT)
        passed.append(True)


@pytest.mark.usefixtures("by_default")
def test_ctrl_c_waits_until_compiled_code_has_returned():
    passed = []
    with pytest.raises(KeyboardInterrupt):
        interrupted(passed)
    assert passed
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_and_handlers_are_left_alone():
    found = []

    def read():
        with held_interrupts():
            found.append(gr.best(gr.factors(lambda i, a: np.zeros((len(i), len(a))), 50, 2), rng=0).arm)

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    assert found == [0]
