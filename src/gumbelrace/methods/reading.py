"""Reading rows that all arms share: some random ones, or all that are left in the order in which they lie.

Nothing here depends on the rule of the race: it is compiled once for all rules (`READING`).

A table's rewards are used where they lie, in runs of rows; others are copied, one run for each look.

Differences of sums are of order 1 while the sums are of order N: all rewards are reduced by a common
constant, a typical one among the first, before they are added up.
"""

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import OPTIONS, as_written, part, routine
from gumbelrace.core.orders import Stream, forget_marks, mark_rows, next_run, take, unseen_rows
from gumbelrace.core.packed import ENTRY, Entries, fetch, read_stored
from gumbelrace.core.random import Bits
from gumbelrace.methods.state import (
    ALIVE,
    ARMS,
    EVALUATIONS,
    TAKEN,
    WANTED,
    RaceState,
    add,
    drop_ruled_out,
    is_possible,
    line_up,
    rank,
)
from gumbelrace.population.base import CODE, FINE, IMPOSSIBLE, Floats, Source, read

# Rows wanted: all that are left.
THE_REST = -1
# Rows of which rewards are kept, where they have to be copied: memory stays bounded.
KEPT = 16_384
# Most rows to read at a time, so that what was copied is still in the cache when it is added up.
HELD = 2048

# More looks than a race can have whose looks double.
MOST_DOUBLINGS = 64

# Rewards in a line of the cache, and how many at the start of a run are asked for beforehand.
LINE, FETCHED = 8, 64
# Rewards in 64 kB, the distance after which places in a typical second-level cache repeat.
WAY = 8192

# Rewards that a scan adds up plainly, before rounding is accounted for.
PIECE = 1024
# Share of Σ|reward - shift| within which a sum is right. A plain sum of n numbers is off by at most n·2^-53
# of their sizes, and n is at most HELD, 2^11. Two such sums are compared, each with a shift of its own.
ROUNDING = 2.0**-40
# The same for a few plain additions.
FEW_ADDITIONS = 2.0**-50


class Sample(NamedTuple):
    """Rewards that were read: runs of columns of `rewards`, indexed [arm, column]."""

    rewards: Floats
    first: NDArray[np.int64]
    length: NDArray[np.int64]
    runs: NDArray[np.int64]  # how many runs; the first of the last look


class SharedRows(NamedTuple):
    """What reading rows needs, whatever the rule of the race is."""

    source: Source
    order: Stream
    bits: Bits  # that choose rows
    sizes: NDArray[np.int64]  # the first is the number of rows
    state: RaceState
    sample: Sample
    rows: NDArray[np.int64]
    block: Floats


def new_sample(source: Source, stream: Stream, size: int, keeps: bool) -> Sample:
    """Make room for what a race reads; rewards that lie in memory are used where they are."""
    # Room that is never written to costs nothing.
    held, looks = min(size, HELD), size // HELD + MOST_DOUBLINGS
    if not len(source.direct):
        rewards = new_block(source.arms, min(size, KEPT) if keeps else held)
        return Sample(rewards, np.empty(looks, np.int64), np.empty(looks, np.int64), np.zeros(2, np.int64))
    most = (size if keeps else held) // stream.streams.block + looks
    return Sample(source.direct, np.empty(most, np.int64), np.empty(most, np.int64), np.zeros(2, np.int64))


def new_rows(source: Source) -> NDArray[np.int64]:
    """Make room for the numbers of the rows of a chunk."""
    return np.empty(source.chunk, np.int64)


