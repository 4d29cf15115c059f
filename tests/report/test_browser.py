"""Pages in a browser: both widths, both colour schemes. Needs playwright and chromium."""

import shutil
from contextlib import contextmanager

import pytest
from tests.report.persons import register
from tests.report.sight import contrast
from tests.report.studies import chosen, lane, race, rows, study

from gumbelrace.paper.synthetic import synthetic_page
from gumbelrace.report.choosing import choice_page
from gumbelrace.report.demo import demo_page
from gumbelrace.report.page import DARK, LIGHT, Page, write_page
from gumbelrace.report.persons import persons_section

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDE, NARROW = 1280, 390
READABLE = 4.5  # WCAG 2, level AA, for text
TEXTS = ["body", "h1", "h2", "p", "dt", "dd", "a", "th", "td", "figcaption", ".title", ".legend li", "code"]


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    write_page(folder / "study.html", synthetic_page(study()))
    write_page(folder / "demo.html", demo_page(rows(), race(), {"States, D": "3"}))
    lanes = [lane("Think step by step, " * 9, "best"), *(lane(f"p{n}", "out", 40) for n in range(9))]
    failed = [("p" * 200, n, "x" * 900) for n in range(3)]
    write_page(folder / "choice.html", choice_page(chosen(*lanes, failures=failed)))
    who = Page("Who is who", "465 mentions are of 30 persons.", sections=[persons_section(register(), 40)])
    write_page(folder / "who.html", who)
    return folder


@contextmanager
def opened(browser, path, width, scheme="light", scripts=True):
    """Open a page; give it with what it asked the network for and complained about."""
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, java_script_enabled=scripts
    )
    page, requests, complaints = context.new_page(), [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(path.as_uri())
    yield page, requests, complaints
    context.close()


everywhere = pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        (n, w, s)
        for n in ("study", "demo", "choice", "who")
        for w in (WIDE, NARROW)
        for s in ("light", "dark")
    ],
)


@everywhere
def test_a_page_is_quiet_and_fits(browser, files, name, width, scheme):
    path = files / f"{name}.html"
    with opened(browser, path, width, scheme) as (page, requests, complaints):
        assert complaints == []
        # An empty icon, so that the browser does not ask for one.
        assert [url for url in requests if url != "data:,"] == [path.as_uri()]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("document.body.scrollWidth") <= width


@everywhere
def test_text_can_be_read(browser, files, name, width, scheme):
    colours = LIGHT if scheme == "light" else DARK
    with opened(browser, files / f"{name}.html", width, scheme) as (page, _, _):
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert hexadecimal(ground) == colours["paper"]
        for selector in [*TEXTS, ".panel svg text", ".verdict"]:
            for ink in page.evaluate(COLOURS_OF, selector):
                assert contrast(hexadecimal(ink), colours["paper"]) >= READABLE, (selector, ink)


COLOURS_OF = """selector => [...new Set([...document.querySelectorAll(selector)].map(element => {
    const style = getComputedStyle(element);
    return element.closest("svg") ? style.fill : style.color;
}))]"""


def test_panels_stand_as_in_the_paper_and_stack_on_a_phone(browser, files):
    columns = {}
    for width in (WIDE, NARROW):
        with opened(browser, files / "study.html", width) as (page, _, _):
            columns[width] = page.evaluate(COLUMNS_OF_PANELS)
    assert columns[WIDE] == [1, 4, 3, 3, 3, 2, 2]
    assert columns[NARROW] == [1] * 7


COLUMNS_OF_PANELS = """[...document.querySelectorAll(".grid")].map(grid =>
    new Set([...grid.children].map(panel => Math.round(panel.getBoundingClientRect().left))).size)"""


def test_text_in_panels_is_large_enough(browser, files):
    for width in (WIDE, NARROW):
        with opened(browser, files / "study.html", width) as (page, _, _):
            assert page.evaluate(SMALLEST_TEXT) >= 9.0


SMALLEST_TEXT = """Math.min(...[...document.querySelectorAll(".panel svg text")].map(text => {
    const svg = text.closest("svg");
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    return parseFloat(getComputedStyle(text).fontSize) * scale;
}))"""


def test_text_in_panels_has_the_font_of_the_page(browser, files):
    with opened(browser, files / "study.html", WIDE) as (page, _, _):
        (font,) = page.evaluate(FONTS_OF, ".panel svg text")
        assert [font] == page.evaluate(FONTS_OF, ".panel .title")
        assert [font] != page.evaluate(FONTS_OF, "body")


