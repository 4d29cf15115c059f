"""How sure clusters are: where each mention sits while the posterior is sampled, at temperature 1.

A search ends with the most probable clusters it met. Sweeps at temperature 1 that start there, without
merges, leave p(y) invariant. In each of them a mention sits with the core of its cluster or not: the core
is where most of the cluster's *other* members are, so that a mention does not vote for itself. A mention
that is alone in its cluster keeps to it while it is alone. The share of the sweeps is the probability.
"""

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumbelrace.applications.store import Stopped
from gumbelrace.kernels.clusters.kernel import ClusterGibbs
from gumbelrace.kernels.gibbs import Labels
from gumbelrace.models.coreference.fit import bcubed

Indices = NDArray[np.int64]
Floats = NDArray[np.float64]
# Where a mention sits that is not with its core: with no other cluster; or, it never sits elsewhere.
BY_ITSELF, NOWHERE = -1, -2
# Of the sweeps, one in so many comes before those that count: the search ends at a peak of p.
UNCOUNTED = 4
# A mention is doubtful that sits elsewhere more often than not.
DOUBTFUL = 0.5
# What is above is near 1.
NEARLY = 0.95
# Probabilities at which clusters are judged.
THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(21))


class Sure(NamedTuple):
    """How sure the clusters of a block are; an entry for each mention."""

    probability: list[float]  # that it sits with the core of its cluster
    runner_up: list[int]  # the cluster with which it sits most often otherwise, or `BY_ITSELF`, `NOWHERE`
    runner_up_probability: list[float]
    # Half of the difference between its probabilities in the two halves of the sweeps; NaN if there is one.
    by_chance: list[float]

    @property
    def error(self) -> float:
        """Root mean square of what chance does to probabilities that are neither near 0 nor near 1.

        The halves are compared as they are, so that sweeps which resemble each other count as such. NaN: of
        a single sweep it is not known.
        """
        probability, apart = np.array(self.probability), np.array(self.by_chance)
        between = apart[(probability > 1.0 - NEARLY) & (probability < NEARLY)]
        return float(np.sqrt(np.mean(between**2))) if len(between) else 0.0


