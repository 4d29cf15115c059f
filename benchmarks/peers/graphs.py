"""The Potts model of Poisson-Gibbs (Zhang & De Sa, 2019): a lattice of q = 10, every pair of sites coupled.

Poisson-Gibbs is written here, as there is no package of it. A factor φ_ij = w_ij 1{x_i = x_j} ≤ w_ij has a
count s_ij ~ Poisson(λ w_ij / L + φ_ij), with L the largest Σ_j w_ij; given the counts, x_i = u has log
weight Σ_j s_ij log(1 + L φ_ij(u) / (λ w_ij)), whose terms are s_ij log(1 + L / λ) or 0. All counts of a
site come from one Poisson number of candidates, drawn by their weights from an alias table and thinned.
λ = L² is what their bound on the spectral gap suggests. Sites are visited in turn, as by the others.
"""

import itertools
import math
import time
from typing import Any

import graph
import numba
import numpy as np
import scipy.sparse
from measuring import FEWEST, sizes_of

import gumbelrace as gr
from gumbelrace.models.potts import gaussian_lattice

SEED, STATES, WARM_UP = 1, 10, 50


@numba.njit
def alias_tables(starts, weights):
    """Walker's tables of all rows: what a slot keeps, and whose it is otherwise."""
    keep, other = np.ones(len(weights)), np.zeros(len(weights), np.int64)
    for i in range(len(starts) - 1):
        first, count = starts[i], starts[i + 1] - starts[i]
        share = weights[first : starts[i + 1]] * count / weights[first : starts[i + 1]].sum()
        small, large = (
            [k for k in range(count) if share[k] < 1.0],
            [k for k in range(count) if share[k] >= 1.0],
        )
        other[first : starts[i + 1]] = np.arange(count)
        while len(small) > 0 and len(large) > 0:
            low, high = small.pop(), large[-1]
            keep[first + low], other[first + low] = share[low], high
            share[high] -= 1.0 - share[low]
            if share[high] < 1.0:
                small.append(large.pop())
    return keep, other


@numba.njit
def poisson_sweep(starts, neighbours, sums, tables, labels, arms, lam):
    """Visit every site once; give the number of factors that were looked at."""
    (keep, other), largest, looked = tables, sums.max(), 0
    gain, scores = math.log1p(largest / lam), np.zeros(arms)
    for i in range(len(labels)):
        scores[:] = 0.0
        first, count = starts[i], starts[i + 1] - starts[i]
        candidates = np.random.poisson(sums[i] * (lam / largest + 1.0))  # noqa: NPY002
        looked += candidates
        for _ in range(candidates):
            k = np.random.randint(count)  # noqa: NPY002
            if np.random.random() >= keep[first + k]:  # noqa: NPY002
                k = other[first + k]
            label = labels[neighbours[first + k]]
            # Kept with probability (λ/L + 1{equal}) / (λ/L + 1).
            if label == labels[i] or np.random.random() * (lam / largest + 1.0) < lam / largest:  # noqa: NPY002
                scores[label] += gain
        labels[i] = graph.pick(scores)
    return looked


@numba.njit
def seed_numba(seed):
    np.random.seed(seed)  # noqa: NPY002


def poisson_gibbs(matrix: Any, arms: int, wrong: float = 1.0) -> graph.Sampler:
    """Make the sampler; `wrong` multiplies all weights where candidates are counted: its law is another."""
    tables, sums = alias_tables(matrix.indptr, matrix.data), np.asarray(matrix.sum(axis=1))
    lam = float(sums.max()) ** 2

    def sweep(labels: Any) -> tuple[Any, int, int]:
        looked = poisson_sweep(matrix.indptr, matrix.indices, sums * wrong, tables, labels, arms, lam)
        return labels, looked, looked

    return sweep


def samplers(matrix: Any) -> dict[str, Any]:
    """By name, what makes each sampler."""
    inner = matrix.indptr, matrix.indices, matrix.data
    pairs = matrix.shape[0] * (matrix.shape[0] - 1)
    kernel = lambda: gr.GraphGibbs(matrix, STATES, gr.models.Potts())  # noqa: E731
    return {
        "ours": lambda: graph.raced(kernel()),
        "exact Gibbs, numba": lambda: graph.exact(graph.dense_sweep, STATES, pairs, matrix.toarray()),
        "exact, zeros skipped": lambda: graph.exact(graph.sparse_sweep, STATES, matrix.nnz, *inner),
        "exact, sums kept": lambda: graph.kept(matrix, STATES),
        "Poisson-Gibbs": lambda: poisson_gibbs(matrix, STATES),
    }


def measured(name: str, ask: Any) -> dict[str, Any]:
    """Draw until time is up; chains are compared by the share of neighbours that are equal."""
    matrix = scipy.sparse.csr_array(gaussian_lattice(ask.size, beta=4.6, gamma=1.5))
    seed_numba(SEED)
    begun, n = time.process_time(), matrix.shape[0]
    sweep = samplers(matrix)[name]()
    labels = np.random.default_rng(SEED).integers(STATES, size=n, dtype=np.int32)
    for _ in range(WARM_UP):
        labels = sweep(labels)[0]
    ready, factors, equal = time.process_time(), 0, []
    while time.process_time() - ready < ask.seconds or len(equal) < FEWEST:
        labels, read, _ = sweep(labels)
        factors += read
        grid = labels.reshape(ask.size, ask.size)
        equal.append(0.5 * (np.mean(grid[1:] == grid[:-1]) + np.mean(grid[:, 1:] == grid[:, :-1])))
    seconds = time.process_time() - ready
    effective = float(sizes_of(np.array(equal)[None, :, None])[0])
    return {
        "setup": ready - begun,
        "milliseconds": 1e3 * seconds / len(equal),
        "factors": factors / len(equal) / n,
        "rate": effective / seconds,
        "effective": effective,
        "equal": float(np.mean(equal)),
        "error": float(np.std(equal) / math.sqrt(effective)),
    }


def checked(ask: Any) -> dict[str, Any]:
    """Compare Poisson-Gibbs with enumeration on four sites of three states, and so one that is wrong."""
    matrix = scipy.sparse.csr_array(gaussian_lattice(2, beta=1.0, gamma=0.5))
    states = np.array(list(itertools.product(range(3), repeat=4)))
    dense = matrix.toarray()
    energy = [0.5 * dense[np.equal.outer(state, state)].sum() for state in states]
    law, sweeps = np.exp(energy) / np.exp(energy).sum(), ask.size
    seed_numba(SEED)
    found = {}
    for name, wrong in (("right", 1.0), ("wrong", 1.5)):
        sweep, labels, counts = poisson_gibbs(matrix, 3, wrong), np.zeros(4, np.int32), np.zeros(len(law))
        for _ in range(sweeps):
            labels = sweep(labels)[0]
            counts[labels @ [27, 9, 3, 1]] += 1
        found[name] = float(0.5 * np.abs(counts / sweeps - law).sum())
    # E|share - p| of independent draws; those of a chain are off by more.
    return found | {"by chance": float(0.5 * np.sqrt(2.0 / np.pi * law * (1.0 - law) / sweeps).sum())}


WAYS: dict[str, Any] = {
    name: (lambda ask, name=name: measured(name, ask))
    for name in samplers(gaussian_lattice(2, beta=1.0, gamma=1.0))
}
WAYS["check"] = checked
