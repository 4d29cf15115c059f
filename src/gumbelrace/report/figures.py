"""Figures by matplotlib as SVG inside a page: colours from the page, text as text, nothing global.

A figure is drawn in stand-in colours (`gumbelrace.report.colours`), which become CSS variables, so that
one drawing serves both colour schemes. Equal figures give equal text.
"""

import io
import re
import threading
from collections.abc import Callable
from hashlib import sha256
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

from gumbelrace.errors import InvalidArgument, optional
from gumbelrace.report.colours import LIGHT, NAME_OF, STAND_IN

Draw = Callable[[Any], None]  # takes a matplotlib Figure


class Size(NamedTuple):
    """Width and height in pixels, at the scale at which text has its nominal size."""

    width: float
    height: float


STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "gumbelrace",
    "font.size": 11.5,
    "axes.labelsize": 11.5,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "text.color": STAND_IN["ink"],
    "axes.labelcolor": STAND_IN["ink"],
    "axes.edgecolor": STAND_IN["quiet"],
    "xtick.color": STAND_IN["quiet"],
    "ytick.color": STAND_IN["quiet"],
    "xtick.labelcolor": STAND_IN["ink"],
    "ytick.labelcolor": STAND_IN["ink"],
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": STAND_IN["grid"],
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
# Names of groups, to which nothing refers; a style sheet, which would reach the whole page; a namespace;
# and the family of a font, which is the page's (releases of matplotlib differ in how they write it).
CLEANED = (
    (re.compile(r'<g id="[^"]*"'), "<g"),
    (re.compile(r"<style.*?</style>", re.DOTALL), ""),
    (re.compile("xlink:href"), "href"),
    (re.compile(r"font: (?=[\d.]+px)"), "font-size: "),
    (re.compile(r"font: (\d+) (?=[\d.]+px)"), r"font-weight: \1; font-size: "),
    (re.compile(r"(?<=px) '[^;\"]*"), ""),
    (re.compile(r"font-family:[^;\"]*;?"), ""),
)

# Matplotlib reads its settings from global memory, at the latest when it writes.
_settings = threading.Lock()


def inline_svg(draw: Draw, label: str, size: Size) -> str:
    """Draw a figure for a page.

    Parameters
    ----------
    draw : callable
        ``draw(figure)`` fills an empty matplotlib figure, in colours of `STAND_IN`.
    label : str
        What the figure shows, for those who do not see it.
    size : Size
        Its size; the page may scale it.

    Examples
    --------
    >>> def draw(figure):
    ...     figure.add_subplot().plot([1, 2, 4], color=STAND_IN["accent"])
    >>> text = inline_svg(draw, "three points", Size(200, 150))
    >>> "var(--accent)" in text, 'aria-label="three points"' in text
    (True, True)
    """
    content = _content(draw, size, STYLE, lambda name: f"var(--{name})")
    # Names are those of the page: no two figures may have the same.
    prefix = "f" + sha256((label + content).encode()).hexdigest()[:8]
    root = ROOT.format(*size, f'role="img" aria-label={quoteattr(label)}')
    return root + NAME.sub(prefix, content)


def standalone_svg(draw: Draw, size: Size) -> str:
    """Draw a figure for a file of its own: light colours on an opaque ground, text as outlines."""
    style = {**STYLE, "svg.fonttype": "path", "figure.facecolor": STAND_IN["paper"]}
    root = ROOT.format(*size, 'width="{:g}" height="{:g}"'.format(*size))
    return root + _content(draw, size, style, LIGHT.__getitem__)


def _content(draw: Draw, size: Size, style: dict[str, Any], colour_of: Callable[[str], str]) -> str:
    """Give what a drawing holds, and the end of the element, in colours that its names stand for."""

    def colour(found: re.Match[str]) -> str:
        if found[0] not in NAME_OF:
            raise InvalidArgument(f"a figure is drawn in {found[0]}; take a colour of STAND_IN")
        return colour_of(NAME_OF[found[0]])

    text = _drawn(draw, size, style)
    text = text[text.index(">", text.index("<svg")) + 1 :]
    for pattern, replacement in CLEANED:
        text = pattern.sub(replacement, text)
    return COLOUR.sub(colour, text)


def _drawn(draw: Draw, size: Size, style: dict[str, Any]) -> str:
    matplotlib, figures = optional("matplotlib.style", "cli"), optional("matplotlib.figure", "cli")
    with _settings, matplotlib.context(["default", style]):
        # 72 of matplotlib's units make an inch.
        figure = figures.Figure(figsize=(size.width / 72, size.height / 72))
        draw(figure)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata=NO_METADATA)
    return buffer.getvalue()
