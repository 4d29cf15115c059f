"""B³ (Bagga and Baldwin, 1998): how well clusters of mentions match the true persons."""

from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts load when first used
from numpy.typing import ArrayLike, NDArray

from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.models.coreference.mentions import MISSING


class BCubed(NamedTuple):
    """Averages over mentions, between 0 and 1.

    Attributes
    ----------
    precision : float
        Share of a mention's cluster that is of its person.
    recall : float
        Share of its person's mentions that are in its cluster.
    f1 : float
        Their harmonic mean.
    """

    precision: float
    recall: float
    f1: float

    def __str__(self) -> str:
        return f"B³ precision {self.precision:.4f}, recall {self.recall:.4f}, F1 {self.f1:.4f}"


def bcubed(truth: ArrayLike, clusters: ArrayLike, complete: bool = False) -> BCubed:
    """Compare clusters with the true persons.

    Mentions of unknown person, with -1 for truth, are left out of truth and clusters before anything is
    counted. So a cluster that takes in strangers of whom none is labelled costs nothing.

    Parameters
    ----------
    truth : array_like of int, shape (n,)
        True person of each mention; -1 where it is unknown.
    clusters : array_like of int, shape (n,)
        Cluster of each mention.
    complete : bool
        Say True only if every mention of a labelled person is labelled. A mention without a label is then
        known to be someone else's: precision counts it in the cluster, and averages are still over labelled
        mentions.

    Examples
    --------
    >>> print(bcubed([0, 0, 0, 1, 1, -1], [0, 0, 1, 1, 1, 1]))
    B³ precision 0.7333, recall 0.7333, F1 0.7333
    >>> print(bcubed([0, 0, 0, 1, 1, -1], [0, 0, 1, 1, 1, 1], complete=True))
    B³ precision 0.6500, recall 0.7333, F1 0.6892
    """
    persons, found = _checked(truth, clusters)
    known = persons != MISSING
    _, person = np.unique(persons[known], return_inverse=True)
    _, cluster = np.unique(found, return_inverse=True)
    sizes = np.bincount(cluster if complete else cluster[known], minlength=cluster.max() + 1)
    counts = scipy.sparse.coo_array((np.ones(len(person)), (person, cluster[known]))).tocsr().tocoo()
    squares, (rows, columns) = counts.data**2, counts.coords
    precision = float((squares / sizes[columns]).sum() / len(person))
    recall = float((squares / np.bincount(person)[rows]).sum() / len(person))
    return BCubed(precision, recall, 2.0 * precision * recall / (precision + recall))


def _checked(truth: ArrayLike, clusters: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    persons, found = np.asarray(truth), np.asarray(clusters)
    if persons.ndim != 1 or persons.shape != found.shape:
        raise ShapeMismatch(f"truth has shape {persons.shape}, clusters {found.shape}; both must be (n,)")
    if persons.dtype.kind not in "iu" or found.dtype.kind not in "iu":
        raise InvalidArgument(
            f"truth is {persons.dtype} and clusters are {found.dtype}; give integers, -1 if unknown"
        )
    if not (persons != MISSING).any():
        raise InvalidArgument("no mention has a true person; B³ needs labels")
    return persons, found
