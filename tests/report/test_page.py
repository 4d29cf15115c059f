"""Pages as HTML: nothing unescaped, everything named, one file that needs no other."""

import re
import sys
from html.parser import HTMLParser

import pytest
from tests.report.studies import race, rows, study

from gumbelrace.errors import InvalidArgument, MissingPackage
from gumbelrace.paper.synthetic import synthetic_page
from gumbelrace.report.demo import demo_page
from gumbelrace.report.figures import Size, inline_svg
from gumbelrace.report.page import (
    Code,
    Column,
    Files,
    Key,
    Page,
    Panel,
    Panels,
    Section,
    Table,
    Text,
    Verdict,
    render,
    write_page,
)

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Outline(HTMLParser):
    """Check that elements nest, and keep them with their attributes and text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.found, self.text = [], [], {}
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.text.setdefault(self.open[-1], []).append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.found if name == tag]


def page_with(*blocks):
    return render(Page("A page", "About it.", sections=[Section("One", blocks)]))


PAGES = {"study": lambda: synthetic_page(study()), "demo": lambda: demo_page(rows(), race())}


@pytest.fixture(scope="module", params=PAGES)
def rendered(request):
    return render(PAGES[request.param]())


def test_elements_nest_and_names_are_unique(rendered):
    outline = Outline(rendered)
    names = [attributes["id"] for _, attributes in outline.found if "id" in attributes]
    assert len(names) == len(set(names))


def test_the_page_says_its_language_and_fits_a_phone(rendered):
    outline = Outline(rendered)
    assert outline.all("html") == [{"lang": "en"}]
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in outline.all("meta")
    assert {"name": "color-scheme", "content": "light dark"} in outline.all("meta")
    assert "prefers-color-scheme: dark" in rendered


def test_nothing_comes_from_elsewhere(rendered):
    outline = Outline(rendered)
    assert not outline.all("script")
    assert not outline.all("img")
    links = [attributes["href"] for attributes in outline.all("link")]
    assert links == ["data:,"]
    assert set(re.findall(r"https?://[^\s\"'<)]*", rendered)) <= {"http://www.w3.org/2000/svg"}
    assert "@import" not in rendered
    assert not re.search(r"url\((?!#)", rendered)


def test_contents_lead_to_the_sections(rendered):
    outline = Outline(rendered)
    targets = [attributes["href"] for attributes in outline.all("a") if attributes["href"].startswith("#")]
    headings = ["#" + attributes["id"] for attributes in outline.all("h2")]
    assert targets == headings
    assert len(headings) > 2


def test_drawings_have_descriptions_and_swatches_are_silent(rendered):
    for attributes in Outline(rendered).all("svg"):
        silent = attributes.get("aria-hidden") == "true"
        assert silent or (attributes["role"] == "img" and len(attributes["aria-label"]) > 20)


def test_heads_of_tables_say_what_they_head(rendered):
    scopes = [attributes.get("scope") for attributes in Outline(rendered).all("th")]
    assert scopes
    assert set(scopes) == {"col", "row"}


def test_words_are_escaped():
    nasty = "<b>&\"'"
    text = render(
        Page(
            nasty,
            nasty,
            {nasty: nasty},
            [
                Section(nasty, [Text(nasty), Code(nasty), Files({"a b&c.csv": nasty})]),
                Section("t", [Table([Column(nasty)], [[nasty], [Verdict(nasty, "bad")]], nasty)]),
                Section("p", [Panels([Panel(nasty, "<svg></svg>")], caption=nasty, legend=[Key(nasty)])]),
            ],
        )
    )
    assert nasty not in text
    assert "<b>" not in text
    assert 'href="./a%20b%26c.csv"' in text


def test_backticks_are_code():
    text = page_with(Text("Call `f(x) < 1` and `g`."))
    assert "<p>Call <code>f(x) &lt; 1</code> and <code>g</code>.</p>" in text


def test_numbers_are_set_apart_from_words():
    text = page_with(Table([Column("who", is_number=False), Column("count")], [["a", "1"]]))
    assert re.search(r'<th scope="row"[^>]*data-label="who">a</th>', text)
    assert re.search(r'<td[^>]*class="number"[^>]*data-label="count">1</td>', text)


@pytest.mark.parametrize(("tone", "sign"), [("good", "✓"), ("bad", "✗"), ("open", "?")])
def test_verdicts_have_a_sign_as_well_as_a_colour(tone, sign):
    text = page_with(Table([Column("verdict")], [[Verdict("so", tone)]]))
    assert f'<span class="verdict {tone}"><span aria-hidden="true">{sign}</span> so</span>' in text


def test_two_sections_of_one_title_are_refused():
    with pytest.raises(InvalidArgument, match="same title"):
        render(Page("A page", "", sections=[Section("One", []), Section("One", [])]))


def test_a_page_of_one_section_has_no_contents():
    assert "<nav" not in page_with(Text("x"))


def test_writing_replaces_the_whole_file(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old " * 10_000)
    write_page(path, Page("Añb", "new"))
    assert path.read_text(encoding="utf-8") == render(Page("Añb", "new"))
    assert list(tmp_path.iterdir()) == [path]


def test_a_page_that_cannot_be_made_leaves_the_old_one(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old")
    twice = [Section("One", []), Section("One", [])]
    with pytest.raises(InvalidArgument):
        write_page(path, Page("A page", "", sections=twice))
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("package", "use"),
    [
        ("jinja2", lambda: render(Page("A page", ""))),
        ("matplotlib.style", lambda: inline_svg(lambda figure: None, "nothing", Size(9, 9))),
    ],
)
def test_a_missing_package_is_named_with_its_extra(monkeypatch, package, use):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackage, match=r'pip install "gumbelrace\[cli\]"'):
        use()
