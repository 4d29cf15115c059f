"""Chains over the orders of an ARCH model, what they say and what they took: `gumbelrace arch`."""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.applications.arch import (
    Fitted,
    Order,
    Setting,
    fit_orders,
    log_normalised,
    posterior,
)
from gumbelrace.applications.store import write_tables
from gumbelrace.chain.run import run
from gumbelrace.chain.trace import Trace
from gumbelrace.core.atomic import unfinished
from gumbelrace.errors import optional
from gumbelrace.kernels.base import Kernel
from gumbelrace.kernels.model_choice import CarlinChib, ModelChoice
from gumbelrace.methods.exact import Exact
from gumbelrace.methods.race import Race
from gumbelrace.models.arch.data import Returns
from gumbelrace.tables.writing import Kind
from gumbelrace.verdict import Audit

Floats = NDArray[np.float64]
# Likelihoods that the audit of raced chains alone may read: those of 1,500 exact steps of six orders and
# 13,000 rows. It checks so many steps at least.
AUDIT_READS, FEWEST_AUDITED = 1500 * 6 * 13_000, 20
# Points of a track, and lags of an autocorrelation.
MOMENTS, LAGS = 60, 60
RACED, EXACT = "raced", "exact"
# Steps that are timed together, and how often; exact ones take longer.
TIMED, TIMED_EXACT, TIMINGS = 100, 10, 5
# Sources of randomness of one seed.
STREAMS = {"adapt": 0, RACED: 1, EXACT: 2, "audit": 3, "evidence": 4, "adapt exact": 5}
# Shows that something is being done for as long as the context lasts.
Waiting = Callable[[str], AbstractContextManager[Any]]
TRACE = "trace.nc"


@dataclass(frozen=True)
class Plan:
    """How long chains are."""

    steps: int = 20_000  # of each chain
    chains: int = 5
    delta: float = 0.05  # how likely the error of a decision may be
    first: int = 8  # rows at the first look of a race
    seed: int = 0  # seed of everything
    adapt: int = 2000  # steps in which the weights of the orders adapt
    audited: int = 1500  # steps whose decisions are made again exactly

    def rng(self, use: str) -> np.random.Generator:
        return np.random.default_rng([self.seed, STREAMS[use]])


class Track(NamedTuple):
    """Estimate of log p(q | r) by one chain after so many evaluations of the likelihood."""

    sampler: str
    order: int
    evaluations: int
    log_probability: float


class Correlation(NamedTuple):
    """Autocorrelation of the order."""

    sampler: str
    lag: int
    correlation: float


class Cost(NamedTuple):
    """What a sampler took."""

    sampler: str
    steps: int  # of all chains
    evaluations: float  # a step
    share: float  # of `Setting.exact_reads`
    seconds: float  # processor time a step
    effective: float  # effective sample size of the order

    @property
    def effective_a_read(self) -> float:
        return self.effective / (self.steps * self.evaluations)

    @property
    def effective_a_second(self) -> float:
        return self.effective / (self.steps * self.seconds)


