"""What a user asks of `choose`, checked, and the campaign that it makes."""

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np

from gumbelrace.choosing.attempts import Patience, Pause
from gumbelrace.choosing.bets import Floats, Sampled
from gumbelrace.choosing.campaign import Campaign, Terms
from gumbelrace.choosing.claims import About, Claim, NewCandidates, OnFailure, order_of, settled_claim
from gumbelrace.choosing.contents import Item, digest, items, named
from gumbelrace.choosing.replay import Promise
from gumbelrace.choosing.scores import Indices
from gumbelrace.choosing.store import IN_MEMORY, Store
from gumbelrace.errors import InvalidArgument, InvalidGenerator

WORDS = {"claim": About, "on_failure": OnFailure, "new_candidates": NewCandidates}


@dataclass(frozen=True)
class Settings:
    """The options of `choose`, which explains them."""

    score_range: tuple[float, float]
    delta: float = 0.05
    tolerance: float = 0.0
    claim: About = "these examples"
    budget: float | None = None
    cost: float | Sequence[float] | Mapping[Any, float] | None = None
    workers: int = 16
    retries: int = 3
    pause: Pause | None = None
    on_failure: OnFailure = "lowest"
    store: str | Path | None = None
    new_candidates: NewCandidates | None = None
    rng: int | np.random.Generator | None = None
    progress: bool = True

    def __post_init__(self) -> None:
        _require(
            _is_range(self.score_range),
            "score_range",
            "two numbers, the lower first, with a finite difference",
        )
        _require(0.0 < _real(self.delta) < 1.0, "delta", "between 0 and 1")
        _require(0.0 <= _real(self.tolerance) < math.inf, "tolerance", "0 or more")
        _require(self.budget is None or _real(self.budget) > 0.0, "budget", "a number, more than 0")
        _require(_whole(self.workers) >= 1, "workers", "a whole number, 1 or more")
        _require(_whole(self.retries) >= 0, "retries", "a whole number, 0 or more")
        _require(_is_file(self.store), "store", "a file; without one, everything is kept in memory")
        for name, words in WORDS.items():
            value = getattr(self, name)
            _require(
                value in get_args(words) or (value is None and name == "new_candidates"),
                name,
                f"one of {get_args(words)}",
            )

    def costs(self, candidates: Any, names: tuple[str, ...]) -> Floats:
        """Give what an evaluation of each candidate costs."""
        cost = 1.0 if self.cost is None else self.cost
        if isinstance(cost, Mapping):
            prices = [_price(cost, key, name) for key, name in zip(candidates, names, strict=True)]
            missing = [name for name, price in zip(names, prices, strict=True) if price is None]
            _require(not missing, "cost", f"one for each candidate; there is none for {', '.join(missing)}")
            cost = cast(list[float], prices)
        found = _numbers(cost)
        _require(found.shape in ((), (len(names),)), "cost", "a number, or one for each candidate")
        _require(bool(np.isfinite(found).all() and (found >= 0.0).all()), "cost", "numbers, 0 or more")
        return np.broadcast_to(found, (len(names),)).copy()

    @property
    def seed(self) -> int:
        """A seed for the order of the examples."""
        if isinstance(self.rng, np.random.Generator):
            return int(self.rng.integers(2**62))
        if self.rng is None:
            return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(2))
        if isinstance(self.rng, bool) or not isinstance(self.rng, int | np.integer) or self.rng < 0:
            raise InvalidGenerator(
                f"rng is {self.rng!r}; pass a seed, for example rng=0, or a numpy Generator"
            )
        return int(self.rng)


def begun(candidates: Any, examples: Sequence[Any], settings: Settings) -> Campaign:
    """Open the store, and replay what is in it."""
    _require(len(candidates) >= 1 and len(examples) >= 1, "candidates and examples", "at least one of each")
    store = Store(settings.store)
    try:
        terms = _terms(store, candidates, examples, settings)
        promise, patience = _promise(settings, len(terms.rows)), Patience(settings.retries, settings.pause)
        return Campaign(terms, promise, store, patience, settings.workers)
    except BaseException:
        store.close()
        raise


def _terms(store: Store, candidates: Any, examples: Sequence[Any], settings: Settings) -> Terms:
    names, is_named = named(candidates), isinstance(candidates, Mapping)
    costs, stored = settings.costs(candidates, names), settings.store is not None
    ours = items(candidates.values() if is_named else candidates, names if is_named else None, stored)
    theirs = items(examples, None, stored)
    claim = settled_claim(store, _wanted(settings, ours, theirs), settings.new_candidates)
    numbers = np.array(store.numbers("candidate", ours))
    rows, in_order = _ordered(np.array(store.numbers("example", theirs)), claim)
    low, high = map(float, settings.score_range)
    budget = math.inf if settings.budget is None else float(settings.budget)
    return Terms(names, numbers, in_order, rows, (low, high), costs, budget, settings.on_failure)


def _wanted(settings: Settings, candidates: list[Item], examples: list[Item]) -> Claim:
    sets = digest(item.key for item in examples), digest(item.key for item in candidates)
    score_range = [float(limit) for limit in settings.score_range]
    return Claim([settings.seed], *sets, score_range, settings.claim, settings.on_failure)


def _ordered(numbers: Indices, claim: Claim) -> tuple[Indices, Indices]:
    """Give the user's row and the store's number of the example at each position."""
    rows = np.argsort(numbers, kind="stable")  # whatever order the user has them in
    rows = rows[~np.isin(numbers[rows], claim.looked_at)]
    if len(rows) == 0:
        raise InvalidArgument("candidates were evaluated on all examples before: give new examples")
    rows = rows[order_of(claim.seed, len(rows))]
    return rows, numbers[rows]


def _promise(settings: Settings, size: int) -> Promise:
    low, high = settings.score_range
    sampled = Sampled(size, finite=settings.claim == "these examples")
    return Promise(sampled, settings.delta, settings.tolerance / (high - low))


def _require(holds: bool, name: str, what: str) -> None:
    if not holds:
        raise InvalidArgument(f"{name} must be {what}")


def _real(value: Any) -> float:
    """Give a number as it is, and NaN for anything else, which lies between no limits."""
    return float(value) if isinstance(value, Real) else math.nan


def _whole(value: Any) -> int:
    """Give a whole number as it is, and one that is too small for anything else."""
    return int(value) if isinstance(value, Integral) else -1


def _is_range(value: Any) -> bool:
    """Whether there are two numbers, the lower first, with a width that is a number, too."""
    try:
        low, high = map(_real, value)
    except (TypeError, ValueError):
        return False
    return low < high and math.isfinite(high - low)


def _is_file(value: Any) -> bool:
    return value is None or (isinstance(value, str | os.PathLike) and os.fspath(value) != IN_MEMORY)


def _numbers(values: Any) -> Floats:
    """Give an array; of NaN, if these are no numbers."""
    try:
        found = np.asarray(values)
        return np.full(found.shape, np.nan) if found.dtype.kind in "US" else found.astype(np.float64)
    except (TypeError, ValueError):
        return np.full((), np.nan)


def _price(cost: Mapping[Any, float], candidate: Any, name: str) -> float | None:
    """Find the cost of a candidate: by itself or its key in a dict, or by the name that is shown."""
    with suppress(TypeError):  # it cannot be a key
        if candidate in cost:
            return cost[candidate]
    return cost.get(name)
