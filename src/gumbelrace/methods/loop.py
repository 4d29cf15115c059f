"""The one race: read random rows of the arms still in it, drop arms, until one is left.

Every method is this loop with a rule of its own, and there are two ways to read: rows that all arms share,
and rows that each arm has for itself (see `rules`). It is compiled once for each rule and called by its
address, from Python and from the compiled steps of kernels alike. They put the offsets of the arms into
`Plan.state`, call, and find there who has won.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from gumbelrace.core.jit import OPTIONS, PART, call, kernel, part
from gumbelrace.core.orders import Stream
from gumbelrace.core.packed import ENTRY, Entries, read_stored
from gumbelrace.core.random import Bits
from gumbelrace.methods.independent import IndependentWorkspace, new_independent
from gumbelrace.methods.rules import ENDS, FAILS, begin, enter, finish, look, run, runs_itself
from gumbelrace.methods.shared import SharedWorkspace, new_shared
from gumbelrace.methods.state import (
    ALIVE,
    AT_ONCE,
    LEADER,
    QUESTION,
    RaceState,
    Results,
    add_noise,
    drop,
    record,
    reset,
)
from gumbelrace.population.base import CODE, FINE, Floats, Source

# What a plan calls that is never asked.
NOTHING = 0


class Plan(NamedTuple):
    """What compiled code needs to have a race run: what to call, and where question and answer lie."""

    address: int
    words: int
    sizes: NDArray[np.int64]  # how many rows there are; of independent arms, each arm's
    state: RaceState
    source: Source


class Prepared(NamedTuple):
    """A plan, and what must stay alive as long as it is in use."""

    plan: Plan
    kept_alive: Any


def new_workspace(
    rule: Any, source: Source, order: Any, bits: tuple[Bits, Bits], sizes: NDArray[np.int64]
) -> SharedWorkspace | IndependentWorkspace:
    """Make room for races by a rule; the order of rows says whether arms share them.

    The bits are those of the noise and those that choose rows.
    """
    kind = new_shared if isinstance(order, Stream) else new_independent
    return kind(rule, source, order, bits, sizes)


def prepared(workspace: SharedWorkspace | IndependentWorkspace) -> Prepared:
    """Plan to give answers by the rule of a workspace; compile them, unless that was done before."""
    kinds = type(workspace), type(workspace.rule), type(workspace.order)
    kept = ENTRIES.stored(workspace, (*kinds, workspace.source.direct.flags.c_contiguous))
    workspace.address[0] = kept.address
    plan = unasked(workspace)._replace(address=kept.entry, words=kept.address)
    return Prepared(plan, kept)


def unasked(workspace: SharedWorkspace | IndependentWorkspace) -> Plan:
    """Plan for those who need its parts but never ask for an answer: none is compiled."""
    return Plan(NOTHING, NOTHING, workspace.sizes, workspace.state, workspace.source)


def _entry(name: str, cache: bool) -> Any:
    """Compile the answers of a rule."""

    @numba.cfunc(ENTRY, cache=cache, **OPTIONS)
    def answer(words):  # type: ignore[no-untyped-def]
        workspace = read_stored(words, name)
        run(workspace.rule, workspace)
        return 0

    return answer


ENTRIES = Entries(_entry)


@part
def answer(plan: Plan) -> int:
    """Run a race between the arms whose offsets lie in `plan.state`; give the winner."""
    call(plan.address, (plan.words,))
    return plan.state.tally[LEADER]


@kernel
def answer_each(plan: Plan, offsets: Floats, results: Results) -> None:
    """Answer once for each row of `offsets`."""
    offset = plan.state.offset
    for draw in range(len(offsets)):
        for arm in range(len(offset)):
            offset[arm] = offsets[draw, arm]
        answer(plan)
        if plan.source.fault[CODE] != FINE:
            return
        record(plan.state, results, draw)


@overload(run, jit_options=PART, strict=False)
def _run(rule: Any, workspace: Any) -> Callable[..., None] | None:
    # Rules that do not say how they run race.
    return None if rule.instance_class in runs_itself else race


def race(rule: Any, workspace: Any) -> None:
    """Run one race; what it found is in `state.tally`."""
    state = workspace.state
    add_noise(state.tally[QUESTION], state.temperature[0], state.offset, workspace.noise)
    reset(state, workspace.source)
    enter(workspace)
    begin(rule, workspace)
    drop(state)
    while state.tally[ALIVE] > 1 and not state.tally[AT_ONCE]:
        found = look(workspace)
        if found == FAILS:
            return
        if found == ENDS:
            break
    finish(workspace)
