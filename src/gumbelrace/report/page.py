"""A page: sections of text, tables and figures, written as one HTML file that needs nothing else."""

import math
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from gumbelrace.core.atomic import write_atomically
from gumbelrace.errors import InvalidArgument, optional

# The colours of a page by name, on a light and on a dark screen. The four of the methods stay apart for
# readers who see no red, no green or no blue (their distance in OKLab is at least 0.09), and every method
# has a line style of its own as well. Steps are shades of one colour, for things that have an order.
COLOURS = {
    "paper": ("#fffefb", "#151719"),
    "panel": ("#f6f4ee", "#1e2124"),
    "ink": ("#1d1c1a", "#e9e6df"),
    "quiet": ("#5d5951", "#a8a49b"),
    "rule": ("#d9d5ca", "#3b3f43"),
    "grid": ("#e7e3d9", "#2c3033"),
    "accent": ("#1f5f8b", "#85bfe8"),
    "good": ("#17664a", "#6fd6ae"),
    "bad": ("#9c2418", "#f29a86"),
    "series-1": ("#b97b17", "#efc627"),
    "series-2": ("#3886d6", "#4d90d6"),
    "series-3": ("#8a1d10", "#d57d61"),
    "series-4": ("#197653", "#7bf0d3"),
    "step-1": ("#5192c8", "#2b6ea1"),
    "step-2": ("#3a7cb0", "#4587bb"),
    "step-3": ("#216698", "#5ea0d6"),
    "step-4": ("#005081", "#78baf2"),
    "step-5": ("#023c62", "#a1d3ff"),
    "step-6": ("#022944", "#d5ebfe"),
}
LIGHT, DARK = ({name: pair[side] for name, pair in COLOURS.items()} for side in (0, 1))
CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Text:
    """A paragraph; what stands between backticks is set as code."""

    kind: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True)
class Code:
    """Lines to be typed."""

    kind: ClassVar[str] = "code"
    code: str


@dataclass(frozen=True)
class Column:
    """Head of a column; numbers are set to the right, with digits of equal width."""

    title: str
    is_number: bool = True


@dataclass(frozen=True)
class Verdict:
    """A cell that says whether something is as hoped: "good", "bad" or "open"."""

    text: str
    tone: str


@dataclass(frozen=True)
class Table:
    """Rows of words and numbers. The first column names the row.

    On a narrow screen it scrolls in its own box, or if `stacks`, each row becomes a list.
    """

    kind: ClassVar[str] = "table"
    columns: Sequence[Column]
    rows: Sequence[Sequence[str | Verdict]]
    caption: str = ""
    stacks: bool = False


def table_of(rows: Sequence[Mapping[str, str]], words: Collection[str] = ()) -> Table:
    """Lay out rows of cells by the titles of their columns; the columns of `words` hold no numbers."""
    columns = [Column(title, is_number=title not in words) for title in rows[0]]
    return Table(columns, [[*row.values()] for row in rows])


@dataclass(frozen=True)
class Key:
    """An entry of a legend: a line, a marker, or both."""

    label: str
    colour: str = "ink"
    dashes: tuple[float, ...] | None = None  # of the line: () for a solid one, None for no line
    marker: str = ""  # a letter of matplotlib's: x, o, s, v or .


@dataclass(frozen=True)
class Panel:
    """A drawing with its title."""

    title: str
    svg: str


@dataclass(frozen=True)
class Panels:
    """A figure of panels in rows of `columns`, fewer on a narrow screen; `legend` is for all of them."""

    kind: ClassVar[str] = "panels"
    panels: Sequence[Panel]
    columns: int = 1
    caption: str = ""
    legend: Sequence[Key] = ()


@dataclass(frozen=True)
class Files:
    """Files that lie beside the page: name -> what is in it."""

    kind: ClassVar[str] = "files"
    files: Mapping[str, str]


Block = Text | Code | Table | Panels | Files


@dataclass(frozen=True)
class Section:
    """A part of a page, with an entry in its table of contents."""

    title: str
    blocks: Sequence[Block]

    @property
    def anchor(self) -> str:
        return re.sub(r"\W+", "-", self.title.lower()).strip("-")


@dataclass(frozen=True)
class Page:
    """A title, what it is about, labelled facts, and sections."""

    title: str
    lead: str
    facts: Mapping[str, str] = field(default_factory=dict)
    sections: Sequence[Section] = ()


def render(page: Page) -> str:
    """Give a page as HTML.

    Examples
    --------
    >>> text = render(Page("A < B", "Nothing to see.", sections=[Section("One", [Text("`x` is 1.")])]))
    >>> "<title>A &lt; B</title>" in text, "<code>x</code> is 1." in text
    (True, True)
    """
    anchors = [section.anchor for section in page.sections]
    if len(set(anchors)) < len(anchors):
        raise InvalidArgument(f"two sections have the same title: {anchors}; each needs one of its own")
    template = _environment().get_template("page.html")
    result: str = template.render(page=page, schemes={"light": LIGHT, "dark": DARK})
    return result


def made_by() -> dict[str, str]:
    """Give the fact which version of the library made a page, and on which day."""
    return {"gumbelrace": f"{version('gumbelrace')}, {date.today().isoformat()}"}


def write_page(path: str | os.PathLike[str], page: Page) -> None:
    """Write a page; whoever reads `path` meanwhile finds the old page or the new one."""
    content = render(page).encode()
    write_atomically(Path(path), lambda file: file.write(content))


def _environment() -> Any:
    jinja2 = optional("jinja2", "cli")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("gumbelrace.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["prose"] = _prose
    environment.filters["drawing"] = optional("markupsafe", "cli").Markup
    return environment


def _prose(text: str) -> Any:
    """Escape a text, and set what stands between backticks as code."""
    markup = optional("markupsafe", "cli").Markup
    return markup("").join(_spans(text, markup))


def _spans(text: str, markup: Any) -> Iterator[Any]:
    for number, span in enumerate(CODE.split(text)):
        yield markup("<code>{}</code>").format(span) if number % 2 else span


SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def percent(share: float) -> str:
    return f"{probability(100.0 * share)}%"


def probability(value: float) -> str:
    """Give a number with two digits that count."""
    rounded = float(f"{value:.2g}")
    return f"{rounded:.10f}".rstrip("0").rstrip(".") if abs(rounded) < 1e6 else f"{rounded:,.0f}"


def interval(ends: tuple[float, float]) -> str:
    return f"{probability(ends[0])} to {probability(ends[1])}"


def microseconds(seconds: float) -> str:
    value = 1e6 * seconds
    return f"{value:.2g}" if value < 10.0 else rate(value)


def times(ratio: float) -> str:
    return f"{probability(ratio)}×" if not 1.0 <= ratio < 10.0 else f"{ratio:.1f}×"


def power_of_ten(value: float) -> str:
    """Give a power of ten, or a multiple of one, such as 2·10⁵."""
    exponent = math.floor(math.log10(value) + 1e-9)
    factor = f"{value / 10.0**exponent:.3g}"
    power = f"10{str(exponent).translate(SUPERSCRIPTS)}" if exponent else "1"
    return power if factor == "1" else factor if power == "1" else f"{factor}·{power}"


def rate(value: float) -> str:
    """Give a number with three digits that count."""
    return f"{value:.3g}" if value < 100.0 else f"{float(f'{value:.3g}'):,.0f}"


def count(number: float) -> str:
    return f"{number:,.0f}"
