"""Passes by Ray's workers: the same as by one process, also if workers die."""

import os
import signal
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from tests.applications.cases import small_task
from tests.ray.cases import SHARDS, SMALL, fitted, loading, same

import gumbelrace as gr
from gumbelrace.applications.coreference import resolve
from gumbelrace.applications.store import Stop
from gumbelrace.errors import InvalidArgument, ShapeMismatch, ShardFailed
from gumbelrace.paper.synthetic_study import Problems, Settings, measured

pytest.importorskip("ray", reason="Ray is not installed")

import gumbelrace.ray
from gumbelrace.ray import Cluster, load_table


@pytest.fixture(scope="module")
def cluster():
    with Cluster("local", num_cpus=2, tries=3, **SMALL) as made:
        yield made


def test_two_workers_give_what_one_process_gives(cluster, folder, alone):
    assert same(fitted(gr.open_table(folder), workers=cluster), alone)


def test_another_seed_gives_others(folder, alone):
    """Negative control of `same`."""
    other = fitted(gr.open_table(folder), rng=1)
    assert not same(other, alone)


def test_workers_that_are_killed_change_nothing(cluster, folder, alone, tmp_path):
    """Every second time that shard 1 is loaded its worker is killed: once in each pass."""

    def die(shard, call):
        if shard == 1 and call % 2 == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    table = load_table(range(SHARDS), loading(folder, tmp_path, die), workers=cluster)
    fit = fitted(table, workers=cluster)
    assert same(fit, alone)
    loaded = len(list(tmp_path.glob("1-*")))
    assert loaded == 2 * (1 + fit.passes)  # to know its columns, and in each pass
    assert len(list(tmp_path.glob("2-*"))) == 1 + fit.passes


def test_a_shard_that_keeps_failing_is_named_and_passes_are_kept(cluster, folder, alone, tmp_path):
    calls, mended = tmp_path / "calls", tmp_path / "mended"
    calls.mkdir()

    def fail(shard, call):
        if shard == 2 and call >= 3 and not mended.exists():
            raise OSError("the disk is gone")

    table = load_table(range(SHARDS), loading(folder, calls, fail), workers=cluster)
    with pytest.raises(ShardFailed, match=r"^2 could not be worked on: OSError: the disk is gone"):
        fitted(table, workers=cluster, checkpoint=tmp_path / "kept")
    # Its columns, its fingerprint, the subsample; then as many tries as there are.
    assert len(list(calls.glob("2-*"))) == 3 + cluster.tries
    mended.touch()
    before = len(list(calls.glob("1-*")))
    fit = fitted(table, workers=cluster, checkpoint=tmp_path / "kept")
    assert same(fit, alone)
    # The fingerprint, and passes but for the subsample.
    assert len(list(calls.glob("1-*"))) == before + fit.passes


def test_a_worker_that_is_always_killed_ends_the_run(cluster, folder, tmp_path):
    def die(shard, call):
        if shard == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(ShardFailed, match=r"^1 could not be worked on: .*killed, 3 times"):
        load_table(range(SHARDS), loading(folder, tmp_path, die), workers=cluster)
    assert len(list(tmp_path.glob("1-*"))) == cluster.tries


def test_an_error_of_our_own_is_not_tried_again(cluster, tmp_path):
    def load(shard):
        (tmp_path / f"{shard}-{os.getpid()}-{len(os.listdir(tmp_path))}").touch()
        return {"x": np.zeros(3), "y": np.zeros(4)}

    with pytest.raises(ShapeMismatch, match=r"load\('a'\) gave arrays of shapes"):
        load_table(["a"], load, workers=cluster)
    assert len(os.listdir(tmp_path)) == 1


def test_it_is_an_executor(cluster):
    assert list(cluster.map(pow, [2, 3], [5, 2])) == [32, 9]
    assert cluster.submit(int, "ff", base=16).result() == 255
    with pytest.raises(ZeroDivisionError):
        cluster.submit(divmod, 1, 0).result()
    assert repr(cluster) == "Cluster(processors=2, tries=3)"


def test_a_second_one_shares_the_ray_of_the_process(cluster):
    with Cluster() as other:
        assert list(other.map(abs, [-1])) == [1]
    assert list(cluster.map(abs, [-2])) == [2]
    with pytest.raises(InvalidArgument, match="joined a Ray already"):
        Cluster("auto")


def test_races_on_rows_drawn_ahead_are_those_of_one_process(cluster, folder):
    """Oracle: the largest sum; sums differ by a hundred deviations."""
    found = []
    for workers in (None, cluster):
        table = gr.open_table(folder, ["0", "1"])
        population = gumbelrace.ray.population(table, workers=workers)
        best = gr.best(population, rng=3)
        drawn = gr.sample(population, size=20, rng=4, check=False)
        found.append((best.arm, best.evaluations, *drawn.arms, *drawn.evaluations, population.rows_fetched))
    assert found[0] == found[1]
    sums = sum(np.load(path).sum(axis=0) for path in folder.glob("*.npy"))
    assert found[0][0] == int(np.argmax(sums[:2]))


def test_blocks_of_mentions_and_points_of_a_study_are_those_of_threads(cluster, tmp_path):
    task = replace(small_task(), samplers=("sums",), runs=1)
    by_ray, alone = (
        resolve(task, tmp_path / name, workers) for name, workers in (("ray", cluster), ("alone", None))
    )
    assert np.array_equal(by_ray.clusters["sums"], alone.clusters["sums"])
    point = Settings(20, size=2000, arms=(2,)).points[-1]
    work = partial(measured, Problems(0, 2000), Settings(20, size=2000))
    found = cluster.submit(work, point, Stop()).result(), work(point, Stop())
    assert found[0]._replace(seconds=0, scan_seconds=0) == found[1]._replace(seconds=0, scan_seconds=0)


def test_a_cluster_that_is_shut_down_takes_no_more_work(cluster):
    """Ray would start another one by itself, with settings of its own."""
    with Cluster() as other:  # joins that of this process, and leaves it running
        assert other.submit(abs, -1).result() == 1
    with pytest.raises(RuntimeError, match="has been shut down"):
        other.submit(abs, -1)
    assert cluster.submit(abs, -2).result() == 2
