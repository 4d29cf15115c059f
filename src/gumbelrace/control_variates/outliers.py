"""Rows on which an approximation fits worst: they are always read."""

from numbers import Real

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument
from gumbelrace.population.control import Always

Floats = NDArray[np.float64]


def farthest(distance: Floats, share: float) -> Always | None:
    """Choose the share of the rows with the largest distance.

    Examples
    --------
    >>> farthest(np.array([0.1, 5.0, 0.2, 3.0]), 0.5).rows
    array([1, 3])
    """
    count = int((checked_share(share) or 0.0) * len(distance))
    if count == 0:
        return None
    return Always(np.sort(np.argpartition(distance, -count)[-count:]), len(distance))


def checked_share(share: float | None) -> float | None:
    """Return a share of outliers, or None where the choice is ours."""
    if share is not None and not (isinstance(share, Real) and 0.0 <= share < 1.0):
        raise InvalidArgument(f"the share of outliers is {share!r}; it must lie in [0, 1)")
    return share
