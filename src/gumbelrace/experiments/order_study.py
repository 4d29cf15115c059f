"""The study of section 5.2: which order of an ARCH model, by a raced chain and by its exact twin."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.audit import Audit
from gumbelrace.chain.run import run
from gumbelrace.chain.trace import Trace
from gumbelrace.experiments.orders import Fitted, Order, posterior
from gumbelrace.kernels.base import Kernel
from gumbelrace.kernels.carlin_chib import CarlinChib, ModelChoice
from gumbelrace.solvers.exact import Exact
from gumbelrace.solvers.race import Race

Floats = NDArray[np.float64]
# Steps in which the weights of the orders adapt.
ADAPT = 2000
# Decisions that are made again exactly.
AUDITED = 200
# Points of a track, and lags of an autocorrelation.
MOMENTS, LAGS = 60, 60
RACED, EXACT = "raced", "exact"
# Steps that are timed together, and how often.
TIMED, TIMINGS = {RACED: 100, EXACT: 10}, 5


@dataclass(frozen=True)
class Plan:
    """How long chains are.

    Attributes
    ----------
    steps, exact_steps : int
        Steps of each raced chain, and of each chain of the exact twin.
    chains : int
        Number of chains of each.
    delta : float
        How likely the error of a decision may be.
    first : int
        Rows at the first look of a race.
    seed : int
        Seed of everything.
    """

    steps: int = 20_000
    exact_steps: int = 2000
    chains: int = 4
    delta: float = 0.05
    first: int = 8
    seed: int = 0


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


class Parameter(NamedTuple):
    """A parameter of the most probable model."""

    name: str
    mean: float
    deviation: float
    low: float  # 2.5% and 97.5% quantiles
    high: float


class Cost(NamedTuple):
    """What a sampler took."""

    sampler: str
    steps: int  # of all chains
    evaluations: float  # a step
    share: float  # of what the exact sampler reads that keeps its last likelihoods: K rows a step
    seconds: float  # processor time a step
    effective: float  # effective sample size of the order


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
class OrderStudy:
    """What the page of a study shows."""

    fitted: Fitted
    plan: Plan
    raced: Sampled
    exact: Sampled
    audit: Audit

    @property
    def best(self) -> int:
        """Number of the most probable model."""
        return int(np.argmax([one.log_probability for one in self.raced.orders]))

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
    race = Race(delta=plan.delta, first=plan.first)
    adapting = fitted.kernel(race, adapt_for=ADAPT)
    rng = np.random.default_rng([plan.seed, 0])
    start = fitted.start(adapting, rng)
    adapted = finished(run(adapting, start, ADAPT, rng, progress=progress, checkpoint=folder / "adapt"))
    start = adapted.last[0]._replace(iteration=0)
    raced = sampled(RACED, fitted, fitted.kernel(race), start, plan, folder, progress)
    twin = fitted.kernel(Exact(), exact=True)
    exact = sampled(EXACT, fitted, twin, start, plan, folder, progress)
    share = min(1.0, AUDITED / (plan.chains * plan.steps))
    audit = raced.trace.audit(share, rng=np.random.default_rng([plan.seed, 3]))
    return OrderStudy(fitted, plan, raced, exact, audit)


def finished(trace: Trace[ModelChoice]) -> Trace[ModelChoice]:
    """Give a trace that was not interrupted: what comes after it must not be made of half of it."""
    if trace.interrupted:
        raise KeyboardInterrupt
    return trace


def sampled(
    name: str,
    fitted: Fitted,
    kernel: CarlinChib,
    start: ModelChoice,
    plan: Plan,
    folder: Path,
    progress: bool,
) -> Sampled:
    """Run the chains of a sampler."""
    steps = plan.steps if name == RACED else plan.exact_steps
    rng = np.random.default_rng([plan.seed, 1 if name == RACED else 2])
    trace = finished(
        run(kernel, start, steps, rng, plan.chains, progress=progress, checkpoint=folder / name)
    )
    visited = np.asarray(trace["model"])
    by_chain = [posterior(chain[None], start.log_weights, fitted) for chain in visited]
    return Sampled(
        name,
        trace,
        posterior(visited, start.log_weights, fitted),
        by_chain,
        cost(name, trace, fitted),
    )


def cost(name: str, trace: Trace[ModelChoice], fitted: Fitted) -> Cost:
    """Sum up what chains took."""
    steps = trace.chains * trace.draws
    evaluations = float(np.sum(trace.info.evaluations)) / steps
    needed = len(fitted.fits) * fitted.data.size
    if name == EXACT:  # what was read but need not have been: the likelihoods of where the chain is
        evaluations = needed
    effective = float(np.asarray(trace.ess(var_names=["model"])["model"]))
    seconds = seconds_a_step(trace.kernel, trace.last[0], TIMED[name])
    return Cost(name, steps, evaluations, evaluations / needed, seconds, effective)


def seconds_a_step(kernel: Kernel[ModelChoice], state: ModelChoice, steps: int) -> float:
    """Time compiled steps: a run that goes on from a checkpoint has no time of its own."""
    times = []
    for seed in range(TIMINGS + 1):
        started = time.thread_time()
        kernel.steps(np.random.default_rng(seed), state, steps)
        times.append((time.thread_time() - started) / steps)
    return median(times[1:])  # the first may compile


def tracks(sampler: Sampled, fitted: Fitted) -> Iterator[Track]:
    """Follow the estimates of the first chain."""
    trace = sampler.trace
    visited, spent = np.asarray(trace["model"])[0], np.cumsum(np.asarray(trace.info.evaluations)[0])
    if sampler.name == EXACT:
        spent = np.arange(1, len(visited) + 1) * len(fitted.fits) * fitted.data.size
    weights = np.asarray(trace["log_weights"])[0, 0]
    moments = np.unique(np.geomspace(20, len(visited), MOMENTS).astype(np.int64))
    counts = np.stack([np.cumsum(visited == k)[moments - 1] for k in range(len(weights))], axis=1)
    with np.errstate(divide="ignore"):
        log_p = np.log(counts) - weights
    log_p -= np.logaddexp.reduce(log_p, axis=1)[:, None]
    for row, moment in zip(log_p, moments, strict=True):
        for order, value in zip(fitted.orders, row, strict=True):
            if np.isfinite(value):
                yield Track(sampler.name, order, int(spent[moment - 1]), float(value))


def correlations(sampler: Sampled, fitted: Fitted) -> Iterator[Correlation]:
    """Give the autocorrelation of the order, the mean over chains."""
    orders = np.array(fitted.orders, np.float64)[np.asarray(sampler.trace["model"])]
    centred = orders - orders.mean(axis=1, keepdims=True)
    scale = np.mean(centred**2)
    for lag in range(min(LAGS, centred.shape[1] - 1) + 1):
        product = centred[:, : centred.shape[1] - lag] * centred[:, lag:]
        yield Correlation(sampler.name, lag, float(product.mean() / scale))


def summary(name: str, values: Floats) -> Parameter:
    """Describe draws of a parameter."""
    low, high = np.quantile(values, [0.025, 0.975])
    return Parameter(name, float(values.mean()), float(values.std()), float(low), float(high))


def differences(study: OrderStudy) -> list[float]:
    """Give the differences between both samplers in standard errors, of the orders that both visited."""
    pairs = zip(study.raced.orders, study.exact.orders, strict=True)
    return [
        float((a.log_probability - b.log_probability) / np.hypot(a.error, b.error))
        for a, b in pairs
        if a.visits and b.visits
    ]
