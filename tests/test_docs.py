"""The README is short, and what pages refer to is there."""

import importlib.util
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import gumbelrace
from gumbelrace.report.figures import standalone_svg
from gumbelrace.report.page import DARK, LIGHT

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```.*?^```", re.M | re.S)
CITED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def slug(title: str) -> str:
    """Give the anchor of a heading, as GitHub and MyST make it."""
    return re.sub(r"[^\w\- ]", "", title.replace("`", "").lower()).strip().replace(" ", "-")


def anchors(text: str) -> set[str]:
    return {slug(title) for title in re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.M)}


def broken(page: Path, text: str) -> list[str]:
    """Name the links of a page that lead nowhere; those to other sites are not followed."""
    found = []
    for link in LINK.findall(FENCE.sub("", text)):
        name, _, anchor = link.partition("#")
        target = (page.parent / name) if name else page
        if re.match(r"[a-z]+:", link):
            continue
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    assert broken(page, page.read_text(encoding="utf-8")) == []


def test_links_that_lead_nowhere_are_named():
    """Negative control."""
    page = ROOT / "docs" / "index.md"
    text = "[a](nothing.md) [b](start.md#nowhere) [c](#far) [d](https://x.org) [e](start.md#start-here)"
    assert broken(page, text) == ["nothing.md", "start.md#nowhere", "#far"]


def test_tests_that_pages_cite_are_there():
    cited = {found for page in PAGES for found in CITED.findall(page.read_text(encoding="utf-8"))}
    assert len(cited) > 30
    missing = [f"{file}::{name}" for file, name in cited if not is_there(ROOT / file, name)]
    assert missing == []


def is_there(file: Path, name: str) -> bool:
    return file.exists() and f"def {name}(" in file.read_text(encoding="utf-8")


def test_a_test_that_is_gone_is_noticed():
    """Negative control."""
    assert not is_there(Path(__file__), "test_that_nobody_wrote")
    assert not is_there(ROOT / "tests/test_nothing.py", "test_every_page_is_in_the_table_of_contents")


def test_every_page_is_in_the_table_of_contents():
    contents = re.findall(r"```\{toctree\}\n(.*?)```", (ROOT / "docs/index.md").read_text("utf-8"), re.S)
    listed = {line for part in contents for line in part.split() if not line.startswith(":")}
    assert {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index"} <= listed


def test_the_readme_is_one_screen_or_two():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    assert len(re.findall(r"^```python$", text, re.M)) == 3
    assert len(re.findall(r"^\|", text, re.M)) <= 12  # a head, a rule, ten rows


def test_the_reference_has_every_public_name():
    packages = [
        gumbelrace,
        *(getattr(gumbelrace, name) for name in gumbelrace._MODULES if name != "errors"),
    ]
    shown = set(re.findall(r"\w+", (ROOT / "docs" / "api.md").read_text(encoding="utf-8")))
    assert [
        n for package in packages for names in package._NAMES.values() for n in names if n not in shown
    ] == []


@pytest.fixture(scope="module")
def pictures():
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "docs" / "pictures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["gumbel", "wealth", "no_winner"])
def test_pictures_are_drawn_for_light_and_dark_screens(pictures, name):
    svg = pictures.both_schemes(standalone_svg(*pictures.PICTURES[name]))
    ElementTree.fromstring(svg)
    assert f"fill: {LIGHT['paper']}" in svg
    assert f"fill: {DARK['paper']} !important" in svg
    assert f"stroke: {DARK['quiet']} !important" in svg


def test_every_picture_is_shown(pictures):
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert {path.stem for path in (ROOT / "docs").glob("*.svg")} == set(pictures.PICTURES)
    assert all(f"({name}.svg)" in text for name in pictures.PICTURES)
