"""What simpler ways make of the same blocks and the same factor."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.applications.coreference import Task, judged, together
from gumbelrace.models.coreference.block import Block, block_of
from gumbelrace.models.coreference.linkage import METHODS, linkage

Clusters = Callable[[Block], NDArray[np.int64]]


class Baseline(NamedTuple):
    """B³ of a simpler way."""

    way: str
    precision: float
    recall: float
    f1: float


def baselines(task: Task) -> Iterator[Baseline]:
    """Judge linkage at the threshold 0, whole blocks as clusters, and every mention alone.

    Parameters
    ----------
    task : Task
        With labelled mentions; its blocks may have at most 10,000 mentions.
    """
    ways: dict[str, Clusters] = {f"{method} linkage": partial(linked, task, method) for method in METHODS}
    ways |= {
        "whole blocks": lambda block: np.zeros(len(block), np.int64),
        "each mention alone": lambda block: np.arange(len(block)),
    }
    for way, clusters in ways.items():
        labels = [clusters(block_of(task.mentions, rows)).tolist() for rows in task.rows]
        score = judged(task, together(task, labels))
        if score is not None:
            yield Baseline(way, *score)


def linked(task: Task, method: str, block: Block) -> NDArray[np.int64]:
    """Cluster a block by linkage."""
    return linkage(task.factor.pairs(block), 0.0, method)
