"""Log factors and the log prior at joint vectors, for steps inside `pymc.sample`.

Steps go to other processes, where what is compiled does not: it is compiled there when it is first used.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import ArrayLike

from gumbelrace.core.rows import Rows
from gumbelrace.laplace.batched import BatchedLikelihood
from gumbelrace.laplace.mode import find_mode
from gumbelrace.laplace.model import Floats, Quadratic
from gumbelrace.laplace.pilot import pilot_of
from gumbelrace.population.base import Range, checked_range
from gumbelrace.population.batched import Batched
from gumbelrace.pymc.at_start import check_at_start
from gumbelrace.pymc.checks import check_by_rows, check_complete
from gumbelrace.pymc.discrete import Labels, example_points, joint_graph
from gumbelrace.pymc.discrete_posterior import models_of
from gumbelrace.pymc.functions import compiled, inputs, log_prior_of, residuals_of, vectors
from gumbelrace.pymc.graph import RowGraph, graph_of, rebuilt
from gumbelrace.pymc.model import PymcModel


class Bounded(Batched):
    """Rewards of a numba function of many rows, with a range that a user has given."""

    given: Range | None = None

    @property
    def reward_range(self) -> Range | None:
        """Range as given."""
        return self.given


class Recompiled:
    """A frozen dataclass that is copied without what it has compiled."""

    def __getstate__(self) -> dict[str, Any]:
        """Give the fields alone."""
        return {item.name: getattr(self, item.name) for item in fields(self)}  # type: ignore[arg-type]


@dataclass(frozen=True)
class PlainRows(Recompiled):
    """Log factors at joint vectors, as they are."""

    graph: RowGraph
    reward_range: tuple[ArrayLike, ArrayLike] | None = None

    def __call__(self, points: Floats) -> Batched:
        """Give the population whose arm i is the joint vector points[i]."""
        data, arms = tuple(leaf.array for leaf in self.graph.leaves), len(points)
        population = Bounded(self._terms, (points, *data), self._rows, arms)
        population.given = checked_range(self.reward_range, arms)
        return population

    def log_prior(self, point: Floats) -> float:
        """Give the log prior at a joint vector; -inf where PyMC finds parameters that cannot be."""
        value = float(self._log_prior(point))
        return -np.inf if np.isnan(value) else value

    @functools.cached_property
    def _terms(self) -> Any:
        return terms_at(self.graph)

    @functools.cached_property
    def _log_prior(self) -> Any:
        return log_prior_of(self.graph)

    @functools.cached_property
    def _rows(self) -> Rows:
        return Rows(self.graph.size)


def terms_at(graph: RowGraph) -> Any:
    """Compile the log factors of rows at the vector of an arm."""
    (theta,) = vectors(graph, "theta")
    terms = rebuilt([graph.terms], graph.pieces(theta))[0]
    given = compiled([graph.rows, theta, *inputs(graph)], terms)

    @numba.njit
    def of_rows(rows, arm, points, *data):  # type: ignore[no-untyped-def]
        return given(rows, points[arm], *data)[0]

    return of_rows


def plain_rows(model: Any, reward_range: tuple[ArrayLike, ArrayLike] | None = None) -> PlainRows:
    """Give the log factors of a model, if it can be read row by row."""
    check_complete(model)
    check_at_start(model)
    graph = joint_graph(model, graph_of(model))
    check_by_rows(graph, *example_points(model, graph))
    return PlainRows(graph, reward_range)


class Expansion(NamedTuple):
    """Log factors near the mode of a state, the weights of rows, and Laplace's law."""

    labels: Labels
    centre: Floats
    sums: Quadratic
    weights: Floats | None
    root: Floats  # L, such that L Lᵀ is the covariance


@dataclass(frozen=True)
class ExpandedRows(PlainRows):
    """Log factors at joint vectors of one state, less what their expansion at its mode knows."""

    of_labels: RowGraph = None  # type: ignore[assignment]  # its first data are the labels
    expansions: Sequence[Expansion] = ()

    def __call__(self, points: Floats) -> Batched:
        """Give the population whose arm i is the joint vector points[i]."""
        number, d = self.state_of(points[0]), self.of_labels.dimension
        return self._likelihoods[number](points[:, :d])

    def state_of(self, point: Floats) -> int:
        """Give the number of the state that a joint vector has."""
        labels = point[self.of_labels.dimension :]
        return next(k for k, one in enumerate(self.expansions) if (one.labels == labels).all())

    @functools.cached_property
    def _likelihoods(self) -> list[BatchedLikelihood]:
        residuals, size = residuals_of(self.of_labels)[0], self.graph.size
        data = [leaf.array for leaf in self.of_labels.leaves[1:]]
        return [
            BatchedLikelihood(residuals, (labels, *data), Rows(size, weights=weights), centre, sums)
            for labels, centre, sums, weights, _ in self.expansions
        ]


def expanded_rows(model: Any) -> ExpandedRows:
    """Give the log factors of a model, expanded around the mode of each state."""
    joint, labels, models, _ = models_of(model)
    expansions = [expansion_of(one, state) for one, state in zip(models, labels, strict=True)]
    return ExpandedRows(joint, None, models[0].graph, expansions)


def expansion_of(model: PymcModel, labels: Labels) -> Expansion:
    """Find the mode of a state, and the weights of rows."""
    mode = find_mode(model)
    pilot = pilot_of(model, mode)
    return Expansion(labels, mode.theta, mode.factors, pilot.weights, pilot.root)
