"""Clusters of a small file of simulated mentions, by several samplers."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from tests.applications.cases import SEARCH, small_task

from gumbelrace.applications import coreference
from gumbelrace.applications.block_search import SAMPLERS, searched
from gumbelrace.applications.coreference import resolve
from gumbelrace.applications.store import Stopped
from gumbelrace.errors import CheckpointMismatch
from gumbelrace.kernels.gibbs import Labels
from gumbelrace.models.coreference import (
    Factor,
    bcubed,
    block_of,
    mentions,
)


@pytest.fixture(scope="module")
def task():
    return small_task()


@pytest.fixture(scope="module")
def resolved(task, tmp_path_factory):
    with ThreadPoolExecutor(2) as workers:
        return resolve(task, tmp_path_factory.mktemp("study") / "blocks", workers)


def test_all_exact_samplers_find_the_same_clusters(resolved):
    np.testing.assert_array_equal(resolved.clusters["exact"], resolved.clusters["sums"])
    for a, b in zip(resolved.last("exact"), resolved.last("sums"), strict=True):
        assert a.f1 == b.f1
        assert a.exact == b.exact


def test_clusters_stay_within_blocks(task, resolved):
    """No cluster has mentions of two blocks, and numbers run from 0 on."""
    for clusters in resolved.clusters.values():
        pairs = np.unique(np.column_stack([task.mentions.block, clusters]), axis=0)
        assert len(pairs) == len(np.unique(clusters)) == clusters.max() + 1


def test_points_are_those_of_the_clusters(task, resolved):
    last = resolved.last("raced")[0]
    score = bcubed(task.mentions.label, resolved.clusters["raced"])
    assert (last.precision, last.recall, last.f1) == score
    assert last.clusters == resolved.clusters["raced"].max() + 1
    assert last.f1 > 0.55  # whole blocks have 0.43, mentions alone 0.38


def test_an_exact_sweep_evaluates_all_pairs_twice(task, resolved):
    """n (n - 1) factors a sweep for each block and start; in the first half of them, as mentions enter."""
    pairs = SEARCH.starts * sum(len(rows) * (len(rows) - 1) for rows in task.rows)
    first, second = (p for p in resolved.points if p.sampler == "sums" and p.run == 0 and p.sweep < 3)
    assert first.exact == pairs // 2
    assert second.exact == pairs // 2 + pairs


def test_choices_are_audited(resolved):
    (audit,) = resolved.audits
    assert audit.sampler == "raced"
    assert audit.choices == 2 * 500
    assert audit.errors <= 20  # δ is 0.05, and shrunk variances err ten times less often
    assert audit.interval[0] <= audit.errors / audit.choices <= audit.interval[1]


def test_what_is_finished_is_not_done_again(task, resolved, tmp_path, monkeypatch):
    done = []
    again = resolve(task, tmp_path / "blocks", finished=done.append)
    assert sum(done) == task.work
    assert without_times(again) == without_times(resolved)
    monkeypatch.setattr(coreference, "one_block", lambda *words: pytest.fail("done again"))
    assert resolve(task, tmp_path / "blocks").points == again.points
    with pytest.raises(CheckpointMismatch):
        resolve(replace(task, seed=4), tmp_path / "blocks")


def without_times(resolved):
    return [point._replace(seconds=0.0) for point in resolved.points]


def test_chosen_blocks_only(task, tmp_path):
    few = replace(task, blocks=[0, 2], samplers=("sums",), runs=1)
    found = resolve(few, tmp_path / "blocks")
    searched_rows = np.isin(task.mentions.block, [0, 2])
    np.testing.assert_array_equal(found.clusters["sums"] >= 0, searched_rows)


def test_a_search_stops_when_told(task):
    stop = threading.Event()
    stop.set()
    kernel = SEARCH.kernel(task.factor.pairs(block_of(task.mentions, task.rows[0])), SAMPLERS["raced"])
    with pytest.raises(Stopped):
        searched(kernel, SEARCH, np.random.default_rng(0), stop)


@pytest.mark.parametrize("name", ["raced", "sums"])
def test_of_several_starts_the_most_probable_is_kept(task, name):
    rows = max(task.rows, key=len)
    pairs = task.factor.pairs(block_of(task.mentions, rows))
    once, often = replace(SEARCH, starts=1), replace(SEARCH, starts=5)
    kernel, never = once.kernel(pairs, SAMPLERS[name]), threading.Event()
    rng = np.random.default_rng(0)
    singles = [searched(kernel, once, rng, never) for _ in range(5)]
    weights = [kernel.log_weight(Labels(np.array(one.labels[-1])))[0] for one in singles]
    assert len(set(weights)) > 1
    fresh = once.kernel(pairs, SAMPLERS[name])
    best = searched(fresh, often, np.random.default_rng(0), never)
    assert best.labels == singles[int(np.argmax(weights))].labels
    assert best.rewards == np.sum([one.rewards for one in singles], axis=0).tolist()
    assert (best.weighing > 0) == (name == "raced")  # who keeps sums has all values


def test_temperatures_fall_to_zero():
    kernel_of = replace(SEARCH, sweeps=10, cold=3, hottest=2.0, coolest=0.5)
    annealing = kernel_of.kernel(some_pairs(), SAMPLERS["exact"]).annealing
    found = [annealing(sweep) for sweep in range(10)]
    assert found[0] == 2.0
    assert found[6] == pytest.approx(0.5)
    assert found[7:] == [0.0, 0.0, 0.0]


def some_pairs():
    found = mentions({"author": ["Wei Li", "W. Li"]})
    return Factor.default().pairs(block_of(found, found.rows_by_block()[0]))
