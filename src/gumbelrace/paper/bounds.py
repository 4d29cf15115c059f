"""Bounds: Figure 1e, the constant B_Normal beside the paper's table (appendix B), and cases that break one.

Figure 1e compares G(T) at δ = 0.1 for rewards of unit variance. Here they are normal, N = 1e5 and D = 10,
and C is the largest range of an arm in that sample. `Betting` has no bound of this form: it multiplies a
wealth instead of comparing a gap with a width. Its counterpart is found by running it, as the gap that half
of its races have resolved after T rows; a race by G resolves about half of those with a true gap of G(T).

Racing-Normal fails where two arms tie but for a hair and rewards are not normal. The paper says that such
cases exist, and met none. In both of ours, what is read first hides what decides: the means of the rewards
read are not normal, however often the mini-batch doubles. A proved bound holds.
"""

from collections.abc import Callable, Iterator
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from gumbelrace.applications.demo import normalised
from gumbelrace.core.jit import kernel
from gumbelrace.methods.base import Method
from gumbelrace.methods.betting import Betting
from gumbelrace.methods.bounds import Serfling
from gumbelrace.methods.gaussian_walk import b_normal
from gumbelrace.methods.lilucb import Lil, heuristic, radius
from gumbelrace.paper.synthetic_study import METHODS, PAPER_NORMAL, BoundPoint, Broken, Level, PaperTable
from gumbelrace.population.table import table

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
SIZE, ARMS, DELTA = 100_000, 10, 0.1
SEED = 20160620
GAPS = np.geomspace(2.0, 0.01, 40)  # in standard deviations
RACES = 201
# Cases made to break Racing-Normal: rows, and the methods and δ that are tried.
BROKEN_SIZE = 5000
BROKEN_DELTAS = (0.01, 0.03, 0.1)
COMPARED = ("Racing-Normal", "Racing-EBS", "Betting")
# The first arm is better by this much: far less than any race can see, far more than rounding.
HAIR = 1e-6


def unit_rewards(size: int = SIZE, arms: int = ARMS) -> Floats:
    """Give normal rewards, each arm's with mean 0 and variance 1."""
    rewards = np.random.default_rng(SEED).normal(size=(size, arms))
    return normalised(rewards, np.zeros(arms), 1.0)


def bound_curves(rewards: Floats, delta: float = DELTA) -> list[BoundPoint]:
    """Give the width of every method's bound on a mean, for T from 2 to N.

    The rewards have unit variance; their number and range are what bounds depend on.

    Examples
    --------
    >>> points = bound_curves(unit_rewards(size=5000, arms=2))
    >>> sorted({point.method for point in points})
    ['Betting', 'Racing-EBS', 'Racing-Normal', "lil'UCB"]
    """
    size, arms = rewards.shape
    width = float(np.max(rewards.max(axis=0) - rewards.min(axis=0)))
    rows = np.unique(np.geomspace(2, size - 1, 120).astype(np.int64))
    return [
        *points("lil'UCB", rows, radii(heuristic(delta, arms), width / 2.0, rows)),
        *points("Racing-EBS", rows, serfling(rows, size, delta, width)),
        *points("Racing-Normal", *normal(rows, size, delta)),
        *points("Betting", *resolved(Betting(delta), rewards[:, 0])),
    ]


def points(method: str, rows: Indices, widths: Floats) -> Iterator[BoundPoint]:
    for count, width in zip(rows, widths, strict=True):
        if np.isfinite(width):
            yield BoundPoint(method, int(count), float(width))


@kernel
def radii(lil: Lil, scale: float, rows: Indices) -> Floats:
    result = np.empty(len(rows))
    for i in range(len(rows)):
        result[i] = radius(lil, scale, rows[i])
    return result


def serfling(rows: Indices, size: int, delta: float, width: float) -> Floats:
    """Give G of Racing-EBS between its looks too, each with the share of δ that a look has."""
    bound = Serfling()
    looks = int(np.ceil(np.log2(size / bound.first)))
    # The bound divides δ by the number of rows it is asked about, which here are not looks.
    at = bound.coefficients(delta / looks * len(rows), rows, size)
    return at.per_deviation + at.per_range * width


