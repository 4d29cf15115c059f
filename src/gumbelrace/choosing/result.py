"""What a campaign has found: the best candidate, how near the best it is, and what is known of all."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gumbelrace.choosing.bets import Floats
from gumbelrace.choosing.campaign import Campaign
from gumbelrace.choosing.limits import lowest_means
from gumbelrace.choosing.replay import Replay
from gumbelrace.choosing.scores import Indices

# A difference of means this small, in units of the range, is rounding.
TIE = 1e-9


class Row(NamedTuple):
    """What is known of a candidate.

    Attributes
    ----------
    name : str
        Its name.
    mean : float
        Mean score over the examples it was evaluated on; NaN if there are none.
    low, high : float
        The mean over all examples lies between them, at all times at once, but for a probability δ of each
        candidate. The means of candidates that are out come from fewer examples.
    evaluations, failures : int
        How many there were.
    state : str
        "best", "near" (within the tolerance), "racing", or "out".
    """

    name: str
    mean: float
    low: float
    high: float
    evaluations: int
    failures: int
    state: str


class Table(tuple[Row, ...]):
    """A row for each candidate, which prints as a table, the best first."""

    def __str__(self) -> str:
        """Show the candidates by their state and mean."""
        order = ["best", "near", "racing", "out"]
        rows = sorted(self, key=lambda row: (order.index(row.state), -np.nan_to_num(row.mean, nan=-np.inf)))
        width = max(9, *(len(row.name) for row in self))
        lines = [f"{'candidate':{width}}     mean  interval             n  state"]
        for row in rows:
            interval = f"{row.low:.4f} - {row.high:.4f}"
            lines.append(
                f"{row.name:{width}}  {row.mean:7.4f}  {interval:15}  {row.evaluations:6,}  {row.state}"
            )
        return "\n".join(lines)


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
        Why it ended: "decided", "examples" (no more of them), "budget" or "interrupted".
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
            said = f"{self.name} is the best or within {self.tolerance:.3f} of it"
        else:
            said = f"{self.name} is within {self.within:.3f} of the best"
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
        tied=_tied(campaign),
        failures=failed,
        failed_as=worst,
        campaign=campaign,
    )


def _ended(campaign: Campaign) -> str:
    if campaign.replay.is_over:
        return "decided" if campaign.replay.wanted.sum() == 1 else "examples"
    return "budget" if campaign.budget_is_spent else "interrupted"


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
    found[leader] = 0.0
    return np.where(found > TIE, found, 0.0)


def table_of(campaign: Campaign) -> Table:
    """Give what is known of each candidate."""
    everyone = np.arange(len(campaign.terms.names))
    mean, low, high = intervals_of(campaign, everyone, campaign.scores.known).T.tolist()
    counts = campaign.evaluated.tolist(), campaign.failed.tolist()
    states = [_state(campaign.replay, candidate) for candidate in everyone.tolist()]
    return Table(map(Row, campaign.terms.names, mean, low, high, *counts, states))


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


def _state(replay: Replay, candidate: int) -> str:
    if candidate == replay.leader:
        return "best" if replay.is_over else "racing"
    if replay.out[candidate]:
        return "out"
    return "racing" if replay.wanted[candidate] else "near"


def _tied(campaign: Campaign) -> tuple[str, ...]:
    """Name the candidates whose scores on all the examples have the same sum as the leader's."""
    scores, leader, size = campaign.scores, campaign.replay.leader, campaign.scores.size
    if not campaign.replay.promise.sampled.finite or scores.settled[leader] < size:
        return ()
    whole = np.flatnonzero((scores.settled == size) & ~campaign.replay.out)
    low, high = scores.low_sums(whole, size), scores.high_sums(whole, size)
    same = np.maximum(low.max() - low, high.max() - high) <= TIE * size
    return tuple(campaign.terms.names[c] for c in whole[same] if c != leader)


def _failures(campaign: Campaign) -> tuple[Failure, ...]:
    terms = campaign.terms
    candidate = {int(number): name for number, name in zip(terms.candidates, terms.names, strict=True)}
    example = {int(number): int(row) for number, row in zip(terms.examples, terms.rows, strict=True)}
    return tuple(
        Failure(candidate[c], example[e], error)
        for c, e, error in campaign.store.failures()
        if c in candidate and e in example
    )
