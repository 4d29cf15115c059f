"""A few decisions of a run made again exactly, so that a promise that does not hold shows by itself."""

import copy
import warnings
from dataclasses import replace
from itertools import takewhile
from threading import Event

import numpy as np

from gumbelrace.chain.trace import Trace
from gumbelrace.errors import PromiseBroken
from gumbelrace.kernels.base import State
from gumbelrace.population.base import checked_count
from gumbelrace.verdict import SURE

# By default the checks read this share of what the run has read; a single one may read more.
SHARE, SHARE_OF_ONE, MOST = 0.02, 0.1, 100


def checked(trace: Trace[State], count: int | None, rng: np.random.Generator, stop: Event) -> Trace[State]:
    """Return the trace with what checks from `count` of its states have found.

    A copy of the generator is used, as a chain that goes on would use it: the same for the same seed,
    whether the run was resumed or not, and nothing of the caller's is changed. Ctrl-C, which sets `stop`,
    ends it.
    """
    kept = trace.chains * trace.draws
    wanted = affordable(trace) if count is None else min(checked_count(count, "check", least=0), kept)
    if wanted == 0 or trace.interrupted:
        return trace
    try:
        steps = trace.checks(wanted, copy.deepcopy(rng))
        made = list(takewhile(lambda _: not stop.is_set(), steps))
    except Exception as error:
        # The run has ended well, and its draws are worth more than the check.
        warnings.warn(f"a step could not be checked exactly: {error}", PromiseBroken, stacklevel=3)
        return trace
    if not made:
        return trace
    verdict = trace.verdict(made, SURE)
    verdict.warn()
    return replace(trace, checked=verdict)


def affordable(trace: Trace[State]) -> int:
    """Give the number of steps that are checked by default."""
    method = getattr(trace.kernel, "method", None)
    kept, read = trace.chains * trace.draws, float(np.sum(trace.info.evaluations))
    if kept == 0 or method is None or method.promise.delta == 0.0:
        return 0
    a_step = float(np.sum(trace.info.rewards)) / (kept * trace.thin)
    steps = min(int(SHARE * read / max(a_step, 1.0)), MOST, kept)
    return max(steps, int(0.0 < a_step <= SHARE_OF_ONE * read))
