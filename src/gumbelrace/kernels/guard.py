"""Decisions that are exact where a control variate cannot be trusted: at points far out."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gumbelrace.kernels.base import Kernel
from gumbelrace.kernels.target import Likelihood
from gumbelrace.methods.base import Method, Promise
from gumbelrace.methods.exact import Exact
from gumbelrace.methods.state import Results
from gumbelrace.population.base import Floats, Population

IsFar = Callable[[Floats], bool]


def guarded(kernel: Kernel[Any], is_far: IsFar) -> Kernel[Any]:
    """Give a kernel that makes one step, its decisions exact if a point that they compare is far out.

    The points that a kernel compares are those that it asks its `likelihood` for. What a kernel without
    one compares cannot be seen: it decides exactly.
    """
    if "likelihood" not in {item.name for item in fields(kernel)}:  # type: ignore[arg-type]
        return kernel.with_method(Exact())
    watched = Watched(kernel.likelihood, is_far)  # type: ignore[attr-defined]
    method = Guarded(kernel.method, watched)
    return replace(kernel, likelihood=watched, method=method)  # type: ignore[type-var]


class Watched:
    """A likelihood that knows whether a point for which it was asked last is far out."""

    def __init__(self, likelihood: Likelihood, is_far: IsFar) -> None:
        self._likelihood, self._is_far, self.far = likelihood, is_far, False

    def __call__(self, points: Floats) -> Population:
        """Give the population of the points."""
        self.far = any(self._is_far(x) for x in points)
        return self._likelihood(points)


class Guarded(Method):
    """A method that decides exactly where a watched likelihood was asked for a point far out."""

    is_a_race = False

    def __init__(self, method: Method, watched: Watched) -> None:
        self._method, self._watched = method, watched

    @property
    def promise(self) -> Promise:
        """What the method promises."""
        return self._method.promise

    def promised(self, population: Population) -> Promise:
        """Give what is promised of the decision."""
        return Exact().promise if self._watched.far else self._method.promised(population)

    def rule(self, population: Population) -> Any:
        """Give the rule of the method."""
        return self._method.rule(population)

    def best_each(
        self, population: Population | ArrayLike, offsets: ArrayLike, rng: np.random.Generator
    ) -> Results:
        """Find the best arm once for each row of `offsets`."""
        method = Exact() if self._watched.far else self._method
        return method.best_each(population, offsets, rng)
