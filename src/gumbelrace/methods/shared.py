"""Arms that share their rows: a look reads random rows of all of them.

A race that is not worth running on ends with a scan of all that is left, in the order in which it lies.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import Bits, part
from gumbelrace.core.shuffle import Stream, forget_marks, mark_rows, rewind, unseen_rows
from gumbelrace.methods.reading import (
    KEPT,
    PIECE,
    SharedWorkspace,
    gather,
    new_block,
    new_rows,
    new_sample,
    open_look,
    total,
    typical,
)
from gumbelrace.methods.rules import ENDS, FAILS, GOES_ON, enter, finish, implements, judge, look, next_look
from gumbelrace.methods.state import (
    ALIVE,
    ARMS,
    EVALUATIONS,
    LEADER,
    NOBODY,
    TAKEN,
    RaceState,
    add,
    admit,
    drop,
    drop_ruled_out,
    is_possible,
    line_up,
    name_leader,
    new_state,
    rank,
)
from gumbelrace.population.base import CODE, FINE, IMPOSSIBLE, Floats, Source, read

# Projections from fewer rows than this share of the population are not trusted.
TRUSTED_SHARE = 1 / 32


def new_shared(
    rule: Any, source: Source, order: Stream, bits: tuple[Bits, Bits], sizes: NDArray[np.int64]
) -> SharedWorkspace:
    """Make room for races by a rule; the bits are those of the noise and those that choose rows."""
    return SharedWorkspace(
        rule,
        rule.working_memory(source.arms),
        source,
        order,
        *bits,
        sizes[:1].copy(),
        new_state(source.arms),
        new_sample(source, order, int(sizes[0]), rule.keeps),
        new_rows(source),
        new_block(source.arms, source.chunk),
    )


@implements(enter, SharedWorkspace)
def _enter(workspace: SharedWorkspace) -> None:
    admit(workspace.state, workspace.source)
    workspace.sample.runs[0] = 0


@implements(look, SharedWorkspace)
def _look(workspace: SharedWorkspace) -> int:
    rule, source, state, size = workspace.rule, workspace.source, workspace.state, workspace.sizes[0]
    count = next_look(rule, workspace, NOBODY)
    if count == 0:
        return ENDS
    taken = state.tally[TAKEN] + count
    open_look(workspace.sample, rule.keeps and (len(source.direct) > 0 or taken <= KEPT))
    if not gather(workspace, count):
        return FAILS
    state.tally[TAKEN] = taken
    rank(state, taken, size)
    judge(rule, workspace)
    drop(state)
    due = is_due(taken - count, taken, size)
    return ENDS if due and scan_is_cheaper(source, state, taken, size) else GOES_ON


@implements(finish, SharedWorkspace)
def _finish(workspace: SharedWorkspace) -> None:
    undecided = workspace.state.tally[ALIVE] != 1
    if undecided:
        scan(workspace)
    name_leader(workspace.state, undecided)
    rewind(workspace.order)


@part
def is_due(before: int, taken: int, size: int) -> bool:
    """Whether this look reached a new doubling of the least share from which one may project."""
    due = TRUSTED_SHARE * size
    while due <= before:
        due *= 2.0
    return due <= taken


@part
def scan_is_cheaper(source: Source, state: RaceState, taken: int, size: int) -> bool:
    """Whether reading all remaining rows in order costs less than the race is expected to."""
    left = size if len(source.direct) else size - taken
    raced, longest = 0.0, 0.0
    for a in range(state.tally[ALIVE]):
        if state.arms[a] != state.tally[LEADER]:
            rows = min(state.need[state.arms[a]], size) - taken
            raced += rows
            longest = max(longest, rows)
    return source.scan_speed * (raced + longest) > state.tally[ALIVE] * left


@part
def scan(workspace: SharedWorkspace) -> None:
    """Add up all rows not read yet, in the order in which they lie, and find the leader."""
    source, state, size = workspace.source, workspace.state, workspace.sizes[0]
    if len(source.direct):
        set_shift(state, source.direct, size)
        scan_table(source, size, state)
    else:
        scan_rows(workspace, state.tally[TAKEN])
        if state.tally[ALIVE] == 0:
            revive(workspace)
    if state.tally[ALIVE] == 0:
        source.fault[CODE] = IMPOSSIBLE
    else:
        for a in range(state.tally[ALIVE]):
            state.sums[state.arms[a]] += state.lost[state.arms[a]]
        rank(state, size, size)


@part
def set_shift(state: RaceState, rewards: Floats, count: int) -> None:
    """Choose from `count` columns of `rewards` what all rewards are reduced by, if no look has."""
    if np.isnan(state.shift[0]) and state.tally[ALIVE] > 0:
        state.shift[0] = typical(rewards, state.arms[0], 0, count)


@part
def revive(workspace: SharedWorkspace) -> None:
    """Scan what is left of the arms dropped before: all that had beaten them have shown a -inf."""
    source, state = workspace.source, workspace.state
    for arm in range(state.tally[ARMS]):
        if is_possible(state, source, arm) and source.fault[CODE] == FINE:
            state.arms[0], state.tally[ALIVE] = arm, 1
            scan_rows(workspace, state.rows[arm])
    line_up(state, source)


@part
def scan_table(source: Source, size: int, state: RaceState) -> None:
    """Add up all rewards where they lie, those read before too: to step around them takes longer."""
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        state.sums[arm], state.lost[arm] = 0.0, 0.0
        for first in range(0, size, PIECE):
            count = min(size - first, PIECE)
            add(state, arm, total(source.direct, arm, first, count, state.shift[0]))
        # What is read twice counts once.
        state.tally[EVALUATIONS] += size - state.rows[arm]


@part
def scan_rows(workspace: SharedWorkspace, taken: int) -> None:
    """Read and add up all but the first `taken` rows of the random order, a chunk after the other."""
    source, stream, state, size = workspace.source, workspace.order, workspace.state, workspace.sizes[0]
    rows, block = workspace.rows, workspace.block
    mark_rows(stream, size, taken, rows)
    for first in range(0, size, source.chunk):
        count = unseen_rows(stream, first, min(first + source.chunk, size), rows)
        if count > 0 and state.tally[ALIVE] > 0:
            got = read(source, rows, count, state.arms, state.tally[ALIVE], block, 0)
            if got == 0:
                return
            state.tally[EVALUATIONS] += got
            if source.verify:
                drop_ruled_out(state, source)
            set_shift(state, block, count)
            for a in range(state.tally[ALIVE]):
                arm = state.arms[a]
                add(state, arm, total(block, arm, 0, count, state.shift[0]))
    forget_marks(stream, size)
