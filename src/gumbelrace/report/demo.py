"""The page of the demo: what each solver did, one race, and what to do next."""

from collections.abc import Mapping, Sequence

from gumbelrace.applications.demo import Row
from gumbelrace.experiments.records import WatchedRace
from gumbelrace.report.numbers import count, microseconds, percent, times
from gumbelrace.report.page import Code, Column, Page, Section, Table, Text
from gumbelrace.report.race import race_figure, story
from gumbelrace.solvers.base import Promise

LEAD = (
    "gumbelrace draws from a discrete distribution with very many factors while reading only those that"
    " the draw needs. Here is what its solvers did on your machine a moment ago."
)
COLUMNS = [
    Column("solver", is_number=False),
    Column("share read"),
    Column("wrong draws"),
    Column("µs a draw"),
    Column("speed-up"),
    Column("error bound", is_number=False),
]
READING = (
    "Share read: of all factors, by an average draw. Wrong: unlike an exact draw with the same Gumbel "
    "variables. Speed-up: over an exact scan by compiled code, measured in turns with it. Error bound: "
    "the probability of a wrong draw that the solver allows, and whether that is proved or rests on an "
    "assumption."
)
OWN = """\
import numba
import numpy as np
import gumbelrace as gr

rng = np.random.default_rng(0)
y, centers = rng.normal(0.30, 1.0, 200_000), np.array([0.10, 0.20, 0.30, 0.40])

@numba.njit
def log_factor(n, arm, y, centers):
    return -0.5 * (y[n] - centers[arm]) ** 2

population = gr.compiled(log_factor, (y, centers), size=len(y), arms=len(centers))
draws = gr.sample(population, log_prior=np.log([0.1, 0.4, 0.4, 0.1]), size=1000, rng=rng)
print(draws.fraction, draws.tv_bound)
print(gr.audit(population, gr.Race(gr.Normal()), draws=200, rng=rng))"""
NEXT = (
    "Draw from a likelihood of your own. The audit in the last line does some draws again exactly and "
    "counts how often they were wrong: run it before you trust an assumption."
)


def demo_page(rows: Sequence[Row], race: WatchedRace, facts: Mapping[str, str] | None = None) -> Page:
    """Give the page of the demo.

    Parameters
    ----------
    rows : sequence of Row
        What each solver did.
    race : WatchedRace
        One race to watch.
    facts : mapping, optional
        What was run, in words: label -> value.
    """
    return Page(
        "gumbelrace, a demonstration",
        LEAD,
        facts or {},
        [
            Section("What each solver did", [Table(COLUMNS, [cells(row) for row in rows]), Text(READING)]),
            Section("Watch one race", [Text(story(race)), race_figure(race)]),
            Section("What to do next", [Text(NEXT), Code(OWN)]),
        ],
    )


def cells(row: Row) -> list[str]:
    """Lay out a row."""
    return [
        f"`{row.solver}`" if "(" in row.solver else row.solver,
        percent(row.read),
        f"{count(row.errors)} of {count(row.draws)}",
        microseconds(row.seconds),
        times(row.speed_up),
        bound(row.promise),
    ]


def bound(promise: Promise) -> str:
    """Say how often a solver may err."""
    if promise.delta == 0.0:
        return "never wrong"
    return f"{promise.delta:g}, {'proved' if promise.proved else 'assumed'}"
