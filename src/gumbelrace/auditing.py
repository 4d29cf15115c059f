"""Did the method keep its promise? Rerun draws exactly, with the same Gumbel variables, and count.

A method that fixes no winner is right in law: its answers are compared many at a time.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy  # its parts load when first used
from numpy.typing import ArrayLike

from gumbelrace.core.random import Rng, as_generator
from gumbelrace.methods.base import Asked, Method, Promise, weakest
from gumbelrace.methods.checking import checking
from gumbelrace.methods.default import single_method
from gumbelrace.methods.exact import compared
from gumbelrace.methods.loop import Plan
from gumbelrace.methods.state import CURRENT, PROPOSED, Question, Results
from gumbelrace.population.arrays import ByArm
from gumbelrace.population.base import Floats, Population, Rewards, checked_count
from gumbelrace.population.table import as_population
from gumbelrace.sampling import DRAW, batches, checked_prior, share_read
from gumbelrace.verdict import (
    DRAWS_OF_A_CHAIN,
    MOVES,
    Audit,
    LawCheck,
    checked_confidence,
    clopper_pearson,
    impossible,
    judged_law,
    wrong,
)

# How often a question is asked again to see the law of its answers: as often as reads what the exact answer
# reads, within these limits.
FEWEST_ANSWERS, MOST_ANSWERS = 16, 1024


def audit(
    population: Rewards,
    method: Method | None = None,
    *,
    draws: int = 1000,
    log_prior: ByArm | None = None,
    delta: float | None = None,
    rng: Rng = None,
    confidence: float = 0.95,
    reshuffle_every: int | None = None,
) -> Audit:
    """Measure how often a method errs on a population, or how far the law of its draws is off.

    All rewards are read once for the exact sums; every draw is then checked against them. Draws of a method
    that fixes no winner are counted, and compared with the exact probabilities (`Audit.law`).

    Parameters
    ----------
    population : Population, DiskTable, or array_like of shape (N, D)
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
    drawn, seen = np.zeros(rewards.arms, np.int64), 0.0
    for shuffled, part in batches(rewards, count, reshuffle_every, rng):
        offsets = np.tile(prior, (part, 1))
        found = method.answer_each(DRAW, shuffled, offsets, rng)
        values = exact.plus(offsets)
        errors += wrong(found.arms, values) if method.finds_winners else 0
        ruled_out += impossible(found.arms, values)
        evaluations += int(found.evaluations.sum())
        drawn += np.bincount(found.arms, minlength=rewards.arms)
        seen += float(found.law_error.sum()) / count
    checked = count if method.finds_winners else 0
    interval = clopper_pearson(errors, checked, level)
    promised, law = (share_read(evaluations, count, rewards), method.promised(rewards), ruled_out), None
    if not method.finds_winners:
        chances = scipy.special.softmax(exact.plus(prior[None]).sums[0])
        law = judged_law(drawn, chances, level, seen, method.promised(rewards).delta)
    return Audit(errors, checked, interval, level, *promised, law=law)


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
        """Whether the checked method has one."""
        return self.method.has_plan

    @property
    def picks_rows(self) -> bool:  # type: ignore[override]
        """Whether the checked method does."""
        return self.method.picks_rows

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


class Comparison:
    """Sums over questions: how far the shares of many answers are from what the exact law says.

    Attributes
    ----------
    questions, answers : int
        How many.
    off, variance : float
        Sum of the differences, and of their variances.
    chi_square : float
        Sum of squared differences over their variances.
    seen : float
        Sum of what the method said of the error of its law.
    """

    def __init__(self, of: str) -> None:
        self.of, self.questions, self.answers = of, 0, 0
        self.off = self.variance = self.chi_square = self.seen = 0.0

    def add(self, off: float, variance: float, found: Sequence[Results]) -> None:
        """Add what the answers to one question gave."""
        self.questions += 1
        self.answers += sum(len(results.arms) for results in found)
        self.off += off
        self.variance += variance
        self.chi_square += off * off / variance if variance > 0.0 else 0.0
        self.seen += float(np.mean([results.law_error.mean() for results in found]))

    def add_draws(self, found: Results, chances: Floats) -> None:
        """Add draws of an arm with exact chances: how often it was the likeliest."""
        likeliest = int(chances.argmax())
        variance = chances[likeliest] * (1.0 - chances[likeliest]) / len(found.arms)
        off = float(np.mean(found.arms == likeliest) - chances[likeliest])
        self.add(off, float(variance), [found])


