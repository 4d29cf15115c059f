"""What tests of all kinds share: seeded generators, and the methods."""

import numpy as np
import pytest

import gumbelrace as gr
from gumbelrace.methods.exact import compared

ONE_OF_EACH = [gr.Exact(), gr.Betting(), gr.Race(), gr.Race(gr.methods.Serfling()), gr.LilUCB()]
QUICK = [*ONE_OF_EACH, gr.Race(variance=gr.methods.Marginal())]
METHODS = [*QUICK, gr.LilUCB.guaranteed()]  # the last reads nearly everything, a reward at a time
EVERY_METHOD = pytest.mark.parametrize("method", METHODS, ids=repr)


def seeded(seed=0):
    return np.random.default_rng(seed)


def totals(population):
    """Sums of all rewards of each arm, as the library adds them up; -inf for impossible arms."""
    found = compared(population)
    return found.sums + found.shared
