"""A label drawn from the few neighbours that ring: exact, and most factors are never read.

Poisson minibatches (Zhang and De Sa 2019). Let the factors of a variable, over the temperature, be
φ_k = l_k + g_k with 0 <= g_k <= b_k. By the label x that the variable has, neighbour k is given a number
s_k ~ Poisson(κ b_k + g_k(x)). Label and numbers together have a law ∝ e^U ∏ e^φ_k e^-g_k (κ b_k + g_k)^s_k.
So, given the numbers, the label has the law ∝ e^U ∏ (1 + g_k / κ b_k)^s_k, and from this it is drawn anew.
To draw one and then the other leaves the law of all variables as it is, whatever κ is.

Neighbours ring at the rate (κ + 1) b_k; a ring counts with probability (κ b_k + g_k) / (κ b_k + b_k). They
lie in strata, from one look of the layout to the next, in which l and b are the same for all. Let L be the
sum of the b_k: about (κ + 1) L rings are read. With few of them a label tends to stay what it is;
κ = max(1, L/2) costs about 4% of the effective draws (benchmarks/graph.py).
"""

from typing import NamedTuple

import numpy as np

from gumbelrace.core.jit import part
from gumbelrace.core.random import Bits, below, uniform
from gumbelrace.kernels.base import READ, ROWS, SITE
from gumbelrace.kernels.graph.heads import in_stratum, range_beyond, surplus
from gumbelrace.kernels.graph.layout import look_at
from gumbelrace.kernels.graph.state import Graph, Task, Workspace, set_range
from gumbelrace.population.base import CODE, FINE, Source, read


class Stratum(NamedTuple):
    """Neighbours whose factors have the same bounds."""

    low: float
    wide: float  # b, in units of the factors
    base: float  # κ b


@part
def add_rings(graph: Graph, workspace: Workspace, source: Source, task: Task, left: int) -> None:
    """Let the tail of a variable ring, and add to the values of its labels what that tells of them."""
    layout, i = graph.layout, workspace.tally[SITE]
    level, size = graph.reading.levels[i], layout.starts[i + 1] - layout.starts[i]
    kappa = surplus(range_beyond(layout, i, level) / task.temperature)
    wait = -np.log(uniform(task.noise))
    while look_at(level) < size:
        count, wide = in_stratum(layout, i, level), layout.high[i, level] - layout.low[i, level]
        # Time is counted in rings.
        wait -= (kappa + 1.0) * count * wide / task.temperature
        if wait < 0.0:
            set_range(layout, source, level, i)
            workspace.first[0] = layout.starts[i] + look_at(level)
        stratum = Stratum(layout.low[i, level], wide, kappa * wide)
        while wait < 0.0:
            rung, wait = pick_rung(workspace, task.noise, count, wait)
            kept = keep(workspace, source, task.noise, stratum, rung)
            weigh(workspace, source, task.temperature, stratum, (kept, left))
            if source.fault[CODE] != FINE:
                return
        level += 1


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
def keep(workspace: Workspace, source: Source, bits: Bits, stratum: Stratum, rung: int) -> int:
    """Keep the rings that count, by the label that the variable has; return how many."""
    picked, block, kept = workspace.picked, workspace.block, 0
    label = workspace.labels[workspace.tally[SITE]]
    workspace.current[0] = label
    if read(source, picked, rung, workspace.current, 1, block, 0) == 0:
        return 0
    for k in range(rung):
        picked[kept] = picked[k]
        rate = stratum.base + block[label, k] - stratum.low
        kept += uniform(bits) * (stratum.base + stratum.wide) < rate
    workspace.tally[READ] += rung
    workspace.tally[ROWS] += rung
    return kept


@part
def weigh(
    workspace: Workspace, source: Source, temperature: float, stratum: Stratum, counts: tuple[int, int]
) -> None:
    """Add to the values of the first labels what rings say of them."""
    (rung, left), block = counts, workspace.block
    if rung == 0 or read(source, workspace.picked, rung, workspace.arms, left, block, 0) == 0:
        return
    workspace.tally[READ] += rung * left
    for a in range(left):
        arm, ratio = np.uint64(workspace.arms[a]), 1.0
        for k in range(np.uint64(rung)):
            # At most 2 to the power of the rings that are read at a time.
            ratio *= 1.0 + (block[arm, k] - stratum.low) / stratum.base
        workspace.values[arm] += temperature * np.log(ratio)
