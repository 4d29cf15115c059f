"""G_Normal (paper, Eq. 8): the bound for means that behave like a Gaussian walk."""

from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when first used
from numpy.typing import NDArray

from gumbelrace.bounds.base import Bound, Coefficients, Floats
from gumbelrace.walk import b_normal


@dataclass(frozen=True)
class Normal(Bound):
    """Bound that takes means of T rewards without replacement for a Gaussian walk.

    It is sharp, and rests on the central limit theorem: a skewed difference of two arms or one large
    outlier breaks it (`gumbelrace.audit` shows by how much).

    Notes
    -----
    G = σ̂ / √T · (1 - (T-1)/(N-1))^½ · B, with B from the one-sided reading of the paper's Eq. 5
    (`gumbelrace.b_normal`): its printed table holds the two-sided one, which for more than two arms is
    too small.
    """

    first = 50
    needs_range = False
    assumption = "means of the rewards read are normally distributed"
    adds_in_squares = True

    def coefficients(self, delta: float, looks: NDArray[np.int64], size: int) -> Coefficients:
        """Give B·(1 - (T-1)/(N-1))^½/√T with B of the Gaussian walk, and zeros."""
        level = b_normal(delta, float(looks[0]) / size) if len(looks) else 0.0
        return _scaled(level, looks.astype(np.float64), np.float64(size))

    def any_schedule(self, delta: float, looks: Floats, sizes: Floats) -> Coefficients:
        """Give the same with B = Φ⁻¹(1 - δ/looks), a union bound (paper, Eq. 12)."""
        return _scaled(float(-scipy.special.ndtri(delta / max(len(looks), 1))), looks, sizes)


def _scaled(level: float, looks: Floats, sizes: Floats | np.float64) -> Coefficients:
    left = 1.0 - (looks - 1.0) / np.maximum(sizes - 1.0, 1.0)
    scale = np.sqrt(np.maximum(left, 0.0) / np.maximum(looks, 1.0))
    return Coefficients(level * scale, np.zeros_like(scale))
