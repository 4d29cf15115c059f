"""What was claimed about which candidates and examples, and the order of the examples that goes with it.

The bound holds for candidates that do not depend on the scores along the order they are raced on. A store
therefore remembers each claim, and asks when the candidates are no longer those of a claim before.
"""

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Literal

import numpy as np

from gumbelrace.choosing.contents import Item, digest
from gumbelrace.choosing.scores import Indices
from gumbelrace.choosing.store import Store
from gumbelrace.errors import StoreMismatch

About = Literal["these examples", "future examples"]
# Keeps the order apart from scores that a user has simulated with the same seed.
OURS = 0x67756D62656C
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
    same = [claim for claim in before if (claim.examples, claim.claim) == (wanted.examples, wanted.claim)]
    found = _made(store, wanted, same, len(before), new_candidates)
    store.numbers("claim", [found.item])
    return found


def _made(
    store: Store, wanted: Claim, same: list[Claim], number: int, new_candidates: NewCandidates | None
) -> Claim:
    if not same:
        return replace(wanted, seed=[*wanted.seed, number])
    for claim in reversed(same):
        if claim.candidates == wanted.candidates:
            _check(claim, wanted)
            return replace(claim, on_failure=wanted.on_failure)
    _check(same[-1], wanted)
    if new_candidates is None and len(store.cells().scores):
        raise StoreMismatch(
            "the candidates are not those of the store: say new_candidates='independent' if they would be "
            "the same whatever its results, or new_candidates='informed' if results led to them"
        )
    if new_candidates == "informed":
        return replace(wanted, seed=[*wanted.seed, number], looked_at=_looked_at(store, wanted))
    return replace(wanted, seed=same[-1].seed, looked_at=same[-1].looked_at)


def _looked_at(store: Store, wanted: Claim) -> list[int]:
    """Claims about examples to come need rows nobody has looked at; about these, a fresh order will do."""
    return np.unique(store.cells().examples).tolist() if wanted.claim == "future examples" else []


def _check(claim: Claim, wanted: Claim) -> None:
    # A claim that a failure would have stopped knows of none: failures to come may be anything.
    for name in ("score_range",) if claim.on_failure == "stop" else ("score_range", "on_failure"):
        if getattr(claim, name) != getattr(wanted, name):
            raise StoreMismatch(
                f"the store was made with {name}={getattr(claim, name)!r}, now it is "
                f"{getattr(wanted, name)!r}: call as before, or name another store"
            )
