"""The pilot of a posterior given a table: which law proposes, how rows are weighed, and how long a pool is.

The subsample plans it; the pass that draws the pool reads all rows at the same points, and decides.
"""

from dataclasses import dataclass

import numpy as np

from gumbelrace.laplace.heavy_tails import Suspects, stays_by, suspects_of_table, too_heavy
from gumbelrace.laplace.mode import Mode
from gumbelrace.laplace.model import Floats, Indices
from gumbelrace.laplace.pilot import (
    HEAVIER,
    HOPELESS,
    LAWS,
    POINTS,
    Forecast,
    best_law,
    excesses,
    forecast_of,
    misfit_of,
    points_far_out,
    points_of_laws,
    reading_by,
    root_of,
)
from gumbelrace.laplace.row_pool import TOO_LONG, Drawing, Trial, Weighing, floor_of
from gumbelrace.laplace.table_model import TableModel
from gumbelrace.methods.penalty import MARGIN, PILOT_ROWS

# A pool is to last for so many effective draws, and takes so many bytes at most; no fewer rows are drawn.
EFFECTIVE, POOL_BYTES, FEWEST = 25_000, 2**28, 16_384
# With so small a misfit, and tails that are heavy enough, there is no better law than the normal one.
QUIET = 0.25
# Rows of the subsample that are read at all points.
PLANNED = 2**15
# Rows of a pool that are not used, since a decision may not begin with few left, and by how much a pool may
# be shorter than was foreseen.
SPARE = 1.25


@dataclass(frozen=True)
class Points:
    """Points at which all rows are read, in units of Laplace's standard deviations."""

    root: Floats
    of_laws: Floats
    far: Floats
    suspects: Suspects

    @property
    def steps(self) -> Floats:
        """All of them, as steps from the mode."""
        near = np.concatenate([self.of_laws, self.far]) @ self.root.T
        return np.concatenate([near, *self._in_tails])

    @property
    def _in_tails(self) -> list[Floats]:
        """Steps along parameters whose tails may be heavy, as far as rows tell of them."""
        return [self.suspects.steps(i, sign) for i in self.suspects.some for sign in (1.0, -1.0)]

    @property
    def laws(self) -> Indices:
        """The law that each belongs to; -1: none."""
        own = np.repeat(np.arange(len(self.of_laws) // POINTS), POINTS)
        return np.concatenate([own, np.full(len(self.steps) - len(own), -1)])

    @property
    def of_normal(self) -> "Points":
        """Those of the normal law, and those far out."""
        return Points(self.root, self.of_laws[:POINTS], self.far, self.suspects)

    def priors(self, model: TableModel, mode: Mode) -> Floats:
        """Give the log prior at each, less that at the mode."""
        return np.array([model.log_prior(mode.theta + step) for step in self.steps]) - mode.prior.value


def points_around(mode: Mode, size: int) -> Points:
    """Give the points of the laws, some far out, and more where tails may be heavy."""
    root = root_of(mode.precision)
    own, far = points_of_laws(len(root))[0], points_far_out(root, size)
    return Points(root, own, far, suspects_of_table(mode, root, size))


@dataclass(frozen=True)
class Found:
    """What a trial has shown: the law that proposes, and what is expected of a chain."""

    law: int
    forecast: Forecast
    settled: bool  # whether points of no other law are needed


def judged(model: TableModel, mode: Mode, points: Points, trial: Trial, times: float) -> Found:
    """Judge a trial; its sums count so many times, if it is one of a subsample."""
    priors = points.priors(model, mode)
    known = np.array([mode.factors.change(step) for step in points.steps])
    with np.errstate(invalid="ignore"):
        heights = priors + known + times * trial.left
    heights = np.where(np.isfinite(heights), heights, -np.inf)
    heights, count = heights[: len(points.of_laws) + len(points.far)], len(points.of_laws)
    densities = np.stack([law.log_density(points.of_laws) for law in LAWS])
    misfit = misfit_of(heights[:count], densities)
    if count == POINTS:
        best, settled = 0, misfit < QUIET and is_heavy_enough(heights, densities, points.far)
    else:
        best, settled = len(LAWS) - 1, True
        if misfit < HOPELESS:
            best = best_law(heights[:count], densities, points.far, heights[count:])
    own = slice(best * POINTS, (best + 1) * POINTS)
    variance = times**2 * trial.weights[0] * trial.weights[1 + best]
    forecast = forecast_of(
        heights[own] - densities[best, own], reading_by(variance, model.size), misfit, model.size
    )
    ruled_out = float(np.mean(trial.ruled_out[:count] > 0.0))
    heavy = heavy_parameters(model, mode, points, times * trial.left, best)
    return Found(best, forecast._replace(ruled_out=ruled_out, heavy=heavy), settled)


def heavy_parameters(
    model: TableModel, mode: Mode, points: Points, left: Floats, law: int
) -> tuple[str, ...]:
    """Name the parameters whose tails are too heavy for a law, by what expansions leave at all points."""
    known = {step.tobytes(): float(sum_) for step, sum_ in zip(points.steps, left, strict=True)}
    stays = stays_by(points.suspects, model, mode, lambda step: known[step.tobytes()], LAWS[law].fall_to)
    return tuple(model.names[i] for i in too_heavy(stays))


def is_heavy_enough(heights: Floats, densities: Floats, z_far: Floats) -> bool:
    """Whether the normal law's tails are heavy enough, by the log posterior at its points and far out."""
    far = heights[POINTS:] - np.stack([law.log_density(z_far) for law in LAWS])
    return bool(excesses(heights[:POINTS] - densities, far)[0] <= HEAVIER)


def is_quiet(model: TableModel, mode: Mode, points: Points) -> bool:
    """Whether the subsample says that the normal law will do, so that other laws need not be tried."""
    few = model.part_of_few(PLANNED)
    trial, _ = weighing_at(model, mode, points, 0, 1.0).tried(few)
    return judged(model, mode, points, trial, model.size / few.size).settled


def weighing_at(model: TableModel, mode: Mode, points: Points, law: int, floor: float) -> Weighing:
    """Weigh rows by the points of a law that the prior allows."""
    allowed = np.isfinite(points.priors(model, mode))
    return Weighing(mode.theta, points.steps, np.where(allowed, points.laws, -1), law, floor)


def planned(model: TableModel, mode: Mode, points: Points, pool_rows: int | None) -> Drawing:
    """Plan a pool by what the subsample says of the law, of weights and of the rows that chains read."""
    few = model.part_of_few(PLANNED)
    times = model.size / few.size
    weighing = weighing_at(model, mode, points, 0, 1.0)
    trial, _ = weighing.tried(few)
    law = judged(model, mode, points, trial, times).law
    weighing = weighing._replace(law=law, floor=floor_of(trial.sizes[law] / few.size))
    trial, weights = weighing.tried(few)
    found = judged(model, mode, points, trial, times)
    row_bytes = 8 + sum(array.nbytes / max(len(array), 1) for array in model.subsample)
    longest = pool_rows or int(POOL_BYTES / row_bytes)
    rows = pool_rows or min(rows_for(found.forecast), longest)
    rate = rows / (times * float(weights.sum()))
    return Drawing(model.scanner, model.example, weighing, rate, int(TOO_LONG * rows), longest)


def rows_for(forecast: Forecast) -> int:
    """Give how many rows a pool needs for `EFFECTIVE` draws."""
    a_step = PILOT_ROWS + MARGIN * forecast.rows
    wanted = SPARE * a_step * EFFECTIVE / max(forecast.effective, 1e-3)
    return int(max(wanted, FEWEST))
