"""The factor: its features against plain Python, its shaping, and its file of weights."""

import json
from itertools import permutations

import numpy as np
import pytest
from tests.models.coreference.cases import COLUMNS, block, features_by_hand

from gumbelrace.errors import InvalidArgument, InvalidFile
from gumbelrace.models.coreference import FEATURES, Factor, Shaping, block_of, mentions
from gumbelrace.models.coreference.factor import features, log_factor

PAIRS = np.array(list(permutations(range(len(COLUMNS["author"])), 2)))


def random_factor(shaping=None):
    theta = np.random.default_rng(1).normal(size=len(FEATURES))
    return Factor(dict(zip(FEATURES, theta.tolist(), strict=True)), shaping or Shaping())


def test_features_are_those_counted_by_hand():
    found, one = block()
    expected = np.array([features_by_hand(found, i, j) for i, j in PAIRS])
    assert (expected != 0).any(axis=0).sum() >= 25  # the case shows nearly every feature
    np.testing.assert_allclose(features(*PAIRS.T, one.data), expected, atol=1e-6)


@pytest.mark.parametrize(
    "shaping", [Shaping(), Shaping(0.7, 0.2, 0.3), Shaping(leak=0.5), Shaping(shift=-2)]
)
def test_factor_is_the_shaped_sum_of_weighted_features(shaping):
    found, one = block()
    factor = random_factor(shaping)
    for i, j in PAIRS:
        x = features_by_hand(found, i, j) @ factor.theta + shaping.shift
        expected = min(x, shaping.cap) if x > 0 else shaping.leak * max(x, -shaping.cap)
        value = log_factor(i, j, *factor.data(one))
        assert value == pytest.approx(expected, abs=1e-5)
        assert value == log_factor(j, i, *factor.data(one))
        if shaping.reward_range:
            assert shaping.reward_range[0] <= value <= shaping.reward_range[1]


def test_a_block_of_some_rows_has_the_same_features():
    """Tokens that only one mention of a block has are left out of it: no pair of it can tell."""
    found, one = block()
    rows = np.array([4, 0, 2])
    part = block_of(found, rows)
    assert len(part.tokens) < len(one.tokens)
    i, j = np.array([0, 0, 1]), np.array([1, 2, 2])
    np.testing.assert_allclose(features(i, j, part.data), features(rows[i], rows[j], one.data), atol=1e-6)


def test_pairs_carry_the_range():
    _, one = block()
    pairs = random_factor(Shaping(cap=2.0, leak=0.25)).pairs(one)
    assert pairs.size == len(one)
    assert pairs.reward_range == (-0.5, 2.0)
    assert random_factor().pairs(one).reward_range is None
    expected = [log_factor(0, j, *random_factor(Shaping(cap=2.0, leak=0.25)).data(one)) for j in (1, 2)]
    np.testing.assert_allclose(pairs.values([0, 0], [1, 2]), expected, atol=1e-5)


def test_a_mention_on_its_own_is_a_block():
    found = mentions({"author": ["Wei Li"], "title": ["fast races"]})
    assert len(block_of(found, np.array([0]))) == 1
    with pytest.raises(InvalidArgument, match="without mentions"):
        block_of(found, np.array([], np.int64))


@pytest.mark.parametrize("shaping", [Shaping(), Shaping(2.0, 0.5, -1.0)])
def test_weights_survive_a_file(tmp_path, shaping):
    factor = random_factor(shaping)
    factor.save(tmp_path / "weights.json")
    again = Factor.load(tmp_path / "weights.json")
    assert again.weights == factor.weights
    assert again.shaping == shaping
    assert [path.name for path in tmp_path.iterdir()] == ["weights.json"]


def test_default_weights_make_sense():
    weights = Factor.default().weights
    assert Factor.default().shaping.reward_range is not None
    assert weights["given_different"] < weights["given_close"] < 0
    assert min(weights["coauthors_shared"], weights["title_shared"], weights["venue_cosine"]) > 0


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda content: content["weights"].pop("bias"), "no weight of 'bias'"),
        (lambda content: content["weights"].update(height=1.0), "a weight of 'height', no feature"),
        (lambda content: content["weights"].update(bias="many"), "no file of weights"),
        (lambda content: content["weights"].update(bias=float("nan")), "not finite"),
        (lambda content: content.pop("weights"), "no file of weights"),
        (lambda content: content["shaping"].update(leak=0.0), r"leak in \(0, 1\]"),
        (lambda content: content["shaping"].update(bend=0.0), "no file of weights"),
    ],
)
def test_bad_weights_are_explained(tmp_path, change, complaint):
    path = tmp_path / "weights.json"
    random_factor(Shaping(cap=1.0)).save(path)
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(InvalidFile, match=complaint):
        Factor.load(path)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InvalidFile, match=r"none\.json cannot be read"):
        Factor.load(tmp_path / "none.json")
    (tmp_path / "text.json").write_text("weights: 1")
    with pytest.raises(InvalidFile, match=r"text\.json is no file of weights"):
        Factor.load(tmp_path / "text.json")
