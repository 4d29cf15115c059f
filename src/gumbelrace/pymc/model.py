"""A posterior whose log factors are a PyMC model."""

import functools
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numba
import numpy as np
import scipy  # its parts load when first used
from numba.core.errors import NumbaPerformanceWarning
from numpy.typing import NDArray

from gumbelrace.core.rows import Rows
from gumbelrace.errors import InvalidArgument
from gumbelrace.laplace.batched import BatchedLikelihood
from gumbelrace.laplace.mode import Mode
from gumbelrace.laplace.model import Floats, Indices, Quadratic
from gumbelrace.laplace.parts import InParts
from gumbelrace.laplace.pilot import Pilot
from gumbelrace.laplace.sparse import Hessians, pairs
from gumbelrace.pymc.at_start import check_at_start
from gumbelrace.pymc.checks import check_by_rows, check_model
from gumbelrace.pymc.functions import Functions, functions_of
from gumbelrace.pymc.graph import RowGraph, graph_of, start_of

# Which pairs of parameters matter is seen at some rows first, then at more; beside the point, at which
# derivatives may happen to be zero.
PATTERN_ROWS, PATTERN_MORE, BESIDE = 20_000, 4, 0.1
# Axes along which the prior is differentiated at once.
AXES_AT_ONCE = 64
# Rows of which derivatives are compared, how far from the start, and how equal they are.
TRIED_ROWS, TRIED_STEP, EQUAL = 256, 0.1, 1e-8


@dataclass(frozen=True)
class PymcModel(InParts):
    """Log factors and their derivatives by PyTensor; see `Model`."""

    graph: RowGraph
    functions: Functions
    given_start: Floats
    rows: Indices | None = None  # None: all
    factors_of_slopes: Floats | None = None  # of the rows' expansions; None: 1

    @property
    def all_rows(self) -> int:  # type: ignore[override]
        """How many rows the data have."""
        return self.graph.size

    @functools.cached_property
    def names(self) -> list[str]:
        """The name of each coordinate."""
        return self.graph.names

    @functools.cached_property
    def data(self) -> tuple[NDArray[Any], ...]:
        """Arrays that compiled code reads, rows first."""
        return tuple(leaf.array for leaf in self.graph.leaves)

    def log_prior(self, theta: Floats) -> float:
        """Give log p0(θ)."""
        return float(self.functions.log_prior(theta))

    def value(self, theta: Floats) -> float:
        """Give log p0(θ) + Σ log f_n(θ)."""
        prior = self.log_prior(theta)
        return prior if prior == -np.inf else prior + self._sums(theta, nowhere(theta))[0]

    def gradient(self, theta: Floats) -> Floats:
        """Give the gradient of the same."""
        _, of_factors, _ = self._sums(theta, nowhere(theta))
        _, of_prior, _ = self.functions.prior(theta, nowhere(theta))
        return of_factors + of_prior  # type: ignore[no-any-return]

    def prior(self, theta: Floats) -> Quadratic:
        """Give log p0 near θ."""
        return self._prior_hessians.at(theta)

    def factors(self, theta: Floats) -> Quadratic:
        """Give Σ log f_n near θ."""
        return self._hessians.at(theta)

    def residuals(self, centre: Floats, step: Floats) -> Floats:
        """Give what second-order expansions leave of all log factors."""
        population = self.around(centre, Quadratic(0.0, centre, np.eye(len(centre)))).around(step[None])
        return np.concatenate(self.of_parts(lambda rows: population.rewards_at(rows)[:, 0]))

    def likelihood(self, mode: Mode, pilot: Pilot) -> BatchedLikelihood:
        """Give the log factors, less their expansion at the mode."""
        return self.around(mode.theta, mode.factors, Rows(self.size, weights=pilot.weights))

    def around(self, centre: Floats, sums: Quadratic, rows: Rows | None = None) -> BatchedLikelihood:
        """Give the log factors, less their expansion at a centre."""
        if self.factors_of_slopes is None:
            residuals, data = self.functions.residuals, self.data
        else:
            residuals, data = self.functions.steepened, (self.factors_of_slopes, *self.data)
        return BatchedLikelihood(residuals, data, rows or Rows(self.size), centre, sums)

    def steepened(self, factors: Floats) -> "PymcModel":
        """Give the same model, the slope of each row's expansion multiplied by a number of its own."""
        return replace(self, factors_of_slopes=factors)

    def slope(self, theta: Floats) -> Floats:
        """Give the sum of the slopes of all rows' expansions."""
        _, gradient, _ = self._sums(theta, nowhere(theta), self.factors_of_slopes)
        return gradient

    def likelihood_of(self, mode: Mode, rows: Indices, weights: Floats | None) -> BatchedLikelihood:
        """Give the log factors of some rows, less their expansion at the mode; sums are those of all."""
        some = of_some(self.functions.residuals)
        given = Rows(len(rows), weights=weights)
        return BatchedLikelihood(some, (rows, *self.data), given, mode.theta, mode.factors)

    def _sums(
        self, theta: Floats, directions: Floats, factors: Floats | None = None
    ) -> tuple[float, Floats, Floats]:
        parts = self.of_parts(lambda rows: self.functions.sums(rows, theta, directions, self.data, factors))
        value, gradient, products = (np.sum(part, axis=0) for part in zip(*parts, strict=True))
        return float(value), gradient, products

    @functools.cached_property
    def _hessians(self) -> Hessians:
        return Hessians(self._sums, self._pattern_at)

    @functools.cached_property
    def _prior_hessians(self) -> Hessians:
        return Hessians(self.functions.prior, self._prior_pattern_at)

    def _pattern_at(self, theta: Floats, attempt: int) -> Any:
        """Give the pairs of parameters that rows depend on: some rows, more of them, in the end all."""
        rows = np.arange(self.all_rows) if self.rows is None else self.rows
        count = min(PATTERN_ROWS * PATTERN_MORE**attempt, len(rows)) if attempt < 2 else len(rows)
        some = np.random.default_rng(0).choice(rows, count, replace=False)
        starts, parameters = self.functions.touched(some, beside(theta), self.data)
        return pairs(starts, parameters, len(theta))

    def _prior_pattern_at(self, theta: Floats, attempt: int) -> Any:
        """Give the pairs of parameters that the prior couples."""
        axes = np.split(np.eye(len(theta)), range(AXES_AT_ONCE, len(theta), AXES_AT_ONCE))
        products = [self.functions.prior(beside(theta), some)[2] for some in axes]
        found = np.nan_to_num(np.concatenate(products)) != 0.0
        return scipy.sparse.csr_array(found | found.T)


