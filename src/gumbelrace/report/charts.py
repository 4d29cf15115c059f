"""What the figures share: how methods and shapes look, axes that line up, ticks in plain numbers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gumbelrace.errors import optional
from gumbelrace.report.colours import STAND_IN
from gumbelrace.report.page import Key
from gumbelrace.report.svg import Size

PANEL = Size(300, 232)
# Pixels around the axes of a panel, the same in all: those of neighbours line up.
LEFT, RIGHT, TOP, BOTTOM = 60, 10, 8, 40


@dataclass(frozen=True)
class Look:
    """How a method is drawn."""

    label: str
    colour: str
    dashes: tuple[float, ...]

    @property
    def style(self) -> Any:
        """The line style for matplotlib."""
        return (0, self.dashes) if self.dashes else "solid"

    @property
    def ink(self) -> str:
        """The colour to draw in."""
        return STAND_IN[self.colour]


LOOKS = {
    "lil'UCB": Look("adapted lil'UCB", "series-1", (1.2, 1.8)),
    "Racing-EBS": Look("Racing-EBS", "series-2", (5.0, 2.0)),
    "Racing-Normal": Look("Racing-Normal", "series-3", ()),
    "Betting": Look("Betting (ours)", "series-4", (7.0, 1.8, 1.2, 1.8)),
}
MARKERS = {"normal": "x", "uniform": "o", "lognormal": "s"}


def look_of(method: str) -> Look:
    """Give the look of a method; one with another variance looks the same."""
    return LOOKS[method.partition(",")[0]]


def method_keys(methods: Sequence[str]) -> list[Key]:
    """Give the entries of a legend for methods."""
    looks = [look_of(method) for method in methods]
    return [Key(look.label, look.colour, look.dashes) for look in looks]


def shape_keys() -> list[Key]:
    """Give the entries of a legend for the shapes of rewards."""
    return [Key(shape, marker=marker) for shape, marker in MARKERS.items()]


def panel_axes(figure: Any, xlabel: str, ylabel: str) -> Any:
    """Give axes with the margins of all panels."""
    width, height = 72 * figure.get_figwidth(), 72 * figure.get_figheight()
    across, up = width - LEFT - RIGHT, height - TOP - BOTTOM
    axes = figure.add_axes((LEFT / width, BOTTOM / height, across / width, up / height))
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    # Labels have one place, whatever the numbers beside them are.
    axes.yaxis.set_label_coords(-(LEFT - 14) / across, 0.5)
    axes.xaxis.set_label_coords(0.5, -(BOTTOM - 17) / up)
    return axes


def log_axis(axis: Any, label: Callable[[float], str]) -> None:
    """Make an axis logarithmic, its powers of ten labelled by `label`."""
    ticker = optional("matplotlib.ticker", "cli")
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_locator(ticker.LogLocator(numticks=12))
    axis.set_minor_locator(ticker.NullLocator())
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: label(value)))


def say(axes: Any, text: str) -> None:
    """Write into the middle of empty axes."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=STAND_IN["quiet"])
