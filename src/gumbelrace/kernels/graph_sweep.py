"""A sweep of Gibbs sampling over a graph, compiled: one race for each variable.

For variable i, the offset of a label is its unary log factor plus Gumbel noise divided by the inverse
temperature, and the factors of i are the rows. Dividing the noise leaves the factors and their ranges as
they are at every temperature.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from gumbelrace.jit import OPTIONS, Bits, below, call_next_uint64, kernel, maker, part
from gumbelrace.kernels.graph_layout import Layout, look_at
from gumbelrace.population.base import CODE, FINE, IMPOSSIBLE, Floats, Source, read
from gumbelrace.shuffle import Stream
from gumbelrace.solvers.engine import (
    EVALUATIONS,
    EXHAUSTED,
    LEADER,
    LOOKS,
    Gear,
    Sample,
    new_block,
    new_gear,
    new_sample,
    race,
    total,
)
from gumbelrace.solvers.race import Looks

# Tails this long are read in blocks that fill cache lines: 128 bytes of weights, 64 of neighbours.
LONG_TAIL, BLOCK = 1024, 16
# Sums that differ by less than this share of their size are equal but for rounding.
ROUNDING = 1e-10

# Entries of Desk.tally
READ, ALL, LOOKED, CHANGED, VISITED, WRONG, SITE, ROWS = range(8)


class Desk(NamedTuple):
    """What one thread works on (compiled code changes the arrays)."""

    labels: NDArray[np.int32]
    first: NDArray[np.int64]  # the place of the reader's row 0 among all factors
    rows: NDArray[np.int64]  # 0, 1, 2...
    singly: Stream  # over tails of any length: a prefix of these arrays
    in_blocks: Stream
    source: Source
    tally: NDArray[np.int64]


class Task(NamedTuple):
    """How a sweep is made."""

    inverse_temperature: float  # inf: the best label, no noise
    at_random: bool  # visit variables picked at random, not one after the other
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


class Memo(NamedTuple):
    """The labels of one variable."""

    offset: Floats
    values: Floats  # offset plus the factors read
    arms: NDArray[np.int64]  # the labels still possible come first
    block: Floats
    noise: Floats


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
    rules: Any, layout: Layout, unary: Floats, desk: Desk, task: Task, bits: Bits, first: int, last: int
) -> None:
    """Visit the variables from `first` to before `last`, or as many at random."""
    source, n = desk.source, len(desk.labels)
    gear, sample, memo = new_gear(rule_of(rules, 0), source), new_sample(source), new_memo(source)
    for visit in range(first, last):
        i = np.int64(below(bits, n)) if task.at_random else visit
        desk.tally[SITE] = i
        draw_offset(memo, unary[min(i, len(unary) - 1)], task.inverse_temperature, bits)
        label, sample = choose(rules, layout, desk, task, bits, gear, memo, sample, i)
        if source.fault[CODE] != FINE:
            return
        if task.audited:
            desk.tally[WRONG] += not is_best(layout, desk, memo, i, label)
        desk.tally[ALL] += (layout.starts[i + 1] - layout.starts[i]) * source.arms
        desk.tally[VISITED] += 1
        desk.tally[CHANGED] += desk.labels[i] != label
        desk.labels[i] = label


@maker
def new_memo(source: Source) -> Memo:
    """Make room for the labels of a variable."""
    d = source.arms
    return Memo(
        np.empty(d), np.empty(d), np.empty(d, np.int64), new_block(source, source.chunk), np.empty(d)
    )


@part
def draw_offset(memo: Memo, unary: Floats, inverse_temperature: float, bits: Bits) -> None:
    """Put the unary log factors plus noise into the offset."""
    noisy = inverse_temperature < np.inf
    for arm in range(len(unary)):
        memo.offset[arm] = unary[arm]
        if noisy:
            memo.offset[arm] += gumbel(bits) / inverse_temperature


@part
def gumbel(bits: Bits) -> float:
    """Draw a standard Gumbel variable."""
    # 52 random bits and a half: strictly between 0 and 1, without rounding.
    drawn = call_next_uint64(bits.next_uint64, bits.state) >> np.uint64(12)
    uniform = (np.float64(drawn) + 0.5) * 2.0**-52
    return -np.log(-np.log(uniform))


@maker
def choose(
    rules: Any,
    layout: Layout,
    desk: Desk,
    task: Task,
    bits: Bits,
    gear: Gear,
    memo: Memo,
    sample: Sample,
    i: int,
) -> tuple[int, Sample]:
    """Find the best label of variable `i`: head first, then a race on the tail between those left."""
    left = read_head(layout, desk, memo, task.certify, i)
    head, degree = layout.heads[i], layout.starts[i + 1] - layout.starts[i]
    if left == 0 and desk.source.fault[CODE] == FINE:
        desk.source.fault[CODE] = IMPOSSIBLE
    if left <= 1 or head == degree or desk.source.fault[CODE] != FINE:
        return best_of(memo, left), sample
    set_range(layout, desk.source, 1, i)
    desk.first[0] = layout.starts[i] + head
    only(memo, left)
    stream = tail_stream(desk, degree - head)
    rule = rule_of(rules, i)
    sample = race(rule, gear, desk.source, stream, bits, degree - head, memo.values, sample)
    count_race(gear, desk, degree - head)
    return gear.field.tally[LEADER], sample


@part
def count_race(gear: Gear, desk: Desk, size: int) -> None:
    """Add what a race took to the tally."""
    tally = gear.field.tally
    desk.tally[READ] += tally[EVALUATIONS]
    desk.tally[LOOKED] += tally[LOOKS]
    desk.tally[ROWS] += size if tally[EXHAUSTED] else gear.field.rows[tally[LEADER]]


@maker
def tail_stream(desk: Desk, size: int) -> Stream:
    """Give a random order of the rows of a tail; streams are left as they were found."""
    stream = desk.in_blocks if size >= LONG_TAIL else desk.singly
    blocks = (size + stream.block - 1) // stream.block
    return Stream(
        stream.block,
        stream.order,
        stream.blocks[:blocks],
        stream.swaps[:blocks],
        stream.cursor,
        stream.seen[:size],
    )


@part
def set_range(layout: Layout, source: Source, side: int, i: int) -> None:
    """Set the range of the rewards: of all factors of a variable (side 0), or of its tail (side 1)."""
    for arm in range(source.arms):
        source.low[arm], source.high[arm] = layout.low[side, i], layout.high[side, i]


@part
def read_head(layout: Layout, desk: Desk, memo: Memo, certify: bool, i: int) -> int:
    """Read the head until one label is left or it ends; return how many labels are left."""
    set_range(layout, desk.source, 0, i)
    line_up(memo)
    head, done, level = layout.heads[i], 0, 0
    left = drop_beaten(memo, len(memo.arms), layout.reach[i, 0] if certify else np.inf)
    while done < head and left > certify:
        level += 1
        upto = min(look_at(level), head) if certify else head
        if not read_rows(desk, memo, layout.starts[i], done, upto, left):
            return left
        desk.tally[READ] += (upto - done) * left
        desk.tally[ROWS] += upto - done
        desk.tally[LOOKED] += certify
        left = drop_beaten(memo, left, layout.reach[i, level] if certify else np.inf)
        done = upto
    return left


@part
def line_up(memo: Memo) -> None:
    """Start with every label, nothing read."""
    for arm in range(len(memo.arms)):
        memo.arms[arm], memo.values[arm] = arm, memo.offset[arm]


@part
def read_rows(desk: Desk, memo: Memo, start: int, first: int, last: int, left: int) -> bool:
    """Add the rows from `first` to before `last` to the values of the first `left` labels."""
    for begin in range(first, last, desk.source.chunk):
        count = min(last - begin, desk.source.chunk)
        desk.first[0] = start + begin
        if read(desk.source, desk.rows, count, memo.arms, left, memo.block, 0) == 0:
            return False
        for a in range(left):
            memo.values[memo.arms[a]] += total(memo.block, memo.arms[a], 0, count)
    return True


@part
def drop_beaten(memo: Memo, left: int, reach: float) -> int:
    """Keep the labels that are possible, and that the unread factors could still make the best."""
    best = -np.inf
    for a in range(left):
        best = max(best, memo.values[memo.arms[a]])
    kept = 0
    for a in range(left):
        arm = memo.arms[a]
        memo.arms[kept] = arm
        kept += memo.values[arm] > -np.inf and not memo.values[arm] + reach < best
    return kept


@part
def best_of(memo: Memo, left: int) -> int:
    """Give the best of the first `left` labels; of equals, the first."""
    best = memo.arms[0]
    for a in range(1, left):
        if memo.values[memo.arms[a]] > memo.values[best]:
            best = memo.arms[a]
    return best


@part
def only(memo: Memo, left: int) -> None:
    """Rule out all but the first `left` labels."""
    for arm in range(len(memo.noise)):
        memo.noise[arm], memo.values[arm] = memo.values[arm], -np.inf
    for a in range(left):
        memo.values[memo.arms[a]] = memo.noise[memo.arms[a]]


@part
def is_best(layout: Layout, desk: Desk, memo: Memo, i: int, label: int) -> bool:
    """Whether all factors of variable `i`, with the same noise, make `label` the best but for rounding."""
    line_up(memo)
    set_range(layout, desk.source, 0, i)
    start, stop = layout.starts[i], layout.starts[i + 1]
    read_rows(desk, memo, start, 0, stop - start, len(memo.arms))
    best = memo.values[best_of(memo, len(memo.arms))]
    return memo.values[label] >= best - ROUNDING * abs(best)
