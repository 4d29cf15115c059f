"""A small demonstration: what each solver reads, how often it errs, and how long it takes.

The problem is the paper's synthetic one (section 5.1): normal rewards, scaled so that their sums are
log p(X). Every solver draws with the same Gumbel variables, and is checked against the exact sums.
"""

import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gumbelrace.audit import audit
from gumbelrace.bounds.normal import Normal
from gumbelrace.bounds.serfling import Serfling
from gumbelrace.models.synthetic import normalised
from gumbelrace.population.base import Population
from gumbelrace.population.table import table
from gumbelrace.sample import sample
from gumbelrace.solvers.base import Promise, Solver
from gumbelrace.solvers.betting import Betting
from gumbelrace.solvers.exact import Exact
from gumbelrace.solvers.lilucb import LilUCB
from gumbelrace.solvers.race import Race

SEED = 20160620
SCALE = 1e-4

# Slow solvers get a share of the draws.
CONTENDERS: tuple[tuple[str, Solver, float], ...] = (
    ("exact scan", Exact(), 0.1),
    ("Race(Normal())", Race(Normal()), 1.0),
    ("Betting()", Betting(), 1.0),
    ("Race(Serfling())", Race(Serfling()), 0.5),
    ("LilUCB()", LilUCB(), 0.005),
)

COLUMNS = "{:<17}{:>9}{:>16}{:>13}{:>11}  {:<12}"
HEADER = COLUMNS.format("solver", "read", "errors", "µs a draw", "speed-up", "error bound")
INTERRUPTED = 130  # what a shell reports after Ctrl-C


class Row(NamedTuple):
    """What one solver did."""

    solver: str
    read: float
    errors: int
    draws: int
    seconds: float
    speed_up: float
    promise: Promise


def main(size: int = 200_000, arms: int = 10, draws: int = 2000) -> int:
    """Print a table of all solvers on a built-in problem; return the exit status.

    Parameters
    ----------
    size, arms : int
        Number of rows N and of arms D.
    draws : int
        Draws of the fast solvers; slow ones get fewer.
    """
    print(
        f"A draw from p(x) over {arms} states, each the product of {size:,} factors "
        f"(σ = {SCALE:g}).\n"
        "The first run compiles the solvers, for up to a minute; later runs find them on disk.\n"
    )
    try:
        print(f"{HEADER}\n{'-' * len(HEADER)}", flush=True)
        for row in rows(problem(size, arms), draws):
            print(line(row), flush=True)
    except KeyboardInterrupt:
        print("\nInterrupted; the lines above are complete.")
        return INTERRUPTED
    print(
        "\nread: share of all factors that a draw read; errors: draws that differ from the exact "
        "ones;\nspeed-up: over the exact scan; error bound: proved for all factors, or assumed "
        "to hold."
    )
    return 0


def problem(size: int, arms: int) -> Population:
    """Give normal rewards whose sums are log p(X), p a linear ramp."""
    ramp = np.arange(1.0, arms + 1.0)
    rewards = np.random.default_rng(SEED).normal(size=(size, arms))
    return table(normalised(rewards, np.log(ramp / ramp.sum()), SCALE))


def rows(population: Population, draws: int) -> Iterator[Row]:
    """Try one solver after the other."""
    exact = 0.0
    for name, solver, share in CONTENDERS:
        count = max(1, round(share * draws))
        seconds = time_of_draw(population, solver, count)
        exact = exact or seconds
        report = audit(population, solver, count, rng=np.random.default_rng(SEED))
        yield Row(
            name,
            report.fraction,
            report.errors,
            count,
            seconds,
            exact / seconds,
            report.promise,
        )


def time_of_draw(population: Population, solver: Solver, draws: int) -> float:
    """Seconds of a draw in a batch, once the solver is compiled."""
    sample(population, size=1, solver=solver, rng=np.random.default_rng(SEED))
    started = time.perf_counter()
    sample(population, size=draws, solver=solver, rng=np.random.default_rng(SEED))
    return (time.perf_counter() - started) / draws


def line(row: Row) -> str:
    """Lay out a row of the table."""
    ground = "proved" if row.promise.proved else "assumed"
    return COLUMNS.format(
        row.solver,
        f"{row.read:.2%}",
        f"{row.errors} of {row.draws}",
        f"{1e6 * row.seconds:,.1f}",
        f"{row.speed_up:.2f}x",
        "exact" if row.promise.delta == 0.0 else f"{row.promise.delta:g} {ground}",
    )
