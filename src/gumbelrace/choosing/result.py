"""What a campaign has found: the best candidate, how near the best it is, and what is known of all."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gumbelrace.choosing.bets import Floats
from gumbelrace.choosing.campaign import Campaign
from gumbelrace.choosing.limits import lowest_means
from gumbelrace.choosing.replay import Replay
from gumbelrace.choosing.scores import Indices
from gumbelrace.choosing.table import STATES, Row, Table
from gumbelrace.report.choosing import MOST_LANES, Chosen, Lane, choice_page
from gumbelrace.report.page import write_page

# A difference of means this small, in units of the range, is rounding.
TIE = 1e-9


class Failure(NamedTuple):
    """An evaluation that failed: of which candidate, on which example, and why."""

    name: str
    example: int
    error: str


class Path(NamedTuple):
    """The interval of a candidate after growing numbers of rows: what a picture of the race shows."""

    rows: Indices
    mean: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False, repr=False)
class Choice:
    """The best candidate, or one near it, and what was paid to know.

    Attributes
    ----------
    best : Any
        The candidate chosen: its key where candidates were a dict, else the candidate itself.
    name : str
        Its name, as shown in the table.
    within : float
        How far its mean may be from the best, in units of the score: 0 if it is the best.
    decided : bool
        Whether `within` is at most the tolerance asked for.
    ended : str
        Why it ended: "decided", "examples" (no more of them), "budget", "interrupted", or "open" if it has
        not.
    delta, tolerance : float
        What was asked for: the probability that `within` is wrong is at most `delta`, proved.
    evaluations, full : int
        Evaluations made, also before, and how many there could be.
    reused, ahead : int
        Evaluations that were there before, and those that turned out not to be needed.
    cost, full_cost : float
        What the evaluations cost, and what all would cost.
    tied : tuple of str
        Candidates that are exactly as good on all the examples.
    failures : tuple of Failure
        The evaluations that failed.
    counts_money, failed_as
        Whether costs were given, and what failures count as: how it is said.
    campaign : Campaign
        All that is known, in the order of positions; its store is closed.
    """

    best: Any
    name: str
    within: float
    decided: bool
    ended: str
    delta: float
    tolerance: float
    evaluations: int
    full: int
    reused: int
    ahead: int
    cost: float
    full_cost: float
    counts_money: bool
    tied: tuple[str, ...]
    failures: tuple[Failure, ...]
    failed_as: str
    campaign: Campaign

    @cached_property
    def table(self) -> Table:
        """What is known of each candidate; made when first asked for, since intervals take a while."""
        return table_of(self.campaign)

    def __str__(self) -> str:
        """State who was chosen, on what ground, and at what cost."""
        return f"{self._statement} {self._cost}{self._failed}."

    def __repr__(self) -> str:
        """Show the statement and the table."""
        return f"{self}\n{self.table}"

    @property
    def _statement(self) -> str:
        if self.within <= 0.0:
            said = f"{self.name} is the best"
        elif self.decided:
            said = f"{self.name} is the best or within {self.tolerance:.12g} of it"
        else:
            said = f"{self.name} is within {rounded_up(self.within)} of the best"
        tied = f", tied with {', '.join(self.tied)}" if self.tied else ""
        why = {"budget": "; the budget is spent", "interrupted": "; it was interrupted"}.get(self.ended, "")
        why = "; there are no more examples" if self.ended == "examples" and not self.decided else why
        return f"{said}{tied} (error at most {self.delta:g}, proved){why}."

    @property
    def _cost(self) -> str:
        money = f", {amount(self.cost)}" if self.counts_money else ""
        return f"{self.evaluations:,} of {self.full:,} evaluations{money}"

    @property
    def _failed(self) -> str:
        return f"; {len(self.failures)} failed, {self.failed_as}" if self.failures else ""

    def path(self, candidate: int, points: int = 40) -> Path:
        """Give the interval of a candidate after growing numbers of rows.

        Parameters
        ----------
        candidate : int
            Its number.
        points : int
            At how many numbers of rows.
        """
        known = int(self.campaign.scores.known[candidate])
        rows = np.unique(np.geomspace(1, max(known, 1), points).astype(np.int64)) if known else _NO_ROWS
        found = intervals_of(self.campaign, np.full(len(rows), candidate), rows)
        return Path(rows, *found.T)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a page about the choice: one HTML file that needs nothing else.

        Parameters
        ----------
        path : str or PathLike
            The file, which is written anew. Needs the extra `cli`.
        """
        ranks = sorted(range(len(self.table)), key=self._rank)
        lanes = [self._lane(number, place < MOST_LANES) for place, number in enumerate(ranks)]
        claim = self.campaign.replay.promise.sampled
        over = "these examples" if claim.finite else "all examples of their kind"
        write_page(
            path,
            choice_page(Chosen(self.name, str(self), self._facts, over, self.delta, lanes, self.failures)),
        )

    @property
    def _facts(self) -> dict[str, str]:
        spent = f"{amount(self.cost)} of {amount(self.full_cost)}" if self.counts_money else ""
        facts = {
            "Candidates": f"{len(self.table):,}",
            "Examples": f"{self.campaign.scores.size:,}",
            "Error at most": f"{self.delta:g}, proved",
            "Good enough": f"within {self.tolerance:g} of the best" if self.tolerance else "",
            "Evaluations": f"{self.evaluations:,} of {self.full:,}",
            "Spent": spent,
            "Made before": f"{self.reused:,}" if self.reused else "",
            "Turned out not to be needed": f"{self.ahead:,}" if self.ahead else "",
            "Failed": f"{len(self.failures):,}, {self.failed_as}" if self.failures else "",
        }
        return {label: text for label, text in facts.items() if text}

    def _rank(self, number: int) -> tuple[int, int, float]:
        """Put the best first, then who stayed longest."""
        row = self.table[number]
        return STATES.index(row.state), -int(self.out_at[number]), -row.mean if row.evaluations else 0.0

    def _lane(self, number: int, drawn: bool) -> Lane:
        row, price = self.table[number], float(self.campaign.terms.costs[number])
        costs = price * row.evaluations, price * self.campaign.scores.size
        path = [values.tolist() for values in self.path(number)] if drawn else [[]] * 4
        return Lane(
            row.name,
            row.state,
            *row[1:4],
            row.evaluations,
            row.failures,
            *costs,
            int(self.out_at[number]),
            *path,
        )

    @property
    def out_at(self) -> Indices:
        """For each candidate the number of rows after which it was dropped, or -1."""
        return self.campaign.replay.out_at