@dataclass(frozen=True, eq=False)
class Sampled:
    """Chains of one sampler, and what they say."""

    name: str
    trace: Trace[ModelChoice]
    orders: list[Order]  # what all chains say together
    by_chain: list[list[Order]]  # what each says
    cost: Cost


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs chains of a setting; one that was stopped goes on from its checkpoint in `folder`."""

    setting: Setting
    plan: Plan
    folder: Path
    progress: bool = True

    def adapted(self, kernel: CarlinChib, name: str = "adapt", chains: int = 1) -> Trace[ModelChoice]:
        rng = self.plan.rng(name)
        start = self.setting.start(kernel, rng)
        checkpoint = self.folder / name.replace(" ", "-")
        return self._run(kernel, start, (self.plan.adapt, chains), rng, checkpoint)

    def sampled(self, name: str, kernel: CarlinChib, start: ModelChoice, steps: int) -> Sampled:
        size, rng = (steps, self.plan.chains), self.plan.rng(name)
        trace = self._run(kernel, start, size, rng, self.folder / name)
        visited, weights = np.asarray(trace["model"]), start.log_weights
        by_chain = [posterior(chain[None], weights, self.setting) for chain in visited]
        together = posterior(visited, weights, self.setting)
        return Sampled(name, trace, together, by_chain, cost(name, trace, self.setting))

    def _run(
        self,
        kernel: CarlinChib,
        start: ModelChoice,
        size: tuple[int, int],
        rng: np.random.Generator,
        checkpoint: Path,
    ) -> Trace[ModelChoice]:
        """Run (steps, chains); what comes after an interrupted trace must not be made of half of it."""
        steps, chains = size
        trace = run(
            kernel,
            start,
            steps=steps,
            rng=rng,
            chains=chains,
            progress=self.progress,
            checkpoint=checkpoint,
        )
        if trace.interrupted:
            raise KeyboardInterrupt
        return trace


def cost(name: str, trace: Trace[ModelChoice], setting: Setting) -> Cost:
    steps, needed = trace.chains * trace.draws, setting.exact_reads
    evaluations = float(np.sum(trace.info.evaluations)) / steps
    seconds = seconds_a_step(trace.kernel, trace.last[0], TIMED_EXACT if is_exact(trace) else TIMED)
    if is_exact(trace):
        # Our exact steps read the likelihoods of where the chain is again; they need not have been.
        seconds, evaluations = seconds * needed / evaluations, needed
    effective = float(np.asarray(trace.ess(var_names=["model"])["model"]))
    return Cost(name, steps, evaluations, evaluations / needed, seconds, effective)


def seconds_a_step(kernel: Kernel[ModelChoice], state: ModelChoice, steps: int) -> float:
    """Time steps: a run that goes on from a checkpoint has no time of its own."""
    seeds = itertools.count()

    def make_steps() -> None:
        rng = np.random.default_rng(next(seeds))
        if kernel.steps(rng, state, steps) is None:
            for _ in range(steps):
                kernel.step(rng, state)

    return median_seconds(make_steps) / steps


def median_seconds(work: Callable[[], Any]) -> float:
    """Give the processor time of some work, the median of several times; the first may compile."""
    times = []
    for _ in range(TIMINGS + 1):
        started = time.thread_time()
        work()
        times.append(time.thread_time() - started)
    return median(times[1:])


def is_exact(trace: Trace[ModelChoice]) -> bool:
    return isinstance(getattr(trace.kernel, "method", None), Exact)


def spent(trace: Trace[ModelChoice], setting: Setting) -> NDArray[np.int64]:
    """Count the likelihoods evaluated up to each step of the first chain."""
    if is_exact(trace):
        return np.arange(1, trace.draws + 1) * setting.exact_reads
    total: NDArray[np.int64] = np.cumsum(np.asarray(trace.info.evaluations)[0])
    return total


def tracks(sampler: Sampled, setting: Setting) -> Iterator[Track]:
    """Follow the estimates of the first chain, from its visits."""
    trace = sampler.trace
    visited, weights = np.asarray(trace["model"])[0], np.asarray(trace["log_weights"])[0, 0]
    moments = moments_of(trace)
    counts = np.stack([np.cumsum(visited == k)[moments - 1] for k in range(len(weights))], axis=1)
    with np.errstate(divide="ignore"):
        log_p = np.log(counts) - weights
    return tracked(sampler.name, trace, setting, log_p)


def moments_of(trace: Trace[ModelChoice]) -> NDArray[np.int64]:
    """Give the numbers of steps after which estimates are shown."""
    return np.unique(np.geomspace(20, trace.draws, MOMENTS).astype(np.int64))


def tracked(name: str, trace: Trace[ModelChoice], setting: Setting, log_p: Floats) -> Iterator[Track]:
    """Give the estimates of each moment, which are normalised first."""
    reads, moments = spent(trace, setting), moments_of(trace)
    for row, moment in zip(log_normalised(log_p), moments, strict=True):
        for order, value in zip(setting.orders, row, strict=True):
            if np.isfinite(value):
                yield Track(name, order, int(reads[moment - 1]), float(value))


def correlations(sampler: Sampled, setting: Setting) -> Iterator[Correlation]:
    """Give the autocorrelation of the order, the mean over chains."""
    orders = np.array(setting.orders, np.float64)[np.asarray(sampler.trace["model"])]
    centred = orders - orders.mean(axis=1, keepdims=True)
    scale = np.mean(centred**2)
    for lag in range(min(LAGS, centred.shape[1] - 1) + 1):
        product = centred[:, : centred.shape[1] - lag] * centred[:, lag:]
        yield Correlation(sampler.name, lag, float(product.mean() / scale))


class Parameter(NamedTuple):
    """A parameter of the most probable model."""

    name: str
    mean: float
    deviation: float
    low: float  # 2.5% and 97.5% quantiles
    high: float


@dataclass(frozen=True, eq=False)
class ArchResult:
    """What is known of the orders."""

    fitted: Fitted
    plan: Plan
    start: ModelChoice  # where they started, with the adapted weights
    raced: Sampled
    audit: Audit  # decisions of theirs that were made again exactly

    @property
    def best(self) -> int:
        """Number of the most probable model."""
        return int(np.argmax([one.log_probability for one in self.raced.orders]))

    @property
    def samplers(self) -> tuple[Sampled, ...]:
        return (self.raced,)

    @property
    def orders(self) -> Sequence[Order]:
        return self.raced.orders

    @property
    def probability(self) -> tuple[float, float]:
        """Probability of the most probable model, and its standard error."""
        log_p, error = self.raced.orders[self.best].log_probability, self.probability_errors[self.best]
        return float(np.exp(log_p)), float(error)

    @property
    def probability_errors(self) -> Floats:
        """Standard errors of the probabilities of all models, of 0 for those that were not visited."""
        p = np.exp([one.log_probability for one in self.raced.orders])
        error = np.array([one.error if one.visits else 0.0 for one in self.raced.orders])
        # log p_q = e_q - log Σ exp e_k has derivatives δ_qk - p_k.
        found: Floats = p * np.sqrt(np.square(np.eye(len(p)) - p) @ np.square(error))
        return found

    @property
    def tracks(self) -> list[Track]:
        return [track for sampler in self.samplers for track in tracks(sampler, self.fitted)]

    @property
    def correlations(self) -> list[Correlation]:
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


def summary(name: str, values: Floats) -> Parameter:
    low, high = np.quantile(values, [0.025, 0.975])
    return Parameter(name, float(values.mean()), float(values.std()), float(low), float(high))


def check_packages() -> None:
    """Say now, not after the chains, what is not installed."""
    for name in ("arviz_base", "arviz_stats"):
        optional(name, "arviz")


def choose_order(
    returns: Returns, orders: Sequence[int], plan: Plan, folder: Path, waiting: Waiting = nullcontext
) -> ArchResult:
    """Fit all orders and run raced chains over them.

    What was stopped goes on where it was: its chains have checkpoints in `folder`. `waiting` shows what is
    being done where a chain does not show how far it is.
    """
    with waiting("fitting all orders"):
        fitted = fit_orders(returns, orders, rng=np.random.default_rng(plan.seed))
    return run_chains(fitted, plan, checkpoints(folder, plan), waiting=waiting)


def checkpoints(folder: Path, plan: Plan) -> Path:
    return folder / f"arch-{plan.steps}-{plan.chains}-{plan.seed}"


def run_chains(
    fitted: Fitted, plan: Plan, folder: Path, progress: bool = True, waiting: Waiting = nullcontext
) -> ArchResult:
    race, runs = Race(delta=plan.delta, first=plan.first), Runs(fitted, plan, folder, progress)
    start = runs.adapted(fitted.kernel(race, adapt_for=plan.adapt)).last[0]._replace(iteration=0)
    raced = runs.sampled(RACED, fitted.kernel(race), start, plan.steps)
    with waiting("checking decisions exactly"):
        affordable = max(FEWEST_AUDITED, AUDIT_READS // fitted.exact_reads)
        return ArchResult(fitted, plan, start, raced, audit_of(raced, plan, min(plan.audited, affordable)))


def audit_of(raced: Sampled, plan: Plan, steps: int) -> Audit:
    """Make the decisions of so many steps again exactly."""
    share = min(1.0, steps / (raced.trace.chains * raced.trace.draws))
    return raced.trace.audit(share, rng=plan.rng("audit"))


def write_result(folder: Path, result: ArchResult, kind: Kind = Kind.CSV) -> dict[str, str]:
    """Write what a page shows; return the files and what is in them."""
    tables: dict[str, tuple[str, Sequence[Any]]] = {
        "orders": ("log p(q | r) of each order, with its error", result.orders),
        "parameters": ("parameters of the most probable order", result.parameters),
        "tracks": ("estimates of log p(q | r) over time", result.tracks),
        "correlations": ("autocorrelation of the order", result.correlations),
    }
    return write_tables(folder, tables, kind)


def write_trace(folder: Path, result: ArchResult) -> dict[str, str]:
    """Write the raced chains, with the parameters of all orders: some hundred megabytes."""
    with unfinished(folder / TRACE) as path:
        result.raced.trace.to_arviz().to_netcdf(path)
    return {TRACE: "the raced chains, for ArviZ"}
