"""Which variance a race estimates: of the difference of two arms, or of each arm alone."""

from dataclasses import dataclass

from gumbelrace.errors import InvalidArgument

# Weight, in rewards, of the variance of all arms in that of an arm with rows of its own.
SHRINK = 3.0


@dataclass(frozen=True)
class Paired:
    """Variance of the difference of two arms over the same rows: G(δ/(D-1), T, σ̂_xi, C_x + C_i).

    Rows that are good for one arm are often good for the other, and the difference varies less. Only
    pairs with the leader are ever needed: O(D·T) a look.
    """

    paired = True
    shrink = SHRINK

    def errors(self, arms: int) -> int:
        """Count the events among which δ is divided."""
        return max(arms - 1, 1)


@dataclass(frozen=True)
class Marginal:
    """Variance of each arm by itself: G(δ/D, T, σ̂_x, C_x) + G(δ/D, T, σ̂_i, C_i).

    Parameters
    ----------
    shrink : float
        For arms with rows of their own, whose first look is at three rewards: weight, in rewards, of the
        variance of all arms in that of each. At 0 it is the paper's, which errs where three rewards happen
        to be equal or almost: two equal ones are taken to say that all are.
    """

    shrink: float = SHRINK
    paired = False

    def __post_init__(self) -> None:
        if not 0.0 <= self.shrink < float("inf"):
            raise InvalidArgument(f"shrink is {self.shrink}; it must be finite and at least 0")

    def errors(self, arms: int) -> int:
        """Count the events among which δ is divided."""
        return arms
