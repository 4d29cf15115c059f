"""A pilot: which law proposes, by which weights rows are drawn, and how well both will do.

All rows are read at some points of three laws around the mode: the normal one of Laplace, and two of
Student's with heavier tails, for parameters about which few rows tell. At those points the posterior is
known, and so is how efficient each law is as a proposal: the effective share of its importance weights.
The choices bias nothing, so the points are the same in every run.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import scipy  # its parts load when first used

from gumbelrace.errors import InvalidArgument
from gumbelrace.laplace.heavy_tails import stays_of, too_heavy
from gumbelrace.laplace.mode import Mode
from gumbelrace.laplace.model import Floats, Model
from gumbelrace.methods.penalty import Penalty
from gumbelrace.population.control import row_weights

# Points of each law, and those of the moves from which reading is foreseen.
POINTS, MOVED = 16, 8
SEED = 0
# A law with heavier tails must be better by that much: the shares are estimates.
CLEARLY = 1.1
# So many standard deviations out, log importance weights may be that much larger than at usual points: a
# chain stays there for a dozen steps, but is there once in ten thousand. What is beyond that is taken off
# the logarithm of the effective share.
FAR_OUT, HEAVIER = 4.0, 2.5
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

    def fall_to(self, step: Floats, distance: float) -> float:
        """By how much the log density falls from a usual point to one that is so far out besides."""
        dimension = len(step)
        points = np.zeros((2, dimension))
        points[:, 0] = np.sqrt([dimension - 1.0, dimension - 1.0 + distance**2])
        near, far = self.log_density(points).tolist()
        return float(far - near)


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
    heavy : tuple of str
        Parameters whose tails are too heavy for the law.
    """

    rows: float
    acceptance: float
    effective: float
    misfit: float
    size: int
    ruled_out: float = 0.0
    heavy: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Say it in a line."""
        again = " (blocks read some of them again)" if self.rows > self.size else ""
        return (
            f"{self.rows:,.0f} of {self.size:,} rows a step{again}, {self.acceptance:.0%} accepted, "
            f"{self.effective:.2g} effective draws a step"
        )


class Pilot(NamedTuple):
    """What the pilot has chosen."""

    root: Floats  # L, such that L Lᵀ is the covariance of Laplace's law
    tails: Tails
    weights: Floats | None  # of the rows; None if nothing is left of any
    forecast: Forecast


def step_to_top(mode: Mode) -> Floats:
    """Give the step from the mode to where prior and expansions are largest together.

    They are so at the mode itself, but for expansions that are to fit on average around it.
    """
    gradient = mode.prior.gradient + mode.factors.gradient
    return np.asarray(np.linalg.solve(mode.precision, gradient), np.float64)


def pilot_of(model: Model, mode: Mode) -> Pilot:
    """Read all rows at some points around the top of the expansions, and choose."""
    root, shift = root_of(mode.precision), step_to_top(mode)
    z, spreads = points_of_laws(len(root))
    heights, sizes, ruled_out = read_at(model, mode, shift + z @ root.T, spreads)
    densities = np.stack([law.log_density(z) for law in LAWS])
    misfit, best = misfit_of(heights, densities), len(LAWS) - 1
    if misfit < HOPELESS:
        z_far = points_far_out(root, model.size)
        best = best_law(heights, densities, z_far, heights_at(model, mode, shift + z_far @ root.T))
    law, own = LAWS[best], slice(best * POINTS, (best + 1) * POINTS)
    weights = weights_of(sizes)
    read = foreseen_reading(changes_of(model, mode, shift + moved_points(law, root)), weights)
    forecast = forecast_of(heights[own] - densities[best, own], read, misfit, model.size)
    heavy = tuple(model.names[i] for i in too_heavy(stays_of(model, mode, root, law.fall_to)))
    return Pilot(root, law, weights, forecast._replace(ruled_out=ruled_out, heavy=heavy))


def misfit_of(heights: Floats, densities: Floats) -> float:
    """Give the standard deviation of the log posterior beside the normal law, at the points of that law."""
    if not np.isfinite(heights[:POINTS]).sum() > 1:
        raise InvalidArgument(
            "the log posterior is not finite a standard deviation from the mode: it has an edge there, and "
            "no normal law is close to it; transform the parameters"
        )
    beside_normal = heights[:POINTS] - densities[0, :POINTS]
    return float(np.std(beside_normal[np.isfinite(beside_normal)]))


def best_law(heights: Floats, densities: Floats, z_far: Floats, heights_far: Floats) -> int:
    """Choose a law by the log posterior at its points, and at points far out."""
    far = heights_far - np.stack([law.log_density(z_far) for law in LAWS])
    excess = excesses(heights[:POINTS] - densities[:, :POINTS], far)
    return chosen(efficiencies(heights, densities), excess)


def points_of_laws(dimension: int) -> tuple[Floats, Floats]:
    """Draw points of each law, in units of Laplace's standard deviations; second, how far out each is."""
    rng = np.random.default_rng(SEED)
    spreads = np.array([law.spread(rng) for law in LAWS for _ in range(POINTS)])
    return spreads[:, None] * rng.standard_normal((len(spreads), dimension)), spreads


