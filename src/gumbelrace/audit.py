"""Did the solver keep its promise? Rerun draws exactly, with the same Gumbel variables, and count."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its parts load when first used
from numpy.typing import ArrayLike, NDArray

from gumbelrace.errors import InvalidArgument
from gumbelrace.jit import check_generator
from gumbelrace.population.base import Population, checked_count
from gumbelrace.population.given import as_population
from gumbelrace.sample import batches, checked_prior, gumbels, share_read
from gumbelrace.solvers.base import Promise, Solver, checked_solver
from gumbelrace.solvers.exact import Totals, compared
from gumbelrace.solvers.results import Results


@dataclass(frozen=True)
class Audit:
    """How often a solver was wrong.

    Attributes
    ----------
    errors, draws : int
        Draws that differ from the exact ones with the same Gumbel variables, and draws in all.
    interval : (float, float)
        Clopper-Pearson interval for the probability of an error.
    confidence : float
        Its level.
    fraction : float
        Share of all rewards that the solver read.
    promise : Promise
        What the solver had promised.
    """

    errors: int
    draws: int
    interval: tuple[float, float]
    confidence: float
    fraction: float
    promise: Promise

    @property
    def tv_bound(self) -> float:
        """Upper bound on the total variation to p(x), at the level of the interval (Proposition 1)."""
        return self.interval[1]

    @property
    def broken(self) -> bool:
        """Whether the errors are more than the promise allows: the interval lies above its δ."""
        return self.interval[0] > self.promise.delta

    def __str__(self) -> str:
        """Say what was found in one line."""
        low, high = self.interval
        kept = "broken" if self.broken else "kept"
        return (
            f"{self.errors} errors in {self.draws} draws "
            f"({self.confidence:.0%} interval {low:.4f} to {high:.4f}), "
            f"{self.fraction:.2%} of the rewards read; promise of {self.promise.delta:g} {kept}"
        )


def audit(
    population: Population | ArrayLike,
    solver: Solver,
    draws: int = 1000,
    *,
    rng: np.random.Generator,
    log_prior: ArrayLike | None = None,
    confidence: float = 0.95,
    reshuffle_every: int | None = None,
) -> Audit:
    """Measure how often a solver errs on a population.

    All rewards are read once for the exact sums; every draw is then checked against them.

    Parameters
    ----------
    population : Population, or array_like of shape (N, D)
        The log factors; an array is taken as a `table`.
    solver : Solver
        The solver to check.
    draws : int
        How many draws to check.
    rng : numpy.random.Generator
        As in `sample`.
    log_prior : array_like of shape (D,), optional
        As in `sample`.
    confidence : float
        Level of the interval.
    reshuffle_every : int, optional
        As in `sample`.

    Examples
    --------
    Rewards whose differences are skewed break the normal assumption; the audit shows it.

    >>> import numpy as np, gumbelrace as gr
    >>> rng = np.random.default_rng(0)
    >>> rewards = -1e-3 * rng.lognormal(0.0, 2.0, size=(20_000, 2))
    >>> rewards[:, 1] = rewards[:, 1].mean()
    >>> rewards[:, 0] -= rewards[:, 0].mean() - rewards[:, 1].mean()
    >>> gr.audit(gr.table(rewards), gr.Race(gr.Normal()), rng=rng).broken
    True
    >>> gr.audit(gr.table(rewards), gr.Betting(), rng=rng).broken
    False
    """
    rng, rewards, solver = check_generator(rng), as_population(population), checked_solver(solver)
    if not 0.0 < confidence < 1.0:
        raise InvalidArgument(f"confidence is {confidence}; it must lie strictly between 0 and 1")
    count = checked_count(draws, "draws")
    rewards.draw_order(rng)
    prior, exact = checked_prior(log_prior, rewards.arms), compared(rewards)
    errors, evaluations = 0, rewards.read_before
    for shuffled, part in batches(rewards, count, reshuffle_every, rng):
        offsets = gumbels(prior, part, rng)
        found = solver.best_each(shuffled, offsets, rng)
        errors += wrong(found.arms, exact.plus(offsets))
        evaluations += int(found.evaluations.sum())
    interval = clopper_pearson(errors, count, confidence)
    fraction = share_read(evaluations, count, rewards)
    return Audit(errors, count, interval, confidence, fraction, solver.promise.on(rewards))


def wrong(arms: NDArray[np.int64], values: Totals) -> int:
    """Count the arms that are not the best of their row of `values`, whatever rounding did."""
    highest = np.take_along_axis(values.sums + values.rounding, arms[:, None], axis=1)[:, 0]
    return int(np.sum(highest < np.max(values.sums - values.rounding, axis=1)))


class Audited(Solver):
    """A solver that also finds every answer exactly, and counts how often the other one was wrong.

    Attributes
    ----------
    solver : Solver
        The solver whose answers are given and checked.
    errors, decisions : int
        Wrong answers so far, and answers in all.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> rng = np.random.default_rng(0)
    >>> audited = Audited(gr.Betting())
    >>> population = gr.table(rng.normal(size=(1000, 3)) + [0.0, 0.5, 0.0])
    >>> audited.best(population, None, rng).arm, audited.errors, audited.decisions
    (1, 0, 1)
    """

    is_a_race = False

    def __init__(self, solver: Solver) -> None:
        self.solver, self.errors, self.decisions = solver, 0, 0

    @property
    def promise(self) -> Promise:
        """What the checked solver promises."""
        return self.solver.promise

    def rule(self, population: Population) -> Any:
        """Give the rule of the checked solver."""
        return self.solver.rule(population)

    def best_each(self, population: Population, offsets: ArrayLike, rng: np.random.Generator) -> Results:
        """Find the best arm once for each row of `offsets`, and check it."""
        found = self.solver.best_each(population, offsets, rng)
        self.errors += wrong(found.arms, compared(population).plus(np.asarray(offsets)))
        self.decisions += len(found.arms)
        return found


def clopper_pearson(errors: int, draws: int, confidence: float) -> tuple[float, float]:
    """Give the exact binomial interval for the probability of an error.

    Examples
    --------
    >>> low, high = clopper_pearson(0, 100, 0.95)
    >>> low, round(high, 4)
    (0.0, 0.0362)
    """
    tail = (1.0 - confidence) / 2.0
    quantile = scipy.special.betaincinv
    low = quantile(errors, draws - errors + 1, tail) if errors > 0 else 0.0
    high = quantile(errors + 1, draws - errors, 1.0 - tail) if errors < draws else 1.0
    return float(low), float(high)
