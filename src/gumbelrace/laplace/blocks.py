"""Blocks of parameters, for posteriors with so many that a draw of all at once is seldom accepted.

Parameters are ordered so that those on which few others depend (effects of groups) come first, and those of
all rows last. With R the Cholesky factor of the precision in that order, z = Rᵀ(θ - mode) is standard
normal under Laplace's law, and a block of z that belongs to some groups changes these groups only. In the
place of the mode of all parameters stands the centre that `laplace.centre` finds.
"""

from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy  # its parts load when first used

from gumbelrace.kernels.bends import FAR_OUT, bends_to, bent, log_densities, no_bends
from gumbelrace.kernels.block_sweep import SMALL_STEPS, Law, ParameterBlock, Sparse, sparse
from gumbelrace.kernels.normal_laws import NormalPseudoprior
from gumbelrace.laplace.centre import Centre, Parts, centre_of
from gumbelrace.laplace.mode import Mode
from gumbelrace.laplace.model import Floats, Indices, Model
from gumbelrace.laplace.pilot import Forecast, foreseen_reading, height_at, weights_of
from gumbelrace.methods.penalty import Penalty

# Moves of each block that are tried: as many as read about so many rows, within limits.
ROWS_TRIED, FEWEST_TRIES, MOST_TRIES, SEED = 2e6, 12, 48, 2
# A block whose log ratios have this variance is accepted three times in four. A block that is accepted less
# often than that is cut.
VARIANCE, ACCEPTED = 0.4, 0.6
# So is one with rows of its own of which a move reads more than so many times as many as any does: those of
# its halves are a quarter as many each.
MORE_ROWS = 2.5
# Of a coordinate that cannot be cut, and is accepted less often than that, smaller steps are made.
SELDOM, SMALL_STEP = 0.3, 0.8
# Tails are looked at where that takes no more log factors than so many.
AFFORDABLE = 1e8
# Entries of matrices below that share of their rows' and columns' sizes are zero but for rounding.
ZERO = 1e-12
# Parameters that more than that share of the others depend on belong to all rows, but for those that depend
# on one other besides themselves.
SHARED, OWN = 0.25, 2


class BlockModel(Model, Protocol):
    """A model whose log factors can be read row by row of a part of them."""

    def of_rows(self, rows: Indices) -> "BlockModel":
        """Give the same model of some of its rows."""

    def likelihood_of(self, mode: Mode, rows: Indices, weights: Floats | None) -> Any:
        """Give the log factors of some rows, less their expansion at the mode."""


class Whitened(NamedTuple):
    """Laplace's law in the order of the blocks."""

    order: Indices  # the parameter at each place
    root: Any  # R⁻ᵀ, sparse and upper triangular: θ[order] = mode[order] + R⁻ᵀ z
    shared: int  # places from here on belong to all rows
    whitening: Sparse  # Rᵀ, its columns those of θ


class Tried(NamedTuple):
    """What some moves of a block have shown."""

    log_ratios: Floats
    rows: Indices  # those that change
    changes: Floats  # by how much, of shape (tries, rows)

    @property
    def accepted(self) -> float:
        """Share of the moves that would be accepted if all rows were read."""
        return float(np.mean(np.exp(np.minimum(self.log_ratios, 0.0))))

    @property
    def weights(self) -> Floats | None:
        """The weights by which rows are drawn."""
        return weights_from(self.changes)

    @property
    def read(self) -> tuple[float, float]:
        """How many rows a move reads, and the variance of its estimate: by weights from other moves."""
        if not self.changes.any():
            return 0.0, 0.0
        half = len(self.changes) // 2
        one, other = self.changes[:half], self.changes[half:]
        found = foreseen_reading(one, weights_from(other)), foreseen_reading(other, weights_from(one))
        rows, variance = np.mean(found, axis=0).tolist()
        return rows, variance


class Planned(NamedTuple):
    """Blocks, the law that they belong to, what is expected of a sweep, and the mode."""

    blocks: list[ParameterBlock]
    law: Law
    forecast: Forecast
    mode: Floats

    @property
    def normal(self) -> NormalPseudoprior:
        """The law, but for its bends."""
        columns = np.zeros((len(self.mode), len(self.mode)))
        for block in self.blocks:
            columns[np.ix_(block.parameters, block.coordinates)] = block.matrix
        return NormalPseudoprior(self.law.centre, columns @ columns.T)

    def fall_to(self, step: Floats, distance: float) -> float:
        """By how much the log density of the coordinates' laws falls from the mode to a step."""
        bends = np.concatenate([block.bends for block in self.blocks])
        order = np.concatenate([block.coordinates for block in self.blocks])
        starts, columns, values = self.law.whitening
        points = self.mode - self.law.centre + np.stack([np.zeros_like(step), step])
        z = (scipy.sparse.csr_array((values, columns, starts)) @ points.T).T
        at_mode, there = log_densities(z[:, order], bends).sum(axis=1).tolist()
        return float(there - at_mode)


