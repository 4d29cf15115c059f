"""The ARCH experiment in the paper's setting, raced and exact; and the exact twin of ours."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.applications.arch import Estimates, Fitted
from gumbelrace.applications.arch_chains import (
    EXACT,
    RACED,
    ArchResult,
    Plan,
    Runs,
    Sampled,
    Track,
    median_seconds,
    moments_of,
    tracked,
)
from gumbelrace.chain.trace import Trace
from gumbelrace.kernels.model_choice import ModelChoice
from gumbelrace.methods.exact import Exact
from gumbelrace.methods.race import Race
from gumbelrace.models.arch.rows import log_likelihood, points_of
from gumbelrace.paper.arch_setting import PAPER_NORMAL, PaperSetting
from gumbelrace.verdict import clopper_pearson

CONFIDENCE = 0.95
TIMED = 10  # exact steps whose likelihoods are timed together
Floats = NDArray[np.float64]
PILOTS = 20
# Steps of the paper's setting: it is not compiled.
PLAN = Plan(steps=4000, chains=5, first=50, adapt=8000, audited=1500)


class Twofold(NamedTuple):
    """As `Compared` of the application, and by the exact chains."""

    order: int
    visits: int
    log_probability: float
    error: float
    exact: float
    exact_error: float
    importance: float
    importance_error: float
    laplace: float
    bic: float | None


@dataclass(frozen=True, eq=False)
class TwinResult(ArchResult):
    """A result, and chains that make the same moves with the same weights and read everything."""

    exact: Sampled = field(kw_only=True)

    @property
    def samplers(self) -> tuple[Sampled, ...]:
        return self.raced, self.exact

    @property
    def orders(self) -> list[Any]:
        exact = {one.order: one for one in self.exact.orders}
        return [
            Twofold(
                **one._asdict(), exact=exact[one.order].log_probability, exact_error=exact[one.order].error
            )
            for one in super().orders
        ]

    @property
    def apart_from_exact(self) -> float:
        """Largest difference from the exact chains in standard errors, of the orders that both visited."""
        seen = [one for one in self.orders if one.visits and np.isfinite(one.exact)]
        apart = [abs(x.log_probability - x.exact) / math.hypot(x.error, x.exact_error) for x in seen]
        return max(apart, default=0.0)


def with_twin(result: ArchResult, steps: int, folder: Path, progress: bool = True) -> TwinResult:
    """Run the exact twin of a result for so many steps; it goes on from checkpoints in `folder`."""
    runs = Runs(result.fitted, result.plan, folder, progress)
    exact = runs.sampled(EXACT, result.fitted.kernel(Exact()), result.start, steps)
    cost = exact.cost._replace(seconds=likelihood_seconds(result.fitted))
    return TwinResult(**vars(result), exact=replace(exact, cost=cost))


def likelihood_seconds(fitted: Fitted) -> float:
    """Time the likelihoods of a step without control variates: an exact sampler has no use for these."""
    tau, data = fitted.fits[0].model.tau, fitted.data
    points = points_of([fit.mean for fit in fitted.fits], tau, data.lags)
    return median_seconds(lambda: [log_likelihood(points, *data.arrays) for _ in range(TIMED)]) / TIMED


class Checked(NamedTuple):
    """Decisions that were made again exactly, and how many differed."""

    errors: int
    decisions: int

    @property
    def rate(self) -> float:
        return self.errors / max(self.decisions, 1)

    @property
    def interval(self) -> tuple[float, float]:
        """95% Clopper-Pearson interval for the probability of an error."""
        return clopper_pearson(self.errors, self.decisions, CONFIDENCE)


class Audits(NamedTuple):
    """Checks of both kinds of decisions, whose error rates the paper gives apart."""

    gibbs: Checked  # draws of the order
    moves: Checked  # Metropolis-Hastings tests of its parameter


def audits(trace: Trace[ModelChoice], steps: int, rng: np.random.Generator) -> Audits:
    """Make steps from states of a trace, picked at random, and check both decisions of each."""
    kernel: Any = trace.kernel
    kept, counts = trace.chains * trace.draws, np.zeros((2, 2), np.int64)
    for number in rng.choice(kept, min(steps, kept), replace=False):
        _, *checks = kernel.audited(rng, trace.state(*divmod(int(number), trace.draws)))
        counts += [[check.errors, check.decisions] for check in checks]
    (wrong_moves, moves), (wrong_draws, draws) = counts.tolist()
    return Audits(Checked(wrong_draws, draws), Checked(wrong_moves, moves))


@dataclass(frozen=True, eq=False)
class PaperStudy:
    """What the paper's setting gave."""

    setting: PaperSetting
    adapting: dict[str, Trace[ModelChoice]]  # chains of each sampler whose weights adapt
    raced: Sampled  # with fixed weights
    exact: Sampled
    audits: Audits  # decisions of the raced chains that were made again
    reference: Estimates  # log p(q | r) by importance sampling
    # How many times smaller the control variates make the variance of rewards, and of their differences
    # between two parameters of an order.
    reductions: tuple[float, float]

    @property
    def reached(self) -> list[int]:
        """Models that every adapting chain has visited."""
        count = len(self.setting.fits)
        visits = [set(chain) for trace in self.adapting.values() for chain in np.asarray(trace["model"])]
        return [k for k in range(count) if all(k in seen for seen in visits)]

    @property
    def tracks(self) -> list[Track]:
        """Estimates while the weights adapt, by the first chain of each sampler."""
        return [
            track for name, trace in self.adapting.items() for track in adapting_tracks(name, trace, self)
        ]

    @property
    def apart(self) -> Floats:
        """Difference between the samplers at each order, 0 if not all runs visited it.

        In standard errors as the runs have them: chains that mix slowly do not know their own.
        """
        raced, exact = (
            np.array([[one.log_probability for one in chain] for chain in sampler.by_chain])
            for sampler in (self.raced, self.exact)
        )
        seen = np.isfinite(raced).all(axis=0) & np.isfinite(exact).all(axis=0)
        variances = [x[:, seen].var(axis=0, ddof=1) / len(x) for x in (raced, exact)]
        apart = np.zeros(len(seen))
        apart[seen] = np.abs(raced[:, seen].mean(axis=0) - exact[:, seen].mean(axis=0))
        apart[seen] /= np.sqrt(sum(variances))
        return apart