@functools.lru_cache(maxsize=64)
def of_some(residuals: Any) -> Any:
    """Compile the residuals of the n-th of some rows, for many n at once."""

    @numba.njit
    def of_rows(picked, arm, centre, steps, rows, *data):  # type: ignore[no-untyped-def]
        return residuals(rows[picked], arm, centre, steps, *data)

    return of_rows


def nowhere(theta: Floats) -> Floats:
    """Give a direction for those who want none."""
    return np.zeros((1, len(theta)))


def beside(theta: Floats) -> Floats:
    """Give a point beside another, at which derivatives may happen to be zero."""
    return theta + BESIDE * np.random.default_rng(0).standard_normal(len(theta))


def model_of(model: Any, initvals: Mapping[str, Any] | None = None) -> PymcModel:
    """Compile a PyMC model, if it can be read row by row; its mode is looked for from `initvals`."""
    check_model(model)
    check_at_start(model, initvals)
    graph, start = graph_of(model), start_of(model, initvals)
    check_by_rows(graph, start)
    made = PymcModel(graph, functions_of(graph), start)
    compile_all(made)
    check_derivatives(made)
    return made


def compile_all(model: PymcModel) -> None:
    """Have numba compile all functions, now."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaPerformanceWarning)  # nothing that a user could change
        one, start = replace(model, rows=np.zeros(1, np.int64)), model.given_start
        one._sums(start, nowhere(start))
        one.residuals(start, np.zeros_like(start))
        one.log_prior(start)


def check_derivatives(model: PymcModel) -> None:
    """Compare what is known of some rows, and what is left of them, with their log factors themselves.

    Derivatives come from two graphs that PyTensor makes, and draws are right only if both say the same.
    """
    rng, start = np.random.default_rng(0), model.given_start
    rows = np.sort(rng.choice(model.all_rows, min(model.all_rows, TRIED_ROWS), replace=False))
    some, step = model.of_rows(rows), TRIED_STEP * rng.standard_normal(len(start))
    value, gradient, (curved,) = some._sums(start, step[None])
    left, there = some.residuals(start, step), some._sums(start + step, nowhere(start))[0]
    found = value + float(step @ gradient) + 0.5 * float(step @ curved) + float(left.sum())
    parts = np.array([value, there, float(step @ gradient), float(step @ curved), *np.abs(left)])
    if np.isfinite(parts).all() and abs(found - there) > EQUAL * np.abs(parts).sum():
        raise InvalidArgument(
            "derivatives of the log factors by the installed PyTensor contradict each other "
            f"({found:.10g} instead of {there:.10g}); use pm.sample, and please report this model"
        )
