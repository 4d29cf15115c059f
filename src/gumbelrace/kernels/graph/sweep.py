"""A sweep of Gibbs sampling over a graph, compiled: one race for each variable.

For variable i, the offset of a label is its unary log factor plus Gumbel noise times the
temperature, and the factors of i are the rows: these and their ranges are the same at every temperature.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import kernel, part
from gumbelrace.core.random import Bits, gumbel
from gumbelrace.core.rows import Stream, width_of
from gumbelrace.kernels.base import ALL, CHANGED, LOOKED, READ, ROWS, SITE, VISITED, WRONG
from gumbelrace.kernels.graph.layout import Layout, look_at
from gumbelrace.methods.loop import Plan, answer
from gumbelrace.methods.reading import FEW_ADDITIONS, ROUNDING, total, total_size, typical
from gumbelrace.methods.state import EVALUATIONS, EXHAUSTED, LEADER, LOOKS
from gumbelrace.population.base import CODE, FINE, IMPOSSIBLE, Floats, Source, read


class Workspace(NamedTuple):
    """What one thread works on (compiled code changes the arrays): labels, and those of one variable."""

    labels: NDArray[np.int32]
    first: NDArray[np.int64]  # the place of the reader's row 0 among all factors
    rows: NDArray[np.int64]  # 0, 1, 2...
    tally: NDArray[np.int64]
    offset: Floats
    values: Floats  # offset plus the factors read
    arms: NDArray[np.int64]  # the labels still possible come first
    block: Floats
    spare: Floats


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
    workspace: Workspace,
    task: Task,
    noise: Bits,
    order: NDArray[np.int64],
) -> None:
    """Visit the variables in the order given; `noise` are the bits of the Gumbel variables."""
    source = plan.source
    for i in order:
        workspace.tally[SITE] = i
        draw_offset(workspace, unary, task, noise, i)
        left = read_head(layout, workspace, source, task.certify, i)
        if left > 1 and has_tail(layout, i):
            plan.sizes[0] = enter_tail(stream, layout, i)
            enter(layout, workspace, plan, i, left)
            workspace.arms[0] = answer(plan)
            leave(workspace, plan)
            left = 1
        if left == 0 and source.fault[CODE] == FINE:
            source.fault[CODE] = IMPOSSIBLE
        if source.fault[CODE] != FINE:
            return
        label = best_of(workspace, left)
        if task.audited:
            workspace.tally[WRONG] += not is_best(layout, workspace, source, i, label)
        settle(layout, workspace, source, i, label)


@part
def has_tail(layout: Layout, i: int) -> bool:
    """Whether not all factors of a variable are head."""
    return layout.starts[i] + layout.heads[i] < layout.starts[i + 1]


@part
def settle(layout: Layout, workspace: Workspace, source: Source, i: int, label: int) -> None:
    """Give a variable its label, and count it."""
    workspace.tally[ALL] += (layout.starts[i + 1] - layout.starts[i]) * source.arms
    workspace.tally[VISITED] += 1
    workspace.tally[CHANGED] += workspace.labels[i] != label
    workspace.labels[i] = label


@part
def draw_offset(workspace: Workspace, unary: Floats, task: Task, bits: Bits, i: int) -> None:
    """Put the unary log factors plus noise into the offset."""
    row = min(i, len(unary) - 1)
    for arm in range(len(workspace.offset)):
        workspace.offset[arm] = unary[row, arm]
        if task.temperature > 0.0:
            workspace.offset[arm] += gumbel(bits) * task.temperature


@part
def enter(layout: Layout, workspace: Workspace, plan: Plan, i: int, left: int) -> None:
    """Make the tail of a variable the rows of a race between the first `left` labels."""
    offset = plan.state.offset
    set_range(layout, plan.source, 1, i)
    workspace.first[0] = layout.starts[i] + layout.heads[i]
    for arm in range(len(offset)):
        offset[arm] = -np.inf
    for a in range(left):
        offset[workspace.arms[a]] = workspace.values[workspace.arms[a]]


@part
def leave(workspace: Workspace, plan: Plan) -> None:
    """Note what a race took."""
    tally = plan.state.tally
    workspace.tally[READ] += tally[EVALUATIONS]
    workspace.tally[LOOKED] += tally[LOOKS]
    workspace.tally[ROWS] += plan.sizes[0] if tally[EXHAUSTED] else plan.state.rows[tally[LEADER]]


@part
def enter_tail(stream: Stream, layout: Layout, i: int) -> int:
    """Make the rows of the tail of a variable those of the stream; return how many."""
    streams, size = stream.streams, layout.starts[i + 1] - layout.starts[i] - layout.heads[i]
    streams.sizes[0] = streams.counts[0] = size
    streams.widths[0] = width_of(size)
    return size


@part
def set_range(layout: Layout, source: Source, side: int, i: int) -> None:
    """Set the range of the rewards: of all factors of a variable (side 0), or of its tail (side 1)."""
    for arm in range(source.arms):
        source.low[arm], source.high[arm] = layout.low[side, i], layout.high[side, i]


@part
def read_head(layout: Layout, workspace: Workspace, source: Source, certify: bool, i: int) -> int:
    """Read the head until one label is left or it ends; return how many labels are left."""
    set_range(layout, source, 0, i)
    line_up(workspace)
    head, done, level = layout.heads[i], 0, 0
    left = drop_beaten(workspace, len(workspace.arms), layout.reach[i, 0] if certify else np.inf)
    while done < head and left > certify:
        level += 1
        upto = min(look_at(level), head) if certify else head
        start = layout.starts[i]
        if not read_rows(workspace, source, start + done, start + upto, left, False):
            return 0
        workspace.tally[READ] += (upto - done) * left
        workspace.tally[ROWS] += upto - done
        workspace.tally[LOOKED] += certify
        left = drop_beaten(workspace, left, layout.reach[i, level] if certify else np.inf)
        done = upto
    return left


@part
def line_up(workspace: Workspace) -> None:
    """Start with every label, nothing read."""
    for arm in range(len(workspace.arms)):
        workspace.arms[arm], workspace.values[arm] = arm, workspace.offset[arm]


@part
def read_rows(workspace: Workspace, source: Source, first: int, last: int, left: int, weighs: bool) -> bool:
    """Add factors to the values of the first `left` labels; if asked, their sizes to what is spare."""
    for begin in range(first, last, source.chunk):
        count = min(last - begin, source.chunk)
        workspace.first[0] = begin
        if read(source, workspace.rows, count, workspace.arms, left, workspace.block, 0) == 0:
            return False
        # A part that all labels share decides nothing.
        shift = typical(workspace.block, workspace.arms[0], 0, count)
        for a in range(left):
            arm = workspace.arms[a]
            workspace.values[arm] += total(workspace.block, arm, 0, count, shift)
            if weighs:
                workspace.spare[arm] += total_size(workspace.block, arm, 0, count, shift)
    return True


@part
def drop_beaten(workspace: Workspace, left: int, reach: float) -> int:
    """Keep the labels that are possible, and that the unread factors could still make the best."""
    best = -np.inf
    for a in range(left):
        best = max(best, workspace.values[workspace.arms[a]])
    kept = 0
    for a in range(left):
        arm = workspace.arms[a]
        workspace.arms[kept] = arm
        kept += workspace.values[arm] > -np.inf and not workspace.values[arm] + reach < best
    return kept


@part
def best_of(workspace: Workspace, left: int) -> int:
    """Give the best of the first `left` labels; of equals, the first."""
    best = workspace.arms[0]
    for a in range(1, left):
        if workspace.values[workspace.arms[a]] > workspace.values[best]:
            best = workspace.arms[a]
    return best


@part
def is_best(layout: Layout, workspace: Workspace, source: Source, i: int, label: int) -> bool:
    """Whether all factors of variable `i`, with the same noise, make `label` the best but for rounding."""
    line_up(workspace)
    set_range(layout, source, 0, i)
    for arm in range(len(workspace.arms)):
        workspace.spare[arm] = 0.0
    read_rows(workspace, source, layout.starts[i], layout.starts[i + 1], len(workspace.arms), True)
    best = best_of(workspace, len(workspace.arms))
    values = workspace.values
    return values[label] + slack(workspace, label) >= values[best] - slack(workspace, best)


@part
def slack(workspace: Workspace, label: int) -> float:
    """Give how far a value may be off by rounding, with the sizes of its factors in what is spare."""
    if workspace.values[label] == -np.inf:
        return 0.0
    return ROUNDING * workspace.spare[label] + FEW_ADDITIONS * (
        abs(workspace.offset[label]) + abs(workspace.values[label])
    )
