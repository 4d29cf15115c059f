"""Normal laws of several models, for compiled code: standardised values, and parameters from them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy  # its parts load when first used
from numpy.typing import NDArray

from gumbelrace.core.jit import part
from gumbelrace.kernels.pseudopriors import NormalPseudoprior
from gumbelrace.population.base import Floats

Indices = NDArray[np.int64]


class Laws(NamedTuple):
    """Normal laws of all models, as arrays with an entry for each."""

    dimensions: Indices
    means: Floats
    roots: Floats
    log_volumes: Floats
    limits: Floats  # of the squared length of a standardised parameter; beyond, decisions are exact


def laws_of(pseudopriors: Sequence[NormalPseudoprior], guard: float | None) -> Laws:
    """Put laws of different dimensions side by side."""
    dimensions = np.array([len(law.mean) for law in pseudopriors])
    count, width = len(dimensions), int(dimensions.max())
    means, roots = np.zeros((count, width)), np.zeros((count, width, width))
    for k, law in enumerate(pseudopriors):
        means[k, : dimensions[k]] = law.mean
        roots[k, : dimensions[k], : dimensions[k]] = law.root
    log_volumes = np.array([law.log_volume for law in pseudopriors])
    return Laws(dimensions, means, roots, log_volumes, limits_of(dimensions, guard))


def limits_of(dimensions: Indices, guard: float | None) -> Floats:
    """Give the squared radius of the ball that holds a share `guard` of a standard normal law."""
    if guard is None:
        return np.full(len(dimensions), np.inf)
    limits: Floats = scipy.special.chdtri(dimensions, 1.0 - guard)
    return limits


@part
def standardise(laws: Laws, model: int, x: Floats, z: Floats) -> float:
    """Find z such that x = mean + L z; return its squared length."""
    squared = 0.0
    for i in range(laws.dimensions[model]):
        left = x[i] - laws.means[model, i]
        for j in range(i):
            left -= laws.roots[model, i, j] * z[j]
        z[i] = left / laws.roots[model, i, i]
        squared += z[i] * z[i]
    return squared


@part
def put(laws: Laws, model: int, z: Floats, x: Floats) -> None:
    """Put mean + L z into x."""
    for i in range(laws.dimensions[model]):
        total = laws.means[model, i]
        for j in range(i + 1):
            total += laws.roots[model, i, j] * z[j]
        x[i] = total
