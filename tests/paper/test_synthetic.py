"""What the study's page says is what its records say."""

import re

import pytest
from tests.report.studies import DELTAS, DRAWS, METHODS, race, records, study

from gumbelrace.paper.claims import claims_sentence, claims_summary, claims_table
from gumbelrace.paper.synthetic import key_records, key_sentence, key_table, synthetic_page
from gumbelrace.paper.synthetic_figures import (
    FIGURES,
    broken_figure,
    broken_table,
    error_panel,
    figure_panels,
    level_figure,
    read_panel,
)
from gumbelrace.paper.synthetic_study import Broken, Level, Problem, Record
from gumbelrace.report.demo import lanes, race_figure, story
from gumbelrace.report.figures import LOOKS, look_of
from gumbelrace.report.page import Panels, render

MEGABYTE = 2**20


def markers(svg):
    """Count the marks of data: those in the colour of a series."""
    return len(re.findall(r"<use [^>]*stroke: var\(--series-\d\)", svg))


def one(method="Betting", scale=0.1, delta=0.01, errors=3, **changes):
    return Record(10, "normal", scale, method, delta, DRAWS, errors, 0.5, 1e-4, 4e-4)._replace(**changes)


@pytest.fixture(scope="module")
def page():
    return synthetic_page(study())


def test_sections_are_in_order(page):
    titles = [section.title for section in page.sections]
    assert [title.split(":")[0] for title in titles] == [
        "What was run",
        "The key numbers",
        "Watch one race",
        "Figure 1",
        "Figure 5",
        "Figure 6",
        "Figure 7",
        "The constant B of Racing-Normal",
        "Where Racing-Normal breaks",
        "Ours beside the paper's",
        "The data",
    ]


def test_what_a_study_has_not_is_left_out():
    some = [record for record in records() if record.arms == 2]
    small = study()._replace(records=some, broken=[], claims=[], levels=[], files={})
    titles = [section.title.split(":")[0] for section in synthetic_page(small).sections]
    assert titles == ["What was run", "Watch one race", "Figure 6"]


def test_the_page_is_small(page):
    assert len(render(page).encode()) < 3 * MEGABYTE


def test_layout_is_the_papers(page):
    shapes = {}
    for section in page.sections:
        for block in section.blocks:
            if isinstance(block, Panels) and section.title.startswith("Figure"):
                shapes[section.title[:8]] = (len(block.panels), block.columns)
    assert shapes == {"Figure 1": (8, 4), "Figure 5": (6, 3), "Figure 6": (6, 3), "Figure 7": (6, 3)}


def test_letters_are_the_papers(page):
    block = next(b for s in page.sections if s.title.startswith("Figure 1") for b in s.blocks)
    assert [panel.title for panel in block.panels] == [
        "(a) p(X)",
        "(b) σ = 0.1, very hard",
        "(c) σ = 10⁻⁴, easy",
        "(d) σ = 10⁻⁵, very easy",
        "(e) G(T) at δ = 0.1",
        "(f) σ = 0.1",
        "(g) σ = 10⁻⁴, log scale",
        "(h) σ = 10⁻⁵, log scale",
    ]


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: f"Figure {figure.number}")
def test_figures_show_their_own_records(figure):
    chosen = figure.chosen(records())
    assert len(chosen) == 4 * 3 * 3 * 5
    assert {record.arms for record in chosen} == {figure.arms}
    assert {record.method for record in chosen} == set(figure.methods) <= set(METHODS)
    panels = figure_panels(figure, records()).panels
    in_one_panel = 4 * 3 * 5
    assert [markers(panel.svg) for panel in panels[3:]] == [in_one_panel] * 3


def test_points_without_errors_are_not_shown():
    some = [one(delta=delta, errors=errors) for delta, errors in zip(DELTAS, (0, 0, 3, 7, 0), strict=True)]
    assert markers(error_panel(some, 0.1).svg) == 2
    assert markers(read_panel(some, 0.1).svg) == 5


def test_a_panel_without_errors_says_so():
    panel = error_panel([one(errors=0)], 0.1)
    assert markers(panel.svg) == 0
    assert "no error in any draw" in panel.svg


def test_descriptions_tell_the_numbers():
    some = [one(errors=30), one("Racing-EBS", errors=0, read=0.9)]
    assert "Largest error: Betting 0.003, Racing-EBS none." in error_panel(some, 0.1).svg
    assert "Betting 50% to 50%; Racing-EBS 90% to 90%." in read_panel(some, 0.1).svg


