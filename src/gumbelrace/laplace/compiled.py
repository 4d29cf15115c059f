"""A posterior whose log factors are a numba function."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumbelrace.control_variates.expansion import ParameterTaylor, sums_of
from gumbelrace.control_variates.parameters import ROUNDING, split_rows
from gumbelrace.core.rows import DrawnRows, Rows
from gumbelrace.kernels.target import prior_at
from gumbelrace.laplace.differences import Differences
from gumbelrace.laplace.mode import Mode
from gumbelrace.laplace.model import Floats, Indices, Quadratic, Tried
from gumbelrace.laplace.parts import InParts
from gumbelrace.laplace.pilot import Pilot
from gumbelrace.laplace.sparse_sums import SparseSums
from gumbelrace.laplace.tilted import beside_factors, steepened
from gumbelrace.population.likelihood import Likelihood


@dataclass(frozen=True)
class CompiledModel(InParts):
    """Log factors and their derivatives by numba; a log prior by numba or Python."""

    log_factor: Any
    terms: Any
    data: tuple[Any, ...]
    all_rows: int
    prior_of: Callable[[Floats], float] | None
    given_start: Floats
    names: Sequence[str]
    remainder: Callable[[Floats], ArrayLike] | None = None
    rows: NDArray[np.int64] | None = None  # None: all
    gradient: None = None  # a Hessian by numba costs little more

    def log_prior(self, theta: Floats) -> float:
        """Give log p0(θ)."""
        return prior_at(self.prior_of, theta)

    def value(self, theta: Floats) -> float:
        """Give log p0(θ) + Σ log f_n(θ)."""
        prior = self.log_prior(theta)
        if prior == -np.inf:
            return prior
        total = summed(self.log_factor)
        return prior + float(np.sum(self.of_parts(lambda rows: total(rows, theta, self.data))))

    def prior(self, theta: Floats) -> Quadratic:
        """Give log p0 near θ."""
        self.log_prior(theta)  # refuses what is no number
        return self._prior_differences.at(theta)

    def factors(self, theta: Floats) -> Quadratic:
        """Give Σ log f_n near θ."""
        if (found := self._sparse_sums.at(theta)) is not None:
            return found
        sums = self.of_parts(lambda rows: sums_of(self.terms, self.data, theta, rows, 2))
        return Quadratic(*(np.sum(parts, axis=0) for parts in list(zip(*sums, strict=True))[:3]))

    @functools.cached_property
    def _prior_differences(self) -> Differences:
        return Differences(self.prior_of or _flat)

    @functools.cached_property
    def _sparse_sums(self) -> SparseSums:
        rows = np.arange(self.all_rows) if self.rows is None else self.rows
        return SparseSums(self.terms, self.data, rows)

    def steepened(self, factors: Floats) -> "CompiledModel":
        """Give the same model, the slope of each row's expansion multiplied by a number of its own."""
        functions = beside_factors(self.log_factor), steepened(self.terms)
        return replace(
            self, log_factor=functions[0], terms=functions[1], data=(factors, *self.data), remainder=None
        )

    def slope(self, theta: Floats) -> Floats:
        """Give the sum of the slopes of all rows."""
        if (found := self._sparse_sums.at(theta)) is not None:
            return found.gradient
        sums = self.of_parts(lambda rows: sums_of(self.terms, self.data, theta, rows, 1).gradient)
        return np.sum(sums, axis=0)  # type: ignore[no-any-return]

    def residuals(self, centre: Floats, step: Floats) -> Floats:
        """Give what second-order expansions leave of all log factors."""
        left = left_over(self.log_factor, self.terms)
        return np.concatenate(self.of_parts(lambda rows: left(rows, centre, step, self.data)))

    def tried(self, centre: Floats, steps: Floats, laws: Indices) -> Tried:
        """Read all rows at the centre and `steps`; see `Tried`."""
        add_up = trial_of_rows(self.log_factor, self.terms)
        parts = self.of_parts(lambda rows: add_up(rows, centre, steps, laws, self.data))
        left, ruled_out, squares = zip(*parts, strict=True)
        return Tried(np.sum(left, axis=0), np.sum(ruled_out, axis=0), np.concatenate(squares, axis=1))

    def of_data(self, data: tuple[Any, ...], size: int) -> "CompiledModel":
        """Give the same model of other rows."""
        return replace(self, data=data, all_rows=size, rows=None)

    def likelihood_of_drawn(self, mode: Mode, data: tuple[Any, ...], rows: DrawnRows) -> Likelihood:
        """Give the log factors of rows drawn ahead, less their expansion, whose sums are those of all."""
        expansion = ParameterTaylor(
            mode.theta,
            self.terms,
            data,
            *mode.factors,
            order=2,
            bounds=None,
            rounding=0.0,
            metric=np.eye(len(mode.theta)),
            rows=rows,
        )
        return Likelihood(self.log_factor, data, Rows(rows.size)).minus(expansion)

    def likelihood(self, mode: Mode, pilot: Pilot) -> Likelihood:
        """Give the log factors, less their expansion at the mode."""
        metric = np.asarray(np.linalg.inv(pilot.root), np.float64)
        bounds, bounded = split_rows(self.bounds_in(metric), 0.0, self.size)
        expansion = ParameterTaylor(
            mode.theta,
            self.terms,
            self.data,
            *mode.factors,
            order=2,
            bounds=bounds,
            rounding=ROUNDING * (1.0 + abs(mode.factors.value) / self.size),
            metric=metric,
            rows=Rows(self.size, weights=pilot.weights, bounds=bounded.bounds),
        )
        return Likelihood(self.log_factor, self.data, Rows(self.size)).minus(expansion)

    def likelihood_of(self, mode: Mode, rows: NDArray[np.int64], weights: Floats | None) -> Likelihood:
        """Give the log factors of some rows, less their expansion at the mode; sums are those of all."""
        data = rows, *self.data
        expansion = ParameterTaylor(
            mode.theta,
            terms_of_rows(self.terms),
            data,
            *mode.factors,
            order=2,
            bounds=None,
            rounding=0.0,
            metric=np.eye(len(mode.theta)),
            rows=Rows(len(rows), weights=weights),
        )
        return Likelihood(factor_of_rows(self.log_factor), data, Rows(len(rows))).minus(expansion)

    def bounds_in(self, metric: Floats) -> ArrayLike | None:
        """Give M_n such that residuals are within M_n ‖W(θ - mode)‖³, `metric` being W; None: not known."""
        return None if self.remainder is None else self.remainder(metric)


