"""Figure 1e and appendix B: how wide the bounds are, and the constant B_Normal beside the paper's table.

Figure 1e compares G(T) at δ = 0.1 for rewards of unit variance. Here they are normal, N = 1e5 and D = 10,
and C is the largest range of an arm in that sample. `Betting` has no bound of this form: it multiplies a
wealth instead of comparing a gap with a width. Its counterpart is found by running it, as the gap that half
of its races have resolved after T rows; a race by G resolves about half of those with a true gap of G(T).
"""

from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import kernel
from gumbelrace.methods.base import Method
from gumbelrace.methods.betting import Betting
from gumbelrace.methods.bounds import Normal, Serfling
from gumbelrace.methods.gaussian_walk import b_normal
from gumbelrace.methods.lilucb import Lil, heuristic, radius
from gumbelrace.models.synthetic import normalised
from gumbelrace.paper.records import BoundPoint, Level
from gumbelrace.population.table import table
from gumbelrace.report.figures import Size, inline_svg, log_axis, panel_axes
from gumbelrace.report.numbers import percent, power_of_ten
from gumbelrace.report.page import LIGHT, Key, Panel, Panels

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

SIZE, ARMS, DELTA = 100_000, 10, 0.1
SEED = 20160620
GAPS = np.geomspace(2.0, 0.01, 40)  # in standard deviations
RACES = 201
PANEL = Size(400, 300)
DASHES = (4.0, 2.0)
CAPTION = (
    "B against δ, for first looks at six shares of the rows (the second panel has a linear δ axis). The"
    " printed numbers are those of the two-sided reading; Eq. 5 as written asks for the one-sided one, "
    "which the library uses. The readings agree where δ is small."
)


def unit_rewards(size: int = SIZE, arms: int = ARMS) -> Floats:
    """Give normal rewards, each arm's with mean 0 and variance 1."""
    rewards = np.random.default_rng(SEED).normal(size=(size, arms))
    return normalised(rewards, np.zeros(arms), 1.0)


def bound_curves(rewards: Floats, delta: float = DELTA) -> list[BoundPoint]:
    """Give the width of every method's bound on a mean, for T from 2 to N.

    Parameters
    ----------
    rewards : ndarray of shape (N, D)
        Rewards of unit variance; their number and range are what bounds depend on.
    delta : float
        Probability of an error.

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
    """Give the finite points of a curve."""
    for taken, width in zip(rows, widths, strict=True):
        if np.isfinite(width):
            yield BoundPoint(method, int(taken), float(width))


@kernel
def radii(lil: Lil, scale: float, rows: Indices) -> Floats:
    """Give the radius of lil'UCB after each number of rows."""
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
    bound = Normal(student=False)  # as printed
    rows = np.append(bound.first, rows[rows > bound.first])
    return rows, bound.coefficients(delta, rows, size).per_deviation


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


def level_figure(levels: Sequence[Level]) -> Panels:
    """Give the figure of B_Normal for a page."""
    tracks = by_fraction(levels)
    panels = [
        Panel("B", inline_svg(lambda figure: draw_levels(figure, tracks), describe_levels(levels), PANEL)),
        Panel(
            "Differences from the two-sided reading",
            inline_svg(
                lambda figure: draw_differences(figure, tracks), describe_differences(levels), PANEL
            ),
        ),
    ]
    steps = [
        Key(f"first look at {percent(fraction)} of the rows", step(i), ())
        for i, fraction in enumerate(tracks)
    ]
    readings = [
        Key("ours, two-sided", dashes=()),
        Key("ours, one-sided", dashes=DASHES),
        Key("printed", marker="."),
    ]
    return Panels(panels, 2, CAPTION, [*readings, *steps])


def by_fraction(levels: Sequence[Level]) -> dict[float, list[Level]]:
    """Give the levels of each first look, by δ."""
    fractions = sorted({level.first_fraction for level in levels})
    return {f: sorted(level for level in levels if level.first_fraction == f) for f in fractions}


def step(number: int) -> str:
    """Name the colour of the first look of that number."""
    return f"step-{number + 1}"


def draw_levels(figure: Any, tracks: dict[float, list[Level]]) -> None:
    """Draw B against δ."""
    axes = panel_axes(figure, "δ", "B")
    log_axis(axes.xaxis, power_of_ten)
    for number, track in enumerate(tracks.values()):
        at, colour = [level.delta for level in track], LIGHT[step(number)]
        axes.plot(at, [level.two_sided for level in track], color=colour, linewidth=1.2)
        axes.plot(at, [level.one_sided for level in track], color=colour, linewidth=1.2, dashes=DASHES)
        axes.plot(at, [level.printed for level in track], ".", color=colour, markersize=5)


def draw_differences(figure: Any, tracks: dict[float, list[Level]]) -> None:
    """Draw how far the printed and the one-sided B are from the two-sided one."""
    axes = panel_axes(figure, "δ", "B less the two-sided B")
    axes.axhline(0.0, color=LIGHT["quiet"], linewidth=1)
    for number, track in enumerate(tracks.values()):
        at, colour = [level.delta for level in track], LIGHT[step(number)]
        apart = [level.one_sided - level.two_sided for level in track]
        axes.plot(at, apart, color=colour, linewidth=1.2, dashes=DASHES)
        axes.plot(at, [level.printed - level.two_sided for level in track], ".", color=colour, markersize=5)


def describe_levels(levels: Sequence[Level]) -> str:
    """Describe the first panel."""
    low, high = min(levels, key=lambda one: one.two_sided), max(levels, key=lambda one: one.two_sided)
    return (
        f"B against δ, logarithmic in δ. It falls from {high.two_sided:.2f} at δ = {high.delta:g} to "
        f"{low.two_sided:.2f} at δ = {low.delta:g}; the printed dots lie on the two-sided lines."
    )


def describe_differences(levels: Sequence[Level]) -> str:
    """Describe the second panel."""
    printed = max(abs(one.printed - one.two_sided) for one in levels)
    one_sided = max(one.one_sided - one.two_sided for one in levels)
    return (
        "Differences from the two-sided B against δ. The printed values differ by at most "
        f"{printed:.3f}, the one-sided ones by at most {one_sided:.2f}."
    )
