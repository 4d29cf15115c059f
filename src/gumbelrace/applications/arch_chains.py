"""Chains over the orders of ARCH models, what they say and what they took."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.applications.arch import Order, Setting, posterior
from gumbelrace.chain.run import run
from gumbelrace.chain.trace import Trace
from gumbelrace.kernels.base import Kernel
from gumbelrace.kernels.model_choice import CarlinChib, ModelChoice
from gumbelrace.methods.exact import Exact

Floats = NDArray[np.float64]
# Points of a track, and lags of an autocorrelation.
MOMENTS, LAGS = 60, 60
RACED, EXACT = "raced", "exact"
# Steps that are timed together, and how often; exact ones take longer.
TIMED, TIMED_EXACT, TIMINGS = 100, 10, 5
# Sources of randomness of one seed.
STREAMS = {"adapt": 0, RACED: 1, EXACT: 2, "audit": 3, "evidence": 4, "adapt exact": 5}


@dataclass(frozen=True)
class Plan:
    """How long chains are.

    Attributes
    ----------
    steps : int
        Steps of each chain.
    chains : int
        Number of chains.
    delta : float
        How likely the error of a decision may be.
    first : int
        Rows at the first look of a race.
    seed : int
        Seed of everything.
    adapt : int
        Steps in which the weights of the orders adapt.
    audited : int
        Steps whose decisions are made again exactly.
    """

    steps: int = 20_000
    chains: int = 5
    delta: float = 0.05
    first: int = 8
    seed: int = 0
    adapt: int = 2000
    audited: int = 1500

    def rng(self, use: str) -> np.random.Generator:
        """Give the source of randomness for a use."""
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
        """Effective draws for each likelihood evaluated."""
        return self.effective / (self.steps * self.evaluations)

    @property
    def effective_a_second(self) -> float:
        """Effective draws in each second."""
        return self.effective / (self.steps * self.seconds)


@dataclass(frozen=True, eq=False)
class Sampled:
    """Chains of one sampler, and what they say.

    Attributes
    ----------
    trace : Trace
        The chains.
    orders : list of Order
        What all chains say together; `by_chain` has what each says.
    cost : Cost
        What they took.
    """

    name: str
    trace: Trace[ModelChoice]
    orders: list[Order]
    by_chain: list[list[Order]]
    cost: Cost


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs chains of a setting; one that was stopped goes on from its checkpoint in `folder`."""

    setting: Setting
    plan: Plan
    folder: Path
    progress: bool = True

    def adapted(self, kernel: CarlinChib, name: str = "adapt", chains: int = 1) -> Trace[ModelChoice]:
        """Let the weights of the orders adapt."""
        rng = self.plan.rng(name)
        start = self.setting.start(kernel, rng)
        place = self.folder / name.replace(" ", "-")
        return self._run(kernel, start, (self.plan.adapt, chains), rng, place)

    def sampled(self, name: str, kernel: CarlinChib, start: ModelChoice, steps: int) -> Sampled:
        """Run the chains of a sampler."""
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
        place: Path,
    ) -> Trace[ModelChoice]:
        """Run (steps, chains); what comes after an interrupted trace must not be made of half of it."""
        trace = run(kernel, start, size[0], rng, size[1], progress=self.progress, checkpoint=place)
        if trace.interrupted:
            raise KeyboardInterrupt
        return trace


def cost(name: str, trace: Trace[ModelChoice], setting: Setting) -> Cost:
    """Sum up what chains took."""
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
    times = []
    for seed in range(TIMINGS + 1):
        rng, started = np.random.default_rng(seed), time.thread_time()
        if kernel.steps(rng, state, steps) is None:
            for _ in range(steps):
                kernel.step(rng, state)
        times.append((time.thread_time() - started) / steps)
    return median(times[1:])  # the first may compile


def is_exact(trace: Trace[ModelChoice]) -> bool:
    """Say whether a chain's decisions are exact."""
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
    log_p = log_p - np.logaddexp.reduce(log_p, axis=1)[:, None]
    for row, moment in zip(log_p, moments, strict=True):
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