def moved_points(law: Tails, root: Floats) -> Floats:
    """Draw points of a law, of which each two are a move, as steps from its centre."""
    rng = np.random.default_rng(SEED + 2)
    spreads = np.array([[law.spread(rng)] for _ in range(MOVED)])
    steps: Floats = spreads * rng.standard_normal((MOVED, len(root))) @ root.T
    return steps


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
    """Choose a law by its effective share, less where its tails are too light; the lightest if in doubt.

    With many parameters heavy tails of all of them cost most of the draws, and a chain hardly ever is so
    far out in one: what it would stay there is weighed against that.
    """
    beyond = np.maximum(excess - HEAVIER, 0.0)
    favoured = shares * np.exp(-np.where(np.isnan(beyond), np.inf, beyond))
    lightest = int(np.argmax(beyond == np.nanmin(beyond)))
    favoured[lightest] *= CLEARLY
    return int(np.argmax(favoured)) if favoured.any() else len(shares) - 1


def root_of(precision: Floats) -> Floats:
    """Give the lower triangular root of the inverse of a matrix."""
    # With the last coordinate first, the inverse of a Cholesky factor is the factor of the inverse.
    backwards = np.linalg.cholesky(precision[::-1, ::-1])[::-1, ::-1]
    root: Floats = scipy.linalg.solve_triangular(backwards, np.eye(len(precision)), lower=False).T
    return np.ascontiguousarray(root)


def read_at(model: Model, mode: Mode, steps: Floats, spreads: Floats) -> tuple[Floats, Floats, float]:
    """Give the log posterior at the mode and `steps`, less that at the mode, and mean sizes of residuals.

    Those are of shape (N,), as if all points were as far out as those of the normal law: residuals grow
    like cubes. Third comes the share of the points that rows rule out.
    """
    heights, sizes = np.full(len(steps), -np.inf), np.zeros(model.size)
    ruled_out = 0
    for k, step in enumerate(steps):
        heights[k], left = height_at(model, mode, step)
        if np.isfinite(heights[k]):
            sizes += np.abs(left) / spreads[k] ** 3
        ruled_out += not np.isfinite(left).all()
    finite = max(int(np.isfinite(heights).sum()), 1)
    return heights, sizes / finite, ruled_out / len(steps)


def weights_of(sizes: Floats) -> Floats | None:
    """Give weights of rows from the mean sizes of their residuals, or of how these change, in some moves.

    Few moves tell these better than roots of mean squares: residuals are like cubes of normal numbers.
    """
    return row_weights(np.square(sizes))


def changes_of(model: Model, mode: Mode, steps: Floats) -> list[Floats]:
    """Give by how much residuals change in moves, each between two of the points."""
    left = [height_at(model, mode, step)[1] for step in steps]
    pairs = zip(left[::2], left[1::2], strict=True)
    return [after - before for before, after in pairs if np.isfinite(after - before).all()]


def reading(changes: Iterable[Floats], weights: Floats | None) -> Iterator[tuple[float, float]]:
    """Give how many rows moves read, and the variances of the estimates, as `Penalty` has it."""
    if weights is None:
        return
    penalty, chances = Penalty(), weights / weights.sum()
    for change in changes:
        single = change / chances
        centred = single - change.sum()
        variance, third = (float(abs(np.sum(chances * centred**power))) for power in (2, 3))
        needed = max(variance / penalty.most_variance, float(np.sqrt(third / (3.0 * penalty.error))))
        rows = max(float(penalty.first), needed)
        yield rows, variance / rows


def foreseen_reading(changes: Sequence[Floats] | Floats, weights: Floats | None) -> tuple[float, float]:
    """Give the mean of rows that moves read, and of the variances of their estimates."""
    found = list(reading(changes, weights))
    if not found:
        return float(Penalty().first), 0.0
    size = float(len(changes[0]))  # a move that wants more reads all rows, and knows
    rows, variance = np.mean([(min(r, size), v if r < size else 0.0) for r, v in found], axis=0).tolist()
    return rows, variance


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


def forecast_of(log_weights: Floats, read: tuple[float, float], misfit: float, size: int) -> Forecast:
    """Foresee a chain of independent proposals, from their importance weights and what moves read."""
    rows, variance = read
    noise = min(variance, Penalty().most_variance)
    acceptance = accepted(log_weights) * 2.0 * scipy.special.ndtr(-0.5 * np.sqrt(noise))
    return Forecast(rows, acceptance, acceptance / (2.0 - acceptance), misfit, size)


def reading_by(variance: float, size: int) -> tuple[float, float]:
    """Give how many rows a move reads, and the variance of its estimate, from that of one row's."""
    penalty = Penalty()
    rows = min(max(float(penalty.first), variance / penalty.most_variance), float(size))
    return rows, variance / rows


def accepted(log_weights: Floats) -> float:
    """Give the share of independent proposals that a chain accepts, from importance weights of some."""
    chances = np.exp(log_weights - scipy.special.logsumexp(log_weights))
    with np.errstate(invalid="ignore"):
        ratios = np.exp(np.minimum(0.0, log_weights[None, :] - log_weights[:, None]))
    others = ~np.eye(len(chances), dtype=bool)
    of_each = np.sum(np.where(others, np.nan_to_num(ratios), 0.0), axis=1) / (len(chances) - 1)
    return float(chances @ of_each)
