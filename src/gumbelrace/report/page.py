"""A page: sections of text, tables and figures, written as one HTML file that needs nothing else."""

import base64
import json
import math
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from hashlib import sha256
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


@dataclass(frozen=True)
class Entry:
    """Something to open: its head is always seen, `lines` (label -> words) and a table once it is open."""

    head: str
    lines: Mapping[str, str] = field(default_factory=dict)
    table: Table | None = None
    more: str = ""
    mark: Verdict | None = None


@dataclass(frozen=True)
class Entries:
    """A list of things to open."""

    kind: ClassVar[str] = "entries"
    title: str
    entries: Sequence[Entry]


@dataclass(frozen=True)
class Finder:
    """A box to search in; without JavaScript it says where else to look.

    `data` becomes JSON for the script `find.js`, which says what must be there.
    """

    kind: ClassVar[str] = "finder"
    label: str
    data: Any
    otherwise: str

    @property
    def json(self) -> str:
        """The data as text that ends no element and no line of a script."""
        text = json.dumps(self.data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.translate(HARMLESS)


# Characters that HTML or an old JavaScript would not take for a part of a text, as JSON writes them.
HARMLESS = {ord(one): f"\\u{ord(one):04x}" for one in "<>&\u2028\u2029\x7f"}
Block = Text | Code | Table | Panels | Files | Entries | Finder


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
    """A question or a title, its answer, one picture, and then the details.

    Attributes
    ----------
    title : str
        What the page is about.
    answer : str
        The first line under the title: what was found, with the number and how sure it is.
    facts : mapping of str
        Labelled facts.
    sections : sequence of Section
        The details.
    about : str
        What was done, below the picture.
    picture : Panels, optional
        The one picture that shows the answer.
    """

    title: str
    answer: str
    facts: Mapping[str, str] = field(default_factory=dict)
    sections: Sequence[Section] = ()
    about: str = ""
    picture: Panels | None = None


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
    environment = _environment()
    script = _script(environment) if any(map(_is_finder, _blocks(page))) else ""
    result: str = environment.get_template("page.html").render(
        page=page, schemes={"light": LIGHT, "dark": DARK}, script=script, policy=_policy(script)
    )
    return result


def _blocks(page: Page) -> Iterator[Block]:
    for section in page.sections:
        yield from section.blocks


def _is_finder(block: Block) -> bool:
    return isinstance(block, Finder)


def _script(environment: Any) -> str:
    source: str = environment.loader.get_source(environment, "find.js")[0]
    return source


def _policy(script: str) -> str:
    """Allow a page nothing but its own styles and, by its digest, its own script."""
    digest = base64.b64encode(sha256(script.encode()).digest()).decode()
    scripts = f"'sha256-{digest}'" if script else "'none'"
    return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {scripts}"


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


def short(text: str, longest: int) -> str:
    r"""Give what others wrote as one line that can be shown: not too long, and never set as code.

    Examples
    --------
    >>> short("A\x1b[31m  `long`\nname", 12)
    "A[31m 'long…"
    """
    line = " ".join(text.replace("`", "'").split())
    line = line if line.isprintable() else "".join(one for one in line if one.isprintable())
    return line if len(line) <= longest else line[: longest - 1] + "…"


SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def percent(share: float) -> str:
    return f"{probability(100.0 * share)}%"


def probability(value: float) -> str:
    """Give a number with two digits that count."""
    rounded = float(f"{value:.2g}")
    return f"{rounded:.10f}".rstrip("0").rstrip(".") if abs(rounded) < 1e6 else f"{rounded:,.0f}"


def chance(value: float) -> str:
    """Give a probability in words that do not say 1 or 0 where it is only near."""
    if value >= 0.9995:
        return "above 0.999"
    return "below 0.001" if value < 0.0005 else f"{value:.3f}".rstrip("0").rstrip(".")


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