def run_paper_setting(
    setting: PaperSetting, reference: Estimates, plan: Plan, folder: Path, progress: bool = True
) -> PaperStudy:
    """Adapt the weights with both samplers, then fix them and run both.

    What was stopped goes on from its checkpoints in `folder`. The estimates are compared with `reference`.
    """
    race = Race(PAPER_NORMAL, plan.delta, plan.first)
    runs = Runs(setting, plan, folder, progress)
    adapting = {
        RACED: runs.adapted(setting.kernel(race, plan.adapt), chains=plan.chains),
        EXACT: runs.adapted(setting.kernel(Exact(), plan.adapt), "adapt exact", plan.chains),
    }
    start = adapting[RACED].last[0]._replace(iteration=0)
    raced = runs.sampled(RACED, setting.kernel(race), start, plan.steps)
    exact = runs.sampled(EXACT, setting.kernel(Exact()), start, plan.steps)
    checked = audits(raced.trace, plan.audited, plan.rng("audit"))
    found = reductions(setting, plan.rng("evidence"))
    return PaperStudy(setting, adapting, raced, exact, checked, reference, found)


def adapting_tracks(name: str, trace: Trace[ModelChoice], study: PaperStudy) -> Iterator[Track]:
    """Follow minus the log weights of the orders visited so far, by the first chain."""
    moments, visited = moments_of(trace) - 1, np.asarray(trace["model"])[0]
    seen = [np.cumsum(visited == k)[moments] > 0 for k in range(len(study.setting.fits))]
    weights = np.asarray(trace["log_weights"])[0][moments]
    return tracked(name, trace, study.setting, np.where(np.stack(seen, axis=1), -weights, -np.inf))


def reductions(setting: PaperSetting, rng: np.random.Generator) -> tuple[float, float]:
    """Measure how the control variates reduce variances: medians over parameters."""
    control, data = setting.control, setting.data
    rows = control.rows.tail
    alone, between = [], []
    for fit in setting.fits:
        points = points_of(list(fit.sample(rng, PILOTS)), fit.model.tau, data.lags)
        rewards = setting.rewards(points, rows)
        residuals = rewards - control.at(points).values(rows, np.arange(len(points)))
        alone.append(np.var(rewards, axis=0) / np.var(residuals, axis=0))
        between.append(np.var(np.diff(rewards), axis=0) / np.var(np.diff(residuals), axis=0))
    return float(np.median(alone)), float(np.median(between))
