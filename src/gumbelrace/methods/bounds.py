"""Bounds G(δ, T, σ̂, C): how far an estimated mean may lie above the true one (paper, Eq. 5).

Both bounds of the paper have the form a_t·σ̂ + c_t·C, with numbers a_t and c_t that depend on the look
alone. A new bound is a class that gives these two. `Paired` and `Marginal` say which σ̂ is meant: of the
difference of two arms, or of each arm alone.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import scipy  # its parts load when first used
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument
from gumbelrace.methods.gaussian_walk import b_normal
from gumbelrace.population.base import checked_flag

Floats = NDArray[np.float64]

# κ of the empirical Bernstein-Serfling bound.
KAPPA = 7.0 / 3.0 + 3.0 / np.sqrt(2.0)
# Weight, in rewards, of the variance of all arms in that of an arm with rows of its own.
SHRINK = 3.0


class Coefficients(NamedTuple):
    """a_t and c_t for each look."""

    per_deviation: Floats
    per_range: Floats


class Bound(ABC):
    """A bound on the error of a mean that holds at all looks together."""

    #: Rows of the first look, m^(1), if the user does not say.
    first: int
    #: Whether the bound needs to know how large rewards can be.
    needs_range: bool
    #: What the bound rests on; None if it is proved for all bounded rewards.
    assumption: str | None
    #: Whether the errors of two independent means add in squares (else they just add).
    adds_in_squares: bool

    @abstractmethod
    def coefficients(self, delta: float, looks: NDArray[np.int64], size: int) -> Coefficients:
        """Give a_t and c_t at `looks` rows of `size`, for an error `delta` over all of them.

        `looks` are the rows read at each look before the last, each twice the one before.
        """

    @abstractmethod
    def any_schedule(self, delta: float, looks: Floats, sizes: Floats) -> Coefficients:
        """Give the same for any schedule: `looks[t, i]` rows of the `sizes[i]` of each arm."""


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


@dataclass(frozen=True)
class Normal(Bound):
    """Bound that takes means of T rewards without replacement for a Gaussian walk.

    It is sharp, and rests on the central limit theorem: a skewed difference of two arms or one large
    outlier breaks it (`gumbelrace.audit` shows by how much).

    Parameters
    ----------
    student : bool
        Whether to allow for the error of σ̂ itself, by Student's t. False is the paper's formula, which
        takes σ̂ for σ: from a first look at 8 normal rewards on, it errs 7 times as often as δ = 0.001 says.

    Notes
    -----
    With B from the one-sided reading of the paper's Eq. 5 (`b_normal`; its printed table holds
    the two-sided one, which for more than two arms is too small), the paper has

        G = B · σ̂ / √T · (1 - (T-1)/(N-1))^½,    σ̂² = SS/T,

    where SS are the squared deviations from the mean. For normal rewards the mean's distance from that of
    all N rewards, over the unbiased (SS/(T-1) · (1/T - 1/N))^½, has Student's distribution with T - 1
    degrees of freedom. So at each look B gives way to the quantile of the same tail, t_T = F_{T-1}⁻¹(Φ(B)):

        G = t_T · σ̂ · ((1 - T/N)/(T-1))^½.

    Arms that have rows of their own keep the paper's factor: their variance is shrunk towards that of all
    arms, and has no Student distribution.
    """

    student: bool = field(default=True, kw_only=True)
    first = 50
    needs_range = False
    assumption = "means of the rewards read are normally distributed"
    adds_in_squares = True

    def __post_init__(self) -> None:
        checked_flag(self.student, "student")

    def coefficients(self, delta: float, looks: NDArray[np.int64], size: int) -> Coefficients:
        """Give what σ̂ is multiplied with at each look, and zeros."""
        level = b_normal(delta, float(looks[0]) / size) if len(looks) else 0.0
        if not self.student:
            return _scaled(level, looks.astype(np.float64), np.float64(size))
        freedom = looks.astype(np.float64) - 1.0
        per_deviation = _quantiles(level, freedom) * np.sqrt((1.0 - looks / size) / freedom)
        return Coefficients(per_deviation, np.zeros(len(looks)))

    def any_schedule(self, delta: float, looks: Floats, sizes: Floats) -> Coefficients:
        """Give the paper's factor with B = Φ⁻¹(1 - δ/looks), a union bound (paper, Eq. 27)."""
        return _scaled(float(-scipy.special.ndtri(delta / max(len(looks), 1))), looks, sizes)


def _quantiles(level: float, freedom: Floats) -> Floats:
    """Give the quantiles of Student's distributions that have the tail of the normal one beyond `level`."""
    tail = float(scipy.special.ndtr(-abs(level)))
    # Beyond the range of floats the quantile is infinite, with a sign that differs between releases.
    quantiles: Floats = np.abs(scipy.special.stdtrit(freedom, tail))
    return np.copysign(quantiles, level)


def _scaled(level: float, looks: Floats, sizes: Floats | np.float64) -> Coefficients:
    left = 1.0 - (looks - 1.0) / np.maximum(sizes - 1.0, 1.0)
    scale = np.sqrt(np.maximum(left, 0.0) / np.maximum(looks, 1.0))
    return Coefficients(level * scale, np.zeros_like(scale))


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
