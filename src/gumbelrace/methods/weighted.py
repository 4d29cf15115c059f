"""Rows that are drawn with replacement, by their weights: what is seen more often counts less."""

import numpy as np

from gumbelrace.core.jit import part
from gumbelrace.core.orders import pick_rows
from gumbelrace.methods.reading import reduced
from gumbelrace.methods.shared import SharedWorkspace
from gumbelrace.methods.state import ALIVE, EVALUATIONS, drop_ruled_out
from gumbelrace.population.base import Floats, read


@part
def draw_by_weights(workspace: SharedWorkspace, rewards: Floats, first: int, count: int) -> bool:
    """Read rows, at most a chunk, into the columns of `rewards` from `first` on; False after a fault."""
    source, state, rows = workspace.source, workspace.state, workspace.rows
    pick_rows(workspace.bits, workspace.order.weights, workspace.sizes[0], rows, count)
    got = read(source, rows, count, state.arms, state.tally[ALIVE], rewards, first)
    state.tally[EVALUATIONS] += got
    if got > 0 and source.verify:
        drop_ruled_out(state, source)
    return got > 0


@part
def weigh(workspace: SharedWorkspace, rewards: Floats, first: int, count: int) -> None:
    """Divide what rewards differ by from the first arm's by weights (Horvitz & Thompson 1952)."""
    state, chance, begin = workspace.state, workspace.order.weights.chance, np.uint64(first)
    one = np.uint64(state.arms[0])
    for a in range(state.tally[ALIVE] - 1, -1, -1):  # the first arm comes last: all others need it
        j = np.uint64(state.arms[a])
        for i in range(np.uint64(count)):
            apart = reduced(rewards[j, begin + i], rewards[one, begin + i])
            rewards[j, begin + i] = apart / chance[workspace.rows[i]]
