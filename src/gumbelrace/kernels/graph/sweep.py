"""A sweep of Gibbs sampling over a graph, compiled: one draw for each variable.

For variable i, the offset of a label is its unary log factor, and the factors of i are the rows: these and
their ranges are the same at every temperature. Who answers owns the noise: of a race, it is added to the
offset beforehand, so that the head can prove labels beaten; who absorbs the tail is asked for a draw; and
given which neighbours ring (`rings`), the sweep draws by itself.
"""

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import kernel, part
from gumbelrace.core.orders import Stream, width_of
from gumbelrace.kernels.base import ALL, CHANGED, LOOKED, READ, ROWS, SITE, VISITED, WRONG
from gumbelrace.kernels.graph.heads import Reading
from gumbelrace.kernels.graph.layout import Layout, look_at
from gumbelrace.kernels.graph.rings import add_rings
from gumbelrace.kernels.graph.state import ABSORBED, RACED, RINGS, Graph, Task, Workspace, set_range
from gumbelrace.methods.loop import Plan, answer
from gumbelrace.methods.reading import FEW_ADDITIONS, ROUNDING, total, total_size, typical
from gumbelrace.methods.state import DRAWN, EVALUATIONS, EXHAUSTED, LEADER, LOOKS, add_noise
from gumbelrace.population.base import CODE, FINE, IMPOSSIBLE, Floats, Source, read


@kernel
def sweep(
    plan: Plan,
    stream: Stream,
    graph: Graph,
    workspace: Workspace,
    task: Task,
    order: NDArray[np.int64],
) -> None:
    """Visit the variables in the order given."""
    source, (layout, reading, _), temperature = plan.source, graph, task.temperature
    for i in order:
        workspace.tally[SITE] = i
        put_offset(workspace, graph.unary, i)
        if task.tail == RACED:
            add_noise(DRAWN, temperature, workspace.offset, task.noise)
        left = read_head(graph, workspace, source, task.certify, i)
        if left > 1 and reading.tails[i] > 0:
            if task.tail == RINGS:
                add_rings(graph, workspace, source, task, left)
            else:
                plan.sizes[0] = enter_tail(stream, reading, i)
                enter(graph, workspace, plan, i, left)
                workspace.arms[0] = answer(plan)
                leave(workspace, plan)
                left = 1
        if left > 1 and task.tail == ABSORBED:
            skip(graph, workspace, temperature, i)
        if task.tail != RACED and left > 1:
            add_noise(DRAWN, temperature, workspace.values, task.noise)
        if left == 0 and source.fault[CODE] == FINE:
            source.fault[CODE] = IMPOSSIBLE
        if source.fault[CODE] != FINE:
            return
        label = best_of(workspace, left)
        if task.audited:
            workspace.tally[WRONG] += not is_best(layout, workspace, source, i, label)
        settle(layout, workspace, source, i, label)


@kernel
def draw_again(
    plan: Plan,
    stream: Stream,
    graph: Graph,
    workspace: Workspace,
    task: Task,
    visits: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> None:
    """Visit a variable again and again, each time with the label given; put the new one in its place."""
    order, labels = visits
    for k in range(len(labels)):
        workspace.labels[order[0]] = labels[k]
        sweep(plan, stream, graph, workspace, task, order)
        labels[k] = workspace.labels[order[0]]


@kernel
def add_up(plan: Plan, graph: Graph, workspace: Workspace, i: int) -> None:
    """Put the exact log weights of the labels of a variable into the values, but for a part they share."""
    starts = graph.layout.starts
    put_offset(workspace, graph.unary, i)
    line_up(workspace)
    set_range(graph.layout, plan.source, 0, i)
    read_rows(workspace, plan.source, starts[i], starts[i + 1], len(workspace.arms), False)


@part
def settle(layout: Layout, workspace: Workspace, source: Source, i: int, label: int) -> None:
    """Give a variable its label, and count it."""
    workspace.tally[ALL] += (layout.starts[i + 1] - layout.starts[i]) * source.arms
    workspace.tally[VISITED] += 1
    workspace.tally[CHANGED] += workspace.labels[i] != label
    workspace.labels[i] = label


@part
def put_offset(workspace: Workspace, unary: Floats, i: int) -> None:
    """Put the unary log factors into the offset."""
    row = min(i, len(unary) - 1)
    for arm in range(len(workspace.offset)):
        workspace.offset[arm] = unary[row, arm]


@part
def enter(graph: Graph, workspace: Workspace, plan: Plan, i: int, left: int) -> None:
    """Make the tail of a variable the rows of a draw of one of the first `left` labels."""
    (layout, reading, _), offset = graph, plan.state.offset
    set_range(layout, plan.source, reading.levels[i], i)
    workspace.first[0] = layout.starts[i] + reading.heads[i]
    for arm in range(len(offset)):
        offset[arm] = -np.inf
    for a in range(left):
        offset[workspace.arms[a]] = workspace.values[workspace.arms[a]]


@part
def leave(workspace: Workspace, plan: Plan) -> None:
    """Note what the draw of a label from its tail took, and how far its law is off."""
    tally = plan.state.tally
    workspace.tally[READ] += tally[EVALUATIONS]
    workspace.tally[LOOKED] += tally[LOOKS]
    workspace.tally[ROWS] += plan.sizes[0] if tally[EXHAUSTED] else plan.state.rows[tally[LEADER]]
    workspace.law_error[0] += plan.state.law_error[0]


@part
def skip(graph: Graph, workspace: Workspace, temperature: float, i: int) -> None:
    """Note what the law can be off by if what lies beyond the head of a variable is not read."""
    layout, reading = graph.layout, graph.reading
    if reading.heads[i] < layout.starts[i + 1] - layout.starts[i]:
        off = np.tanh(layout.reach[i, reading.levels[i]] / (4.0 * temperature))
        workspace.law_error[0] += off


@part
def enter_tail(stream: Stream, reading: Reading, i: int) -> int:
    """Make the rows of the tail of a variable those of the stream; return how many."""
    streams, size = stream.streams, int(reading.tails[i])
    streams.sizes[0] = streams.counts[0] = size
    streams.widths[0] = width_of(size)
    return size


@part
def read_head(graph: Graph, workspace: Workspace, source: Source, certify: bool, i: int) -> int:
    """Read the head until one label is left or it ends; return how many labels are left."""
    layout, head, done, level = graph.layout, graph.reading.heads[i], 0, 0
    set_range(layout, source, 0, i)
    line_up(workspace)
    proves = certify and layout.known
    left = drop_beaten(workspace, len(workspace.arms), layout.reach[i, 0] if proves else np.inf)
    while done < head and left > certify:
        level += 1
        upto = min(look_at(level), head) if certify else head
        start = layout.starts[i]
        if not read_rows(workspace, source, start + done, start + upto, left, False):
            return 0
        workspace.tally[READ] += (upto - done) * left
        workspace.tally[ROWS] += upto - done
        workspace.tally[LOOKED] += certify
        left = drop_beaten(workspace, left, layout.reach[i, level] if proves else np.inf)
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
