"""The one race: read random rows of the arms still in it, drop arms, until one is left.

Every solver on arms that share their rows is this loop with a rule of its own. A rule is a named tuple
that a solver passes in; numba picks the functions of its class when it compiles:

- ``prepare(rule, source)``: working memory for many draws;
- ``begin(rule, work, source, field, size)``: start a draw, flagging arms that need no reading;
- ``next_look(rule, taken, size)``: how many rows to read now (HELD at most), 0 to scan the rest;
- ``judge(rule, work, source, field, sample, taken, size)``: count the look, flag in `field.out` the arms to
  drop, and put into `field.need` the row at which each other arm is expected to be dropped.

A rule's `keeps` says whether it looks again at rows of earlier looks; where rewards have to be copied, only
the first KEPT rows are kept.

Differences of sums are of order 1 while the sums are of order N: all sums are shifted by a common
constant, the first arm's first mean.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from gumbelrace.jit import OPTIONS, PART, Bits, Function, fetch, kernel, maker, part
from gumbelrace.population.base import CODE, FINE, IMPOSSIBLE, Floats, Source, read
from gumbelrace.shuffle import (
    END,
    NEXT,
    Stream,
    mark_blocks,
    mark_rows,
    next_run,
    rewind,
    take,
    unseen_rows,
    unseen_run,
)

# Entries of Field.tally
ALIVE, LEADER, RUNNER_UP, TAKEN, EVALUATIONS, LOOKS, EXHAUSTED = 0, 1, 2, 3, 4, 5, 6

# Rows of which rewards are kept, where they have to be copied: memory stays bounded.
KEPT = 16_384
# Most rows to read at a time, so that what was copied is still in the cache when it is added up.
HELD = 2048

# Rewards in a line of the cache, and how many at the start of a run are asked for beforehand.
LINE, FETCHED = 8, 64
# Rewards in 64 kB, the distance after which places in a typical second-level cache repeat.
WAY = 8192

# Projections from fewer rows than this share of the population are not trusted.
TRUSTED_SHARE = 1 / 32


class Field(NamedTuple):
    """The arms of one draw and what is known of them (compiled code changes the arrays)."""

    tally: NDArray[np.int64]
    arms: NDArray[np.int64]  # the first tally[ALIVE] are still in the race
    rows: NDArray[np.int64]  # how many rows of each arm were read
    out: NDArray[np.uint8]  # arms to drop
    offset: Floats  # on the scale of the sum
    sums: Floats  # of the rewards read, shifted
    fresh: Floats  # the part of it that the last look added
    need: Floats  # rows expected until an arm is dropped
    shift: Floats
    podium: Floats  # values of the leader and the runner-up


class Sample(NamedTuple):
    """Rewards that were read: runs of columns of `rewards`, indexed [arm, column]."""

    rewards: Floats
    first: NDArray[np.int64]
    length: NDArray[np.int64]
    runs: NDArray[np.int64]  # how many runs; the first of the last look


class Gear(NamedTuple):
    """Working memory of many races."""

    field: Field
    rows: NDArray[np.int64]
    block: Floats
    work: Any  # of the rule


class Results(NamedTuple):
    """What a batch of draws gives (arrays with one entry for each draw)."""

    arms: NDArray[np.int64]
    evaluations: NDArray[np.int64]
    looks: NDArray[np.int64]
    exhausted: NDArray[np.bool_]


def prepare(rule: Any, source: Source) -> Any:
    """Give working memory for many draws."""
    raise NotImplementedError


def begin(rule: Any, work: Any, source: Source, field: Field, size: int) -> None:
    """Start a draw."""
    raise NotImplementedError


def next_look(rule: Any, taken: int, size: int) -> int:
    """Give the number of rows to read now; 0 scans the rest."""
    raise NotImplementedError


def judge(
    rule: Any, work: Any, source: Source, field: Field, sample: Sample, taken: int, size: int
) -> None:
    """Flag the arms to drop."""
    raise NotImplementedError


def implements(generic: Callable[..., Any], rule: type) -> Callable[[Function], Function]:
    """Make the decorated function what `generic` does for rules of class `rule`."""

    def register(function: Function) -> Function:
        options = OPTIONS if generic is prepare else PART

        @overload(generic, jit_options=options, strict=False)
        def choose(of: Any, *rest: Any) -> Callable[..., Any] | None:
            return function if getattr(of, "instance_class", None) is rule else None

        return function

    return register


@kernel
def solve(
    rule: Any,
    source: Source,
    stream: Stream,
    bits: Bits,
    size: int,
    offsets: Floats,
    results: Results,
) -> None:
    """Find the best arm once for each row of `offsets`."""
    gear, sample = new_gear(rule, source), new_sample(source)
    for draw in range(len(offsets)):
        sample = race(rule, gear, source, stream, bits, size, offsets[draw], sample)
        if source.fault[CODE] != FINE:
            return
        record(gear.field, results, draw)


@maker
def race(
    rule: Any,
    gear: Gear,
    source: Source,
    stream: Stream,
    bits: Bits,
    size: int,
    offset: Floats,
    sample: Sample,
) -> Sample:
    """Run one race; what it found is in `gear.field.tally`. Return the sample, which may have grown."""
    start(rule, gear, source, size, offset, sample)
    missing = advance(rule, gear, source, stream, bits, size, sample)
    while missing > 0:
        sample = enlarged(source, sample, stream, missing)
        missing = advance(rule, gear, source, stream, bits, size, sample)
    return sample


@part
def start(rule: Any, gear: Gear, source: Source, size: int, offset: Floats, sample: Sample) -> None:
    """Line up the arms, and drop those of which nothing need be read."""
    field = gear.field
    reset(field, source, offset)
    admit(field, source)
    sample.runs[0] = 0
    begin(rule, gear.work, source, field, size)
    drop(field)


@part
def advance(
    rule: Any, gear: Gear, source: Source, stream: Stream, bits: Bits, size: int, sample: Sample
) -> int:
    """Race until one arm is left; return 0, or the number of rows for which the sample has no room."""
    field, tally = gear.field, gear.field.tally
    while tally[ALIVE] > 1:
        taken = tally[TAKEN]
        count = next_look(rule, taken, size)
        if count == 0:
            break
        open_look(sample, rule.keeps and (len(source.direct) > 0 or taken + count <= KEPT))
        if not has_room(source, sample, stream, count):
            return count
        if not gather(source, stream, bits, size, field, sample, gear.rows, count):
            return 0
        taken += count
        tally[TAKEN] = taken
        rank(field, taken, size)
        judge(rule, gear.work, source, field, sample, taken, size)
        drop(field)
        if is_due(taken - count, taken, size) and scan_is_cheaper(source, field, taken, size):
            break
    finish(gear, source, stream, size, tally[TAKEN])
    return 0


@part
def finish(gear: Gear, source: Source, stream: Stream, size: int, taken: int) -> None:
    """Name the winner: the only arm left, or the leader after all rows."""
    tally = gear.field.tally
    tally[EXHAUSTED] = tally[ALIVE] != 1
    if tally[EXHAUSTED]:
        scan(source, stream, size, gear.field, gear.rows, gear.block, taken)
    else:
        tally[LEADER] = gear.field.arms[0]
    rewind(stream)


@maker
def new_gear(rule: Any, source: Source) -> Gear:
    """Make room for races by a rule."""
    block = new_block(source, source.chunk)
    return Gear(new_field(source.arms), new_rows(source), block, prepare(rule, source))


@maker
def new_field(arms: int) -> Field:
    """Make room for the arms of a draw."""
    return Field(
        np.zeros(7, np.int64),
        np.empty(arms, np.int64),
        np.empty(arms, np.int64),
        np.zeros(arms, np.uint8),
        np.empty(arms),
        np.empty(arms),
        np.empty(arms),
        np.empty(arms),
        np.zeros(1),
        np.zeros(2),
    )


@maker
def new_sample(source: Source) -> Sample:
    """Make room for a few runs; rewards that lie in memory are used where they are."""
    rewards = source.direct if len(source.direct) else new_block(source, 128)
    return Sample(rewards, np.empty(64, np.int64), np.empty(64, np.int64), np.zeros(2, np.int64))


@maker
def new_rows(source: Source) -> NDArray[np.int64]:
    """Make room for the numbers of the rows of a chunk, or for the two ends of a run."""
    return np.empty(max(source.chunk, 2), np.int64)


@maker
def new_block(source: Source, rows: int) -> Floats:
    """Make room for rewards of that many rows."""
    # What one look reads of all arms should not meet in the same few places of a cache, which is what
    # happens at a distance of a power of two: 64 kB and an eighth of that set the arms apart.
    apart = WAY // 8 + LINE
    if rows > apart:
        apart += (rows - apart + WAY - 1) // WAY * WAY
    elif rows < apart // 4:
        apart = (rows // 16) * 16 + 24
    return np.empty((source.arms, apart))


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
def runs_after(source: Source, sample: Sample, stream: Stream, count: int) -> int:
    """Bound the number of runs after `count` more rows: one copied run, or a run for each block."""
    return sample.runs[0] + (count // stream.block + 2 if len(source.direct) else 1)


@part
def has_room(source: Source, sample: Sample, stream: Stream, count: int) -> bool:
    """Whether `count` more rows fit."""
    copied = len(source.direct) == 0
    fits = not copied or columns(sample) + count <= sample.rewards.shape[1]
    return fits and runs_after(source, sample, stream, count) <= len(sample.first)


@maker
def enlarged(source: Source, sample: Sample, stream: Stream, count: int) -> Sample:
    """Give a sample with room for `count` more rows, and what is in it now."""
    runs = max(runs_after(source, sample, stream, count), 2 * len(sample.first))
    first, length = np.empty(runs, np.int64), np.empty(runs, np.int64)
    for run in range(sample.runs[0]):
        first[run], length[run] = sample.first[run], sample.length[run]
    if len(source.direct):
        return Sample(source.direct, first, length, sample.runs)
    used = columns(sample)
    rewards = new_block(source, max(used + count, 2 * sample.rewards.shape[1]))
    for arm in range(source.arms):
        for i in range(used):
            rewards[arm, i] = sample.rewards[arm, i]
    return Sample(rewards, first, length, sample.runs)


@part
def reset(field: Field, source: Source, offset: Floats) -> None:
    """Forget the draw before."""
    field.tally[TAKEN] = field.tally[EVALUATIONS] = field.tally[LOOKS] = 0
    for arm in range(source.arms):
        source.ruled_out[arm] = 0
        field.offset[arm] = offset[arm]


@part
def admit(field: Field, source: Source) -> None:
    """Fill the race with the arms that nothing rules out, nothing read yet."""
    for arm in range(source.arms):
        field.sums[arm], field.rows[arm], field.out[arm] = 0.0, 0, 0
    line_up(field, source)


@part
def line_up(field: Field, source: Source) -> None:
    """Put every possible arm into the race."""
    alive = 0
    for arm in range(source.arms):
        if is_possible(field, source, arm):
            field.arms[alive] = arm
            alive += 1
    field.tally[ALIVE] = alive


@part
def is_possible(field: Field, source: Source, arm: int) -> bool:
    """Whether nothing seen so far gives the arm probability zero."""
    # The exact range of a table that was checked beforehand shows which arms have a -inf.
    known = not source.verify and source.low[arm] == -np.inf
    return field.offset[arm] > -np.inf and not known and not source.ruled_out[arm]


@part
def drop(field: Field) -> None:
    """Take the flagged arms out of the race, keeping the others in order."""
    kept = 0
    for a in range(field.tally[ALIVE]):
        arm = field.arms[a]
        field.arms[kept] = arm
        kept += 1 - field.out[arm]
        field.out[arm] = 0
    field.tally[ALIVE] = kept


@part
def drop_ruled_out(field: Field, source: Source) -> None:
    """Take arms that have shown a -inf out of the race."""
    for a in range(field.tally[ALIVE]):
        field.out[field.arms[a]] = source.ruled_out[field.arms[a]]
    drop(field)


@part
def gather(
    source: Source,
    stream: Stream,
    bits: Bits,
    size: int,
    field: Field,
    sample: Sample,
    rows: NDArray[np.int64],
    count: int,
) -> bool:
    """Read `count` more rows of every arm in the race and add them up."""
    if len(source.direct):
        gather_runs(stream, bits, size, sample, count)
        fetch_runs(field, sample)
        field.tally[EVALUATIONS] += count * field.tally[ALIVE]
    elif not gather_rows(source, stream, bits, size, field, sample, rows, count):
        return False
    if source.verify:
        drop_ruled_out(field, source)
    if field.tally[ALIVE] > 0 and field.rows[field.arms[0]] == 0:
        field.shift[0] = fresh_total(sample, field.arms[0]) / count
    for a in range(field.tally[ALIVE]):
        arm = field.arms[a]
        field.fresh[arm] = fresh_total(sample, arm) - count * field.shift[0]
        field.sums[arm] += field.fresh[arm]
        field.rows[arm] += count
    return True


@part
def gather_runs(stream: Stream, bits: Bits, size: int, sample: Sample, count: int) -> None:
    """Pick `count` more positions where the rewards lie."""
    while count > 0:
        run = sample.runs[0]
        sample.first[run], sample.length[run] = next_run(stream, bits, size, count)
        sample.runs[0] += 1
        count -= sample.length[run]


@part
def fetch_runs(field: Field, sample: Sample) -> None:
    """Ask for how the runs of the last look begin, for all arms at once; the processor guesses the rest."""
    rewards = sample.rewards
    for run in range(sample.runs[1], sample.runs[0]):
        for a in range(field.tally[ALIVE]):
            first = field.arms[a] * rewards.shape[1] + sample.first[run]
            for i in range(0, min(sample.length[run], FETCHED), LINE):
                fetch(rewards.ctypes.data + 8 * (first + i))


@part
def gather_rows(
    source: Source,
    stream: Stream,
    bits: Bits,
    size: int,
    field: Field,
    sample: Sample,
    rows: NDArray[np.int64],
    count: int,
) -> bool:
    """Read `count` more rows into the columns after the last run."""
    run, first, done = sample.runs[0], columns(sample), 0
    while done < count:
        n = min(source.chunk, count - done)
        take(stream, bits, size, rows, n)
        got = read(source, rows, n, field.arms, field.tally[ALIVE], sample.rewards, first + done)
        if got == 0:
            return False
        field.tally[EVALUATIONS] += got
        done += n
    sample.first[run], sample.length[run] = first, count
    sample.runs[0] += 1
    return True


@part
def fresh_total(sample: Sample, arm: int) -> float:
    """Sum the rewards of an arm in the last look."""
    result = 0.0
    for run in range(sample.runs[1], sample.runs[0]):
        result += total(sample.rewards, arm, sample.first[run], sample.length[run])
    return result


@part
def fresh_rows(sample: Sample) -> int:
    """Count the rows of the last look."""
    count = 0
    for run in range(sample.runs[1], sample.runs[0]):
        count += sample.length[run]
    return count


@part
def total(rewards: Floats, arm: int, first: int, count: int) -> float:
    """Sum rewards[arm, first:first + count]."""
    # Unsigned indices cannot count from the end: only then does the loop run in vector registers.
    j, result = np.uint64(arm), 0.0
    for i in range(np.uint64(first), np.uint64(first + count)):
        result += rewards[j, i]
    return result


@part
def estimate(field: Field, arm: int, taken: int, size: int) -> float:
    """Estimate the sum of an arm over all rows, offset included (shifted)."""
    return field.sums[arm] * (size / taken) + field.offset[arm]


@part
def rank(field: Field, taken: int, size: int) -> None:
    """Find the leader and the runner-up; of equals, the arm with the lower number leads."""
    for a in range(field.tally[ALIVE]):
        place(field, a, estimate(field, field.arms[a], taken, size))


@part
def place(field: Field, a: int, value: float) -> None:
    """Compare the a-th arm with the first two among those before it."""
    arm = field.arms[a]
    if a == 0 or value > field.podium[0]:
        field.tally[RUNNER_UP], field.podium[1] = field.tally[LEADER], field.podium[0]
        field.tally[LEADER], field.podium[0] = arm, value
    elif a == 1 or value > field.podium[1]:
        field.tally[RUNNER_UP], field.podium[1] = arm, value


@part
def is_due(before: int, taken: int, size: int) -> bool:
    """Whether this look reached a new doubling of the least share from which one may project."""
    due = TRUSTED_SHARE * size
    while due <= before:
        due *= 2.0
    return due <= taken


@part
def scan_is_cheaper(source: Source, field: Field, taken: int, size: int) -> bool:
    """Whether reading all remaining rows in order costs less than the race is expected to."""
    raced, longest = 0.0, 0.0
    for a in range(field.tally[ALIVE]):
        if field.arms[a] != field.tally[LEADER]:
            rows = min(field.need[field.arms[a]], size) - taken
            raced += rows
            longest = max(longest, rows)
    return source.scan_speed * (raced + longest) > field.tally[ALIVE] * (size - taken)


@part
def scan(
    source: Source,
    stream: Stream,
    size: int,
    field: Field,
    rows: NDArray[np.int64],
    block: Floats,
    taken: int,
) -> None:
    """Add up all rows not read yet, in the order in which they lie, and find the leader."""
    if len(source.direct):
        scan_runs(source, stream, size, field, rows)
    else:
        scan_rows(source, stream, size, field, rows, block, taken)
        if field.tally[ALIVE] == 0:
            revive(source, stream, size, field, rows, block)
    if field.tally[ALIVE] == 0:
        source.fault[CODE] = IMPOSSIBLE
    else:
        rank(field, size, size)


@part
def revive(
    source: Source,
    stream: Stream,
    size: int,
    field: Field,
    rows: NDArray[np.int64],
    block: Floats,
) -> None:
    """Scan what is left of the arms dropped before: all that had beaten them have shown a -inf."""
    for arm in range(source.arms):
        if is_possible(field, source, arm) and source.fault[CODE] == FINE:
            field.arms[0], field.tally[ALIVE] = arm, 1
            scan_rows(source, stream, size, field, rows, block, field.rows[arm])
    line_up(field, source)


@part
def scan_runs(source: Source, stream: Stream, size: int, field: Field, bounds: NDArray[np.int64]) -> None:
    """Add up the rewards where they lie, in runs as long as can be, a batch of runs after the other."""
    bounds[0], bounds[1] = stream.cursor[NEXT], stream.cursor[END]
    scan_batch(source, field, bounds, 2)
    mark_blocks(stream, 1)
    block = 0
    while block < len(stream.blocks):
        filled = 0
        while block < len(stream.blocks) and filled + 2 <= len(bounds):
            first, block = unseen_run(stream, block)
            bounds[filled] = first * stream.block
            bounds[filled + 1] = min(block * stream.block, size)
            filled += 2
        scan_batch(source, field, bounds, filled)
    mark_blocks(stream, 0)


@part
def scan_batch(source: Source, field: Field, bounds: NDArray[np.int64], filled: int) -> None:
    """Add up the positions from bounds[0] to before bounds[1], from bounds[2] to before bounds[3]..."""
    # One arm after the other: its runs lie in memory as a stream with gaps.
    for a in range(field.tally[ALIVE]):
        arm = field.arms[a]
        for i in range(0, filled, 2):
            count = max(bounds[i + 1] - bounds[i], 0)
            field.sums[arm] += total(source.direct, arm, bounds[i], count) - count * field.shift[0]
            field.tally[EVALUATIONS] += count


@part
def scan_rows(
    source: Source,
    stream: Stream,
    size: int,
    field: Field,
    rows: NDArray[np.int64],
    block: Floats,
    taken: int,
) -> None:
    """Read and add up all but the first `taken` rows of the random order, a chunk after the other."""
    mark_rows(stream, size, taken, 1)
    for first in range(0, size, source.chunk):
        count = unseen_rows(stream, first, min(first + source.chunk, size), rows)
        if count > 0 and field.tally[ALIVE] > 0:
            got = read(source, rows, count, field.arms, field.tally[ALIVE], block, 0)
            if got == 0:
                return
            field.tally[EVALUATIONS] += got
            if source.verify:
                drop_ruled_out(field, source)
            for a in range(field.tally[ALIVE]):
                arm = field.arms[a]
                field.sums[arm] += total(block, arm, 0, count) - count * field.shift[0]
    mark_rows(stream, size, taken, 0)


@part
def record(field: Field, results: Results, draw: int) -> None:
    """Note the outcome of a draw."""
    results.arms[draw] = field.tally[LEADER]
    results.evaluations[draw] = field.tally[EVALUATIONS]
    results.looks[draw] = field.tally[LOOKS]
    results.exhausted[draw] = field.tally[EXHAUSTED] == 1
