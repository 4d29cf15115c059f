"""Mentions: what columns of text become, and sets of tokens against a plain count in Python."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.models.coreference import mentions
from gumbelrace.models.coreference.mentions import token_sets

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


ROWS = st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=6), min_size=1, max_size=12)


@given(ROWS)
def test_sets_and_weights_are_those_of_a_count(rows):
    sets = token_sets(rows, least=0.0)
    count = Counter(word for row in rows for word in set(row))
    weight = {word: 1.0 - math.log(count[word]) / math.log(max(len(rows), 2)) for word in count}
    assert len(sets.starts) == len(rows) + 1
    for row, start, end in zip(rows, sets.starts[:-1], sets.starts[1:], strict=True):
        tokens = sets.tokens[start:end]
        assert (np.diff(tokens) > 0).all()
        expected = sorted(weight[word] for word in set(row))
        np.testing.assert_allclose(sorted(sets.weights[tokens]), expected, atol=1e-12)
    lengths = [math.sqrt(sum(weight[word] ** 2 for word in set(row))) for row in rows]
    np.testing.assert_allclose(sets.lengths(), lengths, atol=1e-12)


def test_words_of_many_rows_are_dropped():
    rows = [["the", str(k), str(k // 2)] for k in range(100)]
    sets = token_sets(rows)
    assert np.diff(sets.starts).max() == 2
    assert sets.weights.min() > 0.3


def test_no_words_at_all():
    sets = token_sets([[], []])
    assert sets.starts.tolist() == [0, 0, 0]
    assert sets.lengths().tolist() == [0.0, 0.0]
