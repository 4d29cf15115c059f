"""B³ against cases counted by hand, a plain loop, and another implementation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.models.coreference import bcubed

PAIRS = st.lists(st.tuples(st.integers(-1, 4), st.integers(0, 5)), min_size=1, max_size=30).filter(
    lambda pairs: any(person >= 0 for person, _ in pairs)
)


def by_loop(truth, clusters, complete):
    if not complete:
        clusters = [cluster for person, cluster in zip(truth, clusters, strict=True) if person >= 0]
        truth = [person for person in truth if person >= 0]
    rows = list(zip(truth, clusters, strict=True))
    precision, recall = [], []
    for person, cluster in rows:
        if person >= 0:
            together = sum(row == (person, cluster) for row in rows)
            precision.append(together / sum(found == cluster for _, found in rows))
            recall.append(together / sum(true == person for true, _ in rows))
    return np.mean(precision), np.mean(recall)


@pytest.mark.parametrize(
    ("truth", "clusters", "precision", "recall"),
    [
        ([0, 0, 1], [5, 5, 9], 1.0, 1.0),
        ([0, 0, 1], [0, 0, 0], 5 / 9, 1.0),
        ([0, 0, 1], [0, 1, 2], 1.0, 2 / 3),
        # Bagga and Baldwin's example: persons of 5, 2 and 5 mentions, the last two put together.
        ([0] * 5 + [1] * 2 + [2] * 5, [0] * 5 + [1] * 7, 16 / 21, 1.0),
        ([0] * 5 + [1] * 2 + [2] * 5, [0] * 5 + [1] * 2 + [0] * 5, 7 / 12, 1.0),
    ],
)
def test_cases_by_hand(truth, clusters, precision, recall):
    found = bcubed(truth, clusters)
    assert found.precision == pytest.approx(precision)
    assert found.recall == pytest.approx(recall)
    assert found.f1 == pytest.approx(2 * precision * recall / (precision + recall))


def test_unlabelled_mentions_are_left_out_or_are_strangers():
    truth, clusters = [0, 0, -1, -1], [0, 0, 0, 1]
    assert bcubed(truth, clusters) == (1.0, 1.0, 1.0)
    assert bcubed(truth, clusters, complete=True).precision == pytest.approx(2 / 3)
    assert bcubed(truth, clusters, complete=True).recall == 1.0


@given(PAIRS, st.booleans())
def test_as_a_plain_loop_counts(pairs, complete):
    truth, clusters = map(list, zip(*pairs, strict=True))
    found = bcubed(truth, clusters, complete)
    np.testing.assert_allclose(found[:2], by_loop(truth, clusters, complete))


@given(PAIRS)
def test_as_another_implementation_counts(pairs):
    other = pytest.importorskip("bcubed")
    known = [(person, cluster) for person, cluster in pairs if person >= 0]
    truth = {k: {person} for k, (person, _) in enumerate(known)}
    clusters = {k: {cluster} for k, (_, cluster) in enumerate(known)}
    found = bcubed(*zip(*pairs, strict=True))
    expected = other.precision(clusters, truth), other.recall(clusters, truth)
    np.testing.assert_allclose(found[:2], expected)


@pytest.mark.parametrize(
    ("truth", "clusters", "error", "complaint"),
    [
        ([0, 1], [0], ShapeMismatch, r"shape \(2,\), clusters \(1,\)"),
        ([-1, -1], [0, 1], InvalidArgument, "no mention has a true person"),
        ([0.5, 1.0], [0, 1], InvalidArgument, "give integers"),
        ([], [], InvalidArgument, "give integers"),
    ],
)
def test_what_is_wrong_is_said(truth, clusters, error, complaint):
    with pytest.raises(error, match=complaint):
        bcubed(truth, clusters)
