"""What the raced chains over the orders of an ARCH model are compared with: `gumbelrace arch --compare`.

An exact twin makes the same moves with the same weights and reads everything; importance sampling and the
BIC of the package `arch` need no chain. Each takes many times as long as the raced chains.
"""

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from gumbelrace.applications.arch import Estimates, Fitted, Order, bic_by_package, by_importance
from gumbelrace.applications.arch_chains import (
    EXACT,
    ArchResult,
    Runs,
    Sampled,
    Waiting,
    audit_of,
    median_seconds,
)
from gumbelrace.methods.exact import Exact
from gumbelrace.models.arch.data import Returns
from gumbelrace.models.arch.rows import log_likelihood, points_of

# The exact twin makes a step for so many of the raced chains.
STEPS_OF_TWIN = 10
TIMED = 10  # exact steps whose likelihoods are timed together


class Compared(NamedTuple):
    """log p(q | r) of one order by several ways, and the standard errors."""

    order: int
    visits: int
    log_probability: float
    error: float
    laplace: float
    exact: float  # by the exact twin
    exact_error: float
    importance: float
    importance_error: float
    bic: float | None  # of the package `arch`; lower is better


@dataclass(frozen=True, eq=False)
class ComparedResult(ArchResult):
    """A result, and what others say of the same orders."""

    exact: Sampled = field(kw_only=True)  # the same moves with the same weights, reading everything
    importance: Estimates = field(kw_only=True)
    bic: list[float] | None = None  # of each order, by the package `arch`

    @property
    def samplers(self) -> tuple[Sampled, ...]:
        return self.raced, self.exact

    @property
    def orders(self) -> Sequence[Compared]:  # type: ignore[override]
        return [self._compared(number, one) for number, one in enumerate(self.raced.orders)]

    def _compared(self, number: int, one: Order) -> Compared:
        twin = self.exact.orders[number]
        importance, spread = (float(values[number]) for values in self.importance)
        bic = None if self.bic is None else self.bic[number]
        return Compared(*one, twin.log_probability, twin.error, importance, spread, bic)

    @property
    def apart(self) -> float:
        """Largest difference from importance sampling, in standard errors, of the orders visited."""
        return max(
            math.fabs(x.log_probability - x.importance) / math.hypot(x.error, x.importance_error)
            for x in self.orders
            if x.visits
        )

    @property
    def apart_from_exact(self) -> float:
        """Largest difference from the exact chains in standard errors, of the orders that both visited."""
        seen = [one for one in self.orders if one.visits and math.isfinite(one.exact)]
        apart = [abs(x.log_probability - x.exact) / math.hypot(x.error, x.exact_error) for x in seen]
        return max(apart, default=0.0)


def compared(
    result: ArchResult, returns: Returns, folder: Path, waiting: Waiting = nullcontext
) -> ComparedResult:
    """Compare a result with all others; what was stopped goes on from checkpoints in `folder`."""
    both = with_twin(result, max(1, result.plan.steps // STEPS_OF_TWIN), folder, waiting=waiting)
    with waiting("fitting all orders by the package arch"):
        return replace(both, bic=bic_by_package(returns, result.fitted.orders))


def with_twin(
    result: ArchResult, steps: int, folder: Path, progress: bool = True, waiting: Waiting = nullcontext
) -> ComparedResult:
    """Run the exact twin of a result for so many steps, and importance sampling; audit as planned."""
    plan, runs = result.plan, Runs(result.fitted, result.plan, folder, progress)
    exact = runs.sampled(EXACT, result.fitted.kernel(Exact()), result.start, steps)
    exact = replace(exact, cost=exact.cost._replace(seconds=likelihood_seconds(result.fitted)))
    with waiting("checking decisions exactly"):
        audit = audit_of(result.raced, plan, plan.audited)
    with waiting("sampling by importance"):
        importance = by_importance(result.fitted, plan.rng("evidence"))
    return ComparedResult(**vars(replace(result, audit=audit)), exact=exact, importance=importance)


def likelihood_seconds(fitted: Fitted) -> float:
    """Time the likelihoods of a step without control variates: an exact sampler has no use for these."""
    tau, data = fitted.fits[0].model.tau, fitted.data
    points = points_of([fit.mean for fit in fitted.fits], tau, data.lags)
    return median_seconds(lambda: [log_likelihood(points, *data.arrays) for _ in range(TIMED)]) / TIMED
