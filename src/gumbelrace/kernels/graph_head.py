"""Reading the factors of one variable in order, and what they prove (see `graph_layout`)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import part
from gumbelrace.kernels.graph_layout import Layout, look_at
from gumbelrace.kernels.tally import LOOKED, READ, ROWS
from gumbelrace.methods.reading import FEW_ADDITIONS, ROUNDING, new_block, total, total_size, typical
from gumbelrace.population.base import Floats, Source, read


class Memo(NamedTuple):
    """The labels of one variable."""

    offset: Floats
    values: Floats  # offset plus the factors read
    arms: NDArray[np.int64]  # the labels still possible come first
    block: Floats
    spare: Floats


class Desk(NamedTuple):
    """What one thread works on (compiled code changes the arrays)."""

    labels: NDArray[np.int32]
    first: NDArray[np.int64]  # the place of the reader's row 0 among all factors
    rows: NDArray[np.int64]  # 0, 1, 2...
    tally: NDArray[np.int64]
    memo: Memo


def new_memo(source: Source) -> Memo:
    """Make room for the labels of a variable."""
    d = source.arms
    (offset, values, spare), arms = np.empty((3, d)), np.empty(d, np.int64)
    return Memo(offset, values, arms, new_block(d, source.chunk), spare)


@part
def set_range(layout: Layout, source: Source, side: int, i: int) -> None:
    """Set the range of the rewards: of all factors of a variable (side 0), or of its tail (side 1)."""
    for arm in range(source.arms):
        source.low[arm], source.high[arm] = layout.low[side, i], layout.high[side, i]


@part
def read_head(layout: Layout, desk: Desk, source: Source, certify: bool, i: int) -> int:
    """Read the head until one label is left or it ends; return how many labels are left."""
    memo = desk.memo
    set_range(layout, source, 0, i)
    line_up(memo)
    head, done, level = layout.heads[i], 0, 0
    left = drop_beaten(memo, len(memo.arms), layout.reach[i, 0] if certify else np.inf)
    while done < head and left > certify:
        level += 1
        upto = min(look_at(level), head) if certify else head
        start = layout.starts[i]
        if not read_rows(desk, source, start + done, start + upto, left, False):
            return 0
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
def read_rows(desk: Desk, source: Source, first: int, last: int, left: int, weighs: bool) -> bool:
    """Add factors to the values of the first `left` labels; if asked, their sizes to what is spare."""
    memo = desk.memo
    for begin in range(first, last, source.chunk):
        count = min(last - begin, source.chunk)
        desk.first[0] = begin
        if read(source, desk.rows, count, memo.arms, left, memo.block, 0) == 0:
            return False
        # A part that all labels share decides nothing.
        shift = typical(memo.block, memo.arms[0], 0, count)
        for a in range(left):
            arm = memo.arms[a]
            memo.values[arm] += total(memo.block, arm, 0, count, shift)
            if weighs:
                memo.spare[arm] += total_size(memo.block, arm, 0, count, shift)
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
def is_best(layout: Layout, desk: Desk, source: Source, i: int, label: int) -> bool:
    """Whether all factors of variable `i`, with the same noise, make `label` the best but for rounding."""
    memo = desk.memo
    line_up(memo)
    set_range(layout, source, 0, i)
    for arm in range(len(memo.arms)):
        memo.spare[arm] = 0.0
    read_rows(desk, source, layout.starts[i], layout.starts[i + 1], len(memo.arms), True)
    best = best_of(memo, len(memo.arms))
    return memo.values[label] + slack(memo, label) >= memo.values[best] - slack(memo, best)


@part
def slack(memo: Memo, label: int) -> float:
    """Give how far a value may be off by rounding, with the sizes of its factors in what is spare."""
    if memo.values[label] == -np.inf:
        return 0.0
    return ROUNDING * memo.spare[label] + FEW_ADDITIONS * (
        abs(memo.offset[label]) + abs(memo.values[label])
    )
