"""How far is far: the margin beyond which neither errors of estimates nor noise change an answer."""

import numpy as np

from gumbelrace.core.jit import part

# Standard deviations that a normal variable exceeds with a chance of 1e-6.
FAR = 4.75


@part
def far_after(rows: float) -> float:
    """Give how many standard deviations are far if estimated from so many rows (Student's t)."""
    return FAR * (1.0 + (FAR * FAR + 1.0) / (4.0 * rows))


@part
def reach_of_skewness(third: float, variance: float) -> float:
    """Give by how much further skewness reaches, by the cumulants of an error (Cornish & Fisher 1938)."""
    return (2.0 * FAR * FAR + 1.0) / 6.0 * abs(third) / variance if variance > 0.0 else 0.0


@part
def margin(rows: float, variance: float, third: float) -> float:
    """Give how far an estimate from so many rows may be off, at most, by its cumulants."""
    return far_after(rows) * np.sqrt(variance) + reach_of_skewness(third, variance)
