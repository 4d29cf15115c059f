"""The fit: against an optimum found otherwise, what it learns, and how the shaping is chosen."""

from dataclasses import replace

import numpy as np
import pytest
import scipy
from tests.models.coreference.cases import block

from gumbelrace.errors import InvalidArgument, InvalidGenerator
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
