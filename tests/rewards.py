"""Rewards of many shapes with known sums.

A shape is a function of (rng, size, arms) that gives an array of shape (size, arms). `make` gives it sums
and a variance. Two shapes hold a difficulty of their own: in `one_outlier` single rewards decide which arm
is the best, and in `all_but_tied` the sums differ by a hair or not at all.
"""

import numpy as np

import gumbelrace as gr
from gumbelrace.applications.demo import normalised

# A sum that is better by this much is better by far more than rounding.
HAIR = 1e-6


def normal(rng, size, arms):
    return rng.normal(size=(size, arms))


def uniform(rng, size, arms):
    return rng.uniform(size=(size, arms))


def lognormal(rng, size, arms):
    return rng.lognormal(0.0, 2.0, size=(size, arms))


def bernoulli(rng, size, arms):
    """One reward in a hundred is 1, and at least one of each arm."""
    rewards = (rng.random((size, arms)) < 0.01).astype(float)
    rewards[rng.integers(size, size=arms), np.arange(arms)] = 1.0
    return rewards


def left_skewed(rng, size, arms):
    return -lognormal(rng, size, arms)


def one_outlier(rng, size, arms):
    """Normal rewards; one of the first arm is as high, one of the last as low, as all others together."""
    rewards = normal(rng, size, arms)
    rewards[rng.integers(size), 0] += size
    rewards[rng.integers(size), -1] -= size
    return rewards


def all_but_tied(rng, size, arms):
    """One column of normal rewards, in a different order for each arm."""
    return rng.permuted(np.tile(normal(rng, size, 1), (1, arms)), axis=0)


SHAPES = {
    shape.__name__: shape
    for shape in (normal, uniform, lognormal, bernoulli, left_skewed, one_outlier, all_but_tied)
}


def make(name, rng, size, arms, spread):
    """Give rewards of a shape, the variance of each arm's rewards summing to `spread`.

    With Gumbel variables or offsets of order 1, a race stops early if `spread` is far below 1. Sums are
    standard normal; those of `all_but_tied` are equal in pairs, and pairs differ by a hair.
    """
    tied = HAIR * (np.arange(arms) // 2)
    log_p = tied if name == "all_but_tied" else rng.normal(size=arms)
    return normalised(SHAPES[name](rng, size, arms), log_p, np.sqrt(spread / size))


def make_independent(name, rng, sizes, spread):
    """Give a list of such columns, one of each size; a single reward is its sum."""
    columns = []
    for size in sizes:
        column = SHAPES[name](rng, size, 1)
        if size > 1:
            column = normalised(column, rng.normal(size=1), np.sqrt(spread / size))
        columns.append(column[:, 0])
    return columns


def factors(rewards):
    """Make a population that computes the rewards of an array, and never prefers to scan it."""
    return gr.factors(
        lambda index, arms: rewards.take(index, axis=0).take(arms, axis=1),
        *rewards.shape,
        reward_range=(rewards.min(axis=0), rewards.max(axis=0)),
    )


def independent(columns):
    """Make a population whose arms are the columns, each of its own length."""
    return gr.independent(
        lambda index, arm: columns[arm][index],
        [len(column) for column in columns],
        reward_range=([c.min() for c in columns], [c.max() for c in columns]),
    )