def certainty(
    kernel: ClusterGibbs, labels: ArrayLike, sweeps: int, rng: np.random.Generator, stop: threading.Event
) -> Sure:
    """Sample the posterior from the clusters given; say where mentions sat in `sweeps` counted sweeps."""
    sampler, clusters = kernel.sampling(), np.asarray(labels)
    state, places = Labels(np.asarray(labels, np.int32)), []
    for sweep in range(-(sweeps // UNCOUNTED), sweeps):
        if stop.is_set():
            raise Stopped
        state, _ = sampler.step(rng, state)
        if sweep >= 0:
            places.append(seats(clusters, state.labels))
    return summed(clusters, np.array(places))


def summed(clusters: Indices, places: Indices) -> Sure:
    """Turn the seats of mentions, an array of shape (sweeps, mentions), into probabilities."""
    sweeps, n = places.shape
    away = places != clusters
    # One number for each pair of a mention and a place.
    pairs, times = np.unique((np.arange(n) * (n + 1) + places + 1)[away], return_counts=True)
    order = np.lexsort((-pairs, times))  # of equally many the first cluster
    runner_up, often = np.full(n, NOWHERE), np.zeros(n, np.int64)
    runner_up[pairs[order] // (n + 1)] = pairs[order] % (n + 1) - 1
    often[pairs[order] // (n + 1)] = times[order]
    probability = 1.0 - np.count_nonzero(away, axis=0) / sweeps
    apart = np.full(n, np.nan)
    if sweeps > 1:
        apart = (away[: sweeps // 2].mean(axis=0) - away[sweeps // 2 :].mean(axis=0)) / 2.0
    return Sure(probability.tolist(), runner_up.tolist(), (often / sweeps).tolist(), apart.tolist())


def seats(clusters: ArrayLike, labels: ArrayLike) -> Indices:
    """Give the cluster that each mention sits with, when the partition is that of `labels`.

    That is its own if it sits with its core, or else the one that most of those beside it are from;
    `BY_ITSELF` if no other cluster's mention is there.

    Examples
    --------
    Mentions 0 to 2 are a cluster, 3 and 4 another; 2 has moved, and then 4 as well.

    >>> seats([0, 0, 0, 3, 3], [7, 7, 9, 9, 9])
    array([0, 0, 3, 3, 3])
    >>> seats([0, 0, 0, 3, 3], [7, 7, 9, 9, 8])
    array([ 0,  0,  3,  0, -1])
    """
    clusters, labels = np.asarray(clusters, np.int64), np.asarray(labels, np.int64)
    own, label = (np.unique(one, return_inverse=True)[1] for one in (clusters, labels))
    among = _Crossed.of(own, label)
    mine = among.at(own, label) - 1
    at_home = (mine > 0) & (mine >= among.most_elsewhere(own, label))
    alone = (np.bincount(own)[own] == 1) & (np.bincount(label)[label] == 1)
    visited = among.largest_other(label, own)
    found = np.where(visited >= 0, np.unique(clusters)[visited], BY_ITSELF)
    return np.where(at_home | alone, clusters, found)


class _Crossed(NamedTuple):
    """How many mentions are in each of our clusters and each of others, where there are any."""

    own: Indices
    label: Indices
    number: Indices
    width: int

    @classmethod
    def of(cls, own: Indices, label: Indices) -> "_Crossed":
        width = int(label.max()) + 1
        cells, count = np.unique(own * width + label, return_counts=True)
        return cls(cells // width, cells % width, count, width)

    def at(self, own: Indices, label: Indices) -> Indices:
        """Count the mentions in cells that are not empty."""
        return self.number[np.searchsorted(self.own * self.width + self.label, own * self.width + label)]

    def most_elsewhere(self, own: Indices, label: Indices) -> Indices:
        """Give the largest count of a row in another column than the one given."""
        (first, most), (_, second) = _two_largest(self.own, self.label, self.number)
        return np.where(first[own] == label, second[own], most[own])

    def largest_other(self, label: Indices, own: Indices) -> Indices:
        """Give the row with the largest count in a column, other than the one given; -1: there is none."""
        (first, _), (next_one, _) = _two_largest(self.label, self.own, self.number)
        return np.where(first[label] == own, next_one[label], first[label])


def _two_largest(group: Indices, item: Indices, count: Indices) -> list[tuple[Indices, Indices]]:
    """Give the items of the largest and the second largest count of each group, and these; else -1, 0."""
    order = np.lexsort((item, -count, group))
    group, item, count = group[order], item[order], count[order]
    starts = np.searchsorted(group, np.arange(int(group.max()) + 2))
    found = []
    for rank in (0, 1):
        at = starts[:-1] + rank
        there = at < starts[1:]
        at = np.where(there, at, 0)
        found.append((np.where(there, item[at], -1), np.where(there, count[at], 0)))
    return found


class Threshold(NamedTuple):
    """B³ of the clusters if mentions below a probability are taken out of them, each by itself."""

    threshold: float
    taken_out: int
    precision: float
    recall: float
    f1: float


def thresholds(
    truth: ArrayLike, clusters: Indices, probability: Floats, complete: bool = False
) -> list[Threshold]:
    """Judge the clusters at each of `THRESHOLDS`; mentions without a truth have -1, as in `bcubed`."""
    found, fresh = [], int(clusters.max()) + 1
    for threshold in THRESHOLDS:
        out = probability < threshold
        alone = np.where(out, fresh + np.arange(len(clusters)), clusters)
        found.append(Threshold(threshold, int(out.sum()), *bcubed(truth, alone, complete)))
    return found


def is_right(truth: ArrayLike, clusters: ArrayLike) -> Floats:
    """Say of each mention whether its person is that of most others in its cluster: 1, 0, or NaN.

    A mention that is alone is right if no other one is of its person. NaN: no label, or no other has one.

    Examples
    --------
    >>> is_right([5, 5, 6, 7, 7, -1], [0, 0, 0, 1, 2, 2])
    array([ 1.,  1.,  0.,  0., nan, nan])
    """
    truth, clusters = np.asarray(truth, np.int64), np.asarray(clusters, np.int64)
    known = np.flatnonzero(truth >= 0)
    found = np.full(len(truth), np.nan)
    own = np.unique(clusters, return_inverse=True)[1]
    size, person, own = np.bincount(own)[own][known], truth[known], own[known]
    if len(known):
        person = np.unique(person, return_inverse=True)[1]
        among = _Crossed.of(own, person)
        mine, others = among.at(own, person) - 1, np.bincount(own)[own] - 1
        right = (mine > 0) & (mine >= among.most_elsewhere(own, person))
        alone = np.where(size == 1, np.bincount(person)[person] == 1, np.nan)
        found[known] = np.where(others > 0, right, alone)
    return found


def joined(parts: Sequence[Any], rows: Sequence[Indices], size: int, missing: float) -> Any:
    """Put what blocks have for their mentions into one array for all mentions of the file."""
    found = np.full(size, missing)
    for part, where in zip(parts, rows, strict=True):
        found[where] = part
    return found
