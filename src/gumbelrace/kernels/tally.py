"""What a compiled sweep counts: the same entries for graphs and for clusters."""

import numpy as np
from numpy.typing import NDArray

from gumbelrace.kernels.base import Info

# Entries of a tally: factors read, those of an exact sweep, looks; variables that changed, were visited, or
# were decided wrongly (where that is checked); the variable at hand, and rows of the winner.
READ, ALL, LOOKED, CHANGED, VISITED, WRONG, SITE, ROWS = range(8)


def new_tally() -> NDArray[np.int64]:
    """Give a tally of zeros."""
    return np.zeros(8, np.int64)


def info_of(tally: NDArray[np.int64]) -> Info:
    """Say what a sweep took."""
    acceptance = float(tally[CHANGED] / tally[VISITED])
    return Info(int(tally[READ]), int(tally[ALL]), int(tally[LOOKED]), acceptance)
