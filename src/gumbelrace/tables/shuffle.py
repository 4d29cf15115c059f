"""Rows of a table written in random order, in bounded memory.

Every row goes to a bucket, all with the same chance and each row by itself; a bucket, which fits into
memory, is put in uniform order, and the buckets are written one after the other. Whatever the sizes of the
buckets turn out to be, all orders of the rows are equally likely (Rao 1961; Sandelius 1962). Buckets fit
into the processor's cache where they can, so that rows change places there; what is written is written by
another thread meanwhile.
"""

import math
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.atomic import UNFINISHED, alone, named, unfinished, unfinished_path
from gumbelrace.core.random import as_generator
from gumbelrace.errors import InvalidArgument, InvalidFile
from gumbelrace.tables.ahead import Behind
from gumbelrace.tables.disk import DiskTable
from gumbelrace.tables.population import SILENT, Advance, Progress
from gumbelrace.tables.random_moves import random_order, scattered
from gumbelrace.tables.record import check_no_other_record, record_of, record_path, write_record
from gumbelrace.tables.rowwise import Bytes, Rowwise
from gumbelrace.tables.rowwriter import open_writer, write_all
from gumbelrace.tables.writing import check_table_output

GIGABYTE = 10**9
# Share of the memory for a bucket and the order of its rows, and for a block that is scattered.
BUCKET_SHARE, BLOCK_SHARE = 0.5, 0.1
LARGEST_BLOCK, ORDER_BYTES = 2**25, 8
# Files that a process may have open, with some to spare; what a bucket is given of a block, at least; and
# what a processor's cache holds.
MOST_BUCKETS, LEAST_PART, CACHED = 800, 2**15, 2**23
LEAST_MEMORY = 16 * 2**20
ROOM_TO_SPARE = 1.05  # a head, row groups


class Plan(NamedTuple):
    """How a table is cut up."""

    buckets: int
    block: int  # rows that are scattered, or written, at a time


def shuffle(
    table: DiskTable,
    target: str | os.PathLike[str],
    *,
    seed: int = 0,
    memory: float = GIGABYTE,
    missing: bool = False,
    progress: Progress = SILENT,
) -> None:
    """Write the rows of a table to a file, in random order.

    Beside the file is a record, a JSON file with the columns, the number of rows, the seed and a checksum:
    `open_table` then knows that the rows lie in random order. There is either all of the file or nothing.

    Parameters
    ----------
    table : DiskTable
        The table; see `gumbelrace.open_table`.
    target : str or path
        A .npy, .parquet or .csv file. Columns keep their types.
    seed : int
        The same seed gives the same order.
    memory : float
        Bytes of memory to use, about.
    missing : bool
        Whether numbers may be missing (NaN).
    progress : callable
        ``progress(doing, total)`` is a context that gives a function, which is told how much is done.

    Examples
    --------
    >>> import pathlib, tempfile, numpy as np, gumbelrace as gr
    >>> from gumbelrace.tables.shuffle import shuffle
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sorted_rows, target = pathlib.Path(folder, "sorted.npy"), pathlib.Path(folder, "shuffled.npy")
    ...     np.save(sorted_rows, np.arange(10).reshape(5, 2))
    ...     shuffle(gr.open_table(sorted_rows), target, seed=1)
    ...     np.load(target).tolist(), gr.open_table(target).shuffled
    ([[8, 9], [4, 5], [6, 7], [2, 3], [0, 1]], True)
    """
    path = Path(target)
    check_table_output(path)
    check_not_source(table, path)
    check_no_other_record(path)
    rows, rng = Rowwise(table, missing), as_generator(seed)
    plan = planned(rows, memory)
    check_room(rows, path)
    with progress(f"shuffling {table.name}", 2.0 * rows.size) as advance:
        _write(rows, path, seed, _shuffled(rows, plan, path, rng, advance))