def new_block(arms: int, rows: int) -> Floats:
    """Make room for rewards of that many rows."""
    # What one look reads of all arms should not meet in the same few places of a cache, which is what
    # happens at a distance of a power of two: 64 kB and an eighth of that set the arms apart.
    apart = WAY // 8 + LINE
    if rows > apart:
        apart += (rows - apart + WAY - 1) // WAY * WAY
    elif rows < apart // 4:
        apart = (rows // 16) * 16 + 24
    return np.empty((arms, apart))


def _entry(name: str, cache: bool) -> Any:
    """Compile the reading of as many rows as `state.tally[WANTED]` says; it gives 0 after a fault."""

    @numba.cfunc(ENTRY, cache=cache, **OPTIONS)
    def read_wanted(words):  # type: ignore[no-untyped-def]
        shared = read_stored(words, name)
        wanted = shared.state.tally[WANTED]
        if wanted == THE_REST:
            scan(shared)
            return 1
        return 1 if gather(shared, wanted) else 0

    return read_wanted


READING = Entries(_entry)


@part
def open_look(sample: Sample, keeps: bool) -> None:
    """Begin a new look, forgetting the runs before it unless they are kept."""
    if not keeps:
        sample.runs[0] = 0
    sample.runs[1] = sample.runs[0]


@part
def columns(sample: Sample) -> int:
    """Count the columns in use, where rewards are copied: runs then follow one another."""
    last = sample.runs[0] - 1
    return sample.first[last] + sample.length[last] if last >= 0 else 0


@part
def gather(shared: SharedRows, count: int) -> bool:
    """Read `count` more rows of every arm in the race and add them up."""
    source, state, sample = shared.source, shared.state, shared.sample
    if len(source.direct):
        gather_runs(shared.order, shared.bits, sample, count)
        fetch_runs(state, sample)
        state.tally[EVALUATIONS] += count * state.tally[ALIVE]
    elif not gather_rows(shared, count):
        return False
    if source.verify:
        drop_ruled_out(state, source)
    if state.tally[ALIVE] > 0 and np.isnan(state.shift[0]):
        run = sample.runs[1]
        state.shift[0] = typical(sample.rewards, state.arms[0], sample.first[run], sample.length[run])
    for a in range(state.tally[ALIVE]):
        arm = state.arms[a]
        state.fresh[arm] = fresh_total(sample, arm, state.shift[0])
        add(state, arm, state.fresh[arm])
        state.rows[arm] += count
    return True


@part
def gather_runs(stream: Stream, bits: Bits, sample: Sample, count: int) -> None:
    """Pick `count` more positions where the rewards lie."""
    while count > 0:
        run = sample.runs[0]
        sample.first[run], sample.length[run] = next_run(stream, bits, count)
        sample.runs[0] += 1
        count -= sample.length[run]


@part
def fetch_runs(state: RaceState, sample: Sample) -> None:
    """Ask for how the runs of the last look begin, for all arms at once; the processor guesses the rest."""
    rewards = sample.rewards
    for run in range(sample.runs[1], sample.runs[0]):
        for a in range(state.tally[ALIVE]):
            first = state.arms[a] * rewards.shape[1] + sample.first[run]
            for i in range(0, min(sample.length[run], FETCHED), LINE):
                fetch(rewards.ctypes.data + 8 * (first + i))


@part
def gather_rows(shared: SharedRows, count: int) -> bool:
    """Read `count` more rows into the columns after the last run."""
    source, state, sample, rows = shared.source, shared.state, shared.sample, shared.rows
    run, first, done = sample.runs[0], columns(sample), 0
    while done < count:
        n = min(source.chunk, count - done)
        take(shared.order, shared.bits, rows, n)
        got = read(source, rows, n, state.arms, state.tally[ALIVE], sample.rewards, first + done)
        if got == 0:
            return False
        state.tally[EVALUATIONS] += got
        done += n
    sample.first[run], sample.length[run] = first, count
    sample.runs[0] += 1
    return True


@part
def fresh_total(sample: Sample, arm: int, shift: float) -> float:
    """Sum the rewards of an arm in the last look, each reduced by `shift`."""
    result = 0.0
    for run in range(sample.runs[1], sample.runs[0]):
        result += total(sample.rewards, arm, sample.first[run], sample.length[run], shift)
    return result


@part
def fresh_rows(sample: Sample) -> int:
    """Count the rows of the last look."""
    count = 0
    for run in range(sample.runs[1], sample.runs[0]):
        count += sample.length[run]
    return count


@part
def total(rewards: Floats, arm: int, first: int, count: int, shift: float) -> float:
    """Sum rewards[arm, first:first + count], each reduced by `shift`."""
    # Unsigned indices cannot count from the end: only then does the loop run in vector registers.
    j, result = np.uint64(arm), 0.0
    for i in range(np.uint64(first), np.uint64(first + count)):
        result += reduced(rewards[j, i], shift)
    return result


@part
def total_size(rewards: Floats, arm: int, first: int, count: int, shift: float) -> float:
    """Sum the sizes, without sign, of rewards[arm, first:first + count], each reduced by `shift`."""
    j, result = np.uint64(arm), 0.0
    for i in range(np.uint64(first), np.uint64(first + count)):
        result += abs(reduced(rewards[j, i], shift))
    return result


@as_written
def reduced(reward: float, shift: float) -> float:
    """Subtract first and add up later: in any other order the digits that decide are gone."""
    return reward - shift


@part
def typical(rewards: Floats, arm: int, first: int, count: int) -> float:
    """Give the median of three of rewards[arm, first:first + count]: one outlier must not set the scale."""
    a, b, c = rewards[arm, first], rewards[arm, first + count // 2], rewards[arm, first + count - 1]
    middle = max(min(a, b), min(max(a, b), c))
    return middle if np.isfinite(middle) else 0.0


@part
def scan(shared: SharedRows) -> None:
    """Add up all rows not read yet, in the order in which they lie, and find the leader."""
    source, state, size = shared.source, shared.state, shared.sizes[0]
    if len(source.direct):
        set_shift(state, source.direct, size)
        scan_table(source, size, state)
    else:
        scan_rows(shared, state.tally[TAKEN])
        if state.tally[ALIVE] == 0:
            revive(shared)
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
def revive(shared: SharedRows) -> None:
    """Scan what is left of the arms dropped before: all that had beaten them have shown a -inf."""
    source, state = shared.source, shared.state
    for arm in range(state.tally[ARMS]):
        if is_possible(state, source, arm) and source.fault[CODE] == FINE:
            state.arms[0], state.tally[ALIVE] = arm, 1
            scan_rows(shared, state.rows[arm])
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


@routine
def scan_rows(shared: SharedRows, taken: int) -> None:
    """Read and add up all but the first `taken` rows of the random order, a chunk after the other."""
    source, stream, state, size = shared.source, shared.order, shared.state, shared.sizes[0]
    rows, block = shared.rows, shared.block
    until = mark_rows(stream, size, taken, rows)
    for first in range(0, size, source.chunk):
        count = unseen_rows(stream, first, min(first + source.chunk, size), until, rows)
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
    forget_marks(stream)
