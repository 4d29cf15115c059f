"""A pilot: which law proposes, by which weights rows are drawn, and how well both will do.

All rows are read at some points of three laws around the mode: the normal one of Laplace, and two of
Student's with heavier tails, for parameters about which few rows tell. At those points the posterior is
known, and so is how efficient each law is as a proposal: the effective share of its importance weights.
The choices bias nothing, so the points are the same in every run.
"""

from typing import NamedTuple

import numpy as np
import scipy  # its parts load when first used

from gumbelrace.errors import InvalidArgument
from gumbelrace.laplace.mode import Mode
from gumbelrace.laplace.model import Floats, Model
from gumbelrace.methods.penalty import Penalty
from gumbelrace.population.control import row_weights

# Points of each law.
POINTS = 16
SEED = 0
# A law with heavier tails must be better by that much: the shares are estimates.
CLEARLY = 1.1
# So many standard deviations out, log importance weights may be that much larger than at usual points.
FAR_OUT, HEAVIER = 4.0, 1.5
# Parameters that are tried far out: as many as read about so many rows, and no fewer than that.
AFFORDABLE, FEWEST = 2e7, 4


# With so large a misfit no law will do, and none is looked for.
HOPELESS = 3.0


class Tails(NamedTuple):
    """Student's t law around the mode, in units of Laplace's standard deviations."""

    freedom: float
    scale: float

    def spread(self, rng: np.random.Generator) -> float:
        """Draw the length by which a standard normal vector is multiplied."""
        if self.freedom == np.inf:
            return self.scale
        return self.scale * float(np.sqrt(0.5 * self.freedom / rng.standard_gamma(0.5 * self.freedom)))

    def log_density(self, z: Floats) -> Floats:
        """Give the log density at points, of shape (points, d)."""
        d, squared = z.shape[1], np.sum(z * z, axis=1) / self.scale**2
        if self.freedom == np.inf:
            height, volume = -0.5 * squared, 0.5 * d * np.log(2.0 * np.pi)
        else:
            half, whole = 0.5 * self.freedom, 0.5 * (self.freedom + d)
            height = -whole * np.log1p(squared / self.freedom)
            volume = scipy.special.gammaln(half) - scipy.special.gammaln(whole)
            volume += 0.5 * d * np.log(np.pi * self.freedom)
        densities: Floats = height - volume - d * np.log(self.scale)
        return densities


NORMAL = Tails(np.inf, 1.0)
LAWS = NORMAL, Tails(10.0, 1.1), Tails(5.0, 1.2)


class Forecast(NamedTuple):
    """What the pilot expects of a chain whose proposals are independent draws of the law.

    Attributes
    ----------
    rows : float
        Rows that a step reads.
    acceptance : float
        Share of the proposals that are accepted.
    effective : float
        Effective draws a step.
    misfit : float
        Standard deviation of the difference between the log posterior and the normal law: of the summed
        residuals, and of the prior's.
    size : int
        Number of rows, N.
    ruled_out : float
        Share of the law's points at which some log factor is not finite: rows that rule points out.
    """

    rows: float
    acceptance: float
    effective: float
    misfit: float
    size: int
    ruled_out: float = 0.0

    def __str__(self) -> str:
        """Say it in a line."""
        return (
            f"{self.rows:,.0f} of {self.size:,} rows a step, {self.acceptance:.0%} accepted, "
            f"{self.effective:.2g} effective draws a step"
        )


class Pilot(NamedTuple):
    """What the pilot has chosen."""

    root: Floats  # L, such that L Lᵀ is the covariance of Laplace's law
    tails: Tails
    weights: Floats | None  # of the rows; None if nothing is left of any
    forecast: Forecast


def pilot_of(model: Model, mode: Mode) -> Pilot:
    """Read all rows at some points around the mode, and choose."""
    root = root_of(mode.precision)
    z, z_far = points_of_laws(len(root)), points_far_out(root, model.size)
    heights, squares, ruled_out = read_at(model, mode, z @ root.T)
    if not np.isfinite(heights[:POINTS]).sum() > 1:
        raise InvalidArgument(
            "the log posterior is not finite a standard deviation from the mode: it has an edge there, and "
            "no normal law is close to it; transform the parameters"
        )
    densities = np.stack([law.log_density(z) for law in LAWS])
    beside_normal = heights[:POINTS] - densities[0, :POINTS]
    misfit = float(np.std(beside_normal[np.isfinite(beside_normal)]))
    best = len(LAWS) - 1
    if misfit < HOPELESS:
        far = heights_at(model, mode, z_far @ root.T) - np.stack([law.log_density(z_far) for law in LAWS])
        excess = excesses(heights[:POINTS] - densities[:, :POINTS], far)
        best = chosen(efficiencies(heights, densities), excess)
    own = slice(best * POINTS, (best + 1) * POINTS)
    forecast = forecast_of(heights[own] - densities[best, own], squares[best], misfit)
    return Pilot(root, LAWS[best], row_weights(squares[best]), forecast._replace(ruled_out=ruled_out))


def points_of_laws(dimension: int) -> Floats:
    """Draw points of each law, in units of Laplace's standard deviations."""
    rng = np.random.default_rng(SEED)
    normal = rng.standard_normal((POINTS, dimension))
    return np.concatenate([normal * [[law.spread(rng)] for _ in range(POINTS)] for law in LAWS])


