"""Mentions: what columns of text become."""

import numpy as np
import pytest

from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.models.coreference import mentions

AUTHORS = ["Wei Li", "Li, W.", "José Cruz", "Wei  Li"]


def test_authors_alone_are_enough():
    found = mentions({"author": AUTHORS})
    assert len(found) == 4
    assert found.block_names == ("cruz j", "li w")
    assert [rows.tolist() for rows in found.rows_by_block()] == [[2], [0, 1, 3]]
    assert found.name[0] == found.name[3]
    assert (found.label == -1).all()
    assert (found.country == -1).all()
    assert np.isnan(found.year).all()
    assert not found.lengths.any()


def test_blocks_labels_and_years_as_given():
    columns = {
        "author": AUTHORS,
        "block": ["x", "x", "y", "y"],
        "label": ["p", "", "q", " p "],
        "year": ["1999", "", "2001.0", "nan"],
        "country": ["US", "", "US", "CN"],
    }
    found = mentions(columns)
    assert found.block.tolist() == [0, 0, 1, 1]
    assert found.label.tolist() == [0, -1, 1, 0]
    np.testing.assert_array_equal(found.year, [1999.0, np.nan, 2001.0, np.nan])
    assert found.country.tolist() == [0, -1, 0, 1]


def test_coauthors_are_the_same_however_they_are_written():
    found = mentions({"author": AUTHORS, "coauthors": ["Bo Ma; Jürgen K. Abt", "Abt, Jurgen", "", " ;"]})
    starts, tokens, _ = found.sets[0]
    assert np.diff(starts).tolist() == [2, 1, 0, 0]
    assert tokens[2] in tokens[:2]


@pytest.mark.parametrize(
    ("columns", "error", "complaint"),
    [
        ({"title": ["a"]}, InvalidArgument, "no column 'author'"),
        (
            {"author": ["a"], "journal": ["b"]},
            InvalidArgument,
            "no column 'journal'; the columns are author",
        ),
        ({"author": ["a"], "title": []}, ShapeMismatch, "'title' has 0 texts and 'author' has 1"),
        ({"author": []}, InvalidArgument, "no mentions"),
        ({"author": ["a"], "year": ["last"]}, InvalidArgument, "'last' is no year"),
    ],
)
def test_what_is_wrong_is_said(columns, error, complaint):
    with pytest.raises(error, match=complaint):
        mentions(columns)
