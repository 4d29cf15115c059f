"""Racing arms that have rows of their own (paper, section 5.3 and appendix C.3, corrected).

The bound on the difference of two *sums* is

    (N_i² σ̂_i²/T_i (1 - (T_i-1)/(N_i-1)) + N_j² σ̂_j²/T_j (1 - (T_j-1)/(N_j-1)))^½ B;

the paper prints σ̂ for σ̂², the exponent -1/2, and no sizes. A few near-equal first rewards would give
σ̂ ≈ 0 and a wrong elimination that no δ controls, so variances are shrunk towards that of all arms:
σ² = (SS + 3 σ0²)/(T + 3). A proved bound takes the plain variance, and margins that add.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.bounds.base import Bound
from gumbelrace.jit import part
from gumbelrace.population.base import Floats, Source
from gumbelrace.solvers import rules, separate
from gumbelrace.solvers.field import ALIVE, LEADER, LOOKS, Field
from gumbelrace.solvers.rules import implements
from gumbelrace.solvers.separate import Own, estimate_own

# Weight, in rewards, of the variance of all arms; and the share of an arm that the second look adds.
PRIOR_REWARDS = 3.0
SECOND_SHARE = 10
# Looks before the one that has read everything: first + ceil((N - first)/10)·(2^4 - 1) ≥ N.
LOOKS_BEFORE_LAST = 4


class OwnLooks(NamedTuple):
    """Rule of the race: rows of the first look, and the bound's coefficients [look, arm]."""

    first: int
    per_deviation: Floats
    per_range: Floats
    in_squares: bool


class Margins(NamedTuple):
    """For each arm: how far its estimated sum may be off."""

    margin: Floats


def own_looks(bound: Bound, delta: float, first: int, sizes: NDArray[np.int64]) -> OwnLooks:
    """Give the rule for arms of the given sizes."""
    return _own_looks(bound, delta, first, tuple(sizes.tolist()))


@lru_cache(maxsize=256)
def _own_looks(bound: Bound, delta: float, first: int, sizes: tuple[int, ...]) -> OwnLooks:
    n = np.array(sizes, np.float64)
    step = np.maximum(np.ceil((n - first) / SECOND_SHARE), 1.0)
    at = np.minimum(first + step * (2.0 ** np.arange(LOOKS_BEFORE_LAST)[:, None] - 1.0), n)
    coefficients = bound.any_schedule(delta, at, n)
    return OwnLooks(first, *coefficients, bound.adds_in_squares)


@implements(rules.prepare, OwnLooks)
def _prepare(rule: OwnLooks, source: Source) -> Margins:
    return Margins(np.empty(source.arms))


@implements(separate.look_size, OwnLooks)
def _look_size(rule: OwnLooks, look: int, taken: int, size: int) -> int:
    """Read `first` rows, then a tenth of the others, doubling."""
    if look == 0:
        return rule.first
    step = max((size - rule.first + SECOND_SHARE - 1) // SECOND_SHARE, 1)
    return step << (look - 1)


@implements(separate.judge_own, OwnLooks)
def _judge(
    rule: OwnLooks,
    margins: Margins,
    source: Source,
    field: Field,
    own: Own,
    sizes: NDArray[np.int64],
) -> None:
    pooled = pooled_variance(field, own) if rule.in_squares else 0.0
    for a in range(field.tally[ALIVE]):
        arm = field.arms[a]
        margins.margin[arm] = margin_of(rule, source, field, own, sizes, arm, pooled)
    leader = field.tally[LEADER]
    best, width = estimate_own(field, own, sizes, leader), margins.margin[leader]
    for a in range(field.tally[ALIVE]):
        arm = field.arms[a]
        other = margins.margin[arm]
        both = np.sqrt(width**2 + other**2) if rule.in_squares else width + other
        field.out[arm] = arm != leader and best - estimate_own(field, own, sizes, arm) > both


@part
def pooled_variance(field: Field, own: Own) -> float:
    """Variance of the rewards of all arms in the race, each around its own mean: σ0²."""
    squares, freedom = 0.0, 0
    for a in range(field.tally[ALIVE]):
        squares += own.squares[field.arms[a]]
        freedom += max(own.taken[field.arms[a]] - 1, 0)
    return squares / max(freedom, 1)


@part
def margin_of(
    rule: OwnLooks,
    source: Source,
    field: Field,
    own: Own,
    sizes: NDArray[np.int64],
    arm: int,
    pooled: float,
) -> float:
    """How far the estimated sum of an arm may be off."""
    taken, n = own.taken[arm], sizes[arm]
    if taken == n:
        return 0.0
    t, width = field.tally[LOOKS] - 1, source.high[arm] - source.low[arm]
    if rule.in_squares:
        variance = (own.squares[arm] + PRIOR_REWARDS * pooled) / (taken + PRIOR_REWARDS)
        # Equal rewards in the rows read prove nothing of the others, unless the range says they are equal.
        if variance == 0.0 and width > 0.0:
            return np.inf
        return n * rule.per_deviation[t, arm] * np.sqrt(variance)
    deviation = np.sqrt(own.squares[arm] / taken)
    return n * (rule.per_deviation[t, arm] * deviation + rule.per_range[t, arm] * width)