FONTS_OF = """selector => [...new Set([...document.querySelectorAll(selector)].map(
    element => getComputedStyle(element).fontFamily))]"""


def test_tables_scroll_in_their_own_box_on_a_phone(browser, files):
    with opened(browser, files / "study.html", NARROW) as (page, _, _):
        boxes = page.evaluate(
            "[...document.querySelectorAll('.scrolls')].map(box => [box.scrollWidth, box.clientWidth])"
        )
    assert boxes
    assert all(inner > outer and outer <= NARROW for inner, outer in boxes)


@pytest.mark.parametrize("name", ["study", "demo", "choice"])
def test_the_first_screen_has_the_answer_and_the_picture(browser, files, name):
    """The answer is whole, and the picture begins, on a laptop; a phone has the answer's first lines."""
    with opened(browser, files / f"{name}.html", WIDE) as (page, _, _):
        answer, picture = (page.evaluate(BOX_OF, what) for what in (".answer", ".pictured .panel svg"))
        title = page.evaluate(BOX_OF, "h1")
        assert title["bottom"] <= answer["top"] < answer["bottom"] < picture["top"] < 500
        facts = page.evaluate(BOX_OF, ".aside")
        assert facts["right"] > 0.9 * WIDE  # the width is used
    with opened(browser, files / f"{name}.html", NARROW) as (page, _, _):
        assert page.evaluate(BOX_OF, ".answer")["top"] < 250


BOX_OF = "selector => document.querySelector(selector).getBoundingClientRect().toJSON()"


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_person_is_found_and_opened_by_keyboard(browser, files, width):
    with opened(browser, files / "who.html", width) as (page, _, complaints):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") == "wanted"
        page.keyboard.type("ZOE <script>")
        assert page.text_content("#found") == "30 found"
        page.fill("#wanted", "#28")
        assert page.text_content("#found") == "1 found"
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_selector("#matches details[open] td")
        assert page.text_content("#matches td") == "0.25"
        assert page.evaluate("document.querySelectorAll('#matches tbody tr').length") == 25
        assert "rows of clusters.csv with cluster 28" in page.text_content("#matches details")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        # Nothing that others wrote has run or become an element.
        assert page.title() == "Who is who"
        assert page.evaluate("document.querySelectorAll('img').length") == 0
        assert complaints == []
        page.fill("#wanted", "nobody of this name")
        assert page.text_content("#found") == "0 found"


def test_persons_can_be_read_without_scripts(browser, files):
    with opened(browser, files / "who.html", WIDE, scripts=False) as (page, _, _):
        assert page.is_hidden("#wanted")
        assert "needs JavaScript" in page.inner_text(".finder")
        page.click("summary >> nth=0")
        assert page.is_visible("details[open] table")


def test_a_script_from_elsewhere_does_not_run(browser, tmp_path):
    """Negative control: were markup to come through, the policy would stop it, and the check would tell."""
    text = (tmp_path / "bad.html", tmp_path / "worse.html")
    write_page(text[0], Page("Before", "x", sections=[persons_section(register(3), 40)]))
    broken = (
        text[0].read_text(encoding="utf-8").replace("</main>", "<script>document.title='after'</script>")
    )
    text[0].write_text(broken, encoding="utf-8")
    text[1].write_text(broken.replace("Content-Security-Policy", "x"), encoding="utf-8")
    for path, title in zip(text, ("Before", "after"), strict=True):
        with opened(browser, path, WIDE) as (page, _, complaints):
            assert page.title() == title
            assert bool(complaints) == (title == "Before")


def test_a_page_that_is_too_wide_would_be_noticed(browser, tmp_path):
    """Negative control: the same checks on a page with a wide box, a picture of its own and an error."""
    path = tmp_path / "bad.html"
    path.write_text(
        "<meta name=viewport content='width=device-width'><div style='width: 900px'>wide</div>"
        "<img src='missing.png'><script>throw new Error('oh')</script>"
    )
    with opened(browser, path, NARROW) as (page, requests, complaints):
        assert page.evaluate("document.documentElement.scrollWidth") > NARROW
        assert (tmp_path / "missing.png").as_uri() in requests
        assert any("oh" in complaint for complaint in complaints)


def hexadecimal(colour):
    """Give a colour that the browser has computed as #rrggbb."""
    parts = colour.removeprefix("rgb(").removesuffix(")").split(",")
    return "#" + "".join(f"{int(part):02x}" for part in parts)
