"""A label drawn from the few neighbours that ring: exact, and most factors are never read.

Poisson minibatches (Zhang and De Sa 2019). Let the factors of a variable, over the temperature, be
φ_k = l_k + g_k with 0 <= g_k <= b_k. By the label x that the variable has, neighbour k is given a number
s_k ~ Poisson(κ b_k + g_k(x)). Label and numbers together have a law ∝ e^U ∏ e^φ_k e^-g_k (κ b_k + g_k)^s_k.
So, given the numbers, the label has the law ∝ e^U ∏ (1 + g_k / κ b_k)^s_k, and from this it is drawn anew.
To draw one and then the other leaves the law of all variables as it is, whatever κ is. The other variables
are held: l_k may depend on their labels, and is the least that the factor is for any label.

Neighbours ring at the rate (κ + 1) b_k; a ring counts with probability (κ b_k + g_k) / (κ b_k + b_k). They
lie in strata, from one look of the layout to the next, in which b is the largest span. Let L be the sum of
the b_k: about (κ + 1) L rings are read. With few of them a label tends to stay what it is;
κ = max(1, L/2) costs about 4% of the effective draws (benchmarks/graph.py).
"""

import numpy as np

from gumbelrace.core.jit import part
from gumbelrace.core.random import Bits, below, uniform
from gumbelrace.kernels.base import READ, ROWS, SITE
from gumbelrace.kernels.graph.heads import in_stratum, span_beyond, surplus
from gumbelrace.kernels.graph.layout import look_at
from gumbelrace.kernels.graph.state import Graph, Task, Workspace, set_range
from gumbelrace.population.base import ARM, CODE, OUT_OF_RANGE, ROW, Source, read

# A factor may exceed its span by this share, by rounding.
ROUNDING = 1e-9


@part
def add_rings(graph: Graph, workspace: Workspace, source: Source, task: Task, left: int) -> None:
    """Let the tail of a variable ring, and add to the values of its labels what that tells of them."""
    layout, i = graph.layout, workspace.tally[SITE]
    level, size = graph.reading.levels[i], layout.starts[i + 1] - layout.starts[i]
    kappa = surplus(span_beyond(layout, i, level) / task.temperature)
    wait, readers = -np.log(uniform(task.noise)), with_current(workspace, left)
    while look_at(level) < size:
        count, wide = in_stratum(layout, i, level), layout.widest[i, level]
        # Time is counted in rings.
        wait -= (kappa + 1.0) * count * wide / task.temperature
        if wait < 0.0:
            set_range(layout, source, level, i)
            workspace.first[0] = layout.starts[i] + look_at(level)
        while wait < 0.0:
            rung, wait = pick_rung(workspace, task.noise, count, wait)
            if read(source, workspace.picked, rung, workspace.arms, readers, workspace.block, 0) == 0:
                return
            workspace.tally[READ] += rung * readers
            workspace.tally[ROWS] += rung
            if not weigh(workspace, source, task, (kappa, wide), (rung, readers)):
                return
        level += 1


@part
def with_current(workspace: Workspace, left: int) -> int:
    """Have the label that the variable has read as well, if the head has made it impossible."""
    label = workspace.labels[workspace.tally[SITE]]
    for a in range(left):
        if workspace.arms[a] == label:
            return left
    workspace.arms[left] = label
    return left + 1


@part
def pick_rung(workspace: Workspace, bits: Bits, count: int, wait: float) -> tuple[int, float]:
    """Pick a row for each ring before time 0, as many as can be read at a time; wait for the next."""
    rung = 0
    while wait < 0.0 and rung < len(workspace.picked):
        workspace.picked[rung] = below(bits, count)
        wait -= np.log(uniform(bits))
        rung += 1
    return rung, wait


@part
def weigh(
    workspace: Workspace, source: Source, task: Task, rates: tuple[float, float], counts: tuple[int, int]
) -> bool:
    """Add to the values of the labels what the rings that count say of them; False after a fault."""
    label, block, ratio = workspace.labels[workspace.tally[SITE]], workspace.block, workspace.spare
    (kappa, wide), (rung, readers) = rates, counts
    for a in range(readers):
        ratio[workspace.arms[a]] = 1.0
    for k in range(rung):
        low, high = extremes(workspace, readers, k)
        if high - low > wide * (1.0 + ROUNDING):
            source.fault[CODE], source.fault[ROW] = OUT_OF_RANGE, workspace.picked[k]
            source.fault[ARM] = label
            return False
        if uniform(task.noise) * (kappa + 1.0) * wide < kappa * wide + block[label, k] - low:
            for a in range(readers):
                arm = workspace.arms[a]
                # At most 2 to the power of the rings that are read at a time.
                ratio[arm] *= 1.0 + (block[arm, k] - low) / (kappa * wide)
    for a in range(readers):
        arm = workspace.arms[a]
        workspace.values[arm] += task.temperature * np.log(ratio[arm])
    return True


@part
def extremes(workspace: Workspace, readers: int, k: int) -> tuple[float, float]:
    """Give the lowest and the highest factor of a ring, of all labels that are read."""
    low, high = np.inf, -np.inf
    for a in range(readers):
        factor = workspace.block[workspace.arms[a], k]
        low, high = min(low, factor), max(high, factor)
    return low, high
