"""A sweep of Gibbs sampling over a graph, compiled: one race for each variable.

For variable i, the offset of a label is its unary log factor plus Gumbel noise times the
temperature, and the factors of i are the rows: these and their ranges are the same at every temperature.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import Bits, kernel, part
from gumbelrace.core.keyed import width_of
from gumbelrace.core.shuffle import Stream
from gumbelrace.kernels.graph_head import (
    Desk,
    Memo,
    best_of,
    is_best,
    read_head,
    set_range,
)
from gumbelrace.kernels.graph_layout import Layout
from gumbelrace.kernels.tally import ALL, CHANGED, LOOKED, READ, ROWS, SITE, VISITED, WRONG
from gumbelrace.methods.loop import Plan, answer
from gumbelrace.methods.questions import gumbel
from gumbelrace.methods.state import EVALUATIONS, EXHAUSTED, LEADER, LOOKS
from gumbelrace.population.base import CODE, FINE, IMPOSSIBLE, Floats, Source


class Task(NamedTuple):
    """How a sweep is made."""

    temperature: float  # 0: the best label, no noise
    certify: bool  # drop labels that the reach proves beaten
    audited: bool  # make every decision exactly as well


@kernel
def sweep(
    plan: Plan,
    stream: Stream,
    layout: Layout,
    unary: Floats,
    desk: Desk,
    task: Task,
    noise: Bits,
    order: NDArray[np.int64],
) -> None:
    """Visit the variables in the order given; `noise` are the bits of the Gumbel variables."""
    source, memo = plan.source, desk.memo
    for i in order:
        desk.tally[SITE] = i
        draw_offset(memo, unary, task, noise, i)
        left = read_head(layout, desk, source, task.certify, i)
        if left > 1 and has_tail(layout, i):
            plan.sizes[0] = enter_tail(stream, layout, i)
            enter(layout, desk, plan, i, left)
            memo.arms[0] = answer(plan)
            leave(desk, plan)
            left = 1
        if left == 0 and source.fault[CODE] == FINE:
            source.fault[CODE] = IMPOSSIBLE
        if source.fault[CODE] != FINE:
            return
        label = best_of(memo, left)
        if task.audited:
            desk.tally[WRONG] += not is_best(layout, desk, source, i, label)
        settle(layout, desk, source, i, label)


@part
def has_tail(layout: Layout, i: int) -> bool:
    """Whether not all factors of a variable are head."""
    return layout.starts[i] + layout.heads[i] < layout.starts[i + 1]


@part
def settle(layout: Layout, desk: Desk, source: Source, i: int, label: int) -> None:
    """Give a variable its label, and count it."""
    desk.tally[ALL] += (layout.starts[i + 1] - layout.starts[i]) * source.arms
    desk.tally[VISITED] += 1
    desk.tally[CHANGED] += desk.labels[i] != label
    desk.labels[i] = label


@part
def draw_offset(memo: Memo, unary: Floats, task: Task, bits: Bits, i: int) -> None:
    """Put the unary log factors plus noise into the offset."""
    row = min(i, len(unary) - 1)
    for arm in range(len(memo.offset)):
        memo.offset[arm] = unary[row, arm]
        if task.temperature > 0.0:
            memo.offset[arm] += gumbel(bits) * task.temperature


@part
def enter(layout: Layout, desk: Desk, plan: Plan, i: int, left: int) -> None:
    """Make the tail of a variable the rows of a race between the first `left` labels."""
    memo, offset = desk.memo, plan.state.offset
    set_range(layout, plan.source, 1, i)
    desk.first[0] = layout.starts[i] + layout.heads[i]
    for arm in range(len(offset)):
        offset[arm] = -np.inf
    for a in range(left):
        offset[memo.arms[a]] = memo.values[memo.arms[a]]


@part
def leave(desk: Desk, plan: Plan) -> None:
    """Note what a race took."""
    tally = plan.state.tally
    desk.tally[READ] += tally[EVALUATIONS]
    desk.tally[LOOKED] += tally[LOOKS]
    desk.tally[ROWS] += plan.sizes[0] if tally[EXHAUSTED] else plan.state.rows[tally[LEADER]]


@part
def enter_tail(stream: Stream, layout: Layout, i: int) -> int:
    """Make the rows of the tail of a variable those of the stream; return how many."""
    streams, size = stream.streams, layout.starts[i + 1] - layout.starts[i] - layout.heads[i]
    streams.sizes[0] = streams.counts[0] = size
    streams.widths[0] = width_of(size)
    return size
