"""Racing arms that have rows of their own (paper, section 5.3 and appendix C.3, corrected).

The bound on the difference of two *sums* is

    (N_i² σ̂_i²/T_i (1 - (T_i-1)/(N_i-1)) + N_j² σ̂_j²/T_j (1 - (T_j-1)/(N_j-1)))^½ B;

the paper prints σ̂ for σ̂², the exponent -1/2, and no sizes. A few near-equal first rewards would give
σ̂ ≈ 0 and a wrong elimination that no δ controls, so variances are shrunk towards that of all arms:
σ² = (SS + k σ0²)/(T + k), k = 3 unless `Marginal(shrink=k)` says otherwise; k = 0 is the printed variance.
A proved bound takes the plain variance, and margins that add.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import part
from gumbelrace.methods import rules
from gumbelrace.methods.bounds import Bound
from gumbelrace.methods.independent import IndependentWorkspace, Readings, ceiling, estimate_sum, floor
from gumbelrace.methods.rules import implements
from gumbelrace.methods.state import ALIVE, ARMS, LEADER, RaceState
from gumbelrace.population.base import Floats

# Relative size of a standard deviation that is nothing but rounding.
ROUNDING = 1e-14
# The share of an arm that the second look adds.
SECOND_SHARE = 10
# Numbers of arms for which δ is divided exactly: as many leading bits are kept.
LEADING_BITS = 5
# If only some arms were read, a variance with fewer degrees of freedom is too uncertain to shrink towards.
FREEDOM = 10
# Looks before the one that has read everything: first + ceil((N - first)/10)·(2^4 - 1) ≥ N.
LOOKS_BEFORE_LAST = 4


class IndependentLooks(NamedTuple):
    """Rule of the race: rows of the first look, and the bound's coefficients [look, column]."""

    first: int
    column: NDArray[np.int64]  # of each arm
    per_deviation: Floats
    per_range: Floats
    scale: Floats  # [arms - 1]: by what both are multiplied in a race of so many arms; the last, of more
    in_squares: bool
    shrink: float  # weight, in rewards, of the variance of all arms
    patient: bool  # whether arms that can reach little are read later
    freedom: int  # degrees of freedom that this variance must have before arms are dropped

    def working_memory(self, arms: int) -> "Margins":
        """Make room for the margins of all arms."""
        return Margins(np.empty(arms))


class Margins(NamedTuple):
    """For each arm: how far its estimated sum may be off."""

    margin: Floats


@lru_cache(maxsize=256)
def independent_looks(
    bound: Bound, delta: float, first: int, shrink: float, sizes: tuple[int, ...]
) -> IndependentLooks:
    """Give the rule for arms of the given sizes."""
    delta /= _events(bound, len(sizes))
    coefficients = bound.any_schedule(delta, *schedule(first, np.array(sizes, np.float64)))
    column, squares = np.arange(len(sizes)), bound.adds_in_squares
    # Where variances are estimated, those of arms read first would stand for all, which may differ.
    return IndependentLooks(first, column, *coefficients, np.ones((1, 2)), squares, shrink, not squares, 0)


def looks_of_any_size(
    bound: Bound, delta: float, first: int, shrink: float, sizes: NDArray[np.int64], largest: int
) -> IndependentLooks:
    """Give the rule for arms whose sizes, up to `largest`, are put into `sizes` before each race.

    Rewards of all arms are supposed to be of one kind: arms that are read first tell their variance. Both
    coefficients of a bound are a number that depends on δ alone times one that does not.
    """
    coefficients = bound.any_schedule(delta, *schedule(first, np.arange(largest + 1.0)))
    scale, squares = _scales(bound, delta, len(sizes)), bound.adds_in_squares
    freedom = FREEDOM if squares and shrink > 0.0 else 0
    return IndependentLooks(first, sizes, *coefficients, scale, squares, shrink, True, freedom)


def schedule(first: int, sizes: Floats) -> tuple[Floats, Floats]:
    """Give the rows read at each look before the last, [look, size], and the sizes."""
    step = np.maximum(np.ceil((sizes - first) / SECOND_SHARE), 1.0)
    at = first + step * (2.0 ** np.arange(LOOKS_BEFORE_LAST)[:, None] - 1.0)
    return np.minimum(at, sizes), sizes


