"""Which order an ARCH model of a series of returns has: what `gumbelrace arch` runs, and its record."""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.applications.arch import Estimates, Fitted, bic_by_package, by_importance, fit_orders
from gumbelrace.applications.arch_chains import (
    RACED,
    Correlation,
    Plan,
    Runs,
    Sampled,
    Track,
    correlations,
    tracks,
)
from gumbelrace.atomic import unfinished
from gumbelrace.chain.export import package
from gumbelrace.kernels.model_choice import ModelChoice
from gumbelrace.methods.race import Race
from gumbelrace.models.returns import Returns
from gumbelrace.tables.writing import write_rows
from gumbelrace.verdict import Audit

Floats = NDArray[np.float64]
# Shows that something is being done for as long as the context lasts.
Waiting = Callable[[str], AbstractContextManager[Any]]
TRACE = "trace.nc"
CONTENTS = {
    "orders": "log p(q | r) of each order, with its error",
    "parameters": "parameters of the most probable order",
    "tracks": "estimates of log p(q | r) over time",
    "correlations": "autocorrelation of the order",
}


class Compared(NamedTuple):
    """log p(q | r) of one order by several ways, and the standard errors."""

    order: int
    visits: int
    log_probability: float
    error: float
    importance: float
    importance_error: float
    laplace: float
    bic: float | None  # of the package `arch`; lower is better


class Parameter(NamedTuple):
    """A parameter of the most probable model."""

    name: str
    mean: float
    deviation: float
    low: float  # 2.5% and 97.5% quantiles
    high: float


@dataclass(frozen=True, eq=False)
class ArchResult:
    """What is known of the orders.

    Attributes
    ----------
    fitted : Fitted
        The models.
    plan : Plan
        How long the chains were.
    start : ModelChoice
        Where they started, with the adapted weights.
    raced : Sampled
        The chains, and what they say.
    audit : Audit
        Decisions of theirs that were made again exactly.
    importance : Estimates
        The same by importance sampling.
    bic : list of float, optional
        That of each order by the package `arch`.
    """

    fitted: Fitted
    plan: Plan
    start: ModelChoice
    raced: Sampled
    audit: Audit
    importance: Estimates
    bic: list[float] | None = None

    @property
    def best(self) -> int:
        """Number of the most probable model."""
        return int(np.argmax([one.log_probability for one in self.raced.orders]))

    @property
    def samplers(self) -> tuple[Sampled, ...]:
        """Chains of each sampler."""
        return (self.raced,)

    @property
    def orders(self) -> list[Any]:
        """What is known of each order."""
        found = []
        for k, (order, visits, log_p, error, laplace) in enumerate(self.raced.orders):
            importance, spread = (float(values[k]) for values in self.importance)
            bic = None if self.bic is None else self.bic[k]
            found.append(Compared(order, visits, log_p, error, importance, spread, laplace, bic))
        return found

    @property
    def tracks(self) -> list[Track]:
        """Estimates over time."""
        return [track for sampler in self.samplers for track in tracks(sampler, self.fitted)]

    @property
    def correlations(self) -> list[Correlation]:
        """Autocorrelations of the order."""
        return [one for sampler in self.samplers for one in correlations(sampler, self.fitted)]

    @property
    def parameters(self) -> list[Parameter]:
        """Parameters of the most probable model, on the scale of the standardised returns."""
        trace, model = self.raced.trace, self.fitted.fits[self.best].model
        here = np.asarray(trace["model"]) == self.best
        drawn = [model.natural(x) for x in np.asarray(trace[f"parameters.{self.best}"])[here]]
        values = np.array([np.append(alpha, nu) for alpha, nu in drawn])
        names = [*(f"α{i}" for i in range(model.order + 1)), "ν"]
        return [summary(name, column) for name, column in zip(names, values.T, strict=True)]

    @property
    def apart(self) -> float:
        """Largest difference from importance sampling, in standard errors, of the orders visited."""
        seen = [one for one in self.orders if one.visits]
        apart = [
            abs(x.log_probability - x.importance) / math.hypot(x.error, x.importance_error) for x in seen
        ]
        return float(max(apart))


def summary(name: str, values: Floats) -> Parameter:
    """Describe draws of a parameter."""
    low, high = np.quantile(values, [0.025, 0.975])
    return Parameter(name, float(values.mean()), float(values.std()), float(low), float(high))


def check_packages() -> None:
    """Say now, not after the chains, what is not installed."""
    for name in ("arviz_base", "arviz_stats"):
        package(name)


def choose_order(
    returns: Returns, orders: Sequence[int], plan: Plan, folder: Path, waiting: Waiting = nullcontext
) -> ArchResult:
    """Fit all orders and run chains over them.

    What was stopped goes on where it was: its chains have checkpoints in `folder`.

    Parameters
    ----------
    returns : Returns
        Standardised returns.
    orders : sequence of int
        Orders to choose from.
    plan : Plan
        How long.
    folder : Path
        Where checkpoints lie.
    waiting : callable
        Shows what is being done where a chain does not show how far it is.
    """
    with waiting("fitting all orders"):
        fitted = fit_orders(returns, orders, rng=np.random.default_rng(plan.seed))
    result = run_chains(fitted, plan, checkpoints(folder, plan))
    with waiting("fitting all orders by the package arch"):
        return replace(result, bic=bic_by_package(returns, orders))


def checkpoints(folder: Path, plan: Plan) -> Path:
    """Say where the chains of a plan have their checkpoints."""
    return folder / f".arch-{plan.steps}-{plan.chains}-{plan.seed}"


def run_chains(fitted: Fitted, plan: Plan, folder: Path, progress: bool = True) -> ArchResult:
    """Adapt the weights, run chains with them, and make some of their decisions again."""
    race, runs = Race(delta=plan.delta, first=plan.first), Runs(fitted, plan, folder, progress)
    start = runs.adapted(fitted.kernel(race, adapt_for=plan.adapt)).last[0]._replace(iteration=0)
    raced = runs.sampled(RACED, fitted.kernel(race), start, plan.steps)
    share = min(1.0, plan.audited / (raced.trace.chains * raced.trace.draws))
    audit = raced.trace.audit(share, rng=plan.rng("audit"))
    return ArchResult(fitted, plan, start, raced, audit, by_importance(fitted, plan.rng("evidence")))


def write_result(folder: Path, result: ArchResult) -> dict[str, str]:
    """Write what a page shows, and the chains; return the files and what is in them."""
    tables: dict[str, Sequence[Any]] = {
        "orders": result.orders,
        "parameters": result.parameters,
        "tracks": result.tracks,
        "correlations": result.correlations,
    }
    files = {
        name: CONTENTS[table] for table, rows in tables.items() for name in write_rows(folder, table, rows)
    }
    with unfinished(folder / TRACE) as path:
        result.raced.trace.to_arviz().to_netcdf(path)
    return {**files, TRACE: "the raced chains, for ArviZ"}
