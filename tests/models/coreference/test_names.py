"""Names: how they are folded and parsed."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gumbelrace.models.coreference.names import folded, parse_name, rarity, words


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Wei Li", ("wei", "", "li", "")),
        ("Li, Wei", ("wei", "", "li", "")),
        ("Li, W. K.", ("w", "k", "li", "")),
        ("W.K. Li", ("w", "k", "li", "")),
        ("Richard W. Nutter, Sr.", ("richard", "w", "nutter", "sr")),
        ("Nutter, Richard W., Sr.", ("richard", "w", "nutter", "sr")),
        ("Nutter, Richard W. Sr.", ("richard", "w", "nutter", "sr")),
        ("Stewart V. Bowers III", ("stewart", "v", "bowers", "iii")),
        ("Chih-Sheng Chang", ("chihsheng", "", "chang", "")),
        ("Łukasz Müller-Sørensen", ("lukasz", "", "mullersorensen", "")),
        ("Seán O'Neil", ("sean", "", "oneil", "")),
        ("Ludwig van Beethoven", ("ludwig", "", "vanbeethoven", "")),
        ("Van Nguyen", ("van", "", "nguyen", "")),
        ("Wei Wang 0001", ("wei", "", "wang", "")),
        ("Plato", ("", "", "plato", "")),
        ("Li Jr.", ("li", "", "jr", "")),
        ("李 明", ("李", "", "明", "")),
        ("", ("", "", "", "")),
        (" ,. ", ("", "", "", "")),
    ],
)
def test_parse(text, name):
    assert parse_name(text) == name


def test_block_key_is_family_and_first_initial():
    assert parse_name("Müller, Jürgen").key == parse_name("J. Muller").key == "muller j"
    assert parse_name("Plato").key == "plato"


def test_every_letter_is_folded_once_and_for_all():
    letters = map(chr, [*range(0xD800), *range(0xE000, 0x20000)])
    assert [one for one in letters if folded(folded(one)) != folded(one)] == []


@given(st.text(max_size=40))
@example("⓫")
@example("𝛢")
def test_any_text_is_parsed_into_letters(text):
    name = parse_name(text)
    assert all(part.isalpha() or not part for part in (name.given, name.family))
    assert folded(name.family) == name.family


def test_words_are_folded_and_single_letters_left_out():
    assert words("The Naïve 3-D method, a study") == ["the", "naive", "method", "study"]


def test_names_with_many_namesakes_are_less_rare():
    population = [
        parse_name(f"{given} {family}") for given in ("Wei", "Bo") for family in ("Li", "Ma", "Wu")
    ]
    population.append(parse_name("Zeno Xu"))
    found = dict(zip(population, rarity(population, population), strict=True))
    assert found[parse_name("Zeno Xu")] == 1.0
    expected = 1.0 - np.log(3 * 2) / (2 * np.log(7))  # three Weis, two Lis, seven names
    assert found[parse_name("Wei Li")] == pytest.approx(expected)
    assert rarity([parse_name("Not There")], population)[0] == 1.0
    assert rarity([parse_name("Wei Li")], [parse_name("Wei Li")])[0] == 1.0
