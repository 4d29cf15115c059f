"""The documentation in a browser: both widths, both colour schemes, nothing from the network.

Needs sphinx and its theme (the extra docs), playwright and chromium. SITE names a site that was built.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("furo", reason="the extra docs is not installed")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")

DOCS = Path(__file__).resolve().parents[1] / "docs"
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"]
QUIET = ["--disable-background-networking", "--disable-component-update"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if "SITE" in os.environ:
        return Path(os.environ["SITE"])
    built = tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", DOCS, built], check=True)
    return built


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS + QUIET)
        yield browser
        browser.close()


def complaints(browser, width, scheme, pages):
    """Open pages one after the other; say what is wrong with them."""
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page, found = context.new_page(), []
    page.on("console", lambda message: found.append(message.text))
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on(
        "request", lambda request: request.url.startswith(("file:", "data:")) or found.append(request.url)
    )
    page.on("requestfailed", lambda request: found.append(f"not found: {request.url}"))
    for path in pages:
        page.goto(path.as_uri())
        if page.evaluate("document.documentElement.scrollWidth") > width:
            found.append(f"{path.name} is wider than {width} pixels")
    context.close()
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_are_as_wide_as_the_screen_and_need_no_network(browser, site, width, scheme):
    pages = sorted(site.glob("*.html"))
    assert len(pages) > 30
    assert complaints(browser, width, scheme, pages) == []


def test_what_is_wrong_is_seen(browser, tmp_path):
    """Negative control."""
    page = tmp_path / "page.html"
    page.write_text(
        '<p style="width: 500px">wide</p><img src="nothing.png"><script>console.log("said")</script>'
    )
    assert any("is wider" in text for text in complaints(browser, 390, "light", [page]))
    assert any("not found" in text for text in complaints(browser, 1280, "light", [page]))
    assert "said" in complaints(browser, 1280, "light", [page])


def test_formulas_are_drawn_by_the_browser(browser, site):
    page = browser.new_page()
    page.goto((site / "betting.html").as_uri())
    assert page.locator(".formula math").count() > 5
    assert page.locator(".formula math munder").first.bounding_box()["height"] > 20  # limits below sums
    assert "\\sum" not in page.inner_text("article")
    page.close()