def joined(comparisons: Sequence[Comparison], confidence: float) -> LawCheck | None:
    """Judge what was compared at all questions; None if there were none."""
    of = DRAWS_OF_A_CHAIN if any(c.of != MOVES for c in comparisons) else MOVES
    questions = sum(c.questions for c in comparisons)
    if questions == 0:
        return None
    off = sum(c.off for c in comparisons) / questions
    wide = scipy.special.ndtri(0.5 + 0.5 * confidence)
    margin = float(wide * np.sqrt(sum(c.variance for c in comparisons)) / questions)
    p_value = float(scipy.special.chdtrc(questions, sum(c.chi_square for c in comparisons)))
    seen = sum(c.seen for c in comparisons) / questions
    answers = sum(c.answers for c in comparisons)
    return LawCheck(of, off, (off - margin, off + margin), answers, questions, p_value, seen)


class AuditedLaw(Method):
    """A method that is right in law only, and is asked every question many times, to compare its law.

    A draw is compared with the exact probabilities. The law of moves is right if it keeps detailed balance,
    whatever its acceptance: the way there is compared with the way back.

    Parameters
    ----------
    method : Method
        The method whose answers are given and compared.
    rows : numpy.random.Generator
        Gives its noise and chooses its rows: the caller's generator is left as it is.
    way_back : callable
        Gives the population asked about last, its arms in the opposite order; it is called for moves only.
    """

    has_plan = False

    def __init__(
        self,
        method: Method,
        rows: np.random.Generator,
        way_back: Callable[[], Population],
    ) -> None:
        self.method, self._rows, self._way_back = method, rows, way_back
        self.compared, self._off = Comparison(MOVES), 0.0
        self.errors = self.decisions = 0  # at temperature 0; else nothing is right or wrong by itself

    @property
    def promise(self) -> Promise:
        """What the method promises."""
        return self.method.promise

    @property
    def weight(self) -> float:
        """By how much the one move that was asked about is too likely; NaN of several questions."""
        single = self.compared.of == MOVES and self.compared.questions <= 1
        return self._off if single else np.nan

    def rule(self, population: Population) -> Any:
        """Give the rule of the method."""
        return self.method.rule(population)

    def answer_each(
        self, asked: Asked, population: Population, offsets: Floats, rng: np.random.Generator
    ) -> Results:
        """Answer a question for each row of `offsets`, and again, to compare the law."""
        is_move = asked.question == Question.ACCEPT
        self.compared.of = self.compared.of if is_move else DRAWS_OF_A_CHAIN
        if not is_move and asked.temperature == 0.0:
            return self._best(asked, population, offsets)
        for offset in offsets:
            (self._compare_moves if is_move else self._compare_draws)(asked, population, offset)
        return self.method.answer_each(asked, population, offsets, self._rows)

    def _best(self, asked: Asked, population: Population, offsets: Floats) -> Results:
        """Answer where there is no noise: the answer is the best arm, or it is wrong."""
        found = self.method.answer_each(asked, population, offsets.copy(), self._rows)
        self.errors += wrong(found.arms, compared(population).plus(offsets))
        self.decisions += len(offsets)
        return found

    def _compare_moves(self, asked: Asked, population: Population, offset: Floats) -> None:
        values = compared(population).plus(offset[None]).sums[0]
        if not values[CURRENT] > -np.inf:
            return
        there = self._answers(asked, population, offset)
        back = self._answers(asked, self._way_back(), offset[::-1])
        chance = scipy.special.expit(values[PROPOSED] - values[CURRENT])
        self._off = float((1.0 - chance) * there.arms.mean() - chance * back.arms.mean())
        variance = (1.0 - chance) ** 2 * _of_share(there) + chance**2 * _of_share(back)
        # Seen from the other point it has the other sign: to what is less likely, lest all of it cancels.
        self.compared.add(self._off if chance < 0.5 else -self._off, float(variance), [there, back])

    def _compare_draws(self, asked: Asked, population: Population, offset: Floats) -> None:
        values = compared(population).plus(offset[None]).sums[0] / asked.temperature
        chances = scipy.special.softmax(values)
        self.compared.add_draws(self._answers(asked, population, offset), chances)

    def _answers(self, asked: Asked, population: Population, offset: Floats) -> Results:
        """Answer as often as takes about what the exact sums take."""
        few = self.method.answer_each(asked, population, np.tile(offset, (FEWEST_ANSWERS, 1)), self._rows)
        affordable = population.rewards / max(float(few.evaluations.mean()), 1.0)
        more = int(min(affordable, MOST_ANSWERS)) - FEWEST_ANSWERS
        if more <= 0:
            return few
        found = self.method.answer_each(asked, population, np.tile(offset, (more, 1)), self._rows)
        parts: Any = [np.concatenate(pair) for pair in zip(few, found, strict=True)]
        return Results(*parts)


def _of_share(found: Results) -> float:
    """Give the variance of the share of answers that are PROPOSED; never 0."""
    count = len(found.arms)
    share = (found.arms.sum() + 0.5) / (count + 1.0)
    return float(share * (1.0 - share) / count)
