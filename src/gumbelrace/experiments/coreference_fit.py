"""Fitting the factor of coreference: weights by regression, the shaping by what clusters it leads to."""

import threading

import numpy as np
from numpy.typing import NDArray

from gumbelrace.experiments.coreference import SAMPLERS, Search, searched
from gumbelrace.models.coreference.bcubed import BCubed
from gumbelrace.models.coreference.block import blocks
from gumbelrace.models.coreference.factor import Factor
from gumbelrace.models.coreference.fit import choose_shaping, fit
from gumbelrace.models.coreference.mentions import MISSING, Mentions
from gumbelrace.population.pairs import Pairs

# The search that judges a shaping, and the blocks it is judged on: larger ones would take most of the time.
SEARCH, LARGEST = Search(sweeps=10, cold=3), 1500


def fitted(mentions: Mentions, rng: np.random.Generator, complete: bool = False) -> tuple[Factor, BCubed]:
    """Fit the weights, then choose the shaping; give the factor, and the B³ it has on these mentions.

    Parameters
    ----------
    mentions : Mentions
        Labelled mentions; blocks without labels are left out.
    rng : numpy.random.Generator
        Source of randomness.
    complete : bool
        As in `bcubed`.
    """
    usable = [block for block in blocks(mentions, least=2) if (block.label != MISSING).any()]
    factor = fit(usable, rng, complete)
    small = [block for block in usable if len(block) <= LARGEST]
    return choose_shaping(factor, small or usable, clusters, complete)


def clusters(pairs: Pairs) -> NDArray[np.int64]:
    """Cluster a block exactly; always with the same random numbers."""
    kernel = SEARCH.kernel(pairs, SAMPLERS["matrix"])
    found = searched(kernel, SEARCH, np.random.default_rng(0), threading.Event())
    return np.array(found.labels[-1], np.int64)
