"""The one race: read random rows of the arms still in it, drop arms, until one is left.

Every method on arms that share their rows is this loop with a rule of its own (see `rules`). It is compiled
once for each rule and called by its address, from Python and from the compiled steps of kernels alike. They
put the offsets of the arms into `Plan.field`, call, and find there who has won.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from gumbelrace.core.jit import OPTIONS, PART, Bits, call_entry, kernel, part
from gumbelrace.core.shuffle import Stream, rewind
from gumbelrace.core.structs import ENTRY, Entries, read_stored
from gumbelrace.methods.field import (
    ALIVE,
    AT_ONCE,
    EXHAUSTED,
    LEADER,
    QUESTION,
    TAKEN,
    Field,
    admit,
    drop,
    new_field,
    rank,
    reset,
)
from gumbelrace.methods.questions import add_noise
from gumbelrace.methods.reading import KEPT, Sample, gather, new_block, new_rows, new_sample, open_look
from gumbelrace.methods.results import Results, record
from gumbelrace.methods.rules import begin, judge, next_look, run, runs_itself
from gumbelrace.methods.scanning import is_due, scan, scan_is_cheaper
from gumbelrace.population.base import CODE, FINE, Floats, Source


class Workspace(NamedTuple):
    """All that races by a rule need, laid out once for many of them."""

    rule: Any
    work: Any  # of the rule
    source: Source
    stream: Stream
    noise: Bits
    bits: Bits
    size: NDArray[np.int64]  # how many rows there are
    field: Field
    sample: Sample
    rows: NDArray[np.int64]
    block: Floats


class Plan(NamedTuple):
    """What compiled code needs to have a race run: what to call, and where question and answer lie."""

    address: int
    words: int
    size: NDArray[np.int64]
    field: Field
    source: Source


class Prepared(NamedTuple):
    """A plan, and what must stay alive as long as it is in use."""

    plan: Plan
    kept_alive: Any


def prepared(rule: Any, source: Source, stream: Stream, bits: tuple[Bits, Bits], size: int) -> Prepared:
    """Make a workspace, and compile the race by this rule unless that was done before.

    The bits are those of the noise and those that choose rows.
    """
    workspace = Workspace(
        rule,
        rule.working_memory(source.arms),
        source,
        stream,
        *bits,
        np.array([size]),
        new_field(source.arms),
        new_sample(source, stream, size, rule.keeps),
        new_rows(source),
        new_block(source.arms, source.chunk),
    )
    kept = ENTRIES.stored(workspace, (type(rule), source.direct.flags.c_contiguous))
    return Prepared(Plan(kept.entry, kept.address, workspace.size, workspace.field, source), kept)


def _entry(name: str) -> Any:
    """Compile the answers of a rule."""

    @numba.cfunc(ENTRY, cache=True, **OPTIONS)
    def answer(words):  # type: ignore[no-untyped-def]
        workspace = read_stored(words, name)
        run(workspace.rule, workspace)
        return 0

    return answer


ENTRIES = Entries(_entry)


@part
def answer(plan: Plan) -> int:
    """Run a race between the arms whose offsets lie in `plan.field`; give the winner."""
    call_entry(plan.address, plan.words)
    return plan.field.tally[LEADER]


@kernel
def answer_each(plan: Plan, offsets: Floats, results: Results) -> None:
    """Answer once for each row of `offsets`."""
    offset = plan.field.offset
    for draw in range(len(offsets)):
        for arm in range(len(offset)):
            offset[arm] = offsets[draw, arm]
        answer(plan)
        if plan.source.fault[CODE] != FINE:
            return
        record(plan.field, results, draw)


@overload(run, jit_options=PART, strict=False)
def _run(rule: Any, workspace: Any) -> Callable[..., None] | None:
    # Rules that do not say how they run race.
    return None if rule.instance_class in runs_itself else race


def race(rule: Any, workspace: Workspace) -> None:
    """Run one race; what it found is in `field.tally`."""
    source, field, size = workspace.source, workspace.field, workspace.size[0]
    add_noise(field.tally[QUESTION], field.temperature[0], field.offset, workspace.noise)
    reset(field, source)
    admit(field, source)
    workspace.sample.runs[0] = 0
    begin(rule, workspace.work, source, field, size)
    drop(field)
    while field.tally[ALIVE] > 1 and not field.tally[AT_ONCE]:
        count = next_look(rule, field.tally[TAKEN], size)
        if count == 0:
            break
        if not look(workspace, count):
            return
        taken = field.tally[TAKEN]
        if is_due(taken - count, taken, size) and scan_is_cheaper(source, field, taken, size):
            break
    finish(workspace)


@part
def look(workspace: Workspace, count: int) -> bool:
    """Read `count` more rows and drop the arms that they rule out; False after a fault."""
    rule, source, stream, field = workspace.rule, workspace.source, workspace.stream, workspace.field
    sample, size = workspace.sample, workspace.size[0]
    taken = field.tally[TAKEN] + count
    open_look(sample, rule.keeps and (len(source.direct) > 0 or taken <= KEPT))
    if not gather(source, stream, workspace.bits, field, sample, workspace.rows, count):
        return False
    field.tally[TAKEN] = taken
    rank(field, taken, size)
    judge(rule, workspace.work, source, field, sample, taken, size)
    drop(field)
    return True


@part
def finish(workspace: Workspace) -> None:
    """Name the winner: the only arm left, or the leader after all rows."""
    field, stream = workspace.field, workspace.stream
    field.tally[EXHAUSTED] = field.tally[ALIVE] != 1
    if field.tally[EXHAUSTED]:
        rows, block, taken = workspace.rows, workspace.block, field.tally[TAKEN]
        scan(workspace.source, stream, workspace.size[0], field, rows, block, taken)
    else:
        field.tally[LEADER] = field.arms[0]
    rewind(stream)
