"""The confidence radius of lil'UCB and its parameters (Jamieson, Malloy, Nowak & Bubeck, COLT 2014).

For rewards that are sub-Gaussian with scale σ, the upper confidence bound after T rewards is

    μ̂ + (1 + β)(1 + √ε) √(2 σ² (1 + ε) log(log((1 + ε) T)/δ) / T),

and an arm is returned once it has been read λ times as often as all others together.
"""

from typing import NamedTuple

import numpy as np

from gumbelrace.core.jit import part


class Lil(NamedTuple):
    """Parameters of lil'UCB; `confidence` is the δ inside the logarithm."""

    epsilon: float
    beta: float
    confidence: float
    ratio: float  # λ


def heuristic(delta: float, arms: int) -> Lil:
    """Give the parameters that work well in practice and that no theorem covers."""
    return Lil(0.0, 0.5, delta / 5.0, 1.0 + 10.0 / arms)


# ε and β of the guaranteed parameters, and the c of the theorem: (2+ε)/ε (1/log(1+ε))^(1+ε).
EPSILON, BETA = 0.01, 1.0
C = (2.0 + EPSILON) / EPSILON * (1.0 / np.log1p(EPSILON)) ** (1.0 + EPSILON)


def most_guaranteed() -> float:
    """Give the δ below which Theorem 2 of the lil'UCB paper holds, which asks that δ' < log(1+ε)/(e c)."""
    largest = np.log1p(EPSILON) / np.e  # of c δ'
    # Rounded down, so that the number as it is printed is the number that is compared.
    return float(np.floor(1e5 * (4.0 * np.sqrt(largest) + 4.0 * largest)) / 1e5)


def guaranteed(delta: float) -> Lil:
    """Give parameters for which the error is at most `delta` by Theorem 2 of the lil'UCB paper.

    The theorem's error is 4√(c δ') + 4 c δ'; it is solved for δ'.
    """
    epsilon, beta = EPSILON, BETA
    inner = (np.sqrt(1.0 + delta) - 1.0) ** 2 / (4.0 * C)
    weight, log_term = ((2.0 + beta) / beta) ** 2, np.log(1.0 / inner)
    ratio = weight * (1.0 + np.log(2.0 * np.log(weight / inner)) / log_term)
    ratio /= 1.0 - inner - np.sqrt(inner**0.25 * log_term)
    return Lil(epsilon, beta, float(inner), float(ratio))


@part
def radius(lil: Lil, scale: float, taken: int) -> float:
    """Half-width of the confidence bound of a mean of `taken` rewards of scale σ."""
    growth = np.log((1.0 + lil.epsilon) * taken) / lil.confidence
    if growth <= 1.0:
        return np.inf
    # The scale is not squared: of small rewards nothing would be left.
    inner = 2.0 * (1.0 + lil.epsilon) * np.log(growth) / taken
    return scale * (1.0 + lil.beta) * (1.0 + np.sqrt(lil.epsilon)) * np.sqrt(inner)
