"""Simulated mentions: sizes, variety, and that they are neither trivial nor hopeless."""

import numpy as np
import pytest

from gumbelrace.errors import InvalidArgument, InvalidGenerator
from gumbelrace.models.coreference import bcubed, blocks, fit, linkage, mentions, score, simulate
from gumbelrace.models.coreference.mentions import COLUMNS


def simulated(n=3000, seed=0):
    return simulate(n, np.random.default_rng(seed))


def test_columns_are_those_of_mentions():
    columns = simulated()
    assert set(columns) <= set(COLUMNS)
    assert {len(texts) for texts in columns.values()} == {3000}


def test_equal_seeds_give_equal_mentions():
    assert simulated(200) == simulated(200)
    assert simulated(200) != simulated(200, seed=1)


def test_persons_have_sizes_of_a_power_law():
    """P(size > k) is (k + 1)^-1.1, within 5 standard deviations of a binomial: fails 1 in 1e6."""
    columns = simulated(10_000)
    sizes = np.unique(columns["label"], return_counts=True)[1]
    for k in (1, 3, 9):
        share = (k + 1) ** -1.1
        tolerance = 5.0 * np.sqrt(share * (1 - share) / len(sizes))
        assert abs((sizes > k).mean() - share) < tolerance
        assert abs((sizes > k).mean() - (k + 1) ** -0.8) > tolerance  # another exponent is told apart
    assert sizes.max() <= 1000


def test_a_person_is_written_in_several_ways_and_a_name_is_shared():
    columns = simulated()
    pairs = set(zip(columns["label"], columns["author"], strict=True))
    assert len(pairs) > 1.2 * len(set(columns["label"]))
    assert len(pairs) > 1.2 * len(set(columns["author"]))


def test_most_mentions_of_a_person_are_in_one_block():
    found = mentions(simulated())
    rows = found.rows_by_block()
    assert max(map(len, rows)) < 1000
    together = np.unique(np.column_stack([found.label, found.block]), axis=0)
    assert len(together) == len(set(found.label.tolist()))  # slips leave the first letter alone


def test_persons_can_be_told_apart_though_not_all_of_them():
    """Average linkage on a factor fitted to other simulated mentions: far better than whole blocks."""
    rng = np.random.default_rng(1)
    factor = fit(blocks(mentions(simulated())), rng, most_pairs=50_000)
    others = blocks(mentions(simulate(3000, rng)))
    truth = np.concatenate([block.label for block in others])
    whole = bcubed(truth, np.repeat(np.arange(len(others)), [len(block) for block in others]))
    found = score(factor, others, lambda pairs: linkage(pairs, method="average"))
    assert whole.f1 + 0.05 < 0.85 < found.f1 < 0.98


def test_small_and_wrong_numbers():
    assert len(blocks(mentions(simulated(1)))) == 1
    with pytest.raises(InvalidArgument, match="n is 0"):
        simulated(0)
    with pytest.raises(InvalidGenerator):
        simulate(10, np.random.RandomState(0))
