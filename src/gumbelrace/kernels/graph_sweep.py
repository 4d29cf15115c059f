"""A sweep of Gibbs sampling over a graph, compiled: one race for each variable.

For variable i, the offset of a label is its unary log factor plus Gumbel noise times the
temperature, and the factors of i are the rows: these and their ranges are the same at every temperature.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from gumbelrace.jit import OPTIONS, Bits, call_next_uint64, kernel, part
from gumbelrace.kernels.graph_head import (
    Desk,
    Memo,
    best_of,
    is_best,
    new_memo,
    read_head,
    set_range,
)
from gumbelrace.kernels.graph_layout import Layout
from gumbelrace.kernels.tally import ALL, CHANGED, LOOKED, READ, ROWS, SITE, VISITED, WRONG
from gumbelrace.keyed import width_of
from gumbelrace.population.base import CODE, FINE, IMPOSSIBLE, Floats, Source
from gumbelrace.shuffle import Stream
from gumbelrace.solvers.engine import new_gear, race
from gumbelrace.solvers.field import EVALUATIONS, EXHAUSTED, LEADER, LOOKS, Field
from gumbelrace.solvers.race import Looks
from gumbelrace.solvers.reading import new_sample


class Task(NamedTuple):
    """How a sweep is made."""

    temperature: float  # 0: the best label, no noise
    certify: bool  # drop labels that the reach proves beaten
    audited: bool  # make every decision exactly as well


class Table(NamedTuple):
    """Rules of `Race` for tails of several sizes; a variable uses the row `of[i]`."""

    of: NDArray[np.int32]
    length: NDArray[np.int64]
    at: NDArray[np.int64]
    per_deviation: Floats
    per_range: Floats
    paired: bool


def rule_of(rules: Any, i: int) -> Any:
    """Give the rule for the tail of variable `i`."""
    raise NotImplementedError


@overload(rule_of, jit_options=OPTIONS, strict=False)
def _rule_of(rules: Any, i: int) -> Callable[..., Any]:
    if getattr(rules, "instance_class", None) is Table:
        return _looks_of
    return lambda rules, i: rules


def _looks_of(rules: Table, i: int) -> Looks:
    row = rules.of[i]
    m = rules.length[row]
    return Looks(
        rules.at[row, :m], rules.per_deviation[row, :m], rules.per_range[row, :m], rules.paired, True
    )


@kernel
def sweep(
    rules: Any,
    layout: Layout,
    unary: Floats,
    desk: Desk,
    source: Source,
    stream: Stream,
    task: Task,
    bits: tuple[Bits, Bits],
    order: NDArray[np.int64],
) -> None:
    """Visit the variables in the order given; the bits are those of the noise, and of the rows."""
    noise, of_rows = bits
    gear, sample, memo = new_gear(rule_of(rules, 0), source), new_sample(source), new_memo(source)
    for i in order:
        desk.tally[SITE] = i
        draw_offset(memo, unary, task, noise, i)
        left = read_head(layout, desk, source, memo, task.certify, i)
        if left > 1 and has_tail(layout, i):
            rule, size = rule_of(rules, i), enter_tail(stream, layout, i)
            enter(layout, desk, source, memo, i, left)
            sample = race(rule, gear, source, stream, of_rows, size, memo.values, sample)
            leave(desk, memo, gear.field, size)
            left = 1
        if left == 0 and source.fault[CODE] == FINE:
            source.fault[CODE] = IMPOSSIBLE
        if source.fault[CODE] != FINE:
            return
        label = best_of(memo, left)
        if task.audited:
            desk.tally[WRONG] += not is_best(layout, desk, source, memo, i, label)
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
def gumbel(bits: Bits) -> float:
    """Draw a standard Gumbel variable."""
    # 52 random bits and a half: strictly between 0 and 1, without rounding.
    drawn = call_next_uint64(bits.next_uint64, bits.state) >> np.uint64(12)
    uniform = (np.float64(drawn) + 0.5) * 2.0**-52
    return -np.log(-np.log(uniform))


@part
def enter(layout: Layout, desk: Desk, source: Source, memo: Memo, i: int, left: int) -> None:
    """Make the tail of a variable the rows of a race between the first `left` labels."""
    set_range(layout, source, 1, i)
    desk.first[0] = layout.starts[i] + layout.heads[i]
    for arm in range(len(memo.values)):
        memo.spare[arm], memo.values[arm] = memo.values[arm], -np.inf
    for a in range(left):
        memo.values[memo.arms[a]] = memo.spare[memo.arms[a]]


@part
def leave(desk: Desk, memo: Memo, field: Field, size: int) -> None:
    """Note the winner of a race, and what it took."""
    tally = field.tally
    memo.arms[0] = tally[LEADER]
    desk.tally[READ] += tally[EVALUATIONS]
    desk.tally[LOOKED] += tally[LOOKS]
    desk.tally[ROWS] += size if tally[EXHAUSTED] else field.rows[tally[LEADER]]


@part
def enter_tail(stream: Stream, layout: Layout, i: int) -> int:
    """Make the rows of the tail of a variable those of the stream; return how many."""
    streams, size = stream.streams, layout.starts[i + 1] - layout.starts[i] - layout.heads[i]
    streams.sizes[0] = streams.counts[0] = size
    streams.widths[0] = width_of(size)
    return size
