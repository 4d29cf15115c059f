"""Which variance a race estimates: of the difference of two arms, or of each arm alone."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Paired:
    """Variance of the difference of two arms over the same rows: G(δ/(D-1), T, σ̂_xi, C_x + C_i).

    Rows that are good for one arm are often good for the other, and the difference varies less. Only
    pairs with the leader are ever needed: O(D·T) a look.
    """

    paired = True

    def errors(self, arms: int) -> int:
        """Count the events among which δ is divided."""
        return max(arms - 1, 1)


@dataclass(frozen=True)
class Marginal:
    """Variance of each arm by itself: G(δ/D, T, σ̂_x, C_x) + G(δ/D, T, σ̂_i, C_i)."""

    paired = False

    def errors(self, arms: int) -> int:
        """Count the events among which δ is divided."""
        return arms
