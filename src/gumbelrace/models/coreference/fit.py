"""Fitting the factor to labelled mentions, by regression on pairs within blocks; and judging clusters.

B³ (Bagga and Baldwin, 1998) says how well clusters match the true persons. Hierarchical clustering on the
same factor is a baseline.
"""

import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts load when first used
from numpy.typing import ArrayLike, NDArray

from gumbelrace.core.random import Rng, as_generator
from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.models.coreference.factor import FEATURES, Factor, Shaping, features
from gumbelrace.models.coreference.mentions import MISSING, Block, Floats, Indices
from gumbelrace.population.pairs import Pairs

METHODS = ("single", "average")
MOST_MENTIONS = 10_000
PENALTY = 1e-4
MOST_PAIRS = 400_000
SHAPINGS = tuple(
    Shaping(cap, leak, shift)
    for cap in (2.0, 4.0)
    for leak in (0.1, 0.3, 1.0)
    for shift in (-0.5, 0.0, 0.5, 1.0, 1.5)
)


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
    _, first, number = np.unique(labels, return_index=True, return_inverse=True)
    order: Indices = np.argsort(np.argsort(first))[number]
    return order


def in_training(name: str) -> bool:
    """Say whether a block is for training, by a hash of its name: about every other one, always the same.

    Examples
    --------
    >>> [in_training(name) for name in ("li w", "chen j", "cruz j", "smith a")]
    [True, False, False, True]
    """
    return zlib.crc32(name.encode()) % 2 == 1


class Sample(NamedTuple):
    """Labelled pairs of mentions: their features, whether they are of one person, and their weights."""

    x: Floats
    same: NDArray[np.bool_]
    weight: Floats


def fit(
    blocks: Sequence[Block],
    rng: Rng = None,
    complete: bool = False,
    penalty: float = PENALTY,
    most_pairs: int = MOST_PAIRS,
) -> Factor:
    """Fit the weights by L2-regularised logistic regression on pairs of labelled mentions of one block.

    A block's pairs weigh one over their number, as 1/n² does: large blocks do not outvote the others.
    Blocks that hold pairs of one kind only are left out: they tell nothing of what tells persons apart.
    Weights keep the sign that their feature means: what two mentions share never speaks against them.

    Parameters
    ----------
    blocks : sequence of Block
        Blocks with labelled mentions.
    rng : numpy.random.Generator, int, or None
        Chooses the pairs where there are too many.
    complete : bool
        Whether every mention of a labelled person is labelled: then labelled and unlabelled mentions make
        pairs of two persons. Without it, only labelled mentions make pairs.
    penalty : float
        Factor of half the sum of squared weights (the bias left out), next to the mean log loss.
    most_pairs : int
        Where there are more pairs, so many of them are drawn, from each block its share.

    Returns
    -------
    Factor
        Log odds, without shaping. See `rank_shapings`.

    Examples
    --------
    >>> from gumbelrace.models.coreference import blocks, mentions, simulate
    >>> rng = np.random.default_rng(0)
    >>> factor = fit(blocks(mentions(simulate(2000, rng))), rng)
    >>> factor.weights["coauthors_shared"] > 0 > factor.weights["given_different"]
    True
    """
    sample = sample_pairs(blocks, as_generator(rng), complete, most_pairs)
    return regression(sample, penalty)


def sample_pairs(blocks: Sequence[Block], rng: np.random.Generator, complete: bool, most: int) -> Sample:
    """Draw pairs of mentions from blocks that hold pairs of one person and of two."""
    share = max(most // max(len(blocks), 1), 1)
    parts = [part for block in blocks if (part := _of_block(block, rng, complete, share))]
    if not parts:
        raise InvalidArgument(
            "no block holds labelled pairs both of one person and of two; label more mentions, or say "
            "complete=True if all mentions of the labelled persons are labelled"
        )
    return Sample(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _of_block(block: Block, rng: np.random.Generator, complete: bool, most: int) -> Sample | None:
    i, j = _pairs(block.label, rng, complete, most)
    same = block.label[i] == block.label[j]
    if not same.any() or same.all():
        return None
    return Sample(features(i, j, block.data), same, np.full(len(i), 1.0 / len(i)))


def _pairs(label: Indices, rng: np.random.Generator, complete: bool, most: int) -> tuple[Indices, Indices]:
    known = np.flatnonzero(label != MISSING)
    others = np.arange(len(label)) if complete else known
    if len(known) * len(others) <= most:
        i, j = np.repeat(known, len(others)), np.tile(others, len(known))
    else:
        i, j = rng.choice(known, most), rng.choice(others, most)
    return i[i != j], j[i != j]


def regression(sample: Sample, penalty: float = PENALTY) -> Factor:
    """Find the weights with the least penalised log loss. See `fit`."""
    weight, sign = sample.weight / sample.weight.sum(), np.where(sample.same, 1.0, -1.0)
    shrunk = np.where(np.array(FEATURES) == "bias", 0.0, penalty)

    def loss(theta: Floats) -> tuple[float, Floats]:
        margin = sign * (sample.x @ theta)
        slope = -weight * sign * scipy.special.expit(-margin)
        value = weight @ np.logaddexp(0.0, -margin) + 0.5 * shrunk @ theta**2
        return float(value), sample.x.T @ slope + shrunk * theta

    start = np.zeros(len(FEATURES))
    found = scipy.optimize.minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=list(map(_sign, FEATURES))
    )
    return Factor(dict(zip(FEATURES, found.x.tolist(), strict=True)))


def _sign(feature: str) -> tuple[float | None, float | None]:
    if feature.endswith(("_shared", "_cosine", "_rarity")):
        return 0.0, None
    if feature.endswith(("_different", "_close", "_apart")):
        return None, 0.0
    return None, None


def rank_shapings(
    factor: Factor,
    blocks: Sequence[Block],
    cluster: Callable[[Pairs], Indices],
    complete: bool = False,
    candidates: Iterable[Shaping] = SHAPINGS,
    apply: Callable[..., Iterable[BCubed]] = map,
) -> list[tuple[Factor, BCubed]]:
    """Find with which shaping clusters match the labels best, by B³ F1.

    Parameters
    ----------
    factor : Factor
        Its weights are kept.
    blocks : sequence of Block
        Labelled blocks: those that the weights were fitted to, never those that results are reported on.
    cluster : callable
        ``cluster(pairs) -> labels``, for example by Gibbs sampling.
    complete : bool
        As in `bcubed`.
    candidates : iterable of Shaping
        What to try.
    apply : callable
        ``apply(function, items)``, such as the `map` of an executor.

    Returns
    -------
    list of (Factor, BCubed)
        The factor with each shaping, and what it reached; the best first.
    """
    tried = [Factor(factor.weights, shaping) for shaping in candidates]
    scores = apply(lambda one: score(one, blocks, cluster, complete), tried)
    return sorted(zip(tried, scores, strict=True), key=lambda one: -one[1].f1)


def score(
    factor: Factor, blocks: Sequence[Block], cluster: Callable[[Pairs], Indices], complete: bool = False
) -> BCubed:
    """Cluster each block, and compare the clusters of all of them with the labels."""
    clusters, used = [], 0
    for block in blocks:
        clusters.append(used + np.unique(cluster(factor.pairs(block)), return_inverse=True)[1])
        used = int(clusters[-1].max()) + 1
    return bcubed(np.concatenate([block.label for block in blocks]), np.concatenate(clusters), complete)