_NO_ROWS = np.zeros(0, np.int64)


def amount(cost: float) -> str:
    """Write a cost.

    Examples
    --------
    >>> amount(12345.678), amount(321.0), amount(0.01234)
    ('12,345.68', '321', '0.0123')
    """
    return f"{cost:,.2f}".removesuffix(".00") if cost >= 1.0 else f"{cost:.3g}"


def rounded_up(bound: float) -> str:
    """Write a bound with three digits, and no smaller than it is, but for rounding.

    Examples
    --------
    >>> rounded_up(0.01234), rounded_up(1.2e-7), rounded_up(0.1 + 0.2), rounded_up(1234.0)
    ('0.0124', '1.2e-07', '0.3', '1240')
    """
    digits = Context(prec=3, rounding=ROUND_CEILING)
    return f"{float(digits.create_decimal(bound * (1.0 - TIE))):g}"


def conclude(campaign: Campaign, keys: Sequence[Any], counts_money: bool) -> Choice:
    """Say what the evaluations show."""
    replay, terms = campaign.replay, campaign.terms
    low, high = terms.score_range
    distance = distances(replay)
    within, tolerance = float(distance.max(initial=0.0)), replay.promise.tolerance
    decided = within <= tolerance
    failed = _failures(campaign)
    worst = "counted as worst cases" if terms.on_failure == "worst case" else f"scored {low:g}"
    return Choice(
        best=keys[replay.leader],
        name=terms.names[replay.leader],
        within=within * (high - low),
        decided=decided,
        ended=_ended(campaign),
        delta=replay.promise.delta,
        tolerance=tolerance * (high - low),
        evaluations=int(campaign.evaluated.sum()),
        full=len(terms.names) * len(terms.rows),
        reused=campaign.reused,
        ahead=int(campaign.evaluated.sum() - campaign.scores.settled.sum()),
        cost=campaign.spent,
        full_cost=float(terms.costs.sum() * len(terms.rows)),
        counts_money=counts_money,
        tied=tuple(terms.names[candidate] for candidate in _ties(campaign)),
        failures=failed,
        failed_as=worst,
        campaign=campaign,
    )


