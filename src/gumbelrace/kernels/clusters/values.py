"""Sums S[i, c] of a mention's values with every cluster of two and more, brought up to date when one moves.

The values are kept as well (single precision, n(n-1)/2 of them), so that no pair is computed twice, and a
cluster of one needs no sums. Memory: 2n² bytes, and 8n for each cluster of two and more.
"""

import numpy as np
from numpy.typing import NDArray

from gumbelrace.jit import kernel, part, routine
from gumbelrace.kernels.clusters.partition import CLUSTERS, UNPLACED, size_of
from gumbelrace.kernels.clusters.whole import NONE, Desk, Sums, add_up, queue
from gumbelrace.population.base import Source, read
from gumbelrace.population.pair_readers import MENTION

# Columns at first; they are doubled when they are used up.
FEWEST_COLUMNS = 64


def new_sums(size: int, used: bool) -> Sums:
    """Make room for sums; none at all if they are not used."""
    rows, columns = (size, FEWEST_COLUMNS) if used else (0, 0)
    free, count = np.arange(columns, dtype=np.int32), np.array([columns])
    column = np.full(size, NONE, np.int32)
    return Sums(np.zeros((rows, columns)), column, free, count, np.zeros(rows))


def enlarged(sums: Sums) -> Sums:
    """Give the same sums with twice as many columns."""
    rows, columns = sums.table.shape
    table = np.zeros((rows, 2 * columns))
    table[:, :columns] = sums.table
    free = np.concatenate([np.arange(columns, 2 * columns), sums.free]).astype(np.int32)
    return sums._replace(table=table, free=free, unused=sums.unused + columns)


def is_full(sums: Sums) -> bool:
    """Whether there is no room for another cluster (`needs_a_column`, for Python)."""
    return len(sums.table) > 0 and int(sums.unused[0]) == 0


@part
def is_used(sums: Sums) -> bool:
    """Whether sums are kept at all."""
    return len(sums.table) > 0


@part
def needs_a_column(sums: Sums) -> bool:
    """Whether there is no room for another cluster."""
    return is_used(sums) and sums.unused[0] == 0


@kernel
def forget(desk: Desk) -> None:
    """Give all columns back."""
    sums = desk.sums
    for label in range(len(sums.column)):
        if sums.column[label] != NONE:
            close_column(sums, label)


@kernel
def open_columns(desk: Desk) -> None:
    """Give every cluster of two and more that has none a column, as long as there are any."""
    partition, sums = desk.partition, desk.sums
    for s in range(partition.counts[CLUSTERS]):
        label = partition.ids[s]
        if size_of(partition, s) > 1 and sums.column[label] == NONE and sums.unused[0] > 0:
            open_column(sums, label)


@kernel
def add_lines(source: Source, desk: Desk, mentions: NDArray[np.int64]) -> None:
    """Add some mentions to the sums of their clusters."""
    sums, labels = desk.sums, desk.partition.labels
    for j in mentions:
        column = sums.column[labels[j]] if labels[j] != UNPLACED else NONE
        if column != NONE:
            if not read_line(desk, source, j):
                return
            add_line(sums, column)


@kernel
def read_all(source: Source, desk: Desk, mentions: NDArray[np.int64]) -> None:
    """Read the values of some mentions with all that come before them, for the store that keeps them."""
    for i in mentions:
        if not read_values(desk, source, i, i):
            return


@part
def moved(desk: Desk, source: Source, i: int, before: int) -> None:
    """Bring the sums up to date after a mention has moved from the cluster `before`."""
    partition, sums = desk.partition, desk.sums
    if not is_used(sums) or not read_line(desk, source, i):
        return
    if before != UNPLACED and sums.column[before] != NONE:
        if size_of(partition, partition.segment[before]) == 1:
            close_column(sums, before)
        else:
            subtract_line(desk, source, before)
    label = partition.labels[i]
    s = partition.segment[label]
    if size_of(partition, s) == 2:
        column = open_column(sums, label)
        add_line(sums, column)
        read_line(desk, source, partition.members[partition.starts[s]])
    if size_of(partition, s) > 1:
        add_line(sums, sums.column[label])


@part
def open_column(sums: Sums, label: int) -> int:
    """Give a cluster a column of zeros."""
    sums.unused[0] -= 1
    column = sums.free[sums.unused[0]]
    sums.column[label] = column
    for k in range(len(sums.table)):
        sums.table[k, column] = 0.0
    return column


@part
def close_column(sums: Sums, label: int) -> None:
    """Give the column of a cluster back."""
    sums.free[sums.unused[0]] = sums.column[label]
    sums.unused[0] += 1
    sums.column[label] = NONE


@part
def read_line(desk: Desk, source: Source, i: int) -> bool:
    """Put the values of mention `i` with all others into the line, and 0 for itself."""
    return read_values(desk, source, i, len(desk.partition.labels))


@part
def read_values(desk: Desk, source: Source, i: int, stop: int) -> bool:
    """Read the values of mention `i` with those before `stop`; into the line, if there is one."""
    batch, line, first = desk.batch, desk.sums.line, 0
    desk.site[MENTION] = i
    while first < stop:
        if first == i:
            if len(line):
                line[i] = 0.0
            first += 1
            continue
        count = min(len(batch.rows), (i if first < i else stop) - first)
        for k in range(count):
            batch.rows[k] = first + k
        if read(source, batch.rows, count, batch.first, 1, batch.values, 0) == 0:
            return False
        if len(line):
            for k in range(count):
                line[first + k] = batch.values[0, k]
        first += count
    return True


@part
def add_line(sums: Sums, column: int) -> None:
    """Add the line to a column."""
    for k in range(len(sums.line)):
        sums.table[k, column] += sums.line[k]


@part
def subtract_line(desk: Desk, source: Source, label: int) -> None:
    """Take the line out of the column of a cluster; what an infinite value hid is read again."""
    sums, column = desk.sums, desk.sums.column[label]
    for k in range(len(sums.line)):
        if sums.line[k] > -np.inf:
            sums.table[k, column] -= sums.line[k]
        else:
            sums.table[k, column] = total_with(desk, source, k, label)


@part
def total_with(desk: Desk, source: Source, i: int, label: int) -> float:
    """Sum the values of mention `i` with the members of a cluster, read anew."""
    s = desk.partition.segment[label]
    return sum_of_places(desk, source, i, s, desk.partition.starts[s + 1])


@routine
def sum_of_places(desk: Desk, source: Source, i: int, s: int, stop: int) -> float:
    """Sum the values of mention `i` with the members of a segment at places before `stop`."""
    partition, filled = desk.partition, 0
    desk.site[MENTION], desk.memo.sums[s] = i, 0.0
    for k in range(partition.starts[s], stop):
        if partition.members[k] != i:
            filled = queue(desk, source, filled, partition.members[k], s)
    add_up(desk, source, filled)
    return desk.memo.sums[s]


@kernel
def weight_of(source: Source, desk: Desk, mentions: NDArray[np.int64]) -> float:
    """Sum the values of some mentions with the members of their clusters that come before them."""
    partition, total = desk.partition, 0.0
    for i in mentions:
        if partition.labels[i] != UNPLACED:
            s = partition.segment[partition.labels[i]]
            total += sum_of_places(desk, source, i, s, partition.place[i])
    return total
