"""Sets of tokens: numbers, order and weights, against a plain count in Python."""

import math
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gumbelrace.models.coreference.tokens import token_sets

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