def _scales(bound: Bound, delta: float, arms: int) -> Floats:
    """Give the coefficients for 1, 2, ..., `arms` arms over those for one event of probability δ."""
    counts = np.array([_events(bound, d) for d in range(1, arms + 1)])
    # Few different numbers of events, each rounded up: the bound errs on the safe side.
    spare = np.maximum(np.frexp(counts)[1] - LEADING_BITS, 0)
    classes, of = np.unique(-(-counts // 2**spare) * 2**spare, return_inverse=True)
    looks, size = schedule(1, np.array([2.0**20]))
    found = [[c[0, 0] for c in bound.any_schedule(delta / events, looks, size)] for events in (1, *classes)]
    one, scaled = np.array(found[0]), np.array(found[1:])
    ratio = np.divide(scaled, one, out=np.zeros_like(scaled), where=one > 0.0)
    return np.ascontiguousarray(ratio[of])


def _events(bound: Bound, arms: int) -> int:
    """Count the events among which δ is divided: pairs with the best arm, or arms."""
    return max(arms - 1, 1) if bound.adds_in_squares else arms


@implements(rules.begin, IndependentLooks)
def _begin(rule: IndependentLooks, workspace: IndependentWorkspace) -> None:
    return None


@implements(rules.next_look, IndependentLooks)
def _next_look(rule: IndependentLooks, workspace: IndependentWorkspace, arm: int) -> int:
    """Read `first` rows, then a tenth of the others, doubling."""
    looks, size = workspace.readings.looks[arm], workspace.sizes[arm]
    if looks == 0:
        return rule.first
    step = max((size - rule.first + SECOND_SHARE - 1) // SECOND_SHARE, 1)
    return step << (looks - 1)


@implements(rules.judge, IndependentLooks)
def _judge(rule: IndependentLooks, workspace: IndependentWorkspace) -> None:
    source, state, readings = workspace.source, workspace.state, workspace.readings
    margins, (pooled, freedom) = workspace.work.margin, pooled_variance(state, readings)
    if freedom < rule.freedom:
        return
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        margins[arm] = margin_of(rule, workspace, arm, pooled)
    leader = state.tally[LEADER]
    best, width = estimate_sum(state, readings, leader), margins[leader]
    certain = max(best - width, floor(source, state, readings, leader))
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        both = np.sqrt(width**2 + margins[arm] ** 2) if rule.in_squares else width + margins[arm]
        beaten = best - estimate_sum(state, readings, arm) > both
        state.out[arm] = arm != leader and (beaten or certain > ceiling(source, state, readings, arm))


@part
def pooled_variance(state: RaceState, readings: Readings) -> tuple[float, int]:
    """Variance of the rewards of all arms in the race, each around its own mean: σ0²; and its freedom."""
    squares, freedom = 0.0, 0
    for a in range(state.tally[ALIVE]):
        squares += readings.squares[state.arms[a]]
        freedom += max(readings.taken[state.arms[a]] - 1, 0)
    return squares / max(freedom, 1), freedom


@part
def margin_of(rule: IndependentLooks, workspace: IndependentWorkspace, arm: int, pooled: float) -> float:
    """How far the estimated sum of an arm may be off."""
    source, state, readings = workspace.source, workspace.state, workspace.readings
    taken, n = readings.taken[arm], workspace.sizes[arm]
    if taken == n:
        return 0.0
    if taken == 0:
        return np.inf
    t, column, width = readings.looks[arm] - 1, rule.column[arm], source.high[arm] - source.low[arm]
    scale = rule.scale[min(state.tally[ARMS], len(rule.scale)) - 1]
    per_deviation = scale[0] * rule.per_deviation[t, column]
    if rule.in_squares:
        variance = (readings.squares[arm] + rule.shrink * pooled) / (taken + rule.shrink)
        deviation = np.sqrt(variance)
        # Equal rewards in the rows read prove nothing of the others, unless the range says they are equal.
        # The paper's formula takes them at their word, from two on.
        believed = width == 0.0 or (rule.shrink == 0.0 and taken > 1)
        if deviation <= ROUNDING * abs(state.sums[arm] / taken) and not believed:
            return np.inf
        return n * per_deviation * deviation
    deviation = np.sqrt(readings.squares[arm] / taken)
    return n * (per_deviation * deviation + scale[1] * rule.per_range[t, column] * width)
