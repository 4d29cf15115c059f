"""Figures by matplotlib as SVG inside a page: colours from the page, text as text, nothing global.

A figure is drawn in stand-in colours (`gumbelrace.report.colours`), which become CSS variables, so that
one drawing serves both colour schemes. Equal figures give equal text.
"""

import io
import re
import threading
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any, NamedTuple
from xml.etree import ElementTree

from gumbelrace.errors import InvalidArgument
from gumbelrace.report.colours import LIGHT, NAME_OF, STAND_IN
from gumbelrace.report.packages import needed

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
NAMESPACE = "http://www.w3.org/2000/svg"
COLOUR = re.compile(r"#[0-9a-f]{6}\b")
LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
REFERENCE = re.compile(r"#([\w-]+)")
# Releases differ in how they write a font; its family is the page's.
FONT = re.compile(r"font:\s*([\d.]+px)[^;]*")
FAMILY = re.compile(r"font-family:[^;]*;\s*")
SPACES = re.compile(r"\s+")

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
    root = _cleaned(_drawn(draw, size, STYLE))
    _recolour(root, lambda name: f"var(--{name})")
    _rename(root, "f" + sha256(label.encode() + ElementTree.tostring(root)).hexdigest()[:8])
    root.attrib.update({"role": "img", "aria-label": label})
    return ElementTree.tostring(root, encoding="unicode")


def standalone_svg(draw: Draw, size: Size) -> str:
    """Draw a figure for a file of its own: light colours on an opaque ground, text as outlines."""
    style = {**STYLE, "svg.fonttype": "path", "figure.facecolor": STAND_IN["paper"]}
    root = _cleaned(_drawn(draw, size, style))
    _recolour(root, LIGHT.__getitem__)
    _rename(root, "part")
    root.attrib.update({"width": f"{size.width:g}", "height": f"{size.height:g}"})
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _drawn(draw: Draw, size: Size, style: dict[str, Any]) -> str:
    matplotlib, figures = needed("matplotlib.style"), needed("matplotlib.figure")
    with _settings, matplotlib.context(["default", style]):
        # 72 of matplotlib's units make an inch.
        figure = figures.Figure(figsize=(size.width / 72, size.height / 72))
        draw(figure)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def _cleaned(text: str) -> ElementTree.Element:
    """Keep what draws: no metadata, no style sheet (it would reach the whole page), no long numbers."""
    root = ElementTree.fromstring(text)
    for element in list(root.iter()):
        for child in list(element):
            if child.tag in (f"{{{NAMESPACE}}}metadata", f"{{{NAMESPACE}}}style"):
                element.remove(child)
        element.tag = element.tag.rpartition("}")[2]
        element.tail, element.text = "", (element.text or "").strip()
        element.attrib = {name.rpartition("}")[2]: _short(value) for name, value in element.items()}
    root.attrib = {
        "xmlns": NAMESPACE,
        "viewBox": root.attrib["viewBox"],
        "style": "stroke-linejoin: round; stroke-linecap: butt",
    }
    return root


def _short(value: str) -> str:
    value = FAMILY.sub("", FONT.sub(r"font-size: \1", SPACES.sub(" ", value).strip()))
    return LONG_NUMBER.sub(lambda number: _rounded(float(number[0])), value)


def _rounded(number: float) -> str:
    # Small ones may be scales, whose digits all count.
    return f"{round(number, 2):g}" if abs(number) >= 1.0 else f"{number:.4g}"


def _recolour(root: ElementTree.Element, colour_of: Callable[[str], str]) -> None:
    """Put the page's colours for the stand-ins."""

    def colour(found: re.Match[str]) -> str:
        if found[0] not in NAME_OF:
            raise InvalidArgument(f"a figure is drawn in {found[0]}; take a colour of STAND_IN")
        return colour_of(NAME_OF[found[0]])

    for element in root.iter():
        if "style" in element.attrib:
            element.attrib["style"] = COLOUR.sub(colour, element.attrib["style"])


def _rename(root: ElementTree.Element, prefix: str) -> None:
    """Drop names that nothing refers to; number the others, so that they do not depend on chance."""
    referred = set(_references(root))
    names: dict[str, str] = {}
    for element in root.iter():
        name = element.attrib.pop("id", None)
        if name in referred:
            element.attrib["id"] = names.setdefault(name, f"{prefix}-{len(names)}")
    for element in root.iter():
        for attribute in ("href", "clip-path"):
            if attribute in element.attrib:
                old = element.attrib[attribute]
                element.attrib[attribute] = REFERENCE.sub(lambda found: "#" + names[found[1]], old)


def _references(root: ElementTree.Element) -> Iterator[str]:
    for element in root.iter():
        for attribute in ("href", "clip-path"):
            yield from REFERENCE.findall(element.attrib.get(attribute, ""))
