"""Baselines: hierarchical clustering on the same pairwise factor."""

import numpy as np
import scipy  # its parts load when first used

from gumbelrace.errors import InvalidArgument
from gumbelrace.models.coreference.mentions import Indices
from gumbelrace.population.pairs import Pairs

METHODS = ("single", "average")
MOST_MENTIONS = 10_000


def linkage(pairs: Pairs, threshold: float = 0.0, method: str = "single") -> Indices:
    """Merge clusters while their factor exceeds a threshold, the largest first.

    The factor of two clusters is the largest of their pairs (single linkage: a chain of similar mentions is
    one person), or the mean (average linkage). All pairs are read and kept: 8 bytes each, so 400 MB for
    10,000 mentions.

    Parameters
    ----------
    pairs : Pairs
        The factor, for example ``Factor.default().pairs(block)``; of at most 10,000 mentions.
    threshold : float
        Factor above which clusters are merged.
    method : str
        "single" or "average".

    Returns
    -------
    ndarray of shape (n,)
        Cluster of each mention, from 0 on.

    Examples
    --------
    >>> import numba, gumbelrace as gr
    >>> @numba.njit
    ... def log_factor(i, j, x):
    ...     return 1.0 - abs(x[i] - x[j])
    >>> pairs = gr.pairs(log_factor, (np.array([0.0, 0.6, 1.2, 5.0]),), size=4)
    >>> linkage(pairs), linkage(pairs, threshold=0.2, method="average")
    (array([0, 0, 0, 1]), array([0, 0, 1, 2]))
    """
    if method not in METHODS:
        raise InvalidArgument(f"method is {method!r}; it must be {' or '.join(METHODS)}")
    if pairs.size > MOST_MENTIONS:
        raise InvalidArgument(
            f"{pairs.size} mentions; linkage keeps all pairs and takes {MOST_MENTIONS} at most"
        )
    if pairs.size == 1:
        return np.zeros(1, np.int64)
    values = pairs.values(*np.triu_indices(pairs.size, 1))
    tree = scipy.cluster.hierarchy.linkage(values.max() - values, method)
    # A merge at the threshold itself is none.
    below = np.nextafter(values.max() - threshold, -np.inf)
    labels = scipy.cluster.hierarchy.fcluster(tree, below, "distance")
    return _in_order(labels)


def _in_order(labels: Indices) -> Indices:
    """Give numbers to clusters by their first mention."""
    _, first, place = np.unique(labels, return_index=True, return_inverse=True)
    order: Indices = np.argsort(np.argsort(first))[place]
    return order
