"""Arms that share their rows: a look reads random rows of all of them.

A race that is not worth running on ends with a scan of all that is left, in the order in which it lies.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import call, part
from gumbelrace.core.orders import Stream, rewind
from gumbelrace.core.random import Bits
from gumbelrace.methods.reading import (
    KEPT,
    READING,
    THE_REST,
    Sample,
    SharedRows,
    new_block,
    new_rows,
    new_sample,
    open_look,
)
from gumbelrace.methods.rules import ENDS, FAILS, GOES_ON, enter, finish, implements, judge, look, next_look
from gumbelrace.methods.state import (
    ALIVE,
    LEADER,
    NOBODY,
    TAKEN,
    WANTED,
    RaceState,
    admit,
    drop,
    name_leader,
    new_state,
    rank,
)
from gumbelrace.population.base import Floats, Source

# Projections from fewer rows than this share of the population are not trusted.
TRUSTED_SHARE = 1 / 32


class SharedWorkspace(NamedTuple):
    """All that races of arms that share their rows need, laid out once for many of them.

    It begins with the fields of `SharedRows`, so that it lies in memory where these lie.
    """

    source: Source
    order: Stream
    bits: Bits  # that choose rows
    sizes: NDArray[np.int64]
    state: RaceState
    sample: Sample
    rows: NDArray[np.int64]
    block: Floats
    rule: Any
    work: Any  # of the rule
    noise: Bits
    reading: int  # address of what reads rows
    address: NDArray[np.int64]  # where the workspace lies: put there when it is known


def new_shared(
    rule: Any, source: Source, order: Stream, bits: tuple[Bits, Bits], sizes: NDArray[np.int64]
) -> SharedWorkspace:
    """Make room for races by a rule; the bits are those of the noise and those that choose rows."""
    noise, of_rows = bits
    shared = new_shared_rows(rule, source, order, of_rows, sizes)
    reading = READING.entry(shared, source.direct.flags.c_contiguous)
    work = rule.working_memory(source.arms)
    return SharedWorkspace(*shared, rule, work, noise, reading, np.zeros(1, np.int64))


def new_shared_rows(
    rule: Any, source: Source, order: Stream, bits: Bits, sizes: NDArray[np.int64]
) -> SharedRows:
    """Make room for reading rows that arms share."""
    state, sample = new_state(source.arms), new_sample(source, order, int(sizes[0]), rule.keeps)
    rows, block = new_rows(source), new_block(source.arms, source.chunk)
    return SharedRows(source, order, bits, sizes[:1].copy(), state, sample, rows, block)


@part
def read_more(workspace: SharedWorkspace, wanted: int) -> bool:
    """Read so many more rows of every arm in the race, or `THE_REST`; False after a fault."""
    workspace.state.tally[WANTED] = wanted
    return call(workspace.reading, (workspace.address[0],)) == 1


@part
def by_weights(workspace: SharedWorkspace) -> bool:
    """Whether rows are drawn with replacement, by their weights."""
    return len(workspace.order.weights.keep) > 0 and len(workspace.source.direct) == 0


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
    if not read_more(workspace, count):
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
        read_more(workspace, THE_REST)
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
