"""A small demonstration: what each solver reads, how often it errs, and how long it takes.

The problem is the paper's synthetic one (section 5.1): normal rewards, shifted so that their sums
are log p(X). Every solver draws with the same Gumbel variables, and is checked against these sums.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from gumbelrace.audit import audit
from gumbelrace.bounds.normal import Normal
from gumbelrace.bounds.serfling import Serfling
from gumbelrace.experiments.one_race import example_race
from gumbelrace.models.synthetic import normalised
from gumbelrace.population.base import Population
from gumbelrace.population.table import table
from gumbelrace.report.demo import demo_page
from gumbelrace.report.page import write_page
from gumbelrace.sample import sample
from gumbelrace.solvers.base import Promise, Solver
from gumbelrace.solvers.betting import Betting
from gumbelrace.solvers.exact import Exact
from gumbelrace.solvers.lilucb import LilUCB
from gumbelrace.solvers.race import Race

SEED = 20160620
SCALE = 1e-4
ROUNDS = 5

# Slow solvers get a share of the draws.
CONTENDERS: tuple[tuple[str, Solver, float], ...] = (
    ("exact scan", Exact(), 0.1),
    ("Race(Normal())", Race(Normal()), 1.0),
    ("Betting()", Betting(), 1.0),
    ("Race(Serfling())", Race(Serfling()), 0.5),
    ("LilUCB()", LilUCB(), 0.01),
)

INTRODUCTION = """\
Draws from p(x) over {arms} states, each the product of {size:,} factors (σ={scale:g}).
The first run compiles the solvers (up to a minute); later runs use the cache.
"""
EXPLANATION = """
read: share of the factors read by a draw; errors: draws unlike the exact ones;
speed-up: over an exact scan, in turns with it; error bound: proved or assumed."""
COLUMNS = "{:<17}{:>9}{:>16}{:>13}{:>11}  {:<12}"
HEADER = COLUMNS.format("solver", "read", "errors", "µs a draw", "speed-up", "error bound").rstrip()


class Row(NamedTuple):
    """What one solver did."""

    solver: str
    read: float
    errors: int
    draws: int
    seconds: float
    speed_up: float
    promise: Promise


def main(out: Path, size: int = 200_000, arms: int = 10, draws: int = 2000) -> None:
    """Print a table of all solvers on a built-in problem, and write a page that shows it.

    Parameters
    ----------
    out : Path
        The page.
    size, arms : int
        Number of rows N and of arms D.
    draws : int
        Draws of the fast solvers; slow ones get fewer.
    """
    print(INTRODUCTION.format(arms=arms, size=size, scale=SCALE))
    print(f"{HEADER}\n{'-' * len(HEADER)}", flush=True)
    found = []
    for row in rows(problem(size, arms), draws):
        print(line(row), flush=True)
        found.append(row)
    print(EXPLANATION)
    facts = {"States": str(arms), "Factors of each": f"{size:,}", "Standard deviation σ": f"{SCALE:g}"}
    write_page(out, demo_page(found, example_race(), facts))
    print(f"\nThe same with a race to watch: {out}")


def problem(size: int, arms: int) -> Population:
    """Give normal rewards whose sums are log p(X), p a linear ramp."""
    ramp = np.arange(1.0, arms + 1.0)
    rewards = np.random.default_rng(SEED).normal(size=(size, arms))
    return table(normalised(rewards, np.log(ramp / ramp.sum()), SCALE))


def rows(population: Population, draws: int) -> Iterator[Row]:
    """Try one solver after the other."""
    scan = CONTENDERS[0][1]
    for name, solver, share in CONTENDERS:
        count = max(1, round(share * draws))
        a_round = max(1, count // ROUNDS)
        seconds = seconds_a_draw(population, {scan: max(1, draws // 50), solver: a_round})
        report = audit(population, solver, count, rng=np.random.default_rng(SEED))
        yield Row(
            name,
            report.fraction,
            report.errors,
            count,
            seconds[solver],
            seconds[scan] / seconds[solver],
            report.promise,
        )


def seconds_a_draw(population: Population, draws: dict[Solver, int]) -> dict[Solver, float]:
    """Time batches of draws, the solvers taking turns; the first turn compiles and is left out."""
    times: dict[Solver, list[float]] = {solver: [] for solver in draws}
    for _ in range(1 + ROUNDS):
        for solver, count in draws.items():
            started = time.perf_counter()
            rng = np.random.default_rng(SEED)
            sample(population, size=count, solver=solver, rng=rng, check=False)
            times[solver].append((time.perf_counter() - started) / count)
    return {solver: median(taken[1:]) for solver, taken in times.items()}


def line(row: Row) -> str:
    """Lay out a row of the table."""
    ground = "proved" if row.promise.proved else "assumed"
    return COLUMNS.format(
        row.solver,
        f"{row.read:.2%}",
        f"{row.errors} of {row.draws}",
        f"{1e6 * row.seconds:,.1f}",
        f"{row.speed_up:.3g}x",
        "exact" if row.promise.delta == 0.0 else f"{row.promise.delta:g} {ground}",
    ).rstrip()
