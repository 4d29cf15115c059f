"""The study of section 5.2: which order of an ARCH model, by a raced chain and by its exact twin."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.applications.arch import Fitted
from gumbelrace.applications.arch_chains import (
    EXACT,
    RACED,
    Correlation,
    Plan,
    Runs,
    Sampled,
    Track,
    correlations,
    tracks,
)
from gumbelrace.applications.arch_evidence import Estimates, by_importance
from gumbelrace.paper.arch_audit import Audits, audits
from gumbelrace.solvers.exact import Exact
from gumbelrace.solvers.race import Race

Floats = NDArray[np.float64]


class Compared(NamedTuple):
    """log p(q | r) of one order by several ways, and the standard errors."""

    order: int
    visits: int
    log_probability: float
    error: float
    exact: float
    exact_error: float
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
class OrderStudy:
    """What the page of a study shows."""

    fitted: Fitted
    plan: Plan
    raced: Sampled
    exact: Sampled
    audits: Audits
    importance: Estimates
    bic: list[float] | None = None

    @property
    def best(self) -> int:
        """Number of the most probable model."""
        return int(np.argmax([one.log_probability for one in self.raced.orders]))

    @property
    def orders(self) -> list[Compared]:
        """What is known of each order."""
        return [
            Compared(
                *one[:4],
                *other[2:4],
                float(self.importance.log_probability[k]),
                float(self.importance.error[k]),
                one.laplace,
                None if self.bic is None else self.bic[k],
            )
            for k, (one, other) in enumerate(zip(self.raced.orders, self.exact.orders, strict=True))
        ]

    @property
    def tracks(self) -> list[Track]:
        """Estimates over time."""
        return [*tracks(self.raced, self.fitted), *tracks(self.exact, self.fitted)]

    @property
    def correlations(self) -> list[Correlation]:
        """Autocorrelations of the order."""
        return [*correlations(self.raced, self.fitted), *correlations(self.exact, self.fitted)]

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
    def apart(self) -> tuple[float, float]:
        """Largest difference of the raced chain from the exact one and from importance sampling.

        In standard errors, of the orders that both visited.
        """
        seen = [one for one in self.orders if one.visits and np.isfinite(one.exact)]
        from_exact = [(x.log_probability - x.exact) / np.hypot(x.error, x.exact_error) for x in seen]
        from_draws = [
            (x.log_probability - x.importance) / np.hypot(x.error, x.importance_error) for x in seen
        ]
        return max(map(abs, from_exact), default=0.0), max(map(abs, from_draws), default=0.0)


def run_study(fitted: Fitted, plan: Plan, folder: Path, progress: bool = True) -> OrderStudy:
    """Adapt the weights, then run raced and exact chains with the same ones.

    A study that was stopped goes on where it was: its chains have checkpoints in `folder`.

    Parameters
    ----------
    fitted : Fitted
        The models.
    plan : Plan
        How long.
    folder : Path
        Where checkpoints lie.
    progress : bool
        Whether to show how far it is.
    """
    race, runs = Race(delta=plan.delta, first=plan.first), Runs(fitted, plan, folder, progress)
    adapted = runs.adapted(fitted.kernel(race, adapt_for=plan.adapt))
    start = adapted.last[0]._replace(iteration=0)
    raced = runs.sampled(RACED, fitted.kernel(race), start)
    exact = runs.sampled(EXACT, fitted.kernel(Exact(), exact=True), start)
    checked = audits(raced.trace, plan.audited, plan.rng("audit"))
    return OrderStudy(fitted, plan, raced, exact, checked, by_importance(fitted, plan.rng("evidence")))


def summary(name: str, values: Floats) -> Parameter:
    """Describe draws of a parameter."""
    low, high = np.quantile(values, [0.025, 0.975])
    return Parameter(name, float(values.mean()), float(values.std()), float(low), float(high))
