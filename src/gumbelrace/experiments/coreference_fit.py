"""Fitting the factor of coreference: weights by regression, the shaping by what clusters it leads to."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gumbelrace.experiments.coreference import SAMPLERS, Search, searched
from gumbelrace.models.coreference.bcubed import BCubed
from gumbelrace.models.coreference.block import Block, block_of
from gumbelrace.models.coreference.factor import Factor
from gumbelrace.models.coreference.fit import fit, in_training, rank_shapings
from gumbelrace.models.coreference.mentions import MISSING, Mentions
from gumbelrace.population.pairs import Pairs

# All shapings are tried on blocks up to a size, as larger ones would take most of the time; then the best
# few of them, more thoroughly, on blocks up to another.
QUICK, SMALL = Search(starts=2), 1000
THOROUGH, LARGE, FEW = Search(), 3000, 6


def fitted(
    blocks: Sequence[Block], rng: np.random.Generator, complete: bool = False, jobs: int = 1
) -> tuple[Factor, BCubed]:
    """Fit the weights, then choose the shaping; give the factor, and the B³ it has on these blocks.

    Parameters
    ----------
    blocks : sequence of Block
        Blocks with labelled mentions; others are left out.
    rng : numpy.random.Generator
        Source of randomness.
    complete : bool
        As in `bcubed`.
    jobs : int
        Threads.
    """
    usable = [block for block in blocks if len(block) > 1 and (block.label != MISSING).any()]
    factor = fit(usable, rng, complete)
    small, large = ([b for b in usable if len(b) <= most] or usable for most in (SMALL, LARGE))
    with ThreadPoolExecutor(jobs) as pool:
        first = rank_shapings(factor, small, partial(clusters, QUICK), complete, apply=pool.map)
        few = [one.shaping for one, _ in first[:FEW]]
        return rank_shapings(factor, large, partial(clusters, THOROUGH), complete, few, pool.map)[0]


def training_blocks(mentions: Mentions) -> list[Block]:
    """Give the blocks for training, about half of all; see `held_out` for others."""
    parts = zip(mentions.block_names, mentions.rows_by_block(), strict=True)
    return [block_of(mentions, rows) for name, rows in parts if in_training(name)]


def clusters(search: Search, pairs: Pairs) -> NDArray[np.int64]:
    """Cluster a block exactly; always with the same random numbers."""
    kernel = search.kernel(pairs, SAMPLERS["sums"])
    found = searched(kernel, search, np.random.default_rng(0), threading.Event())
    return np.array(found.labels[-1], np.int64)