def plan_blocks(model: BlockModel, mode: Mode) -> Planned:
    """Cut parameters into blocks that are accepted often enough, and read few rows."""
    centre = centre_of(model, mode, parts_by(mode.precision))
    near, whitened = centre.near, whitened_by(centre.precision)
    hessian = without_rounding(near.factors.hessian, np.sqrt(np.diag(centre.precision)))
    factors = near.factors._replace(hessian=scipy.sparse.csr_array(hessian))
    trial = Trial(model, centre._replace(near=near._replace(factors=factors)), whitened)
    own, shared = np.split(np.arange(len(near.theta)), [whitened.shared])
    waiting = [(part, np.arange(model.size)) for part in (own, shared) if len(part)]
    blocks, forecasts = [], []
    while waiting:
        coordinates, rows = waiting.pop(0)
        trial.bend(coordinates, rows)
        tried = trial.of(coordinates, rows)
        parts = parts_of(tried, bool(coordinates[0] < whitened.shared))
        if min(parts, len(coordinates)) > 1:
            cut = np.array_split(coordinates, min(parts, len(coordinates)))
            waiting = [(part, tried.rows) for part in cut] + waiting
            continue
        # A block of the prior alone still has a row, which says nothing.
        rows = tried.rows if len(tried.rows) else np.zeros(1, np.int64)
        likelihood = model.likelihood_of(near, rows, tried.weights)
        rho = SMALL_STEP if tried.accepted < SELDOM else 0.0
        block = block_of(likelihood, coordinates, whitened)
        blocks.append(replace(block, correlation=rho, bends=trial.bends[coordinates]))
        forecasts.append(foreseen(tried))
    law = Law(near.theta, whitened.whitening, near.factors.gradient, sparse(hessian))
    return Planned(blocks, law, forecast_of(forecasts, trial.misfit, model.size), mode.theta)


def ordered(coupled: Floats) -> tuple[Indices, int]:
    """Order parameters by their partners; second, how many come before those that all rows share."""
    d, partners = len(coupled), (coupled != 0.0).sum(axis=1)
    return np.argsort(partners, kind="stable"), int(np.sum(partners <= min(max(SHARED * d, OWN), d - 1)))


def parts_by(precision: Floats) -> Parts:
    """Split parameters into those with rows of their own, and those that all rows share."""
    order, shared = ordered(without_rounding(precision, np.sqrt(np.diag(precision))))
    return Parts(order[:shared], order[shared:])


def whitened_by(precision: Floats) -> Whitened:
    """Order parameters, and factorise."""
    d, scale = len(precision), np.sqrt(np.diag(precision))
    coupled = without_rounding(precision, scale)
    order, shared = ordered(coupled)
    factor = np.asarray(np.linalg.cholesky(coupled[np.ix_(order, order)]), np.float64)
    root = scipy.linalg.solve_triangular(factor.T, np.eye(d), lower=False)
    root = without_rounding(root, np.linalg.norm(root, axis=1), np.ones(d))
    factor = without_rounding(factor, scale[order], np.ones(d))
    starts, columns, values = sparse(np.ascontiguousarray(factor.T))
    return Whitened(order, scipy.sparse.csc_array(root), shared, Sparse(starts, order[columns], values))


def without_rounding(matrix: Floats, rows: Floats, columns: Floats | None = None) -> Floats:
    """Put zeros where entries are nothing but rounding, beside the sizes of rows and columns."""
    sizes = rows[:, None] * (rows if columns is None else columns)
    return np.where(np.abs(matrix) > ZERO * sizes, matrix, 0.0)


