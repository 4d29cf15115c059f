"""Agreement of names: the classes of pairs."""

import numpy as np
import pytest

from gumbelrace.errors import InvalidArgument, MissingPackage
from gumbelrace.models.coreference import agreement as module
from gumbelrace.models.coreference.agreement import FAMILY, GIVEN, MIDDLE, SUFFIX, agreement
from gumbelrace.models.coreference.names import parse_name


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