def points_far_out(root: Floats, size: int) -> Floats:
    """Give points that are usual but for one parameter, which is far out on either side.

    A posterior is seldom skewed in all directions: points drawn at random hardly show it where it is.
    """
    d = len(root)
    parameters = np.unique(np.linspace(0, d - 1, max(min(d, int(AFFORDABLE / size)), FEWEST)).astype(int))
    along = root[parameters] / np.linalg.norm(root[parameters], axis=1)[:, None]
    usual = np.random.default_rng(SEED + 1).standard_normal(along.shape)
    usual -= np.sum(usual * along, axis=1)[:, None] * along
    return np.concatenate([usual + FAR_OUT * along, usual - FAR_OUT * along])


def excesses(usual: Floats, far: Floats) -> Floats:
    """By how much log importance weights of each law far out exceed those of usual points."""
    at_usual = np.nanmedian(np.where(np.isfinite(usual), usual, np.nan), axis=1)
    found: Floats = np.nanmax(far, axis=1) - at_usual
    return found


def chosen(shares: Floats, excess: Floats) -> int:
    """Choose a law: the most efficient of those whose tails are heavy enough, or the heaviest."""
    fair = np.flatnonzero(excess <= HEAVIER)
    if len(fair) == 0:
        return len(shares) - 1
    favoured = shares * np.where(np.arange(len(shares)) == fair[0], CLEARLY, 1.0)
    return int(fair[np.argmax(favoured[fair])])


def root_of(precision: Floats) -> Floats:
    """Give the lower triangular root of the inverse of a matrix."""
    # With the last coordinate first, the inverse of a Cholesky factor is the factor of the inverse.
    backwards = np.linalg.cholesky(precision[::-1, ::-1])[::-1, ::-1]
    root: Floats = scipy.linalg.solve_triangular(backwards, np.eye(len(precision)), lower=False).T
    return np.ascontiguousarray(root)


def read_at(model: Model, mode: Mode, steps: Floats) -> tuple[Floats, Floats, float]:
    """Give the log posterior at the mode and `steps`, less that at the mode, and mean squares of residuals.

    Those are of shape (laws, N): of the differences between two points of a law, row by row. Third comes
    the share of the points that rows rule out.
    """
    heights, squares = np.full(len(steps), -np.inf), np.zeros((len(LAWS), model.size))
    counts, ruled_out = np.zeros(len(LAWS)), 0
    for k, step in enumerate(steps):
        heights[k], left = height_at(model, mode, step)
        if np.isfinite(heights[k]):
            squares[k // POINTS] += 2.0 * left**2
            counts[k // POINTS] += 1
        ruled_out += not np.isfinite(left).all()
    return heights, squares / np.maximum(counts, 1.0)[:, None], ruled_out / len(steps)


def heights_at(model: Model, mode: Mode, steps: Floats) -> Floats:
    """Give the log posterior at the mode and `steps`, less that at the mode."""
    return np.array([height_at(model, mode, step)[0] for step in steps])


def height_at(model: Model, mode: Mode, step: Floats) -> tuple[float, Floats]:
    """Give the log posterior at the mode and `step`, less that at the mode, and the rows' residuals.

    Those are not read, and 0, where the prior rules the point out.
    """
    prior = model.log_prior(mode.theta + step)
    left = model.residuals(mode.theta, step) if np.isfinite(prior) else np.zeros(model.size)
    height = prior - mode.prior.value + mode.factors.change(step) + float(left.sum())
    return (height if np.isfinite(height) else -np.inf), left


def efficiencies(heights: Floats, densities: Floats) -> Floats:
    """Give the effective share of each law's importance weights, from the points of all laws together."""
    together = np.logaddexp.reduce(densities, axis=0) - np.log(len(densities))
    first = scipy.special.logsumexp(heights - together)
    second = scipy.special.logsumexp(2.0 * heights - densities - together, axis=1)
    shares: Floats = np.exp(2.0 * first - second) / heights.size
    return shares


def forecast_of(log_weights: Floats, squares: Floats, misfit: float) -> Forecast:
    """Foresee a chain of independent proposals, from their importance weights and the rows' residuals."""
    weights, penalty = row_weights(squares), Penalty()
    variance = 0.0 if weights is None else float(weights.sum() * (squares / weights).sum())
    rows = min(max(float(penalty.first), variance / penalty.most_variance), float(len(squares)))
    noise = min(variance / rows, penalty.most_variance)
    acceptance = accepted(log_weights) * 2.0 * scipy.special.ndtr(-0.5 * np.sqrt(noise))
    return Forecast(rows, acceptance, acceptance / (2.0 - acceptance), misfit, len(squares))


def accepted(log_weights: Floats) -> float:
    """Give the share of independent proposals that a chain accepts, from importance weights of some."""
    chances = np.exp(log_weights - scipy.special.logsumexp(log_weights))
    with np.errstate(invalid="ignore"):
        ratios = np.exp(np.minimum(0.0, log_weights[None, :] - log_weights[:, None]))
    others = ~np.eye(len(chances), dtype=bool)
    of_each = np.sum(np.where(others, np.nan_to_num(ratios), 0.0), axis=1) / (len(chances) - 1)
    return float(chances @ of_each)
