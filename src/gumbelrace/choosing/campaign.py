"""Which evaluations to make next, and what becomes of them: between the replay, the store and the workers.

Nothing here decides who wins: the replay does, whatever is evaluated when. Workers ask for the next
position of the candidates still racing, those behind first; how far ahead of the settled positions they may
run is bounded, since what is evaluated there may turn out not to be needed.
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from gumbelrace.choosing.attempts import Outcome, Patience
from gumbelrace.choosing.bets import Floats
from gumbelrace.choosing.claims import ROUNDING, OnFailure
from gumbelrace.choosing.replay import Promise, Replay
from gumbelrace.choosing.scores import Indices, Scores
from gumbelrace.choosing.store import Cell, Store, Stored
from gumbelrace.errors import EvaluationFailed, RewardOutOfRange

Numbers = TypeVar("Numbers", float, Floats)
# Evaluations ahead of the settled positions, for each worker.
AHEAD = 4
SLACK = 1e-9  # rounding of money
# If so many evaluations fail, for each worker and at least, and none succeeds, no candidate is to blame.
HOPELESS, HOPELESS_AT_LEAST = 2, 10
HOPELESS_TEXT = "all of the first {} evaluations failed, so that nothing is kept; the last of them: {}"


class Task(NamedTuple):
    """An evaluation to be made: of a candidate at a position, which is an example."""

    candidate: int
    position: int
    example: int


@dataclass(frozen=True)
class Terms:
    """What is evaluated, at what cost, and what a failure counts as.

    Attributes
    ----------
    names : tuple of str
        Of the candidates.
    candidates, examples : ndarray of int64
        Numbers in the store; examples in the order of positions.
    rows : ndarray of int64
        For each position the example as the user counts them.
    score_range : tuple of float
        The lowest and the highest score.
    costs : ndarray
        Of one evaluation of each candidate.
    budget : float
        What evaluations may cost in all.
    on_failure : str
        What a failure counts as.
    """

    names: tuple[str, ...]
    candidates: Indices
    examples: Indices
    rows: Indices
    score_range: tuple[float, float]
    costs: Floats
    budget: float
    on_failure: OnFailure

    def in_units(self, scores: Numbers) -> Numbers:
        """Give scores in units of the range, without the rounding that may lead out of it."""
        low, high = self.score_range
        units: Numbers = np.clip((scores - low) / (high - low), 0.0, 1.0)
        return units

    def is_in_range(self, score: float) -> bool:
        """Whether a score lies in the range, but for rounding."""
        low, high = self.score_range
        return low - ROUNDING * (high - low) <= score <= high + ROUNDING * (high - low)

    @property
    def highest_of_failures(self) -> float:
        """What a failure may have been at most, in units of the range; at least, it is 0."""
        return 1.0 if self.on_failure == "worst case" else 0.0


class Campaign:
    """Evaluations under way, made, and still to be made.

    Parameters
    ----------
    terms : Terms
        What is evaluated.
    promise : Promise
        What is claimed.
    store : Store
        Where evaluations are kept.
    patience : Patience
        Told when to stop.
    workers : int
        How many evaluations may be under way at once.
    """

    def __init__(
        self, terms: Terms, promise: Promise, store: Store, patience: Patience, workers: int = 1
    ) -> None:
        self.terms, self.store, self.patience, self.workers = terms, store, patience, workers
        self.scores = Scores(len(terms.names), len(terms.rows))
        self.replay = Replay(self.scores, promise)
        self.failed, self.evaluated = np.zeros((2, len(terms.names)), np.int64)
        self.spent = self._reserved = 0.0
        self.under_way, self.budget_is_spent = 0, False
        self.fault: BaseException | None = None
        self.was_interrupted = False
        self._next = np.zeros(len(terms.names), np.int64)  # position to be asked for next
        self._unwritten: list[Cell] = []
        self._doubted: list[Cell] = []  # failures of this call, as long as nothing has succeeded
        self._load(store.cells())
        self.reused = int(self.evaluated.sum())
        self.replay.go_on()

    def _load(self, stored: Stored) -> None:
        """Put down what was evaluated before."""
        candidate = _places(self.terms.candidates, stored.candidates)
        position = _places(self.terms.examples, stored.examples)
        ours = (candidate >= 0) & (position >= 0)
        candidate, position, scores = candidate[ours], position[ours], stored.scores[ours]
        if len(scores) == 0:
            return
        low, high = np.full((2, len(self.terms.names), position.max() + 1), np.nan)
        units, failed = self.terms.in_units(scores), np.isnan(scores)
        low[candidate, position] = np.where(failed, 0.0, units)
        high[candidate, position] = np.where(failed, self.terms.highest_of_failures, units)
        self.scores.put_all(low, high)
        self._next[:] = self.scores.known
        self.evaluated += np.bincount(candidate, minlength=len(self.evaluated))
        self.failed += np.bincount(candidate[failed], minlength=len(self.failed))
        self.spent += float(stored.costs[ours].sum())

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be started."""
        return self.replay.is_over or self.patience.stopping or self.budget_is_spent

    @property
    def is_finished(self) -> bool:
        """Whether nothing more is to be started, nothing is under way, and everything is kept."""
        return self.is_over and self.under_way == 0 and not self._unwritten and not self._looks_hopeless

    @property
    def has_news(self) -> bool:
        """Whether something was brought that is not settled."""
        return bool(self._unwritten) or self.is_finished

    def take(self) -> Task | None:
        """Give the evaluation to be started next; None if none may be started now."""
        if self.is_over or self._looks_hopeless:
            return None
        candidate = self._most_needed()
        position = int(self._next[candidate])
        if position >= min(self.replay.rows + self._room(), self.scores.size):
            return None
        cost = self.terms.costs[candidate]
        if self.spent + self._reserved + cost > self.terms.budget * (1.0 + SLACK):
            self.budget_is_spent = True
            return None
        self._next[candidate] += 1
        self._reserved += cost
        self.under_way += 1
        return Task(candidate, position, int(self.terms.rows[position]))

    def _most_needed(self) -> int:
        """Give the candidate whose next position is the first; the leader before others."""
        wanted = self.replay.racing
        while True:
            rank = 2 * self._next[wanted] - (wanted == self.replay.leader)
            candidate = int(wanted[rank.argmin()])
            if not self.scores.is_there(candidate, int(self._next[candidate])):
                return candidate
            self._next[candidate] += 1  # it was evaluated before those in front of it

    def _room(self) -> int:
        """Positions beyond the settled ones that may be evaluated."""
        return 1 + AHEAD * self.workers // len(self.replay.racing)

    def put(self, task: Task, outcome: Outcome | None, fault: BaseException | None = None) -> None:
        """Take what a worker brings; no outcome if it was stopped, or by a fault that shall be raised."""
        self.under_way -= 1
        if fault is not None:
            self.stop(fault)
        cost = float(self.terms.costs[task.candidate])
        self._reserved -= cost
        if outcome is None or self._is_fatal(task, outcome):
            return
        self.spent += cost
        self.evaluated[task.candidate] += 1
        self.failed[task.candidate] += outcome.score is None
        candidate, example = self.terms.candidates[task.candidate], self.terms.examples[task.position]
        self._unwritten.append(Cell(int(candidate), int(example), outcome.score, cost, *outcome[1:]))
        self._doubted = [] if self._has_succeeded else [*self._doubted, self._unwritten[-1]]
        if outcome.score is None:
            self.scores.put(task.candidate, task.position, 0.0, self.terms.highest_of_failures)
        else:
            units = self.terms.in_units(outcome.score)
            self.scores.put(task.candidate, task.position, units, units)

    def settle(self) -> None:
        """Keep what was brought, and go on with the race."""
        if self._unwritten:
            self.store.write(self._unwritten)
            self._unwritten = []
            self.replay.go_on()
        if self._looks_hopeless and self.under_way == 0:
            self._give_up()

    @property
    def _has_succeeded(self) -> bool:
        return bool((self.evaluated > self.failed).any())

    @property
    def _looks_hopeless(self) -> bool:
        """Whether many evaluations have failed, and none has succeeded; one that is under way still may."""
        return len(self._doubted) >= max(HOPELESS * self.workers, HOPELESS_AT_LEAST)

    def _give_up(self) -> None:
        self.store.forget_failures((cell.candidate, cell.example) for cell in self._doubted)
        self.stop(EvaluationFailed(HOPELESS_TEXT.format(len(self._doubted), self._doubted[-1].error)))
        self._doubted = []

    def _is_fatal(self, task: Task, outcome: Outcome) -> bool:
        """Whether the outcome ends the campaign, and is not kept."""
        where = f"candidate {self.terms.names[task.candidate]!r} on example {task.example}"
        low, high = self.terms.score_range
        if outcome.score is None and self.terms.on_failure == "stop":
            self.stop(EvaluationFailed(f"{where} failed after {outcome.attempts} tries: {outcome.error}"))
        elif outcome.score is not None and not self.terms.is_in_range(outcome.score):
            self.stop(
                RewardOutOfRange(
                    f"{where} scored {outcome.score!r}, outside score_range=({low:g}, {high:g})"
                )
            )
        else:
            return False
        return True

    def stop(self, fault: BaseException) -> None:
        """Start nothing more, and raise the fault when what is under way is finished and kept."""
        self.patience.stopping = True
        self.fault = self.fault or fault

    def interrupt(self) -> None:
        """Start nothing more; what is under way is finished and kept."""
        self.patience.stopping = self.was_interrupted = True


def _places(ours: Indices, numbers: Indices) -> Indices:
    """Give where numbers are among ours, or -1."""
    place = np.full(max(ours.max(), numbers.max(initial=0)) + 1, -1)
    place[ours] = np.arange(len(ours))
    return place[numbers]