def _ended(campaign: Campaign) -> str:
    if campaign.replay.is_over:
        return "decided" if campaign.replay.wanted.sum() == 1 else "examples"
    if campaign.budget_is_spent:
        return "budget"
    return "interrupted" if campaign.was_interrupted else "open"


def distances(replay: Replay) -> Floats:
    """Give by how much each candidate may beat the leader, in units of the range; δ bounds the error."""
    scores, leader, promise = replay.scores, replay.leader, replay.promise
    found = np.where(replay.out, 0.0, promise.tolerance)
    open_ones = np.flatnonzero(replay.wanted & (np.arange(len(found)) != leader))
    shared = np.minimum(scores.known[open_ones], scores.known[leader])
    for rows in np.unique(shared):
        group = open_ones[shared == rows]
        z = scores.low[leader, :rows] - scores.high[group, :rows]
        found[group] = -lowest_means(z, promise.sampled, replay.nearness.level, -1.0)
    whole, low, high = _sums_of_all(replay)
    if leader in whole:  # then nothing is left to chance
        found[whole] = (high - low[whole == leader]) / scores.size
    found[leader] = 0.0
    return np.where(found > TIE, found, 0.0)


def table_of(campaign: Campaign) -> Table:
    """Give what is known of each candidate."""
    everyone = np.arange(len(campaign.terms.names))
    mean, low, high = intervals_of(campaign, everyone, campaign.scores.known).T.tolist()
    counts = campaign.evaluated.tolist(), campaign.failed.tolist()
    return Table(map(Row, campaign.terms.names, mean, low, high, *counts, _states(campaign)))


def intervals_of(campaign: Campaign, candidates: Indices, rows: Indices) -> Floats:
    """Give means over the first rows, and what the means of all lie between, in units of the score."""
    scores, promise, found = campaign.scores, campaign.replay.promise, np.full((len(rows), 3), np.nan)
    for count in np.unique(rows):
        group = candidates[rows == count]
        low, high = scores.low[group, :count], scores.high[group, :count]
        least = lowest_means(low, promise.sampled, promise.delta / 2.0, 0.0)
        most = 1.0 - lowest_means(1.0 - high, promise.sampled, promise.delta / 2.0, 0.0)
        mean = (low + high).mean(axis=1) / 2.0 if count else np.full(len(group), np.nan)
        found[rows == count] = np.stack([mean, least, most], axis=1)
    first, last = campaign.terms.score_range
    return first + (last - first) * found


def _states(campaign: Campaign) -> list[str]:
    replay = campaign.replay
    found = np.where(replay.out, "out", np.where(replay.wanted, "racing", "no better"))
    whole, low, high = _sums_of_all(replay)
    if replay.leader in whole:
        lead = (low[whole == replay.leader] - high) / replay.scores.size
        found[whole[lead >= -TIE]] = "no better"
        found[whole[lead > TIE]] = "out"
        found[_ties(campaign)] = "tied"
    if replay.is_over:
        found[replay.leader] = "best"
    return list(found.tolist())


def _ties(campaign: Campaign) -> Indices:
    """Find the candidates whose scores on all the examples have the same sum as the leader's."""
    whole, low, high = _sums_of_all(campaign.replay)
    if campaign.replay.leader not in whole:
        return whole[:0]
    same = np.maximum(low.max() - low, high.max() - high) <= TIE * campaign.scores.size
    ties: Indices = whole[same & (whole != campaign.replay.leader)]
    return ties


def _sums_of_all(replay: Replay) -> tuple[Indices, Floats, Floats]:
    """Give who was evaluated on all there are, and the lowest and the highest that their sums can be."""
    scores, size = replay.scores, replay.scores.size
    whole = np.flatnonzero((scores.settled == size) & ~replay.out & replay.promise.sampled.finite)
    if len(whole) == 0:
        return whole, np.zeros(0), np.zeros(0)
    return whole, scores.low_sums(whole, size), scores.high_sums(whole, size)


def _failures(campaign: Campaign) -> tuple[Failure, ...]:
    terms = campaign.terms
    candidate = {int(number): name for number, name in zip(terms.candidates, terms.names, strict=True)}
    example = {int(number): int(row) for number, row in zip(terms.examples, terms.rows, strict=True)}
    return tuple(
        Failure(candidate[c], example[e], error)
        for c, e, error in campaign.store.failures()
        if c in candidate and e in example
    )
