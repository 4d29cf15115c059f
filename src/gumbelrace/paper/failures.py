"""Where Racing-Normal fails: two arms that tie but for a hair, and rewards that are not normal.

The paper says that such cases exist, and met none. In both, what is read first hides what decides: the
means of the rewards read are not normal, however often the mini-batch doubles. A proved bound holds.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gumbelrace.paper.records import Broken
from gumbelrace.paper.synthetic_figures import ON_THE_LINE, delta_axis
from gumbelrace.paper.synthetic_problem import METHODS, PaperTable
from gumbelrace.population.base import Floats
from gumbelrace.report.figures import Size, inline_svg, log_axis, look_of, method_keys, panel_axes
from gumbelrace.report.numbers import count, interval, percent, power_of_ten, probability
from gumbelrace.report.page import LIGHT, Column, Key, Panel, Panels, Table

SIZE = 5000
DELTAS = (0.01, 0.03, 0.1)
COMPARED = ("Racing-Normal", "Racing-EBS", "Betting")
# The first arm is better by this much: far less than any race can see, far more than rounding.
HAIR = 1e-6
PANEL = Size(400, 290)
APART = 1.07
CAPTION = (
    "Estimated error with its 95% interval against δ. A method keeps its promise on or below the dotted"
    " line. Where no draw was wrong, a triangle stands at the upper end of the interval."
)
COLUMNS = [
    Column("case", is_number=False),
    Column("method", is_number=False),
    Column("wrong draws"),
    Column("error"),
    Column("95% interval"),
    Column("share read"),
]


def skewed_difference(rng: np.random.Generator) -> Floats:
    """Give differences that are mostly small and below their mean, and rarely large."""
    return rng.lognormal(0.0, 2.0, SIZE)


def one_outlier(rng: np.random.Generator) -> Floats:
    """Give normal differences, and one as large as all others together."""
    difference = rng.normal(size=SIZE)
    difference[rng.integers(SIZE)] += SIZE
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
        rewards = np.zeros((SIZE, 2))
        rewards[:, 0] = make(np.random.default_rng(seed))
        rewards[:, 0] -= rewards[:, 0].mean() - HAIR / SIZE
        population = PaperTable(rewards)
        for method in COMPARED:
            for delta in DELTAS:
                rng = np.random.default_rng(seed)
                found = METHODS[method](delta).best_each(population, np.zeros((draws, 2)), rng)
                errors, read = int(np.sum(found.arms != 0)), int(found.evaluations.sum())
                yield Broken(case, method, delta, draws, errors, read / (draws * population.rewards))


def broken_figure(broken: Sequence[Broken]) -> Panels:
    """Give the figure of the breaking cases for a page, a panel for each."""
    cases = list(dict.fromkeys(one.case for one in broken))
    methods = list(dict.fromkeys(one.method for one in broken))
    panels = [case_panel(case, [one for one in broken if one.case == case]) for case in cases]
    legend = [*method_keys(methods), ON_THE_LINE, Key("no error: upper end of the interval", marker="v")]
    return Panels(panels, 2, CAPTION, legend)


def case_panel(case: str, broken: Sequence[Broken]) -> Panel:
    """Draw one case."""
    methods = list(dict.fromkeys(one.method for one in broken))

    def draw(figure: Any) -> None:
        axes = panel_axes(figure, "δ", "error")
        delta_axis(axes, [one.delta for one in broken])
        log_axis(axes.yaxis, power_of_ten)
        axes.set_ylim(1.0 / (3.0 * max(one.draws for one in broken)), 2.0)
        axes.axline((1e-3, 1e-3), (1e-1, 1e-1), color=LIGHT["quiet"], dashes=(2, 2), linewidth=1)
        for number, method in enumerate(methods):
            shift = APART ** (number - (len(methods) - 1) / 2)
            draw_method(axes, [one for one in broken if one.method == method], shift)

    label = f"Error against δ, both logarithmic, for the case {case}. {largest(broken)}"
    return Panel(case.capitalize(), inline_svg(draw, label, PANEL))


def draw_method(axes: Any, track: Sequence[Broken], shift: float) -> None:
    """Draw one method's errors, or bounds on them."""
    look = look_of(track[0].method)
    wrong = [one for one in track if one.errors]
    if wrong:
        at, errors = [shift * one.delta for one in wrong], [one.error for one in wrong]
        ends = [(one.error - one.interval[0], one.interval[1] - one.error) for one in wrong]
        axes.errorbar(
            at, errors, list(zip(*ends, strict=True)), fmt="none", ecolor=look.ink, elinewidth=1.2
        )
        axes.plot(at, errors, color=look.ink, linestyle=look.style, marker="o", markersize=4.5)
    none = [one for one in track if not one.errors]
    ends_of_none = [one.interval[1] for one in none]
    axes.plot([shift * one.delta for one in none], ends_of_none, "v", mfc="none", mec=look.ink, ms=6)


def largest(broken: Sequence[Broken]) -> str:
    """Tell each method's largest error."""
    worst: dict[str, Broken] = {}
    for one in sorted(broken, key=lambda one: one.error):
        worst[one.method] = one
    told = [f"{name} {probability(one.error)} at δ = {one.delta:g}" for name, one in worst.items()]
    return f"Largest error: {', '.join(told)}."


def broken_table(broken: Sequence[Broken], delta: float) -> Table:
    """Give what was found at one δ."""
    rows = [
        [
            one.case,
            one.method,
            f"{count(one.errors)} of {count(one.draws)}",
            probability(one.error),
            interval(one.interval),
            percent(one.read),
        ]
        for one in broken
        if one.delta == delta
    ]
    return Table(COLUMNS, rows, f"The same at δ = {delta:g}")
