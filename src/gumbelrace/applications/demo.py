"""The demonstration: what each method reads, how often it errs and what time it takes; one race, watched.

The problem is the paper's synthetic one (section 5.1): normal rewards, shifted so that their sums are
log p(X). Every method draws with the same Gumbel variables, and is checked against these sums.

The rewards of the race come from a NumPy function that notes what it is asked for, so that what is shown
is what the engine did: an arm has been dropped when it is no longer asked for. The intervals are computed
here, from the rows read so far and the method's own bound; an arm whose interval lies below the leader's
zero is the one that the engine drops.
"""

import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from gumbelrace.auditing import audit
from gumbelrace.errors import ShapeMismatch
from gumbelrace.methods.base import Method, Outcome, Promise
from gumbelrace.methods.betting import Betting
from gumbelrace.methods.bounds import Normal, Serfling
from gumbelrace.methods.exact import Exact
from gumbelrace.methods.lilucb import LilUCB
from gumbelrace.methods.race import Looks, Race
from gumbelrace.population.base import Population
from gumbelrace.population.factors import factors
from gumbelrace.population.table import table
from gumbelrace.sampling import sample

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
SIZE, DELTA, SCALE = 100_000, 0.05, 1e-4
PROBABILITIES = np.array([0.4, 0.3, 0.2, 0.1])
# Picked from many draws, because its arms are dropped one after the other and the lead changes.
REWARDS_SEED, RACE_SEED = 3, 3809
SEED = 20160620
ROUNDS = 5
# Slow methods get a share of the draws.
CONTENDERS: tuple[tuple[str, Method, float], ...] = (
    ("exact scan", Exact(), 0.1),
    ("Race(Normal())", Race(Normal()), 1.0),
    ("Betting()", Betting(), 1.0),
    ("Race(Serfling())", Race(Serfling()), 0.5),
    ("LilUCB()", LilUCB(), 0.01),
)


class Standing(NamedTuple):
    """An arm at one look of a race: its sum less the leader's, estimated and bounded."""

    look: int
    rows: int
    arm: int
    estimate: float
    low: float
    high: float
    alive: bool  # whether it is read again, or has won


class WatchedRace(NamedTuple):
    """One race as the engine ran it."""

    size: int
    arms: int
    delta: float
    standings: tuple[Standing, ...]
    outcome: Outcome


class Row(NamedTuple):
    """What one method did."""

    method: str
    read: float
    errors: int
    draws: int
    seconds: float
    speed_up: float
    promise: Promise


def problem(size: int, arms: int) -> Population:
    """Give normal rewards whose sums are log p(X), p a linear ramp."""
    ramp = np.arange(1.0, arms + 1.0)
    rewards = np.random.default_rng(SEED).normal(size=(size, arms))
    return table(normalised(rewards, np.log(ramp / ramp.sum()), SCALE))


