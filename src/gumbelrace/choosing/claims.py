"""What was claimed about which candidates and examples, and the order of the examples that goes with it.

The bound holds for candidates that do not depend on the scores along the order they are raced on. A store
therefore remembers each claim, and asks when the candidates are no longer those of a claim before.
"""

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Literal

import numpy as np

from gumbelrace.choosing.bets import Floats
from gumbelrace.choosing.contents import Item, digest
from gumbelrace.choosing.scores import Indices
from gumbelrace.choosing.store import Store, Stored
from gumbelrace.errors import StoreMismatch

About = Literal["these examples", "future examples"]
# Keeps the order apart from scores that a user has simulated with the same seed.
OURS = 0x67756D62656C
ROUNDING = 1e-9  # of scores, in units of the range
OnFailure = Literal["lowest", "worst case", "stop"]
NewCandidates = Literal["independent", "informed"]


@dataclass(frozen=True)
class Claim:
    """A claim, as it is stored.

    Attributes
    ----------
    seed : list of int
        Seed of the order of the examples.
    examples, candidates : str
        Hashes of the two sets.
    score_range : list of float
        The lowest and the highest score.
    claim : str
        What the scores are a sample of.
    on_failure : str
        What a failure counts as.
    looked_at : list of int
        Numbers of examples that are left out, since their scores have led to the candidates.
    """

    seed: list[int]
    examples: str
    candidates: str
    score_range: list[float]
    claim: str
    on_failure: str
    looked_at: list[int] = field(default_factory=list)

    @property
    def item(self) -> Item:
        """How it is stored."""
        text = json.dumps(asdict(self))
        return Item(digest([text]), text)


def order_of(seed: list[int], count: int) -> Indices:
    """Give a uniform order, the same for the same seed in every version of NumPy.

    Examples
    --------
    >>> order_of([0, 0], 5)
    array([4, 2, 0, 1, 3])
    """
    raw = np.random.PCG64(np.random.SeedSequence([*seed, OURS])).random_raw(count)
    return np.argsort(raw, kind="stable")


def settled_claim(store: Store, wanted: Claim, new_candidates: NewCandidates | None) -> Claim:
    """Give the claim of the store that is wanted, or a new one with the order that it needs."""
    before = [Claim(**json.loads(text)) for text in store.texts("claim")]
    stored = store.cells()
    _check_scores(stored.scores, *wanted.score_range)
    found = _made(stored, wanted, before, new_candidates)
    store.numbers("claim", [found.item])
    return found


def _made(
    stored: Stored, wanted: Claim, before: list[Claim], new_candidates: NewCandidates | None
) -> Claim:
    same = [claim for claim in before if (claim.examples, claim.claim) == (wanted.examples, wanted.claim)]
    for claim in reversed(same):
        if claim.candidates == wanted.candidates:
            _check(claim, wanted)
            return replace(claim, on_failure=wanted.on_failure)
    fresh = replace(wanted, seed=[*wanted.seed, len(before)])
    if same:
        _check(same[-1], wanted)
    elif wanted.claim == "these examples":  # in a fresh order: whatever led to the candidates is no matter
        return fresh
    return _with_known_candidates(fresh, before) or _with_new_candidates(
        stored, fresh, same or _futures(before), new_candidates
    )


def _futures(before: list[Claim]) -> list[Claim]:
    return [claim for claim in before if claim.claim == "future examples"]


def _with_known_candidates(fresh: Claim, before: list[Claim]) -> Claim | None:
    """Leave out the rows that were left out when the candidates came; the first came before any result."""
    if fresh.claim == "future examples":
        for claim in [*before[:1], *_futures(before)]:
            if claim.candidates == fresh.candidates:
                return replace(fresh, looked_at=claim.looked_at)
    return None


def _with_new_candidates(
    stored: Stored, fresh: Claim, elders: list[Claim], new_candidates: NewCandidates | None
) -> Claim:
    if new_candidates is None and len(stored.scores):
        raise StoreMismatch(
            "the candidates are not those of the store: say new_candidates='independent' if they would be "
            "the same whatever its results, or new_candidates='informed' if results led to them"
        )
    if new_candidates == "informed":
        return replace(fresh, looked_at=_looked_at(stored, fresh))
    if not elders:
        return fresh
    seed = elders[-1].seed if elders[-1].examples == fresh.examples else fresh.seed
    return replace(fresh, seed=seed, looked_at=elders[-1].looked_at)


def _looked_at(stored: Stored, wanted: Claim) -> list[int]:
    """Claims about examples to come need rows nobody has looked at; about these, a fresh order will do."""
    return np.unique(stored.examples).tolist() if wanted.claim == "future examples" else []


def _check_scores(scores: Floats, low: float, high: float) -> None:
    """Refuse a range that stored scores disprove, whichever claim they were evaluated for."""
    scores, slack = scores[~np.isnan(scores)], ROUNDING * (high - low)
    if len(scores) and (scores.min() < low - slack or scores.max() > high + slack):
        raise StoreMismatch(
            f"the store has scores from {scores.min():g} to {scores.max():g}, outside "
            f"score_range=({low:g}, {high:g}): give the range in which all lie, or name another store"
        )


def _check(claim: Claim, wanted: Claim) -> None:
    # A claim that a failure would have stopped knows of none: failures to come may be anything.
    for name in ("score_range",) if claim.on_failure == "stop" else ("score_range", "on_failure"):
        if getattr(claim, name) != getattr(wanted, name):
            raise StoreMismatch(
                f"the store was made with {name}={getattr(claim, name)!r}, now it is "
                f"{getattr(wanted, name)!r}: call as before, or name another store"
            )
