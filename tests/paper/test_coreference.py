"""Section 5.3 on a small file of simulated mentions: what is held out, simpler ways and claims."""

from dataclasses import replace

import numpy as np
import pytest
from tests.applications.cases import SEARCH, small_task

from gumbelrace.applications.coreference import resolve
from gumbelrace.models.coreference import (
    bcubed,
    in_training,
)
from gumbelrace.paper.coreference import (
    baselines,
    claims,
    converges_faster,
    evaluations_to_converge,
    held_out,
)


@pytest.fixture
def task():
    return small_task()


def test_blocks_held_out_are_not_those_of_the_training(task):
    blocks = held_out(task.mentions, 5, 400)
    sizes = np.bincount(task.mentions.block)
    assert blocks
    for block, name in enumerate(task.mentions.block_names):
        assert (block in blocks) == (5 <= sizes[block] <= 400 and not in_training(name))


def test_baselines(task):
    """Oracle: whole blocks and single mentions, judged directly."""
    found = {one.way: one[1:] for one in baselines(task)}
    assert found["whole blocks"] == bcubed(task.mentions.label, task.mentions.block)
    assert found["each mention alone"] == bcubed(task.mentions.label, np.arange(500))
    assert found["average linkage"][2] > found["whole blocks"][2]
    assert len(found) == 4


def test_claims_of_the_paper(task, tmp_path):
    search = replace(SEARCH, placed=True, merges=False)
    paper = replace(task, search=search, samplers=("paper", "sums"))
    found = resolve(paper, tmp_path / "blocks")
    held = [*claims(found)]
    assert len(held) == 6
    in_blocks = [np.bincount(found.clusters["paper"][rows]) for rows in paper.rows]
    looks = sum(len(rows) * np.minimum(n, 3).sum() for rows, n in zip(paper.rows, in_blocks, strict=True))
    pairs = sum(len(rows) * (len(rows) - 1) for rows in paper.rows)
    assert f"{looks / pairs:.0%} of an exact sweep" in held[2].why
    assert "first sweep" in held[3].ours
    assert held[4].held is (found.audits[0].errors / found.audits[0].choices <= 0.05)
    run = [point for point in found.points if point.sampler == "sums" and point.run == 0]
    assert evaluations_to_converge(run, "exact", run[-1].f1 / 0.98) == pytest.approx(
        min(p.exact for p in run if p.f1 >= run[-1].f1)
    )
    assert evaluations_to_converge(run, "exact", 2.0) == np.inf
    poor = [p._replace(f1=0.5 * p.f1) if p.sampler == "paper" else p for p in found.points]
    never = converges_faster(replace(found, points=poor))
    assert never.held is False
    assert "does not come to 98% of the exact F1" in never.ours
