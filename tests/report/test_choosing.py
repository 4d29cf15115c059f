"""The page of a choice: the claim on top, who was dropped when, the caution, and what failed."""

import re

import pytest
from tests.report.studies import chosen, lane

from gumbelrace.report.choosing import MOST_FAILURES, MOST_LANES, choice_page
from gumbelrace.report.page import render


def test_the_claim_is_on_top_and_the_caution_below_the_table():
    text = render(choice_page(chosen()))
    assert (
        text.index("A is the best") < text.index("out after 20 rows") < text.index("come from fewer rows")
    )
    assert "probability of 0.95" in text
    assert "(b) Spent 2.2 of 6 (37%)" in text
    assert "TimeoutError: no answer" in text
    assert "no better if it was shown" not in text


def test_what_no_better_means_is_said_where_it_stands():
    text = render(choice_page(chosen(lane("A", "best"), lane("C", "no better"))))
    assert "no better if it was shown" in text


def test_drops_are_marked():
    """A cross for each candidate that is out; without one there is none (negative control)."""
    dropped, open_one = (render(choice_page(chosen(lane("A", "best"), last))) for last in LAST)
    assert dropped.count("var(--bad)") > open_one.count("var(--bad)")


LAST = lane("B", "out", 40), lane("B", "racing")


def test_nothing_that_others_wrote_is_obeyed():
    names = ["<script>alert(1)</script>", "`code` $x$ \\frac", "[b]模型 🎉"]
    lanes = [lane(name, state) for name, state in zip(names, ("best", "racing", "out"), strict=True)]
    text = render(choice_page(chosen(*lanes, failures=[(names[0], 3, "<b>`oh`</b>\n" + "x" * 999)])))
    assert "<script" not in text
    assert "&lt;script" in text
    assert "<b>" not in text
    assert "$x$" in text


def test_many_candidates_and_failures_are_cut_and_counted():
    lanes = [lane("A", "best"), *(lane(f"p{n}", "out", 40 - n % 30) for n in range(200))]
    failures = [("p1", n, "ValueError") for n in range(500)]
    text = render(choice_page(chosen(*lanes, failures=failures)))
    assert f"{201 - MOST_LANES} candidates that were dropped sooner" in text
    assert f"And {500 - MOST_FAILURES} more." in text
    assert len(re.findall(r"scope=\"row\"", text)) == 201 + MOST_FAILURES


@pytest.mark.parametrize("lanes", [[lane("A", "best", rows=())], [lane("A", "best", rows=(1,))]])
def test_a_race_that_hardly_began_has_a_page(lanes):
    assert "A is the best" in render(choice_page(chosen(*lanes)))
