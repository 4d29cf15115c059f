"""Are promises that are called proved kept, on populations that hurt?

    python benchmarks/promises.py [--quick] [--only audit given_order short_looks]

`audit`: every method that says "proved" decides on more than twenty kinds of hostile populations, of
D = 2, 10, 100 arms and N = 1,000, 16,384, 100,000 rows. All sums of a population are tied. Half of the
draws are audited draws with Gumbel noise; in the other half the winner is decided by a hair, which goes to
a random arm: then a method errs as often as it can. Rows are read in an order that a draw has for itself
(`fresh`: a compiled population), or that many draws share (`shared`: 2 to 20 tables).

The p-value is the probability of so many errors or more if each draw errs with probability δ: binomial for
fresh orders; for shared ones a t-test over the orders. The smallest p-value of all is to be compared with
1 over the number of cells.

`given_order`: how much the error of a draw differs between 300 orders that draws may share.

`short_looks`: how often Race(Normal), whose promise rests on normal rewards, errs on normal rewards.

The full run makes more than 10^6 draws in less than 30 minutes on two cores, `--quick` takes about three.
"""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, stdtr
from shared import run_sections, show

import gumbelrace as gr

Floats = NDArray[np.float64]
Shape = Callable[[np.random.Generator, int, int], Floats]

DELTA = 0.05
ARMS, SIZES = (2, 10, 100), (1_000, 16_384, 100_000)
# A cell of the table makes so many draws, fewer where they would read more rewards than this.
MOST_DRAWS, REWARDS = 1_440, 2.4e9
METHODS: dict[str, Any] = {
    "Betting": gr.Betting(DELTA),
    "Race(Serfling)": gr.Race(gr.methods.Serfling(), DELTA),
    "LilUCB.guaranteed": gr.LilUCB.guaranteed(DELTA),
}
# What a reward costs, where a table and a race cost 1.
COMPILED, SINGLE_PULLS = 6.0, 60.0


# ---- Populations ----


def rare(share: float, value: float) -> Shape:
    """A few rows carry everything."""
    return lambda rng, size, arms: value * (rng.random((size, arms)) < share)


def one_row(value: float) -> Shape:
    """Normal rewards, and one row that weighs as much as all others together."""

    def shape(rng: np.random.Generator, size: int, arms: int) -> Floats:
        rewards = rng.normal(size=(size, arms))
        rewards[rng.integers(size, size=arms), np.arange(arms)] += value * size
        return rewards

    return shape


def against_the_rest(shape: Shape) -> Shape:
    """Only the first arm varies: its rows alone decide."""

    def first(rng: np.random.Generator, size: int, arms: int) -> Floats:
        rewards = np.zeros((size, arms))
        rewards[:, :1] = shape(rng, size, 1)
        return rewards

    return first


