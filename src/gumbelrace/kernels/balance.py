"""Audited steps of kernels whose method fixes no winner: whether moves keep detailed balance.

A step is made with a method that asks every question many times, the way there and the way back, and
compares (`auditing.AuditedLaw`). With Λ the exact log ratio of a move from x to y, a and b the chances
that it and its way back are accepted, and σ(t) = 1 / (1 + exp(-t)), detailed balance says that

    off = σ(-Λ) a - σ(Λ) b

is 0. If it is not, the kernel that accepts with a - off in place of a does keep detailed balance (and goes
from y to x with b + off), so that what is off moves a function f of the state by off · (f(y) - f(x)) in a
step.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from gumbelrace.auditing import AuditedLaw
from gumbelrace.errors import InvalidArgument
from gumbelrace.methods.base import Asked, Method, Promise
from gumbelrace.methods.state import CURRENT, PROPOSED, Results, new_results
from gumbelrace.population.base import Floats, Population
from gumbelrace.population.table import as_population
from gumbelrace.verdict import MOVES


class Reversible:
    """A likelihood that also gives the population of the points asked for last in the opposite order."""

    def __init__(self, likelihood: Any, method: Method) -> None:
        self._likelihood = (
            getattr(likelihood, "without_head", likelihood) if method.picks_rows else likelihood
        )
        self._points: Any = ()

    def __call__(self, points: Any) -> Any:
        """Give the population of some points."""
        self._points = points
        return self._likelihood(points)

    def way_back(self) -> Population:
        """Give the same population, its arms in the opposite order."""
        return as_population(self._likelihood(self._points[::-1]))


class Forced(Method):
    """Gives always the same answer, and reads nothing."""

    has_plan = False
    promise = Promise(1.0)

    def __init__(self, arm: int) -> None:
        self._arm = arm

    def rule(self, population: Population) -> Any:
        """Give none: there is nothing to compile."""
        raise NotImplementedError

    def answer_each(
        self, asked: Asked, population: Population, offsets: Floats, rng: np.random.Generator
    ) -> Results:
        """Give the answer."""
        results = new_results(len(offsets))
        results.arms[:] = self._arm
        return results


def audited_law(
    kernel: Any, method: Method, seeds: Sequence[int], state: Any
) -> tuple[Any, Any, AuditedLaw]:
    """Make a step whose decisions are compared; give where it ends if they are yes and no, and them."""
    noise, rows = seeds
    watched, way_back = _watched(kernel, method)
    audited = AuditedLaw(method, np.random.default_rng(rows), way_back)
    end, _ = watched.with_method(audited).step(np.random.default_rng(noise), state)
    if audited.compared.of != MOVES:
        return end, end, audited
    forced = [kernel.with_method(Forced(arm)) for arm in (PROPOSED, CURRENT)]
    ends = [other.step(np.random.default_rng(noise), state)[0] for other in forced]
    return ends[0], ends[1], audited


def _watched(kernel: Any, method: Method) -> tuple[Any, Callable[[], Population]]:
    """Give the kernel, its likelihood watched if it has one, and what gives the way back of a move."""
    if "likelihood" in {item.name for item in fields(kernel)}:
        likelihood = Reversible(kernel.likelihood, method)
        return replace(kernel, likelihood=likelihood), likelihood.way_back

    def refuse() -> Population:
        raise InvalidArgument(
            f"{type(kernel).__name__} has no field `likelihood`, which gives the way back of a move; give "
            "the kernel one, or compare the chain with one by Exact()"
        )

    return kernel, refuse
