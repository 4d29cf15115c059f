"""Names: how they are folded and parsed, and the classes of pairs of them."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gumbelrace.errors import InvalidArgument, MissingPackage
from gumbelrace.models.coreference import names as module
from gumbelrace.models.coreference.names import (
    FAMILY,
    GIVEN,
    MIDDLE,
    SUFFIX,
    agreement,
    folded,
    parse_name,
    rarity,
    tokens_of,
)


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
    assert tokens_of("The Naïve 3-D method, a study") == ["the", "naive", "method", "study"]


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


def classes(one, other):
    code = int(agreement([parse_name(one), parse_name(other)])[0, 1])
    places = np.unravel_index(code, (len(GIVEN), len(MIDDLE), len(FAMILY), len(SUFFIX)), order="F")
    return tuple(kind[place] for kind, place in zip((GIVEN, MIDDLE, FAMILY, SUFFIX), places, strict=True))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("Wei Li", "Wei Li", ("same", "none", "same", "same")),
        ("Wei Li", "W. Li", ("initial", "none", "same", "same")),
        ("W. Li", "W. K. Li", ("initial", "one", "same", "same")),
        ("Bo Li", "W. Li", ("different", "none", "same", "same")),
        ("Rob Li", "Robert Li", ("prefix", "none", "same", "same")),
        ("Abhishek R. Appu", "Abhisek R. Appu", ("close", "same", "same", "same")),
        ("Wei K. Li", "Wei Karl Li", ("same", "same", "same", "same")),
        ("Wei Kurt Li", "Wei Karl Li", ("same", "different", "same", "same")),
        ("Wei K. Li", "Wei M. Li", ("same", "different", "same", "same")),
        ("Chih Sheng Chang", "Chih-Sheng Chang", ("same", "same", "same", "same")),
        ("Jo Anderson", "Jo Andersen", ("same", "none", "close", "same")),
        ("Jo Smith", "Jo Weber", ("same", "none", "different", "same")),
        ("Jo Smith, Jr.", "Jo Smith", ("same", "none", "same", "one")),
        ("Jo Smith, Jr.", "Jo Smith, Sr.", ("same", "none", "same", "different")),
    ],
)
def test_classes_of_pairs(one, other, expected):
    assert classes(one, other) == classes(other, one) == expected


def test_many_names_at_once_are_as_two_by_two():
    texts = ["Wei Li", "W. Li", "Wen K. Li", "Wen Karl Li", "Weni Li", "Li", "Wei Lee, Jr."]
    names = [parse_name(text) for text in texts]
    codes = agreement(names)
    assert (codes == codes.T).all()
    for a, one in enumerate(names):
        for b, other in enumerate(names):
            assert codes[a, b] == agreement([one, other])[0, 1]


def test_too_many_names_are_refused(monkeypatch):
    monkeypatch.setattr(module, "MOST_NAMES", 1)
    with pytest.raises(InvalidArgument, match="2 distinct names; give a block column"):
        agreement([parse_name("Wei Li"), parse_name("W. Li")])


def test_a_missing_package_is_named(without):
    without("rapidfuzz")
    with pytest.raises(MissingPackage, match=r"gumbelrace\[coreference\]"):
        agreement([parse_name("Wei Li")])