def runs(length: int) -> Shape:
    """Rows lie in runs of equal ones."""
    return lambda rng, size, arms: np.repeat(rng.normal(size=(-(-size // length), arms)), length, 0)[:size]


def bimodal(rng: np.random.Generator, size: int, arms: int) -> Floats:
    return rng.normal(size=(size, arms)) + 30.0 * (rng.random((size, arms)) < 0.02)


def common_part(rng: np.random.Generator, size: int, arms: int) -> Floats:
    return 1e4 * rng.normal(size=(size, 1)) + rng.normal(size=(size, arms))


def scales(rng: np.random.Generator, size: int, arms: int) -> Floats:
    return rng.normal(size=(size, arms)) * np.logspace(-3, 3, arms)


def trend(rng: np.random.Generator, size: int, arms: int) -> Floats:
    return np.linspace(-1, 1, size)[:, None] * np.linspace(1, 2, arms) + 0.1 * rng.normal(size=(size, arms))


def alternating(rng: np.random.Generator, size: int, arms: int) -> Floats:
    return (np.arange(size)[:, None] % 2) * np.linspace(-1, 1, arms) + 0.01 * rng.normal(size=(size, arms))


def whole_numbers(rng: np.random.Generator, size: int, arms: int) -> Floats:
    return rng.integers(0, 3, size=(size, arms)).astype(float)


def cancelling(rng: np.random.Generator, size: int, arms: int) -> Floats:
    rewards = rng.normal(size=(size, arms))
    rewards[: size // 100] += 50.0
    rewards[-(size // 100) :] -= 50.0
    return rewards


HOSTILE: dict[str, Shape] = {
    "normal": lambda rng, size, arms: rng.normal(size=(size, arms)),
    "uniform": lambda rng, size, arms: rng.random((size, arms)),
    "coin": lambda rng, size, arms: 1.0 * (rng.random((size, arms)) < 0.5),
    "lognormal": lambda rng, size, arms: rng.lognormal(0.0, 2.0, (size, arms)),
    "left-skewed": lambda rng, size, arms: -rng.lognormal(0.0, 2.0, (size, arms)),
    "Pareto": lambda rng, size, arms: rng.pareto(1.2, (size, arms)),
    "minus Pareto": lambda rng, size, arms: -rng.pareto(1.2, (size, arms)),
    "Student t(2)": lambda rng, size, arms: rng.standard_t(2, (size, arms)),
    "Cauchy": lambda rng, size, arms: rng.standard_cauchy((size, arms)),
    "rare 1 (1%)": rare(0.01, 1.0),
    "rare 1 (0.1%)": rare(0.001, 1.0),
    "rare -1 (1%)": rare(0.01, -1.0),
    "rare 1, others constant": against_the_rest(rare(0.03, 1.0)),
    "rare -1, others constant": against_the_rest(rare(0.03, -1.0)),
    "lognormal, others constant": against_the_rest(lambda r, n, d: r.lognormal(0.0, 2.0, (n, d))),
    "left-skewed, others constant": against_the_rest(lambda r, n, d: -r.lognormal(0.0, 2.0, (n, d))),
    "one row up": one_row(1.0),
    "one row down": one_row(-1.0),
    "two modes": bimodal,
    "a large common part": common_part,
    "arms of many scales": scales,
    "sorted": trend,
    "alternating": alternating,
    "runs of 16": runs(16),
    "runs of 128": runs(128),
    "whole numbers": whole_numbers,
    "extremes that cancel": cancelling,
}


def tied(shape: Shape, rng: np.random.Generator, size: int, arms: int) -> Floats:
    """Give rewards of a shape with a spread of 1 and sums that are all zero but for rounding."""
    rewards = shape(rng, size, arms)
    rewards = rewards - rewards.mean(axis=0)
    return rewards / max(float(rewards.std()), 1e-12)


# ---- Decisions ----


@numba.njit
def entry(n: int, arm: int, rewards: Floats) -> float:
    """Give a reward of a table, as a factor that is computed."""
    return rewards[n, arm]


class Cell(NamedTuple):
    """One entry of the table."""

    method: str
    shape: str
    size: int
    arms: int
    shared: bool

    def draws(self, most: int, rewards: float) -> int:
        """How many draws the cell makes with one order, or, if every draw has one, in all."""
        cost = SINGLE_PULLS if self.method.startswith("LilUCB") else 1.0 if self.shared else COMPILED
        most, rewards = (most // 20, rewards / 20) if self.shared else (most, rewards)
        return int(min(most, max(2, rewards / (cost * self.size * self.arms))))


class Found(NamedTuple):
    """Errors of one cell."""

    cell: Cell
    errors: int
    draws: int
    p: float


def errors(method: Any, population: Any, draws: int, rng: np.random.Generator) -> int:
    """Count the errors of draws with noise, and of as many decisions by a hair."""
    audited = gr.audit(population, method, draws=draws - draws // 2, rng=rng).errors
    return audited + errors_on_ties(method, population, draws // 2, rng)


def errors_on_ties(method: Any, population: Any, draws: int, rng: np.random.Generator) -> int:
    """Count wrong decisions where the sums are tied, and a hair decides."""
    # Far more than rounding, far less than a race can see.
    hair = 1e-4 * np.sqrt(population.size)
    winners = rng.integers(population.arms, size=draws)
    winners[::2] = 0
    offsets = np.zeros((draws, population.arms))
    offsets[np.arange(draws), winners] = hair
    return int(np.sum(method.best_each(population, offsets, rng).arms != winners))


def measured(shape: str, size: int, arms: int, most: int, budget: float) -> list[Found]:
    """Make the draws of all methods from one population, with orders of their own and with shared ones."""
    rng = np.random.default_rng([SIZES.index(size), arms, list(HOSTILE).index(shape)])
    rewards = tied(HOSTILE[shape], rng, size, arms)
    bounds = rewards.min(axis=0), rewards.max(axis=0)
    fresh, shared = (
        {Cell(name, shape, size, arms, kind): Cell(name, shape, size, arms, kind).draws(most, budget)
         for name in METHODS} for kind in (False, True)
    )  # fmt: skip
    # To make a table costs as much as to draw from it.
    orders = int(min(20, max(2, budget / 200 / (size * arms))))
    return [
        *found_in([gr.compiled(entry, (rewards,), size, arms, reward_range=bounds)], fresh, rng),
        *found_in((gr.table(rewards) for _ in range(orders)), shared, rng),
    ]


def found_in(populations: Iterable[Any], cells: dict[Cell, int], rng: np.random.Generator) -> list[Found]:
    """Make the draws of cells, each from all populations: the same rewards in other orders."""
    wrong: dict[Cell, list[int]] = {cell: [] for cell in cells}
    for population in populations:
        for cell, draws in cells.items():
            wrong[cell].append(errors(METHODS[cell.method], population, draws, rng))
    return [
        Found(
            cell, sum(found), len(found) * cells[cell], p_value(np.array(found), cells[cell], cell.shared)
        )
        for cell, found in wrong.items()
    ]


def p_value(found: NDArray[np.int64], draws: int, shared: bool) -> float:
    """Give the probability of as many errors or more, out of `draws` each, if the promise is just kept."""
    if found.sum() <= DELTA * draws * len(found):
        return 1.0
    binomial = float(bdtrc(found.sum() - 1, draws * len(found), DELTA))
    if not shared:
        return binomial
    # Draws of one order err together: they count as one.
    rates = found / draws
    error = max(float(rates.std(ddof=1)) / np.sqrt(len(rates)), 1e-12)
    return max(binomial, float(1.0 - stdtr(len(rates) - 1, (rates.mean() - DELTA) / error)))


# ---- Tables ----


def audit(quick: bool) -> None:
    """Errors of every method that is called proved."""
    most, budget = (MOST_DRAWS // 6, REWARDS / 7) if quick else (MOST_DRAWS, REWARDS)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        tasks = [pool.submit(measured, *parts, most, budget) for parts in product(HOSTILE, SIZES, ARMS)]
    found = [cell for task in tasks for cell in task.result()]
    lines = [
        line(method, order, [f for f in found if (f.cell.method, f.cell.shared) == (method, shared)])
        for method in METHODS
        for shared, order in ((False, "fresh"), (True, "shared"))
    ]
    title = f"{sum(f.draws for f in found):,} draws, {len(HOSTILE)} populations, δ = {DELTA}"
    header = (
        "method | order | cells | draws | errors | share | worst cell | its share | smallest p | 1/cells"
    )
    show(f"audit: {title}", header, lines)
    if min(f.p for f in found) < 0.01 / len(found):
        raise SystemExit("a promise is broken")


def line(method: str, order: str, found: list[Found]) -> list[str]:
    """Give a line of the table."""
    draws, wrong = sum(f.draws for f in found), sum(f.errors for f in found)
    worst = max(found, key=lambda f: f.errors / f.draws)
    where = f"{worst.cell.shape}, N={worst.cell.size:,}, D={worst.cell.arms}"
    smallest = min(f.p for f in found)
    shares = f"{wrong / draws:.4f}", where, f"{worst.errors / worst.draws:.3f}"
    return [method, order, str(len(found)), f"{draws:,}", f"{wrong:,}", *shares, f"{smallest:.3g}",
            f"{1 / len(found):.2g}"]  # fmt: skip


def given_order(quick: bool) -> None:
    """Errors of decisions by a hair in tables of the same rewards, each in an order of its own."""
    orders, lines = 30 if quick else 300, []
    for name, size in product(
        ("rare 1, others constant", "left-skewed, others constant"), (16_384, 10**5, 10**6)
    ):
        rng = np.random.default_rng(size)
        rewards = tied(HOSTILE[name], rng, size, 2)
        draws = int(min(1000, 2e8 / size))

        def share(seed: Any, rewards: Floats = rewards, draws: int = draws) -> float:
            rng = np.random.default_rng(seed)
            return errors_on_ties(METHODS["Betting"], gr.table(rewards), draws, rng) / draws

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            shares = np.array(list(pool.map(share, rng.bit_generator.seed_seq.spawn(orders))))
        chance = np.sqrt(shares.mean() * (1 - shares.mean()) / draws)
        spread = np.sqrt(max(shares.var(ddof=1) - chance**2, 0.0))
        lines.append([name, f"{size:,}", str(orders), str(draws), f"{shares.mean():.4f}", f"{spread:.4f}",
                      f"{np.quantile(shares, 0.95):.4f}", f"{shares.max():.4f}"])  # fmt: skip
    header = "population | N | orders | draws each | error | spread beyond chance | 95% of orders | largest"
    show(f"given_order: Betting, δ = {DELTA}", header, lines)


def short_looks(quick: bool) -> None:
    """Errors of Race(Normal) over δ, on normal rewards, by the bound's own and by the paper's formula."""
    errors_wanted, lines = 100 if quick else 1600, []
    for first, times, delta in product((4, 8, 50), (4, 100, 10_000), (0.05, 0.01, 1e-3, 1e-4)):
        size = times * first + 1
        rng, trials = np.random.default_rng([first, times]), int(errors_wanted / delta)
        found = [
            upward_exits(bound, delta, first, size, trials, rng) / trials
            for bound in (gr.methods.Normal(), gr.methods.Normal(student=False))
        ]
        chance = np.sqrt(delta / trials) / delta
        lines.append(
            [str(first), f"{size:,}", f"{delta:g}", *(f"{e / delta:.2f}" for e in found), f"{chance:.2f}"]
        )
    header = "first | N | δ | error/δ | paper's | chance"
    show(f"short_looks: two tied arms, normal rewards, {errors_wanted:,}/δ races", header, lines)


def upward_exits(
    bound: Any, delta: float, first: int, size: int, races: int, rng: np.random.Generator
) -> int:
    """Count the races of two tied arms that drop the first, simulated by sums and squares alone.

    Differences are normal given that their sum is zero. What a block adds to the sum is then normal, and
    what it adds to the squares of deviations is chi-square, whatever the sum is.
    """
    looks = first * 2 ** np.arange(int(np.ceil(np.log2(size / first))))
    per_deviation = bound.coefficients(delta, looks, size).per_deviation
    wrong = 0
    for part in np.diff(np.linspace(0, races, 2 + races // 200_000).astype(int)):
        sums, squares, before, left = np.zeros(part), np.zeros(part), 0, np.ones(part, bool)
        for taken, factor in zip(looks.tolist(), per_deviation, strict=True):
            fresh, rest = taken - before, size - before
            added = -sums * fresh / rest + rng.normal(size=part) * np.sqrt(fresh * (1.0 - fresh / rest))
            squares += 2.0 * rng.standard_gamma((fresh - 1) / 2, size=part)
            if before:
                squares += (added / fresh - sums / before) ** 2 * (before * fresh / taken)
            sums, before = sums + added, taken
            margin = factor * np.sqrt(squares / taken)
            wrong += int(np.sum(left & (sums / taken > margin)))
            left &= np.abs(sums / taken) <= margin
    return wrong


if __name__ == "__main__":
    sections = {"audit": audit, "given_order": given_order, "short_looks": short_looks}
    run_sections(__doc__, sections)
