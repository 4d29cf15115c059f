"""Draws from p(x) ∝ f0(x) ∏ f_n(x), and the best state.

A draw is a Gumbel variable for each state, then a method (paper, Eqs. 2, 3); `best` is the method alone.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.random import Rng, as_generator
from gumbelrace.errors import InvalidArgument, NoPossibleArm, PromiseBroken, ShapeMismatch
from gumbelrace.methods.base import Asked, Method, Outcome, Promise
from gumbelrace.methods.default import single_method
from gumbelrace.methods.exact import compared
from gumbelrace.methods.state import Question, Results
from gumbelrace.population.arrays import ByArm, by_name, floats
from gumbelrace.population.base import Floats, Population, Rewards, checked_count
from gumbelrace.population.table import as_population
from gumbelrace.verdict import Audit, judged, judged_draws

# Gumbel variables held at a time.
HELD = 2**20
# States that the repr of draws counts.
SHOWN = 6
DRAW = Asked(Question.DRAW)
# A law that is further off than this many times what was promised is warned of.
FAR_OFF = 2.0
# What is kept of each draw.
DRAWN = ("arms", "evaluations", "looks", "exhausted", "law_error")
AnyPopulation = TypeVar("AnyPopulation", bound=Population)


@dataclass(frozen=True)
class TotalVariation:
    """Bound on the total variation between the law of a draw and p(x) (Proposition 1).

    Attributes
    ----------
    bound : float
        The bound: the method's δ.
    proved : bool
        Whether it holds for all rewards.
    assumption : str or None
        What it rests on if it is not proved.
    shared_order : bool
        Whether the draws share a random order of the rows: the bound is then one on average over orders.
        Given the order, the law of a draw may be somewhat further from p(x), or closer, and all draws
        have that law. If not, every draw has an order of its own, and the bound holds for the population
        as it is.
    seen : float
        How far the rows read show the law to be off, if the method is right in law only.
    """

    bound: float
    proved: bool
    assumption: str | None
    shared_order: bool
    seen: float = 0.0

    def __float__(self) -> float:
        """Give the bound as a number."""
        return self.bound

    def __str__(self) -> str:
        """Say the bound and what it rests on."""
        ground = "proved" if self.proved else f"assuming that {self.assumption}"
        average = " (on average over the order of the rows, which the draws share)" * self.shared_order
        promised = f"total variation at most {self.bound:g}, {ground}{average}"
        if self.seen > self.bound:
            return f"total variation about {self.seen:.1g}, by the rows read; promised was: {promised}"
        return promised + by_rows_read(self.seen)


def by_rows_read(seen: float) -> str:
    """Say how far the law is off by what the rows read show, if it is."""
    return f"; off by about {seen:.1g}, by the rows read" if seen > 0.0 else ""


@dataclass(frozen=True, eq=False, repr=False)
class Draws:
    """Draws, what they took, and what was promised of them.

    Attributes
    ----------
    arms : ndarray of int64
        The states drawn.
    evaluations, looks : ndarray of int64
        Rewards read by each draw, and how often arms were compared.
    exhausted : ndarray of bool
        Draws that read every reward of the arms left: they are exact among these.
    fraction : float
        Share of all rewards that was read, on average.
    promise : Promise
        How likely a draw differs from the exact one with the same noise; or how far its law may be off.
    shared_order : bool
        Whether the draws share a random order of the rows.
    checked : Audit or None
        What came out when draws were compared with exact ones, if that was worth its cost.
    arm_names : tuple of str, or None
        The names of all arms, where they have names.
    law_error : float
        How far the law of the draws is off by what was read, on average, if the method is right in law
        only: by the skewness of rewards, and by rows that pilots miss.
    """

    arms: NDArray[np.int64]
    evaluations: NDArray[np.int64]
    looks: NDArray[np.int64]
    exhausted: NDArray[np.bool_]
    fraction: float
    promise: Promise
    shared_order: bool = False
    checked: Audit | None = None
    arm_names: tuple[str, ...] | None = None
    law_error: float = 0.0

    @property
    def arm(self) -> int:
        """The state drawn, of a single draw."""
        if len(self.arms) != 1:
            raise InvalidArgument(f"there are {len(self.arms)} draws; take their states from .arms")
        return int(self.arms[0])

    @property
    def names(self) -> list[str] | None:
        """The names of the states drawn, where arms have names."""
        return None if self.arm_names is None else [self.arm_names[arm] for arm in self.arms]

    @property
    def tv_bound(self) -> TotalVariation:
        """How far the law of a draw can be from p(x)."""
        promise, shared = self.promise, self.shared_order
        return TotalVariation(promise.delta, promise.proved, promise.assumption, shared, self.law_error)

    def __repr__(self) -> str:
        """Show the states drawn, those drawn most often first, and what was read."""
        states, counts = np.unique(self.arms, return_counts=True)
        order = np.argsort(-counts, kind="stable")[:SHOWN]
        named = [self.arm_names[arm] if self.arm_names else arm for arm in states[order]]
        shown = ", ".join(f"{name}: {count}" for name, count in zip(named, counts[order], strict=True))
        more = ", ..." if len(states) > SHOWN else ""
        read = f"fraction={self.fraction:.3g}, promise={self.promise}{by_rows_read(self.law_error)}"
        return f"Draws({len(self.arms)} of {{{shown}{more}}}, {read})"

    def __str__(self) -> str:
        """Say in a few lines which states were drawn, what was read, and how sure that is."""
        states, counts = np.unique(self.arms, return_counts=True)
        order = np.argsort(-counts, kind="stable")[:SHOWN]
        shares = [
            f"{self.arm_names[states[k]] if self.arm_names else states[k]} {counts[k] / len(self.arms):.1%}"
            for k in order
        ]
        more = f" and {len(states) - SHOWN:,} states more" if len(states) > SHOWN else ""
        checked = [] if self.checked is None else [f"checked: {self.checked}"]
        lines = [
            f"{len(self.arms):,} draws: {', '.join(shares)}{more}",
            f"{self.fraction:.2%} of the rewards read by a draw",
            str(self.tv_bound),
            *checked,
        ]
        return "\n".join(lines)


def sample(
    population: Rewards,
    log_prior: ByArm | None = None,
    size: int = 1,
    *,
    delta: float | None = None,
    method: Method | None = None,
    rng: Rng = None,
    reshuffle_every: int | None = None,
    check: bool | None = None,
) -> Draws:
    """Draw states with probability proportional to f0(x) ∏ f_n(x).

    Parameters
    ----------
    population : Population, DiskTable, or array_like of shape (N, D)
        The log factors; an array is taken as a `table`.
    log_prior : array_like of shape (D,), optional
        log f0, up to a constant; -inf rules a state out. Default: all equal. Where arms have names, a
        dict or a series of pandas by these names will do.
    size : int
        Number of draws.
    delta : float, optional
        Bound on the probability that a draw is not the exact one; 0.05 for the default method.
    method : Method, optional
        Who decides. Default: `Betting` where the population knows its reward range, else ``Race()``.
    rng : numpy.random.Generator, int, or None
        Gives the Gumbel variables and chooses the rows: a generator, a seed, or None for no seed.
    reshuffle_every : int, optional
        Put the rows in a new random order before the first and after every so many draws. It matters to
        tables of 16,384 rows and more, whose draws share the order of the rows otherwise (see `table`);
        draws from all other populations have an order each.
    check : bool, optional
        Whether draws are compared with exact ones, for which all rewards are read once. Default: if the
        draws have read as much as that or more, not all of them everything, and the method finds winners
        and can err: it doubles what is read at most. It changes no draw.

    Returns
    -------
    Draws
        The states and what was read.

    Warns
    -----
    PromiseBroken
        The check has found more errors than were promised, or a draw of probability zero; or the rows read
        show that the law of the draws is far from what was promised.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> rng = np.random.default_rng(0)
    >>> y, centers = rng.normal(0.3, 1.0, 50_000), np.array([0.29, 0.3, 0.31])
    >>> population = gr.table(-0.5 * (y[:, None] - centers) ** 2)
    >>> draws = gr.sample(population, size=1000, rng=rng)
    >>> np.bincount(draws.arms, minlength=3).argmax()
    np.int64(1)
    >>> print(draws.tv_bound)
    total variation at most 0.05, proved (on average over the order of the rows, which the draws share)
    """
    rng, rewards = as_generator(rng), as_population(population)
    method = single_method(delta, method)
    prior = checked_prior(log_prior, rewards)
    count = checked_count(size, "size", least=0)
    found, noisy, ordered = [], Kept(rewards.arms), rewards
    for ordered, part in batches(rewards, count, reshuffle_every, rng):
        offsets = np.tile(prior, (part, 1))
        found.append(method.answer_each(DRAW, ordered, offsets, rng))
        noisy.keep(offsets)
    promise, shared = method.promised(ordered), rewards.shares_order and reshuffle_every != 1
    draws = _draws(rewards, found, promise, shared)
    _warn_of_law(draws)
    if count > 0 and _is_worth(check, rewards, draws, method):
        # Not `rewards`, which may have no order yet: a check must not give it one.
        draws = replace(draws, checked=_checked(ordered, draws, prior, noisy.offsets, promise))
    return draws


def batches(
    population: AnyPopulation, count: int, every: int | None, rng: np.random.Generator
) -> Iterator[tuple[AnyPopulation, int]]:
    """Cut `count` draws into batches, each with the population in the order that it shall have."""
    every = None if every is None else checked_count(every, "reshuffle_every")
    if not population.shares_order:
        every = None  # every draw has an order of its own anyway
    done, held = 0, max(1, HELD // population.arms)
    while done < count:
        if every is not None and done % every == 0:
            population = population.reshuffled(rng)
        until = count if every is None else min(count, done - done % every + every)
        part = min(held, until - done)
        yield population, part
        done += part


class Kept:
    """Offsets of the first draws, with their noise: at most HELD numbers, or one batch."""

    def __init__(self, arms: int) -> None:
        self._parts, self._is_full = [np.empty((0, arms))], False

    def keep(self, offsets: Floats) -> None:
        """Keep the offsets of the next draws; after some that were not kept, none are."""
        self._is_full |= sum(map(np.size, self._parts)) + offsets.size > HELD and len(self._parts) > 1
        if not self._is_full:
            self._parts.append(offsets)

    @property
    def offsets(self) -> Floats:
        """All that are kept."""
        return np.concatenate(self._parts)


def _warn_of_law(draws: Draws) -> None:
    if draws.law_error > FAR_OFF * draws.promise.delta > 0.0:
        warnings.warn(
            f"by the rows read, the law of the draws is off by about {draws.law_error:.1g}, where "
            f"{draws.promise.delta:g} was promised: a few rows carry the sums; give weights or a "
            "reward_range, or use Exact()",
            PromiseBroken,
            stacklevel=3,  # whoever called `sample`
        )


def _is_worth(check: bool | None, population: Population, draws: "Draws", method: Method) -> bool:
    if check is not None:
        return check
    affordable = population.rewards <= np.sum(draws.evaluations)
    raced = np.any(draws.evaluations < population.rewards - population.read_before)  # others are exact
    return bool(affordable and raced and method.promise.delta > 0.0)


def _checked(
    population: Population, draws: "Draws", prior: Floats, offsets: Floats, promise: Promise
) -> Audit:
    exact = compared(population, prior)
    if promise.about == "law":
        sums = exact.plus(prior[None]).sums[0]
        checked = judged_draws(draws.arms, sums, draws.fraction, promise, draws.law_error)
    else:
        arms = draws.arms[: len(offsets)]
        checked = judged(arms, exact.plus(offsets), draws.fraction, promise)
    checked.warn()
    return checked


def checked_prior(log_prior: ByArm | None, population: Population) -> Floats:
    """Return log f0 as an array, or say what is wrong with it."""
    arms = population.arms
    if log_prior is None:
        return np.zeros(arms)
    prior = floats(by_name(log_prior, population.names, "log_prior"), "log_prior")
    if prior.shape != (arms,):
        raise ShapeMismatch(f"log_prior has shape {prior.shape}; it must be ({arms},)")
    if np.isnan(prior).any() or np.isposinf(prior).any():
        raise InvalidArgument("log_prior has a NaN or +inf; give logarithms of probabilities")
    if np.isneginf(prior).all():
        raise NoPossibleArm("log_prior is -inf for every arm; at least one must be possible")
    return prior


def share_read(evaluations: int, draws: int, population: Population) -> float:
    """Give the share of all rewards that draws have read (of none at all, none)."""
    return evaluations / max(draws * population.rewards, 1)


def _draws(population: Population, found: list[Results], promise: Promise, shared_order: bool) -> Draws:
    arms, evaluations, looks, exhausted, law_error = (
        np.concatenate(parts) if parts else np.zeros(0, np.int64)
        for parts in ([getattr(part, name) for part in found] for name in DRAWN)
    )
    evaluations[:1] += population.read_before  # once for all draws, in whatever orders
    fraction = share_read(int(evaluations.sum()), len(arms), population)
    took = evaluations, looks, exhausted.astype(np.bool_), fraction
    off = min(float(np.mean(law_error)), 1.0) if len(arms) else 0.0
    return Draws(arms, *took, promise, shared_order, arm_names=population.names, law_error=off)


def best(
    population: Rewards,
    *,
    offset: ByArm | None = None,
    delta: float | None = None,
    method: Method | None = None,
    rng: Rng = None,
) -> Outcome:
    """Find the best arm, reading as few rewards as needed.

    Parameters
    ----------
    population : Population, DiskTable, or array_like of shape (N, D)
        The rewards; an array is taken as a `table`.
    offset : array_like of shape (D,), optional
        Added to the sum of each arm; -inf rules an arm out. Where arms have names, a dict or a series of
        pandas by these names will do.
    delta : float, optional
        Bound on the probability that the arm returned is not the best; 0.05 for the default method.
    method : Method, optional
        Who decides. Default: `Betting` where the population knows its reward range, else ``Race()``.
    rng : numpy.random.Generator, int, or None
        Chooses the rows: a generator, a seed, or None for no seed.

    Returns
    -------
    Outcome
        The arm, the rewards read and their share, the looks taken, and what is promised.

    Examples
    --------
    Which of three models has the highest mean score on 100,000 examples, and how many evaluations would it
    take to know? (Where they are made only as needed, `choose` is the way.)

    >>> import numpy as np, gumbelrace as gr
    >>> rng = np.random.default_rng(0)
    >>> correct = rng.random((100_000, 3)) < [0.70, 0.73, 0.78]
    >>> outcome = gr.best(gr.table(correct, scan=False), delta=0.01, rng=rng)
    >>> outcome.arm, outcome.evaluations < 10_000
    (2, True)
    """
    return single_method(delta, method).best(population, offset, rng)
