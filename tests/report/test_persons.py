"""Who is who: lists to open, doubtful mentions, what can be searched; small, and nothing unescaped."""

import json
import re

import pytest
from tests.report.persons import NASTY, register
from tests.report.test_page import Outline

from gumbelrace.report import persons
from gumbelrace.report.page import Page, render, short
from gumbelrace.report.persons import entry, finder, persons_section

MEGABYTE = 2**20


def rendered(found):
    return render(Page("Who", "These.", sections=[persons_section(found, 40)]))


def findable(text):
    return json.loads(re.search(r'id="findable">(.*?)</script>', text, re.DOTALL)[1])


def test_the_largest_and_the_least_sure_are_listed_and_opened():
    found = register(nasty="")
    one = entry(found, 29)
    assert one.head == "Zoë Person0029, 30 mentions, 1990–2009"
    assert one.mark.text == "1 doubtful"
    assert one.lines["Venues"] == "Venue 29"
    assert one.lines["Co-authors"] == "Al; Bo Wu"
    assert one.table.rows[0][0] == "0.25"  # the doubtful one first
    assert one.table.rows[0][3] == "Zoë Person0028 #28 (0.75)"
    assert one.table.rows[1][0] == "1.00"
    assert one.more == "And 5 more: the rows of `clusters.csv` with cluster 29."
    text = rendered(found)
    assert text.index("The largest") < text.index("The least sure") < text.index("someone else&#39;s")
    assert text.count("<details>") == 24
    assert "share of 40 sweeps" in text


def test_one_that_is_alone_may_belong_to_nobody_else():
    assert entry(register(nasty=""), 0).table.rows[0][3] == "nobody else (0.75)"


def test_nothing_is_said_of_what_is_not_known():
    text = rendered(register(sure=False))
    assert "doubtful" not in text[: text.index("<script>")]
    assert "The least sure" not in text


def test_what_others_wrote_is_no_markup():
    text = rendered(register())
    outline = Outline(text)
    assert [attributes.get("type") for attributes in outline.all("script")] == ["application/json", None]
    assert not outline.all("img")
    assert not set("\x1b\u202e\u2028") & set(text)
    assert "<code>1" not in text
    names = [person[1] for person in findable(text)["persons"]]
    assert names[0] == short(f"Zoë {NASTY} Person0029", 48)
    assert "script>" in names[0]


def test_only_its_own_script_may_run():
    """The page's policy has the digest of its script; one that others put there has another."""
    policy = next(m["content"] for m in Outline(rendered(register())).all("meta") if "http-equiv" in m)
    assert re.search(r"default-src 'none'.*script-src 'sha256-[\w+/]{43}='$", policy)
    plain = render(Page("A page", "Nothing to find."))
    assert "script-src &#39;none&#39;" in plain


def test_all_can_be_found_by_name():
    data = findable(rendered(register(nasty="")))
    assert [person[0] for person in data["persons"]] == list(range(29, -1, -1))
    cluster, name, _, alarm, texts, mentions, size = data["persons"][0]
    assert (cluster, name, alarm, size) == (29, "Zoë Person0029", "1 doubtful", 30)
    assert len(texts) == len(data["labels"])
    assert len(mentions) == 25
    assert all(len(row) == len(data["columns"]) for row in mentions)


@pytest.mark.parametrize("number", [15, 60])
def test_a_page_has_an_end(monkeypatch, number):
    """What does not fit is left to the table; 60 persons take four times the room that they may."""
    monkeypatch.setattr(persons, "MOST_NAMED", 1500)
    monkeypatch.setattr(persons, "MOST_LISTED", 12_000)
    found = finder(register(number, nasty=""))
    text = json.dumps(found.data, ensure_ascii=False)
    assert len(text) < 14_500
    assert len(found.data["persons"]) == min(number, len(found.data["persons"]))
    assert ("only" in found.label) == (number == 60)
    assert found.data["persons"][0][0] == number - 1


def test_limits_leave_room_below_five_megabytes():
    """Texts of lists are at most 2 × 12 × 25 mentions of some 400 characters."""
    assert persons.MOST_NAMED + persons.MOST_LISTED + 2 * 12 * 25 * 800 < 4.5 * MEGABYTE
