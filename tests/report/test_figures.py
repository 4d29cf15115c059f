"""Figures inside a page: colours by name, names of their own, nothing from outside, always the same."""

import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from xml.etree import ElementTree

import matplotlib
import pytest

from gumbelrace.errors import InvalidArgument
from gumbelrace.report.figures import Size, inline_svg, log_axis, standalone_svg
from gumbelrace.report.page import DARK, LIGHT, power_of_ten

SIZE = Size(300, 200)


def draw(figure, end=4):
    axes = figure.add_subplot()
    axes.plot([1, 2, end], "x-", color=LIGHT["series-1"])
    axes.fill_between([0, 1, 2], [1, 1, 1], [2, 2, end], color=LIGHT["accent"], alpha=0.5)
    axes.set_xlabel("δ & <more>")


def other(figure):
    draw(figure, end=8)


def ids(text):
    return re.findall(r'\bid="([^"]+)"', text)


def test_colours_are_variables_of_the_page():
    text = inline_svg(draw, "a figure", SIZE)
    used = set(re.findall(r"var\(--([\w-]+)\)", text))
    assert {"series-1", "accent", "ink", "grid"} <= used <= set(LIGHT)
    assert not re.search(r"#[0-9a-f]{6}\b", text)


def test_a_colour_that_has_no_name_is_refused():
    def red(figure):
        figure.add_subplot().plot([1, 2], color="red")

    with pytest.raises(InvalidArgument, match="#ff0000"):
        inline_svg(red, "a figure", SIZE)


def test_both_schemes_have_all_colours():
    assert list(LIGHT) == list(DARK)
    assert len(set(LIGHT.values())) == len(LIGHT)


def test_it_is_an_image_with_a_description():
    root = ElementTree.fromstring(inline_svg(draw, 'a "figure" & <more>', SIZE))
    assert root.get("role") == "img"
    assert root.get("aria-label") == 'a "figure" & <more>'
    assert root.get("viewBox") == "0 0 300 200"
    assert "width" not in root.attrib


def test_text_is_text():
    text = inline_svg(draw, "a figure", SIZE)
    assert "δ &amp; &lt;more&gt;</text>" in text


def test_nothing_reaches_out_of_it():
    text = inline_svg(draw, "a figure", SIZE)
    assert "<style" not in text
    assert "metadata" not in text
    assert re.findall(r'https?://[^" ]*', text) == ["http://www.w3.org/2000/svg"]  # a name, not a link


def test_equal_figures_give_equal_text():
    assert inline_svg(draw, "a figure", SIZE) == inline_svg(draw, "a figure", SIZE)


def test_names_of_two_figures_differ_and_references_are_met():
    first, second = inline_svg(draw, "a figure", SIZE), inline_svg(other, "a figure", SIZE)
    same_drawing = inline_svg(draw, "another figure", SIZE)
    for text in (first, second, same_drawing):
        names = ids(text)
        assert len(names) == len(set(names)) > 0
        assert set(re.findall(r'(?:href="|url\()#([\w-]+)', text)) == set(names)
    assert not set(ids(first)) & set(ids(second))
    assert not set(ids(first)) & set(ids(same_drawing))


def test_settings_of_the_user_are_left_alone_and_do_not_matter():
    before = inline_svg(draw, "a figure", SIZE)
    with matplotlib.rc_context({"font.size": 30, "axes.grid": False, "svg.fonttype": "path"}):
        settings = dict(matplotlib.rcParams)
        assert inline_svg(draw, "a figure", SIZE) == before
        assert dict(matplotlib.rcParams) == settings


def test_threads_draw_the_same():
    expected, start = [inline_svg(f, "a figure", SIZE) for f in (draw, other)], threading.Barrier(4)

    def work(number):
        start.wait()
        return inline_svg((draw, other)[number % 2], "a figure", SIZE)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == expected * 2


def test_pyplot_is_not_used(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # an import of it would fail
    inline_svg(draw, "a figure", SIZE)


def test_a_file_of_its_own_has_colours_and_outlines():
    text = standalone_svg(draw, SIZE)
    root = ElementTree.fromstring(text)
    assert (root.get("width"), root.get("height")) == ("300", "200")
    assert LIGHT["series-1"] in text
    assert LIGHT["paper"] in text
    assert "var(" not in text
    assert "<text" not in text
    assert text == standalone_svg(draw, SIZE)


@pytest.mark.parametrize(
    ("high", "labels"),
    [
        (4e6, ["10⁶", "2·10⁵", "5·10⁵", "2·10⁶"]),
        (4e7, ["10⁶", "10⁷"]),
        (9e5, ["2·10⁵", "5·10⁵"]),
    ],
)
def test_an_axis_with_few_powers_of_ten_has_other_labels(high, labels):
    def line(figure):
        axes = figure.add_subplot()
        axes.set_yticks([])
        log_axis(axes.xaxis, power_of_ten)
        axes.set_xlim(1.5e5, high)

    found = re.findall(r"<text[^>]*>([^<]*)</text>", inline_svg(line, "a figure", SIZE))
    assert found == labels
