"""Figures by matplotlib as SVG inside a page: colours from the page, text as text, nothing global.

A figure is drawn in the colours of a light screen; inside a page they become CSS variables, so that one
drawing serves both colour schemes. Equal figures give equal text.
"""

import io
import math
import re
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

from gumbelrace.errors import InvalidArgument, optional
from gumbelrace.report.page import LIGHT, Key, Panel

Draw = Callable[[Any], None]  # takes a matplotlib Figure


class Size(NamedTuple):
    """Width and height in pixels, at the scale at which text has its nominal size."""

    width: float
    height: float


PANEL = Size(300, 232)
# Pixels around the axes of a panel, the same in all: those of neighbours line up.
LEFT, RIGHT, TOP, BOTTOM = 60, 10, 8, 40
VARIABLES = {colour: f"var(--{name})" for name, colour in LIGHT.items()}
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "gumbelrace",
    "font.sans-serif": ["DejaVu Sans"],  # to measure by; the page has its own
    "font.size": 11.5,
    "axes.labelsize": 11.5,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "text.color": LIGHT["ink"],
    "axes.labelcolor": LIGHT["ink"],
    "axes.edgecolor": LIGHT["quiet"],
    "xtick.color": LIGHT["quiet"],
    "ytick.color": LIGHT["quiet"],
    "xtick.labelcolor": LIGHT["ink"],
    "ytick.labelcolor": LIGHT["ink"],
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LIGHT["grid"],
    "grid.linewidth": 0.8,
    "lines.linewidth": 1.5,
    "lines.markersize": 5,
    "xtick.minor.visible": False,
    "ytick.minor.visible": False,
}
NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
JOINS = "stroke-linejoin: round; stroke-linecap: butt"  # as the style sheet has it that is left out
ROOT = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {{:g}} {{:g}}" style="{JOINS}" {{}}>'
COLOUR = re.compile(r"#[0-9a-f]{6}\b")
NAME = re.compile(r'(?<=\bid=")|(?<=href="#)|(?<=url\(#)')
# Names of groups, to which nothing refers; a style sheet, which would reach the whole page; a namespace.
CLEANED = (
    (re.compile(r'<g id="[^"]*"'), "<g"),
    (re.compile(r"<style.*?</style>", re.DOTALL), ""),
    (re.compile("xlink:href"), "href"),
)

# Matplotlib reads its settings from global memory, at the latest when it writes.
_settings = threading.Lock()


def inline_svg(draw: Draw, label: str, size: Size) -> str:
    """Draw a figure for a page, which may scale it; `label` tells those who do not see it what it shows.

    ``draw(figure)`` fills an empty matplotlib figure, in colours of `LIGHT`.

    Examples
    --------
    >>> def draw(figure):
    ...     figure.add_subplot().plot([1, 2, 4], color=LIGHT["accent"])
    >>> text = inline_svg(draw, "three points", Size(200, 150))
    >>> "var(--accent)" in text, 'aria-label="three points"' in text
    (True, True)
    """
    content = COLOUR.sub(_variable, _content(draw, size, STYLE))
    # Names are those of the page: no two figures may have the same.
    prefix = "f" + sha256((label + content).encode()).hexdigest()[:8]
    root = ROOT.format(*size, f'role="img" aria-label={quoteattr(label)}')
    return root + NAME.sub(prefix, content)


def standalone_svg(draw: Draw, size: Size) -> str:
    """Draw a figure for a file of its own: light colours on an opaque ground, text as outlines."""
    style = {**STYLE, "svg.fonttype": "path", "figure.facecolor": LIGHT["paper"]}
    root = ROOT.format(*size, 'width="{:g}" height="{:g}"'.format(*size))
    return root + _content(draw, size, style)


def _variable(colour: re.Match[str]) -> str:
    if colour[0] not in VARIABLES:
        raise InvalidArgument(f"a figure is drawn in {colour[0]}; take a colour of LIGHT")
    return VARIABLES[colour[0]]


def _content(draw: Draw, size: Size, style: dict[str, Any]) -> str:
    """Give what a drawing holds, and the end of the element."""
    text = _drawn(draw, size, style)
    text = text[text.index(">", text.index("<svg")) + 1 :]
    for pattern, replacement in CLEANED:
        text = pattern.sub(replacement, text)
    return text


def _drawn(draw: Draw, size: Size, style: dict[str, Any]) -> str:
    matplotlib, figures = optional("matplotlib.style", "cli"), optional("matplotlib.figure", "cli")
    with _settings, matplotlib.context(["default", style]):
        # 72 of matplotlib's units make an inch.
        figure = figures.Figure(figsize=(size.width / 72, size.height / 72))
        draw(figure)
        buffer = io.StringIO()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph")  # which the reader's fonts may have
            figure.savefig(buffer, format="svg", metadata=NO_METADATA)
    return buffer.getvalue()


@dataclass(frozen=True)
class Look:
    """How a method or a sampler is drawn."""

    label: str
    colour: str
    dashes: tuple[float, ...]
    marker: str = ""

    @property
    def style(self) -> Any:
        return (0, self.dashes) if self.dashes else "solid"

    @property
    def ink(self) -> str:
        return LIGHT[self.colour]

    @property
    def key(self) -> Key:
        return Key(self.label, self.colour, self.dashes, self.marker)

    def line(self, axes: Any, x: Sequence[float], y: Sequence[float | None]) -> None:
        axes.plot(x, y, color=self.ink, linestyle=self.style, linewidth=1.0)


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
    return [look_of(method).key for method in methods]


def shape_keys() -> list[Key]:
    return [Key(shape, marker=marker) for shape, marker in MARKERS.items()]


def panel(title: str, draw: Draw, label: str) -> Panel:
    """Draw a panel of the usual size."""
    return Panel(title, inline_svg(draw, label, PANEL))


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
    """Make an axis logarithmic, its powers of ten labelled by `label`; if only one is seen, others too."""
    ticker = optional("matplotlib.ticker", "cli")
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_locator(ticker.LogLocator(numticks=12))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: label(value)))
    axis.set_minor_locator(ticker.LogLocator(subs=(2.0, 5.0), numticks=12))
    axis.set_minor_formatter(ticker.FuncFormatter(lambda value, _: label(value) if _is_short(axis) else ""))
    axis.set_tick_params(which="minor", length=0.0, pad=7.0)  # no ticks, and labels in line with the others


def _is_short(axis: Any) -> bool:
    """Say whether fewer than two powers of ten are in view."""
    low, high = map(math.log10, sorted(axis.get_view_interval()))
    return math.floor(high) - math.ceil(low) < 1


def say(axes: Any, text: str) -> None:
    """Write into the middle of empty axes."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=LIGHT["quiet"])
