"""Blocks of parameters, for posteriors with so many that a draw of all at once is seldom accepted.

Parameters are ordered so that those on which few others depend (effects of groups) come first, and those of
all rows last. With R the Cholesky factor of the precision in that order, z = Rᵀ(θ - mode) is standard
normal under Laplace's law, and a block of z that belongs to some groups changes these groups only.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy  # its parts load when first used
from numpy.typing import NDArray

from gumbelrace.kernels.blocks import Block, Law, Sparse, sparse
from gumbelrace.laplace.mode import Mode
from gumbelrace.laplace.model import Floats, Model
from gumbelrace.laplace.pilot import Forecast, height_at
from gumbelrace.methods.penalty import Penalty
from gumbelrace.population.control import row_weights

Indices = NDArray[np.int64]

# Moves of each block that are tried, in all rows.
TRIES = 8
SEED = 2
# A block whose log ratios have this variance is accepted three times in four. A block that is accepted less
# often than that is cut.
VARIANCE, ACCEPTED = 0.4, 0.6
# Of a coordinate that cannot be cut, and is accepted less often than that, smaller steps are made.
SELDOM, SMALL_STEP = 0.3, 0.8
# Entries of matrices below that share of their rows' and columns' sizes are zero but for rounding.
ZERO = 1e-12
# Parameters that more than that share of the others depend on belong to all rows.
SHARED = 0.25


class BlockModel(Model, Protocol):
    """A model whose log factors can be read row by row of a part of them."""

    def likelihood_of(self, mode: Mode, rows: Indices, weights: Floats | None) -> Any:
        """Give the log factors of some rows, less their expansion at the mode."""


class Whitened(NamedTuple):
    """Laplace's law in the order of the blocks."""

    order: Indices  # the parameter at each place
    root: Floats  # R⁻ᵀ, upper triangular: θ[order] = mode[order] + R⁻ᵀ z
    shared: int  # places from here on belong to all rows
    whitening: Sparse  # Rᵀ, its columns those of θ


class Tried(NamedTuple):
    """What some moves of a block have shown."""

    log_ratios: Floats
    rows: Indices  # those that change
    squares: Floats  # mean squares of by how much

    @property
    def accepted(self) -> float:
        """Share of the moves that would be accepted."""
        return float(np.mean(np.exp(np.minimum(self.log_ratios, 0.0))))


class Planned(NamedTuple):
    """Blocks, the law that they belong to, and what is expected of a sweep."""

    blocks: list[Block]
    law: Law
    forecast: Forecast


def plan_blocks(model: BlockModel, mode: Mode) -> Planned:
    """Cut parameters into blocks that are accepted often enough."""
    whitened = whitened_by(mode.precision)
    trial = Trial(model, mode, whitened)
    places = np.arange(len(mode.theta))
    waiting = [part for part in np.split(places, [whitened.shared]) if len(part)]
    blocks, forecasts = [], []
    while waiting:
        coordinates = waiting.pop(0)
        tried = trial.of(coordinates)
        if tried.accepted < ACCEPTED and len(coordinates) > 1:
            waiting = cut(coordinates, tried) + waiting
            continue
        weights = row_weights(tried.squares) if len(tried.rows) else None
        # A block of the prior alone still has a row, which says nothing.
        rows = tried.rows if len(tried.rows) else np.zeros(1, np.int64)
        likelihood = model.likelihood_of(mode, rows, weights)
        rho = SMALL_STEP if tried.accepted < SELDOM else 0.0
        blocks.append(block_of(likelihood, coordinates, whitened, rho))
        forecasts.append((tried.accepted, rows_of(tried, weights)))
    hessian = without_rounding(mode.factors.hessian, np.sqrt(np.diag(mode.precision)))
    law = Law(mode.theta, whitened.whitening, mode.factors.gradient, sparse(hessian))
    return Planned(blocks, law, forecast_of(forecasts, trial.misfit, model.size))