def test_methods_keep_their_colour():
    assert len({look.colour for look in LOOKS.values()}) == len(LOOKS)
    assert len({look.dashes for look in LOOKS.values()}) == len(LOOKS)
    assert look_of("Racing-EBS, marginal") == look_of("Racing-EBS")
    assert {look_of(method).label for method in METHODS} == {look.label for look in LOOKS.values()}


def test_key_table_is_of_one_problem_and_delta():
    chosen = key_records(records())
    assert {record.problem for record in chosen} == {Problem(10, "normal", 1e-4)}
    assert {record.delta for record in chosen} == {0.01}
    table = key_table(chosen)
    assert [row[0] for row in table.rows] == ["exact scan", *METHODS]
    assert table.rows[0][-2:] == ["400", "1.0×"]
    normal = next(record for record in chosen if record.method == "Racing-Normal")
    assert table.rows[4][2:5] == ["70 of 10,000", "0.007", "0.0055 to 0.0088"]
    assert normal.interval == pytest.approx((0.0055, 0.0088), abs=5e-5)


def test_key_sentence_names_the_fastest():
    some = [one(seconds=1e-4), one("Racing-Normal", seconds=2e-4, read=0.2)]
    assert key_sentence(some) == (
        "Betting is the fastest: 4.0× as fast as an exact scan; Racing-Normal reads least, 20% of the "
        "rewards. No method errs more often than δ = 0.01 allows."
    )
    few = key_sentence([record._replace(errors=0, draws=5) for record in some])
    assert few.endswith("errs more often than δ = 0.01 allows is not contradicted (0 of 5; up to 0.52).")
    assert "it reads 50% of the rewards, the least of all" in key_sentence(some[:1])


def test_key_sentence_admits_what_is_bad():
    text = key_sentence([one(seconds=1.0), one("Racing-Normal", seconds=1.0, errors=500)])
    assert "No method is faster than an exact scan here" in text
    assert "More errors than δ = 0.01 allows were made by Racing-Normal." in text


def test_claims_have_their_verdicts():
    claims = study().claims
    assert [row[2].text for row in claims_table(claims).rows] == ["differs", "held", "cannot be said"]
    assert claims_sentence(claims) == "Of 3 statements, 1 held and 1 did not; of 1 it cannot be said."
    assert claims_summary(claims)[0] == ("claims", "1 of 3 held; of 1 it cannot be said")
    assert claims_sentence(claims[:2]) == "Of 2 statements, 1 held and 1 did not."


def test_a_race_is_told_and_drawn_from_winner_to_first_dropped():
    assert story(race()) == (
        "One draw from 3 states with 1,000 factors each: state 0 dropped after 50 rows, state 2 dropped "
        "after 100 rows. State 1 won, with 8.3% of the factors read."
    )
    assert [track[0].arm for track in lanes(race())] == [1, 2, 0]
    svg = race_figure(race()).panels[0].svg
    for words in ("state 1 wins", "state 2 dropped after 100 rows", "state 0 dropped after 50 rows"):
        assert words in svg


def test_a_race_that_read_everything_says_so():
    standings = tuple(standing for standing in race().standings if standing.alive)
    exhausted = race()._replace(standings=standings)
    exhausted = exhausted._replace(outcome=type(exhausted.outcome)(1, 3000, 2, True))
    assert "the others read to the end" in story(exhausted)
    assert "state 2 read to the end" in race_figure(exhausted).panels[0].svg


def test_two_arms_dropped_at_once_are_told_together():
    standings = [standing._replace(rows=50) for standing in race().standings]
    assert "states 0 and 2 dropped after 50 rows" in story(race()._replace(standings=tuple(standings)))


def test_levels_say_how_far_apart_they_are():
    levels = [Level(0.1, 0.001, 2.0, 2.02, 2.5), Level(0.2, 0.001, 1.5, 1.5, 1.9)]
    panels = level_figure(levels).panels
    assert "at most 0.020, the one-sided ones by at most 0.48" in panels[1].svg


def test_broken_cases_have_a_panel_and_rows_each():
    broken = study().broken
    figure = broken_figure(broken)
    assert [panel.title for panel in figure.panels] == ["Skewed difference", "One outlier"]
    assert [markers(panel.svg) for panel in figure.panels] == [10, 10]
    table = broken_table(broken, 0.01)
    assert [row[:3] for row in table.rows][:2] == [
        ["skewed difference", "Racing-Normal", "4,000 of 10,000"],
        ["skewed difference", "Betting", "0 of 10,000"],
    ]


def test_a_case_without_errors_shows_bounds():
    none = [Broken("one outlier", "Betting", delta, DRAWS, 0, 0.1) for delta in DELTAS]
    panel = broken_figure(none).panels[0]
    assert markers(panel.svg) == 5
    assert "Betting 0 at" in panel.svg