def rows(population: Population, draws: int) -> Iterator[Row]:
    """Time all methods in turns, then count the errors of each."""
    scan = CONTENDERS[0][1]
    counts = {method: max(1, round(share * draws)) for _, method, share in CONTENDERS}
    seconds = seconds_a_draw(population, {m: max(1, count // ROUNDS) for m, count in counts.items()})
    for name, method, _ in CONTENDERS:
        count = counts[method]
        report = audit(population, method, draws=count, rng=np.random.default_rng(SEED))
        yield Row(
            name,
            report.fraction,
            report.errors,
            count,
            seconds[method],
            seconds[scan] / seconds[method],
            report.promise,
        )


def seconds_a_draw(population: Population, draws: dict[Method, int]) -> dict[Method, float]:
    """Time batches of draws, the methods taking turns; the first turn compiles and is left out."""
    times: dict[Method, list[float]] = {method: [] for method in draws}
    for _ in range(1 + ROUNDS):
        for method, count in draws.items():
            started = time.perf_counter()
            rng = np.random.default_rng(SEED)
            sample(population, size=count, method=method, rng=rng, check=False)
            times[method].append((time.perf_counter() - started) / count)
    return {method: median(taken[1:]) for method, taken in times.items()}


class Asked(NamedTuple):
    """Rows and arms of one call of the log factors."""

    rows: Indices
    arms: Indices


class Look(NamedTuple):
    """The rows read up to a look, the arms in the race there, and those after it."""

    number: int
    rows: Indices
    arms: Indices
    after: Indices


def example_rewards() -> Floats:
    """Give the rewards of the example: those of section 5.1 with four states and σ = 1e-4."""
    rewards = np.random.default_rng(REWARDS_SEED).normal(size=(SIZE, len(PROBABILITIES)))
    return normalised(rewards, np.log(PROBABILITIES), SCALE)


def example_race() -> WatchedRace:
    """Watch one draw from four states with 100,000 factors each.

    Examples
    --------
    >>> race = example_race()
    >>> race.outcome.exhausted, max(standing.rows for standing in race.standings) < race.size
    (False, True)
    """
    rng = np.random.default_rng(RACE_SEED)
    offset = rng.gumbel(size=len(PROBABILITIES))
    return watch(example_rewards(), offset, DELTA, rng)


def watch(rewards: Floats, offset: Floats, delta: float, rng: np.random.Generator) -> WatchedRace:
    """Run ``Race(Normal(), delta)`` on rewards of shape (N, D) and say how it went.

    The offset is added to each arm's sum.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> race = watch(rng.normal(size=(10_000, 3)) + [0.0, 0.5, 0.1], np.zeros(3), 0.05, rng)
    >>> race.outcome.arm, [s.arm for s in race.standings if not s.alive]
    (1, [0, 2])
    """
    size, arms = rewards.shape
    if size <= Normal.first or arms < 2:
        raise ShapeMismatch(
            f"{size} rows and {arms} arms make no race; give at least {Normal.first + 1} rows and 2 arms"
        )
    asked: list[Asked] = []

    def log_factors(index: Indices, arms: Indices) -> Floats:
        asked.append(Asked(index.copy(), arms.copy()))
        return rewards[np.ix_(index, arms)]

    population, race = factors(log_factors, size, arms), Race(Normal(), delta)
    outcome, rule = race.best(population, offset, rng), cast(Looks, race.rule(population))
    standings = tuple(
        standing
        for look in looks(asked, rule.at[0], outcome)
        for standing in judged(look, rewards, offset, float(rule.per_deviation[0, look.number]))
    )
    return WatchedRace(size, arms, delta, standings, outcome)


def looks(asked: Sequence[Asked], at: Indices, outcome: Outcome) -> Iterator[Look]:
    """Cut what was asked for at the looks, whose rows are `at`."""
    rows = np.concatenate([call.rows for call in asked])
    ends = np.cumsum([len(call.rows) for call in asked])
    winner = Asked(rows[:0], np.array([outcome.arm]))
    for (call, following), end in zip(pairwise([*asked, winner]), ends, strict=True):
        number = int(np.searchsorted(at, end))
        if number < outcome.looks and at[number] == end:
            yield Look(number, rows[:end], call.arms, following.arms)


def judged(look: Look, rewards: Floats, offset: Floats, per_deviation: float) -> Iterator[Standing]:
    """Compare each arm with the leader: sums over all rows, estimated from those read."""
    size, rows = len(rewards), len(look.rows)
    seen = rewards[np.ix_(look.rows, look.arms)]
    sums = size * seen.mean(axis=0) + offset[look.arms]
    leader = int(np.argmax(sums))
    margins = size * per_deviation * (seen - seen[:, [leader]]).std(axis=0)
    for arm, gap, margin in zip(look.arms, sums - sums[leader], margins, strict=True):
        alive = bool(np.isin(arm, look.after))
        interval = (float(gap), float(gap - margin), float(gap + margin))
        yield Standing(look.number, rows, int(arm), *interval, alive)


def normalised(
    rewards: NDArray[np.float64], log_p: NDArray[np.float64], scale: float
) -> NDArray[np.float64]:
    """Shift and scale each column so that it sums to `log_p` and has standard deviation `scale`, σ."""
    centred: NDArray[np.float64] = rewards - rewards.mean(axis=0)
    centred *= scale / rewards.std(axis=0)
    centred += (log_p / len(rewards)) - centred.mean(axis=0)
    return centred