def whitened_by(precision: Floats) -> Whitened:
    """Order parameters, and factorise."""
    d, scale = len(precision), np.sqrt(np.diag(precision))
    coupled = without_rounding(precision, scale)
    partners = (coupled != 0.0).sum(axis=1)
    order = np.argsort(partners, kind="stable")
    factor = np.asarray(np.linalg.cholesky(coupled[np.ix_(order, order)]), np.float64)
    root = scipy.linalg.solve_triangular(factor.T, np.eye(d), lower=False)
    root = without_rounding(root, np.linalg.norm(root, axis=1), np.ones(d))
    factor = without_rounding(factor, scale[order], np.ones(d))
    starts, columns, values = sparse(np.ascontiguousarray(factor.T))
    shared = int(np.sum(partners <= max(SHARED * d, 1)))
    return Whitened(order, root, shared, Sparse(starts, order[columns], values))


def without_rounding(matrix: Floats, rows: Floats, columns: Floats | None = None) -> Floats:
    """Put zeros where entries are nothing but rounding, beside the sizes of rows and columns."""
    sizes = rows[:, None] * (rows if columns is None else columns)
    return np.where(np.abs(matrix) > ZERO * sizes, matrix, 0.0)


class Trial:
    """Tries moves of blocks from usual points."""

    def __init__(self, model: Model, mode: Mode, whitened: Whitened) -> None:
        self._model, self._mode, self._whitened = model, mode, whitened
        self._rng = np.random.default_rng(SEED)
        self._usual = self._rng.standard_normal((TRIES, len(mode.theta)))
        self._heights, self._left = zip(*(self._height(z) for z in self._usual), strict=True)
        # Log posterior beside the normal law, whose log density is -z²/2.
        self.misfit = float(np.std(self._heights + 0.5 * np.sum(self._usual**2, axis=1)))

    def _height(self, z: Floats) -> tuple[float, Floats]:
        step = np.empty_like(z)
        step[self._whitened.order] = self._whitened.root @ z
        return height_at(self._model, self._mode, step)

    def of(self, coordinates: Indices) -> Tried:
        """Draw a block anew from each of the points."""
        ratios, squares = np.full(TRIES, -np.inf), np.zeros(self._model.size)
        for k, usual in enumerate(self._usual):
            moved = usual.copy()
            moved[coordinates] = self._rng.standard_normal(len(coordinates))
            height, left = self._height(moved)
            if np.isfinite(height) and np.isfinite(self._heights[k]):
                proposed = 0.5 * np.sum(moved[coordinates] ** 2 - usual[coordinates] ** 2)
                ratios[k] = height - self._heights[k] + proposed
                squares += np.square(left - self._left[k]) / TRIES
        rows = np.flatnonzero(squares)
        return Tried(ratios, rows, squares[rows])


def cut(coordinates: Indices, tried: Tried) -> list[Indices]:
    """Cut a block into as many parts as make each of them accepted often enough, variances adding up."""
    finite = tried.log_ratios[np.isfinite(tried.log_ratios)]
    # By the mean as well: that of a log ratio is minus half its variance.
    variance = max(float(np.var(finite)), -2.0 * float(np.mean(finite))) if len(finite) > 1 else np.inf
    parts = int(min(max(np.ceil(variance / VARIANCE), 2.0), len(coordinates)))
    return np.array_split(coordinates, parts)


def block_of(likelihood: Any, coordinates: Indices, whitened: Whitened, correlation: float) -> Block:
    """Give a block, with what it changes."""
    columns = whitened.root[:, coordinates]
    changed = np.flatnonzero(columns.any(axis=1))
    matrix = np.ascontiguousarray(columns[changed])
    return Block(likelihood, coordinates, whitened.order[changed], matrix, correlation)


def rows_of(tried: Tried, weights: Floats | None) -> float:
    """How many rows a move of a block reads."""
    penalty = Penalty()
    variance = 0.0 if weights is None else float(weights.sum() * (tried.squares / weights).sum())
    return min(max(float(penalty.first), variance / penalty.most_variance), float(len(tried.rows)))


def forecast_of(found: list[tuple[float, float]], misfit: float, size: int) -> Forecast:
    """Foresee a sweep from what is expected of each block; the slowest block counts."""
    accepted, rows = np.array(found).T
    least = float(accepted.min())
    return Forecast(float(rows.sum()), float(accepted.mean()), least / (2.0 - least), misfit, size)
