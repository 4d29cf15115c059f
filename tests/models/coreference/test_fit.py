"""The fit against an optimum found otherwise, B³ against a plain loop, linkage against merging by hand."""

from dataclasses import replace

import numba
import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from tests.models.coreference.cases import block

import gumbelrace as gr
from gumbelrace.errors import InvalidArgument, InvalidGenerator, ShapeMismatch
from gumbelrace.models.coreference import (
    FEATURES,
    Factor,
    Shaping,
    bcubed,
    blocks,
    fit,
    in_training,
    linkage,
    mentions,
    rank_shapings,
    score,
    simulate,
)
from gumbelrace.models.coreference.fit import sample_pairs

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


@numba.njit
def nearness(i, j, x):
    return 1.0 - abs(x[i] - x[j])


def line(*x):
    return gr.pairs(nearness, (np.array(x),), len(x))


def test_single_linkage_follows_chains_and_average_does_not():
    chain = line(0.0, 0.6, 1.2, 1.8, 5.0)
    assert linkage(chain).tolist() == [0, 0, 0, 0, 1]
    assert linkage(chain, method="average").tolist() == [0, 0, 1, 1, 2]


def test_a_pair_at_the_threshold_is_not_merged():
    assert linkage(line(0.0, 1.0)).tolist() == [0, 1]
    assert linkage(line(0.0, 1.0), threshold=-0.01).tolist() == [0, 0]


def test_single_linkage_is_connected_components():
    x = np.random.default_rng(2).uniform(0, 60, 80)
    near = scipy.sparse.csr_array(np.abs(x[:, None] - x) < 1.0)
    count, components = scipy.sparse.csgraph.connected_components(near, directed=False)
    assert 5 < count < 75
    assert linkage(line(*x)).tolist() == components.tolist()


def test_one_mention_is_one_cluster():
    assert linkage(line(3.0)).tolist() == [0]


def test_what_linkage_cannot_do_is_said():
    with pytest.raises(InvalidArgument, match="method is 'ward'; it must be single or average"):
        linkage(line(0.0, 1.0), method="ward")
    many = gr.pairs(nearness, (np.zeros(10_001),), 10_001)
    with pytest.raises(InvalidArgument, match="10001 mentions"):
        linkage(many)


def rng():
    return np.random.default_rng(3)


@pytest.fixture(scope="module")
def simulated():
    return blocks(mentions(simulate(1500, rng())), least=10)


def test_weights_minimise_the_penalised_loss(simulated):
    """No other weights with the same signs are better: slopes are 0, or point out of bounds."""
    factor = fit(simulated, rng(), penalty=0.01, most_pairs=20_000)
    sample = sample_pairs(simulated, rng(), False, 20_000)
    theta, weight = factor.theta, sample.weight / sample.weight.sum()
    residual = scipy.special.expit(sample.x @ theta) - sample.same
    slope = sample.x.T @ (weight * residual) + 0.01 * theta * (np.array(FEATURES) != "bias")
    inside = theta != 0.0
    assert inside.sum() > 10
    np.testing.assert_allclose(slope[inside], 0.0, atol=1e-4)
    assert np.abs(sample.x.T @ (weight * (0.5 - sample.same))).max() > 0.01  # zero weights are no optimum


def test_every_block_weighs_the_same(simulated):
    sample = sample_pairs(simulated, rng(), False, 10**6)
    used = round(sample.weight.sum())
    assert sample.weight.sum() == pytest.approx(used)
    assert 1 < used <= len(simulated)
    few = sample_pairs(simulated, rng(), False, 1000)
    assert len(few.same) <= 1000


def test_unlabelled_mentions_are_strangers_only_if_labels_are_complete():
    _, one = block()
    half = replace(one, label=np.where(one.label == 0, 0, -1))
    with pytest.raises(InvalidArgument, match="both of one person and of two"):
        fit([half], rng())
    sample = sample_pairs([half], rng(), True, 1000)
    known = (half.label == 0).sum()
    assert sample.same.sum() == known * (known - 1)
    assert (~sample.same).sum() == known * (len(half) - known)


def test_no_generator_is_refused():
    with pytest.raises(InvalidGenerator):
        fit([block()[1]], 0.5)


def test_training_blocks_are_about_half():
    """Of 2,000 names a binomial half, 5 standard deviations: fails 1 in 1e6."""
    share = np.mean([in_training(f"name {k}") for k in range(2000)])
    assert abs(share - 0.5) < 5 * 0.5 / np.sqrt(2000)


def test_the_shaping_with_the_best_f1_comes_first(simulated):
    factor = fit(simulated, rng(), most_pairs=20_000)
    tried = [Shaping(shift=-30.0), Shaping(cap=3.0), Shaping(shift=30.0)]
    ranking = rank_shapings(factor, simulated, linkage, candidates=tried)
    chosen, reached = ranking[0]
    scores = [score(Factor(factor.weights, one), simulated, linkage) for one in tried]
    assert reached == max(scores, key=lambda found: found.f1)
    assert [found for _, found in ranking] == sorted(scores, key=lambda found: -found.f1)
    assert chosen.shaping == tried[1]
    assert chosen.weights == factor.weights
    truth = np.concatenate([one.label for one in simulated])
    assert scores[0] == bcubed(truth, np.arange(len(truth)))  # nothing merged
    assert scores[2].recall == 1.0  # whole blocks merged
