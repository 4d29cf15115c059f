"""G_Normal (paper, Eq. 8), for means that behave like a Gaussian walk and an estimated deviation."""

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

    Parameters
    ----------
    student : bool
        Whether to allow for the error of σ̂ itself, by Student's t. False is the paper's formula, which
        takes σ̂ for σ: from a first look at 8 normal rewards on, it errs 7 times as often as δ = 0.001 says.

    Notes
    -----
    With B from the one-sided reading of the paper's Eq. 5 (`gumbelrace.b_normal`; its printed table holds
    the two-sided one, which for more than two arms is too small), the paper has

        G = B · σ̂ / √T · (1 - (T-1)/(N-1))^½,    σ̂² = SS/T,

    where SS are the squared deviations from the mean. For normal rewards the mean's distance from that of
    all N rewards, over the unbiased (SS/(T-1) · (1/T - 1/N))^½, has Student's distribution with T - 1
    degrees of freedom. So at each look B gives way to the quantile of the same tail, t_T = F_{T-1}⁻¹(Φ(B)):

        G = t_T · σ̂ · ((1 - T/N)/(T-1))^½.

    Arms that have rows of their own keep the paper's factor: their variance is shrunk towards that of all
    arms, and has no Student distribution.
    """

    student: bool = True
    first = 50
    needs_range = False
    assumption = "means of the rewards read are normally distributed"
    adds_in_squares = True

    def coefficients(self, delta: float, looks: NDArray[np.int64], size: int) -> Coefficients:
        """Give what σ̂ is multiplied with at each look, and zeros."""
        level = b_normal(delta, float(looks[0]) / size) if len(looks) else 0.0
        if not self.student:
            return _scaled(level, looks.astype(np.float64), np.float64(size))
        freedom = looks.astype(np.float64) - 1.0
        per_deviation = _quantiles(level, freedom) * np.sqrt((1.0 - looks / size) / freedom)
        return Coefficients(per_deviation, np.zeros(len(looks)))

    def any_schedule(self, delta: float, looks: Floats, sizes: Floats) -> Coefficients:
        """Give the paper's factor with B = Φ⁻¹(1 - δ/looks), a union bound (paper, Eq. 12)."""
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
