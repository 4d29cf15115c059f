"""MH-SS, exact from few rows, by the package PyMHSS in an environment of its own (see `mhss.py`)."""

import time

import numpy as np
from logistic import OPTIMAL, Posterior
from measuring import Chain, Seconds, Task
from mhss import PACKAGES, mhss
from problems import PRIOR_SD
from shared import environment

STEPS, MOST_STEPS = 2_000, 100_000


def by_pymhss(task: Task) -> Chain:
    """Run it shortly, then for as many steps as time allows: expansions of order 2, the best scale."""
    python, (x, y) = environment(task.environments / "mhss", PACKAGES), task.problem.data
    posterior = Posterior(x, y, PRIOR_SD, task.law.mode, -np.linalg.inv(task.law.covariance))
    begun = time.perf_counter()
    short = mhss(python, posterior, STEPS, 2, OPTIMAL)
    steps = int(min(STEPS * task.seconds / short.seconds, MOST_STEPS))
    began = time.perf_counter()
    run = mhss(python, posterior, steps, 2, OPTIMAL)
    ended = time.perf_counter()
    # It has one thread, and its own clock is that of the processor; beside its steps it is set up.
    setup = max(began - begun - short.seconds, 0.0)
    spent = Seconds(max(ended - began - setup, run.seconds), run.seconds)
    return Chain(run.chain[None], spent, task.law.seconds + Seconds(setup, setup), run.rows)
