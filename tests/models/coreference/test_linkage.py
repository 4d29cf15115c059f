"""Linkage baselines: against merging by hand, and connected components."""

import numba
import numpy as np
import pytest
import scipy

import gumbelrace as gr
from gumbelrace.errors import InvalidArgument
from gumbelrace.models.coreference import linkage


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


def test_what_is_wrong_is_said():
    with pytest.raises(InvalidArgument, match="method is 'ward'; it must be single or average"):
        linkage(line(0.0, 1.0), method="ward")
    many = gr.pairs(nearness, (np.zeros(10_001),), 10_001)
    with pytest.raises(InvalidArgument, match="10001 mentions"):
        linkage(many)
