"""What a sweep over a graph works on, and what it is asked to do."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import part
from gumbelrace.core.orders import Stream
from gumbelrace.core.random import Bits
from gumbelrace.kernels.graph.heads import Reading
from gumbelrace.kernels.graph.layout import Layout
from gumbelrace.methods.loop import Plan
from gumbelrace.population.base import Floats, Source

# What becomes of the tail of a variable: a race, a draw that absorbs it, or a draw given which rows ring.
RACED, ABSORBED, RINGS = range(3)


class Workspace(NamedTuple):
    """What one thread works on (compiled code changes the arrays): labels, and those of one variable."""

    labels: NDArray[np.int32]
    first: NDArray[np.int64]  # the place of the reader's row 0 among all factors
    rows: NDArray[np.int64]  # 0, 1, 2...
    picked: NDArray[np.int64]  # rows at random
    tally: NDArray[np.int64]
    offset: Floats
    values: Floats  # offset plus the factors read
    arms: NDArray[np.int64]  # the labels still possible come first
    block: Floats
    spare: Floats
    law_error: Floats  # the sum over the draws of the sweep


class Graph(NamedTuple):
    """What a sweep goes over: the neighbours, how they are read, and unary log factors."""

    layout: Layout
    reading: Reading
    unary: Floats


class Task(NamedTuple):
    """How a sweep is made."""

    noise: Bits  # of the Gumbel variables
    temperature: float  # 0: the best label, no noise
    tail: int  # what becomes of it
    certify: bool  # drop labels that the reach proves beaten
    audited: bool  # make every decision exactly as well


class Setting(NamedTuple):
    """What a call of compiled code takes to visit variables."""

    plan: Plan
    stream: Stream
    graph: Graph
    workspace: Workspace
    task: Task


@part
def set_range(layout: Layout, source: Source, level: int, i: int) -> None:
    """Set the range of the rewards: that of the factors of a variable beyond a look."""
    for arm in range(source.arms):
        source.low[arm], source.high[arm] = layout.low[i, level], layout.high[i, level]