class Trial:
    """Tries moves of blocks from usual points, and bends the laws of coordinates to the posterior's."""

    def __init__(self, model: BlockModel, centre: Centre, whitened: Whitened) -> None:
        self._model, self._near, self._tilt, self._whitened = model, centre.near, centre.tilt, whitened
        self._rng, d = np.random.default_rng(SEED), len(self._near.theta)
        tries = int(np.clip(ROWS_TRIED / model.size, FEWEST_TRIES, MOST_TRIES))
        self._usual = self._rng.standard_normal((tries, d))  # to be bent
        self.bends, self._has_bends = no_bends(d), np.zeros(d, bool)
        found = [height_at(model, self._near, self._step(z)) for z in self._usual]
        heights = np.array([height for height, _ in found])
        self._left = np.stack([left for _, left in found])
        self._known = [self._height(u) for u in self._usual]
        # Log posterior beside the normal law, whose log density is -z²/2.
        self.misfit = float(np.std(heights + 0.5 * np.sum(self._usual**2, axis=1)))

    def _step(self, z: Floats) -> Floats:
        step = np.empty_like(z)
        step[self._whitened.order] = self._whitened.root @ z
        return step

    def _height(self, u: Floats) -> float:
        """Give the log posterior but for the rows' residuals, beside the law of the coordinates."""
        z = bent(u, self.bends)
        return self._without_rows(self._step(z)) - float(log_densities(z, self.bends).sum())

    def _without_rows(self, step: Floats) -> float:
        """Give the log posterior but for the rows' residuals, less that at the mode."""
        prior = self._model.log_prior(self._near.theta + step) - self._near.prior.value
        return prior + self._near.factors.change(step)

    def bend(self, coordinates: Indices, rows: Indices) -> None:
        """Look at the tails of coordinates that these rows alone depend on, if that does not take long."""
        fresh = coordinates[~self._has_bends[coordinates]]
        if not 0 < 2 * len(fresh) * len(rows) <= AFFORDABLE:
            return
        model, theta = self._model.of_rows(rows), self._near.theta
        for i in fresh:
            steps = [self._step(far * np.eye(1, len(theta), i)[0]) for far in (-FAR_OUT, FAR_OUT)]
            heights = [self._without_rows(step) + model.residuals(theta, step).sum() for step in steps]
            self.bends[i] = bends_to(np.array(heights) - list(map(self._tilt.at, steps)))
        self._has_bends[fresh] = True
        self._known = [self._height(u) for u in self._usual]
        for k, u in enumerate(self._usual):
            self._left[k, rows] = model.residuals(theta, self._step(bent(u, self.bends)))

    def of(self, coordinates: Indices, rows: Indices) -> Tried:
        """Draw a block anew from each of the points; only these rows depend on it, or fewer."""
        model, ratios = self._model.of_rows(rows), np.full(len(self._usual), -np.inf)
        changes = np.zeros((len(self._usual), len(rows)))
        for k, usual in enumerate(self._usual):
            moved = usual.copy()
            moved[coordinates] = self._rng.standard_normal(len(coordinates))
            known = self._height(moved) - self._known[k]
            if np.isfinite(known):
                step = self._step(bent(moved, self.bends))
                change = model.residuals(self._near.theta, step) - self._left[k, rows]
                if np.isfinite(change).all():
                    ratios[k], changes[k] = known + change.sum(), change
        changed = changes.any(axis=0)
        return Tried(ratios, rows[changed], changes[:, changed])


def weights_from(changes: Floats) -> Floats | None:
    """Give weights of rows from their changes in some moves."""
    return weights_of(np.abs(changes).mean(axis=0)) if changes.size else None


def parts_of(tried: Tried, has_own_rows: bool) -> int:
    """Into how many parts to cut a block, so that each is accepted often enough and reads few rows."""
    most, (rows, _), parts = MORE_ROWS * Penalty().first, tried.read, 1.0
    if tried.accepted < ACCEPTED:
        finite = tried.log_ratios[np.isfinite(tried.log_ratios)]
        # By the mean as well: that of a log ratio is minus half its variance. Variances add up.
        variance = max(np.var(finite), -2.0 * np.mean(finite)) if len(finite) > 1 else np.inf
        parts = max(float(np.ceil(variance / VARIANCE)), 2.0)
    if has_own_rows and rows > most:
        parts = max(parts, float(np.ceil(np.sqrt(rows / most))))
    return int(min(parts, np.iinfo(np.int32).max))


def block_of(likelihood: Any, coordinates: Indices, whitened: Whitened) -> ParameterBlock:
    """Give a block, with what it changes."""
    columns = whitened.root[:, coordinates].toarray()
    changed = np.flatnonzero(columns.any(axis=1))
    matrix = np.ascontiguousarray(columns[changed])
    return ParameterBlock(likelihood, coordinates, whitened.order[changed], matrix)


def foreseen(tried: Tried) -> tuple[float, float]:
    """Give the share of a block's moves that are accepted, by an estimate, and the rows that each reads."""
    rows, variance = tried.read
    return tried.accepted * 2.0 * float(scipy.special.ndtr(-0.5 * np.sqrt(variance))), rows


def forecast_of(found: list[tuple[float, float]], misfit: float, size: int) -> Forecast:
    """Foresee a sweep from what is expected of each block; the slowest block counts."""
    accepted, rows = np.array(found).T
    least = float(accepted.min())
    effective = (1.0 - SMALL_STEPS) * least / (2.0 - least)  # small steps hardly count
    return Forecast(float(rows.sum()), float(accepted.mean()), effective, misfit, size)
