"""The ARCH experiment in the paper's own setting: raced and exact chains."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gumbelrace.applications.arch import Estimates
from gumbelrace.applications.arch_chains import (
    EXACT,
    RACED,
    Plan,
    Runs,
    Sampled,
    Track,
    moments_of,
    tracked,
)
from gumbelrace.chain.trace import Trace
from gumbelrace.kernels.model_choice import ModelChoice
from gumbelrace.methods.bounds import Normal
from gumbelrace.methods.exact import Exact
from gumbelrace.methods.race import Race
from gumbelrace.models.arch.rows import points_of
from gumbelrace.paper.arch_exact import Audits, audits
from gumbelrace.paper.arch_setting import PaperSetting

Floats = NDArray[np.float64]
PILOTS = 20
# Steps of the paper's setting: it is not compiled.
PLAN = Plan(steps=4000, chains=5, first=50, adapt=8000, audited=1500)


@dataclass(frozen=True, eq=False)
class PaperStudy:
    """What the paper's setting gave.

    Attributes
    ----------
    adapting : dict
        Chains of each sampler whose weights adapt.
    raced, exact : Sampled
        Chains with fixed weights.
    audits : Audits
        Decisions of the raced chains that were made again.
    reference : Estimates
        log p(q | r) by importance sampling.
    reductions : (float, float)
        How many times smaller the control variates make the variance of rewards, and of the differences
        of rewards between two parameters of an order.
    """

    setting: PaperSetting
    adapting: dict[str, Trace[ModelChoice]]
    raced: Sampled
    exact: Sampled
    audits: Audits
    reference: Estimates
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

    Parameters
    ----------
    setting : PaperSetting
        The setting.
    reference : Estimates
        log p(q | r) to compare with.
    plan : Plan
        How long.
    folder : Path
        Where checkpoints lie; what was stopped goes on there.
    progress : bool
        Whether to show how far it is.
    """
    race = Race(Normal(student=False), plan.delta, plan.first)
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
    rows = np.arange(data.size) if control.always is None else control.always.raced
    alone, between = [], []
    for fit in setting.fits:
        points = points_of(list(fit.sample(rng, PILOTS)), fit.model.tau, data.lags)
        rewards = setting.rewards(points, rows)
        residuals = rewards - control.at(points).values(rows, np.arange(len(points)))
        alone.append(np.var(rewards, axis=0) / np.var(residuals, axis=0))
        between.append(np.var(np.diff(rewards), axis=0) / np.var(np.diff(residuals), axis=0))
    return float(np.median(alone)), float(np.median(between))
