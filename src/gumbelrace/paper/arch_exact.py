"""What is exact beside chains over orders: a twin that reads everything, and decisions made again."""

import math
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from gumbelrace.applications.arch import Fitted
from gumbelrace.applications.arch_chains import EXACT, Runs, Sampled
from gumbelrace.applications.arch_result import ArchResult
from gumbelrace.chain.trace import Trace
from gumbelrace.kernels.model_choice import ModelChoice
from gumbelrace.methods.exact import Exact
from gumbelrace.models.arch.rows import log_likelihood, points_of
from gumbelrace.verdict import clopper_pearson

CONFIDENCE = 0.95
# Exact steps whose likelihoods are timed together, and how often.
TIMED, TIMINGS = 10, 5


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
        """Chains of each sampler."""
        return self.raced, self.exact

    @property
    def orders(self) -> list[Any]:
        """What is known of each order."""
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
    points, times = points_of([fit.mean for fit in fitted.fits], tau, data.lags), []
    for _ in range(TIMINGS + 1):
        started = time.thread_time()
        for _ in range(TIMED):
            log_likelihood(points, *data.parts)
        times.append((time.thread_time() - started) / TIMED)
    return median(times[1:])  # the first may compile


class Checked(NamedTuple):
    """Decisions that were made again exactly, and how many differed."""

    errors: int
    decisions: int

    @property
    def rate(self) -> float:
        """Share that was wrong."""
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
    """Make steps from states picked at random, checking both decisions of each.

    Parameters
    ----------
    trace : Trace
        Chains of a `CarlinChib` kernel.
    steps : int
        Number of steps; at most as many as there are states.
    rng : numpy.random.Generator
        Picks the states and makes the steps.
    """
    kernel: Any = trace.kernel
    kept, counts = trace.chains * trace.draws, np.zeros((2, 2), np.int64)
    for place in rng.choice(kept, min(steps, kept), replace=False):
        _, *checks = kernel.audited(rng, trace.state(*divmod(int(place), trace.draws)))
        counts += [[check.errors, check.decisions] for check in checks]
    (wrong_moves, moves), (wrong_draws, draws) = counts.tolist()
    return Audits(Checked(wrong_draws, draws), Checked(wrong_moves, moves))
