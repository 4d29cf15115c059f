"""The empirical Bernstein-Serfling bound (paper, Eqs. 5-6; Bardenet & Maillard 2015)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gumbelrace.bounds.base import Bound, Coefficients, Floats

KAPPA = 7.0 / 3.0 + 3.0 / np.sqrt(2.0)


@dataclass(frozen=True)
class Serfling(Bound):
    """Bound that holds for any bounded rewards drawn without replacement; wide, but proved.

    Notes
    -----
    G = σ̂ √(2 ρ_T log(5/δ') / T) + κ C log(5/δ') / T with δ' = δ / (number of looks) and
    ρ_T = 1 - (T-1)/N for T ≤ N/2, else (1 - T/N)(1 + 1/T).
    """

    first = 2
    needs_range = True
    assumption = None
    adds_in_squares = False

    def coefficients(self, delta: float, looks: NDArray[np.int64], size: int) -> Coefficients:
        """Give √(2 ρ_T log(5/δ')/T) and κ log(5/δ')/T."""
        return self.any_schedule(delta, looks.astype(np.float64), np.array(size, np.float64))

    def any_schedule(self, delta: float, looks: Floats, sizes: Floats) -> Coefficients:
        """Give the same: the union bound over looks holds for any schedule."""
        size = np.maximum(sizes, 1.0)
        looks = np.maximum(looks, 1.0)
        log_term = np.log(5.0 * max(len(looks), 1) / delta)
        rho = np.where(
            looks <= size / 2,
            1.0 - (looks - 1.0) / size,
            (1.0 - looks / size) * (1.0 + 1.0 / looks),
        )
        return Coefficients(np.sqrt(2.0 * rho * log_term / looks), KAPPA * log_term / looks)