@functools.lru_cache(maxsize=64)
def factor_of_rows(log_factor: Any) -> Any:
    """Compile the log factor of the n-th of some rows."""

    @numba.njit
    def of_row(n, theta, rows, *data):  # type: ignore[no-untyped-def]
        return log_factor(rows[n], theta, *data)

    return of_row


@functools.lru_cache(maxsize=64)
def terms_of_rows(terms: Any) -> Any:
    """Compile the terms of the n-th of some rows."""

    @numba.njit
    def of_row(n, centre, direction, rows, *data):  # type: ignore[no-untyped-def]
        return terms(rows[n], centre, direction, *data)

    return of_row


@functools.lru_cache(maxsize=64)
def summed(log_factor: Any) -> Any:
    """Compile the sum of log factors over rows."""

    @numba.njit(nogil=True)
    def total(rows, theta, data):  # type: ignore[no-untyped-def]
        found = 0.0
        for n in rows:
            found += log_factor(n, theta, *data)
        return found

    return total


@functools.lru_cache(maxsize=64)
def left_over(log_factor: Any, terms: Any) -> Any:
    """Compile what second-order expansions leave of the log factors of rows."""

    @numba.njit(nogil=True)
    def left(rows, centre, step, data):  # type: ignore[no-untyped-def]
        found, there = np.empty(len(rows)), centre + step
        for i in range(len(rows)):
            value, slope, curvature = terms(rows[i], centre, step, *data)
            found[i] = log_factor(rows[i], there, *data) - value - slope - 0.5 * curvature
        return found

    return left


@functools.lru_cache(maxsize=64)
def trial_of_rows(log_factor: Any, terms: Any) -> Any:
    """Compile what `left_over` gives at several steps, summed as `Tried` has it."""

    @numba.njit(nogil=True)
    def add_up(rows, centre, steps, laws, data):  # type: ignore[no-untyped-def]
        left, ruled_out = np.zeros(len(steps)), np.zeros(len(steps))
        squares = np.zeros((laws.max() + 1, len(rows)))
        points = centre + steps
        for i in range(len(rows)):
            for k in range(len(steps)):
                value, slope, curvature = terms(rows[i], centre, steps[k], *data)
                found = log_factor(rows[i], points[k], *data) - value - slope - 0.5 * curvature
                left[k] += found
                if not np.isfinite(found):
                    ruled_out[k] += 1.0
                elif laws[k] >= 0:
                    squares[laws[k], i] += found * found
        return left, ruled_out, squares

    return add_up


def _flat(theta: Floats) -> float:
    return 0.0
