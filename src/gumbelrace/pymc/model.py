"""A posterior whose log factors are a PyMC model."""

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numba
import numpy as np
from numba.core.errors import NumbaPerformanceWarning
from numpy.typing import NDArray

from gumbelrace.core.rows import Rows
from gumbelrace.laplace.batched import BatchedLikelihood
from gumbelrace.laplace.compiled import STEP, by_differences
from gumbelrace.laplace.mode import Mode
from gumbelrace.laplace.model import Floats, Quadratic
from gumbelrace.laplace.parts import Indices, InParts
from gumbelrace.laplace.pilot import Pilot
from gumbelrace.pymc.checks import check_by_rows, check_latent, check_model
from gumbelrace.pymc.functions import Functions, functions_of
from gumbelrace.pymc.graph import RowGraph, graph_of, start_of


@dataclass(frozen=True)
class PymcModel(InParts):
    """Log factors and their derivatives by PyTensor; see `Model`."""

    graph: RowGraph
    functions: Functions
    given_start: Floats
    rows: Indices | None = None  # None: all

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
        return prior if prior == -np.inf else prior + self._sums(theta, np.zeros((1, len(theta)))).value

    def gradient(self, theta: Floats) -> Floats:
        """Give the gradient of the same."""
        gradient = self._sums(theta, np.zeros((1, len(theta)))).gradient
        return gradient + slopes_of(self.functions.log_prior, theta)

    def prior(self, theta: Floats) -> Quadratic:
        """Give log p0 near θ."""
        return by_differences(self.functions.log_prior, theta)

    def factors(self, theta: Floats) -> Quadratic:
        """Give Σ log f_n near θ."""
        sums = self._sums(theta, np.eye(len(theta)))
        return sums._replace(hessian=0.5 * (sums.hessian + sums.hessian.T))

    def residuals(self, centre: Floats, step: Floats) -> Floats:
        """Give what second-order expansions leave of all log factors."""
        population = self.around(centre, Quadratic(0.0, centre, np.eye(len(centre)))).around(step[None])
        return np.concatenate(self.of_parts(lambda rows: population.rewards_at(rows)[:, 0]))

    def likelihood(self, mode: Mode, pilot: Pilot) -> BatchedLikelihood:
        """Give the log factors, less their expansion at the mode."""
        return self.around(mode.theta, mode.factors, Rows(self.size, weights=pilot.weights))

    def around(self, centre: Floats, sums: Quadratic, rows: Rows | None = None) -> BatchedLikelihood:
        """Give the log factors, less their expansion at a centre."""
        return BatchedLikelihood(self.functions.residuals, self.data, rows or Rows(self.size), centre, sums)

    def likelihood_of(self, mode: Mode, rows: Indices, weights: Floats | None) -> BatchedLikelihood:
        """Give the log factors of some rows, less their expansion at the mode; sums are those of all."""
        some = of_some(self.functions.residuals)
        given = Rows(len(rows), weights=weights)
        return BatchedLikelihood(some, (rows, *self.data), given, mode.theta, mode.factors)

    def _sums(self, theta: Floats, directions: Floats) -> Quadratic:
        parts = self.of_parts(lambda rows: self.functions.sums(rows, theta, directions, self.data))
        return Quadratic(*(np.sum(part, axis=0) for part in zip(*parts, strict=True)))


@functools.lru_cache(maxsize=64)
def of_some(residuals: Any) -> Any:
    """Compile the residuals of the n-th of some rows, for many n at once."""

    @numba.njit
    def of_rows(picked, arm, centre, steps, rows, *data):  # type: ignore[no-untyped-def]
        return residuals(rows[picked], arm, centre, steps, *data)

    return of_rows


def slopes_of(function: Callable[[Floats], float], theta: Floats) -> Floats:
    """Find the gradient of a smooth function by central differences."""
    steps = STEP * np.maximum(np.abs(theta), 1.0)
    both = [function(theta + way) - function(theta - way) for way in np.diag(steps)]
    return np.array(both) / (2.0 * steps)


def model_of(model: Any) -> PymcModel:
    """Compile a PyMC model, if it can be read row by row."""
    check_model(model)
    graph, start = graph_of(model), start_of(model)
    check_latent(graph)
    check_by_rows(graph, start)
    made = PymcModel(graph, functions_of(graph), start)
    compile_all(made)
    return made


def compile_all(model: PymcModel) -> None:
    """Have numba compile all functions, now."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaPerformanceWarning)  # nothing that a user could change
        one, start = replace(model, rows=np.zeros(1, np.int64)), model.given_start
        one.factors(start)
        one.residuals(start, np.zeros_like(start))
        one.log_prior(start)
