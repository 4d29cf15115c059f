"""A small file of simulated mentions to cluster, for the tests of coreference."""

import functools

import numpy as np

from gumbelrace.applications.block_search import Search
from gumbelrace.applications.coreference import Task
from gumbelrace.models.coreference import blocks, fit, mentions, simulate

SEARCH = Search(sweeps=6, cold=2, starts=2)


@functools.cache
def small_task():
    found = mentions(simulate(500, np.random.default_rng(1)))
    factor = fit(blocks(found), np.random.default_rng(2))
    return Task(found, factor, SEARCH, ("raced", "exact", "sums"), runs=2, seed=3)