def normal(rows: Indices, size: int, delta: float) -> tuple[Indices, Floats]:
    """Give G of Racing-Normal from its first look on."""
    rows = np.append(PAPER_NORMAL.first, rows[rows > PAPER_NORMAL.first])
    return rows, PAPER_NORMAL.coefficients(delta, rows, size).per_deviation


def resolved(method: Method, rewards: Floats) -> tuple[Indices, Floats]:
    """Give pairs (T, gap): the smallest gap that half of the races between rewards and zeros resolve by T.

    Gaps that the method does not resolve without reading everything are left out.
    """
    population = table(np.column_stack([rewards, np.zeros_like(rewards)]))
    smallest: dict[int, float] = {}
    for gap in GAPS:  # from large to small: the last one of a T stays
        offsets = np.tile([gap * len(rewards), 0.0], (RACES, 1))
        results = method.best_each(population, offsets, np.random.default_rng(SEED))
        if np.median(results.exhausted) == 0:
            smallest[int(np.median(results.evaluations)) // 2] = float(gap)
    return np.array(list(smallest), np.int64), np.array(list(smallest.values()))


def paper_levels() -> tuple[Floats, Floats, Floats]:
    """Give the table of B_Normal as the paper prints it: δ, shares of the first look, and B of each pair.

    Examples
    --------
    >>> deltas, fractions, levels = paper_levels()
    >>> levels.shape, float(levels[0, 0])
    ((39, 6), 5.2725)
    """
    lines = files(__package__).joinpath("b_normal_paper.csv").read_text(encoding="utf-8").splitlines()
    fractions = np.array(lines[0].split(",")[1:], np.float64)
    rows = np.loadtxt(lines[1:], delimiter=",")
    return rows[:, 0], fractions, rows[:, 1:]


def compared_levels() -> list[Level]:
    """Give each printed B_Normal beside ours in both readings (the table is of the two-sided one)."""
    deltas, fractions, printed = paper_levels()
    return [
        Level(
            float(delta),
            float(fraction),
            float(printed[i, j]),
            b_normal(delta, fraction, two_sided=True),
            b_normal(delta, fraction),
        )
        for i, delta in enumerate(deltas)
        for j, fraction in enumerate(fractions)
    ]


def skewed_difference(rng: np.random.Generator) -> Floats:
    """Give differences that are mostly small and below their mean, and rarely large."""
    return rng.lognormal(0.0, 2.0, BROKEN_SIZE)


def one_outlier(rng: np.random.Generator) -> Floats:
    """Give normal differences, and one as large as all others together."""
    difference = rng.normal(size=BROKEN_SIZE)
    difference[rng.integers(BROKEN_SIZE)] += BROKEN_SIZE
    return difference


CASES: dict[str, Callable[[np.random.Generator], Floats]] = {
    "skewed difference": skewed_difference,
    "one outlier": one_outlier,
}


def broken(draws: int, seed: int) -> Iterator[Broken]:
    """Count how often each method drops the better arm.

    Examples
    --------
    >>> [row.errors > 50 for row in broken(100, seed=0) if row.case == "one outlier" and row.delta == 0.1]
    [True, False, False]
    """
    for case, make in CASES.items():
        rewards = np.zeros((BROKEN_SIZE, 2))
        rewards[:, 0] = make(np.random.default_rng(seed))
        rewards[:, 0] -= rewards[:, 0].mean() - HAIR / BROKEN_SIZE
        population = PaperTable(rewards)
        for method in COMPARED:
            for delta in BROKEN_DELTAS:
                rng = np.random.default_rng(seed)
                found = METHODS[method](delta).best_each(population, np.zeros((draws, 2)), rng)
                errors, read = int(np.sum(found.arms != 0)), int(found.evaluations.sum())
                yield Broken(case, method, delta, draws, errors, read / (draws * population.rewards))
