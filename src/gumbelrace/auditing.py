"""Did the method keep its promise? Rerun draws exactly, with the same Gumbel variables, and count."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gumbelrace.core.random import Rng, as_generator
from gumbelrace.errors import InvalidArgument
from gumbelrace.methods.base import Asked, Method, Promise, weakest
from gumbelrace.methods.checking import checking
from gumbelrace.methods.default import single_method
from gumbelrace.methods.exact import compared
from gumbelrace.methods.loop import Plan
from gumbelrace.methods.state import Results
from gumbelrace.population.arrays import ByArm
from gumbelrace.population.base import Population, checked_count
from gumbelrace.population.table import as_population
from gumbelrace.sampling import DRAW, batches, checked_prior, share_read
from gumbelrace.verdict import Audit, checked_confidence, clopper_pearson, impossible, wrong


def audit(
    population: Population | ArrayLike,
    method: Method | None = None,
    *,
    draws: int = 1000,
    log_prior: ByArm | None = None,
    delta: float | None = None,
    rng: Rng = None,
    confidence: float = 0.95,
    reshuffle_every: int | None = None,
) -> Audit:
    """Measure how often a method errs on a population.

    All rewards are read once for the exact sums; every draw is then checked against them.

    Parameters
    ----------
    population : Population, or array_like of shape (N, D)
        The log factors; an array is taken as a `table`.
    method : Method, optional
        The method to check. Default: as in `sample`.
    draws : int
        How many draws to check.
    log_prior : array_like of shape (D,), optional
        As in `sample`.
    delta : float, optional
        That of the default method.
    rng : numpy.random.Generator, int, or None
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
    >>> gr.audit(gr.table(rewards), gr.Race(gr.methods.Normal()), rng=rng).broken
    True
    >>> gr.audit(gr.table(rewards), gr.Betting(), rng=rng).broken
    False
    """
    rng, rewards, method = as_generator(rng), as_population(population), single_method(delta, method)
    level, count = checked_confidence(confidence), checked_count(draws, "draws")
    rewards.draw_order(rng)
    prior, exact = checked_prior(log_prior, rewards), compared(rewards)
    errors, ruled_out, evaluations = 0, 0, rewards.read_before
    for shuffled, part in batches(rewards, count, reshuffle_every, rng):
        offsets = np.tile(prior, (part, 1))
        found = method.answer_each(DRAW, shuffled, offsets, rng)
        values = exact.plus(offsets)
        errors += wrong(found.arms, values)
        ruled_out += impossible(found.arms, values)
        evaluations += int(found.evaluations.sum())
    interval = clopper_pearson(errors, count, level)
    fraction = share_read(evaluations, count, rewards)
    return Audit(errors, count, interval, level, fraction, method.promised(rewards), ruled_out)


def check_winners(method: Method) -> None:
    """Refuse to check decisions one by one that are right in law only."""
    if not method.finds_winners:
        raise InvalidArgument(
            f"{type(method).__name__} finds no winner: its decisions are right in law, and cannot be "
            "checked one by one; compare the chain with one by Exact()"
        )


class Audited(Method):
    """A method that also finds every answer exactly, and counts how often the other one was wrong.

    Parameters
    ----------
    method : Method
        The method whose answers are given and checked.
    rows : numpy.random.Generator, optional
        Chooses the rows in place of the caller's generator, which is then left as it is: two methods
        asked the same questions leave it in the same state.

    Attributes
    ----------
    errors, impossible, decisions : int
        Wrong answers so far, answers of probability zero among them, and answers in all.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> rng = np.random.default_rng(0)
    >>> audited = Audited(gr.Betting())
    >>> population = gr.table(rng.normal(size=(1000, 3)) + [0.0, 0.5, 0.0])
    >>> audited.best(population, None, rng).arm, audited.errors, audited.decisions
    (1, 0, 1)
    """

    def __init__(self, method: Method, rows: np.random.Generator | None = None) -> None:
        check_winners(method)
        self.method, self._rows = method, rows
        self.errors = self.impossible = self.decisions = 0
        self._promised: list[Promise] = []

    @property
    def promise(self) -> Promise:
        """What the checked method has promised of its decisions so far, or, before the first, promises."""
        return weakest(self._promised or [self.method.promise])

    def rule(self, population: Population) -> Any:
        """Give the rule of the checked method."""
        return self.method.rule(population)

    @property
    def has_plan(self) -> bool:  # type: ignore[override]
        """Whether the checked method is one."""
        return self.method.has_plan

    def best_each(
        self, population: Population | ArrayLike, offsets: ArrayLike, rng: np.random.Generator
    ) -> Results:
        """Find the best arm once for each row of `offsets`, and check it."""
        rewards = as_population(population)
        found = self.method.best_each(rewards, offsets, self._rows or rng)
        values = compared(rewards).plus(np.asarray(offsets))
        self._count(rewards, wrong(found.arms, values), impossible(found.arms, values), len(found.arms))
        return found

    @contextmanager
    def _planned(
        self,
        asked: Asked,
        population: Population,
        rng: np.random.Generator,
        rows: np.random.Generator,
    ) -> Iterator[Plan]:
        with self.method.plan(asked, population, rng, self._rows or rows) as plan:
            (checked, _kept_alive), counts = checking(plan)
            yield checked
        self._count(population, *counts.tolist())

    def _count(self, population: Population, errors: int, impossible: int, decisions: int) -> None:
        self.errors += errors
        self.impossible += impossible
        self.decisions += decisions
        self._promised = [weakest([*self._promised, self.method.promised(population)])]
