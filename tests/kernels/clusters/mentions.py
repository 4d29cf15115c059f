"""Small problems of clusters: a table of values as a factor, and all partitions of a few mentions."""

import itertools

import numba
import numpy as np

import gumbelrace as gr


@numba.njit
def looked_up(i, j, table):
    return table[i, j]


def pairs_of(table, reward_range=None):
    return gr.pairs(looked_up, (np.ascontiguousarray(table),), len(table), reward_range=reward_range)


def symmetric(n, mean, scale, seed):
    upper = np.triu(np.random.default_rng(seed).normal(mean, scale, (n, n)), 1)
    return upper + upper.T


def planted(sizes, apart, noise, seed):
    """Mentions of persons, in random order: f is about +apart within one and -apart between two."""
    person = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    table = np.where(person[:, None] == person, apart, -apart)
    return person, table + symmetric(len(person), 0.0, noise, seed + 1)


def canonical(labels):
    """Number clusters in the order in which their first members come."""
    seen = {}
    return tuple(seen.setdefault(int(label), len(seen)) for label in labels)


def partitions(n):
    """Give all partitions of n mentions."""
    return sorted({canonical(labels) for labels in itertools.product(range(n), repeat=n)})


def energy(table, labels):
    same = np.asarray(labels)[:, None] == np.asarray(labels)
    return float(np.triu(np.where(same, table, 0.0), 1).sum())


def chain(kernel, state, sweeps, seed):
    """Give all states and infos of a chain."""
    rng, visited = np.random.default_rng(seed), []
    for _ in range(sweeps):
        state, info = kernel.step(rng, state)
        visited.append((state, info))
    return visited


def start(kernel, placed=True):
    return kernel.start(rng=np.random.default_rng(0), placed=placed)