def planned(rows: Rowwise, memory: float) -> Plan:
    """Say how many buckets fit into memory one by one, and how long blocks are."""
    if not memory >= LEAST_MEMORY:
        raise InvalidArgument(f"memory is {memory:g} bytes; give at least {LEAST_MEMORY:,}")
    if rows.size == 0:
        raise InvalidFile("there are no rows to shuffle; give at least one")
    block = max(1, int(min(BLOCK_SHARE * memory, LARGEST_BLOCK)) // rows.row_bytes)
    needed = rows.size * (rows.row_bytes + ORDER_BYTES)
    # A bucket may turn out larger than the mean, by a few deviations.
    fewest = max(1, math.ceil(1.02 * needed / (BUCKET_SHARE * memory)))
    if fewest > MOST_BUCKETS:
        least = 1.02 * needed / (BUCKET_SHARE * MOST_BUCKETS)
        raise InvalidArgument(f"memory is {memory:.3g} bytes; this table needs at least {least:.3g}")
    fast = min(needed // CACHED, block * rows.row_bytes // LEAST_PART, MOST_BUCKETS)
    return Plan(max(fewest, fast), block)


def check_room(rows: Rowwise, target: Path) -> None:
    """Refuse a table for which the disk has no room; what is written replaces what was scattered."""
    needed, free = ROOM_TO_SPARE * rows.bytes, shutil.disk_usage(target.parent).free
    if needed > free:
        raise InvalidFile(
            f"{target.parent} has {free / GIGABYTE:.3g} GB left, but {needed / GIGABYTE:.3g} GB are needed "
            f"to write {target.name}; make room, or write elsewhere"
        )


def check_not_source(table: DiskTable, target: Path) -> None:
    if target.exists() and any(target.samefile(path) for path in table.paths):
        raise InvalidFile(f"{target} is the table itself; write the shuffled rows elsewhere")
    folder = Path(table.name)
    if folder.is_dir() and folder.resolve() in target.resolve().parents:
        raise InvalidFile(
            f"{target} lies in {folder}, which would then have all rows twice; write the shuffled rows "
            "elsewhere"
        )


def _shuffled(
    rows: Rowwise, plan: Plan, target: Path, rng: np.random.Generator, advance: Advance
) -> Iterator[Bytes]:
    """Give all rows in random order; a block stays as it is until the second after it is asked for."""
    with ExitStack() as kept:
        # Without a name, they are gone however this process ends.
        buckets: list[Any] = [
            kept.enter_context(tempfile.TemporaryFile(dir=target.parent, buffering=0))
            for _ in range(plan.buckets)
        ]
        # New memory has to be cleared by the system, which takes as long as to fill it: it is used again.
        rooms = cycle(np.empty((2, plan.block, rows.row_bytes), np.uint8))
        counts = _scatter(rows.blocks(plan.block), rooms, buckets, rng, advance)
        memory, done = np.empty((max(counts), rows.row_bytes), np.uint8), rows.size
        # Closing a file frees its room, which is needed for what is written; that waits for the disk.
        behind = kept.enter_context(Behind())
        for bucket, count in zip(buckets, counts, strict=True):
            _read_all(bucket, memory[:count])
            behind.do(bucket.close)
            for block in _in_order(memory[:count], rooms, rng):
                yield block
                done += len(block)
                advance(done)


def _scatter(
    blocks: Iterable[Bytes],
    rooms: Iterator[Bytes],
    buckets: Sequence[Any],
    rng: np.random.Generator,
    advance: Advance,
) -> list[int]:
    """Put each row into a bucket; return how many each has."""
    counts, done = np.zeros(len(buckets), np.int64), 0
    with Behind() as behind:
        for block in blocks:
            by_bucket, here = scattered(block, len(buckets), next(rooms), rng)
            behind.do(_write_parts, buckets, np.split(by_bucket, np.cumsum(here)[:-1]))
            counts += here
            done += len(block)
            advance(done)
    found: list[int] = counts.tolist()
    return found


def _in_order(bucket: Bytes, rooms: Iterator[Bytes], rng: np.random.Generator) -> Iterator[Bytes]:
    """Give the rows of a bucket in random order."""
    order = random_order(len(bucket), rng)
    while len(order):
        room = next(rooms)
        yield taken(bucket, order[: len(room)], room)
        order = order[len(room) :]


def taken(rows: Bytes, order: NDArray[np.int64], room: Bytes) -> Bytes:
    """Put rows in this order, into memory that is there."""
    # "clip" never happens; to raise an error instead, NumPy would first write elsewhere.
    return rows.take(order, axis=0, out=room[: len(order)], mode="clip")


def _write_parts(buckets: Sequence[Any], parts: Sequence[Bytes]) -> None:
    for bucket, part in zip(buckets, parts, strict=True):
        write_all(bucket, part)


def _read_all(file: Any, rows: Bytes) -> None:
    file.seek(0)
    left = rows.reshape(-1).data
    while len(left):
        left = left[file.readinto(left) :]


def _write(rows: Rowwise, target: Path, seed: int, blocks: Iterator[Bytes]) -> None:
    """Write the file and its record, unless another run does."""
    busy = InvalidFile(f"another run is writing {target}; wait until it has ended, or write elsewhere")
    with named(target), alone(unfinished_path(target), busy):
        _write_both(rows, target, seed, blocks)


def _write_both(rows: Rowwise, target: Path, seed: int, blocks: Iterator[Bytes]) -> None:
    """Write the file and its record: first both are on disk, then they get their names."""
    record = record_path(target)
    new = record.with_name(record.name + UNFINISHED)
    try:
        with unfinished(target) as path:
            with open_writer(path, target.suffix.lower(), rows) as writer, Behind() as behind:
                for block in blocks:
                    behind.do(writer.write, block)
            write_record(record_of(path, rows.columns, rows.size, seed, rows.counted), new)
            record.unlink(missing_ok=True)  # of another file
        os.replace(new, record)
    finally:
        new.unlink(missing_ok=True)
